# SPDX-License-Identifier: Apache-2.0
"""The port of a reader of documents: bytes in, pages of lines out.

Owns the words. Leaves reading to `reader` (this side of the sandbox) and to `parsing` (inside it). Imports
the standard library only, since the program in the sandbox speaks these words too.

Many files: `many()` gives a reader that keeps one program for the files it is given, one after another. The
program is ended at the first file that fails, and a new one starts with the next. Files of two matters, or of
two classes, never share one: a file that took the program over could change what is read of the next.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page: `number` counts from 1 through the document, `lines` are without their ends.

    A paragraph of a letter is one line, however long; one of a PDF stands in the lines that are seen.
    """

    number: int
    lines: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What was read. `kind` is one of `pdf docx odt xlsx eml html rtf p7m`.

    `pages` are a PDF's pages, a table's sheets, a mail's body and then its attachments, else what explicit
    page breaks divide. `notes` say in our words what was not read, such as a picture or a macro, and quote
    nothing; `missing` are those of them after which text is missing, such as that of a scanned page.
    """

    kind: str
    pages: tuple[Page, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class DocumentReader(Protocol):
    """Reads documents, from any thread, one file at a time."""

    def read(self, data: bytes, *, name: str) -> Document:
        """Return what `data` says; `name` is the file's own, and its ending only helps to word an error.

        Raises `ToolError`, whose text quotes nothing, for what is no document (plain text included), is
        encrypted, broken or hostile, or takes too much. `SandboxUnavailable` is one: then nothing was read.
        """

    def many(self) -> "AbstractContextManager[DocumentReader]":
        """Return a reader for many files in a row, which starts fewer programs; see above. For one thread."""
