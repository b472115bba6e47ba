# SPDX-License-Identifier: Apache-2.0
"""Words: one spelling for one meaning, in Italian and English."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.language import MIN_STEM, fold, forms, how_many, query_words, stem, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L'udienza è fissata", ["L", "udienza", "è", "fissata"]),
        ("dell’atto_di.citazione", ["dell", "atto", "di", "citazione"]),
        ("perche\u0301 no", ["perche\u0301", "no"]),
        ("R.G. 1234/2023, art.2043", ["R", "G", "1234/2023", "art", "2043"]),
        ("il 12 marzo 2024.", ["il", "12 marzo 2024"]),
        ("On March 12, 2024 at 9:30", ["On", "March 12, 2024", "at", "9:30"]),
        ("€ 1.500,00 al mese", ["€", "1.500,00", "al", "mese"]),
        ("Ελλάδα Москва 東京", ["Ελλάδα", "Москва", "東京"]),
        ("", []),
    ],
)
def test_tokens_are_words_numbers_and_dates(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    "date", ["12/03/2024", "12.3.2024", "2024-03-12", "12 marzo 2024", "March 12, 2024", "12 March 2024"]
)
def test_a_date_has_one_spelling(date: str) -> None:
    assert forms(date) == ("2024-03-12", "12", "2024", "marzo", "march")


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("1.500,00", "1500"),
        ("1,500.00", "1500"),
        ("1500", "1500"),
        ("12,50", "12.50"),
        ("1.234.567", "1234567"),
        ("1234/2023", "1234/2023"),
        ("99/99/2024", "99/99/2024"),
        ("€", "euro"),
    ],
)
def test_a_number_has_one_spelling(number: str, expected: str) -> None:
    assert forms(number)[0] == expected


def test_a_months_name_is_known_in_both_languages_but_may_is_a_verb() -> None:
    assert forms("Marzo") == ("marzo", "march")
    assert forms("may") == ("may",)
    assert forms("maggio") == ("maggio",)


@pytest.mark.parametrize(
    "family",
    [
        ("udienza", "udienze"),
        ("contratto", "contratti", "contrattuale"),
        ("notifica", "notificata", "notificazione", "notification"),
        ("pagamento", "pagamenti", "pagare", "pagato"),
        ("banca", "banche"),
        ("avvocato", "avvocati"),
        ("termine", "termini"),
        ("contract", "contracts"),
        ("hearing", "hearings"),
        ("party", "parties"),
        ("deadline", "deadlines"),
        ("sign", "signed", "signing"),
    ],
)
def test_the_forms_of_a_word_share_a_stem(family: tuple[str, ...]) -> None:
    assert len({stem(word) for word in family}) == 1


def test_other_words_keep_other_stems() -> None:
    words = [
        "udienza",
        "contratto",
        "sentenza",
        "ricorso",
        "locazione",
        "termine",
        "hearing",
        "lease",
        "appeal",
    ]
    assert len({stem(word) for word in words}) == len(words)


def test_case_and_accents_fold_away() -> None:
    assert fold("PERCHÉ") == fold("perche\u0301") == "perche"
    assert fold("Straße") == "strasse"
    assert fold("ﬁrma") == "firma"


def test_a_query_loses_its_common_words_unless_it_has_no_other() -> None:
    assert query_words("Quando è l'udienza del signor Rossi?", 9) == ("udienza", "signor", "rossi")
    assert query_words("When is the hearing?", 9) == ("hearing",)
    assert query_words("che cosa è", 9) == ("che", "cosa", "e")
    assert query_words("uno due tre quattro cinque", 2) == ("due", "tre")
    assert query_words("?!", 9) == ()


@given(text=st.text())
def test_words_are_total_and_stems_are_beginnings(text: str) -> None:
    for token in tokens(text):
        assert forms(token)[0]
        for word in forms(token):
            root = stem(word)
            assert word.startswith(root)
            assert len(root) >= min(len(word), MIN_STEM)


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (2000, "2,000 files")]
)
def test_a_count_is_put_into_words(count: int, said: str) -> None:
    assert how_many(count, "file") == said
