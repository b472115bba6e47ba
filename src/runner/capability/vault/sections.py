# SPDX-License-Identifier: Apache-2.0
"""Sections: a file as the index cuts it, and how it is read.

Owns the way from the bytes of a file to its sections: plain text here, documents by a `DocumentReader`, where
there is one. Which of the two a file is, its bytes say. A section is a page, or a part of one. The same bytes
always give the same sections, so the index keeps numbers and this module says, from the file itself, what
stands there. Leaves confinement to `beneath`. Carries P2: nothing is read but through it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from runner.capability.documents.kinds import PACKED, PLAIN, Family, family_of
from runner.capability.documents.port import Document, DocumentReader
from runner.capability.documents.words import Reason, why
from runner.capability.tools.beneath import decode
from runner.capability.tools.pages import split_lines
from runner.kernel.errors import ToolError

SECTION_LINES: Final = 40
"""Lines of a section: about a printed page."""
MOST_SECTIONS: Final = 1 << 16
"""Sections of a file that are indexed."""
TOO_LONG: Final = "that file is longer than is indexed: its beginning is found, its end is not"
"""What is said of a file that has more."""

_NO_READER: Final = (
    "that file is a document: it is indexed where read_document is granted with its sandbox, without"
    " `sandbox: unrestricted`"
)
_NO_TEXT: Final = "that document holds no text, perhaps a scan, so nothing of it can be found"
_Pages: TypeAlias = list[tuple[int | None, tuple[str, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Lines of one `page`, or of a plain file, which has none. `first` is the number of the first, from 1."""

    page: int | None
    first: int
    lines: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The sections of a file, and in our words what of its text is `missing`, as that of scanned pages is."""

    sections: tuple[Section, ...]
    missing: str = ""


def read_contents(data: bytes, *, name: str, reader: DocumentReader | None) -> Contents:
    """Return what the file `name` that holds `data` says; raise `ToolError` if it cannot be read."""
    document = _document(data, name, reader)
    if document is None:
        return Contents(sections=tuple(_cut([(None, split_lines(decode(data).text))])))
    return Contents(sections=tuple(_cut(_pages_of(document))), missing="; ".join(document.missing))


def _document(data: bytes, name: str, reader: DocumentReader | None) -> Document | None:
    """Return the document that `data` is; None for what is read as text."""
    family = family_of(data)
    if isinstance(family, Reason) and family is not Reason.UNKNOWN:
        raise ToolError(why(family))
    if isinstance(family, Family) and family not in PLAIN:
        if reader is not None:
            return reader.read(data, name=name)
        if family in PACKED:
            raise ToolError(_NO_READER)
    return None


def _pages_of(document: Document) -> _Pages:
    """Return the pages of `document`; raise `ToolError` when no line of them says anything, as in a scan."""
    if not any(line.strip() for page in document.pages for line in page.lines):
        raise ToolError(_NO_TEXT)
    return [(page.number, page.lines) for page in document.pages]


def _cut(pages: _Pages) -> Iterator[Section]:
    for number, lines in pages:
        for start in range(0, len(lines), SECTION_LINES):
            yield Section(page=number, first=start + 1, lines=lines[start : start + SECTION_LINES])
