# SPDX-License-Identifier: Apache-2.0
"""XLSX: a sheet as a page, a row as the line of its own number, cells apart by tabs.

The sheet's name stands last. A formula counts by the value that was saved with it, and a date is written
as one. Source: ISO/IEC 29500-1, chapter 18; the numbers of the built-in formats in 18.8.30.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from runner.capability.documents.parsing.draft import Draft, Unreadable
from runner.capability.documents.parsing.markup import read_xml
from runner.capability.documents.parsing.office import Archive, only
from runner.capability.documents.words import Note, Reason

GAP: Final = 2_000
"""Rows without content that are kept as empty lines, so that a line has its row's number."""
_DATES: Final = frozenset({*range(14, 23), *range(45, 48)})
_LITERAL: Final = re.compile(r'"[^"]*"?|\\.|\[[^\]]*\]?|_.|\*.')
_EPOCHS: Final = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}  # noqa: DTZ001 - a table has no zone
_DAYS: Final = 2_958_466
"""The days up to the year 10000."""


def parse(archive: Archive, draft: Draft) -> None:
    """Read `archive`; raise `Unreadable`, `Full`."""
    book, strings, styles = _Book(), _Strings(), _Styles()
    read_xml(archive.read(archive.main), book)
    links = archive.links(archive.main)
    for events, kind in ((strings, "sharedStrings"), (styles, "styles")):
        if (shared := only(links, kind)) is not None:
            read_xml(archive.read(shared), events)
    parts = {link.id: link.part for link in links}
    for title, link in book.sheets:
        draft.page()
        part = parts.get(link)
        if part is None:
            raise Unreadable(Reason.BROKEN)
        cells = _Cells(strings.found, styles.dates, epoch=_EPOCHS[book.since_1904], draft=draft)
        read_xml(archive.read(part), cells)
        draft.line(f"Sheet: {title}")
    archive.note_rest()


class _Events:
    """Events of which most mean nothing."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """Text stands here."""


class _Book(_Events):
    """The sheets, in order: title, and which link leads to it."""

    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []
        self.since_1904 = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "s:sheet":
            self.sheets.append((attributes.get("name", ""), attributes.get("r:id", "")))
        if name == "s:workbookPr":
            self.since_1904 = attributes.get("date1904") in ("1", "true")


class _Strings(_Events):
    """The texts that cells share, without their phonetic readings."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._said: list[str] = []
        self._reading = False
        self._phonetic = False

    def start(self, name: str, _: Mapping[str, str]) -> None:
        self._reading = name == "s:t" and not self._phonetic
        self._phonetic = self._phonetic or name == "s:rPh"

    def end(self, name: str) -> None:
        self._reading = False
        self._phonetic = self._phonetic and name != "s:rPh"
        if name == "s:si":
            self.found.append("".join(self._said))
            self._said.clear()

    def text(self, text: str) -> None:
        if self._reading:
            self._said.append(text)


class _Styles(_Events):
    """Which cell formats show a date: their numbers, in the order of the formats."""

    def __init__(self) -> None:
        self.dates: list[bool] = []
        self._own: dict[str, bool] = {}
        self._cells = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "s:numFmt":
            code = _LITERAL.sub("", attributes.get("formatCode", "")).lower()
            self._own[attributes.get("numFmtId", "")] = any(letter in code for letter in "dy")
        if name == "s:cellXfs":
            self._cells = True
        if name == "s:xf" and self._cells:
            number = attributes.get("numFmtId", "")
            built_in = number.isdecimal() and len(number) < len("10000") and int(number) in _DATES
            self.dates.append(self._own.get(number, built_in))

    def end(self, name: str) -> None:
        self._cells = self._cells and name != "s:cellXfs"


class _Cells(_Events):
    """The rows of a sheet, each on the line of its number as long as they lie close enough."""

    def __init__(self, strings: list[str], dates: list[bool], *, epoch: datetime, draft: Draft) -> None:
        self._strings = strings
        self._dates = dates
        self._epoch = epoch
        self._draft = draft
        self._row: list[str] = []
        self._number = 0
        self._kind = ""
        self._style = ""
        self._said: list[str] = []
        self._reading = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        match name:
            case "s:row":
                said = attributes.get("r", "")
                number = int(said) if said.isdecimal() and len(said) < len("10000000") else 0
                self._number = number or self._number + 1
            case "s:c":
                self._kind, self._style = attributes.get("t", "n"), attributes.get("s", "")
            case "s:v" | "s:t":
                self._reading = True
            case _:
                pass

    def end(self, name: str) -> None:
        self._reading = False
        if name == "s:c":
            value = self._value("".join(self._said))
            self._said.clear()
            if value:
                self._row.append(value)
        if name == "s:row" and self._row:
            self._emit("\t".join(self._row))
            self._row.clear()

    def text(self, text: str) -> None:
        if self._reading:
            self._said.append(text)

    def _emit(self, line: str) -> None:
        if self._number - len(self._draft.pages[-1]) > GAP + 1:
            self._draft.note(Note.FAR_ROWS)
            return
        self._draft.row_at(self._number, line)

    def _value(self, said: str) -> str:
        match self._kind:
            case "s":
                at = int(said) if said.isdecimal() and len(said) < len("10000000000") else -1
                return self._strings[at] if 0 <= at < len(self._strings) else ""
            case "b":
                return {"0": "FALSE", "1": "TRUE"}.get(said, said)
            case "n" if self._is_date():
                return self._date(said)
            case _:
                return said

    def _is_date(self) -> bool:
        at = int(self._style) if self._style.isdecimal() and len(self._style) < len("100000") else -1
        return 0 <= at < len(self._dates) and self._dates[at]

    def _date(self, said: str) -> str:
        try:
            days = float(said)
        except ValueError:
            return said
        if not 0 <= days < _DAYS:
            return said
        when = self._epoch + timedelta(seconds=round(days * 86_400))
        return when.date().isoformat() if days == int(days) else when.isoformat(sep=" ", timespec="minutes")
