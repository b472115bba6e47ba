# SPDX-License-Identifier: Apache-2.0
"""White space inside a paragraph: a line end, a tab or a second blank between two words is one space.

Owns what such a run is, the reading in which each is one space, and what is looked for there: only what has
a run in it, or its words beyond one, and what was not found in the text as it stands. Leaves rules that mean
a line (a signature, the head of an entry, a column) to that text: they are not asked here. An empty line
stays one: nothing is read across it.
Carries I6: a name, a number or a password is found wherever a mail was wrapped or quoted. Time is linear: one
pass for the runs, and a search near them.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from runner.perimeter.classify.model import Span, View, is_clear
from runner.perimeter.classify.pattern import LOCAL, Stretches, compile_pattern
from runner.perimeter.classify.pattern import Span as Range
from runner.perimeter.classify.search import Detector, Finder, Verdicts
from runner.perimeter.classify.views import AFTER, BEFORE, Draft, Reading

_BLANK: Final = r"[ \t\x0b\x0c]"
_END: Final = r"(?:\r?\n|\r|\\r\\n|\\[nrt])"
"""The end of a line, or its escape in JSON."""
_RUN: Final = rf"{_BLANK}*{_END}{_BLANK}*(?:>[> \t\x0b\x0c]*)?|{_BLANK}*[\t\x0b\x0c]{_BLANK}*|{_BLANK}{{2,}}"
"""One line end, blanks around it and marks of a quotation behind it; or blanks that are not one space."""
_RUNS: Final = compile_pattern(_RUN)
_ENDS: Final = re.compile(rb"\n(?<![ \t\r\n\x0b\x0c]\n) ?+(?:>[> ]*+)?+(?![ \t\r\n\x0b\x0c\\])")
_WIDE: Final = (b"\t", b"\r", b"\x0b", b"\x0c", b"\\", b"  ", b" \n")
"""Where none of these stands a run is an end of a line, and what begins the next. Most texts are read so, in
a fifth of the time."""
_QUOTATION: Final = re.compile(rb"\n>[> \t]*+")
_TO_SPACES: Final = bytes.maketrans(b"\t\r\n\x0b\x0c", b" " * 5)
_SPACES: Final = frozenset(b" \t\r\n\x0b\x0c")
_NO_WORD: Final = _SPACES | frozenset(b"\\")
_PLACES: Final = frozenset({"address", "organisation"})
"""Kinds that end with their line where one was found in it: below an address stands a telephone."""
_LONGEST: Final = 160
"""Bytes before a run in which something that goes on behind it may begin."""


def flat(data: bytes) -> bytes:
    """Return `data` with one space for each run, empty lines included."""
    if b">" in data:
        data = _QUOTATION.sub(b" ", data)
    data = data.translate(_TO_SPACES)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    return data


def spaced(reading: Reading) -> Reading | None:
    """Return `reading` with one space for each run; None if there is none.

    What was closed up is not read so: its gaps are not what somebody wrote.
    """
    runs = [] if reading.only_disguised else list(_runs(reading.data))
    if not runs:
        return None
    draft, position = Draft(reading.data.decode("ascii")), 0
    for start, end in runs:
        draft.literal(position, start)
        draft.instead(" ", start, end)
        position = end
    draft.literal(position, len(reading.data))
    return draft.reading(View.SPACED if is_clear(reading.view) else reading.view, reading)


def _runs(data: bytes) -> Iterator[Range]:
    """Yield the runs between two words: at neither end of `data` nor beside an empty line."""
    if any(sign in data for sign in _WIDE):
        runs = (match[0] for match in _RUNS.finditer(data))
    else:
        runs = (match.span() for match in _ENDS.finditer(data))
    for start, end in runs:
        if 0 < start < end < len(data) and data[start - 1] not in _SPACES and data[end] not in _NO_WORD:
            yield start, end


class SpacedFinder(Finder):
    """What rules find in a reading that `spaced` made, beyond what `base` found where it was made from."""

    __slots__ = ("_base", "_edge", "_near", "_runs")

    def __init__(self, reading: Reading, source: bytes, verdicts: Verdicts, base: Finder) -> None:
        super().__init__(reading, source, verdicts)
        self._base = base
        self._edge = -1 if b"\\" in base._data else 1  # noqa: SLF001 - a finder as this one
        """How far in a match a run must be: the letter of an escape was read as one of the word behind."""
        self._runs = [piece.at for piece in reading.pieces if piece.step == 0]
        self._near = list(_around(self._runs))

    def search(self, tried: Detector, stretches: Stretches) -> list[Span]:
        """Return the hits of one rule whose trigger was seen in `stretches` of the reading."""
        if tried.rule.of_a_line:
            return []
        return super().search(tried, list(_near(self._near, stretches)))

    def _judge(self, tried: Detector, match: list[Range]) -> int:
        """Add a candidate as `Finder` does, if a run stands inside the match or between it and its words.

        One that only ends the word before, or begins the one behind, did so where it was read as it stands.
        """
        start, end = match[0][0] + self._edge, match[0][1] - self._edge
        if tried.rule.needs_context:
            start, end = start - BEFORE, end + AFTER
        run = bisect_left(self._runs, start)
        if run == len(self._runs) or self._runs[run] >= end:
            return match[tried.group][0] + 1
        if tried.covers not in self._covered and (covered := self._base.covered(tried.covers)) is not None:
            self._covered[tried.covers] = self._here(covered)
        start, _ = match[tried.group]
        if tried.rule.kind in _PLACES and self._covered.get(tried.covers, b"")[start : start + 1] == b"\1":
            return start + 1
        return super()._judge(tried, match)

    def _here(self, covered: bytearray) -> bytearray:
        """Return `covered`, of the reading this one was made from, for this one: runs say nothing new."""
        pieces = self._reading.pieces
        return bytearray().join(covered[each.start : each.end] if each.step else b"\1" for each in pieces)


def _around(runs: list[int]) -> Iterator[Range]:
    """Yield the parts of a reading in which what has one of `runs` in or near it may begin."""
    first = last = -1
    for at in runs:
        if at - _LONGEST > last:
            if last >= 0:
                yield first, last
            first = max(0, at - _LONGEST)
        last = at + BEFORE + 1
    if last >= 0:
        yield first, last


def _near(windows: Stretches, stretches: Stretches) -> Iterator[Range]:
    """Yield those of `windows` in or right behind which one of `stretches` lies."""
    index = 0
    for start, end in windows:
        while index < len(stretches) and stretches[index][1] <= start:
            index += 1
        if index < len(stretches) and stretches[index][0] < end + LOCAL:
            yield start, end
