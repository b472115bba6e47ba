# SPDX-License-Identifier: Apache-2.0
"""I6: a telephone number is found by its country's numbering plan; a number of an invoice is none."""

import random

import phonenumbers
import pytest

from runner.perimeter.classify import classify_text
from runner.perimeter.classify.phones import in_international_plan, national


def found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in classify_text(text).spans if span.kind == "phone"]


def _numbers(count: int) -> list[str]:
    """Return numbers under known country codes, half of them a digit or three away from a real one."""
    dice = random.Random(17)  # noqa: S311 - a fixed sequence of numbers, not a secret
    codes = sorted(
        code for code, regions in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items() if regions[0] != "001"
    )
    made = []
    for _ in range(count):
        code = dice.choice(codes)
        example = phonenumbers.example_number(phonenumbers.COUNTRY_CODE_TO_REGION_CODE[code][0])
        digits = list(phonenumbers.national_significant_number(example)) if example else ["1"]
        for _ in range(dice.randint(0, 3)):
            digits[dice.randrange(len(digits))] = str(dice.randrange(10))
        made.append(f"{code}{''.join(digits)}")
    return made


def test_the_plans_answer_as_the_package_does() -> None:
    """The plans on RE2 stand for `is_valid_number`: at most one in a thousand may differ."""
    numbers = _numbers(2000)
    expected = [phonenumbers.is_valid_number(phonenumbers.parse(f"+{number}")) for number in numbers]
    differ = [
        number
        for number, valid in zip(numbers, expected, strict=True)
        if in_international_plan(number) is not valid
    ]
    assert 400 < sum(expected) < 1600
    assert len(differ) <= 2, differ


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Mario, 347 555 0162", "347 555 0162"),
        ("scrivimi al 333-1234567 dopo le 18", "333-1234567"),
        ("+44 20 7946 0958", "+44 20 7946 0958"),
        ("+44 (0)20 7946 0958, ext. 3", "+44 (0)20 7946 0958"),
        ("(+33 1 42 68 53 00)", "+33 1 42 68 53 00"),
        ("+1 (212) 736-5000.", "+1 (212) 736-5000"),
        ("tel. 0041 44 668 18 00", "0041 44 668 18 00"),
        ("fax +44 20 7946 0958 12 copies", "+44 20 7946 0958"),
        ("phone: 020 7946 0958", "020 7946 0958"),
        ("Tel.: 06/4825370", "06/4825370"),
        ("phone +44 1632 960 204", "+44 1632 960 204"),
    ],
)
def test_numbers_of_a_plan_are_found(text: str, number: str) -> None:
    assert found(text) == [number]


@pytest.mark.parametrize(
    "text",
    [
        "saldo +1 234 567 890 12",
        "differenza +3.900.000.000",
        "+39 1 234 567",
        "tel. su richiesta; prot. 0000123456",
        "€ 100,00 4412345678",
        "mappale 345 1234567 89",
        "lotto 3331234567",
        "telefonare dalle 09.30-12.30 o il 03/11/2020",
        "333.123.4567,89 EUR",
        "n. 345-12-34/2020",
    ],
)
def test_numbers_of_no_plan_are_not(text: str) -> None:
    assert found(text) == []


def test_a_candidate_gives_back_what_it_swallowed() -> None:
    assert national("010 5550162 12") == len("010 5550162")
    assert national("00 00 00 00 00") == 0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Please call me on 020 7405 1234", "020 7405 1234"),
        ("You can ring me on 0161 496 0000 after six.", "0161 496 0000"),
        ("My number is 020 7405 1234.", "020 7405 1234"),
        ("Chiamami al 06 4825370", "06 4825370"),
        ("Il mio numero è 06 4825370", "06 4825370"),
        ("Tel.0039 06 4825370", "0039 06 4825370"),
        ("Il mio numero è: 347.123 4567", "347.123 4567"),
    ],
)
def test_what_people_say_before_their_number_is_a_word_of_a_telephone(text: str, number: str) -> None:
    assert found(text) == [number]


@pytest.mark.parametrize(
    "text",
    [
        '<path d="M 399.21 74.21 L 380.50 60.75 Z"/>',
        '<polyline points="347.12 34 567"/>',
        '<path d="M12 4C 341.123 4567 Z"/>',
        '<path d="M 19.003906 -0.5 -0.496094 C 4.003907 4.496094 -4.5 Z"/>',
        "The recall rate is 020 7405 1234",
    ],
)
def test_coordinates_and_numbers_without_a_word_are_no_telephone(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "text",
    [
        '<polygon points="12 40 327 425 876"/>',
        '<path d="M T 174 545 310 728 S 860 328 198 204 C 184 562 8 10"/>',
        "<path d='M 10 328 198 204 Z'/>",
        '<svg viewBox="0 0 328 198 204">',
        "561 400 86.25 15 326 595 569",
        "x y z\n331 204 118\n332 205 119\n333 206 120",
        "12 40 7\n331 204 118",
        "+43.536924 +49.410947",
        "+43.646305 -118.696202\n+18.888 -134.171",
        "41.9028 12.4964\n45.4642 9.1900\n39.0742 21.8243",
        "id,lat,lon\n1,41.902782,12.496366\n2,45.464203,9.189982",
        '<trkpt lat="41.902782" lon="12.496366"><ele>331.2</ele></trkpt>',
        "LINESTRING (12.496366 41.902782, 9.189982 45.464203)",
    ],
)
def test_coordinates_are_no_telephone_numbers(text: str) -> None:
    """P3's price: a drawing is not denied for three numbers in a row that a mobile number could be."""
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('<path d="M T 174 545 310 728"/><text>cell. di Ada 12 40 15 20 327 425 8761</text>', "327 425 8761"),
        ("1 333 123 4567\n2 347 123 4567\n3 320 123 4567\n4 331 123 4567", "331 123 4567"),
        ("333 123 4567 347 123 4567 320 123 4567", "320 123 4567"),
        ("Ada, 12 3 80, 347 555 0162", "347 555 0162"),
        ('<a title="327 425 8761">', "327 425 8761"),
        ("331 204 1180\n332 205 1190", "332 205 1190"),
        ("tel.\n12 40 7\n331 204 118", "331 204 118"),
        ("+49.30901820", "+49.30901820"),
        ("tel. +49.309018", "+49.309018"),
        ('<path d="327 425 8761"/>', "327 425 8761"),
    ],
)
def test_what_is_no_list_of_coordinates_still_is_one(text: str, number: str) -> None:
    """I6: a word that speaks of a telephone decides; so do columns and rows of numbers of telephones."""
    assert number in found(text)


def test_a_vat_number_is_no_telephone_at_the_same_place() -> None:
    assert [span.kind for span in classify_text("P.IVA e telefono 02115070399").spans] == ["partita_iva"]
