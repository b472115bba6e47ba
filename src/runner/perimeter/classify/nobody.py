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
from collections.abc import Mapping, Sequence
from enum import Enum
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


def _section(name: str) -> str:
    return "|".join(_LISTS[name])


def _before(*words: str) -> Pattern:
    """Return a pattern for `words` right before a name, or before names joined to it."""
    return compile_pattern(rf"(?:^|[^A-Za-z])(?i:{'|'.join(words)}) {_MORE}$")


def _behind(*words: str) -> Pattern:
    """Return a pattern for `words` right behind a name, its genitive, or names joined to it."""
    joined = rf"(?: (?:and|e|ed|&) {_NAMED}|-{_NAMED}){{0,3}}"
    return compile_pattern(rf"^(?:'s|s')?{joined}(?:'s|s')?(?i:{'|'.join(words)})(?:[^A-Za-z]|$)")


_OF: Final = " (?:di|del|of|de)"
_FIRST: Final = {
    "kinds-of": f"(?:{_section('kinds-of')}){_OF}",
    "perhaps-kinds-of": f"(?:{_section('perhaps-kinds-of')}){_OF}",
    "citing": _section("citing"),
    "asking": _section("asking"),
}
_LAST: Final = {
    "kinds": f" (?:{_section('kinds')})",
    "perhaps-kinds": f" (?:{_section('perhaps-kinds')})",
    "writing": f" (?:{_section('writing')})|,? (?:{_section('question')})",
}
_BEFORE: Final = {section: _before(words) for section, words in _FIRST.items()}
_BEHIND: Final = {section: _behind(words) for section, words in _LAST.items()}
_ANY_BEFORE: Final = _before(*_FIRST.values())
_ANY_BEHIND: Final = _behind(*_LAST.values())
"""Most names have none of these beside them, so all are asked for at once."""
_EXAMPLE_BEFORE: Final = compile_pattern(
    rf"(?i)(?:^|[^a-z])(?:{'|'.join(sorted(_EXAMPLES))}),? (?:[a-z']{{1,12}} )?$"
)


class _Worth(Enum):
    """What somebody who was found is worth."""

    NOBODY = 0
    """No person."""
    CITED = 1
    """A person if there is another sign of one."""
    SOMEBODY = 2


def without_nobody(
    data: bytes, found: Sequence[Span], markers: Sequence[Span]
) -> tuple[list[Span], list[Span]]:
    """Return what was `found` and the `markers` without those that speak of nobody.

    `data` is the text folded, one byte for each of its characters. Only persons in the clear are judged.
    """
    about = [marker for marker in markers if not _EXAMPLE_BEFORE.search(_up_to(data, marker))]
    judged = [(_worth(data, span), span) for span in found]
    cited = {span for worth, span in judged if worth is _Worth.CITED}
    left = [span for worth, span in judged if worth is not _Worth.NOBODY]
    if cited:
        others = (span for span in left if span.data_class >= DataClass.C1 and span not in cited)
        signs = sorted(span.start for span in (*others, *about))
        left = [span for span in left if span not in cited or is_near(signs, span.start)]
    return left, about


def _up_to(data: bytes, span: Span) -> bytes:
    """Return what stands before `span`, with one space for each run of white space."""
    return flat(data[max(0, span.start - _AROUND) : span.start])


def _from(data: bytes, span: Span) -> bytes:
    """Return what stands behind `span`, with one space for each run of white space."""
    return flat(data[span.end : span.end + _AROUND])


def _worth(data: bytes, span: Span) -> _Worth:
    """Say what `span` is worth, a finding: all but persons in the clear are somebody's."""
    if span.kind != "person" or not is_clear(span.view):
        return _Worth.SOMEBODY
    name = flat(data[span.start : span.end]).decode("ascii").lower()
    words = _APART.split(name)
    if name in _EXAMPLES or name.endswith(_EXAMPLES_END) or _EXAMPLES.issuperset(words):
        return _Worth.NOBODY
    if span.rule not in _WEAK:
        return _Worth.SOMEBODY
    if name.isalpha() and _is_asked(name):
        return _Worth.NOBODY
    if not GIVEN.isdisjoint(words):
        return _Worth.SOMEBODY
    return _by_what_is_beside(_up_to(data, span), _from(data, span))


def _by_what_is_beside(before: bytes, behind: bytes) -> _Worth:
    """Say what somebody between two texts is worth, who may have named a thing or be asked about."""
    first, last = _sections(before, _BEFORE, _ANY_BEFORE), _sections(behind, _BEHIND, _ANY_BEHIND)
    if "kinds-of" in first or "kinds" in last:
        return _Worth.NOBODY
    if "citing" in first or "perhaps-kinds-of" in first or "perhaps-kinds" in last:
        return _Worth.CITED
    return _Worth.CITED if "asking" in first and "writing" in last else _Worth.SOMEBODY


def _sections(text: bytes, patterns: Mapping[str, Pattern], any_of_them: Pattern) -> set[str]:
    """Return the sections whose words stand in `text`, right beside a name."""
    if not any_of_them.search(text):
        return set()
    return {section for section, words in patterns.items() if words.search(text)}


def _is_asked(word: str) -> bool:
    """Say whether `word`, in small letters, is a word of instruction or a subject."""
    known = word in _ASKED or _PRONOUN.sub("", word) in _ASKED
    return known or word in _SUBJECTS or word.startswith(_SUBJECTS_BEGIN)
