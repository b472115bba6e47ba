# SPDX-License-Identifier: Apache-2.0
"""P7M: the document inside a signed message, taken out. The signature is not checked, and a note says so.

Reads the few elements on the way to the content, in DER or BER, also in base64. Sources: RFC 5652, X.690.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable
from typing import Final, TypeAlias

from runner.capability.documents.parsing.draft import Draft, Unreadable
from runner.capability.documents.words import Note, Reason

Inner: TypeAlias = Callable[[bytes, Draft], object]
_ARMOUR: Final = re.compile(rb"-----[A-Z0-9 ]{5,40}-----")
_SIGNED: Final = bytes.fromhex("2a864886f70d010702")
_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_INTEGER: Final = 0x02
_NAME: Final = 0x06
_TAGGED: Final = 0xA0
_OCTETS: Final = 0x04
_PIECES: Final = 0x24
_CONSTRUCTED: Final = 0x20
_LONG_TAG: Final = 0x1F
_LONG_LENGTH: Final = 0x80
_LENGTH_BYTES: Final = 4
_NEST: Final = 64


def parse(data: bytes, draft: Draft, inner: Inner) -> None:
    """Read what was signed; raise `Unreadable`, `Full`."""
    content = content_of(data)
    draft.unpack(len(content))
    draft.note(Note.SIGNATURE)
    with draft.inside():
        inner(content, draft)


def content_of(data: bytes) -> bytes:
    """Return the content of a signed message; raise `Unreadable`."""
    if data[:1] != bytes([_SEQUENCE]):
        try:
            data = b64decode(re.sub(rb"\s", b"", _ARMOUR.sub(b"", data)), validate=True)
        except NotBase64:
            raise Unreadable(Reason.BROKEN) from None
    reader = _Elements(data)
    reader.enter(_SEQUENCE)
    if reader.octets(_NAME) != _SIGNED:
        raise Unreadable(Reason.ENCRYPTED)
    reader.enter(_TAGGED)
    reader.enter(_SEQUENCE)
    reader.octets(_INTEGER)
    reader.skip(_SET)
    end = reader.enter(_SEQUENCE)
    reader.octets(_NAME)
    if reader.at == end or not reader.stands(_TAGGED):
        raise Unreadable(Reason.DETACHED)
    reader.enter(_TAGGED)
    return reader.pieces() if reader.stands(_PIECES) else reader.octets(_OCTETS)


class _Elements:
    """Elements of `data`, one after another from `at`; raises `Unreadable` for what is none."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def stands(self, tag: int) -> bool:
        """Return whether the next element is a `tag`."""
        return self._data[self.at : self.at + 1] == bytes([tag])

    def enter(self, tag: int) -> int | None:
        """Go to the content of the next element, a `tag`; return where it ends, None where that is marked."""
        if not self.stands(tag):
            raise Unreadable(Reason.BROKEN)
        return self._head()

    def octets(self, tag: int) -> bytes:
        """Return the content of the next element, a `tag` of known length."""
        end = self.enter(tag)
        if end is None:
            raise Unreadable(Reason.BROKEN)
        content = self._data[self.at : end]
        self.at = end
        return content

    def pieces(self) -> bytes:
        """Return an octet string that stands in pieces."""
        end = self.enter(_PIECES)
        found: list[bytes] = []
        while self.stands(_OCTETS) if end is None else self.at < end:
            found.append(self.octets(_OCTETS))
        return b"".join(found)

    def skip(self, tag: int) -> None:
        """Go past the next element, a `tag`, and all that stands in it."""
        end = self.enter(tag)
        if end is not None:
            self.at = end
            return
        depth = 1
        while depth:
            if self._data[self.at : self.at + 2] == b"\0\0":
                self.at += 2
                depth -= 1
                continue
            inner = self._head()
            depth += inner is None
            self.at = self.at if inner is None else inner
            if depth > _NEST:
                raise Unreadable(Reason.TOO_DEEP)

    def _head(self) -> int | None:
        """Go past a tag and a length; return where the content ends, None where that is marked."""
        head = self._data[self.at : self.at + 2 + _LENGTH_BYTES]
        if len(head) < len(b"tl") or head[0] & _LONG_TAG == _LONG_TAG:
            raise Unreadable(Reason.BROKEN)
        tag, length = head[0], head[1]
        self.at += 2
        if length == _LONG_LENGTH and tag & _CONSTRUCTED:
            return None
        if length >= _LONG_LENGTH:
            size = length - _LONG_LENGTH
            if not 1 <= size <= _LENGTH_BYTES:
                raise Unreadable(Reason.BROKEN)
            length = int.from_bytes(head[2 : 2 + size], "big")
            self.at += size
        if self.at + length > len(self._data):
            raise Unreadable(Reason.BROKEN)
        return self.at + length
