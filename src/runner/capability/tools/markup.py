# SPDX-License-Identifier: Apache-2.0
"""HTML as a stream of texts and tags, in one pass that takes linear time on any input.

Owns the cutting of a page into pieces, after the tokenizer of the HTML standard (section 13.2.5) without what
changes no text. Leaves what is shown to `htmltext`. The standard library's parser is not used: on an open
comment, tag or quote repeated over and over it takes time that grows with the square of the page. Whatever a
page leaves open to its end ends it here, as in a browser.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Final, TypeAlias

MOST_ATTRIBUTES: Final = 64
"""Attributes of one tag that are kept."""
_RAW: Final = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "title", "textarea"})
"""Elements whose content is text to the end tag of their own name."""
_REFERENCES: Final = frozenset({"title", "textarea"})
"""Those of them in which references to characters are read."""
_FOREIGN: Final = frozenset({"svg", "math"})
_BREAKOUTS: Final = frozenset(
    {"b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1"}
    | {"h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol"}
    | {"p", "pre", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul"}
    | {"var"}
)
"""Elements that end a drawing or a formula which was not closed. Source: the HTML standard, 13.2.6.5."""
_FONT: Final = frozenset({"color", "face", "size"})
_TAG: Final = re.compile(r"[a-zA-Z][^\s/>]*")
_NAME: Final = re.compile(r"[\s/]*([^\s/>=]*)\s*(=?)\s*")
_BARE: Final = re.compile(r"[^\s>]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A start tag: `tag` and the names of `attributes` in lower case, the first of each name."""

    tag: str
    attributes: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """An end tag."""

    tag: str


Piece: TypeAlias = str | Start | End
"""A stretch of text with its references to characters read, or a tag."""


def pieces_of(page: str) -> Iterator[Piece]:
    """Yield the pieces of `page`, in order. Total, and linear in its length.

    Comments, declarations and instructions are left out. A drawing or a formula ends where a browser ends it.
    """
    foreign = _Foreign()
    at = 0
    while at < len(page):
        opening = page.find("<", at)
        if opening < 0:
            yield _read(page[at:])
            return
        if opening > at:
            yield _read(page[at:opening])
        following = page[opening + 1 : opening + 2]
        match = _TAG.match(page, opening + 1 + (following == "/"))
        if following in {"!", "?"} or (following == "/" and match is None):
            at = _after_comment(page, opening)
            continue
        if match is None:
            yield "<"
            at = opening + 1
            continue
        tag = match.group().lower()
        attributes, at = _attributes(page, match.end())
        if at > len(page):
            return
        if following == "/":
            yield from foreign.end(tag)
            yield End(tag=tag)
            continue
        closed = page.endswith("/>", 0, at)
        yield from foreign.start(tag, attributes, closed=closed)
        yield Start(tag=tag, attributes=attributes)
        if closed and tag in _FOREIGN:
            yield End(tag=tag)
        elif tag in _RAW and not foreign.depth:
            end = _raw_end(page, tag, at)
            yield _read(page[at:end]) if tag in _REFERENCES else page[at:end]
            at = end


class _Foreign:
    """The drawing or formula that one is in: the `tag` of the outermost, and how many of it are open."""

    def __init__(self) -> None:
        self.tag = ""
        self.depth = 0

    def start(self, tag: str, attributes: Mapping[str, str], *, closed: bool) -> Iterator[Piece]:
        """Go past a start tag; yield what ends before it."""
        if tag in _BREAKOUTS or (tag == "font" and not _FONT.isdisjoint(attributes)):
            yield from self._leave()
        elif tag in _FOREIGN and not closed and (not self.depth or tag == self.tag):
            self.tag, self.depth = tag, self.depth + 1

    def end(self, tag: str) -> Iterator[Piece]:
        """Go past an end tag; yield what ends before it."""
        if tag in ("p", "br"):
            yield from self._leave()
        elif self.depth and tag == self.tag:
            self.depth -= 1

    def _leave(self) -> Iterator[Piece]:
        for _ in range(self.depth):
            yield End(tag=self.tag)
        self.depth = 0


def _after_comment(page: str, opening: int) -> int:
    """Return where the comment, declaration or instruction at `opening` is over: at the end if it is open."""
    comment = page.startswith("<!--", opening)
    end = page.find("-->" if comment else ">", opening + (4 if comment else 2))
    return len(page) if end < 0 else end + (3 if comment else 1)


def _attributes(page: str, at: int) -> tuple[dict[str, str], int]:
    """Return the attributes from `at` on, and where their tag is over: beyond the page if that is nowhere."""
    found: dict[str, str] = {}
    nowhere = len(page) + 1
    while at < len(page):
        if page[at] == ">":
            return found, at + 1
        match = _NAME.match(page, at)
        if match is None or match.end() == at:
            at += 1
            continue
        name, equals = match.groups()
        at, value = match.end(), ""
        if equals:
            quote = page[at : at + 1]
            if quote in {'"', "'"}:
                end = page.find(quote, at + 1)
                if end < 0:
                    return found, nowhere
                value, at = page[at + 1 : end], end + 1
            else:
                bare = _BARE.match(page, at)
                value, at = ("", at) if bare is None else (bare.group(), bare.end())
        if name and len(found) < MOST_ATTRIBUTES:
            found.setdefault(name.lower(), value)
    return found, nowhere


def _raw_end(page: str, tag: str, at: int) -> int:
    match = re.compile(rf"</{re.escape(tag)}(?=[\s/>])", re.IGNORECASE).search(page, at)
    return len(page) if match is None else match.start()


def _read(text: str) -> str:
    """Return `text` with its references to characters read; as it stands if one is of absurd length."""
    try:
        return unescape(text)
    except ValueError:
        return text
