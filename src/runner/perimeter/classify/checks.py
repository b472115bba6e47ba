# SPDX-License-Identifier: Apache-2.0
"""The checks behind the patterns: check digits, lengths, and what a secret looks like.

Owns the functions a rule's `check` may name. Each is pure and total over ASCII strings of bounded
length (the patterns bound it), and returns the number of leading characters it accepts, 0 for none.
Leaves the arithmetic of check digits to python-stdnum, the single place where it is imported.
Carries I6 in part: a number is an identifier because its check digit says so, not its length.
"""

import re
from collections.abc import Callable
from typing import Final

import stdnum.iban
import stdnum.luhn
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
from stdnum.iso7064 import mod_97_10
from stdnum.it import codicefiscale, iva
from stdnum.nl import bsn
from stdnum.pl import pesel
from stdnum.pt import nif
from stdnum.ro import cnp
from stdnum.se import personnummer
from stdnum.si import emso

from runner.perimeter.classify.model import Check

# Lengths of an IBAN by country, from the public register of ISO 13616.
_IBAN_LENGTHS: Final = {
    country: length
    for length, countries in {
        15: "NO",
        16: "BE BI",
        18: "DK FI FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU XK",
        21: "CH CR HR LI LV",
        22: "BG BH DE GB GE IE ME RS",
        23: "AE GI IL IQ TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BY DJ FR GR IT MC MR SM",
        28: "AL AZ CY DO GT HU LB PL",
        29: "BR EG PS QA UA",
        30: "JO KW MU",
        31: "MT SC",
    }.items()
    for country in countries.split()
}

_CARD_LENGTHS: Final = {"3": (15,), "4": (13, 16, 19), "5": (16,), "2": (16,), "6": (16, 19)}


def _compact(candidate: str) -> str:
    plain = candidate if candidate.isalnum() else "".join(filter(str.isalnum, candidate))
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


def partita_iva(candidate: str) -> int:
    """Accept eleven digits with a valid check digit (also the 11-digit provisional codice fiscale)."""
    return len(candidate) if iva.is_valid(candidate) else 0


def iban(candidate: str) -> int:
    """Accept the leading part of `candidate` that is an IBAN, and give back the words after it."""
    compact = _compact(candidate)
    length = _IBAN_LENGTHS.get(compact[:2], 0)
    compact = compact[:length]
    if not length or len(compact) < length:
        return 0
    if not mod_97_10.is_valid(compact[4:] + compact[:4]):
        return 0
    if not stdnum.iban.is_valid(
        compact, check_country=False
    ):  # lists of a country's banks are never complete
        return 0
    return _prefix_with(candidate, length)


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
    return len(candidate) if stdnum.luhn.is_valid(compact) else 0


_PLACEHOLDER: Final = re.compile("x{3,}|example|changeme|placeholder|your|redacted")
"""A word that stands for a value. Beside other letters, or words of people, it may be part of one."""
_NOTHING: Final = frozenset({"none", "null"})
_SECRET: Final = re.compile("(?:token|secret|key|credential)s?")
_PROGRAM: Final = re.compile(
    f"{_SECRET.pattern}|access|api|auth|aws|bit|cached|client|completion|config|context|count|csrf|db|env|file|id|"
    "input|jwt|k8s|limit|max|min|name|num|oauth|output|passwd|password|path|prompt|ref|refresh|s3|size|type|url|"
    "value"
)
"""Words that names in programs are made of: closed, and none that people choose. One more frees passwords."""
_PART: Final = re.compile("(k8s|s3|[a-z]+)?([0-9]{0,3})")
"""A word of a name that programmers give: `max`, `tokens2`, `k8s`; or a short number."""
_MASK: Final = re.compile(r"\*{3,}|\.{3,}")
_SHOWN: Final = 6
"""Letters and digits that a masked secret may still show."""


_REFERENCE: Final = re.compile(
    r"[<{(\[]|\$(?:[{(]|(?:[A-Z_][0-9A-Z_]*|[a-z_]+)$)|%(?:\(|[0-9A-Z_a-z]+%)|[A-Za-z_][0-9A-Z_a-z.:]*\(|os\.environ"
)
"""A template (`<password>`, `${VAR}`, `%VAR%`), a variable of a shell, a call or attribute of a program."""


def _words_of(value: str) -> list[str]:
    """Return the words of a name, in one case and with one short number at most; none for what is no name."""
    plain = value.strip("!?#").replace("-", "_").replace(".", "_")
    if plain not in (plain.lower(), plain.upper()):
        return []  # a name is not written in both; what is generated is
    found = [_PART.fullmatch(part) for part in plain.lower().split("_") if part]
    parts = [(match[1] or "", match[2]) for match in found if match is not None]
    if len(parts) < len(found) or sum(number != "" for _, number in parts) > 1:
        return []
    return [word for word, _ in parts if word]


def _is_placeholder(value: str) -> bool:
    """Say whether `value` is a placeholder and nothing else (`your_api_key`, `none`), or masked."""
    if _MASK.search(value):
        return sum(map(str.isalnum, value)) <= _SHOWN
    words = _words_of(value)
    others = [word for word in words if not _PLACEHOLDER.fullmatch(word)]
    if len(others) == len(words):
        return len(words) == 1 and words[0] in _NOTHING
    return all(map(_PROGRAM.fullmatch, others))


def _names_a_secret(value: str) -> bool:
    """Say whether `value` is what programs call a secret, every word of it: `max_tokens2`, `k8s-secret`."""
    words = _words_of(value)
    return len(words) > 1 and all(map(_PROGRAM.fullmatch, words)) and any(map(_SECRET.fullmatch, words))


def secret_value(candidate: str) -> int:
    """Accept what follows `token=` as `password_value` does, unless it is the name of a secret."""
    return 0 if _names_a_secret(candidate.rstrip(".,;:)!?")) else password_value(candidate)


def password_value(candidate: str) -> int:
    """Accept what follows `password=` when it looks chosen or generated, not like a word or a variable.

    At least six characters, of two kinds out of letters, digits and signs; no placeholder, no template
    (`${VAR}`, `<password>`), no call or attribute of a program. A password may look like any name.
    """
    value = candidate.rstrip(".,;:)!?")
    if len(value) < 6 or _is_placeholder(value) or _REFERENCE.match(value):  # noqa: PLR2004 - shortest secret
        return 0
    if len(set(value)) < 4:  # noqa: PLR2004 - "aaaa", "1212"
        return 0
    letters = any(character.isalpha() for character in value)
    digits = any(character.isdigit() for character in value)
    signs = any(not character.isalnum() and character not in "._-/'" for character in value)
    return len(value) if digits + letters + signs > 1 else 0


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
