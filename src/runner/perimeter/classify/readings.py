# SPDX-License-Identifier: Apache-2.0
"""Every reading of a text, from the text itself to what is encoded inside what is encoded in it.

Owns the order and the depth. Leaves each reading to `views`, `escapes` and `decode`, and what is looked for
to `engine` and `echo`, which read the same.
Carries the bound behind "linear time": a fixed depth, and readings no longer than their source up to a
constant.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final

from runner.perimeter.classify.decode import (
    BASE64,
    DUMPED,
    HEXADECIMAL,
    UNPACKABLE,
    base32_runs,
    base64_runs,
    dumped_runs,
    hexadecimal_runs,
)
from runner.perimeter.classify.disguise import disguised
from runner.perimeter.classify.escapes import ESCAPE, unescape
from runner.perimeter.classify.model import View
from runner.perimeter.classify.pattern import Prefilter
from runner.perimeter.classify.squeeze import SPACED, squeeze
from runner.perimeter.classify.views import Piece, Reading, fold, join, strange_in

DEPTH: Final = 3
"""How many encodings inside each other are opened."""
MOST: Final = 12
ROOM: Final = 8_192
"""All readings of a text together have no more than `MOST` times its characters and `ROOM`; what would need
more is not read on, and so may not leave. Ordinary texts and sources need 1 to 7 times their own."""
EACH: Final = 64
"""Characters that a reading counts for besides its own: many short ones take their time too."""
UNREAD: Final = b"\x02more than is read\x03"
"""Stands for the rest of such a text. The rule `more-than-is-read` finds it."""

_ENCODED: Final = (ESCAPE, BASE64, HEXADECIMAL, DUMPED, BASE64)
_DISGUISES: Final = Prefilter([*_ENCODED, *SPACED])
"""Says which inner readings there can be, in the order `inner_readings` takes them: first the encodings, then
what is only written apart. What is base32 is base64 too: to tell them apart takes twice the states."""


@lru_cache(maxsize=1)
def every_reading(text: str) -> tuple[Reading, ...]:
    """Return every reading of `text`, the outer before the inner; the first is the text folded.

    The last answer is kept: rules and echoes ask about the same text, one after the other. Who asks for both
    says when it is over, with `forget_readings`: nothing that was judged stays in memory for that.
    """
    left = MOST * len(text) + ROOM
    found = []
    for reading in _readings(text):
        found.append(reading)
        left -= len(reading.data) + EACH
        if left < 0:
            found.append(unread(text))
            break
    return tuple(found)


def unread(text: str) -> Reading:
    """Return the mark of `text` as a whole, which was not read to its end."""
    whole = Piece(at=0, start=0, end=len(text), step=0)
    return Reading(view=View.DECODED, data=UNREAD, pieces=(whole,))


def forget_readings() -> None:
    """Let go of the text that was read last."""
    every_reading.cache_clear()


def _readings(text: str) -> Iterator[Reading]:
    """Yield every reading, level by level, and each when it is asked for."""
    level = list(first_readings(text))
    yield from level
    for _ in range(DEPTH):
        below: list[Reading] = []
        for each in level:
            for inner in inner_readings(each, _DISGUISES.hits(each.data)):
                below.append(inner)
                yield inner
        level = below
    for each in level:
        yield from beyond_reading(each, _DISGUISES.hits(each.data))


def first_readings(text: str) -> Iterator[Reading]:
    """Yield the text folded, and without what cannot be seen if there is any."""
    strange = strange_in(text)
    yield fold(text, strange)
    yield from disguised(text, strange)
    joined = join(text, strange)
    if joined is not None:
        yield joined


def inner_readings(reading: Reading, seen: AbstractSet[int]) -> Iterator[Reading]:
    """Yield what is disguised inside `reading`; `seen` are the indices in `_DISGUISES` that may match."""
    escapes, base64, hexadecimal, dumped, base32 = (index in seen for index in range(len(_ENCODED)))
    if escapes:
        yield unescape(reading)
    if hexadecimal:
        yield from hexadecimal_runs(reading)
    if dumped:
        yield from dumped_runs(reading)
    if base64:
        yield from base64_runs(reading)
    if base32:
        yield from base32_runs(reading)
    for way in range(len(SPACED)):
        if len(_ENCODED) + way in seen:
            yield from squeeze(reading, way)


def beyond_reading(reading: Reading, seen: AbstractSet[int]) -> Iterator[Reading]:
    """Yield the mark of what is still encoded in `reading`, the last that is opened, if anything is.

    Nothing innocent is written in four encodings inside each other, and what nobody reads may not leave. That
    something was closed up is weak evidence: it counts once, and not beside escapes, which any page has.
    """
    views = [each.view for each in _outwards(reading)]
    apart = views.count(View.SQUEEZED)
    if apart > 1 or (apart and View.UNESCAPED in views):
        return
    encodings = seen & frozenset(range(len(_ENCODED)))
    if next(inner_readings(reading, encodings), None) is not None:
        whole = Piece(at=0, start=0, end=len(reading.data), step=0)
        yield Reading(view=View.DECODED, data=UNPACKABLE, pieces=(whole,), parent=reading)


def _outwards(reading: Reading | None) -> Iterator[Reading]:
    """Yield `reading` and what it was made from, to the first."""
    while reading is not None:
        yield reading
        reading = reading.parent
