# SPDX-License-Identifier: Apache-2.0
"""ODT: paragraphs as lines, a table's row as one line, explicit breaks as pages. Source: ODF 1.3, part 3."""

from collections.abc import Mapping
from typing import Final

from runner.capability.documents.parsing.draft import Draft, Unreadable
from runner.capability.documents.parsing.markup import read_xml
from runner.capability.documents.parsing.office import Archive
from runner.capability.documents.words import Note, Reason

_SPACES: Final = 100
_SKIPPED: Final = frozenset({"text:tracked-changes", "text:sequence-decls", "office:scripts", "office:forms"})
_MANIFEST: Final = "META-INF/manifest.xml"


def parse(archive: Archive, draft: Draft) -> None:
    """Read `archive`; raise `Unreadable`, `Full`."""
    if _MANIFEST in archive.names and b"encryption-data" in archive.read(_MANIFEST):
        raise Unreadable(Reason.ENCRYPTED)
    draft.page()
    read_xml(archive.read("content.xml"), Body(draft))
    archive.note_rest()


class Body:
    """The elements of a text, after the styles that say which paragraphs begin a page."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._said: list[str] = []
        self._outer: list[list[str]] = []
        self._rows: list[list[list[str]]] = []
        self._skipping = 0
        self._style = ""
        self._before: set[str] = set()
        self._after: set[str] = set()
        self._ending = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        if self._skipping or name in _SKIPPED:
            self._skipping += 1
            self._draft.note(Note.DELETED, int(name == "text:deletion"))
            return
        match name:
            case "style:style":
                self._style = attributes.get("style:name", "")
            case "style:paragraph-properties":
                self._learn(attributes)
            case "text:p" | "text:h":
                self._begin(attributes.get("text:style-name", ""))
            case "text:tab":
                self._said.append("\t")
            case "text:line-break":
                self._said.append("\n")
            case "text:s":
                count = attributes.get("text:c", "1")
                self._said.append(" " * min(int(count) if count.isdecimal() else 1, _SPACES))
            case "table:table-row":
                self._rows.append([])
            case "table:table-cell" if self._rows:
                self._rows[-1].append([])
            case _:
                pass

    def end(self, name: str) -> None:
        """An element ends."""
        if self._skipping:
            self._skipping -= 1
            return
        match name:
            case "text:p" | "text:h" if self._outer:
                self._finish()
            case "table:table-row" if self._rows:
                self._say("\t".join(" ".join(cell) for cell in self._rows.pop()))
            case _:
                pass

    def text(self, text: str) -> None:
        """Text counts in a paragraph only. Runs of white space are one space."""
        if self._outer and not self._skipping:
            lead = " " if text[:1].isspace() else ""
            trail = " " if text[-1:].isspace() and text.strip() else ""
            self._said.append(lead + " ".join(text.split()) + trail)

    def _learn(self, attributes: Mapping[str, str]) -> None:
        if attributes.get("fo:break-before") == "page":
            self._before.add(self._style)
        if attributes.get("fo:break-after") == "page":
            self._after.add(self._style)

    def _begin(self, style: str) -> None:
        self._outer.append(self._said)
        self._said = []
        if style in self._before and not self._rows:
            self._draft.page()
        self._ending = style in self._after

    def _finish(self) -> None:
        self._say("".join(self._said))
        self._said = self._outer.pop()
        if self._ending and not self._rows:
            self._draft.page()
        self._ending = False

    def _say(self, text: str) -> None:
        if self._rows and self._rows[-1]:
            self._rows[-1][-1].append(" ".join(text.split()))
        else:
            self._draft.line(text)
