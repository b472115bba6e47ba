# SPDX-License-Identifier: Apache-2.0
"""What a file is, by its first bytes and never by its name.

Owns telling families apart. A file is what it begins as, and nothing else that may stand further on in
it. Leaves which kind of archive a ZIP is to `parsing.office`. Runs on both sides of the sandbox: it only
compares bytes, in time linear in them whatever they are (P2). Imports the standard library only.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from enum import StrEnum
from typing import Final

from runner.capability.documents.words import Reason


class Family(StrEnum):
    """How a file is to be taken apart."""

    PDF = "pdf"
    ZIP = "zip"
    RTF = "rtf"
    HTML = "html"
    EML = "eml"
    P7M = "p7m"
    XML = "xml"
    TEXT = "text"


PACKED: Final = frozenset({Family.PDF, Family.ZIP, Family.P7M})
"""Those that no reader of text can make anything of."""
PLAIN: Final = frozenset({Family.TEXT, Family.XML})
"""Those that are text as they stand."""
HEAD: Final = 64 * 1024
"""Bytes of a file that say what it is."""
_SIGNED_DATA: Final = bytes.fromhex("06092a864886f70d0107")
"""The beginning of the object identifiers of the cryptographic message syntax. Source: RFC 5652."""
_ARMOUR: Final = re.compile(rb"\s*-----BEGIN (?:PKCS7|CMS)-----\s")
_BASE64: Final = re.compile(rb"MI[A-Za-z0-9+/\r\n]{126}")
_SPACE: Final = re.compile(rb"\s*")
_PAGE: Final = re.compile(rb"(?:<!doctype\s+html|<html|<head|<body)\b", re.IGNORECASE)
_FIELDS: Final = re.compile(rb"(?:From [^\r\n]*\r?\n)?((?:[!-9;-~]+[ \t]*:[^\n]*\n(?:[ \t][^\n]*\n)*)+)")
_FIELD: Final = re.compile(rb"^([!-9;-~]+)[ \t]*:", re.MULTILINE)
_MAIL: Final = frozenset({b"received", b"message-id", b"mime-version", b"return-path", b"delivered-to"})
_WHOSE: Final = frozenset({b"from", b"to", b"subject", b"date", b"content-type"})
_MARKS: Final[tuple[tuple[bytes, Family | Reason], ...]] = (
    (b"%PDF-", Family.PDF),
    (b"PK\x03\x04", Family.ZIP),
    (b"{\\rtf", Family.RTF),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Reason.OLD_OFFICE),
    (b"\x89PNG\r\n\x1a\n", Reason.PICTURE),
    (b"\xff\xd8\xff", Reason.PICTURE),
    (b"GIF8", Reason.PICTURE),
    (b"II*\0", Reason.PICTURE),
    (b"MM\0*", Reason.PICTURE),
)


def family_of(data: bytes) -> Family | Reason:
    """Return what `data` is to be read as, or why it is not read."""
    head = data[:HEAD].removeprefix(b"\xef\xbb\xbf")
    for mark, found in _MARKS:
        if head.startswith(mark) or (found is Family.PDF and head.lstrip().startswith(mark)):
            return found
    if is_signed(head):
        return Family.P7M
    if is_page(head):
        return Family.HTML
    if is_mail(head):
        return Family.EML
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Reason.UNKNOWN
    return Family.XML if head.lstrip().startswith(b"<?xml") else Family.TEXT


def is_document(data: bytes) -> bool:
    """Return whether `data` is a document, by its beginning: what it says is more than it says as text."""
    family = family_of(data)
    return isinstance(family, Family) and family not in PLAIN


def is_page(head: bytes) -> bool:
    """Return whether `head` begins a page of HTML: after white space, a declaration of XML and comments."""
    at = _past_space(head, 0)
    if head.startswith(b"<?xml", at):
        at = _past_space(head, _past(head, b">", at))
    while head.startswith(b"<!--", at):
        at = _past_space(head, _past(head, b"-->", at + len(b"<!--")))
    return _PAGE.match(head, at) is not None


def is_signed(head: bytes) -> bool:
    """Return whether `head` begins a signed or enveloped message: DER or BER, or either in base64."""
    if _ARMOUR.match(head):
        return True
    if _BASE64.match(head):
        try:
            head = b64decode(re.sub(rb"\s", b"", head[:128])[:96])
        except NotBase64:
            return False
    return head.startswith(b"\x30") and _SIGNED_DATA in head[:32]


def is_mail(head: bytes) -> bool:
    """Return whether `head` begins with the fields of a mail that was sent, which a letter's do not have."""
    fields = _FIELDS.match(head)
    names = {name.lower() for name in _FIELD.findall(fields[1])} if fields else set()
    return bool(names & _MAIL) and bool(names & _WHOSE)


def _past(head: bytes, mark: bytes, at: int) -> int:
    """Return where `head` goes on after the next `mark` from `at`: at its end if there is none."""
    found = head.find(mark, at)
    return len(head) if found < 0 else found + len(mark)


def _past_space(head: bytes, at: int) -> int:
    space = _SPACE.match(head, at)
    return at if space is None else space.end()
