# SPDX-License-Identifier: Apache-2.0
"""Automata as rules without names.

Owns the text of an automaton: one rule per state where ways part, straight runs folded. A piece is the bodies
of its rules, one a line, in which a rule is named by a mark and its number; a grammar that takes it in gives
names. So a piece is written once, for however many grammars. Leaves names and sizes of grammars to ``rules``.

Invariant: the first rule of a piece accepts the automaton's set; a piece is no longer than a grammar may be.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from .model import TooLargeError
from .terminals import char_class, json_char, literal

if TYPE_CHECKING:
    from .automaton import Dfa, Ranges

SIZE_LIMIT = 1_000_000
"""Most characters of one grammar."""
EMPTY = '""'
FREE_DIGITS = 16
"""Digits after the point that no bound decides, so that a model cannot write them for ever."""
_DIGITS: Ranges = ((0x30, 0x39),)
_MARK = "§"  # grammars are ASCII, so nothing else in a piece is this
_MARKED = re.compile(f"{_MARK}([0-9]+)")


def either_of(alternatives: list[str]) -> str:
    """Return the alternatives without repetition, the empty one last."""
    if len(alternatives) == 1:
        return alternatives[0]
    kept = list(dict.fromkeys(alternatives))
    if EMPTY in kept:
        kept.remove(EMPTY)
        kept.append(EMPTY)
    return " | ".join(kept)


def named(piece: str, names: list[str]) -> list[str]:
    """Return the bodies of ``piece`` with its rules called ``names``."""
    return _MARKED.sub(lambda mark: names[int(mark[1])], piece).split("\n")


def piece_of(dfa: Dfa, *, quoted: bool) -> str:
    """Return ``dfa`` as a piece: of a number, or when ``quoted`` of a JSON string after its opening quote.

    Raises ``TooLargeError`` when it is longer than a grammar may be.
    """
    return _Writer(dfa, quoted=quoted).write()


class _Writer:
    """Writes one automaton."""

    __slots__ = ("_arrivals", "_dfa", "_edges", "_names", "_quoted")

    def __init__(self, dfa: Dfa, *, quoted: bool) -> None:
        self._dfa = dfa
        self._quoted = quoted
        self._edges = [dfa.edges(state) for state in range(len(dfa.moves))]
        self._arrivals = Counter(target for edges in self._edges for target, _ in edges)
        self._names: dict[int, str] = {}

    def write(self) -> str:
        self._names = {0: f"{_MARK}0"}
        bodies: dict[str, str] = {}
        queue, size = [0], 0
        while queue:
            state = queue.pop()
            fresh: list[int] = []
            body = bodies[self._names[state]] = self._body(state, fresh)
            size += len(body)
            if size > SIZE_LIMIT:
                raise TooLargeError("size")
            queue.extend(fresh)
        return "\n".join(bodies[name] for name in self._names.values())

    def _body(self, state: int, fresh: list[int]) -> str:
        options = [self._path(ranges, target, fresh) for target, ranges in self._edges[state]]
        if state in self._dfa.accepts:
            options.append(self._end())
        if not self._quoted and self._is_free(state):
            return f"[0-9]{{0,{FREE_DIGITS}}}"
        return either_of(options)

    def _end(self) -> str:
        return literal('"') if self._quoted else EMPTY

    def _is_free(self, state: int) -> bool:
        return state in self._dfa.accepts and self._edges[state] == [(state, _DIGITS)]

    def _path(self, ranges: Ranges, target: int, fresh: list[int]) -> str:
        """Return the text from one move to where the ways part, repeated moves folded."""
        steps = [ranges]
        ending: list[str] | None = None
        while ending is None:
            edges, accepts = self._edges[target], target in self._dfa.accepts
            ladder = self._ladder(target)
            if accepts and not edges:
                ending = [] if not self._quoted else [self._end()]
            elif ladder:
                ending = [
                    f"{self._term(edges[0][1])}{{0,{ladder}}}",
                    *([self._end()] if self._quoted else []),
                ]
            elif not accepts and len(edges) == 1 and self._arrivals[target] == 1 and edges[0][0] != target:
                steps.append(edges[0][1])
                target = edges[0][0]
            else:
                if target not in self._names:
                    self._names[target] = f"{_MARK}{len(self._names)}"
                    fresh.append(target)
                ending = [self._names[target]]
        return " ".join([*self._folded(steps), *ending])

    def _ladder(self, state: int) -> int:
        """Return how many more equal moves may follow, each optional, when that is all that follows."""
        count, seen = 0, self._edges[state][0][1] if self._edges[state] else None
        while seen and state in self._dfa.accepts and len(self._edges[state]) == 1:
            target, ranges = self._edges[state][0]
            if ranges != seen or target <= state:
                return 0
            count, state = count + 1, target
        return count if count > 1 and state in self._dfa.accepts and not self._edges[state] else 0

    def _folded(self, steps: list[Ranges]) -> list[str]:
        terms: list[str] = []
        index = 0
        while index < len(steps):
            run = index
            while run < len(steps) and steps[run] == steps[index]:
                run += 1
            text = self._term(steps[index])
            count = run - index
            if count > 3 and not text.startswith('"'):  # noqa: PLR2004 - shorter runs read better in full
                terms.append(f"{text}{{{count}}}")
            else:
                terms.extend([text] * count)
            index = run
        return _joined(terms)

    def _term(self, ranges: Ranges) -> str:
        if self._quoted:
            return json_char(ranges)
        (low, high), *more = ranges
        return literal(chr(low)) if low == high and not more else char_class(ranges)


def _joined(terms: list[str]) -> list[str]:
    """Join neighbouring literals."""
    result: list[str] = []
    for term in terms:
        plain = term.startswith('"') and term.endswith('"') and " " not in term
        if plain and result and result[-1].startswith('"') and result[-1].endswith('"'):
            result[-1] = result[-1][:-1] + term[1:]
        else:
            result.append(term)
    return result
