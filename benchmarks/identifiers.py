# SPDX-License-Identifier: Apache-2.0
"""Measures the detectors: identifiers with check digits, and names, addresses and organisations.

Run: python benchmarks/identifiers.py [--count N] [--seed N] [--part A|B|C] [--json] [--show]

Half of the texts hold an identifier. The other half hold none: in half of these stands a number whose check
fails where an identifier would stand, in the others one whose check holds where none would. A positive counts
as found when one span of its kind holds exactly its letters and digits; any other span of a kind with check
digits, in any text, is a false one. Only the plain view is judged.

The numbers are made by checkdigits.py, which shares no code with the detectors; the texts around them stand
in identifiers.txt, in three parts: the detectors were tuned on A, and C was held out. For persons see
people.py. A figure speaks about these generators.
"""

import argparse
import json
import random
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import checkdigits
import people

from runner.perimeter.classify import Span, View, classify_text

_KINDS: Final = {"codice_fiscale_11": "codice_fiscale", "vat_eu": "vat"}
"""What the detectors call a kind, where it is not called as here; `national_..` are all `national_id`."""
CHECKED: Final = frozenset({"codice_fiscale", "partita_iva", "iban", "card", "vat", "national_id"})
_BURIED: Final = frozenset({"codice_fiscale", "iban"})
"""Kinds that are known by their letters alone: no context makes such a string anything else."""
_CHECK_AT: Final = {"iban": 3, "national_at": 3}
"""Where the check digit stands, if not at the end."""
_GROUPS: Final = {
    "codice_fiscale": ((3, 3, 5, 5), (6, 2, 1, 2, 4, 1)),
    "card": ((4, 4, 4, 4),),
    "amex": ((4, 6, 5),),
    "national_de": ((2, 3, 3, 3),),
    "national_fr": ((1, 2, 2, 2, 3, 3, 2),),
    "national_gb": ((3, 3, 4),),
    "national_at": ((4, 6),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One text; `value` is the identifier of the kind `kind` in it, empty when there is none."""

    kind: str
    text: str
    value: str


class Generator:
    """Makes texts out of one part of the templates; the same `seed` makes the same ones."""

    def __init__(self, seed: int, part: str = "C") -> None:
        self._dice = random.Random(seed)  # noqa: S311 - texts, not secrets
        self._part = part
        self._pieces = _read_pieces()

    def cases(self, count: int) -> Iterator[Case]:
        """Yield `count` texts, every kind as often: two with an identifier, then one of each other sort."""
        kinds = list(checkdigits.MAKERS)
        for index in range(count):
            kind = kinds[index // 4 % len(kinds)]
            match index % 4:
                case 0 | 1:
                    yield self._positive(kind)
                case 2:
                    yield self._broken(kind)
                case _:
                    yield self._elsewhere(kind)

    def _positive(self, kind: str) -> Case:
        value = checkdigits.MAKERS[kind](self._dice)
        return Case(kind=kind, value=value, text=self._in_place(kind, self._written(kind, value)))

    def _broken(self, kind: str) -> Case:
        """Return a text with a number whose check digit is wrong where an identifier would stand."""
        value = list(checkdigits.MAKERS[kind](self._dice))
        place = _CHECK_AT.get(kind, len(value) - 1)
        signs = string.digits if value[place].isdigit() else string.ascii_uppercase
        value[place] = self._dice.choice(signs.replace(value[place], ""))
        return Case(kind=kind, value="", text=self._in_place(kind, self._written(kind, "".join(value))))

    def _elsewhere(self, kind: str) -> Case:
        """Return a text with a number that holds its check where no identifier would stand."""
        value = checkdigits.MAKERS[kind](self._dice)
        if kind not in _BURIED:
            return Case(kind=kind, value="", text=self._piece("other").replace("{v}", value))
        if kind == "codice_fiscale":
            value = value[:3] + value[3:9].lower() + value[9:]
        return Case(kind=kind, value="", text=self._piece("buried").replace("{v}", value))

    def _in_place(self, kind: str, written: str) -> str:
        if f"bare.{kind}.{self._part}" in self._pieces and self._dice.random() < 0.3:
            return self._piece(f"bare.{kind}").replace("{v}", written)
        frame, label = self._piece("frame"), self._piece(f"label.{kind}")
        return frame.replace("{label}", label).replace("{v}", written)

    def _written(self, kind: str, value: str) -> str:
        """Return `value` as people write it: together, in groups, in small letters, over two lines."""
        dice = self._dice
        if kind == "iban":
            return self._written_iban(value)
        if kind in {"partita_iva", "vat_eu"}:
            return f"IT{value}" if kind == "partita_iva" and dice.random() < 0.2 else value
        if kind == "codice_fiscale" and dice.random() < 0.15:
            return dice.choice((value.lower(), f"{value[:8]}\n{value[8:]}", f"{value[:11]}\n  {value[11:]}"))
        shapes = _GROUPS.get("amex" if kind == "card" and len(value) == 15 else kind, ())
        if shapes and dice.random() < 0.4:
            return _grouped(value, dice.choice(shapes), dice.choice(" " if kind != "card" else " -"))
        return _punctuated(kind, value) if dice.random() < 0.7 else value

    def _written_iban(self, value: str) -> str:
        dice = self._dice
        fours = [4] * (len(value) // 4 + 1)
        ways = (
            value,
            value.lower(),
            _grouped(value, fours, " "),
            _grouped(value, fours, "\u00a0"),
            _grouped(value, fours, "-"),
            _grouped(value, fours, "."),
            _grouped(value, (2, 2, len(value) - 16, 12), " "),
            _grouped(value, (4, 1, 5, 5, len(value) - 15), " "),
            f"{value[:12]}\n{value[12:]}",
        )
        return dice.choice(ways)

    def _piece(self, section: str) -> str:
        return self._dice.choice(self._pieces[f"{section}.{self._part}"])


def _grouped(value: str, sizes: Sequence[int], separator: str) -> str:
    groups, start = [], 0
    for size in sizes:
        groups.append(value[start : start + size])
        start += size
    return separator.join(filter(None, [*groups, value[start:]]))


def _punctuated(kind: str, value: str) -> str:
    """Return `value` with the signs that its state's forms print in it, if there are any."""
    match kind:
        case "national_ch":
            return _grouped(value, (3, 4, 4, 2), ".")
        case "national_cz":
            return f"{value[:6]}/{value[6:]}"
        case "national_be":
            return f"{value[:2]}.{value[2:4]}.{value[4:6]}-{value[6:9]}.{value[9:]}"
        case _:
            return value


def _read_pieces() -> dict[str, list[str]]:
    text = (Path(__file__).parent / "identifiers.txt").read_text(encoding="utf-8")
    sections = re.split(r"^\[([\w.]+)\]\n", text, flags=re.MULTILINE)[1:]
    return {
        name: [line.replace("\\n", "\n").replace("\\t", "\t") for line in body.splitlines() if line]
        for name, body in zip(sections[::2], sections[1::2], strict=True)
    }


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of the texts of one kind."""

    positives: int = 0
    found: int = 0
    negatives: int = 0
    false: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """The share of identifiers that were found."""
        return self.found / max(1, self.positives)

    @property
    def precision(self) -> float:
        """The share of right ones among the findings."""
        return self.found / max(1, self.found + self.false)


def measure(cases: Iterator[Case]) -> dict[str, Tally]:
    """Return the tally of each kind, and under `all` of all of them."""
    tallies: dict[str, Tally] = {"all": Tally()}
    for case in cases:
        spans = [
            span for span in classify_text(case.text).spans if span.kind in CHECKED and span.view is View.TEXT
        ]
        right = [span for span in spans if case.value and _is_of(case, span)]
        for tally in (tallies["all"], tallies.setdefault(case.kind, Tally())):
            tally.positives += bool(case.value)
            tally.negatives += not case.value
            tally.found += bool(right)
            tally.false += sum(span not in right for span in spans)
            if bool(right) != bool(case.value) or len(spans) > len(right):
                tally.wrong.append(case.text)
    return tallies


def _is_of(case: Case, span: Span) -> bool:
    """Say whether `span` has the kind of `case` and holds its value, all of it and nothing else."""
    kind = "national_id" if case.kind.startswith("national_") else _KINDS.get(case.kind, case.kind)
    return span.kind == kind and _plain(case.text[span.start : span.end]).removeprefix("IT") == _plain(
        case.value
    ).removeprefix("IT")


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text)).upper()


def _table(tallies: dict[str, Tally]) -> list[dict[str, object]]:
    """Return the rows of the first table."""
    return [
        {
            "kind": kind,
            "positives": tally.positives,
            "recall": round(tally.recall, 4),
            "negatives": tally.negatives,
            "false": tally.false,
            "precision": round(tally.precision, 4),
        }
        for kind, tally in tallies.items()
    ]


def _people(seed: int, part: str, count: int) -> list[dict[str, object]]:
    """Return the rows of the second table: of `part`, and of free prose, `D`, with rare and common names."""
    rows: list[dict[str, object]] = []
    for documents_of, given in ((part, "given"), ("D", "given"), ("D", "common")):
        documents = list(people.Generator(seed, documents_of, given=given).documents(count))
        for register in (False, True):
            rows += [
                {
                    "part": documents_of,
                    "names": "common" if given == "common" else "unknown",
                    "kind": kind,
                    "register": register,
                    "documents": tally.documents,
                    "recall": round(tally.recall, 4),
                }
                for kind, tally in people.measure(documents, register=register).items()
            ]
    return rows


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="What the detectors find, and what they take for something.")
    parser.add_argument("--count", type=int, default=24_000, help="texts with and without identifiers")
    parser.add_argument("--documents", type=int, default=1500, help="documents with persons")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", choices=tuple("ABC"), default="C", help="which templates; C was held out")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the texts that went wrong")
    options = parser.parse_args()
    tallies = measure(Generator(options.seed, options.part).cases(options.count))
    identifiers, persons = _table(tallies), _people(options.seed, options.part, options.documents)
    if options.show:
        for kind, tally in tallies.items():
            print(*(f"{kind}: {text!r}" for text in tally.wrong[:20] if kind != "all"), sep="\n")
    if options.json:
        found = {"identifiers": identifiers, "people": persons}
        print(json.dumps({"part": options.part, "seed": options.seed} | found, indent=1))
        return
    print(f"identifiers, templates {options.part}, seed {options.seed}")
    for row in identifiers:
        print(
            f"  {row['kind']:18} recall {row['recall']:.4f} of {row['positives']:5}"
            f"   precision {row['precision']:.4f} with {row['negatives']:5} hard negatives"
        )
    for row in persons:
        known = "with" if row["register"] else "without"
        print(
            f"  documents {row['part']}, {row['names']} names, {known} register:"
            f" {row['kind']:12} recall {row['recall']:.4f} of {row['documents']}"
        )


if __name__ == "__main__":
    main()
