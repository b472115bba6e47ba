# SPDX-License-Identifier: Apache-2.0
"""XML, one event after another: without entities of its own, without a document type, and not too deep.

Owns reading it safely, what an element is called, and which branch of alternatives counts. A name is that of
its namespace, in our short word for it, and its own: `w:t`. A namespace that no format here has is `?`.
Leaves what names mean to the formats. Sources: XML 1.0; Namespaces in XML 1.0; expat's notes on attacks;
ISO/IEC 29500-3 (alternatives), 29500-1 and 29500-4 (namespaces, strict and transitional). Nothing outside of
the data is ever asked for.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, Protocol
from xml.parsers import expat

from runner.capability.documents.parsing.draft import Draft, Unreadable
from runner.capability.documents.words import Reason

DEPTH: Final = 256
_OPEN: Final = "http://schemas.openxmlformats.org/"
_STRICT: Final = "http://purl.oclc.org/ooxml/"
_ODF: Final = "urn:oasis:names:tc:opendocument:xmlns:"
_OFFICE: Final = "http://schemas.microsoft.com/office/"
_SPACES: Final[Mapping[str, str]] = {
    "": "",
    "http://www.w3.org/XML/1998/namespace": "xml",
    _OPEN + "wordprocessingml/2006/main": "w",
    _STRICT + "wordprocessingml/main": "w",
    _OPEN + "spreadsheetml/2006/main": "s",
    _STRICT + "spreadsheetml/main": "s",
    _OPEN + "drawingml/2006/main": "a",
    _STRICT + "drawingml/main": "a",
    _OPEN + "officeDocument/2006/math": "m",
    _STRICT + "officeDocument/math": "m",
    _OPEN + "officeDocument/2006/relationships": "r",
    _STRICT + "officeDocument/relationships": "r",
    _OPEN + "package/2006/relationships": "rel",
    _OPEN + "package/2006/content-types": "ct",
    _OPEN + "markup-compatibility/2006": "mc",
    **{f"{_ODF}{name}:1.0": name for name in ("office", "text", "table", "style")},
    _ODF + "xsl-fo-compatible:1.0": "fo",
}
_UNDERSTOOD: Final = frozenset(_SPACES) | {
    _OFFICE + name
    for name in (
        "word/2010/wordml", "word/2010/wordprocessingShape", "word/2010/wordprocessingGroup",
        "word/2010/wordprocessingCanvas", "word/2010/wordprocessingInk", "word/2010/wordprocessingDrawing",
        "word/2012/wordml", "word/2018/wordml", "drawing/2010/main", "drawing/2014/chartex",
        "spreadsheetml/2009/9/main", "spreadsheetml/2009/9/ac", "spreadsheetml/2010/11/main",
    )
}  # fmt: skip
"""Namespaces for which a branch of alternatives is taken, as the programs that write them take it."""
_BRANCHES: Final = ("mc:Choice", "mc:Fallback")


class Events(Protocol):
    """Whoever makes sense of elements."""

    def start(self, name: str, attributes: Mapping[str, str], /) -> None:
        """An element begins."""

    def end(self, name: str, /) -> None:
        """An element ends."""

    def text(self, text: str, /) -> None:
        """Text stands here."""


@lru_cache(maxsize=4096)
def named(name: str) -> str:
    """Return what an element or an attribute is called, by what expat calls it."""
    space, _, local = name.rpartition(" ")
    word = _SPACES.get(space, "?")
    return f"{word}:{local}" if word else local


def local(name: str) -> str:
    """Return the name without its namespace."""
    return name.rpartition(" ")[2]


def read_xml(data: bytes, events: Events, name: Callable[[str], str] = named) -> None:
    """Tell `events` what stands in `data`, each thing called by `name`; raise `Unreadable`."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    reading = _Reading(events, name)
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.text
    parser.StartNamespaceDeclHandler = reading.declare
    parser.EndNamespaceDeclHandler = reading.forget
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError:
        raise Unreadable(Reason.BROKEN) from None


class _Reading:
    """How deep one is, what prefixes stand for, and which alternatives are open: was one of them taken."""

    def __init__(self, events: Events, name: Callable[[str], str]) -> None:
        self._events = events
        self._name = name
        self._depth = 0
        self._skipping = 0
        self._prefixes: defaultdict[str, list[str]] = defaultdict(list)
        self._taken: list[bool] = []

    def declare(self, prefix: str | None, space: str | None) -> None:
        self._prefixes[prefix or ""].append(space or "")

    def forget(self, prefix: str | None) -> None:
        self._prefixes[prefix or ""].pop()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH:
            raise Unreadable(Reason.TOO_DEEP)
        called = self._name(name)
        if self._skipping:
            self._skipping += 1
        elif called == "mc:AlternateContent":
            self._taken.append(False)
        elif called in _BRANCHES:
            self._branch(fits=called == "mc:Fallback" or self._understood(attributes.get("Requires", "")))
        else:
            self._events.start(called, {self._name(key): value for key, value in attributes.items()})

    def end(self, name: str) -> None:
        self._depth -= 1
        called = self._name(name)
        if self._skipping:
            self._skipping -= 1
        elif called == "mc:AlternateContent":
            self._taken.pop()
        elif called not in _BRANCHES:
            self._events.end(called)

    def text(self, text: str) -> None:
        if not self._skipping:
            self._events.text(text)

    def _branch(self, *, fits: bool) -> None:
        if fits and self._taken and not self._taken[-1]:
            self._taken[-1] = True
        else:
            self._skipping = 1

    def _understood(self, prefixes: str) -> bool:
        spaces = [self._prefixes[prefix][-1:] for prefix in prefixes.split()]
        return bool(spaces) and all(space and space[0] in _UNDERSTOOD for space in spaces)


def _refuse(*_: object) -> None:
    raise Unreadable(Reason.ENTITIES)


class Paths:
    """Elements with text as lines: `path: text`, and `path@name: value` for an attribute."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._path: list[str] = []
        self._text: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Say the text before it, and its attributes."""
        self._say()
        self._path.append(name)
        for key, value in attributes.items():
            self._draft.line(f"{'/'.join(self._path[1:] or self._path)}@{key}: {value}")

    def end(self, _: str) -> None:
        """Say its text."""
        self._say()
        self._path.pop()

    def text(self, text: str) -> None:
        """Keep it."""
        self._text.append(text)

    def _say(self) -> None:
        said = " ".join("".join(self._text).split())
        self._text.clear()
        if said:
            self._draft.line(f"{'/'.join(self._path[1:] or self._path)}: {said}")


def parse(data: bytes, draft: Draft) -> None:
    """Read XML of any kind, such as the certificate of a PEC or an invoice, as lines; raise `Unreadable`."""
    read_xml(data, Paths(draft), local)
