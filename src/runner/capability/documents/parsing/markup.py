# SPDX-License-Identifier: Apache-2.0
"""XML, one event after another: without entities of its own, without a document type, and not too deep.

Owns reading it safely. Names come without their namespaces. Leaves what they mean to the formats.
Sources: XML 1.0; expat's notes on attacks. Nothing outside of the data is ever asked for.
"""

from collections.abc import Mapping
from typing import Final, Protocol
from xml.parsers import expat

from runner.capability.documents.parsing.draft import Draft, Unreadable
from runner.capability.documents.words import Reason

DEPTH: Final = 256


class Events(Protocol):
    """Whoever makes sense of elements."""

    def start(self, name: str, attributes: Mapping[str, str], /) -> None:
        """An element begins."""

    def end(self, name: str, /) -> None:
        """An element ends."""

    def text(self, text: str, /) -> None:
        """Text stands here."""


def read_xml(data: bytes, events: Events) -> None:
    """Tell `events` what stands in `data`; raise `Unreadable`."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEPTH:
            raise Unreadable(Reason.TOO_DEEP)
        events.start(_local(name), {_local(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        events.end(_local(name))

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = events.text
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError:
        raise Unreadable(Reason.BROKEN) from None


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


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
    read_xml(data, Paths(draft))
