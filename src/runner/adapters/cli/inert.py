# SPDX-License-Identifier: Apache-2.0
"""Inert text: what a model, a file, a tool or a record wrote, shown so that it does nothing.

Owns the one way foreign text reaches a terminal (design 02, "the reader's screen"). It does not look for
attacks: there is no list of escape sequences here to be incomplete. A character is printed as it is only if
Unicode calls it printable and it can be seen; every other one (C0 and C1 controls, so every escape sequence,
OSC 8 and 52 included; bidirectional and invisible format characters; variation selectors, fillers;
separators; surrogates; what is not assigned) is printed as its number, visibly. Markdown and console markup
are never rendered, so links and images stay text.

Leaves which characters these are to `runner.kernel.shown`, and to `screen` that lines of ours cannot be
imitated. Every function here is total.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.cells import cell_len

from runner.kernel.shown import is_seen, number_of

TAB: Final = "    "


def inert(text: str) -> str:
    """Return `text` with line feeds kept, other space as spaces, and what is not printable as numbers."""
    return "".join(map(_shown, text.replace("\r\n", "\n")))


def inert_line(text: str) -> str:
    """Return `text` as one inert line: line feeds are numbered like any other control."""
    return inert(text).replace("\n", "\\n")


def _shown(char: str) -> str:
    if is_seen(char) or char == "\n":
        return char
    if char == "\t":
        return TAB
    if unicodedata.category(char) == "Zs":
        return " "
    return number_of(char)


def folded(text: str, width: int | None) -> Iterator[str]:
    """Yield the lines of inert `text`, each at most `width` terminal cells (None: as long as they are).

    Breaks at a space where the line has one. A terminal that folded by itself would start the rest of a
    foreign line in our column. A `width` below 2 counts as 2, the cells of the widest character.
    """
    for line in inert(text).split("\n"):
        yield from [line] if width is None else _fold(line, max(width, 2))


def _fold(line: str, width: int) -> Iterator[str]:
    """Yield the pieces of one line, in time linear in its length."""
    start = 0
    while True:
        piece = _fitting(line[start : start + width], width)
        if start + len(piece) == len(line):
            yield piece
            return
        space = piece.rfind(" ")
        yield piece if space <= 0 else piece[:space]
        start += len(piece) if space <= 0 else space + 1


def _fitting(piece: str, width: int) -> str:
    """Return the longest start of `piece`, one character at least if it has any, that fits `width` cells."""
    while len(piece) > 1 and cell_len(piece) > width:
        piece = piece[:-1]
    return piece


def tail(text: str, width: int) -> str:
    """Return the end of `text` as one inert line of at most `width` cells."""
    line = inert_line(text[-width:]) if width > 0 else ""
    while line and cell_len(line) > width:
        line = line[1:]
    return line


def to_json(value: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """Return `value` as JSON in printable ASCII: parsed it is exact, printed it is inert.

    Raises `TypeError` for a value that is not JSON.
    """
    return json.dumps(value, ensure_ascii=True, indent=indent)
