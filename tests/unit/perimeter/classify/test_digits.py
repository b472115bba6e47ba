# SPDX-License-Identifier: Apache-2.0
"""I6: the quick checks of numbers say what python-stdnum says, of every candidate of their shape."""

import pytest
import stdnum.iban
import stdnum.luhn
from hypothesis import given
from hypothesis import strategies as st
from stdnum.it import iva

from runner.perimeter.classify import checks, classify_text

DIGITS = st.text("0123456789", min_size=1, max_size=19)
OFFICE = st.one_of(
    st.integers(0, 999).map("{:03}".format), st.sampled_from(["001", "100", "120", "121", "888", "999"])
)


@given(DIGITS)
def test_luhn_is_as_the_reference_has_it(digits: str) -> None:
    assert checks.luhn(digits) == stdnum.luhn.is_valid(digits)
    assert checks.luhn(digits + stdnum.luhn.calc_check_digit(digits))


@given(st.one_of(st.just("0000000"), st.from_regex("[0-9]{7}", fullmatch=True)), OFFICE)
def test_a_partita_iva_is_as_the_reference_has_it(firm: str, office: str) -> None:
    right = firm + office + stdnum.luhn.calc_check_digit(firm + office)
    for number in (right, right[:-1] + str((int(right[-1]) + 1) % 10)):
        assert checks.partita_iva(number) == 11 * iva.is_valid(number)


@pytest.mark.parametrize("country", sorted(checks.IBAN_BEGINS))
def test_an_iban_is_as_the_reference_has_it(country: str) -> None:
    """Every country of the list, right, with a wrong check digit, and with a sign of a wrong kind."""

    @given(st.from_regex(checks._IBAN_BANKS[country], fullmatch=True), st.integers(0, 9), st.booleans())
    def holds(bank: str, wrong: int, small: bool) -> None:
        right = country + stdnum.iban.calc_check_digits(f"{country}00{bank}") + bank
        length = len(right)
        for each in (right, right[:3] + str(wrong) + right[4:], right[:4] + "?" + right[5:]):
            written = each.lower() if small else each
            expected = stdnum.iban.is_valid(each, check_country=False)
            assert checks.iban(written) == length * expected
        assert checks.iban(right + " ABC") == length

    holds()


@pytest.mark.parametrize("country", sorted(checks.IBAN_BEGINS))
def test_an_iban_of_every_country_is_found(country: str) -> None:
    signs = {"[0-9]": "7", "[A-Z]": "K", "[0-9A-Z]": "7"}
    bank = "".join(signs[kind] for kind in checks._IBANS[country])
    right = country + stdnum.iban.calc_check_digits(f"{country}00{bank}") + bank
    grouped = " ".join(right[at : at + 4] for at in range(0, len(right), 4))
    for written in (right, grouped, grouped.lower()):
        (span,) = classify_text(f"pagare su {written}, grazie").spans
        assert (span.kind, span.end - span.start) == ("iban", len(written))


@pytest.mark.parametrize(
    "written",
    [
        "RSSMRA80A01F205X",
        "RSS MRA 80A01 F205X",
        "RSSMRA 80A01F205X",
        "RSSMRA80A01F205 X",
        "R SSMRA80A01F205X",
        "RSSMR A80A01F205X",
        "RSSMRA8 0A01F205X",
        "RSSMRA\n  80A01F205X",
        "rss mra 80a01 f205x",
    ],
)
def test_a_codice_fiscale_is_found_wherever_it_is_broken(written: str) -> None:
    (span,) = classify_text(f"Il codice ({written}) risulta").spans
    assert (span.kind, span.end - span.start) == ("codice_fiscale", len(written))
