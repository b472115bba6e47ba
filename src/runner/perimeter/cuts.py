# SPDX-License-Identifier: Apache-2.0
"""Which stretches of a text are cut from another one.

Owns that comparison, which is what a yes to one text is carried to another by. White space counts as one
space, since a page is set anew; nothing else is overlooked. Leaves what follows from it to `declassify.py`.
Pure and total. Serves I8.
"""

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

Regions: TypeAlias = tuple[tuple[int, int], ...]
"""Stretches of a text, in code points, the ends excluded."""

LONG: Final = 16
"""From this length on a line may begin and end inside of a word, as where a text was cut to its room."""
_LINE: Final = re.compile(r"(?:# )?([^\n]+)")


def cuts(text: str, source: str) -> Regions:
    """Return the stretches of `text` that are cut from `source`; neighbours are one.

    That is all of a text that stands in `source`, the whole of `source` where it stands in the text, and else
    lines, heading marks left out, that stand in `source` in the same order.
    """
    if text and text in source:
        return ((0, len(text)),)
    if source and source in text:
        at = text.index(source)
        return ((at, at + len(source)),)
    read, at, found = " ".join(source.split()), 0, list[tuple[int, int]]()
    for line in _LINE.finditer(text):
        wanted = " ".join(line[1].split())
        place = _place(wanted, read, at)
        if place is None:
            continue
        at = place + len(wanted)
        if found and text[found[-1][1] : line.start(1)].isspace():
            found[-1] = (found[-1][0], line.end(1))
        else:
            found.append(line.span(1))
    return tuple(found)


def merged(regions: Iterable[tuple[int, int]]) -> Regions:
    """Return the union of `regions`, in order; those that touch are one."""
    union: list[tuple[int, int]] = []
    for start, end in sorted(regions):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(end, union[-1][1]))
        else:
            union.append((start, end))
    return tuple(union)


def _place(wanted: str, source: str, at: int) -> int | None:
    """Return where `wanted` stands in `source`, from `at` on; a short one only as whole words."""
    if not wanted:
        return None
    if len(wanted) >= LONG:
        place = source.find(wanted, at)
        return None if place < 0 else place
    words = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)").search(source, at)
    return None if words is None else words.start()
