# SPDX-License-Identifier: Apache-2.0
"""Ordinary texts of a practice: what should pass, and is a false denial if it does not.

Owns a generator of letters with letterheads, invoices, notices, clauses, citations, questions and technical
texts. *Should pass* means: a text holds no personal data but the practice's own (`OWN`) and that of public
offices and officers acting as such (`PUBLIC`); no secret; and at most a sensitive *topic*, said of nobody.
Names of organisations, addresses without a person, citations, dates, amounts and numbers of documents are in
them on purpose. The pieces lie beside this file: a figure speaks about this generator.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

_SHARES: Final = {
    "letter": 28,
    "invoice": 18,
    "notice": 14,
    "question": 22,
    "clause": 7,
    "citation": 6,
    "technical": 5,
}

_ITALIAN: Final = 0.7

OWN: Final = (
    "Studio Legale Ferraris e Associati",
    "Ferraris & Partners",
    "Avv. Ottavia Ferraris",
    "Ottavia Ferraris",
    "Dott.ssa Ilaria Boero",
    "Via Assarotti 19/7, 16122 Genova",
    "Via Assarotti 19/7",
    "010 8391177",
    "010 8391178",
    "segreteria@studioferraris.example",
    "ottavia.ferraris@pec.studioferraris.example",
    "IT60 X054 2811 1010 0000 0123 456",
    "07643520567",
)
PUBLIC: Final = (
    "@giustizia.example",
    "@comune.example",
    "Tribunale di Genova",
    "Corte d'appello di Genova",
    "Giudice di pace di Savona",
    "Renato Viani",
    "Clara Demichelis",
    "010 5692111",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Benign:
    """An ordinary text and what kind it is."""

    kind: str
    text: str


VAT: Final = ("01234560157", "02438750586", "10209790152", "00743110157")
"""Numbers of organisations with a right check digit."""


class Generator:
    """Makes texts; the same `seed` makes the same ones."""

    def __init__(self, seed: int | str) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - texts, not secrets
        more = read_pieces("more")
        self._pieces = {
            language: {name: pieces + more.get(name, []) for name, pieces in read_pieces(language).items()}
            for language in ("it", "en")
        }
        self._words = read_pieces("words", by=r"\n")

    def texts(self, count: int) -> Iterator[Benign]:
        """Yield `count` texts that should pass."""
        kinds, weights = list(_SHARES), list(_SHARES.values())
        for kind in self._dice.choices(kinds, weights, k=count):
            yield self.text(kind)

    def text(self, kind: str) -> Benign:
        """Return one text of the kind `kind`."""
        match kind:
            case "letter":
                made = self._letter()
            case "invoice":
                made = self._invoice()
            case "notice":
                head = self._word(self._dice.choice(("official", "letterhead")))
                made = f"{head}\n\n{self._piece('notice')}\n"
            case "supplier":
                made = f"{self._word('supplier')}\n\n{self._piece('paragraph')}\n"
            case _:
                made = self._piece(kind)
        return Benign(kind=kind, text=made)

    def _letter(self) -> str:
        language = self._language()
        body = [self._piece("paragraph", language) for _ in range(self._dice.randint(2, 5))]
        parts = (
            self._word("letterhead"),
            f"Genova, {self._date()}",
            self._piece("greeting", language),
            self._piece("subject", language),
            *body,
            self._piece("closing", language),
            "Avv. Ottavia Ferraris",
        )
        return "\n\n".join(parts) + "\n"

    def _invoice(self) -> str:
        hours = [self._dice.randint(1, 20) for _ in range(self._dice.randint(1, 4))]
        total = sum(hours) * 180
        lines = [
            f"{number}. assistenza, ore {each} x 180,00   {each * 180:,.2f}"
            for number, each in enumerate(hours, 1)
        ]
        return "\n".join(
            (
                self._word("letterhead"),
                "",
                f"FATTURA N. {self._dice.randint(1, 400)}/2026 del {self._date()}",
                f"Cliente: {self._fill('{company}')}, {self._fill('{address}')}, codice destinatario M5UXCR1",
                *lines,
                f"Imponibile {total:,.2f}  CPA 4% {total * 0.04:,.2f}  IVA 22% {total * 1.04 * 0.22:,.2f}",
                f"Totale {total * 1.04 * 1.22:,.2f} EUR",
                self._word("bank"),
                "Imposta di bollo assolta in modo virtuale ai sensi del decreto ministeriale 17 giugno 2014.",
                "",
            )
        )

    def _language(self) -> str:
        return "it" if self._dice.random() < _ITALIAN else "en"

    def _piece(self, kind: str, language: str = "") -> str:
        return self._fill(self._dice.choice(self._pieces[language or self._language()][kind]))

    def _fill(self, piece: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda slot: self._value(slot[1]), piece)

    def _word(self, name: str) -> str:
        return self._dice.choice(self._words[name])

    def _value(self, slot: str) -> str:
        dice = self._dice
        if slot in self._words:
            return self._word(slot)
        euros = f"{dice.randint(1, 2_000_000) + dice.random():,.2f}"
        italian = euros.translate(str.maketrans(",.", ".,"))
        made = {
            "number": str(dice.randint(10, 999)),
            "days": str(dice.choice((5, 8, 10, 15, 20, 30, 60, 90))),
            "date": self._date(),
            "iso": f"20{dice.randint(19, 26)}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}",
            "amount": dice.choice((f"Euro {italian}", f"€ {italian}", f"EUR {euros}")),
            "plain": italian,
            "lot": f"{dice.choice('ABKLT')}{dice.randint(10**6, 10**8)}",
            "lotnumber": f"{dice.randint(10**10, 10**11 - 1)}",
            "vat": dice.choice(VAT),
            "cig": "".join(dice.choice("0123456789ABCDEF") for _ in range(10)),
            "cup": f"J{dice.randint(10, 99)}C{dice.randint(10**10, 10**11 - 1)}",
            "hex": f"{dice.getrandbits(256):064x}",
            "hexshort": f"{dice.getrandbits(40):010x}",
            "uuid": re.sub(r"^(.{8})(.{4})(.{4})(.{4})", r"\1-\2-\3-\4-", f"{dice.getrandbits(128):032x}"),
            "cassation": f"Cass. {self._word('section')}, {self._date()}, n. {dice.randint(1000, 35000)}",
            "constitutional": f"Corte cost., {self._date()}, n. {dice.randint(1, 300)}",
        }
        return made[slot]

    def _date(self) -> str:
        day, month, year = (
            self._dice.randint(1, 28),
            self._dice.randint(1, 12),
            self._dice.randint(2004, 2026),
        )
        return self._dice.choice(
            (
                f"{day} {self._words['month'][month - 1]} {year}",
                f"{day:02}/{month:02}/{year}",
                f"{day}.{month}.{year}",
            )
        )


def read_pieces(name: str, by: str = r"\n\n+") -> dict[str, list[str]]:
    """Return the pieces of the file `name` by section; the pattern `by` stands between two of them."""
    text = files("runner.adapters.leakbench").joinpath(f"benign_{name}.txt").read_text(encoding="utf-8")
    sections = re.split(r"^\[(\w+)\]\n", text, flags=re.MULTILINE)[1:]
    return {
        section: [_lines(piece) for piece in re.split(by, body.strip())]
        for section, body in zip(sections[::2], sections[1::2], strict=True)
    }


def _lines(piece: str) -> str:
    return piece if piece.startswith("| ") else piece.replace("|", "\n")
