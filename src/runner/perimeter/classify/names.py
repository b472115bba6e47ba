# SPDX-License-Identifier: Apache-2.0
"""Names of persons: which are known, which capitalised words are none, and how much of a candidate is a name.

Owns the reading of the word lists and the checks that use them. Leaves the shapes to `persons`.
Carries I6: a name that is in no lexicon is one by the words around it; and its price: an office, a firm, a
month or the first word of a sentence is none.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final


def read_sections(name: str) -> Mapping[str, Sequence[str]]:
    """Return the lines of each section of the file `name` of this package, without comments."""
    text = files("runner.perimeter.classify").joinpath(name).read_text(encoding="utf-8")
    return parse_sections(text)


def parse_sections(text: str) -> Mapping[str, Sequence[str]]:
    """Return the lines of each section of `text`.

    Raises `ValueError` naming the line when one stands before any section or is not plain ASCII.
    """
    sections: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            lines = sections.setdefault(line[1:-1], [])
        elif lines is None or not line.isascii():
            raise ValueError(f"word list, line {number}: write it under a [section], without accents")
        else:
            lines.append(line)
    return sections


def _words(lines: Sequence[str]) -> frozenset[str]:
    """Return the words of `lines`; `_` stands for a space inside one."""
    return frozenset(word.replace("_", " ") for line in lines for word in line.split())


_LISTS: Final = read_sections("names.txt")
GIVEN: Final = _words(_LISTS["given"])
"""Given names that are no ordinary words."""
SURNAMES: Final = _words(_LISTS["surname"])
_ROLES: Final = _words(_LISTS["role"])
"""Words that stand behind a title in place of a name."""
_NONE: Final = _words(_LISTS["not"]) | _ROLES
_PARTICLES: Final = _words(_LISTS["particle"])
_PLACES: Final = frozenset({"villa", "piazza", "palazzo", "rifugio", "casa", "hotel", "residence", "cascina"})


def titled_name(candidate: str) -> int:
    """Accept what stands behind `sig.` or `Mr.` unless it is an office: "Presidente del Tribunale".

    An office followed by a capital is followed by a name: "Presidente Rossi".
    """
    words = candidate.split(" ")
    rest = next((words[index:] for index, word in enumerate(words) if word.lower() not in _ROLES), [])
    return len(candidate) if rest and (rest == words or rest[0][:1].isupper()) else 0


def full_name(candidate: str) -> int:
    """Accept the leading part of two words or more that may be a person's name, particles not counted.

    A place that is called after somebody is a place, though its first word is a surname too: "Villa Giulia".
    """
    first, _, second = candidate.partition(" ")
    if first.lower() in _PLACES and second.lower() in GIVEN:
        return 0
    return _leading(candidate, least=2)


def any_name(candidate: str) -> int:
    """Accept what may be a person's name as a whole, of one word or more."""
    accepted = _leading(candidate, least=1)
    return accepted if accepted == len(candidate.rstrip(".")) or accepted == len(candidate) else 0


def _leading(candidate: str, *, least: int) -> int:
    """Return the length of `candidate` up to the first word that is in no name; 0 for too few words."""
    end = position = weight = 0
    for word in candidate.split(" "):
        lowered = word.lower().rstrip(".")
        if lowered not in _PARTICLES:
            if lowered in _NONE:
                break
            weight += len(lowered) > 1
            end = position + len(word)
        position += len(word) + 1
    return end if weight >= least else 0
