# SPDX-License-Identifier: Apache-2.0
"""The document that is being read: its pages so far, and how much more may be taken.

Owns the bounds that all formats share, and what a line is. Leaves the formats to their parsers. Everything
that grows with what a file says is counted here.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from runner.capability.documents.words import Note, Reason

CHARACTERS: Final = 4_000_000
"""Of the text of one document, its attachments included; a line counts for `LINE` more."""
LINE: Final = 16
PAGES: Final = 5_000
UNPACKED: Final = 192 << 20
"""Bytes that a document may unpack to, all parts together."""
ATTACHMENTS: Final = 100
DEPTH: Final = 5
"""How deep a document may lie in another."""
PAGE_CPU_S: Final = 12.0
"""Seconds of processor after which no further page is begun."""

_LINE_END: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Unreadable(Exception):
    """A document cannot be read, for a `reason`."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
        super().__init__(reason)


class Full(Exception):
    """As much was read of a document as may be: what there is counts."""


class Draft:
    """A document that is being read, of some `kind`. `spent` says how many seconds of processor it took."""

    def __init__(self, spent: Callable[[], float]) -> None:
        self.kind = ""
        self.pages: list[list[str]] = []
        self.notes: Counter[Note] = Counter()
        self._spent = spent
        self._characters = 0
        self._unpacked = 0
        self._attachments = 0
        self._depth = 0

    def page(self) -> None:
        """Begin a page; raise `Full`."""
        if len(self.pages) >= PAGES or self._spent() > PAGE_CPU_S:
            raise Full
        self.pages.append([])

    def line(self, text: str) -> None:
        """Add `text` as one line or several; raise `Full`."""
        for part in _LINE_END.split(text):
            self.row(part)

    def row(self, text: str) -> None:
        """Add `text` as exactly one line, however long; raise `Full`."""
        if not self.pages:
            self.page()
        self.pages[-1].append(self._counted(text))

    def row_at(self, number: int, text: str) -> None:
        """Add `text` as the line `number` of this page, from 1, which must be empty or still to come.

        Raises `Unreadable` if something stands there, `Full`.
        """
        page = self.pages[-1]
        for _ in range(number - 1 - len(page)):
            self.row("")
        if number > len(page):
            self.row(text)
        elif page[number - 1]:
            raise Unreadable(Reason.AMBIGUOUS)
        else:
            page[number - 1] = self._counted(text)

    def _counted(self, text: str) -> str:
        """Return `text` as it stands on a line; raise `Full`."""
        clean = _CONTROLS.sub("", _LINE_END.sub(" ", text)).rstrip()
        self._characters += len(clean) + LINE
        if self._characters > CHARACTERS:
            raise Full
        return clean

    def note(self, note: Note, count: int = 1) -> None:
        """Say that something was not read."""
        if count:
            self.notes[note] += count

    def unpack(self, size: int) -> None:
        """Count `size` bytes that were unpacked; raise `Unreadable` when it is too much."""
        self._unpacked += size
        if self._unpacked > UNPACKED:
            raise Unreadable(Reason.TOO_BIG)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Read a document in this one; raise `Unreadable` when it lies too deep."""
        if self._depth >= DEPTH:
            raise Unreadable(Reason.TOO_DEEP)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def attach(self, name: str, read: Callable[[], None]) -> None:
        """Begin a page for the attachment `name`, and `read` it; what cannot be read is said in its place.

        Raises `Full`.
        """
        self._attachments += 1
        if self._attachments > ATTACHMENTS:
            self.note(Note.ATTACHMENTS)
            return
        self.page()
        self.row(f"Attachment: {name}")
        start = len(self.pages)
        try:
            with self.inside():
                read()
        except (Full, MemoryError):
            raise
        except Unreadable as problem:
            self._give_up(start, problem.reason)
        except RecursionError:
            self._give_up(start, Reason.TOO_DEEP)
        except Exception:  # noqa: BLE001 - whatever a broken file does to a parser (I12)
            self._give_up(start, Reason.BROKEN)

    def _give_up(self, start: int, reason: Reason) -> None:
        """Take back what was read since page `start` began."""
        del self.pages[start:], self.pages[start - 1][1:]
        self.row(f"(not read: {reason})")
        self.note(Note.ATTACHMENTS)
