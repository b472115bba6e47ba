# SPDX-License-Identifier: Apache-2.0
"""HTML: blocks as lines, a table's row as one line, and no script, style or form.

What a style would hide is read all the same: whether it shows is a matter of who looks. So is the text of a
drawing or a formula, and all that follows one that is never closed, which a browser shows. Source: the HTML
standard.
"""

import re
from html.parser import HTMLParser
from typing import Final

from runner.capability.documents.parsing.draft import Draft, Unreadable
from runner.capability.documents.parsing.text import decoded
from runner.capability.documents.words import Note, Reason

BYTES: Final = 16 << 20
_DECLARED: Final = re.compile(rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9_-]{1,20})", re.IGNORECASE)
_BREAK: Final = re.compile(r"(?:page-break|break)-before\s*:\s*(?:always|page)", re.IGNORECASE)
_SKIPPED: Final = frozenset({"script", "style", "template", "noembed", "noframes"})
_BLOCKS: Final = frozenset(
    {
        "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details",
        "dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3",
        "h4", "h5", "h6", "header", "hr", "html", "legend", "li", "main", "nav", "ol", "option", "p", "pre",
        "section", "summary", "table", "tbody", "tfoot", "thead", "title", "tr", "ul",
    }
)  # fmt: skip
_CELLS: Final = frozenset({"td", "th"})


def parse(data: bytes, draft: Draft, charset: str | None = None) -> None:
    """Read a page, in `charset` unless it says another; raise `Unreadable`, `Full`."""
    if len(data) > BYTES:
        raise Unreadable(Reason.TOO_BIG)
    declared = _DECLARED.search(data[:2048])
    page = _Page(draft)
    page.feed(decoded(data, charset or (declared[1].decode() if declared else None)))
    page.close()
    page.end_line()
    draft.note(Note.REST, int(page.skips))


class _Page(HTMLParser):
    """The elements of a page."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(convert_charrefs=True)
        self._draft = draft
        self._said: list[str] = []
        self._skipping: list[str] = []

    @property
    def skips(self) -> bool:
        """Whether something that is not read is still open."""
        return bool(self._skipping)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        if tag in _SKIPPED:
            self._skipping.append(tag)
            self._draft.note(Note.MACROS, int(tag == "script"))
        if self._skipping:
            return
        if tag in _BLOCKS:
            self.end_line()
        if any(name == "style" and value and _BREAK.search(value) for name, value in attrs):
            self.end_line()
            self._draft.page()
        if tag in _CELLS and self._said:
            self._said.append("\t")
        self._draft.note(Note.PICTURES, int(tag == "img"))

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        if tag in self._skipping:
            while self._skipping.pop() != tag:
                pass
        elif tag in _BLOCKS and not self._skipping:
            self.end_line()

    def handle_data(self, data: str) -> None:
        """Text stands here."""
        if not self._skipping:
            self._said.append(data)

    def end_line(self) -> None:
        """Say what was gathered, without its white space; nothing if there is nothing else."""
        cells = (" ".join(cell.split()) for cell in "".join(self._said).split("\t"))
        line = "\t".join(cell for cell in cells if cell)
        self._said.clear()
        if line:
            self._draft.line(line)
