# SPDX-License-Identifier: Apache-2.0
"""What a reader of a page would see, as lines of text, and where its links lead.

Owns which elements are shown and where a line ends. Scripts, styles, templates and what a page hides from its
reader are left out, and so are characters that show nothing: a model reads what a person would. Only what the
markup itself hides is known to be hidden; style sheets are not read. Leaves cutting a page into pieces to
`markup`, and following links to nobody. Total, and linear in the page.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Final

from runner.capability.tools.markup import End, Start, pieces_of
from runner.kernel.errors import ToolError
from runner.kernel.shown import is_seen

MOST_LINKS: Final = 40
"""Links of a page that are shown."""
_DEEPEST: Final = 512
_UNSHOWN: Final = frozenset(
    {"script", "style", "template", "iframe", "object", "svg", "xmp", "noembed", "noframes"}
    | {"annotation", "annotation-xml", "datalist", "dialog", "select", "canvas", "audio", "video"}
)
_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_INLINE: Final = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins"}
    | {"kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time"}
    | {"tt", "u", "var", "wbr", "img", "input", "link", "meta", "nobr", "ruby", "rt", "rp", "button"}
    | {"math", "semantics", "mrow", "mi", "mo", "mn", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot"}
    | {"msub", "msup", "msubsup", "munder", "mover", "munderover", "mstyle", "mpadded"}
)
"""Elements that begin no line."""
_CELLS: Final = frozenset({"td", "th"})
_ENDED_BY_NEXT: Final = frozenset({"p", "li", "dt", "dd", "tr", "td", "th"})
"""Elements whose end tag may be left out before another of the kind."""
_HIDING: Final = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The `lines` a reader sees, without empty ones, and `links`: `[n]` in them is the nth."""

    lines: tuple[str, ...] = field(repr=False)
    links: tuple[str, ...] = field(repr=False)


def text_of_page(markup: str, link: Callable[[str], str | None]) -> Page:
    """Return what is shown of `markup`; `link` names the page that a reference leads to, None for none.

    Raises `ToolError` for a page that is nested too deeply.
    """
    reader = _Reader(link)
    for piece in pieces_of(markup):
        match piece:
            case Start():
                reader.open(piece.tag, piece.attributes)
            case End():
                reader.close(piece.tag)
            case text:
                reader.say(text)
    reader.end_line()
    return Page(lines=tuple(reader.lines), links=tuple(reader.links))


def seen_line(text: str) -> str:
    """Return `text` as one line: a space for each run of white space, and nothing that cannot be seen."""
    return "".join(filter(is_seen, " ".join(text.split())))


class _Reader:
    """What is open, what of it is hidden, and the lines so far."""

    def __init__(self, link: Callable[[str], str | None]) -> None:
        self._link = link
        self._open: list[tuple[str, bool, int]] = []  # tag, whether it hides, the number of its link or 0
        self._tags: Counter[str] = Counter()
        self._hiding = 0
        self._line: list[str] = []
        self.lines: list[str] = []
        self.links: list[str] = []

    def open(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Begin an element."""
        self._mark(tag)
        if tag in _VOID:
            return
        if self._open and self._open[-1][0] == tag and tag in _ENDED_BY_NEXT:
            self.close(tag)
        hides = tag in _UNSHOWN or "hidden" in attributes or bool(_HIDING.search(attributes.get("style", "")))
        number = self._numbered(attributes["href"]) if tag == "a" and "href" in attributes else 0
        if len(self._open) >= _DEEPEST:
            raise ToolError("that page is nested too deeply to be read")
        self._open.append((tag, hides, number))
        self._tags[tag] += 1
        self._hiding += hides

    def close(self, tag: str) -> None:
        """End the innermost element `tag`, and all that is open in it; nothing if none is."""
        self._mark(tag)
        while self._tags[tag]:
            name, hides, number = self._open.pop()
            self._tags[name] -= 1
            if number and not self._hiding:
                self._line.append(f" [{number}]")
            self._hiding -= hides
            if name == tag:
                return

    def say(self, text: str) -> None:
        """Take a stretch of text."""
        if not self._hiding:
            self._line.append(text)

    def end_line(self) -> None:
        """Begin a new line, if there is something in this one."""
        if line := seen_line("".join(self._line)).strip():
            self.lines.append(line)
        self._line.clear()

    def _mark(self, tag: str) -> None:
        if tag in _CELLS:
            self._line.append(" ")
        elif tag not in _INLINE | _UNSHOWN:
            self.end_line()

    def _numbered(self, reference: str) -> int:
        """Return the number of the link that `reference` is; 0 for one that is not shown."""
        try:
            name = self._link(unescape(reference).strip())
        except ValueError:  # a reference to a character of absurd length
            return 0
        if name in self.links:
            return self.links.index(name) + 1
        if name is None or self._hiding or len(self.links) >= MOST_LINKS:
            return 0
        self.links.append(name)
        return len(self.links)
