# SPDX-License-Identifier: Apache-2.0
"""I1: one strict reading of an address, which refuses what two readers could read in two ways."""

from typing import Final
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runner.kernel.web import Place, follow, is_host, parse_url, place_of

PLAIN: Final = {
    "https://www.example.org": "https://www.example.org/",
    "https://www.example.org/": "https://www.example.org/",
    "https://www.example.org:443/a": "https://www.example.org/a",
    "https://www.example.org:8443/a": "https://www.example.org:8443/a",
    "http://www.example.org:80/a": "http://www.example.org/a",
    "https://www.example.org?q=1": "https://www.example.org/?q=1",
    "https://www.example.org/a/b;c=1?q=%2e%2e/..&r=@#part": "https://www.example.org/a/b;c=1?q=%2e%2e/..&r=@",
    "https://www.example.org/uri-res/N2Ls?urn:nir:stato:legge:1990-08-07;241!vig=": (
        "https://www.example.org/uri-res/N2Ls?urn:nir:stato:legge:1990-08-07;241!vig="
    ),
    "https://xn--80ak6aa92e.example.org/": "https://xn--80ak6aa92e.example.org/",
    "https://a.example.org/caff%C3%A8".replace("%C3", "%c3"): "https://a.example.org/caff%c3%A8",
}
UNUSUAL: Final = {
    "a user": "https://www.example.org@evil.example/",
    "a user and a password": "https://a:b@www.example.org/",
    "a user after a port": "https://www.example.org:443@evil.example/",
    "a backslash for the user": "https://www.example.org\\@evil.example/",
    "a backslash in the path": "https://www.example.org/a\\b",
    "a backslash for the slashes": "https:\\\\www.example.org/",
    "one slash": "https:/www.example.org/",
    "three slashes": "https:///www.example.org/",
    "no scheme": "www.example.org/",
    "another scheme": "ftp://www.example.org/",
    "a file": "file:///etc/passwd",
    "data": "data:text/html,hello",
    "capitals in the scheme": "HTTPS://www.example.org/",
    "capitals in the host": "https://WWW.example.org/",
    "a tab": "https://www.exam\tple.org/",
    "a line": "https://www.example.org/\nHost: evil.example",
    "a carriage return": "https://www.example.org/\r",
    "white space before": " https://www.example.org/",
    "white space after": "https://www.example.org/ ",
    "white space in the path": "https://www.example.org/a b",
    "nothing seen": "https://www.example\u200b.org/",
    "a soft hyphen": "https://www.exam\u00adple.org/",
    "letters of another alphabet": "https://www.ex\u0430mple.org/",
    "a full width dot": "https://www\uff0eexample.org/",
    "an ideographic stop": "https://www\u3002example.org/",
    "a letter with an accent in the path": "https://www.example.org/caff\u00e8",
    "a dot at the end": "https://www.example.org./",
    "an empty label": "https://www..example.org/",
    "a dot first": "https://.example.org/",
    "a hyphen at an edge": "https://-www.example.org/",
    "an underscore": "https://a_b.example.org/",
    "one label": "https://localhost/",
    "a number": "https://2130706433/",
    "numbers with dots": "https://127.0.0.1/",
    "two numbers": "https://127.1/",
    "an octal number": "https://0177.0.0.01/",
    "a hexadecimal number": "https://0x7f.0x0.0x0.0x1/",
    "one hexadecimal number": "https://0x7f000001/",
    "a name that ends in a number": "https://www.example.1/",
    "a name that ends in hexadecimal": "https://www.example.0x1/",
    "loopback of IPv6": "https://[::1]/",
    "mapped": "https://[::ffff:127.0.0.1]/",
    "a zone": "https://[fe80::1%25eth0]/",
    "an empty port": "https://www.example.org:/",
    "port nought": "https://www.example.org:0/",
    "a port with a nought before": "https://www.example.org:0443/",
    "a port that is too large": "https://www.example.org:65536/",
    "a port with a sign": "https://www.example.org:+443/",
    "a port in other digits": "https://www.example.org:\u0664\u0664\u0663/",
    "an escape in the host": "https://www%2eexample.org/",
    "a broken escape": "https://www.example.org/%2",
    "dots": "https://www.example.org/a/../b",
    "one dot": "https://www.example.org/./b",
    "dots at the end": "https://www.example.org/a/..",
    "dots in escapes": "https://www.example.org/a/%2e%2e/b",
    "dots in escapes of escapes": "https://www.example.org/a/%252e%252e/b",
    "dots with a parameter": "https://www.example.org/a/..;x/b",
    "a slash in escapes": "https://www.example.org/a%2fb",
    "a backslash in escapes": "https://www.example.org/a%5Cb",
    "a control in escapes": "https://www.example.org/a%00b",
    "a line in escapes": "https://www.example.org/a%0d%0ab",
    "a dot in too many bytes": "https://www.example.org/%c0%ae%c0%ae/",
    "a dot in three bytes": "https://www.example.org/docs/%e0%80%ae%E0%80%AE/x",
    "a dot in four bytes": "https://www.example.org/docs/%f0%80%80%ae/x",
    "a dot of full width": "https://www.example.org/docs/%ef%bc%8e%ef%bc%8e/x",
    "a slash of full width": "https://www.example.org/docs/a%EF%BC%8Fx",
    "dots and an escaped semicolon": "https://www.example.org/docs/..%3b/x",
    "dots and a space": "https://www.example.org/docs/..%20/x",
    "two slashes first": "https://www.example.org//evil.example/",
    "brackets": "https://www.example.org/a[1]",
    "a long name": f"https://{'a' * 64}.example.org/",
    "long": f"https://www.example.org/{'a' * 2048}",
    "nothing": "",
}


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_address_is_read_and_has_one_spelling(text: str) -> None:
    url = parse_url(text)
    assert url is not None
    assert str(url) == PLAIN[text]
    assert parse_url(str(url)) == url
    assert (url.address.host, url.address.port) == (urlsplit(text).hostname, url.port)


@pytest.mark.parametrize("name", UNUSUAL)
def test_i1_what_is_unusual_is_refused(name: str) -> None:
    assert parse_url(UNUSUAL[name]) is None


@given(text=st.text(alphabet="htps:/.@\\#?%2eE[]0x1aé -\t", max_size=40).map("https://".__add__) | st.text())
@example(text="https://a.b@c.d/")
@example(text="https://a.b/\\c")
def test_i1_what_is_read_another_reader_reads_alike(text: str) -> None:
    """Total; and where it reads an address, the standard library finds the same host, port and target."""
    url = parse_url(text)
    if url is None:
        return
    other = urlsplit(text)
    assert (other.scheme, other.hostname, other.username, other.password) == (
        url.scheme,
        url.host,
        None,
        None,
    )
    assert (other.port or url.port, other.path or "/") == (url.port, url.path)
    assert other.query == url.query.removeprefix("?")


@given(base=st.sampled_from(list(PLAIN)), reference=st.text(max_size=40) | st.text("./?#:a", max_size=12))
def test_i1_where_a_reference_leads_is_a_plain_address_or_nowhere(base: str, reference: str) -> None:
    start = parse_url(base)
    assert start is not None
    url = follow(start, reference)
    assert url is None or parse_url(str(url)) == url


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("/c?d", "https://www.example.org/c?d"),
        ("c", "https://www.example.org/a/c"),
        ("../c", "https://www.example.org/c"),
        ("../../../c", "https://www.example.org/c"),
        ("./", "https://www.example.org/a/"),
        ("..", "https://www.example.org/"),
        ("?x", "https://www.example.org/a/b?x"),
        ("#x", "https://www.example.org/a/b?q"),
        ("//other.example/x", "https://other.example/x"),
        ("http://other.example/x", "http://other.example/x"),
        ("c?../..", "https://www.example.org/a/c?../.."),
        ("javascript:alert(1)", None),
        ("mailto:a@b.example", None),
        ("/\\evil.example", None),
        ("///evil.example", None),
        ("/..//evil.example", None),
        ("https://www.example.org@evil.example/", None),
        ("http:c", None),
    ],
)
def test_i1_a_reference_is_followed_as_browsers_do_or_not_at_all(
    reference: str, expected: str | None
) -> None:
    base = parse_url("https://www.example.org/a/b?q")
    assert base is not None
    url = follow(base, reference)
    assert (None if url is None else str(url)) == expected


PLACES: Final = {
    "name": (Place(host="a.example.org"), "https://a.example.org/x"),
    "ending": (Place(host="*.example.org"), "https://deep.a.example.org/"),
    "path": (Place(host="a.example.org", paths=("/docs",)), "https://a.example.org/docs/x"),
    "the path itself": (Place(host="a.example.org", paths=("/docs",)), "https://a.example.org/docs?x"),
    "port": (Place(host="a.example.org", port=8443), "https://a.example.org:8443/"),
    "plain": (Place(host="a.example.org", plain=True), "http://a.example.org/"),
}
OUTSIDE: Final = {
    "another name": (Place(host="a.example.org"), "https://b.example.org/"),
    "a name below": (Place(host="a.example.org"), "https://x.a.example.org/"),
    "a name that ends alike": (Place(host="a.example.org"), "https://evila.example.org/"),
    "a name that begins alike": (Place(host="a.example.org"), "https://a.example.org.evil.example/"),
    "the ending itself": (Place(host="*.example.org"), "https://example.org/"),
    "what ends alike": (Place(host="*.example.org"), "https://evilexample.org/"),
    "another path": (Place(host="a.example.org", paths=("/docs",)), "https://a.example.org/x/docs"),
    "a path that begins alike": (
        Place(host="a.example.org", paths=("/docs",)),
        "https://a.example.org/docs2",
    ),
    "another port": (Place(host="a.example.org"), "https://a.example.org:8443/"),
    "the usual port": (Place(host="a.example.org", port=8443), "https://a.example.org/"),
    "plain": (Place(host="a.example.org"), "http://a.example.org/"),
    "https at the port of http": (Place(host="a.example.org", plain=True), "https://a.example.org:80/"),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_place_holds_what_it_names(name: str) -> None:
    place, text = PLACES[name]
    url = parse_url(text)
    assert url is not None
    assert place_of(url, [Place(host="z.example"), place]) == place


@pytest.mark.parametrize("name", OUTSIDE)
def test_i1_a_place_holds_nothing_else(name: str) -> None:
    place, text = OUTSIDE[name]
    url = parse_url(text)
    assert url is not None
    assert place_of(url, [place]) is None
    assert place_of(url, []) is None


def test_a_name_goes_before_an_ending() -> None:
    """What a grant names is no content; below an ending, whoever writes the address chooses."""
    url = parse_url("https://a.example.org/")
    assert url is not None
    one, many = Place(host="a.example.org"), Place(host="*.example.org")
    assert place_of(url, [many, one]) == one


@pytest.mark.parametrize(
    "text", ["*", "*.", "*.*.example.org", "a.*.org", "*example.org", "example", "A.example.org", "10.0.0.1"]
)
def test_i1_a_grant_names_a_host_or_an_ending_and_nothing_else(text: str) -> None:
    assert not is_host(text)


def test_people_leave_out_what_is_always_the_same() -> None:
    url = parse_url("https://www.example.org/")
    assert url is not None
    assert set(url.spellings) == {
        "https://www.example.org/",
        "https://www.example.org",
        "www.example.org/",
        "www.example.org",
    }
