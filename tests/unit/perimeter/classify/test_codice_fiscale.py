# SPDX-License-Identifier: Apache-2.0
"""I6: the quick check of a codice fiscale says what python-stdnum says, of every candidate of its shape."""

from hypothesis import given
from hypothesis import strategies as st
from stdnum.it import codicefiscale

from runner.perimeter.classify.checks import codice_fiscale_in_any_case

OMO = "[0-9LMNPQRSTUV]"
SHAPED = st.from_regex(f"[A-Z]{{6}}{OMO}{{2}}[ABCDEHLMPRST]{OMO}{{2}}[A-Z]{OMO}{{3}}", fullmatch=True)


@given(SHAPED)
def test_the_check_accepts_what_the_reference_accepts(code: str) -> None:
    right = code + codicefiscale.calc_check_digit(code)
    wrong = code + chr((ord(right[-1]) - 64) % 26 + 65)
    assert (codice_fiscale_in_any_case(right) == len(right)) == codicefiscale.is_valid(right)
    assert codice_fiscale_in_any_case(wrong) == 0


@given(st.text(st.characters(max_codepoint=127), min_size=1, max_size=24))
def test_of_anything_else_it_says_no_and_does_not_fail(text: str) -> None:
    if any(map(str.isalnum, text)):
        assert codice_fiscale_in_any_case(text) in (0, len(text))


def test_a_known_code_and_one_of_a_day_that_never_was() -> None:
    assert codice_fiscale_in_any_case("RSSMRA80A01F205X") == 16
    never = "RSSMRA80B30F205"
    assert codice_fiscale_in_any_case(never + codicefiscale.calc_check_digit(never)) == 0
