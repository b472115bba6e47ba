# SPDX-License-Identifier: Apache-2.0
"""I5: which request gets a credential, and what counts as holding one.

Whole runtimes with servers are in `tests/adversarial/test_logins.py`.
"""

import base64
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.ports import Credential
from runner.kernel.web import Login, Place, Url
from runner.perimeter.logins import NOBODY, Logins, is_told_apart, stand_in

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


def sent(value: str = f"Bearer {TOKEN}") -> tuple[Credential, ...]:
    return logins(value).every


@given(st.text(max_size=200), st.text(max_size=200))
def test_i5_a_credential_in_the_middle_of_any_text_is_seen(before: str, after: str) -> None:
    assert stand_in(sent(), before + TOKEN + after)
    assert not stand_in(NOBODY.every, before + TOKEN + after)


@given(st.text(max_size=400))
def test_any_other_text_holds_none(text: str) -> None:
    assert stand_in(sent(), text) == (TOKEN in text)


@pytest.mark.parametrize("value", ["Basic !", "Basic /w==", "Basic Og==", "Basic ", "key", "Basic bWU6"])
def test_a_login_that_says_little_is_looked_for_as_it_stands(value: str) -> None:
    """What is no user and password, or an empty one, matches no page by being empty."""
    assert not stand_in(sent(value), "hello")
    assert stand_in(sent(value), f"it was {value}")
    assert not is_told_apart(value)


SECRET: Final = "s3cr3tAbCdEf0123456789"
LETTERS: Final = "quercia-gialla"
ACCENTED: Final = "p\u00e0ss-quercia"
UUID: Final = "6F9619FF-8B86-D011-B42D-00CF4FC964FF"


def basic(text: str, charset: str = "utf-8") -> str:
    return base64.b64encode(text.encode(charset)).decode()


FORMS: Final[dict[str, tuple[str, str]]] = {
    "a parameter": (f'Token token="{SECRET}"', SECRET),
    "a parameter of letters": (f'Token token="{LETTERS}"', LETTERS),
    "a parameter before others": (f"GenieKey key={SECRET}, v=1", SECRET),
    "behind a user": (f"ApiKey studio:{LETTERS}", LETTERS),
    "behind a user, without a scheme": (f"studio:{LETTERS}", LETTERS),
    "before another word": (f"{SECRET} v1", SECRET),
    "a password": (f"Basic {basic(f'rossi:{LETTERS}')}", LETTERS),
    "a password of words": (f"Basic {basic('rossi:the oak is red')}", "the oak is red"),
    "a password in Latin-1": (f"Basic {basic(f'rossi:{ACCENTED}', 'latin-1')}", ACCENTED),
    "a password without a scheme": (basic(f"rossi:{LETTERS}"), LETTERS),
    "a token for a user": (f"Basic {basic(f'{SECRET}:api')}", SECRET),
    "a token and no password": (f"Basic {basic(f'{LETTERS}:')}", LETTERS),
    "in small letters": (f"Bearer {UUID}", UUID.lower()),
    "without dashes": (f"Bearer {UUID}", UUID.replace("-", "")),
    "with dashes": (f"Bearer {UUID.replace('-', '')}", UUID.lower()),
}


@pytest.mark.parametrize("name", FORMS)
def test_i5_a_credential_is_known_by_its_parts(name: str) -> None:
    value, said = FORMS[name]
    for text in (f"your key is {said}.", base64.b64encode(f"you sent {said}!".encode()).decode()):
        assert stand_in(sent(value), text)


@pytest.mark.parametrize("name", FORMS)
def test_a_page_that_names_the_scheme_the_parameters_or_the_user_passes(name: str) -> None:
    said = "Authorization: Basic, Bearer, Token token=, ApiKey, GenieKey key=, v=1, v1. Hello studio, rossi."
    assert not stand_in(sent(FORMS[name][0]), said, unread=True)


@pytest.mark.parametrize("value", ["hunter2", "key=hunter2", f"Basic {basic('studio-rossi:oak')}"])
def test_a_credential_that_is_too_short_to_be_told_from_a_word_is_known(value: str) -> None:
    assert not is_told_apart(value)


@pytest.mark.parametrize(
    "value", [*(value for value, _ in FORMS.values() if not value.endswith(" v1")), TOKEN]
)
def test_any_usual_credential_is_long_enough(value: str) -> None:
    assert is_told_apart(value)


@pytest.mark.parametrize("at", range(0, 120_000, 7_919))
def test_i5_a_long_text_is_read_to_its_end_and_over_every_edge(at: int) -> None:
    """Encoded, so that only a piece that holds all of it shows it."""
    echo = base64.b64encode(f"Authorization: Bearer {TOKEN}".encode()).decode()
    text = "a line of words.\n" * 8_000
    assert stand_in(sent(), f"{text[:at]} {echo} {text[at:]}")
    assert not stand_in(sent(), f"{text[:at]} {echo[:20]} {text[at:]}", unread=True)


def test_i5_the_edge_of_a_piece_of_a_text_cuts_nothing() -> None:
    """The first piece ends within these places, and they are closer together than an echo is long."""
    echo = base64.b64encode(f"Bearer {TOKEN}".encode()).decode()
    text = "a line of words.\n" * 4_200
    for at in range(66_000, 68_000, len(echo) // 2):
        assert stand_in(sent(), f"{text[:at]} {echo} {text[at:]}")


def test_i5_what_nobody_reads_counts_where_it_is_said_to() -> None:
    packed = TOKEN
    for _ in range(5):
        packed = base64.b64encode(packed.encode()).decode()
    assert stand_in(sent(), packed, unread=True)
    assert not stand_in(sent(), packed)
    assert not stand_in(NOBODY.every, packed, unread=True)


def test_i5_no_repr_shows_a_credential() -> None:
    assert TOKEN not in repr(logins())
