# SPDX-License-Identifier: Apache-2.0
"""The rules of a grammar being written, and the machines that become rules.

Owns names, sizes and right-linear grammars: a machine of states becomes one rule per state. Leaves what a
state means to the emitters.

Invariant: no alternative is empty text (an empty one is ``""``, and stands last); no state is a dead end;
size is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeVar

from .model import TooLargeError
from .terminals import char_class, json_char, literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from .automaton import Dfa, Ranges

S = TypeVar("S", bound=Hashable)

SIZE_LIMIT = 1_000_000
"""Most characters of one grammar."""
EMPTY = '""'
_DIGITS: Ranges = ((0x30, 0x39),)
FREE_DIGITS = 16
"""Digits after the point that no bound decides, so that a model cannot write them for ever."""


class Rules:
    """Named rules in order of creation, ``root`` first."""

    __slots__ = ("_bodies", "_count", "_shared", "_size")

    def __init__(self) -> None:
        self._bodies: dict[str, str] = {"root": ""}
        self._shared: dict[str, str] = {}
        self._count = 0
        self._size = 0

    def reserve(self, hint: str) -> str:
        """Return a new name, to be defined later."""
        self._count += 1
        name = f"{hint}-{self._count}"
        self._bodies[name] = ""
        return name

    def define(self, name: str, body: str) -> str:
        """Give ``name`` its body and return the name. Raises ``TooLargeError`` past the size limit."""
        self._size += len(name) + len(body) + 6
        if self._size > SIZE_LIMIT:
            raise TooLargeError("size")
        self._bodies[name] = body
        return name

    def add(self, hint: str, body: str) -> str:
        """Return the name of a rule with ``body``, a new one if need be; raises as ``define`` does."""
        if body not in self._shared:
            self._shared[body] = self.define(self.reserve(hint), body)
        return self._shared[body]

    def once(self, name: str, body: str) -> str:
        """Return ``name``, defining it the first time; raises as ``define`` does."""
        return name if self._bodies.get(name) else self.define(name, body)

    def text(self) -> str:
        """Return the grammar."""
        return "".join(f"{name} ::= {body}\n" for name, body in self._bodies.items())


def either_of(alternatives: list[str]) -> str:
    """Return the alternatives without repetition, the empty one last."""
    if len(alternatives) == 1:
        return alternatives[0]
    kept = list(dict.fromkeys(alternatives))
    if EMPTY in kept:
        kept.remove(EMPTY)
        kept.append(EMPTY)
    return " | ".join(kept)


def repeated(item: str, lo: int, hi: int | None) -> str:
    """Return ``item`` repeated ``lo`` to ``hi`` times."""
    if hi is None:
        return f"{item}*" if lo == 0 else f"{item}{{{lo},}}"
    return f"{item}{{{lo}}}" if lo == hi else f"{item}{{{lo},{hi}}}"


def machine(
    rules: Rules,
    hint: str,
    first: S,
    accepting: Callable[[S], bool],
    moves: Callable[[S], list[tuple[str, S]]],
) -> str | None:
    """Write the right-linear rules of a machine and return the name of its first, or ``None`` if it is empty.

    ``moves`` gives (text, next state) pairs; empty text is a move without output. Raises ``TooLargeError``.
    """
    edges: dict[S, list[tuple[str, S]]] = {}
    queue = [first]
    while queue:
        state = queue.pop()
        if state not in edges:
            edges[state] = moves(state)
            queue.extend(target for _, target in edges[state])
            if len(edges) > SIZE_LIMIT // 20:
                raise TooLargeError("size")
    alive = _alive(edges, {state for state in edges if accepting(state)})
    if first not in alive:
        return None
    names = {state: rules.reserve(hint) for state in edges if state in alive}
    for state, name in names.items():
        options = [f"{text} {names[target]}".strip() for text, target in edges[state] if target in alive]
        rules.define(name, either_of([*options, *([EMPTY] if accepting(state) else [])]))
    return names[first]


def _alive(edges: dict[S, list[tuple[str, S]]], ends: set[S]) -> set[S]:
    """Return the states from which some of ``ends`` can be reached."""
    back: dict[S, list[S]] = {}
    for state, steps in edges.items():
        for _, target in steps:
            back.setdefault(target, []).append(state)
    alive, queue = set(ends), list(ends)
    while queue:
        for state in back.get(queue.pop(), ()):
            if state not in alive:
                alive.add(state)
                queue.append(state)
    return alive


class DfaWriter:
    """Writes an automaton as rules; ``quoted`` for the inside of a JSON string, else for a number."""

    __slots__ = ("_arrivals", "_dfa", "_edges", "_names", "_quoted", "_rules")

    def __init__(self, rules: Rules, dfa: Dfa, *, quoted: bool) -> None:
        self._rules = rules
        self._dfa = dfa
        self._quoted = quoted
        self._edges = [dfa.edges(state) for state in range(len(dfa.moves))]
        self._arrivals = Counter(target for edges in self._edges for target, _ in edges)
        self._names: dict[int, str] = {}

    def write(self) -> str:
        """Return a term for the whole set, closing quote included; raises ``TooLargeError``."""
        self._names = {0: self._rules.reserve("s" if self._quoted else "n")}
        queue = [0]
        while queue:
            state = queue.pop()
            fresh: list[int] = []
            self._rules.define(self._names[state], self._body(state, fresh))
            queue.extend(fresh)
        return self._names[0]

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
                    self._names[target] = self._rules.reserve("s" if self._quoted else "n")
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
