# SPDX-License-Identifier: Apache-2.0
"""Identifiers made up with right check digits, written from the published algorithms.

Owns one function a kind of identifier, `make`, which returns one in its plain form, and `groupings`, the
ways in which people write it. Imports nothing of the detectors and not the library they use, so that a
mistake there cannot hide in a mistake here. Every number is random: it belongs to nobody, or by accident.
"""

import random
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Final

_CONSONANTS: Final = "BCDFGLMNPRSTVZ"
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MONTHS: Final = "ABCDEHLMPRST"
_OMOCODIA: Final = "LMNPQRSTUV"
_ODD: Final = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
_DIGIT_PLACES: Final = (6, 7, 9, 10, 12, 13, 14)
_DNI: Final = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU: Final = "0123456789ABCDEFHJKLMNPRSTUVWXY"

Dice = random.Random


def _digits(dice: Dice, count: int) -> str:
    return "".join(dice.choice("0123456789") for _ in range(count))


def _date(dice: Dice) -> tuple[int, int, int]:
    return dice.randint(1940, 1999), dice.randint(1, 12), dice.randint(1, 28)


def _weighted(number: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True))


def luhn(number: str) -> str:
    """Return the check digit of `number` (ISO/IEC 7812-1, annex B)."""
    total = 0
    for digit, twice in zip(reversed(number), cycle((True, False)), strict=False):
        value = int(digit) * (2 if twice else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def _fiscal_value(character: str, *, odd: bool) -> int:
    index = int(character) if character.isdigit() else _LETTERS.index(character)
    return _ODD[index] if odd else index


def fiscal_letter(first: str) -> str:
    """Return the check letter of the first fifteen characters (DM 23 December 1976, art. 7).

    An account in Italy has one by the same table over its 22 digits.
    """
    values = (_fiscal_value(sign, odd=at % 2 == 0) for at, sign in enumerate(first))
    return _LETTERS[sum(values) % 26]


def codice_fiscale(dice: Dice) -> str:
    """Return one of a person: a tenth with omocodia, a tenth born abroad."""
    year, month, day = _date(dice)
    names = "".join(dice.choice(_CONSONANTS) for _ in range(6))
    place = ("Z" if dice.random() < 0.1 else dice.choice("ABCDEFGHIL")) + f"{dice.randint(100, 999)}"
    first = f"{names}{year % 100:02}{_MONTHS[month - 1]}{day + dice.choice((0, 40)):02}{place}"
    if dice.random() < 0.1:
        replaced = _DIGIT_PLACES[-dice.randint(1, 7) :]
        first = "".join(_OMOCODIA[int(sign)] if at in replaced else sign for at, sign in enumerate(first))
    return first + fiscal_letter(first)


def partita_iva(dice: Dice) -> str:
    """Return one of an organisation: seven digits, the province's office, and a check digit."""
    first = f"{dice.randint(1, 9_999_999):07}{dice.randint(1, 100):03}"
    return first + luhn(first)


def _as_digits(text: str) -> str:
    return "".join(str(int(sign, 36)) for sign in text)


def _mod_97(text: str) -> int:
    return int(_as_digits(text)) % 97


def _italian_account(dice: Dice) -> str:
    rest = f"{_digits(dice, 10)}{dice.randint(0, 10**12 - 1):012}"
    return fiscal_letter(rest) + rest


def _spanish_account(dice: Dice) -> str:
    bank, account = _digits(dice, 8), _digits(dice, 10)
    weights = (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)
    checks = (str((11 - _weighted(part, weights) % 11) % 11) for part in (f"00{bank}", account))
    return bank + "".join("1" if check == "10" else check for check in checks) + account


def _belgian_account(dice: Dice) -> str:
    first = _digits(dice, 10)
    return first + f"{int(first) % 97 or 97:02}"


def _french_account(dice: Dice) -> str:
    bank, branch, account = _digits(dice, 5), _digits(dice, 5), _digits(dice, 11)
    key = 97 - (89 * int(bank) + 15 * int(branch) + 3 * int(account)) % 97
    return f"{bank}{branch}{account}{key:02}"


_ACCOUNTS: Final[dict[str, Callable[[Dice], str]]] = {
    "IT": _italian_account,
    "SM": _italian_account,
    "ES": _spanish_account,
    "BE": _belgian_account,
    "FR": _french_account,
    "DE": lambda dice: _digits(dice, 18),
    "AT": lambda dice: _digits(dice, 16),
    "NL": lambda dice: "".join(dice.choice(_LETTERS) for _ in range(4)) + _digits(dice, 10),
    "IE": lambda dice: "".join(dice.choice(_LETTERS) for _ in range(4)) + _digits(dice, 14),
    "GB": lambda dice: "".join(dice.choice(_LETTERS) for _ in range(4)) + _digits(dice, 14),
    "CH": lambda dice: _digits(dice, 5) + f"{dice.randint(0, 10**12 - 1):012}",
    "RO": lambda dice: "".join(dice.choice(_LETTERS) for _ in range(4)) + _digits(dice, 16),
    "LU": lambda dice: _digits(dice, 16),
    "GR": lambda dice: _digits(dice, 23),
    "SE": lambda dice: _digits(dice, 20),
    "DK": lambda dice: _digits(dice, 14),
}


def iban(dice: Dice) -> str:
    """Return one of a bank in Italy (half of them), or elsewhere in Europe (ISO 13616, mod 97-10)."""
    country = "IT" if dice.random() < 0.5 else dice.choice(list(_ACCOUNTS))
    account = _ACCOUNTS[country](dice)
    return iban_of(country, account)


def iban_of(country: str, account: str) -> str:
    """Return `account` as an IBAN of `country` (ISO 13616, check digits of ISO 7064 mod 97-10)."""
    return f"{country}{98 - _mod_97(f'{account}{country}00'):02}{account}"


def card(dice: Dice) -> str:
    """Return the number of a payment card of a known network."""
    start, size = dice.choice((("4", 16), ("51", 16), ("55", 16), ("2221", 16), ("37", 15), ("6011", 16)))
    first = start + _digits(dice, size - len(start) - 1)
    return first + luhn(first)


def _until(make: Callable[[], str]) -> str:
    """Return the first result that is one: some algorithms have no check digit for some numbers."""
    return next(made for made in iter(make, None) if made)


def _at(dice: Dice) -> str:
    def once() -> str:
        serial = str(dice.randint(100, 999))
        year, month, day = _date(dice)
        born = f"{day:02}{month:02}{year % 100:02}"
        check = _weighted(serial + born, (3, 7, 9, 5, 8, 4, 2, 1, 6)) % 11
        return f"{serial}{check}{born}" if check < 10 else ""

    return _until(once)


def _be(dice: Dice) -> str:
    year, month, day = _date(dice)
    first = f"{year % 100:02}{month:02}{day:02}{dice.randint(1, 998):03}"
    return first + f"{97 - int(first) % 97:02}"


def _bg(dice: Dice) -> str:
    year, month, day = _date(dice)
    first = f"{year % 100:02}{month:02}{day:02}{_digits(dice, 3)}"
    return first + str(_weighted(first, (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10)


def _ch(dice: Dice) -> str:
    first = "756" + _digits(dice, 9)
    return first + str(-_weighted(first, (1, 3) * 6) % 10)


def _cz(dice: Dice) -> str:
    year, month, day = _date(dice)
    first = f"{max(year, 1954) % 100:02}{month + dice.choice((0, 50)):02}{day:02}{_digits(dice, 3)}"
    return first + str(int(first) % 11 % 10)


def _de(dice: Dice) -> str:
    """Return a Steuer-ID: one digit twice, one missing, ISO 7064 mod 11,10."""
    ten = dice.sample("0123456789", 10)
    ten[ten.index(ten[0]) + dice.randint(1, 9)] = ten[0]
    first = "".join(ten)
    if first[0] == "0":
        return _de(dice)
    return first + _mod_11_10(first)


def _mod_11_10(number: str) -> str:
    product = 10
    for digit in number:
        total = (int(digit) + product) % 10 or 10
        product = 2 * total % 11
    return str((11 - product) % 10)


def _es_dni(dice: Dice) -> str:
    number = _digits(dice, 8)
    return number + _DNI[int(number) % 23]


def _es_nie(dice: Dice) -> str:
    start, number = dice.randrange(3), _digits(dice, 7)
    return f"{'XYZ'[start]}{number}{_DNI[int(f'{start}{number}') % 23]}"


def _fi(dice: Dice) -> str:
    year, month, day = _date(dice)
    born, serial = f"{day:02}{month:02}{year % 100:02}", f"{dice.randint(2, 899):03}"
    return f"{born}-{serial}{_HETU[int(born + serial) % 31]}"


def _fr(dice: Dice) -> str:
    year, month, _ = _date(dice)
    place = f"{dice.randint(21, 95):02}{dice.randint(1, 500):03}"
    first = f"{dice.choice('12')}{year % 100:02}{month:02}{place}{dice.randint(1, 999):03}"
    return first + f"{97 - int(first) % 97:02}"


def _gb(dice: Dice) -> str:
    def once() -> str:
        first = _digits(dice, 9)
        check = -_weighted(first, range(10, 1, -1)) % 11
        return f"{first}{check}" if check < 10 else ""

    return _until(once)


def _gr(dice: Dice) -> str:
    year, month, day = _date(dice)
    first = f"{day:02}{month:02}{year % 100:02}{_digits(dice, 4)}"
    return first + luhn(first)


def _hr(dice: Dice) -> str:
    first = _digits(dice, 10)
    return first + _mod_11_10(first)


def _ie(dice: Dice) -> str:
    first = _digits(dice, 7)
    return first + "WABCDEFGHIJKLMNOPQRSTUV"[_weighted(first, range(8, 1, -1)) % 23]


def _nl(dice: Dice) -> str:
    def once() -> str:
        first = str(dice.randint(10**7, 10**8 - 1))
        check = _weighted(first, range(9, 1, -1)) % 11
        return f"{first}{check}" if check < 10 else ""

    return _until(once)


def _pl(dice: Dice) -> str:
    year, month, day = _date(dice)
    first = f"{year % 100:02}{month:02}{day:02}{_digits(dice, 4)}"
    return first + str(-_weighted(first, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10)


def _pt(dice: Dice) -> str:
    first = dice.choice("12") + _digits(dice, 7)
    check = 11 - _weighted(first, range(9, 1, -1)) % 11
    return first + str(0 if check > 9 else check)


def _ro(dice: Dice) -> str:
    year, month, day = _date(dice)
    county = dice.choice([f"{number:02}" for number in range(1, 41)])
    first = f"{dice.choice('12')}{year % 100:02}{month:02}{day:02}{county}{dice.randint(1, 999):03}"
    check = _weighted(first, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return first + str(1 if check == 10 else check)


def _se(dice: Dice) -> str:
    year, month, day = _date(dice)
    born, serial = f"{year % 100:02}{month:02}{day:02}", _digits(dice, 3)
    return f"{born}-{serial}{luhn(born + serial)}"


def _si(dice: Dice) -> str:
    def once() -> str:
        year, month, day = _date(dice)
        first = f"{day:02}{month:02}{year % 1000:03}50{_digits(dice, 3)}"
        check = -_weighted(first, (7, 6, 5, 4, 3, 2) * 2) % 11
        return f"{first}{check}" if check < 10 else ""

    return _until(once)


PERSONAL: Final[dict[str, Callable[[Dice], str]]] = {
    "at": _at,
    "be": _be,
    "bg": _bg,
    "ch": _ch,
    "cz": _cz,
    "de": _de,
    "es": lambda dice: dice.choice((_es_dni, _es_nie))(dice),
    "fi": _fi,
    "fr": _fr,
    "gb": _gb,
    "gr": _gr,
    "hr": _hr,
    "ie": _ie,
    "nl": _nl,
    "pl": _pl,
    "pt": _pt,
    "ro": _ro,
    "se": _se,
    "si": _si,
}
"""Personal numbers of other states of Europe, by country."""


def _eu_vat_at(dice: Dice) -> str:
    first = _digits(dice, 7)
    total = sum(int(digit) for digit in first[::2])
    total += sum(sum(map(int, str(2 * int(digit)))) for digit in first[1::2])
    return f"ATU{first}{(96 - total) % 10}"


def _eu_vat_be(dice: Dice) -> str:
    first = "0" + str(dice.randint(400_0000, 999_9999))
    return f"BE{first}{97 - int(first) % 97:02}"


def _eu_vat_de(dice: Dice) -> str:
    first = str(dice.randint(10**7, 10**8 - 1))
    return f"DE{first}{_mod_11_10(first)}"


def _eu_vat_dk(dice: Dice) -> str:
    def once() -> str:
        first = str(dice.randint(10**6, 10**7 - 1))
        check = -_weighted(first, (2, 7, 6, 5, 4, 3, 2)) % 11
        return f"DK{first}{check}" if check < 10 else ""

    return _until(once)


def _eu_vat_fr(dice: Dice) -> str:
    first = _digits(dice, 8)
    siren = first + luhn(first)
    return f"FR{(12 + 3 * (int(siren) % 97)) % 97:02}{siren}"


def _eu_vat_lu(dice: Dice) -> str:
    first = str(dice.randint(10**5, 10**6 - 1))
    return f"LU{first}{int(first) % 89:02}"


def _eu_vat_pl(dice: Dice) -> str:
    def once() -> str:
        first = str(dice.randint(10**8, 10**9 - 1))
        check = _weighted(first, (6, 5, 7, 2, 3, 4, 5, 6, 7)) % 11
        return f"PL{first}{check}" if check < 10 else ""

    return _until(once)


def vat_eu(dice: Dice) -> str:
    """Return the VAT number of an organisation in another state of the EU."""
    makers = (_eu_vat_at, _eu_vat_be, _eu_vat_de, _eu_vat_dk, _eu_vat_fr, _eu_vat_lu, _eu_vat_pl)
    return dice.choice(makers)(dice)


MAKERS: Final[dict[str, Callable[[Dice], str]]] = {
    "codice_fiscale": codice_fiscale,
    "codice_fiscale_11": partita_iva,
    "partita_iva": partita_iva,
    "iban": iban,
    "card": card,
    "vat_eu": vat_eu,
    **{f"national_{country}": make for country, make in PERSONAL.items()},
}
"""What makes a right value of each kind."""
