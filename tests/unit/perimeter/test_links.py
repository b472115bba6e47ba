# SPDX-License-Identifier: Apache-2.0
"""I1: no address that the user did not name goes into a payload unasked, however it is written."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.perimeter.links import addresses_in, leads_where_named


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see http://a.example/x?y=1.", "http://a.example/x?y=1"),
        ("see WWW.A.EXAMPLE, soon", "WWW.A.EXAMPLE"),
        ("see a.example/x", "a.example/x"),
        ("ask bob@a.example!", "bob@a.example"),
        ("see \uff57\uff57\uff57.a.example", "www.a.example"),
        ("see www.a\u3002example", "www.a.example"),
        ("see a.exa\u200bmple", "a.example"),
        ("javascript://a", "javascript://a"),
    ],
)
def test_i1_an_address_is_found_however_it_is_dressed(text: str, found: str) -> None:
    assert found in addresses_in(text)


@pytest.mark.parametrize(
    "text", ["It is 3.5, or 12.30. So.", "a 1/2 b", "", "c. d", "Car Rental\t98.70", "etc."]
)
def test_plain_words_hold_no_address(text: str) -> None:
    assert addresses_in(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "[pay](//203.0.113.5/x)",
        "\\\\203.0.113.5\\share",
        "/\\evil/x",
        "203.0.113.5",
        "203.0.113.5/pay",
        "8.8.8.8/x",
        "8.8.8.8:80",
        "http:203.0.113.5",
        "http:3405803781",
        "see http:/203.0.113.5/x",
        "http&colon;//evil/x",
        "//3405803781/x",
        "//[2001:db8::1]/x",
        "[::1]/x",
        "[here](//evil%2eexample/x)",
        "evil%2eexample",
        "evil%252eexample",
        "evil&period;example",
        "<a href='/evil&#46;example'>",
        "a.example%2enet",
        "bob%40evil",
        "either/evil.example",
        "javascript:go",
        "x" * 70 + "@evil",
    ],
)
def test_i1_a_link_that_the_user_did_not_name_is_found(text: str) -> None:
    assert not leads_where_named(text, "Write to a.example.")


@pytest.mark.parametrize(
    "text",
    [
        "1.2.3.4 del contratto, clausola 10.2.3.4",
        "e/o, and/or, 12/03/2026 alle 10:30",
        "[10:30:00] Oggetto:saluti, data:12/03/2026, Tel:02 1234",
        "1.234.567.890 euro, 1.200.300.000 euro, 50% di A&B, R.G. 1234/2026",
        "S.p.A. e c.p.c., // nota, C: disco",
    ],
)
def test_ordinary_prose_leads_nowhere(text: str) -> None:
    assert leads_where_named(text, "")


SAID = (
    "See https://a.example/x%20y, (anna@x.example), https://b.example/?a=1&copy=2, //c/d and 203.0.113.5/pay."
)


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example/x%20y",
        "[x](https://a.example/x%20y)",
        "(anna@x.example)",
        "https://b.example/?a=1&copy=2.",
        "[x](//c/d)",
        "203.0.113.5/pay",
    ],
)
def test_a_link_that_the_user_named_is_named_with_its_escapes(text: str) -> None:
    assert leads_where_named(text, SAID)


@pytest.mark.parametrize("text", ["https://a.example/x%2520y", "https://a.example/x", "//c/d%2fe"])
def test_i1_a_link_is_not_named_by_what_its_escapes_hide(text: str) -> None:
    assert not leads_where_named(text, SAID)


@given(text=st.text(max_size=60), said=st.text(max_size=20))
def test_i1_it_is_total_and_what_leads_nowhere_needs_no_name(text: str, said: str) -> None:
    assert leads_where_named(text, said) or addresses_in(text)


@pytest.mark.parametrize(
    "piece", ["a.", "a-", "a", "1.", "/", "[a:", "a@", "a_.", "%25", "&#", "http:", "1.2.3.4"]
)
def test_addresses_are_sought_in_linear_time(piece: str) -> None:
    """Quadratic, half a megabyte of these takes minutes, on the thread that serves everybody."""
    begun = process_time()
    leads_where_named(piece * ((1 << 19) // len(piece)), "")
    assert process_time() - begun < 5
