# SPDX-License-Identifier: Apache-2.0
"""The rules of a grammar being written, and the machines that become rules.

Owns names, sizes and right-linear grammars: a machine of states becomes one rule per state. Leaves what a
state means to the emitters, and automata to ``pieces``.

Invariant: no alternative is empty text (an empty one is ``""``, and stands last); no state is a dead end;
size is bounded.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeVar

from .model import TooLargeError
from .pieces import EMPTY, SIZE_LIMIT, either_of, named

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S", bound=Hashable)


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

    def adopt(self, hint: str, piece: str) -> str:
        """Add the rules of ``piece``, named here, and return the first name; raises as ``define`` does."""
        names = [self.reserve(hint) for _ in range(piece.count("\n") + 1)]
        for name, body in zip(names, named(piece, names), strict=True):
            self.define(name, body)
        return names[0]

    def text(self) -> str:
        """Return the grammar."""
        return "".join(f"{name} ::= {body}\n" for name, body in self._bodies.items())


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
