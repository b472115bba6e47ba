# SPDX-License-Identifier: Apache-2.0
"""P1, I12: a page is text within bounds, as a reader sees it, or a refusal that quotes nothing."""

import gzip
import time
import tracemalloc
import zlib
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.capability.tools.htmltext import MOST_LINKS, text_of_page
from runner.capability.tools.markup import End, Start, pieces_of
from runner.capability.tools.web import MAX_TEXT_BYTES, SHOWN, WebFetch
from runner.kernel.errors import ToolError
from runner.kernel.inference import Answer
from runner.kernel.ports import GrantedCall, ToolOutput
from runner.kernel.web import Url, parse_url

HTML: Final = "text/html; charset=utf-8"
CANARY: Final = "wombatword"


def url(text: str = "https://www.example.org/a/b") -> Url:
    found = parse_url(text)
    assert found is not None
    return found


def read(body: bytes | str, *headers: tuple[str, str], kind: str | None = HTML, **more: Any) -> ToolOutput:
    data = body.encode() if isinstance(body, str) else body
    named = (*((("content-type", kind),) if kind is not None else ()), *headers)
    answer = Answer(status=more.pop("status", 200), body=data, headers=named)
    return WebFetch().read(GrantedCall(arguments={"url": str(url()), **more}, roots=()), url(), answer)


def lines(body: bytes | str, *headers: tuple[str, str], kind: str = HTML) -> list[str]:
    return [excerpt.text for excerpt in read(body, *headers, kind=kind).excerpts]


def test_p1_the_request_is_the_same_for_whatever_page() -> None:
    """Nothing of a task, a user or a machine rides on it."""
    first, second = WebFetch().request(url()), WebFetch().request(url("https://b.example.org/?q"))
    assert (first.method, first.path, first.body) == ("GET", "/a/b", b"")
    assert second.path == "/?q"
    assert first.headers == second.headers
    assert {name for name, _ in first.headers} == {"Accept", "Accept-Encoding", "User-Agent"}


# --- what is a page ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "text/html",
        "TEXT/HTML; Charset=UTF-8",
        "application/xhtml+xml",
        "text/plain",
        "text/markdown",
        "application/json",
        "application/ld+json",
        "text/xml",
        "application/atom+xml",
    ],
)
def test_text_is_read(kind: str) -> None:
    assert lines("hello", kind=kind) == ["hello"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("application/pdf", "PDF"),
        ("image/png", "no page of text"),
        ("application/octet-stream", "no page of text"),
        ("text/css", "no page of text"),
        ("application/javascript", "no page of text"),
        (f"x/{CANARY}", "no page of text"),
        ("text/html, text/plain", "no page of text"),
        ("text", "no page of text"),
        ("", "no page of text"),
        (None, "no page of text"),
    ],
    ids=str,
)
def test_i12_what_is_no_text_is_refused(kind: str | None, said: str) -> None:
    with pytest.raises(ToolError, match=said) as caught:
        read("hello", kind=kind)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("status", [201, 204, 206, 300, 304, 400, 401, 403, 404, 429, 500, 503])
def test_i12_an_answer_that_is_no_page_is_its_status(status: int) -> None:
    with pytest.raises(ToolError, match=f"answered {status}") as caught:
        read(CANARY, status=status)
    assert CANARY not in str(caught.value)


# --- compression ------------------------------------------------------------------------------------------


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
        ("identity", bytes),
    ],
    ids=["gzip", "x-gzip", "capitals", "zlib", "raw", "identity"],
)
def test_a_packed_page_is_unpacked(coding: str, pack: Any) -> None:
    assert lines(pack(b"<p>hello"), ("content-encoding", coding)) == ["hello"]


BOMB: Final = gzip.compress(b"<p>" + b"a" * (200 << 20))
"""200 MiB in 200 KB."""


@pytest.mark.parametrize(
    "pack", ["gzip", "deflate", "gzip, gzip", "br", "zstd", "compress", "gzip "], ids=str
)
def test_i12_a_bomb_is_refused_before_it_is_unpacked(pack: str) -> None:
    data = zlib.compress(b"a" * (50 << 20)) if pack == "deflate" else BOMB
    tracemalloc.start()
    try:
        with pytest.raises(ToolError, match=r"larger than 2 MiB|way that is not read"):
            read(data, ("content-encoding", pack))
        assert tracemalloc.get_traced_memory()[1] < 8 * MAX_TEXT_BYTES
    finally:
        tracemalloc.stop()


def test_a_page_has_a_greatest_size_packed_or_not() -> None:
    most = b"a " * (MAX_TEXT_BYTES // 2)
    assert read(most, kind="text/plain").excerpts
    assert read(gzip.compress(most), ("content-encoding", "gzip"), kind="text/plain").excerpts
    for data, headers in ((most + b"a", ()), (gzip.compress(most + b"a"), (("content-encoding", "gzip"),))):
        with pytest.raises(ToolError, match="larger"):
            read(data, *headers, kind="text/plain")


@pytest.mark.parametrize(
    "data",
    [b"hello", gzip.compress(b"hello")[:-4], gzip.compress(b"hello") + b"more", b"", zlib.compress(b"x")[2:]],
    ids=["not packed", "cut off", "more behind it", "nothing", "another packing"],
)
def test_what_is_not_packed_as_said_is_refused(data: bytes) -> None:
    with pytest.raises(ToolError, match="not compressed as its host says"):
        read(data, ("content-encoding", "gzip"))


def test_two_codings_are_one_too_many() -> None:
    with pytest.raises(ToolError, match="way that is not read"):
        read(b"x", ("content-encoding", "gzip"), ("content-encoding", "gzip"))


# --- character sets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("caffè €".encode(), "text/plain; charset=utf-8"),
        ("caffè €".encode(), "text/plain"),
        ("caffè €".encode("cp1252"), "text/plain"),
        ("caffè €".encode("cp1252"), "text/plain; charset=iso-8859-1"),
        ("caffè €".encode("iso8859-15"), 'text/plain; charset="ISO-8859-15"'),
        ("caffè €".encode("utf-16"), "text/plain; charset=us-ascii"),
        (b"\xef\xbb\xbf" + "caffè €".encode(), "text/plain; charset=windows-1252"),
        ("<meta charset=windows-1252>caffè €".encode("cp1252"), "text/html"),
        ("<meta http-equiv=x content='a; charset=iso-8859-15'>caffè €".encode("iso8859-15"), "text/html"),
        (
            '<?xml version="1.0" encoding="iso-8859-15"?><a>caffè €'.encode("iso8859-15"),
            "application/xhtml+xml",
        ),
    ],
    ids=range(10),
)
def test_a_page_is_read_in_its_own_characters(data: bytes, kind: str) -> None:
    assert lines(data, kind=kind) == ["caffè €"]


@pytest.mark.parametrize(
    "name", ["utf-7", "hz-gb-2312", "rot13", "hex", "idna", "unicode_escape", "x" * 40, CANARY]
)
def test_i12_a_character_set_that_is_not_on_the_list_is_refused(name: str) -> None:
    """`utf-7`, and codecs that are none, would show a model what no detector was shown."""
    with pytest.raises(ToolError, match="character set") as caught:
        read(b"+ADw-", kind=f"text/html; charset={name}")
    assert name not in str(caught.value)


def test_bytes_that_are_no_characters_are_shown_as_such() -> None:
    assert lines(b"a\xffb", kind="text/plain; charset=utf-8") == ["a\ufffdb"]


# --- HTML ---------------------------------------------------------------------------------------------------

SEEN: Final = {
    "lines": (
        "<h1>One</h1><p>two <b>and</b> three<br>four<li>five",
        ["One", "two and three", "four", "five"],
    ),
    "cells": ("<table><tr><td>a<td>b<tr><td>c</table>", ["a b", "c"]),
    "references": ("caff&egrave; &amp; &#8364; &lt;b&gt;", ["caffè & € <b>"]),
    "space": ("a\n\n  b\u00a0c\t", ["a b c"]),
    "title": ("<head><title>T &amp; U</title></head><body>x", ["T & U", "x"]),
    "scripts": ("a<script>if (1 < 2) evil()</script>b<style>p{}</style>c", ["abc"]),
    "a script that stays open": ("a<script>evil", ["a"]),
    "a script that ends in a string": ("a<script>'</script>'</script>b", ["a'b"]),
    "comments": ("a<!-- evil -->b<!-- > -->c<!-->d", ["abc"]),
    "declarations": ("<!DOCTYPE html><?xml x?><![CDATA[evil]]>a</ evil>b", ["ab"]),
    "hidden": ("a<p hidden>evil<p>b", ["a", "b"]),
    "hidden by style": ("a<div style='Display : NONE'>evil<div>evil</div></div>b", ["a", "b"]),
    "hidden and nested": ("<div style='visibility:hidden'><p>evil<b>evil</b></p></div>b", ["b"]),
    "templates": ("<template>evil</template><noscript>b</noscript>", ["b"]),
    "frames": ("<iframe src=x>evil</iframe><object>evil</object><svg><text>evil</text></svg>b", ["b"]),
    "an open drawing": ("a<svg><style><path>evil<p>b<svg><svg><desc>evil</p>c", ["a", "b", "c"]),
    "an open formula": ("a<math><style><font>evil<font size=1>b</style>c", ["abc"]),
    "a drawing closed in its tag": ("a<svg/>b<template><svg><p>evil", ["ab"]),
    "a formula": ("<math><mi>x</mi><mo>=</mo><annotation>evil</annotation></math>", ["x="]),
    "what is not seen": ("a\u200bb\u202ec\u00add\U000e0041\ufe0fe", ["abcde"]),
    "an angle": ("1 < 2 and <3", ["1 < 2 and <3"]),
    "a quote in a tag": ("<p title='>evil'>a</p>", ["a"]),
    "an open quote": ("a<p title='>evil", ["a"]),
    "an open tag": ("a<p evil", ["a"]),
    "end tags of nothing": ("</p></div></script>a", ["a"]),
    "alike": ("<SCRIPT>evil</ScRiPt >a", ["a"]),
    "nothing": ("", []),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_page_is_what_its_reader_sees(name: str) -> None:
    markup, expected = SEEN[name]
    assert list(text_of_page(markup, lambda _: None).lines) == expected


def test_links_stand_where_they_are_and_lead_to_plain_pages_only() -> None:
    shown = read(
        "<a href='c?x=1&amp;y'>one</a> <a href='//d.example.org/'>two</a> <a href='javascript:e()'>three</a>"
        " <a href='https://u@evil.example/'>four</a> <a href=#x>five</a> <a hidden href=/evil>six</a>"
        " <a href='c?x=1&amp;y'>seven</a> <a href='/\u202eevil'>eight</a>"
    )
    assert shown.text.splitlines() == [
        "https://www.example.org/a/b",
        "1: one [1] two [2] three four five seven [1] eight",
        "[1] https://www.example.org/a/c?x=1&y",
        "[2] https://d.example.org/",
    ]


def test_a_page_has_a_greatest_number_of_links_and_of_lines() -> None:
    many = read("".join(f"<p><a href=/{number}>x</a>" for number in range(500)))
    assert many.text.count("https://www.example.org/") == MOST_LINKS + 1
    assert len(many.excerpts) == 200
    assert "(lines 201-500 follow: start_line=201)" in many.text
    long = read("word " * 5000, kind="text/plain")
    assert sum(len(each.text) for each in long.excerpts) < SHOWN
    assert max(len(each.text) for each in long.excerpts) <= 400


def test_every_line_can_be_reached() -> None:
    body = "\n".join(f"word{number} " * 50 for number in range(300))
    seen, first = [], 1
    while True:
        found = read(body, kind="text/plain", start_line=first)
        seen += [each.text for each in found.excerpts]
        if "follow: start_line=" not in found.text:
            break
        first = found.excerpts[-1].line + 1
    assert " ".join(seen).split() == body.split()


def test_a_page_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ToolError, match="nested"):
        read("<b>" * 10_000)


HARD: Final = {
    "comments": "<!--",
    "comments that end": "<!-- -->",
    "tags": "<a ",
    "quotes": "<a x='",
    "attributes": "<a b=c d",
    "angles": "<",
    "ends": "</a ",
    "ends of nothing": "</i>",
    "tags and ends": "<b></i>",
    "scripts": "<script></",
    "scripts that end": "<script></script>",
    "declarations": "<!",
    "instructions": "<?",
    "references": "&#",
    "numbers": "&#999999999",
    "links": "<a href=/x>y</a>",
    "slashes": "<a////",
    "space": "<p          ",
}


@pytest.mark.parametrize("name", HARD)
def test_a_page_is_read_in_time_that_grows_with_its_length(name: str) -> None:
    """The standard library's parser takes time by the square: two minutes for 200 KB of open quotes."""
    page = (HARD[name] * MAX_TEXT_BYTES)[: MAX_TEXT_BYTES // 4]
    started = time.process_time()
    with suppress(ToolError):
        text_of_page(page, lambda reference: reference)
    assert time.process_time() - started < 8


def test_a_number_of_absurd_length_is_no_reference() -> None:
    assert text_of_page("a&#" + "9" * 100_000, lambda _: None).lines[0].startswith("a&#99")


@given(markup=st.text() | st.text(alphabet="<>/!-='\"ab &#;?\n", max_size=60))
def test_any_text_is_a_page(markup: str) -> None:
    """Total; and no markup goes lost between the pieces of a text without any."""
    pieces = list(pieces_of(markup))
    text_of_page(markup, lambda reference: reference)
    if "<" not in markup and "&" not in markup:
        assert "".join(piece for piece in pieces if isinstance(piece, str)) == markup
    assert all(piece.tag == piece.tag.lower() for piece in pieces if isinstance(piece, Start | End))


@given(
    body=st.binary(max_size=300),
    kind=st.sampled_from([HTML, "text/html", "text/plain", "application/json"]),
    coding=st.sampled_from([None, "gzip", "deflate", "identity"]),
)
def test_any_answer_is_a_page_or_a_refusal(body: bytes, kind: str, coding: str | None) -> None:
    headers = () if coding is None else (("content-encoding", coding),)
    with suppress(ToolError):
        assert isinstance(read(body, *headers, kind=kind), ToolOutput)
