# SPDX-License-Identifier: Apache-2.0
"""DOCX: paragraphs as lines, a table's row as one line, explicit breaks as pages.

Headers stand first; notes, comments and footers last. What is marked as deleted is not read, and what a
formula or a field was made from is not. Source: ISO/IEC 29500-1, chapter 17.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from runner.capability.documents.parsing.draft import Draft
from runner.capability.documents.parsing.markup import read_xml
from runner.capability.documents.parsing.office import Archive, Link, only
from runner.capability.documents.words import Note

_NOTES: Final = ("footnotes", "endnotes", "comments")
_SKIPPED: Final = frozenset({"w:del", "w:moveFrom", "w:tabs", "w:instrText", "w:delText"})
_TEXT: Final = frozenset({"w:t", "m:t", "a:t"})
_OFF: Final = frozenset({"0", "false", "off"})
_INLINE: Final = {"w:tab": "\t", "w:cr": "\n", "w:noBreakHyphen": "-", "w:ptab": "\t"}


def parse(archive: Archive, draft: Draft) -> None:
    """Read `archive`; raise `Unreadable`, `Full`."""
    draft.page()
    links = archive.links(archive.main)
    notes = [part for kind in _NOTES if (part := only(links, kind)) is not None]
    for part in (*_all(links, "header"), archive.main, *notes, *_all(links, "footer")):
        read_xml(archive.read(part), Body(draft))
    archive.note_rest()


def _all(links: Iterable[Link], kind: str) -> list[str]:
    return sorted({link.part for link in links if link.kind == kind})


class Body:
    """The elements of a text. Rows of tables may lie in cells of others."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._said: list[str] = []
        self._rows: list[list[list[str]]] = []
        self._skipping = 0
        self._reading = False
        self._section = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        if self._skipping or name in _SKIPPED:
            self._skipping += 1
            self._draft.note(Note.DELETED, int(name == "w:del" and self._skipping == 1))
            return
        self._reading = self._reading or name in _TEXT
        match name:
            case "w:altChunk":
                self._draft.note(Note.EMBEDDED)
            case "w:br" if attributes.get("w:type") == "page":
                self._break()
            case "w:br" | "a:br":
                self._said.append("\n")
            case "w:pageBreakBefore" if attributes.get("w:val") not in _OFF:
                self._break()
            case "w:sectPr":
                self._section = True
            case "w:type" if self._section and attributes.get("w:val") == "continuous":
                self._section = False
            case "w:tr":
                self._rows.append([])
            case "w:tc" if self._rows:
                self._rows[-1].append([])
            case _:
                self._said.append(_INLINE.get(name, ""))

    def end(self, name: str) -> None:
        """An element ends."""
        if self._skipping:
            self._skipping -= 1
            return
        self._reading = self._reading and name not in _TEXT
        match name:
            case "w:p" | "a:p":
                self._paragraph()
            case "w:tr" if self._rows:
                self._say("\t".join(" ".join(cell) for cell in self._rows.pop()))
            case _:
                pass

    def text(self, text: str) -> None:
        """Text stands here."""
        if self._reading and not self._skipping:
            self._said.append(text)

    def _paragraph(self) -> None:
        text = "".join(self._said)
        self._said.clear()
        self._say(text)
        if self._section and not self._rows:
            self._draft.page()
        self._section = False

    def _say(self, text: str) -> None:
        if self._rows and self._rows[-1]:
            self._rows[-1][-1].append(" ".join(text.split()))
        else:
            self._draft.line(text)

    def _break(self) -> None:
        """Begin a page, unless in a table."""
        if self._rows:
            return
        text = "".join(self._said)
        self._said.clear()
        if text.strip():
            self._draft.line(text)
        self._draft.page()
