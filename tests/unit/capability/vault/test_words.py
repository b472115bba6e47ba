# SPDX-License-Identifier: Apache-2.0
"""Words of the index and of a query: one rule of sameness, nothing readable, no syntax from outside (I12)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.capability.vault.words import MOST_WORDS, Terms, parse_query, stems

TERMS = Terms(bytes(range(32)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("dell'avvocato", "avvocati"),
        ("città", "CITTA"),
        ("licenziamento", "licenziamenti"),
        ("fatture", "fattura"),
        ("tenants", "tenant"),
        ("9 aprile 2026", "09/04/2026"),
        ("1.250,00", "1250"),
    ],
)
def test_forms_of_one_word_are_one_term(one: str, other: str) -> None:
    assert stems(one)[-1] == stems(other)[-1]
    assert TERMS.row(one)[0].split()[-1] == TERMS.row(other)[0].split()[-1]


def test_the_parts_of_a_date_can_be_found_by_themselves() -> None:
    parts = TERMS.row("2026-04-09")[1].split()
    assert {TERMS.row(word)[0] for word in ("aprile", "April", "2026", "9")} <= set(parts)


def test_a_query_is_words_pairs_and_phrases() -> None:
    query = parse_query('la lettera di "giusta causa" del Rossi')
    assert query.words == (stems("lettera"), stems("giusta"), stems("causa"), stems("Rossi"))
    assert query.pairs == (stems("giusta causa"),), "words that a stop word divides are no pair"
    assert query.phrases == (stems("giusta causa"),)


@pytest.mark.parametrize("quoted", ["“giusta causa”", "«giusta causa»", '"giusta causa"'])
def test_every_kind_of_quotes_makes_a_phrase(quoted: str) -> None:
    assert parse_query(quoted).phrases == (stems("giusta causa"),)


@given(st.text(max_size=400))
def test_i12_whatever_a_text_says_its_terms_are_hex_digits(text: str) -> None:
    """So no text can be an operator, a quote or a column of the database, and none can be read in it."""
    words, parts = TERMS.row(text)
    assert set(words + parts) <= set("0123456789abcdef ")
    assert all(len(term) == 12 for term in (words + " " + parts).split())
    query = parse_query(text)
    assert len(query.words) <= MOST_WORDS
    assert len(query.pairs) <= MOST_WORDS


def test_another_key_gives_other_terms() -> None:
    assert Terms(b"k" * 32).row("Rossi") != TERMS.row("Rossi")
    assert "k" not in repr(Terms(b"k" * 32)).lower().replace("<terms>", "")
