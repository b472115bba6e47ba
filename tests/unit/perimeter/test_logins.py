# SPDX-License-Identifier: Apache-2.0
"""I5: which request gets a credential, and what counts as holding one.

Whole runtimes with servers are in `tests/adversarial/test_logins.py`.
"""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.ports import Credential
from runner.kernel.web import Login, Place, Url
from runner.perimeter.logins import NOBODY, Logins

TOKEN: Final = "kT9/mq+Zr4==wLx7Uv2N_pe.Hs8"
LOGIN: Final = Login(credential="env:TOKEN")


def logins(value: str = f"Bearer {TOKEN}", **place: Any) -> Logins:
    where = Place(**{"host": "a.example.org", "login": LOGIN, **place})
    return Logins(by_place={where: Credential(header="Authorization", value=value)})


def url(**parts: Any) -> Url:
    return Url(**{"scheme": "https", "host": "a.example.org", "port": 443, "path": "/x/y", **parts})


ELSEWHERE: Final[dict[str, Url]] = {
    "another port": url(port=8443),
    "another host": url(host="b.example.org"),
    "below it": url(host="a.a.example.org"),
    "above it": url(host="example.org"),
    "plain http": url(scheme="http", port=80),
    "plain http at its port": url(scheme="http"),
    "another path": url(path="/xy"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("plain", [False, True])
def test_i5_a_credential_is_for_one_host_and_port_by_https(name: str, *, plain: bool) -> None:
    """Even where a place were to hold plain http, or an ending: neither gets past a profile."""
    held = logins(paths=("/x",), plain=plain)
    assert held.credential_for(ELSEWHERE[name]) is None
    assert held.credential_for(url()) is not None
    assert logins(host="*.example.org").credential_for(url()) is None


@given(st.text(max_size=200), st.text(max_size=200))
def test_i5_a_credential_in_the_middle_of_any_text_is_seen(before: str, after: str) -> None:
    assert logins().stand_in(before + TOKEN + after)
    assert logins().stand_in(whole=before + TOKEN + after)
    assert not NOBODY.stand_in(before + TOKEN + after)


@given(st.text(max_size=400))
def test_any_other_text_holds_none(text: str) -> None:
    assert logins().stand_in(text, whole=text) == (TOKEN in text)


@pytest.mark.parametrize("value", ["Basic !", "Basic /w==", "Basic Og==", "Basic ", "key", "Basic bWU6"])
def test_a_login_that_says_little_is_looked_for_as_it_stands(value: str) -> None:
    """What is no user and password, or an empty one, matches no page by being empty."""
    assert not logins(value).stand_in("hello", whole="hello")
    assert logins(value).stand_in(f"it was {value}")


def test_i5_no_repr_shows_a_credential() -> None:
    assert TOKEN not in repr(logins())
