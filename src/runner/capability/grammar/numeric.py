# SPDX-License-Identifier: Apache-2.0
"""Numbers as sets of decimal texts.

Owns the canonical text of a number and the automata for bounds and multiples: a bound is compared digit by
digit, so that ``>= 3.25`` is exact for any number of digits. Leaves merging of constraints to ``shapes``.

Invariant: an automaton accepts the text of a number if and only if the number is in the set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, TypeAlias

from .automaton import Dfa, boundaries, explore
from .model import Bounds, NumberShape, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterable

_DIGIT_LIMIT = 40
_MODULUS_LIMIT = 1000
_DIGITS = "0123456789"
_STARTS = boundaries([(ord("."), ord(".")), *((ord(digit), ord(digit)) for digit in _DIGITS)])
_SYMBOLS = {_STARTS.index(ord(char)): char for char in f".{_DIGITS}"}


def decimal_text(value: Fraction) -> str:
    """Return the shortest plain decimal text of ``value``; raises ``TooLargeError`` where it has none."""
    sign = "-" if value < 0 else ""
    places = 0
    scaled = abs(value)
    while scaled.denominator != 1:
        scaled *= 10
        places += 1
        if places > _DIGIT_LIMIT:
            raise TooLargeError("number")
    digits = str(scaled.numerator) if scaled < Fraction(10) ** (2 * _DIGIT_LIMIT) else ""
    if not digits or len(digits) - places > _DIGIT_LIMIT:
        raise TooLargeError("number")
    if not places:
        return sign + digits
    digits = digits.rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


@dataclass(frozen=True, slots=True)
class _Compare:
    """Compares a decimal text with a fixed one, reading from the left. States are small tuples."""

    whole: str
    part: str

    def step(self, state: tuple[str, int, int], char: str) -> tuple[str, int, int]:
        """States: ("i", digits read, order so far), ("f", equal digits, 0), ("d", 0, order decided)."""
        phase, count, order = state
        if phase == "i" and char == ".":
            order = self._whole_order(count, order)
            return ("f", 0, 0) if order == 0 else ("d", 0, order)
        if phase == "i":
            if count >= len(self.whole):
                return ("d", 0, 1)
            if order == 0:
                order = (char > self.whole[count]) - (char < self.whole[count])
            return ("i", count + 1, order)
        if phase == "f":
            expected = self.part[count] if count < len(self.part) else "0"
            if char != expected:
                return ("d", 0, 1 if char > expected else -1)
            return ("f", min(count + 1, len(self.part)), 0)
        return state

    def _whole_order(self, count: int, order: int) -> int:
        return -1 if count < len(self.whole) else order

    def order(self, state: tuple[str, int, int]) -> int:
        """Return -1, 0 or 1 for the text read so far against the fixed one."""
        phase, count, order = state
        if phase == "i":
            order = self._whole_order(count, order)
            return -1 if order == 0 and self.part else order
        if phase == "f":
            return -1 if count < len(self.part) else 0
        return order


def _compare(value: Fraction | None) -> _Compare | None:
    if value is None:
        return None
    whole, _, part = decimal_text(value).partition(".")
    return _Compare(whole=whole, part=part)


@dataclass(frozen=True, slots=True)
class _Modulus:
    """Tracks a decimal text modulo ``step / 10**places``; states are (remainder, places read)."""

    step: int
    places: int

    def advance(self, state: tuple[int, int], char: str) -> tuple[int, int] | None:
        remainder, read = state
        if char == ".":
            return (remainder, 0)
        if read < 0:
            return ((remainder * 10 + int(char)) % self.step, -1)
        if read < self.places:
            return ((remainder * 10 + int(char)) % self.step, read + 1)
        return None  # a longer fraction could only be zeros

    def divides(self, state: tuple[int, int]) -> bool:
        return bool(state[0] * 10 ** (self.places - max(state[1], 0)) % self.step == 0)


def _modulus(multiples: Iterable[Fraction]) -> _Modulus | None:
    steps = list(multiples)
    if not steps:
        return None
    places = max(len(decimal_text(step).partition(".")[2]) for step in steps)
    step = reduce(math.lcm, (int(step * 10**places) for step in steps))
    if step > _MODULUS_LIMIT:
        raise TooLargeError("multipleOf")
    return _Modulus(step=step, places=places)


_State: TypeAlias = tuple[str, tuple[str, int, int], tuple[str, int, int], tuple[int, int]]
"""Where in the syntax, the comparison with each bound, and the remainder."""


def _syntax(phase: str, char: str, *, integral: bool) -> str | None:
    """Return the next phase: start, zero, whole, point, zeros (after the point), part (a digit not zero)."""
    if char == ".":
        return "point" if phase in ("zero", "whole") and not integral else None
    match phase:
        case "start":
            return "zero" if char == "0" else "whole"
        case "point" | "zeros":
            return "zeros" if char == "0" else "part"
        case "whole" | "part":
            return phase
    return None


@dataclass(frozen=True, slots=True)
class _Magnitudes:
    """Four machines side by side: syntax, two comparisons and a remainder; those not needed stand still."""

    integral: bool | None
    bounds: Bounds
    low: _Compare | None
    high: _Compare | None
    modulus: _Modulus | None

    def step(self, state: _State, index: int) -> _State | None:
        char = _SYMBOLS.get(index)
        phase = _syntax(state[0], char, integral=self.integral is True) if char else None
        if char is None or phase is None:
            return None
        remainder = self.modulus.advance(state[3], char) if self.modulus else state[3]
        if remainder is None:
            return None
        low = self.low.step(state[1], char) if self.low else state[1]
        return (phase, low, self.high.step(state[2], char) if self.high else state[2], remainder)

    def accepts(self, state: _State) -> bool:
        if state[0] in ("start", "point") or (self.integral is False and state[0] != "part"):
            return False
        if self.low and self.low.order(state[1]) < int(self.bounds.lo_open):
            return False
        if self.high and self.high.order(state[2]) > -int(self.bounds.hi_open):
            return False
        return not self.modulus or self.modulus.divides(state[3])


def magnitudes(shape: NumberShape, bounds: Bounds) -> Dfa:
    """Return the texts without a sign whose value is in ``bounds`` and ``shape``'s multiples.

    ``bounds`` are of the magnitude, not negative. Raises ``TooLargeError`` when digits or remainders are too
    many.
    """
    machine = _Magnitudes(
        shape.integral, bounds, _compare(bounds.lo), _compare(bounds.hi), _modulus(shape.multiples)
    )
    return explore(
        starts=_STARTS,
        first=("start", ("i", 0, 0), ("i", 0, 0), (0, -1)),
        step=machine.step,
        accepting=machine.accepts,
        limit=20_000,
        keyword="multipleOf" if machine.modulus else "number",
    )


def negative(bounds: Bounds) -> Bounds | None:
    """Return the magnitudes of the negative numbers in ``bounds``, or ``None`` when there are none."""
    if bounds.lo is not None and bounds.lo >= 0:
        return None
    lo, lo_open = Fraction(0), True
    if bounds.hi is not None and bounds.hi < 0:
        lo, lo_open = -bounds.hi, bounds.hi_open
    hi = None if bounds.lo is None else -bounds.lo
    return Bounds(lo=lo, lo_open=lo_open, hi=hi, hi_open=bounds.lo_open)


def positive(bounds: Bounds) -> Bounds | None:
    """Return ``bounds`` from zero upward, or ``None`` when nothing is left."""
    if bounds.hi is not None and (bounds.hi < 0 or (bounds.hi == 0 and bounds.hi_open)):
        return None
    if bounds.lo is None or bounds.lo < 0:
        return Bounds(hi=bounds.hi, hi_open=bounds.hi_open)
    return bounds


@lru_cache(maxsize=128)
def sides(shape: NumberShape) -> tuple[Dfa | None, Dfa | None]:
    """Return the magnitudes of the negative and of the other numbers of ``shape``, ``None`` when empty."""
    found = [
        magnitudes(shape, side) if side else None for side in (negative(shape.bounds), positive(shape.bounds))
    ]
    below, above = (side if side and not side.is_empty() else None for side in found)
    return below, above


def includes(shape: NumberShape, value: Fraction) -> bool:
    """Whether ``value`` satisfies every constraint of ``shape``."""
    bounds = shape.bounds
    if shape.integral is not None and (value.denominator == 1) is not shape.integral:
        return False
    if bounds.lo is not None and (value < bounds.lo or (value == bounds.lo and bounds.lo_open)):
        return False
    if bounds.hi is not None and (value > bounds.hi or (value == bounds.hi and bounds.hi_open)):
        return False
    if value in shape.barred or (shape.values is not None and value not in shape.values):
        return False
    return all((value / multiple).denominator == 1 for multiple in shape.multiples)


def pieces(shape: NumberShape) -> list[NumberShape]:
    """Split ``shape`` at its barred values, so that each piece is an interval without exceptions."""
    bounds = shape.bounds
    cuts = sorted(value for value in shape.barred if includes_bounds(bounds, value))
    result: list[NumberShape] = []
    lo, lo_open = bounds.lo, bounds.lo_open
    for cut in cuts:
        result.append(_piece(shape, Bounds(lo=lo, lo_open=lo_open, hi=cut, hi_open=True)))
        lo, lo_open = cut, True
    result.append(_piece(shape, Bounds(lo=lo, lo_open=lo_open, hi=bounds.hi, hi_open=bounds.hi_open)))
    return result


def _piece(shape: NumberShape, bounds: Bounds) -> NumberShape:
    return NumberShape(integral=shape.integral, bounds=bounds, multiples=shape.multiples)


def includes_bounds(bounds: Bounds, value: Fraction) -> bool:
    """Whether ``value`` lies in ``bounds``."""
    return includes(NumberShape(bounds=bounds), value)
