# SPDX-License-Identifier: Apache-2.0
"""Names of persons: which are known, which capitalised words are none, and how much of a candidate is a name.

Owns the reading of the word lists and the checks that use them. Leaves the shapes to `persons`.
Carries I6: a name that is in no lexicon is one by the words around it; and its price: an office, a firm, a
month or the first word of a sentence is none.
"""

import re
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
PLACES: Final = frozenset({"villa", "piazza", "palazzo", "rifugio", "casa", "hotel", "residence", "cascina"})
"""Places that are called after somebody, and surnames too."""
_TO_A_PLACE: Final = re.compile(
    r"(?i)\b(?:ad?|in|d[ai]|del(?:la)?|dal(?:la)?|alla|presso|verso|fra|tra|at|of|from|to|near|"
    rf"{'|'.join(sorted(PLACES))}) $"
)
_VISITED: Final = re.compile(r"(?i)\b(?:visit[oa] (?:a|di)|fra|tra|between) $")
_BETWEEN: Final = frozenset({"fra", "tra", "between", "contro"})
_ORDINARY: Final = read_sections("ordinary.txt")
_CALLED_AFTER: Final = _words(_ORDINARY["before"])
_BEFORE_THINGS: Final = _CALLED_AFTER | _words(_ORDINARY["articles"]) | _words(_ORDINARY["cases"])
"""Words right behind which a thing is called something: nobody stands there, behind the former no client."""
_ARTICLES: Final = _words(_ORDINARY["articles"])
_BEFORE_ONE: Final = _BEFORE_THINGS | _words(_ORDINARY["before-one"])
_ALSO_WORDS: Final = _words(_ORDINARY["also-names"])
_RUN: Final = re.compile(r"\n?(?: (?:\.[A-Za-z]|[A-Za-z'\-]*[A-Za-z])){1,4}")
"""The last words before a name on its line, of a text that is read from its end."""
_COMMON: Final = _NONE | _BEFORE_THINGS | _words(_ORDINARY["words"])
_THINGS: Final = frozenset().union(*map(_words, read_sections("things.txt").values()))
"""Places, firms, remedies and the like that hardly anybody is called: a client who is counts all the same."""
_COMMON_ENDS: Final = {
    last: tuple(end for end in _words(_ORDINARY["end"]) if end.endswith(last))
    for last in "abcdefghijklmnopqrstuvwxyz"
}
"""By their last letter."""
_LAST_WORD: Final = re.compile(r"\n?['\"]?? ?[,:]?('?[A-Za-z]++)")
"""The last word of a text that is read from its end."""
_VOWELS: Final = frozenset("aeiouy")
_INNER_CAPITAL: Final = r"(?!(?:Mc|Mac|De|Di|Da|Del|La|Le|Lo|Van|Fitz)[A-Z])[A-Z][A-Za-z]*[a-z][A-Z]"
"""A capital inside a word, as in the names of programs and their parts, and in no surname but a few."""
_SHORT_FORM: Final = r"[A-Z]{2,4}\b|[A-Z]+[a-z']*'[a-z]{1,2}\b"
"""An abbreviation, as in `Mac OSX`, and what an apostrophe ends, as in `But I've` and `Anna's Bar`."""
_MADE_UP: Final = re.compile(f"{_INNER_CAPITAL}|{_SHORT_FORM}")
"""How no name is written: `ZipFile`, `YAML`, `I've`."""
_JOINED: Final = re.compile(r" (?:della|delle|dello|dei|degli) |^(?:La|Le|Lo|I|Il|Gli) .* d(?:i|el) ")
"""What is made of nouns: "Sagra della Castagna". Only nobles are called so, and mostly with a capital."""
_SHORTEST_PLURAL: Final = 5
_SHORTEST_CALLED: Final = 4
_LONGEST_ACRONYM: Final = 5
_HEADING: Final = 20
"""Letters of a name of one word, of the longest abbreviation, and of what tells a heading."""
_SHORTEST: Final = 3
"""Letters of the shortest word that is a name by its shape: shorter ones are abbreviations."""


def titled_name(candidate: str) -> int:
    """Accept what stands behind `sig.` or `Mr.` unless it is an office: "Presidente del Tribunale".

    An office followed by a capital is followed by a name, "Presidente Rossi", or by where it is held.
    """
    words = candidate.split(" ")
    rest = next((words[index:] for index, word in enumerate(words) if word.lower() not in _ROLES), [])
    if rest == words:
        return len(candidate)
    return len(candidate) if rest and rest[0][:1].isupper() and rest[0].lower() not in _NONE else 0


def full_name(candidate: str) -> int:
    """Accept the leading part of two words or more that may be a person's name, particles not counted.

    Behind an initial one word is enough.
    """
    return _leading(candidate, least=1 if candidate[1:2] == "." else 2)


def lone_name(candidate: str) -> int:
    """Accept a full name that nothing introduces and nothing follows.

    A place that is called after somebody is a place then: "Villa Giulia". In capitals it may be an entry. So
    is a river: "Dora Baltea".
    """
    if _is_like_a_place(candidate) and not candidate.isupper():
        return 0
    return full_name(candidate) if _THINGS.isdisjoint(candidate.lower().split(" ")) else 0


def _is_like_a_place(candidate: str) -> bool:
    first, _, second = candidate.lower().partition(" ")
    return first in PLACES and second in GIVEN


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
            if lowered in _NONE and word[1:] != ".":
                break
            weight += len(lowered) > 1
            end = position + len(word)
        position += len(word) + 1
    return end if weight >= least else 0


def unusual_name(candidate: str) -> int:
    """Accept two words or more, particles not counted, none of which is an ordinary word.

    Behind a capital particle, not the first word, anything is a name: "Learco Del Vecchio".
    """
    candidate = candidate.removesuffix("'s")
    words, weight, previous = candidate.split(" "), 0, ""
    for word in words:
        lowered = word.lower()
        if lowered not in _PARTICLES:
            if not _is_unusual(lowered) and not (
                weight and previous.istitle() and previous.lower() in _PARTICLES
            ):
                return 0
            weight += 1
        previous = word
    if _is_a_phrase(candidate, words) and GIVEN.isdisjoint(candidate.lower().split(" ")):
        return 0
    if weight < 2 or (not candidate.isupper() and any(map(_is_made_up, words))):  # noqa: PLR2004 - two words
        return 0
    return len(candidate)


def _is_a_phrase(candidate: str, words: Sequence[str]) -> bool:
    """Say whether `candidate`, made of `words`, is two plurals ("Monti Sibillini") or joined nouns."""
    if len(words) > 2:  # noqa: PLR2004 - a name, a particle, a name
        return _JOINED.search(candidate) is not None
    return all(word[-1:] in "iI" and len(word) >= _SHORTEST_PLURAL for word in words)


def called_name(candidate: str) -> int:
    """Accept one word or more, each of them a known name or no ordinary word, particles not counted.

    It is for what stands behind words that call somebody. Five capitals are an abbreviation still.
    """
    words = [word for word in candidate.rstrip(".").split(" ") if word.lower() not in _PARTICLES]
    longest = max(map(len, words), default=0)
    if longest < (_LONGEST_ACRONYM + 1 if candidate.isupper() else _SHORTEST_CALLED):
        return 0
    if not candidate.isupper() and any(map(_is_made_up, words)):
        return 0
    return len(candidate) if all(map(_may_be_called, words)) else 0


def stands_called(before: str, candidate: str) -> bool:
    """Say whether `candidate` stands in no heading: in capitals, behind words in capitals."""
    return not candidate.isupper() or not before[-_HEADING:].isupper()


def _may_be_called(word: str) -> bool:
    lowered = word.lower()
    return lowered in SURNAMES or lowered in GIVEN or _is_unusual(lowered)


def stands_alone(before: str, _candidate: str) -> bool:
    """Say whether one word behind the text `before` may be somebody.

    It is none behind a noun with an article, which says of what kind it is ("the drug Xyz"), nor behind words
    for things and places.
    """
    *_, article, last = ["", "", *before.replace("'", " ").rsplit(maxsplit=2)]
    return last.rstrip(",") not in _BEFORE_ONE and article.lower() not in _ARTICLES


def _is_made_up(word: str) -> bool:
    """Say whether `word` is written as no name is."""
    return not (word[1:].islower() and "'" not in word) and _MADE_UP.match(word) is not None


def _is_told(word: str) -> bool:
    lowered = word.lower()
    is_word = lowered in _ALSO_WORDS or lowered in PLACES or len(lowered) < _SHORTEST_CALLED
    return not is_word and not _is_made_up(word) and any(map(_may_be_called, lowered.split("-")))


def entry(candidate: str) -> int:
    """Accept one word, or surname, comma, given name: each a known name or no ordinary word."""
    return len(candidate) if all(map(_is_told, candidate.split(", "))) else 0


def name_of_a_file(candidate: str) -> int:
    """Accept two words or three of the name of a file, none of which is an ordinary word."""
    return unusual_name(candidate.replace("_", " "))


def stands_freely(before: str, candidate: str) -> bool:
    """Say whether somebody may stand behind the text `before`: behind no article and no kind of thing.

    A name in capitals stands behind a word that is not: else it is a heading.
    """
    word = _LAST_WORD.match(before[::-1])
    if candidate.split(" ", 1)[0].isupper() and (word is None or word[1].isupper()):
        return False
    return word is None or word[1][::-1].lower() not in _BEFORE_THINGS


def is_told_by_itself(word: str) -> bool:
    """Say whether `word`, of a name and in small letters, is no common given name and no ordinary word."""
    return word not in GIVEN and word not in _ALSO_WORDS and _is_no_word(word)


def stands_for_a_person(before: str) -> bool:
    """Say whether a surname behind the text `before` is no thing's, as "via Luigi Rossini" is."""
    run = _RUN.match(before[::-1])
    for word in run[0][::-1].split()[::-1] if run else ():
        if word.lower() in _CALLED_AFTER:
            return False
        if not word[0].isupper() and word not in _PARTICLES:
            break
    return True


def stands_as_somebody(before: str, candidate: str) -> bool:
    """Say whether `candidate`, if it is called like a place, is not where one goes or comes from."""
    return not _is_like_a_place(candidate) or _TO_A_PLACE.search(before) is None


def stands_as_introduced(before: str, candidate: str) -> bool:
    """Say the same behind what introduces persons: `visita a` and `tra` do so with places as well.

    So behind those one of the words is a known name or no ordinary one.
    """
    if _is_like_a_place(candidate):
        return _VISITED.search(before) is None
    words = before.split()
    return (
        not words or words[-1].lower() not in _BETWEEN or any(map(_may_be_told, candidate.lower().split(" ")))
    )


def _may_be_told(lowered: str) -> bool:
    return lowered not in _PARTICLES and (lowered in _ALSO_WORDS or _may_be_called(lowered))


def _is_unusual(lowered: str) -> bool:
    """Say the same of a word that is in no register: what things are called is no name then."""
    return lowered not in _THINGS and _is_no_word(lowered[2:] if lowered[:2] == "l'" else lowered)


def _is_no_word(lowered: str) -> bool:
    """Say whether a word in small letters may be a name and is no ordinary one, abbreviation or initial."""
    return (
        lowered not in _COMMON
        and len(lowered) >= _SHORTEST
        and not lowered.endswith(_COMMON_ENDS.get(lowered[-1], ()))
        and not _VOWELS.isdisjoint(lowered)
    )
