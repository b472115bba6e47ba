# SPDX-License-Identifier: Apache-2.0
"""The tool that reads a page: which bytes ask for it, and what stands in the answer.

Owns the fixed request, which answers are pages, and their text. Pure, as a codec is: it opens nothing, and
has no cookie, no credential and no word of its own to send. Leaves where it may ask, redirects, sending and
the record to the perimeter. Invariants P1 (a page is asked for by the perimeter only) and I12 (a refusal
repeats nothing that a server said).
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from runner.capability.tools.htmltext import Page, seen_line, text_of_page
from runner.capability.tools.pages import (
    LINES_AT_ONCE,
    Piece,
    parse_whole,
    piece_of,
    rest_after,
    split_lines,
)
from runner.kernel.errors import ToolError
from runner.kernel.inference import Answer, WireRequest
from runner.kernel.language import how_many
from runner.kernel.messages import ToolSpec
from runner.kernel.ports import Effect, GrantedCall, ToolOutput
from runner.kernel.web import LONGEST_URL, Url, follow

NAME: Final = "web_fetch"
"""The name by which a profile grants this tool."""
MAX_TEXT_BYTES: Final = 2 << 20
"""Bytes of a page once it is unpacked."""
SHOWN: Final = 8000
"""Characters of one answer."""
_WIDTH: Final = 400
"""Characters of one line."""
_HEADERS: Final = (
    ("Accept", "text/html,application/xhtml+xml,text/plain,text/markdown,application/json,application/xml"),
    ("Accept-Encoding", "gzip, deflate"),
    ("User-Agent", "akaion-runner"),
)
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = frozenset({"text/plain", "text/markdown", "text/xml", "application/xml", "application/json"})
_KIND: Final = re.compile(r"([a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,80})[ \t]*(?:;.*)?", re.IGNORECASE)
_CHARSET: Final = re.compile(r";[ \t]*charset[ \t]*=[ \t]*\"?([a-z0-9_:.-]{1,40})\"?", re.IGNORECASE)
_IN_MARKUP: Final = re.compile(
    rb"<meta[^>]{0,200}?charset[ \t]*=[ \t]*[\"']?([a-z0-9_-]{1,40})"
    rb"|^<\?xml[^>]{0,200}?encoding[ \t]*=[ \t]*[\"']([a-z0-9_-]{1,40})",
    re.IGNORECASE,
)
_LOOKED_AT: Final = 1024
"""Bytes at the beginning of a page in which it may name its character set, as in the HTML standard."""
_CHARSETS: Final = {
    **dict.fromkeys(("utf-8", "utf8"), "utf-8"),
    **dict.fromkeys(("us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252", "cp1252"), "cp1252"),
    "iso-8859-15": "iso8859-15",
    **dict.fromkeys(("utf-16", "utf-16le"), "utf-16-le"),
    "utf-16be": "utf-16-be",
}
_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_FALLBACK: Final = "cp1252"
_NUMBER: Final = re.compile(r"\[([0-9]{1,2})\]")
_PDF: Final = "application/pdf"


class WebFetch:
    """`web_fetch(url, start_line)`: the text of a public page. Implements `WebTool`."""

    effect: Final = Effect.NET
    path_arguments: Final[frozenset[str]] = frozenset()
    url_argument: Final = "url"
    spec: Final = ToolSpec(
        name=NAME,
        description="Read a public web page, given its whole https address.",
        parameters={
            "type": "object",
            "properties": {
                "url": {
                    "type": "string",
                    "maxLength": LONGEST_URL,
                    "description": "https://host/path, exactly as it was given",
                },
                "start_line": {"type": "integer", "minimum": 1, "default": 1},
            },
            "required": ["url"],
            "additionalProperties": False,
        },
    )

    def request(self, url: Url) -> WireRequest:
        """Return the bytes that ask for `url`: the same headers whoever asks, and for whatever."""
        return WireRequest(method="GET", address=url.address, path=url.target, headers=_HEADERS, body=b"")

    def read(self, call: GrantedCall, url: Url, answer: Answer) -> ToolOutput:
        """Return the page's lines, each also as an excerpt; raise `ToolError`."""
        if answer.status != 200:  # noqa: PLR2004 - RFC 9110, section 15.3.1
            raise ToolError(f"the page is not there: its host answered {answer.status}")
        first = parse_whole(call.arguments, "start_line", default=1)
        page = _page(url, answer, _text(answer))
        return _shown(str(url), page.lines, page.links, first)

    def texts(self, url: Url, answer: Answer) -> Sequence[str]:
        """Return the whole text of `answer`, and all that is shown of it; raise `ToolError`."""
        text = _text(answer)
        page = _page(url, answer, text)
        return text, "\n".join((*page.lines, *page.links))

    def run(self, call: GrantedCall) -> ToolOutput:  # noqa: ARG002 - the port
        """Raise `ToolError`: this tool has no way out of its own."""
        raise ToolError(f"{NAME} asks for pages by way of the perimeter only")


def _text(answer: Answer) -> str:
    """Return the whole text of `answer`, markup and all; raise `ToolError`."""
    _, charset = _kind_of(answer)
    return _decoded(_unpacked(answer), charset)


def _page(url: Url, answer: Answer, text: str) -> Page:
    """Return all that is shown of `text`, that of the `answer` of `url`; raise `ToolError`."""
    if _kind_of(answer)[0] in _HTML:
        return text_of_page(text, lambda reference: _link(url, reference))
    return Page(lines=tuple(seen_line(line) for line in split_lines(text)), links=())


def _link(url: Url, reference: str) -> str | None:
    further = follow(url, reference)
    return None if further is None or further == url else str(further)


def _kind_of(answer: Answer) -> tuple[str, str | None]:
    """Return media type and charset of `answer`; raise `ToolError` for what is no text."""
    stated = answer.header("content-type") or ""
    match = _KIND.fullmatch(stated.strip())
    kind = "" if match is None else match.group(1).lower()
    if kind == _PDF:
        raise ToolError("that is a PDF and no page: have it saved in a granted folder, and read it there")
    if kind not in _HTML | _TEXT and not kind.endswith(("+xml", "+json")):
        raise ToolError("that is no page of text: its host calls it something else")
    named = _CHARSET.findall(stated)
    return kind, named[0].lower() if named else None


def _unpacked(answer: Answer) -> bytes:
    """Return the body of `answer` as it was before it was compressed, at most `MAX_TEXT_BYTES`."""
    codings = [value.strip().lower() for name, value in answer.headers if name == "content-encoding"]
    match codings:
        case [] | ["identity"]:
            body = answer.body
        case ["gzip" | "x-gzip"]:
            body = _inflated(answer.body, 16 + zlib.MAX_WBITS)
        case ["deflate"]:
            zipped = answer.body[:1] and answer.body[0] & 0x0F == zlib.DEFLATED
            body = _inflated(answer.body, zlib.MAX_WBITS if zipped else -zlib.MAX_WBITS)
        case _:
            raise ToolError("that page is compressed in a way that is not read")
    if len(body) > MAX_TEXT_BYTES:
        raise ToolError(f"that page is larger than {MAX_TEXT_BYTES >> 20} MiB")
    return body


def _inflated(body: bytes, bits: int) -> bytes:
    """Return `body` unpacked, one byte beyond what is read at most; raise `ToolError` if it is not whole."""
    unpacker = zlib.decompressobj(bits)
    try:
        data = unpacker.decompress(body, MAX_TEXT_BYTES + 1)
    except zlib.error:
        raise ToolError("that page is not compressed as its host says") from None
    if len(data) <= MAX_TEXT_BYTES and (not unpacker.eof or unpacker.unused_data):
        raise ToolError("that page is not compressed as its host says")
    return data


def _decoded(body: bytes, charset: str | None) -> str:
    """Return the text of `body`: by its byte order mark, else as its host says, else as it says itself."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    if charset is None and (match := _IN_MARKUP.search(body[:_LOOKED_AT])):
        charset = (match.group(1) or match.group(2)).decode("ascii").lower()
    if charset is None:
        try:
            return body.decode("utf-8")
        except UnicodeDecodeError:
            return body.decode(_FALLBACK, "replace")
    if charset not in _CHARSETS:
        raise ToolError("that page is in a character set that is not read")
    return body.decode(_CHARSETS[charset], "replace")


def _shown(name: str, lines: Sequence[str], links: Sequence[str], first: int) -> ToolOutput:
    """Return a page's lines from `first` on, as many as are shown at once, and where links in them lead."""
    lines = [piece for line in lines for piece in _wrapped(line)]
    if first > max(1, len(lines)):
        raise ToolError(f"start_line is past the end: the page has {how_many(len(lines), 'line')}")
    room, pieces = SHOWN, list[Piece]()
    for number, line in enumerate(lines[first - 1 :], start=first):
        piece = piece_of(name, number, line, width=_WIDTH)
        room -= len(piece.text) + 1
        if room < 0 or len(pieces) == LINES_AT_ONCE:
            break
        pieces.append(piece)
    last = first + len(pieces) - 1
    rest = rest_after(last, len(lines))
    named = {int(number) for piece in pieces for number in _NUMBER.findall(piece.text)}
    leading = [f"[{number}] {link}" for number, link in enumerate(links, start=1) if number in named]
    shown = [piece.text for piece in pieces] or ["(no text)"]
    text = "\n".join([name, *shown, *rest, *leading])
    return ToolOutput(text=text, excerpts=tuple(piece.excerpt for piece in pieces))


def _wrapped(line: str) -> Iterator[str]:
    """Yield `line` in pieces of at most `_WIDTH` characters, cut at a space where there is one."""
    at = 0
    while len(line) - at > _WIDTH:
        space = line.rfind(" ", at + 1, at + _WIDTH)
        cut = at + _WIDTH if space < 0 else space
        yield line[at:cut]
        at = cut + (space >= 0)
    if at < len(line):
        yield line[at:]
