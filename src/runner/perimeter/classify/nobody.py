# SPDX-License-Identifier: Apache-2.0
"""Persons who are none, or too little of one: whom a question of law or medicine names.

Owns that judgement: what a request or a handout begins with ("Translate: ..."), the persons of teaching
(Tizio, John Doe), who gave a sign or a syndrome a name, and an author who is asked about. Leaves finding
persons to `persons`, and a place inside a street's or a firm's name to `settle`.
Carries the utility of the gate: "Riscrivi: la schizofrenia e la sua terapia" says nothing of anybody. And its
bound: a title, a role, kin, a given name or a client is never judged here, and an author is somebody as soon
as a second sign of anybody stands near.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify.model import Span, is_clear
from runner.perimeter.classify.names import GIVEN, read_sections
from runner.perimeter.classify.pattern import Pattern, compile_pattern
from runner.perimeter.classify.settle import is_near
from runner.perimeter.classify.spaced import flat

_LISTS: Final = read_sections("nobody.txt")
_ASKED: Final = frozenset(word for line in (*_LISTS["asked"], *_LISTS["heads"]) for word in line.split())
_EXAMPLES: Final = frozenset(_LISTS["examples"])
_EXAMPLES_END: Final = tuple(f" {name}" for name in _LISTS["examples"] if " " in name)
"""Whole names of them, behind a first word of the sentence: "If John Doe"."""
_TERMS: Final = tuple(
    term
    for file in ("lexicon_it.txt", "lexicon_en.txt")
    for section, terms in read_sections(file).items()
    for term in terms
    if section != "person" and " " not in term
)
_SUBJECTS: Final = frozenset(term for term in _TERMS if not term.endswith("*"))
_SUBJECTS_BEGIN: Final = tuple(term[:-1] for term in _TERMS if term.endswith("*"))
"""Sensitive subjects of one word, and how others begin: as the head of an entry they are what it is about."""

_WEAK: Final = frozenset(
    {
        "person-called",
        "person-acting",
        "person-of-a-matter",
        "person-of-an-entry",
        "person-by-shape",
        "person-by-one-word",
    }
)
"""The rules for names that nothing but the words around them tells."""
_AROUND: Final = 80
"""Characters before and behind a name that are looked at."""
_PRONOUN: Final = re.compile("(?:(?:me|ce|ve|ne|glie)?(?:mi|ci|vi|lo|la|li|le|ne|gli))$")
_APART: Final = re.compile("[ ,]+")
_NAMED: Final = r"[A-Z][A-Za-z'\-]+"
_MORE: Final = rf"(?:{_NAMED}(?:,| and| e| ed| &|) )*"
"""Names before the one that is judged: "Hoehn and"."""


def _section(*names: str) -> str:
    return "|".join(line for name in names for line in _LISTS[name])


def _before(*sections: str, of: str = "") -> Pattern:
    """Return a pattern for what ends right before a name, or before names joined to it."""
    return compile_pattern(rf"(?:^|[^A-Za-z])(?i:{_section(*sections)}){of} {_MORE}$")


def _behind(pattern: str) -> Pattern:
    """Return a pattern for what stands right behind a name, its genitive, or names joined to it."""
    joined = rf"(?: (?:and|e|ed|&) {_NAMED}|-{_NAMED}){{0,3}}"
    return compile_pattern(rf"^(?:'s|s')?{joined}(?:'s|s')?(?:{pattern})(?:[^A-Za-z]|$)")


_OF: Final = " (?:di|del|of|de)"
_KINDS: Final = _behind(rf" (?i:{_section('kinds')})")
_PERHAPS_KINDS: Final = _behind(rf" (?i:{_section('perhaps-kinds')})")
_KINDS_OF: Final = _before("kinds-of", of=_OF)
_PERHAPS_KINDS_OF: Final = _before("perhaps-kinds-of", of=_OF)
_CITING: Final = _before("citing")
_ASKING: Final = _before("asking")
_WRITING: Final = _behind(rf" (?i:{_section('writing')})|,? (?i:{_section('question')})")
_EXAMPLE_BEFORE: Final = compile_pattern(
    rf"(?i)(?:^|[^a-z])(?:{'|'.join(sorted(_EXAMPLES))}),? (?:[a-z']{{1,12}} )?$"
)


def without_nobody(
    data: bytes, found: Sequence[Span], markers: Sequence[Span]
) -> tuple[list[Span], list[Span]]:
    """Return what was `found` and the `markers` without those that speak of nobody.

    `data` is the text folded, one byte for each of its characters. Only persons in the clear are judged.
    """
    judged = [span for span in found if span.kind == "person" and is_clear(span.view)]
    nobody = {span for span in judged if _is_nobody(data, span)}
    left = [span for span in judged if span not in nobody and span.rule in _WEAK]
    cited = {span for span in left if _is_cited(data, span)}
    about = [marker for marker in markers if not _EXAMPLE_BEFORE.search(_up_to(data, marker))]
    dropped = nobody | _without_company(cited, found, about, nobody)
    return [span for span in found if span not in dropped], about


def _without_company(
    cited: set[Span], found: Iterable[Span], markers: Iterable[Span], nobody: set[Span]
) -> set[Span]:
    """Return `cited` but for those near which somebody else, or something of somebody, was found."""
    others = (
        span for span in found if span.data_class >= DataClass.C1 and span not in cited and span not in nobody
    )
    signs = sorted(span.start for span in (*others, *markers))
    return {span for span in cited if not is_near(signs, span.start)}


def _up_to(data: bytes, span: Span) -> bytes:
    """Return what stands before `span`, with one space for each run of white space."""
    return flat(data[max(0, span.start - _AROUND) : span.start])


def _from(data: bytes, span: Span) -> bytes:
    """Return what stands behind `span`, with one space for each run of white space."""
    return flat(data[span.end : span.end + _AROUND])


def _name(data: bytes, span: Span) -> str:
    return flat(data[span.start : span.end]).decode("ascii").lower()


def _is_nobody(data: bytes, span: Span) -> bool:
    """Say whether the person at `span` is of teaching, a word that asks, or gave a thing its name."""
    name = _name(data, span)
    if name in _EXAMPLES or name.endswith(_EXAMPLES_END) or _EXAMPLES.issuperset(_APART.split(name)):
        return True
    if span.rule not in _WEAK:
        return False
    if name.isalpha() and _is_asked(name):
        return True
    return GIVEN.isdisjoint(_APART.split(name)) and bool(
        _KINDS.search(_from(data, span)) or _KINDS_OF.search(_up_to(data, span))
    )


def _is_asked(word: str) -> bool:
    """Say whether `word`, in small letters, is a word of instruction or a subject."""
    known = word in _ASKED or _PRONOUN.sub("", word) in _ASKED
    return known or word in _SUBJECTS or word.startswith(_SUBJECTS_BEGIN)


def _is_cited(data: bytes, span: Span) -> bool:
    """Say whether the person at `span` may be an author, or somebody an illness is called after."""
    if not GIVEN.isdisjoint(_APART.split(_name(data, span))):
        return False
    before, behind = _up_to(data, span), _from(data, span)
    return bool(
        _CITING.search(before)
        or _PERHAPS_KINDS_OF.search(before)
        or _PERHAPS_KINDS.search(behind)
        or (_ASKING.search(before) and _WRITING.search(behind))
    )
