# SPDX-License-Identifier: Apache-2.0
"""Regular expressions as sets of strings.

Owns the automaton of a pattern: searched anywhere unless anchored, look-aheads right after ``^`` as
intersections and differences. Leaves syntax to ``pattern`` and what to do with an unsupported pattern to
the caller.

Invariant: the set is exact for the reading asked for, or an exception says that there is none.
"""

from __future__ import annotations

from functools import lru_cache

from .automaton import STATE_LIMIT, TOP, Dfa, Ranges, boundaries, explore, product
from .model import TooLargeError
from .pattern import Anchor, Chars, Choice, Look, Parser, Regex, Repeat, Sequence, UnsupportedPatternError

_NFA_LIMIT = 6000
_ANY: Ranges = ((0, TOP),)


class _Nfa:
    """A Thompson automaton: plain, start-only and end-only empty moves, and moves on ranges."""

    __slots__ = ("at_end", "at_start", "chars", "empty")

    def __init__(self) -> None:
        self.empty: list[list[int]] = []
        self.at_start: dict[int, list[int]] = {}
        self.at_end: dict[int, list[int]] = {}
        self.chars: dict[int, tuple[Ranges, int]] = {}

    def new(self) -> int:
        if len(self.empty) >= _NFA_LIMIT:
            raise TooLargeError("pattern")
        self.empty.append([])
        return len(self.empty) - 1

    def add(self, regex: Regex, start: int) -> int:
        """Append ``regex`` after ``start`` and return where it ends."""
        match regex:
            case Chars(ranges=ranges):
                here, end = self.new(), self.new()
                self.empty[start].append(here)
                self.chars[here] = (ranges, end)
                return end
            case Sequence(parts=parts):
                for part in parts:
                    start = self.add(part, start)
                return start
            case Choice(parts=parts):
                end = self.new()
                for part in parts:
                    begin = self.new()
                    self.empty[start].append(begin)
                    self.empty[self.add(part, begin)].append(end)
                return end
            case Repeat():
                return self._repeat(regex, start)
            case Anchor(end=at_end):
                end = self.new()
                (self.at_end if at_end else self.at_start).setdefault(start, []).append(end)
                return end
            case Look():
                raise UnsupportedPatternError("a look-ahead stands elsewhere than at the start")

    def _repeat(self, regex: Repeat, start: int) -> int:
        for _ in range(regex.lo):
            start = self.add(regex.part, start)
        if regex.hi is None:
            loop = self.new()
            self.empty[start].append(loop)
            self.empty[self.add(regex.part, loop)].append(loop)
            return loop
        end = self.new()
        self.empty[start].append(end)
        for _ in range(regex.hi - regex.lo):
            start = self.add(regex.part, start)
            self.empty[start].append(end)
        return end

    def reach(self, starts: tuple[int, ...]) -> dict[int, tuple[Ranges, int]]:
        """Return the moves on characters as half-open ranges of symbol classes, and their targets."""
        index = {start: position for position, start in enumerate(starts)}
        return {
            state: (
                tuple((index[low], index[high + 1] if high < TOP else len(starts)) for low, high in ranges),
                target,
            )
            for state, (ranges, target) in self.chars.items()
        }

    def row(
        self, state: frozenset[int], reach: dict[int, tuple[Ranges, int]], size: int
    ) -> list[frozenset[int]]:
        """Return the closed set of states after ``state`` for each of ``size`` symbol classes."""
        hit: list[set[int]] = [set() for _ in range(size)]
        for member in state & reach.keys():
            spans, target = reach[member]
            for low, high in spans:
                for position in range(low, high):
                    hit[position].add(target)
        keys = [frozenset(targets) for targets in hit]
        closed = {key: self.closure(key) for key in set(keys)}
        return [closed[key] for key in keys]

    def closure(self, states: frozenset[int], *, start: bool = False, end: bool = False) -> frozenset[int]:
        found = set(states)
        queue = list(states)
        while queue:
            state = queue.pop()
            targets = list(self.empty[state])
            if start:
                targets += self.at_start.get(state, ())
            if end:
                targets += self.at_end.get(state, ())
            for target in targets:
                if target not in found:
                    found.add(target)
                    queue.append(target)
        return frozenset(found)


def _determinise(regex: Regex) -> Dfa:
    """Search for ``regex`` anywhere: any characters, the expression, any characters."""
    anything = Repeat(part=Chars(ranges=_ANY), lo=0, hi=None)
    nfa = _Nfa()
    begin = nfa.new()
    accept = nfa.add(Sequence(parts=(anything, regex, anything)), begin)
    starts = boundaries(pair for ranges, _ in nfa.chars.values() for pair in ranges)
    reach = nfa.reach(starts)
    first = nfa.closure(frozenset({begin}), start=True)
    rows: dict[frozenset[int], list[frozenset[int]]] = {}

    def step(state: frozenset[int], symbol: int) -> frozenset[int] | None:
        if accept in state:
            return state  # the tail takes anything
        if state not in rows:
            rows[state] = nfa.row(state, reach, len(starts))
        return rows[state][symbol] or None

    def accepting(state: frozenset[int]) -> bool:
        return accept in nfa.closure(state, start=state == first, end=True)

    return explore(starts=starts, first=first, step=step, accepting=accepting, limit=STATE_LIMIT)


@lru_cache(maxsize=512)
def _outcome(pattern: str, *, wide: bool) -> Dfa | UnsupportedPatternError | TooLargeError:
    """Read ``pattern`` once; a failure is kept like a result, since it may have cost as much."""
    try:
        return _read(pattern, wide=wide)
    except (UnsupportedPatternError, TooLargeError) as error:
        return error


def language(pattern: str, *, wide: bool = False) -> Dfa:
    """Return the set of strings in which ``pattern`` is found.

    The specification means ECMA-262; validators use what their language has. The set is the strings that
    match in ECMA-262 and in Python's ``re``; when ``wide``, those that match in either, which is what to
    subtract. Look-aheads right after ``^`` become intersections and differences.

    Raises ``UnsupportedPatternError`` outside the subset and ``TooLargeError`` past the bounds.
    """
    outcome = _outcome(pattern, wide=wide)
    if isinstance(outcome, UnsupportedPatternError):
        raise UnsupportedPatternError(*outcome.args)
    if isinstance(outcome, TooLargeError):
        raise TooLargeError(outcome.keyword)
    return outcome


def _parts(regex: Regex) -> tuple[Regex, ...]:
    return regex.parts if isinstance(regex, Sequence) else (regex,)


def _looks(parts: tuple[Regex, ...]) -> int:
    """Return how many parts are a start anchor and the look-aheads right after it."""
    if not parts or parts[0] != Anchor(end=False):
        return 0
    count = 1
    while count < len(parts) and isinstance(parts[count], Look):
        count += 1
    return count


def _read(pattern: str, *, wide: bool) -> Dfa:
    parts = _parts(Parser(pattern, wide=wide).parse())
    count = _looks(parts)
    opposite = _parts(Parser(pattern, wide=not wide).parse()) if count > 1 else parts
    result = _determinise(Sequence(parts=(*parts[: min(count, 1)], *parts[count:])))
    for index in range(1, count):
        look, other = parts[index], opposite[index]
        if isinstance(look, Look) and isinstance(other, Look):
            body = look.part if look.holds else other.part
            ahead = _determinise(Sequence(parts=(Anchor(end=False), body)))
            result = product(result, ahead, without=not look.holds)
    return result
