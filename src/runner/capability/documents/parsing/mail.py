# SPDX-License-Identifier: Apache-2.0
"""EML: who, to whom, when and the body as the first page; then each attachment on pages of its own.

A PEC is such a mail: its certificate (`daticert.xml`) and the message in it (`postacert.eml`) are
attachments. No signature is checked. Sources: RFC 5322, RFC 2045 to 2047.
"""

import re
from collections.abc import Callable, Iterator
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from typing import Final, TypeAlias

from runner.capability.documents.parsing import page
from runner.capability.documents.parsing.draft import Draft, Unreadable
from runner.capability.documents.parsing.text import decoded
from runner.capability.documents.words import Note, Reason

Inner: TypeAlias = Callable[[bytes, Draft], object]
"""Reads what lies in a document, whatever it is."""
FIELDS: Final = ("From", "To", "Cc", "Date", "Subject")
PARTS: Final = 500
_FIELD: Final = 4_000
_SIGNATURES: Final = frozenset({"application/pkcs7-signature", "application/x-pkcs7-signature"})
_SPACES: Final = re.compile(r"\s+")


def parse(data: bytes, draft: Draft, inner: Inner) -> None:
    """Read a mail, and by `inner` what is attached; raise `Unreadable`, `Full`."""
    draft.page()
    _Mail(draft, inner).read(message_from_bytes(data.removeprefix(b"\xef\xbb\xbf")))


class _Mail:
    """A mail that is being read, and how many parts it had so far."""

    def __init__(self, draft: Draft, inner: Inner) -> None:
        self._draft = draft
        self._inner = inner
        self._parts = 0

    def read(self, message: "Message[str, str]") -> None:
        """Read `message` on from where the draft is; raise `Unreadable`, `Full`."""
        for name in FIELDS:
            if value := field_text(message.get(name)):
                self._draft.line(f"{name}: {value}")
        self._draft.line("")
        attached: list[Message[str, str]] = []
        for part in self._leaves(message):
            if _is_body(part):
                self._body(part)
            else:
                attached.append(part)
        for part in attached:
            self._attach(part)

    def _leaves(self, message: "Message[str, str]") -> Iterator["Message[str, str]"]:
        """Yield the parts that are no container, each alternative once; raise `Unreadable`."""
        self._parts += 1
        if self._parts > PARTS:
            raise Unreadable(Reason.TOO_DEEP)
        content = message.get_payload()
        if not isinstance(content, list) or message.get_content_type() == "message/rfc822":
            yield message
            return
        inner = [part for part in content if isinstance(part, Message)]
        if message.get_content_type() == "multipart/alternative":
            best = _best_of(inner)
            self._draft.note(Note.ALTERNATIVES, len(inner) - len(best))
            inner = best
        for part in inner:
            yield from self._leaves(part)

    def _body(self, part: "Message[str, str]") -> None:
        data, charset = _bytes_of(part), part.get_content_charset()
        if part.get_content_type() == "text/html":
            page.parse(data, self._draft, charset)
        else:
            self._draft.line(decoded(data, charset))

    def _attach(self, part: "Message[str, str]") -> None:
        if part.get_content_type() in _SIGNATURES:
            self._draft.note(Note.SIGNATURE)
            return
        name = field_text(part.get_filename()) or part.get_content_type()
        self._draft.attach(name, lambda: self._inside(part))

    def _inside(self, part: "Message[str, str]") -> None:
        content = part.get_payload()
        if isinstance(content, list) and content and isinstance(content[0], Message):
            self.read(content[0])
        else:
            self._inner(_bytes_of(part), self._draft)


def _best_of(parts: "list[Message[str, str]]") -> "list[Message[str, str]]":
    """Return the one of alternatives that is plainest."""
    for wanted in ("text/plain", "text/html"):
        for part in parts:
            if part.get_content_type() == wanted:
                return [part]
    return parts[-1:]


def _is_body(part: "Message[str, str]") -> bool:
    named = part.get_filename() is not None or part.get_content_disposition() == "attachment"
    return part.get_content_type() in ("text/plain", "text/html") and not named


def _bytes_of(part: "Message[str, str]") -> bytes:
    """Return what a part holds, its transfer encoding undone."""
    data: object = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def field_text(value: object) -> str:
    """Return a field's value on one line, its encoded words undone; at most some thousand characters."""
    said = str(value or "")[:_FIELD]
    try:
        pieces = decode_header(said)
    except (HeaderParseError, ValueError):
        pieces = [(said, None)]
    words = "".join(piece if isinstance(piece, str) else decoded(piece, charset) for piece, charset in pieces)
    return _SPACES.sub(" ", words).strip()
