# SPDX-License-Identifier: Apache-2.0
"""I1: only what stands in the user's own text, whole and as it is, was named by the user."""

import unicodedata
from time import process_time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runner.perimeter import named
from runner.perimeter.named import is_named

SAID = (
    "Write to anna@studio.example (not to Marco) about 'Rossi, bilancio 2023.xlsx' and pay 98.70, 1.250,00 "
    "or 1,050 to IT60X0542811101000000123456. See https://studio.example/forms?x=1 or www.studio.example. "
    "Il 3 marzo 2025 alle 15, at 9:30 or 1 pm, "
    "from January 11th to January 15th, am 04/12/2025 or 24/12/2025; 19.5% of it. Perché no."
)


@pytest.mark.parametrize(
    "value",
    [
        "anna@studio.example",
        "Marco",
        "Rossi, bilancio 2023.xlsx",
        98.7,
        1250,
        "IT60X0542811101000000123456",
        "https://studio.example/forms?x=1",
        "www.studio.example",
        "2025-03-03",
        "2025-03-03T09:30",
        "2025-03-03 09:30:00",
        "2025-03-03 15:00",
        "2025-03-03 13:00",
        "2025-03-03 00:00",
        "2025-01-11",
        "2023-01-15",
        "2025-12-24",
        "Perch\u00e9",
    ],
)
def test_what_stands_there_is_named(value: Any) -> None:
    assert is_named(value, SAID)


@pytest.mark.parametrize(
    "value",
    [
        "ANNA@studio.example",
        "na@studio.example",
        "anna@studio",
        "studio.example",
        "anna@studio.example.",
        "anna@studio.example,marco@x.example",
        "marco",
        "Marc",
        "Marco ",
        " Marco",
        "'Rossi, bilancio 2023.xlsx'",
        "bilancio 2023",
        "Rossi,  bilancio 2023.xlsx",
        "M\u0430rco",  # a Cyrillic a
        "\uff2darco",  # a full-width M
        "Mar\u200bco",
        "Perche\u0301",  # decomposed: another name to a file system
        "98.7",
        98.71,
        98,
        70,
        1050,  # a thousand and fifty, or a little more than one
        1.05,
        1.25,
        19.5,  # per cent
        True,
        None,
        "",
        "a",
        [],
        "https://studio.example",
        "https://studio.example/forms",
        "www.studio.example/forms",
        "2025-03-03 09:31",
        "2025-03-03 09:30:01",
        "2025-03-03 03:00",
        "2025-03-03 01:00",
        "2025-12-04",  # or the twelfth of April
        "2025-04-12",
        "2024-01-11",  # no such year in the text
        "2025-03-03Z",
        "\u0662\u0660\u0662\u0665-03-03",
        float("inf"),
        10**400,
    ],
    ids=repr,
)
def test_i1_what_is_only_like_it_is_not(value: Any) -> None:
    assert not is_named(value, SAID)


@given(
    value=st.text(max_size=12) | st.floats() | st.integers() | st.none() | st.booleans(),
    said=st.text(max_size=60),
)
def test_i1_it_is_total_and_what_is_named_stands_there(value: Any, said: str) -> None:
    if is_named(value, said) and isinstance(value, str) and not value[:4].isdigit():
        assert value in unicodedata.normalize("NFC", " ".join(said.split())) or value in said


_WORD = st.text(alphabet="abcxyzABC019.@-_/", min_size=2, max_size=10)
_GLUE = st.sampled_from(list("abz09.@-_/\\%#:,'!;|^~{}\u2019\u00b7\u0301\u200b"))


@given(value=_WORD, glue=_GLUE, before=st.booleans())
def test_i1_a_part_of_a_longer_word_is_not_named(value: str, glue: str, before: bool) -> None:
    longer = f"x{glue}{value}" if before else f"{value}{glue}x"
    assume(f" {value} " not in f" {longer} ")
    assert not is_named(value, f"take {longer} now")


@given(value=_WORD, other=_WORD)
def test_i1_no_spelling_of_a_named_value_is_named_but_itself(value: str, other: str) -> None:
    assume(other not in value)
    assert is_named(other, f"take it to ({value}) now") is (other == value and is_named(value, f"({value})"))


WHOLES = (
    "Pay 12,500.00 or 1.234.567,80 or 50,75 or 12'345 or 98\u2019765 or 44 500 or 33\u202f700,50 or "
    "1 222 333 to o'brien@firm.example, d\u2019angelo@pec.example; info!rossi@a.example or "
    "mario|verdi@a.example or b{neri@a.example. See https://a.example/atti;id=5, https://a.example/b!c or "
    "https://a.example/d(1)."
)


@pytest.mark.parametrize(
    "value",
    [
        "12,500.00",
        "1.234.567,80",
        "50,75",
        "12'345",
        "44 500",
        "33 700,50",
        "1 222 333",
        50.75,
        1234567.8,
        "o'brien@firm.example",
        "d’angelo@pec.example",
        "info!rossi@a.example",
        "https://a.example/atti;id=5",
        "https://a.example/d(1)",
    ],
)
def test_the_whole_that_was_written_is_named(value: Any) -> None:
    assert is_named(value, WHOLES)


@pytest.mark.parametrize(
    "value",
    [
        "500.00",
        "12",
        "12,500",
        "567,80",
        "234",
        "1.234",
        "50",
        "75",
        "345",
        "765",
        "98",
        "44",
        "500",
        500,
        44,
        "33",
        "700,50",
        700.5,
        "222",
        "1 222",
        "222 333",
        "333",
        333,
        12,
        75,
        "brien@firm.example",
        "angelo@pec.example",
        "rossi@a.example",
        "verdi@a.example",
        "neri@a.example",
        "https://a.example/atti",
        "https://a.example/b",
        "https://a.example/d",
    ],
)
def test_i1_a_piece_of_what_was_written_is_not_named(value: Any) -> None:
    """A sign or a space that joins two figures, or any sign between two letters, makes one of them."""
    assert not is_named(value, WHOLES)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("Anna", "Anna's calendar"),
        ("a@x.example", '["a@x.example","b@x.example"]'),
        ("b@x.example", '["a@x.example","b@x.example"]'),
        ("Marco", "(Marco, Anna)"),
        ("Marco", "Marco!? No"),
        ("500", "12, 500"),
        ("50", "\u20ac50"),
        ("2025-03-03 09:30", "2025-03-03 09:30 3"),
    ],
)
def test_what_stands_by_itself_is_named(value: str, said: str) -> None:
    assert is_named(value, said)


MANY = 1 << 18


@pytest.mark.parametrize(
    ("value", "said"),
    [("ab", "ab" * MANY), ("a" * MANY, "a" * 2 * MANY), (1, "1 " * MANY), ("..", ";." * MANY)],
    ids=["short", "long", "numbers", "signs"],
)
def test_a_value_is_sought_in_linear_time(value: Any, said: str) -> None:
    """Quadratic, any of these takes minutes, on the thread that serves everybody."""
    begun = process_time()
    assert not is_named(value, said)
    assert process_time() - begun < 5


def test_i12_what_was_read_here_is_forgotten_with_its_task(make_world: Any) -> None:
    kept = [each for each in vars(named).values() if hasattr(each, "cache_info")]
    with make_world().perimeter.task(SAID) as task:
        for value in ("2025-03-03T09:30", 98.7, "Marco"):
            assert is_named(value, task.ledger.known(task.mark).said)
        assert all(each.cache_info().currsize for each in kept)
    assert [each.cache_info().currsize for each in kept] == [0, 0, 0, 0]
