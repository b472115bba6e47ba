# SPDX-License-Identifier: Apache-2.0
"""Sections: a file as the index cuts it, and how it is read.

Owns the way from the bytes of a file to its sections: plain text here, documents by a `DocumentReader`, where
there is one. A section is a page, or a part of one. The same bytes always give the same sections, so the
index keeps numbers and this module says, from the file itself, what stands there. Leaves confinement to
`beneath`. Carries P2: nothing is read but through it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from runner.capability.documents.port import Document, DocumentReader, Page
from runner.capability.tools.beneath import decode
from runner.capability.tools.pages import split_lines
from runner.kernel.errors import ToolError

SECTION_LINES: Final = 40
"""Lines of a section: about a printed page."""
MOST_SECTIONS: Final = 1 << 16
"""Sections of a file; what follows them is not indexed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Lines of one page: `first` is the number of the first one on its page, counted from 1."""

    page: int
    first: int
    lines: tuple[str, ...] = field(repr=False)


def read_sections(data: bytes, *, name: str, reader: DocumentReader | None) -> tuple[Section, ...]:
    """Return the sections of the file `name` that holds `data`; raise `ToolError` if it cannot be read."""
    return tuple(_cut(_document(data, name, reader).pages))[:MOST_SECTIONS]


def _document(data: bytes, name: str, reader: DocumentReader | None) -> Document:
    try:
        lines = split_lines(decode(data).text)
    except ToolError:
        if reader is None:
            raise
        return reader.read(data, name=name)
    return Document(kind="text", pages=(Page(number=1, lines=lines),))


def _cut(pages: Sequence[Page]) -> list[Section]:
    return [
        Section(page=page.number, first=start + 1, lines=page.lines[start : start + SECTION_LINES])
        for page in pages
        for start in range(0, len(page.lines), SECTION_LINES)
    ]
