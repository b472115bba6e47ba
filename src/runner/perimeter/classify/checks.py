# SPDX-License-Identifier: Apache-2.0
"""The checks behind the patterns: check digits and lengths. What a secret looks like is in `passwords`.

Owns the functions a rule's `check` may name. Each is pure and total over ASCII strings of bounded
length (the patterns bound it), and returns the number of leading characters it accepts, 0 for none.
Leaves the arithmetic of check digits to python-stdnum, the single place where it is imported.
Carries I6 in part: a number is an identifier because its check digit says so, not its length.
"""

import re
from collections.abc import Callable
from typing import Final

from stdnum import numdb
from stdnum.at import vnr
from stdnum.be import nn
from stdnum.bg import egn
from stdnum.ch import ssn
from stdnum.cz import rc
from stdnum.de import idnr
from stdnum.ee import ik
from stdnum.es import dni, nie
from stdnum.eu import vat
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.gr import amka
from stdnum.hr import oib
from stdnum.ie import pps
from stdnum.it import codicefiscale
from stdnum.nl import bsn
from stdnum.pl import pesel
from stdnum.pt import nif
from stdnum.ro import cnp
from stdnum.se import personnummer
from stdnum.si import emso

from runner.perimeter.classify.model import Check

_CARD_LENGTHS: Final = {"3": (15,), "4": (13, 16, 19), "5": (16,), "2": (16,), "6": (16, 19)}


_SIGNS: Final = {code: None for code in range(0x80) if not chr(code).isalnum()}


def _compact(candidate: str) -> str:
    plain = candidate if candidate.isalnum() else candidate.translate(_SIGNS)
    return plain.upper()


def _one_case(candidate: str) -> bool:
    """Say whether `candidate` is in capitals, in small letters, or begins with the one capital in it."""
    return candidate.isupper() or candidate[1:].islower()


_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS: Final = "0123456789"


def _worth(before: str, after: str) -> bytes:
    """Return for each letter or digit between `before` and `after` what it adds to the check character."""
    least = codicefiscale.calc_check_digit(f"{before}A{after}")
    table = bytearray(256)
    for sign in _LETTERS + _DIGITS:
        table[ord(sign)] = (ord(codicefiscale.calc_check_digit(before + sign + after)) - ord(least)) % 26
    return bytes(table)


_ODD: Final = _worth("", "A" * 14)
_EVEN: Final = _worth("A", "A" * 13)
_OF_NOTHING: Final = ord(codicefiscale.calc_check_digit("A" * 15)) - ord("A")
"""The same check character, from tables: a text may be nothing but candidates."""
_OMOCODIA: Final = str.maketrans("LMNPQRSTUV", _DIGITS)
_DAYS: Final = dict(zip("ABCDEHLMPRST", (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), strict=True))


def codice_fiscale_in_any_case(candidate: str) -> int:
    """Accept a 16-character codice fiscale, omocodia included (DM 23 December 1976, art. 2-6)."""
    compact = _compact(candidate)
    code = compact[:-1].encode("ascii")
    worth = _OF_NOTHING + sum(code[::2].translate(_ODD)) + sum(code[1::2].translate(_EVEN))
    return len(candidate) if _LETTERS[worth % 26] == compact[-1] and _is_a_birthday(compact) else 0


def _is_a_birthday(compact: str) -> bool:
    """Say whether year, month and day of `compact` are a date; those of a woman count 40 more days."""
    year, day = (compact[at : at + 2].translate(_OMOCODIA) for at in (6, 9))
    if not (year.isdigit() and day.isdigit()):
        return False
    last = 29 if compact[8] == "B" and int(year) % 4 == 0 else _DAYS.get(compact[8], 0)
    return 1 <= int(day) % 40 <= last


def codice_fiscale(candidate: str) -> int:
    """Accept a codice fiscale in capitals, in small letters, or with the first letter alone a capital.

    Other mixtures are refused: people and keyboards of telephones do not write so, encoded blobs do.
    """
    return codice_fiscale_in_any_case(candidate) if _one_case(candidate) else 0


_DOUBLED: Final = bytes.maketrans(b"0123456789", b"0246813579")
"""For a digit the sum of the digits of its double, as Luhn's formula adds them."""


def luhn(digits: str) -> bool:
    """Say whether the last of `digits` (ASCII digits, at least one) is right by Luhn's formula."""
    signs = digits.encode("ascii")[::-1]
    return (sum(signs[::2]) + sum(signs[1::2].translate(_DOUBLED)) - 0x30 * len(signs)) % 10 == 0


_OFFICES: Final = frozenset({*(f"{office:03}" for office in range(1, 101)), "120", "121", "888", "999"})
"""Offices that issue Italian VAT numbers: the eighth to the tenth digit."""


def partita_iva(candidate: str) -> int:
    """Accept eleven digits with a valid check digit (also the 11-digit provisional codice fiscale).

    As `stdnum.it.iva`, which takes five times as long: texts may be nothing but candidates.
    """
    right = candidate[7:10] in _OFFICES and luhn(candidate) and candidate[:7] != "0000000"
    return len(candidate) if right else 0


_IBAN_COUNTRIES: Final = (
    "AD AE AL AT AZ BA BE BG BH BI BR BY CH CR CY CZ DE DJ DK DO EE EG ES FI FK FO FR GB GE GI GL GR "
    "GT HN HR HU IE IL IQ IS IT JO KW KZ LB LC LI LT LU LV LY MC MD ME MK MN MR MT MU NI NL NO OM PK "
    "PL PS PT QA RO RS RU SA SC SD SE SI SK SM SO ST SV TL TN TR UA VA VG XK YE"
)
"""Those of the public register of ISO 13616 that python-stdnum has."""
_OF_KIND: Final = {"n": "[0-9]", "a": "[A-Z]", "c": "[0-9A-Z]"}


def _iban_signs(country: str) -> list[str]:
    """Return of what kind each sign behind country and check digits is: a pattern for each."""
    structure = numdb.get("iban").info(country)[0][1]["bban"]
    parts = re.findall("([0-9]+)!([nac])", structure)
    return [_OF_KIND[kind] for size, kind in parts for _ in range(int(size))]


_IBANS: Final = {country: _iban_signs(country) for country in _IBAN_COUNTRIES.split()}
_IBAN_BANKS: Final = {country: re.compile("".join(signs)) for country, signs in _IBANS.items()}
IBAN_BEGINS: Final = {country: tuple(signs[:2]) for country, signs in _IBANS.items()}
"""For a country which signs the two behind its check digits are: words in a text are seldom those."""
_VALUES: Final = {ord(letter): str(value) for value, letter in enumerate(_LETTERS, start=10)}


def iban(candidate: str) -> int:
    """Accept the leading part of `candidate` that is an IBAN, and give back the words after it.

    Lists of a country's banks are never complete: its own check of the bank is not asked for.
    """
    compact = _compact(candidate)
    country = compact[:2]
    bank = _IBAN_BANKS[country].match(compact, 4) if country in _IBAN_BANKS else None
    if bank is None:
        return 0
    compact, length = compact[: bank.end()], bank.end()
    if int((compact[4:] + compact[:4]).translate(_VALUES)) % 97 != 1:
        return 0
    return len(candidate) if len(candidate) == length else _prefix_with(candidate, length)


def _prefix_with(candidate: str, count: int) -> int:
    """Return the length of the shortest prefix holding `count` letters and digits."""
    seen = 0
    for index, character in enumerate(candidate):
        seen += character.isalnum()
        if seen == count:
            return index + 1
    return 0


def card(candidate: str) -> int:
    """Accept a payment card number: known first digit, a length that issuer uses, Luhn."""
    compact = _compact(candidate)
    if len(compact) not in _CARD_LENGTHS.get(compact[:1], ()) or len(set(compact)) == 1:
        return 0
    return len(candidate) if luhn(compact) else 0


def stdnum_check(is_valid: Callable[[str], bool]) -> Check:
    """Return a check that accepts the whole candidate when `is_valid` of its letters and digits holds."""

    def check(candidate: str) -> int:
        return len(candidate) if is_valid(_compact(candidate)) else 0

    return check


def written_check(is_valid: Callable[[str], bool]) -> Check:
    """Return a check that accepts the whole candidate when `is_valid` of it, signs included, holds."""

    def check(candidate: str) -> int:
        return len(candidate) if is_valid(candidate.upper()) else 0

    return check


EUROPEAN_CHECKS: Final[dict[str, Check]] = {
    "at": stdnum_check(vnr.is_valid),
    "be": stdnum_check(nn.is_valid),
    "bg": stdnum_check(egn.is_valid),
    "ch": stdnum_check(ssn.is_valid),
    "cz": stdnum_check(rc.is_valid),
    "de": stdnum_check(idnr.is_valid),
    "ee": stdnum_check(ik.is_valid),
    "es_dni": stdnum_check(dni.is_valid),
    "es_nie": stdnum_check(nie.is_valid),
    "fi": written_check(hetu.is_valid),
    "fr": stdnum_check(nir.is_valid),
    "gb": stdnum_check(nhs.is_valid),
    "gr": stdnum_check(amka.is_valid),
    "hr": stdnum_check(oib.is_valid),
    "ie": stdnum_check(pps.is_valid),
    "nl": stdnum_check(bsn.is_valid),
    "pl": stdnum_check(pesel.is_valid),
    "pt": stdnum_check(nif.is_valid),
    "ro": stdnum_check(cnp.is_valid),
    "se": written_check(personnummer.is_valid),
    "si": stdnum_check(emso.is_valid),
}
"""Checks of personal numbers of other European states, by country. Estonia and Lithuania share one."""

vat_number: Final[Check] = stdnum_check(vat.is_valid)
"""Accepts a VAT number of a member state of the EU, its country's letters included."""
