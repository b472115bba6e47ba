# SPDX-License-Identifier: Apache-2.0
"""Does a text belong to a grammar.

Owns the matcher: generalised LL recognition with a shared stack (Scott and Johnstone, GLL Parsing, 2010),
one pass over the text, without recursion in Python. Leaves syntax to ``gbnf``.

Invariant: an answer is exact, or the bound on work is passed and ``MatchTooCostlyError`` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

from .gbnf import parse_gbnf
from .terms import (
    Alternatives,
    GrammarSyntaxError,
    Literal,
    Reference,
    Repetition,
    Series,
    Term,
    Terminal,
)

if TYPE_CHECKING:
    from .automaton import Ranges

_NODE_LIMIT = 400_000
_STEP_LIMIT = 20_000_000
_INLINE_SIZE = 24


class MatchTooCostlyError(RuntimeError):
    """The text and the grammar together need more steps than we take."""


@dataclass(slots=True)
class _Program:
    """Every rule as a small automaton: empty moves, a character move or a call per node."""

    empty: list[tuple[int, ...]] = field(default_factory=list)
    chars: list[Ranges | None] = field(default_factory=list)
    calls: list[str | None] = field(default_factory=list)
    ends: set[int] = field(default_factory=set)
    starts: dict[str, int] = field(default_factory=dict)

    def new(self) -> int:
        if len(self.empty) >= _NODE_LIMIT:
            raise GrammarSyntaxError("the grammar is too large")
        self.empty.append(())
        self.chars.append(None)
        self.calls.append(None)
        return len(self.empty) - 1

    def link(self, start: int, end: int) -> None:
        self.empty[start] = (*self.empty[start], end)


def _size(term: Term) -> int:
    """Return the size of a term without references, or too much for one with them."""
    match term:
        case Terminal():
            return 1
        case Literal(codes=codes):
            return len(codes)
        case Reference():
            return _INLINE_SIZE + 1
        case Series(parts=parts) | Alternatives(parts=parts):
            return 1 + sum(_size(part) for part in parts)
        case Repetition(part=part, lo=lo, hi=hi):
            return 1 + _size(part) * max(lo, hi or 0, 1)
    assert_never(term)


class _Compiler:
    __slots__ = ("_inline", "_rules", "program")

    def __init__(self, rules: dict[str, Term]) -> None:
        self._rules = rules
        self._inline = {name for name, term in rules.items() if _size(term) <= _INLINE_SIZE}
        self.program = _Program()
        for name, term in rules.items():
            start = self.program.starts[name] = self.program.new()
            self.program.ends.add(self._add(term, start))

    def _add(self, term: Term, start: int) -> int:  # noqa: C901 - one case per term
        """Append ``term`` after node ``start`` and return the node where it ends."""
        program = self.program
        end = start
        match term:
            case Terminal(ranges=ranges):
                end = self._char(ranges, start)
            case Literal(codes=codes):
                for code in codes:
                    end = self._char(((code, code),), end)
            case Reference(name=name) if name in self._inline:
                end = self._add(self._rules[name], start)
            case Reference(name=name):
                end = self._step(start)
                program.calls[end - 1] = name
            case Series(parts=parts):
                for part in parts:
                    end = self._add(part, end)
            case Alternatives(parts=parts):
                end = program.new()
                for part in parts:
                    begin = program.new()
                    program.link(start, begin)
                    program.link(self._add(part, begin), end)
            case Repetition():
                end = self._repeat(term, start)
            case _:
                assert_never(term)
        return end

    def _step(self, start: int) -> int:
        """Append two nodes, the second right after the first, and return the second."""
        here, end = self.program.new(), self.program.new()
        self.program.link(start, here)
        self.program.empty[here] = (end,)
        return end

    def _char(self, ranges: Ranges, start: int) -> int:
        end = self._step(start)
        self.program.chars[end - 1] = ranges
        return end

    def _repeat(self, term: Repetition, start: int) -> int:
        program = self.program
        for _ in range(term.lo):
            start = self._add(term.part, start)
        end = program.new()
        if term.hi is None:
            loop = program.new()
            program.link(start, loop)
            program.link(loop, end)
            program.link(self._add(term.part, loop), loop)
            return end
        program.link(start, end)
        for _ in range(term.hi - term.lo):
            start = self._add(term.part, start)
            program.link(start, end)
        return end


@lru_cache(maxsize=16)
def _compiled(gbnf: str) -> _Program:
    return _Compiler(parse_gbnf(gbnf).rules).program


class _Run:
    """One pass over one text. A frame is a call of one rule at one place, shared by all who made it."""

    __slots__ = ("_callers", "_program", "_steps")

    def __init__(self, program: _Program) -> None:
        self._program = program
        self._steps = 0
        self._callers: list[list[tuple[int, int]]] = [[]]  # frame 0 is the call of root

    def after(self, text: str) -> set[tuple[int, int]]:
        """Return the states after ``text``, none when no text of the grammar begins with it."""
        states = {(self._program.starts["root"], 0)}
        for char in text:
            states = self._advance(states, ord(char))[0]
            if not states:
                break
        return states

    def accepts(self, text: str) -> bool:
        """Whether ``text`` is whole."""
        states = self.after(text)
        return bool(states) and self._advance(states, -1)[1]

    def _advance(self, states: set[tuple[int, int]], code: int) -> tuple[set[tuple[int, int]], bool]:
        """Follow every move that reads nothing, then ``code``.

        Returns the states after it, and whether root ended before it.
        """
        program = self._program
        queue, seen = list(states), set(states)
        frames: dict[str, int] = {}
        ended: set[int] = set()
        after: set[tuple[int, int]] = set()
        while queue:
            node, frame = queue.pop()
            self._steps += 1
            call, ranges = program.calls[node], program.chars[node]
            fresh: list[tuple[int, int]] = []
            if call is not None:
                fresh = self._call(call, (program.empty[node][0], frame), frames, ended)
            elif ranges is not None:
                if any(low <= code <= high for low, high in ranges):
                    after.add((program.empty[node][0], frame))
            else:
                fresh = [(target, frame) for target in program.empty[node]]
                if node in program.ends:
                    ended.add(frame)
                    fresh += self._callers[frame]
            for state in fresh:
                if state not in seen:
                    seen.add(state)
                    queue.append(state)
        if self._steps > _STEP_LIMIT:
            raise MatchTooCostlyError("matching this text takes too many steps")
        return after, 0 in ended

    def _call(
        self, name: str, caller: tuple[int, int], frames: dict[str, int], ended: set[int]
    ) -> list[tuple[int, int]]:
        frame = frames.get(name)
        if frame is None:
            frame = frames[name] = len(self._callers)
            self._callers.append([caller])
            return [(self._program.starts[name], frame)]
        self._callers[frame].append(caller)
        return [caller] if frame in ended else []


def matches(gbnf: str, text: str) -> bool:
    """Whether ``text``, whole, belongs to the grammar ``gbnf``.

    Raises ``GrammarSyntaxError`` when the grammar does not parse (see ``parse_gbnf``) and
    ``MatchTooCostlyError`` past twenty million steps.
    """
    return _Run(_compiled(gbnf)).accepts(text)


def shortest(gbnf: str) -> int:
    """Return the length, in characters, of the shortest text of the grammar: the least a reply needs.

    Raises ``GrammarSyntaxError`` as ``matches`` does, also when no text is finite.
    """
    rules = parse_gbnf(gbnf).rules
    known: dict[str, int] = {}
    changed = True
    while changed:
        changed = False
        for name in reversed(rules):
            length = _least(rules[name], known)
            if length is not None and length < known.get(name, length + 1):
                known[name] = length
                changed = True
    if "root" not in known:
        raise GrammarSyntaxError("no text of the grammar is finite")
    return known["root"]


def _least(term: Term, known: dict[str, int]) -> int | None:
    match term:
        case Terminal():
            return 1
        case Literal(codes=codes):
            return len(codes)
        case Reference(name=name):
            return known.get(name)
        case Series(parts=parts):
            lengths = [_least(part, known) for part in parts]
            return None if None in lengths else sum(length or 0 for length in lengths)
        case Alternatives(parts=parts):
            return min(
                (length for part in parts if (length := _least(part, known)) is not None), default=None
            )
        case Repetition(part=part, lo=lo):
            length = _least(part, known) if lo else 0
            return None if length is None else lo * length
    assert_never(term)


def begins(gbnf: str, text: str) -> bool:
    """Whether some text of the grammar begins with ``text``, as a truncated reply must.

    For a grammar whose every rule can end, which those of ``compile_schema`` are. Raises as ``matches`` does.
    """
    return bool(_Run(_compiled(gbnf)).after(text))
