# SPDX-License-Identifier: Apache-2.0
"""Documents with persons, addresses and organisations in them, and what the detectors find of those.

Run: python benchmarks/people.py [--part E|F|G|H] [--half 1|2] [--count N] [--seed N] [--show]

Owns the generator and the tallies of the second table of identifiers.py, which prints it for the parts of
people.txt. Run by itself it measures those of prose.txt, practice.txt and office.txt, with as many documents
that hold nobody. The names and streets stand in these four files and in no lexicon of the detectors; parts G
and H have lists of their own. Nothing else personal is in the documents: no number, no mail address.

A document counts as found for a kind when at least one mention of that kind in it is covered by a span. With
the register, the names in a document are those of clients.
"""

import argparse
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
_FILES: Final = ("people.txt", "prose.txt", "practice.txt", "office.txt")
_SLOT: Final = re.compile(r"\{(\w)(?:\.(\w))?\}")
_HALVES: Final = {"": slice(None), "1": slice(0, None, 2), "2": slice(1, None, 2)}
_PERSONS: Final = "pqr"
_PLACES: Final = {"a": "address", "b": "address", "h": "address", "e": "address", "o": "organisation"}
_MENTIONED: Final = dict.fromkeys(_PERSONS, "person") | _PLACES | {"m": "organisation"}
"""The slots that name somebody or something, and what."""


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

    `given` and `surname` are sections of names: those of `common` are known to the detectors, others are not.
    `templates` says which of the part.
    """

    def __init__(
        self,
        seed: int,
        part: str = "D",
        *,
        given: str = "given",
        surname: str = "surname",
        templates: slice = slice(None),
    ) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - texts, not secrets
        self._pieces = read_pieces()
        self._templates = self._pieces[part][templates]
        self._lists = f"_{part[0]}"
        self._given = given
        self._surname = surname

    def documents(self, count: int) -> Iterator[Document]:
        """Yield `count` documents, every template as often."""
        for index in range(count):
            yield self._document(self._templates[index % len(self._templates)])

    def _document(self, template: str) -> Document:
        used = {match[1] for match in _SLOT.finditer(template)}
        names, values = self._values(used)
        mentions: list[Mention] = []
        text, position = "", 0
        for match in _SLOT.finditer(template):
            slot, form = match[1], match[2] or ""
            text += template[position : match.start()]
            value = self._formed(*names[slot], form) if slot in names else values[slot]
            if slot in _MENTIONED:
                mentions.append(Mention(start=len(text), end=len(text) + len(value), kind=_MENTIONED[slot]))
            text += value
            position = match.end()
        return Document(
            text=text + template[position:],
            mentions=tuple(mentions),
            clients=tuple(values[slot] for slot in sorted(used & _MENTIONED.keys())),
        )

    def _values(self, used: set[str]) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
        """Return given name and surname of the persons, and what stands in every slot without a form."""
        names = {slot: (self._pick(self._given), self._pick(self._surname)) for slot in _PERSONS}
        values = {"a": self._address(), "b": self._address(), "o": self._organisation()}
        values |= {"d": self._date(), "t": self._pick("town").split()[1]}
        if "w" in used:
            names["w"] = (self._pick(self._given), self._pick(self._surname))
        only_in_g = {
            "h": lambda: f"{self._pick('street')}{self._number()}",
            "e": lambda: f"{self._dice.randint(1, 240)} {self._pick('street_en')}",
            "v": lambda: self._pick("town"),
            "y": lambda: self._pick("town_en"),
            "m": self._organisation,
        }
        values |= {slot: make() for slot, make in only_in_g.items() if slot in used}
        return names, values | {slot: f"{given} {surname}" for slot, (given, surname) in names.items()}

    @staticmethod
    def _formed(given: str, surname: str, form: str) -> str:
        full = f"{given} {surname}"
        forms = {
            "s": surname,
            "g": given,
            "r": f"{surname} {given}",
            "u": full.upper(),
            "c": f"{surname.upper()} {given}",
            "i": f"{given[0]}. {surname}",
            "x": f"{surname} {given}".upper(),
            "k": surname.upper(),
            "l": full.lower(),
            "f": f"{surname}_{given}".replace(" ", "_"),
            "j": f"{surname}, {given}",
            "m": f"{given} {surname[0]}. {surname}",
        }
        return forms.get(form, full)

    def _address(self) -> str:
        dice = self._dice
        if dice.random() < 0.25:
            end = dice.choice(("", f", {self._pick('town_en')}"))
            return f"{dice.randint(1, 240)} {self._pick('street_en')}{end}"
        number = self._number()
        town = dice.choice(("", f", {self._pick('town')}", f" - {self._pick('town')}"))
        return f"{self._pick('street')}{number}{town}"

    def _number(self) -> str:
        dice = self._dice
        number = dice.choice(
            (f" {dice.randint(1, 300)}", f", {dice.randint(1, 99)}", f" n. {dice.randint(1, 99)}")
        )
        return number + dice.choice(("", "", "/A", "/12", " bis"))

    def _organisation(self) -> str:
        if f"organisation{self._lists}" in self._pieces:
            return self._pick("organisation")
        if self._dice.random() < 0.2:
            return f"{self._pick('before')} {self._pick('firm')}"
        return f"{self._pick('firm')} {self._pick('form')}"

    def _date(self) -> str:
        return (
            f"{self._dice.randint(1, 28):02}/{self._dice.randint(1, 12):02}/{self._dice.randint(1950, 2025)}"
        )

    def _pick(self, section: str) -> str:
        return self._dice.choice(self._pieces.get(f"{section}{self._lists}") or self._pieces[section])


def read_pieces() -> dict[str, list[str]]:
    """Return the sections of the files: a document, or a name, a line."""
    texts = ((Path(__file__).parent / name).read_text(encoding="utf-8") for name in _FILES)
    sections = [part for text in texts for part in re.split(r"^\[(\w+)\]\n", text, flags=re.MULTILINE)[1:]]
    unescaped = {"\\n": "\n", "\\t": "\t"}
    return {
        name: [
            re.sub(r"\\[nt]", lambda found: unescaped[found[0]], line) for line in body.splitlines() if line
        ]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Of documents that hold no client: how many there are, and those in which somebody was seen."""

    documents: int
    accused: tuple[str, ...]


def measure_nobody(documents: Sequence[Document]) -> Precision:
    """Return what the detectors see in `documents` that hold nobody."""
    accused = [
        document.text
        for document in documents
        if any(span.kind == "person" for span in _BARE.classify(document.text).spans)
    ]
    return Precision(documents=len(documents), accused=tuple(accused))


def main() -> None:
    """Print what is found in one part, and what is seen in its documents that hold nobody."""
    parser = argparse.ArgumentParser(description="Persons in whole letters, acts, reports, mails and prose.")
    parser.add_argument("--count", type=int, default=1500, help="documents with persons, and as many without")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", choices=tuple("EFGH"), default="F", help="which templates; F was held out")
    parser.add_argument("--half", choices=tuple(_HALVES), default="", help="every second template only")
    parser.add_argument("--show", action="store_true", help="print the documents that went wrong")
    options = parser.parse_args()
    half = _HALVES[options.half]
    lists = options.part if options.part in "GH" else "more"
    for given in (f"given_{lists}", "common"):
        generator = Generator(
            options.seed, options.part, given=given, surname=f"surname_{lists}", templates=half
        )
        documents = list(generator.documents(options.count))
        for register in (False, True):
            known = "with" if register else "without"
            for kind, tally in measure(documents, register=register).items():
                print(
                    f"{options.part}, names {given}, {known} register: {kind:12}"
                    f" recall {tally.recall:.4f} of {tally.documents},"
                    f" mentions {tally.covered / max(1, tally.mentions):.4f} of {tally.mentions}"
                )
                if options.show and kind == "person" and not register:
                    print(*map(repr, tally.missed), sep="\n")
    nobody = Generator(options.seed, f"{options.part}_none", templates=half)
    none = measure_nobody(list(nobody.documents(options.count)))
    share = len(none.accused) / none.documents
    print(f"{options.part}, nobody: a person seen in {share:.4f} of {none.documents}")
    if options.show:
        print(*map(repr, dict.fromkeys(none.accused)), sep="\n")


if __name__ == "__main__":
    main()
