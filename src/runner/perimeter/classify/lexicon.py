# SPDX-License-Identifier: Apache-2.0
"""Sensitive subjects: health, judicial data, secrecy. A subject is C3 only when it is about somebody.

Owns the reading of the lexicon files, their rules, and the joining of a subject with a person. Leaves
deciding about documents that were declared secret to their labels.
Carries the promise of the design that a topic is not a secret: a question about a drug, a statute
or professional secrecy passes, and stops passing next to the person it concerns.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify.contacts import PERSON_KINDS
from runner.perimeter.classify.model import Role, Rule, Span
from runner.perimeter.classify.settle import is_near

_PERSON: Final = "person"
_META: Final = frozenset(r".+*?()|[]{}^$\-")


def parse_lexicon(text: str) -> dict[str, tuple[str, ...]]:
    """Return the terms of each section of a lexicon file.

    Raises `ValueError` naming the line when a term stands before any section or is not plain
    lower-case ASCII.
    """
    sections: dict[str, list[str]] = {}
    terms: list[str] | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            terms = sections.setdefault(line[1:-1], [])
        elif terms is None:
            raise ValueError(f"lexicon line {number}: a term before any [section]")
        elif not line.isascii() or line != line.lower():
            raise ValueError(f"lexicon line {number}: write the term in lower case without accents")
        else:
            terms.append(line)
    return {section: tuple(found) for section, found in sections.items()}


def lexicon_rules(sections: dict[str, tuple[str, ...]]) -> tuple[Rule, ...]:
    """Return one rule for each section: its terms as one automaton, whole words, any case."""
    return tuple(
        Rule(
            name=f"lexicon-{section}",
            kind=section,
            data_class=DataClass.C0 if section == _PERSON else DataClass.C3,
            pattern=rf"(?i)(?:\b|_)(?:{'|'.join(map(_term, terms))})",
            role=Role.MARKER if section == _PERSON else Role.TOPIC,
            distinctive=True,
        )
        for section, terms in sections.items()
    )


def _term(term: str) -> str:
    words = r"\s{1,3}".join(map(_word, term.split()))
    return words if term.endswith((":", ",", "*")) else words + r"\b"


def _word(word: str) -> str:
    stem = word.removesuffix("*")
    return _literal(stem) if stem == word else _literal(stem) + r"[a-z]{0,16}"


def _literal(word: str) -> str:
    return "".join("\\" + character if character in _META else character for character in word)


def subjects_of_persons(topics: Sequence[Span], persons: Sequence[int]) -> list[Span]:
    """Return those of `topics` that have a person near.

    `persons` are the sorted start offsets of everything that points at one person.
    """
    return [topic for topic in topics if is_near(persons, topic.start)]


def points_at_person(span: Span) -> bool:
    """Say whether `span`, a finding, stands for one person; an address alone does not."""
    return span.kind in PERSON_KINDS and span.data_class >= DataClass.C2


def _shipped() -> dict[str, tuple[str, ...]]:
    """Return the terms of both languages, section by section: one automaton serves a text of either."""
    shipped: dict[str, tuple[str, ...]] = {}
    for file in ("lexicon_it.txt", "lexicon_en.txt"):
        text = files("runner.perimeter.classify").joinpath(file).read_text(encoding="utf-8")
        for section, terms in parse_lexicon(text).items():
            shipped[section] = tuple(dict.fromkeys((*shipped.get(section, ()), *terms)))
    return shipped


LEXICON: Final = lexicon_rules(_shipped())
"""The rules of the shipped lexicons, read once."""
