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
from runner.perimeter.classify.names import GIVEN, SURNAMES, read_sections
from runner.perimeter.classify.settle import is_near

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


def _before(*sections: str, of: str = "") -> re.Pattern[str]:
    """Return a pattern for what ends right before a name, or before names joined to it."""
    return re.compile(rf"(?:^|[^A-Za-z])(?i:{_section(*sections)}){of} {_MORE}$")


_BEHIND: Final = rf"(?:'s|s')?(?: (?:and|e|ed|&) {_NAMED}|-{_NAMED}){{0,3}}(?:'s|s')?"
"""What may stand between a name and what says whose it is: a genitive, and names joined to it."""
_KINDS: Final = re.compile(rf"{_BEHIND} (?i:{_section('kinds')})(?![A-Za-z])")
_PERHAPS_KINDS: Final = re.compile(rf"{_BEHIND} (?i:{_section('perhaps-kinds')})(?![A-Za-z])")
_KINDS_OF: Final = _before("kinds-of", of="(?: (?:di|del|of|de))")
_PERHAPS_KINDS_OF: Final = _before("perhaps-kinds-of", of="(?: (?:di|del|of|de))")
_CITING: Final = _before("citing")
_ASKING: Final = _before("asking")
_WRITING: Final = re.compile(
    rf"{_BEHIND}(?: (?i:{_section('writing')})|,? (?i:{_section('question')}))(?![A-Za-z])"
)


def without_nobody(
    text: str, found: Sequence[Span], markers: Sequence[Span]
) -> tuple[list[Span], list[Span]]:
    """Return what was `found` and the `markers` without those that speak of nobody.

    `text` is the text folded, one character for each of the original. Only persons in the clear are judged.
    """
    judged = [span for span in found if span.kind == "person" and is_clear(span.view)]
    nobody = {span for span in judged if _is_nobody(text, span)}
    left = [span for span in judged if span not in nobody and span.rule in _WEAK]
    cited = {span for span in left if _is_cited(text, span)}
    about = [marker for marker in markers if not _is_of_an_example(text, marker)]
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


def _is_nobody(text: str, span: Span) -> bool:
    """Say whether the person at `span` is of teaching, a word that asks, or gave a thing its name."""
    name = text[span.start : span.end].lower()
    if name in _EXAMPLES or name.endswith(_EXAMPLES_END) or _EXAMPLES.issuperset(_APART.split(name)):
        return True
    if span.rule not in _WEAK:
        return False
    if name.isalpha() and _is_asked(name):
        return True
    return GIVEN.isdisjoint(_APART.split(name)) and (
        _KINDS.match(text, span.end, span.end + _AROUND) is not None
        or _KINDS_OF.search(text, max(0, span.start - _AROUND), span.start) is not None
    )


def _is_asked(word: str) -> bool:
    """Say whether `word`, in small letters, is a word of instruction or a subject, and no known name."""
    if word in GIVEN or word in SURNAMES:
        return False
    known = word in _ASKED or _PRONOUN.sub("", word) in _ASKED
    return known or word in _SUBJECTS or word.startswith(_SUBJECTS_BEGIN)


def _is_cited(text: str, span: Span) -> bool:
    """Say whether the person at `span` may be an author, or somebody an illness is called after."""
    if not GIVEN.isdisjoint(_APART.split(text[span.start : span.end].lower())):
        return False
    start, end = max(0, span.start - _AROUND), span.end + _AROUND
    before, behind = text[start : span.start], text[span.end : end]
    return (
        _CITING.search(before) is not None
        or (_ASKING.search(before) is not None and _WRITING.match(behind) is not None)
        or _PERHAPS_KINDS.match(behind) is not None
        or _PERHAPS_KINDS_OF.search(before) is not None
    )


_EXAMPLE_BEFORE: Final = re.compile(rf"(?i)\b(?:{'|'.join(sorted(_EXAMPLES))}),? (?:[a-z']{{1,12}} )?$")


def _is_of_an_example(text: str, marker: Span) -> bool:
    """Say whether the words at `marker` are said of a person of teaching: "Mevio e' affetto da"."""
    return _EXAMPLE_BEFORE.search(text, max(0, marker.start - _AROUND), marker.start) is not None
