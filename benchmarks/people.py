# SPDX-License-Identifier: Apache-2.0
"""Documents with persons, addresses and organisations in them, and what the detectors find of those.

Owns the generator and the tallies of the second table of identifiers.py, which prints it. The names and
streets stand in people.txt and in no lexicon of the detectors. Nothing else personal is in the documents: no
number, no mail address.

A document counts as found for a kind when at least one mention of that kind in it is covered by a span. With
the register, the names in a document are those of clients.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed
from runner.perimeter.classify import Classifier, Span, compile_registers

KINDS: Final[dict[str, frozenset[str]]] = {
    "person": frozenset({"person", "client"}),
    "address": frozenset({"address", "client"}),
    "organisation": frozenset({"organisation", "client"}),
}
"""For each kind of mention the kinds of spans that find it."""
_SLOT: Final = re.compile(r"\{(\w)(?:\.(\w))?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A half-open range of a document, and what stands there."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text, what stands in it, and the full names that a client register would hold."""

    text: str
    mentions: tuple[Mention, ...]
    clients: tuple[str, ...]


class Generator:
    """Makes documents out of one part of the templates; the same `seed` makes the same ones.

    `given` is the section of the given names: `given`, unknown to the detectors, or `common`.
    """

    def __init__(self, seed: int, part: str = "D", *, given: str = "given") -> None:
        self._dice = random.Random(seed)  # noqa: S311 - texts, not secrets
        self._pieces = read_pieces()
        self._templates = self._pieces[part]
        self._given = given

    def documents(self, count: int) -> Iterator[Document]:
        """Yield `count` documents, every template as often."""
        for index in range(count):
            yield self._document(self._templates[index % len(self._templates)])

    def _document(self, template: str) -> Document:
        names = {slot: (self._pick(self._given), self._pick("surname")) for slot in "pqr"}
        values = {slot: f"{given} {surname}" for slot, (given, surname) in names.items()}
        values |= {"a": self._address(), "b": self._address(), "o": self._organisation()}
        values |= {"d": self._date(), "t": self._pick("town").split()[1]}
        mentions: list[Mention] = []
        text, position = "", 0
        for match in _SLOT.finditer(template):
            slot, form = match[1], match[2] or ""
            text += template[position : match.start()]
            value = self._formed(*names[slot], form) if slot in names else values[slot]
            kind = (
                "person" if slot in names else {"a": "address", "b": "address", "o": "organisation"}.get(slot)
            )
            if kind:
                mentions.append(Mention(start=len(text), end=len(text) + len(value), kind=kind))
            text += value
            position = match.end()
        used = {match[1] for match in _SLOT.finditer(template)} & set("pqrabo")
        return Document(
            text=text + template[position:],
            mentions=tuple(mentions),
            clients=tuple(values[slot] for slot in sorted(used)),
        )

    @staticmethod
    def _formed(given: str, surname: str, form: str) -> str:
        match form:
            case "s":
                return surname
            case "g":
                return given
            case "r":
                return f"{surname} {given}"
            case "u":
                return f"{given} {surname}".upper()
            case "c":
                return f"{surname.upper()} {given}"
            case _:
                return f"{given} {surname}"

    def _address(self) -> str:
        dice = self._dice
        if dice.random() < 0.25:
            end = dice.choice(("", f", {self._pick('town_en')}"))
            return f"{dice.randint(1, 240)} {self._pick('street_en')}{end}"
        number = dice.choice(
            (f" {dice.randint(1, 300)}", f", {dice.randint(1, 99)}", f" n. {dice.randint(1, 99)}")
        )
        number += dice.choice(("", "", "/A", "/12", " bis"))
        town = dice.choice(("", f", {self._pick('town')}", f" - {self._pick('town')}"))
        return f"{self._pick('street')}{number}{town}"

    def _organisation(self) -> str:
        if self._dice.random() < 0.2:
            return f"{self._pick('before')} {self._pick('firm')}"
        return f"{self._pick('firm')} {self._pick('form')}"

    def _date(self) -> str:
        return (
            f"{self._dice.randint(1, 28):02}/{self._dice.randint(1, 12):02}/{self._dice.randint(1950, 2025)}"
        )

    def _pick(self, section: str) -> str:
        return self._dice.choice(self._pieces[section])


def read_pieces() -> dict[str, list[str]]:
    """Return the sections of people.txt: documents by paragraph, words by line."""
    text = (Path(__file__).parent / "people.txt").read_text(encoding="utf-8")
    sections = re.split(r"^\[(\w+)\]\n", text, flags=re.MULTILINE)[1:]
    return {
        name: [piece.replace("\\n", "\n") for piece in body.strip().splitlines() if piece]
        for name, body in zip(sections[::2], sections[1::2], strict=True)
    }


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of one kind: documents with it and found, mentions and found, and texts that were missed."""

    documents: int = 0
    found: int = 0
    mentions: int = 0
    covered: int = 0
    missed: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """The share of documents with the kind in which it was found."""
        return self.found / max(1, self.documents)


def measure(documents: Sequence[Document], *, register: bool) -> dict[str, Tally]:
    """Return the tally of each kind, and under `personal` how many documents with a person are C2 or more."""
    tallies = {kind: Tally() for kind in (*KINDS, "personal")}
    for document in documents:
        found = (_with_register(document) if register else _BARE).classify(document.text)
        for kind, spans in KINDS.items():
            places = [mention for mention in document.mentions if mention.kind == kind]
            covered = sum(_is_covered(mention, found.spans, spans) for mention in places)
            _count(tallies[kind], document, bool(places), covered > 0)
            tallies[kind].mentions += len(places)
            tallies[kind].covered += covered
        person = any(mention.kind == "person" for mention in document.mentions)
        _count(tallies["personal"], document, person, found.data_class >= DataClass.C2)
    return tallies


_BARE: Final = Classifier()


def _with_register(document: Document) -> Classifier:
    listed = [
        Listed(file="clients", line=line, names=(name,)) for line, name in enumerate(document.clients, 1)
    ]
    return Classifier(registers=compile_registers(clients=listed, own=(), public=(), key=b"benchmark-key-16"))


def _count(tally: Tally, document: Document, applies: bool, found: bool) -> None:  # noqa: FBT001 - two facts
    tally.documents += applies
    tally.found += applies and found
    if applies and not found:
        tally.missed.append(document.text)


def _is_covered(mention: Mention, spans: Sequence[Span], kinds: frozenset[str]) -> bool:
    """Say whether a span of one of `kinds` takes in at least half of `mention`."""
    return any(
        span.kind in kinds
        and 2 * (min(span.end, mention.end) - max(span.start, mention.start)) >= mention.end - mention.start
        for span in spans
    )
