# SPDX-License-Identifier: Apache-2.0
"""Why a document was not read, and what in it was not: closed lists, and our words for each.

Owns the words. The program in the sandbox answers with members of these lists and never with a text of
its own for a message, so a file that took it over cannot write an error (I12). Imports nothing.
"""

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why a document was not read."""

    PLAIN = "plain"
    UNKNOWN = "unknown"
    OLD_OFFICE = "old-office"
    OTHER_OFFICE = "other-office"
    PICTURE = "picture"
    ENCRYPTED = "encrypted"
    DETACHED = "detached"
    BROKEN = "broken"
    AMBIGUOUS = "ambiguous"
    ENTITIES = "entities"
    MEMBER_NAMES = "member-names"
    TOO_BIG = "too-big"
    TOO_DEEP = "too-deep"
    TOO_LONG = "too-long"


class Note(StrEnum):
    """What in a document was not read, or not checked."""

    PICTURES = "pictures"
    MACROS = "macros"
    EMBEDDED = "embedded"
    ATTACHMENTS = "attachments"
    DELETED = "deleted"
    BLANK_PAGES = "blank-pages"
    BROKEN_PAGES = "broken-pages"
    FAR_ROWS = "far-rows"
    REST = "rest"
    SIGNATURE = "signature"
    ALTERNATIVES = "alternatives"


_REASONS: Final[dict[Reason, str]] = {
    Reason.PLAIN: "that is plain text and no document: read_file reads it",
    Reason.UNKNOWN: "that is none of the documents that are read: PDF, DOCX, ODT, XLSX, EML, P7M, HTML, RTF",
    Reason.OLD_OFFICE: (
        "that is an old Office file or an encrypted one, and is not read: ask for DOCX, XLSX or PDF"
        " without a password"
    ),
    Reason.OTHER_OFFICE: "that is an archive or an Office file of a kind that is not read: ask for a PDF",
    Reason.PICTURE: "that is a picture, and what pictures show is not read",
    Reason.ENCRYPTED: "that document is encrypted and is not read: ask for a copy without a password",
    Reason.DETACHED: "that file is a signature without its document: read the document it belongs to",
    Reason.BROKEN: "that document is broken or cut off, and is not read: ask for it again",
    Reason.AMBIGUOUS: "that document says two things about what it holds, and is not read",
    Reason.ENTITIES: "that document declares entities, which no document needs, and is not read",
    Reason.MEMBER_NAMES: "that document holds a name that leads out of it, and is not read",
    Reason.TOO_BIG: "that document grows past what may be read of one when unpacked, and is not read",
    Reason.TOO_DEEP: "that document is nested too deeply, and is not read",
    Reason.TOO_LONG: "reading that document takes too long, and was given up",
}
_NOTES: Final[dict[Note, str]] = {
    Note.PICTURES: "pictures in it, not read: {}",
    Note.MACROS: "macros or scripts in it, neither run nor read: {}",
    Note.EMBEDDED: "files or objects embedded in it, not read: {}",
    Note.ATTACHMENTS: "attachments not read: {}",
    Note.DELETED: "passages marked as deleted, not read: {}",
    Note.BLANK_PAGES: "pages without text, perhaps scans: {}",
    Note.BROKEN_PAGES: "pages that could not be read: {}",
    Note.FAR_ROWS: "rows far below the others, not read: {}",
    Note.REST: "there is more than is read of one document: what follows was not read",
    Note.SIGNATURE: "signatures, not checked: {}",
    Note.ALTERNATIVES: "other versions of its text, which may say something else, not read: {}",
}

MISSING: Final = frozenset(
    {Note.ATTACHMENTS, Note.EMBEDDED, Note.BLANK_PAGES, Note.BROKEN_PAGES, Note.FAR_ROWS, Note.REST}
)
"""Notes of a document whose text is not all there: what is looked for may stand in what was not read."""


def why(reason: Reason) -> str:
    """Return what is said of a document that was not read for `reason`."""
    return _REASONS[reason]


def noted(note: Note, count: int) -> str:
    """Return what is said of `count` times `note`."""
    return _NOTES[note].format(count)
