# SPDX-License-Identifier: Apache-2.0
"""Finite automata over Unicode code points.

Owns construction by exploration, product, trimming and membership. Leaves regular expressions to ``regex``,
numbers to ``numeric`` and text to ``emit``. Sets are exact, so complement and intersection are too.

Invariant: every construction is bounded by a number of states, and says so by ``TooLargeError`` (I4).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from .model import TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DEAD = -1
TOP = 0x10FFFF
STATE_LIMIT = 3000
_MINIMISE_LIMIT = 160

S = TypeVar("S", bound=Hashable)

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Closed ranges of code points, ascending and disjoint."""


def union(ranges: list[tuple[int, int]]) -> Ranges:
    """Return ``ranges`` ascending, merged and disjoint."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def inverse(ranges: Ranges) -> Ranges:
    """Return every code point outside ``ranges``."""
    result = []
    low = 0
    for first, last in ranges:
        if first > low:
            result.append((low, first - 1))
        low = last + 1
    if low <= TOP:
        result.append((low, TOP))
    return tuple(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dfa:
    """A deterministic automaton; state 0 is the start.

    ``starts`` are the first code points of the symbol classes, ascending from 0; ``moves[state][class]`` is
    the next state or ``DEAD``.
    """

    starts: tuple[int, ...]
    moves: tuple[tuple[int, ...], ...]
    accepts: frozenset[int]

    def is_empty(self) -> bool:
        """Whether no string is accepted (exact once trimmed)."""
        return not self.accepts

    def holds(self, text: str) -> bool:
        """Whether ``text`` is in the set."""
        state = 0
        for char in text:
            state = self.moves[state][bisect_right(self.starts, ord(char)) - 1]
            if state == DEAD:
                return False
        return state in self.accepts

    def edges(self, state: int) -> list[tuple[int, Ranges]]:
        """Return the targets of ``state``, each with the code points that lead to it."""
        found: dict[int, list[tuple[int, int]]] = {}
        for target, low, after in zip(
            self.moves[state], self.starts, (*self.starts[1:], TOP + 1), strict=True
        ):
            if target == DEAD:
                continue
            ranges = found.get(target)
            if ranges is None:
                found[target] = [(low, after - 1)]
            elif ranges[-1][1] + 1 == low:
                ranges[-1] = (ranges[-1][0], after - 1)
            else:
                ranges.append((low, after - 1))
        return [(target, tuple(ranges)) for target, ranges in found.items()]


def boundaries(ranges: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return the class starts that no range of ``ranges`` cuts."""
    cuts = {0}
    for low, high in ranges:
        cuts.add(low)
        if high < TOP:
            cuts.add(high + 1)
    return tuple(sorted(cuts))


def explore(
    *,
    starts: tuple[int, ...],
    first: S,
    step: Callable[[S, int], S | None],
    accepting: Callable[[S], bool],
    limit: int = STATE_LIMIT,
    keyword: str = "pattern",
) -> Dfa:
    """Build the automaton whose states are reached from ``first`` by ``step(state, class index)``.

    Raises ``TooLargeError`` naming ``keyword`` past ``limit`` states.
    """
    numbers: dict[S, int] = {first: 0}
    queue = deque([first])
    moves: list[tuple[int, ...]] = []
    accepts: set[int] = set()
    while queue:
        state = queue.popleft()
        if accepting(state):
            accepts.add(len(moves))
        row: list[int] = []
        for index in range(len(starts)):
            target = step(state, index)
            if target is None:
                row.append(DEAD)
                continue
            if target not in numbers:
                if len(numbers) >= limit:
                    raise TooLargeError(keyword)
                numbers[target] = len(numbers)
                queue.append(target)
            row.append(numbers[target])
        moves.append(tuple(row))
    return minimise(trim(Dfa(starts=starts, moves=tuple(moves), accepts=frozenset(accepts))))


def trim(dfa: Dfa) -> Dfa:
    """Return the same set with every state that cannot accept made dead."""
    back: dict[int, list[int]] = {}
    for state, row in enumerate(dfa.moves):
        for target in set(row):
            back.setdefault(target, []).append(state)
    alive = set(dfa.accepts)
    queue = list(alive)
    while queue:
        for state in back.get(queue.pop(), ()):
            if state not in alive:
                alive.add(state)
                queue.append(state)
    kept = [state for state in range(len(dfa.moves)) if state in alive or state == 0]
    renamed = {state: index for index, state in enumerate(kept)}
    moves = tuple(tuple(renamed[t] if t in alive else DEAD for t in dfa.moves[state]) for state in kept)
    return Dfa(starts=dfa.starts, moves=moves, accepts=frozenset(renamed[state] for state in dfa.accepts))


def minimise(dfa: Dfa) -> Dfa:
    """Merge states that no string tells apart (Moore 1956); large automata are left as they are."""
    count = len(dfa.moves)
    if count > _MINIMISE_LIMIT:
        return dfa
    block = [int(state in dfa.accepts) for state in range(count)]
    blocks = len(set(block))
    while True:
        block.append(DEAD)  # so that block[DEAD] is DEAD
        seen: dict[tuple[int, ...], int] = {}
        refined = [
            seen.setdefault((block[state], *(block[target] for target in dfa.moves[state])), len(seen))
            for state in range(count)
        ]
        block = refined
        if len(seen) == blocks:
            break
        blocks = len(seen)
    firsts: dict[int, int] = {}
    for state in range(count):
        firsts.setdefault(block[state], state)
    block.append(DEAD)
    moves = tuple(tuple(block[target] for target in dfa.moves[firsts[number]]) for number in range(blocks))
    return Dfa(starts=dfa.starts, moves=moves, accepts=frozenset(block[state] for state in dfa.accepts))


def product(left: Dfa, right: Dfa, *, without: bool = False, keyword: str = "pattern") -> Dfa:
    """Return the intersection of two sets, or ``left`` without ``right``.

    Raises ``TooLargeError`` naming ``keyword`` past the state limit.
    """
    starts = tuple(sorted({*left.starts, *right.starts}))
    lefts = [bisect_right(left.starts, start) - 1 for start in starts]
    rights = [bisect_right(right.starts, start) - 1 for start in starts]

    def step(state: tuple[int, int], index: int) -> tuple[int, int] | None:
        first = left.moves[state[0]][lefts[index]]
        if first == DEAD:
            return None
        second = DEAD if state[1] == DEAD else right.moves[state[1]][rights[index]]
        if second == DEAD and not without:
            return None
        return (first, second)

    def accepting(state: tuple[int, int]) -> bool:
        return state[0] in left.accepts and (state[1] in right.accepts) is not without

    return explore(starts=starts, first=(0, 0), step=step, accepting=accepting, keyword=keyword)


def lengths(lo: int, hi: int | None) -> Dfa:
    """Return the set of strings of ``lo`` to ``hi`` code points; raises ``TooLargeError`` when too long."""
    last = lo if hi is None else hi

    def step(state: int, _: int) -> int | None:
        if state < last:
            return state + 1
        return state if hi is None else None

    keyword = "minLength" if hi is None else "maxLength"
    return explore(
        starts=(0,),
        first=0,
        step=step,
        accepting=lambda state: state >= lo,
        limit=STATE_LIMIT,
        keyword=keyword,
    )


def among(words: Iterable[str], *, keyword: str = "enum") -> Dfa:
    """Return the set holding exactly ``words``; raises ``TooLargeError`` when they are too many."""
    trie: list[dict[int, int]] = [{}]
    ends: set[int] = set()
    for word in words:
        node = 0
        for char in word:
            if ord(char) not in trie[node]:
                if len(trie) >= STATE_LIMIT:
                    raise TooLargeError(keyword)
                trie[node][ord(char)] = len(trie)
                trie.append({})
            node = trie[node][ord(char)]
        ends.add(node)
    starts = boundaries((code, code) for branches in trie for code in branches)
    index = {start: position for position, start in enumerate(starts)}
    moves = []
    for branches in trie:
        row = [DEAD] * len(starts)
        for code, after in branches.items():
            row[index[code]] = after
        moves.append(tuple(row))
    return minimise(Dfa(starts=starts, moves=tuple(moves), accepts=frozenset(ends)))


def few(dfa: Dfa, limit: int) -> tuple[str, ...]:
    """Return the strings of a trimmed set when there are at most ``limit``, and none otherwise."""
    found: list[str] = []
    work = [("", 0)]
    while work:
        text, state = work.pop()
        if len(text) > limit or len(work) + len(found) > limit:
            return ()
        if state in dfa.accepts:
            found.append(text)
        for target, ranges in dfa.edges(state):
            if sum(high - low + 1 for low, high in ranges) > limit:
                return ()
            work.extend((text + chr(code), target) for low, high in ranges for code in range(low, high + 1))
    return tuple(sorted(found))


EVERYTHING = Dfa(starts=(0,), moves=((0,),), accepts=frozenset({0}))
"""The set of all strings."""
