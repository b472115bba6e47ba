# SPDX-License-Identifier: Apache-2.0
"""Every reading of a text, from the text itself to what is encoded inside what is encoded in it.

Owns the order and the depth. Leaves each reading to `views` and `decode`, and what is looked for to
`engine` and `echo`, which read the same.
Carries the bound behind "linear time": a fixed depth, and readings no longer than their source up to a
constant.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from runner.perimeter.classify.decode import BASE64, HEXADECIMAL, UNPACKABLE, decodings
from runner.perimeter.classify.disguise import disguised
from runner.perimeter.classify.model import View
from runner.perimeter.classify.pattern import Prefilter
from runner.perimeter.classify.squeeze import SPACED, squeeze
from runner.perimeter.classify.views import ESCAPE, Piece, Reading, fold, join, unescape

DEPTH: Final = 3
"""How many encodings inside each other are opened."""

ENCODINGS: Final = (ESCAPE, BASE64, HEXADECIMAL, *SPACED)
"""Patterns that say which inner readings there can be, in the order `inner_readings` takes them."""

_ENCODED: Final = frozenset(range(3))
"""Which of them are encodings; what is only written apart is not."""
_PREFILTER: Final = Prefilter(ENCODINGS)


def first_readings(text: str) -> Iterator[Reading]:
    """Yield the text folded, and without what cannot be seen if there is any."""
    alphabet = None if text.isascii() else frozenset(text)
    yield fold(text, alphabet)
    yield from disguised(text)
    joined = join(text, alphabet)
    if joined is not None:
        yield joined


def inner_readings(reading: Reading, seen: AbstractSet[int]) -> Iterator[Reading]:
    """Yield what is disguised inside `reading`; `seen` are the indices of `ENCODINGS` that may match."""
    escapes, base64, hexadecimal = (index in seen for index in range(3))
    if escapes:
        yield unescape(reading)
    if base64 or hexadecimal:
        yield from decodings(reading)
    for way in range(len(SPACED)):
        if len(ENCODINGS) - len(SPACED) + way in seen:
            yield from squeeze(reading, way)


def beyond_reading(reading: Reading, seen: AbstractSet[int]) -> Iterator[Reading]:
    """Yield the mark of what is still encoded in `reading`, the last that is opened, if anything is.

    Nothing innocent is written in four encodings inside each other, and what nobody reads may not leave.
    """
    if next(inner_readings(reading, seen & _ENCODED), None) is not None:
        whole = Piece(at=0, start=0, end=len(reading.data), literal=False)
        yield Reading(view=View.DECODED, data=UNPACKABLE, pieces=(whole,), parent=reading)


def every_reading(text: str) -> Iterator[Reading]:
    """Yield every reading of `text`, the outer before the inner."""
    level = list(first_readings(text))
    for _ in range(DEPTH + 1):
        yield from level
        level = [
            inner for reading in level for inner in inner_readings(reading, _PREFILTER.hits(reading.data))
        ]
