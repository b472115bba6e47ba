# SPDX-License-Identifier: Apache-2.0
"""Numbers with a right check digit, made from their published rules.

Owns the arithmetic, once more: the detectors use a library for it, and a harness that used the same one
would share its mistakes. Standard library only.
"""

import unicodedata
from random import Random
from string import ascii_uppercase, digits
from typing import Final

_ODD: Final = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
"""What the letters A to Z, and the digits 0 to 9, count in an odd place (DM 23 December 1976)."""
_OMOCODIA: Final = "LMNPQRSTUV"
_MONTH_LETTERS: Final = "ABCDEHLMPRST"
_DIGIT_PLACES: Final = (14, 13, 12, 10, 9, 7, 6)
"""The places of a codice fiscale whose digits omocodia replaces, in the order in which it does."""


def some_digits(dice: Random, count: int) -> str:
    """Return `count` random digits."""
    return "".join(dice.choice(digits) for _ in range(count))


def _value(character: str) -> int:
    return int(character) if character.isdigit() else ord(character) - ord("A")


def _control(text: str) -> str:
    """Return the letter that checks `text`: odd places by the table, even ones by value, modulo 26."""
    total = sum(
        _ODD[_value(character)] if index % 2 == 0 else _value(character)
        for index, character in enumerate(text)
    )
    return ascii_uppercase[total % 26]


def codice_fiscale(name: str, born: tuple[int, int, int], place: str, *, replaced: int = 0) -> str:
    """Return the codice fiscale of a man called `name` ("First Last"), born in `place` (its code).

    `replaced` digits give way to letters, as where two persons would share a number (omocodia).
    """
    first, _, last = _plain(name).partition(" ")
    day, month, year = born
    given = [letter for letter in first if letter not in "AEIOU"]
    given = [given[0], *given[2:]] if len(given) > 3 else given  # noqa: PLR2004 - art. 4 of the decree
    body = list(
        f"{_three(last)}{_three(first, given)}{year % 100:02}{_MONTH_LETTERS[month - 1]}{day:02}{place}"
    )
    for index in _DIGIT_PLACES[:replaced]:
        body[index] = _OMOCODIA[int(body[index])]
    return "".join(body) + _control("".join(body))


def _plain(name: str) -> str:
    folded = unicodedata.normalize("NFKD", name).upper()
    return "".join(character for character in folded if character in ascii_uppercase + " ")


def _three(word: str, consonants: list[str] | None = None) -> str:
    found = [letter for letter in word if letter not in "AEIOU"] if consonants is None else consonants
    return "".join([*found, *(letter for letter in word if letter in "AEIOU"), *"XXX"])[:3]


def partita_iva(dice: Random) -> str:
    """Return eleven digits, the last of which checks the others (Luhn, as DPR 633/1972 has it)."""
    body = f"0{some_digits(dice, 6)}0{dice.randint(10, 99)}"
    return body + _luhn(body)


def card(dice: Random) -> str:
    """Return the sixteen digits of a payment card."""
    body = dice.choice("45") + some_digits(dice, 14)
    return body + _luhn(body)


def _luhn(body: str) -> str:
    total = 0
    for index, digit in enumerate(reversed(body)):
        doubled = int(digit) * (2 - index % 2)
        total += doubled - 9 if doubled > 9 else doubled  # noqa: PLR2004 - the sum of its digits
    return str(-total % 10)


def iban(country: str, dice: Random) -> str:
    """Return an account number of `country`: "IT", "DE" or "FR" (ISO 13616, national checks included)."""
    match country:
        case "IT":
            account = f"05428{some_digits(dice, 5)}{some_digits(dice, 12)}"
            account = _control(account) + account
        case "FR":
            bank, branch, number = some_digits(dice, 5), some_digits(dice, 5), some_digits(dice, 11)
            key = 97 - (89 * int(bank) + 15 * int(branch) + 3 * int(number)) % 97
            account = f"{bank}{branch}{number}{key:02}"
        case _:
            account = f"50010517{some_digits(dice, 10)}"
    rest = "".join(str(int(character, 36)) for character in f"{account}{country}00")
    return f"{country}{98 - int(rest) % 97:02}{account}"


def tax_number_of_germany(dice: Random) -> str:
    """Return a German identification number: one digit twice, one missing, checked by ISO 7064 mod 11, 10."""
    chosen = dice.sample(digits, 9)
    body = [*chosen, chosen[0]]
    dice.shuffle(body)
    if body[0] == "0":
        swap = next(index for index, digit in enumerate(body) if digit != "0")
        body[0], body[swap] = body[swap], body[0]
    check = 10
    for digit in body:
        total = (int(digit) + check) % 10 or 10
        check = total * 2 % 11
    return "".join(body) + str((11 - check) % 10)
