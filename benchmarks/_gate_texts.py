# SPDX-License-Identifier: Apache-2.0
"""Texts for benchmarks/gate.py: letters with identifiers whose places are known, and letters without any.

The right answer is known by construction: an identifier is made here, with a check digit of checkdigits.py,
and noted where it is put. Nothing of the classifier is used. What stands between is ordinary prose, of the
leak bench. Every person in here is drawn from lists of first names and surnames.
"""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from checkdigits import fiscal_letter, iban_of, luhn

from runner.adapters.leakbench.benign import Generator

_NAMES: Final = Path(__file__).with_name("gate_names.txt").read_text(encoding="utf-8")
FIRST, LAST = (part.split() for part in _NAMES.split("\n\n")[1:])

CLIENTS: Final = 2000
"""Names in the client register of the practice that gets these letters."""
_CLIENT_SHARE: Final = 0.3
"""Of the persons in the letters, the share that stands in it."""
_BETWEEN: Final = 560
"""Characters of prose between two sentences with identifiers: some three identifiers a KB."""

_HOSTS: Final = ("example.org", "posta.example.com", "studio-verdi.example")


@dataclass(frozen=True, slots=True)
class Truth:
    """An identifier that was put into a text: code points `start` to `end`, and what it is."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Letter:
    """A text in `language` (`it` or `en`) and all the identifiers in it."""

    language: str
    text: str
    truths: tuple[Truth, ...]


def _with(check: Callable[[str], str], first: str) -> str:
    """Return `first` with its check character behind it."""
    return first + check(first)


class Writer:
    """Writes letters; the same `seed` writes the same ones. `clients` are in the register of the practice."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - texts, not secrets
        self._prose = Generator(seed)
        names = [f"{first} {last}" for first in FIRST for last in LAST]
        self._dice.shuffle(names)
        self.clients, self._strangers = names[:CLIENTS], names[CLIENTS:]

    def letters(self, count: int) -> Iterator[Letter]:
        """Yield `count` letters with about three identifiers a KB, seven of ten in Italian."""
        for _ in range(count):
            yield self._letter("it" if self._dice.random() < 0.7 else "en")

    def plain(self, count: int) -> Iterator[str]:
        """Yield `count` texts without any identifier, name or title: clauses, questions and citations."""
        for _ in range(count):
            yield self._paragraphs(3 * _BETWEEN)

    def _paragraphs(self, size: int) -> str:
        """Return paragraphs of at least `size` characters in all, without identifiers."""
        text = ""
        while len(text) < size:
            text += self._prose.text(self._dice.choice(("clause", "question", "citation"))).text + "\n\n"
        return text

    def _letter(self, language: str) -> Letter:
        text, truths = "", []
        for _ in range(self._dice.randint(2, 5)):
            text += self._paragraphs(_BETWEEN)
            known = self._dice.random() < _CLIENT_SHARE
            person = self._dice.choice(self.clients if known else self._strangers)
            for part in self._dice.choice(_TEMPLATES[language]).split("|"):
                value = self._made(part, person) if part in _KINDS else part
                if part in _KINDS:
                    kind = "client" if part == "person" and known else _KINDS[part]
                    truths.append(Truth(len(text), len(text) + len(value), kind))
                text += value
            text += "\n\n"
        return Letter(language, text, tuple(truths))

    def _made(self, part: str, person: str) -> str:
        """Return what stands in the slot `part` of a sentence about `person`."""
        dice = self._dice
        four, six = dice.randint(1000, 9999), dice.randint(100_000, 999_999)
        first, last = person.lower().split()
        made = {
            "person": person,
            "email": f"{first}{dice.choice(('.', '_', ''))}{last}@{dice.choice(_HOSTS)}",
            "fiscal": _with(fiscal_letter, self._fiscal_body(person)),
            "vat": _with(luhn, f"{dice.randint(10**6, 10**7 - 1)}{dice.randint(1, 100):03}"),
            "iban": self._grouped(self._iban()),
            "card": self._grouped(_with(luhn, f"4{dice.randint(10**13, 10**14 - 1)}")),
            "mobile": f"3{dice.randint(20, 99)} {six}{dice.randint(0, 9)}",
            "landline": f"0{dice.choice((10, 11, 2, 6, 81))} {six}{dice.randint(0, 9)}",
            "abroad": f"+44 20 7946 {four}",
            "prefixed": f"+39 3{dice.randint(20, 99)} {dice.randint(100, 999)} {four}",
            "passport": f"YA{six}{dice.randint(0, 9)}",
            "plate": f"{dice.choice('EFG')}A{dice.randint(100, 999)}{dice.choice('HPW')}T",
            "secret": f"{dice.choice(('Torre', 'Molo', 'faro'))}-{four}!{dice.choice('xyz')}{six}",
            "key": "AKIA" + "".join(dice.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16)),
        }
        return made[part]

    def _fiscal_body(self, person: str) -> str:
        dice = self._dice
        first, last = (re.sub("[AEIOU]", "", word) + "XXX" for word in person.upper().split())
        place = f"{dice.choice('ADFHL')}{dice.randint(101, 999)}"
        return (
            f"{last[:3]}{first[:3]}{dice.randint(40, 99)}{dice.choice('ABCDEHLMPRST')}"
            f"{dice.randint(1, 28):02}{place}"
        )

    def _iban(self) -> str:
        """Return an Italian IBAN: the letter inside it is a check by the table of the codice fiscale."""
        bank = f"{self._dice.randint(10**21, 10**22 - 1)}"
        return iban_of("IT", fiscal_letter(bank) + bank)

    def _grouped(self, number: str) -> str:
        if self._dice.random() < 0.5:
            return number
        return " ".join(number[at : at + 4] for at in range(0, len(number), 4))


_KINDS: Final = {
    "person": "person",
    "email": "email",
    "fiscal": "codice_fiscale",
    "vat": "partita_iva",
    "iban": "iban",
    "card": "card",
    "mobile": "phone",
    "landline": "phone",
    "abroad": "phone",
    "prefixed": "phone",
    "passport": "passport",
    "plate": "number_plate",
    "secret": "password",
    "key": "api_key",
}
"""What a slot of a template holds, as the classifier names it."""

_TEMPLATES: Final = {
    "it": (
        "Cordiali saluti\n\n|person|\n|mobile|\n|email",
        "Ne abbiamo parlato con |person| e con l'amministratore del condominio, senza esito.",
        "Riferimenti: |fiscal|, |iban|",
        "Il sig. |person|, codice fiscale |fiscal|, chiede di essere richiamato al cellulare |mobile|.",
        "Si scriva alla sig.ra |person| all'indirizzo |email| oppure al telefono |landline|.",
        "Il rimborso va accreditato a favore del sig. |person| sul conto IBAN |iban|, causale saldo.",
        "Il pagamento con carta di credito |card| del sig. |person| risulta stornato.",
        "La ditta fornitrice, partita IVA |vat|, risponde alla casella |email| e al telefono |prefixed|.",
        "Passaporto n. |passport| e vettura targata |plate|, intestati alla sig.ra |person|.",
        "Per entrare nel portale: password: |secret|, poi la chiave |key| nel campo previsto.",
        "Dal mittente |email| e' giunta copia del documento, con codice fiscale |fiscal| e P.IVA |vat|.",
    ),
    "en": (
        "Kind regards\n\n|person|\n|prefixed|\n|email",
        "We spoke with |person| about it on the way out, and nothing came of it.",
        "Mr |person| may be reached by phone at |abroad| or by writing to |email| at any time.",
        "Please refund Mrs |person| by bank transfer to IBAN |iban| before the end of the month.",
        "The credit card |card| held by Mr |person| was charged twice for the same stay.",
        "The supplier, VAT no. |vat|, answers from |email| and by phone on |prefixed| in the morning.",
        "Passport no. |passport| was issued to Ms |person| and a copy sent to |email| yesterday.",
        "The password: |secret| opens the portal; the access key |key| goes into the field below it.",
    ),
}
"""Sentences with slots between bars. Written for this measurement, not for what the rules expect."""
