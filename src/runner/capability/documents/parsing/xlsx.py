# SPDX-License-Identifier: Apache-2.0
"""XLSX: a sheet as a page, a row as the line of its own number, cells apart by tabs.

The sheet's name stands last. A formula counts by the value that was saved with it. A date is written as one,
and a number with the decimals or the per cent that its cell shows. Source: ISO/IEC 29500-1, chapter 18; the
numbers of the built-in formats in 18.8.30.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from runner.capability.documents.parsing.draft import Draft, Unreadable
from runner.capability.documents.parsing.markup import read_xml
from runner.capability.documents.parsing.office import Archive, only
from runner.capability.documents.words import Note, Reason

GAP: Final = 2_000
"""Rows without content that are kept as empty lines, so that a line has its row's number."""
_DATES: Final = frozenset({*range(14, 23), *range(45, 48)})
_LITERAL: Final = re.compile(r'"[^"]*"?|\\.|\[[^\]]*\]?|_.|\*.')
_BUILT_IN: Final = dict.fromkeys(map(str, _DATES), "d") | {
    "1": "0",
    "2": "0.00",
    "3": "#,##0",
    "4": "#,##0.00",
    "9": "0%",
    "10": "0.00%",
    "37": "#,##0",
    "38": "#,##0",
    "39": "#,##0.00",
    "40": "#,##0.00",
}
"""The codes of the built-in formats that matter here, by their number."""
_DECIMALS: Final = re.compile(r"[#0?,]*[#0?](?:\.(0{1,10}))?(%?)\Z")
"""A code of a number with a fixed count of decimals, its signs and currencies taken out."""
_AROUND: Final = re.compile("[-+()\\s€$£¥]")
_DIGITS: Final = Context(prec=15, rounding=ROUND_HALF_UP)
"""The digits that a table counts with: what is stored beyond them is noise of the binary number."""
_LONGEST: Final = 40
"""Characters of a number that is more than noise."""
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
        cells = _Cells(strings.found, styles.formats, epoch=_EPOCHS[book.since_1904], draft=draft)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    """How a cell shows its number: as a date, or with so many `decimals`; None for as it is stored."""

    date: bool = False
    decimals: int | None = None
    percent: bool = False


_STORED: Final = _Format()


def _format_of(code: str) -> _Format:
    """Return what the code of a format says, which has a section each for positive and other numbers."""
    bare = _LITERAL.sub("", code).lower()
    if any(letter in bare for letter in "dy"):
        return _Format(date=True)
    found = _DECIMALS.match(_AROUND.sub("", bare.partition(";")[0]))
    if found is None:
        return _STORED
    return _Format(decimals=len(found[1] or ""), percent=bool(found[2]))


class _Styles(_Events):
    """How the cell formats show a number, in their order."""

    def __init__(self) -> None:
        self.formats: list[_Format] = []
        self._own: dict[str, _Format] = {}
        self._cells = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "s:numFmt":
            self._own[attributes.get("numFmtId", "")] = _format_of(attributes.get("formatCode", ""))
        if name == "s:cellXfs":
            self._cells = True
        if name == "s:xf" and self._cells:
            number = attributes.get("numFmtId", "")
            self.formats.append(self._own.get(number) or _format_of(_BUILT_IN.get(number, "")))

    def end(self, name: str) -> None:
        self._cells = self._cells and name != "s:cellXfs"


class _Cells(_Events):
    """The rows of a sheet, each on the line of its number as long as they lie close enough."""

    def __init__(self, strings: list[str], formats: list[_Format], *, epoch: datetime, draft: Draft) -> None:
        self._strings = strings
        self._formats = formats
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
            case "n":
                shown = self._format()
                return self._date(said) if shown.date else _as_shown(said, shown)
            case _:
                return said

    def _format(self) -> _Format:
        at = int(self._style) if self._style.isdecimal() and len(self._style) < len("100000") else -1
        return self._formats[at] if 0 <= at < len(self._formats) else _STORED

    def _date(self, said: str) -> str:
        try:
            days = float(said)
        except ValueError:
            return said
        if not 0 <= days < _DAYS:
            return said
        when = self._epoch + timedelta(seconds=round(days * 86_400))
        return when.date().isoformat() if days == int(days) else when.isoformat(sep=" ", timespec="minutes")


def _as_shown(said: str, shown: _Format) -> str:
    """Return a number with the decimals that its cell shows, and the stored one where that is another."""
    if shown.decimals is None or len(said) > _LONGEST:
        return said
    try:
        stored = _DIGITS.create_decimal(said)
        value = stored.scaleb(2, _DIGITS) if shown.percent else stored
        rounded = value.quantize(Decimal((0, (1,), -shown.decimals)), context=_DIGITS)
    except ArithmeticError:
        return said
    if not rounded.is_finite():
        return said
    text = f"{rounded:f}%" if shown.percent else f"{rounded:f}"
    return text if rounded == value else f"{text} ({said})"
