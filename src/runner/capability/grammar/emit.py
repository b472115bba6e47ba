# SPDX-License-Identifier: Apache-2.0
"""From the form to GBNF.

Owns the text of each shape: one rule per goal, members in declared order, at most one space after ``,`` and
``:``. Leaves terminals to ``terminals`` and right-linear machines to ``rules``.

Invariant: the language of a goal's rule is the goal's set of values, each in the canonical spelling; the
text reads the same in every GBNF dialect (no leading empty alternative, repetitions under 2000).
"""

from __future__ import annotations

import json
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING

from .form import advance, horizon, options, satisfied
from .model import (
    ArrayShape,
    Bounds,
    Goal,
    Ledger,
    Member,
    NullShape,
    NumberShape,
    ObjectShape,
    Shape,
    StringShape,
    TooLargeError,
    TruthShape,
)
from .numeric import decimal_text, sides
from .pieces import EMPTY, either_of, piece_of
from .rules import Rules, machine, repeated
from .strings import StringWriter
from .terminals import literal

if TYPE_CHECKING:
    from .form import Form

_INTEGER = '"-"? ("0" | [1-9] [0-9]{0,19})'
_NUMBER = 'integer ("." [0-9]{1,24})? ([eE] [-+]? [0-9]{1,2})?'
_FLAT = 8
_BLOCK = 1000
_COUNT_LIMIT = 10_000
_QUOTE, _MINUS = literal('"'), literal("-")
_OPEN, _CLOSE, _BEGIN, _END = (literal(char) for char in "[]{}")


def _counts(shape: ObjectShape) -> set[str]:
    """Return the keywords that bound the number of members of ``shape``."""
    low = {"minProperties"} if shape.lo else set()
    return low | ({"maxProperties"} if shape.hi is not None else set())


@lru_cache(maxsize=128)
def _number_pieces(shape: NumberShape) -> tuple[str | None, str | None]:
    """Return the rules of the negative numbers of ``shape``, without their sign, and of the others."""
    below, above = (None if side is None else piece_of(side, quoted=False) for side in sides(shape))
    return below, above


class Emitter:
    """Writes one form."""

    __slots__ = ("_form", "_ledger", "_names", "_queue", "_rules", "_strings")

    def __init__(self, form: Form, ledger: Ledger) -> None:
        self._form = form
        self._ledger = ledger
        self._rules = Rules()
        self._names: dict[Goal, str] = {}
        self._strings = StringWriter(self._rules, ledger)
        self._queue: deque[Goal] = deque()

    def grammar(self) -> str:
        """Return the grammar of the form. Raises ``TooLargeError`` when it would pass the size limit."""
        self._rules.define("root", self._value(self._form.root))
        while self._queue:
            wanted = self._queue.popleft()
            body = either_of([self._shape(shape) for shape in self._form.shapes[wanted]])
            self._rules.define(self._names[wanted], body)
        return self._rules.text()

    def _value(self, wanted: Goal) -> str:
        """Return the term for a goal: a shared rule for a plain scalar, else the goal's own rule."""
        if wanted not in self._names:
            shapes = self._form.shapes[wanted]
            plain = self._plain(shapes[0]) if len(shapes) == 1 else None
            if plain:
                self._names[wanted] = plain
            else:
                self._names[wanted] = self._rules.reserve("v")
                self._queue.append(wanted)
        return self._names[wanted]

    def _plain(self, shape: Shape) -> str | None:
        match shape:
            case NullShape():
                return literal("null")
            case TruthShape():
                if len(shape.allowed) == 1:
                    return literal("true" if True in shape.allowed else "false")
                return self._rules.once("boolean", '"true" | "false"')
            case NumberShape(multiples=multiples, values=None) if not multiples and shape.bounds == Bounds():
                return self._any_number(shape)
            case StringShape():
                return self._strings.term(shape)
        return None

    def _shape(self, shape: Shape) -> str:
        plain = self._plain(shape)
        if plain:
            return plain
        match shape:
            case NumberShape():
                return self._number(shape)
            case ArrayShape(contains=()):
                return self._array(shape)
            case ArrayShape():
                return self._counted_array(shape)
            case ObjectShape():
                return self._object(shape)
        raise AssertionError(shape)

    def _separator(self) -> str:
        return self._rules.once("sep", '"," " "?')

    def _space(self) -> str:
        return self._rules.once("ws", '" "?')

    # --- numbers --------------------------------------------------------------------------------------------

    def _any_number(self, shape: NumberShape) -> str | None:
        self._rules.once("integer", _INTEGER)
        if shape.integral is True:
            return "integer"
        return self._rules.once("number", _NUMBER) if shape.integral is None else None

    def _number(self, shape: NumberShape) -> str:
        if shape.values is not None:
            return either_of([literal(decimal_text(value)) for value in sorted(shape.values)])
        below, above = _number_pieces(shape)
        found = []
        if above:
            found.append(self._rules.adopt("n", above))
        if below:
            found.append(f"{_MINUS} {self._rules.adopt('n', below)}")
        return either_of(found)

    # --- arrays ---------------------------------------------------------------------------------------------

    def _array(self, shape: ArrayShape) -> str:
        if shape.hi == 0:
            return literal("[]")
        rest = self._rest_of_array(shape)
        for index in range(len(shape.prefix) - 1, 0, -1):
            rest = f"{self._separator()} {self._value(shape.prefix[index])} {rest}".rstrip()
            if index >= shape.lo:
                rest = f"({rest})?" if index == len(shape.prefix) - 1 else f"{self._rules.add('a', rest)}?"
        if not shape.prefix:
            return self._uniform_array(shape)
        inside = f"{self._value(shape.prefix[0])} {rest}".rstrip()
        return f"{_OPEN} {f'({inside})?' if shape.lo == 0 else inside} {_CLOSE}"

    def _rest_of_array(self, shape: ArrayShape) -> str:
        """Return the items after the prefix, each with its separator."""
        size = len(shape.prefix)
        if shape.hi is not None and shape.hi <= size:
            return ""
        item = self._rules.add("a", f"{self._separator()} {self._value(shape.rest)}") if size else ""
        return (
            repeated(item, max(shape.lo - size, 0), None if shape.hi is None else shape.hi - size)
            if item
            else ""
        )

    def _uniform_array(self, shape: ArrayShape) -> str:
        value = self._value(shape.rest)
        if shape.hi == 1:
            inside = value
        else:
            item = self._rules.add("a", f"{self._separator()} {value}")
            more = repeated(item, max(shape.lo - 1, 0), None if shape.hi is None else shape.hi - 1)
            inside = f"{value} {more}"
        return f"{_OPEN} {f'({inside})?' if shape.lo == 0 else inside} {_CLOSE}"

    def _counted_array(self, shape: ArrayShape) -> str:
        last = max(horizon(shape), shape.lo, 1) if shape.hi is None else shape.hi

        def moves(state: tuple[int, tuple[int, ...]]) -> list[tuple[str, tuple[int, tuple[int, ...]]]]:
            index, counts = state
            self._ledger.spend(1, "contains")
            if shape.hi is not None and index >= shape.hi:
                return []
            found = []
            for option in options(shape, index):
                after = advance(shape, counts, option)
                if after is not None and option.goal in self._form.shapes:
                    text = (
                        f"{self._separator()} {self._value(option.goal)}"
                        if index
                        else self._value(option.goal)
                    )
                    found.append((text, (min(index + 1, last), after)))
            return found

        def accepting(state: tuple[int, tuple[int, ...]]) -> bool:
            return state[0] >= shape.lo and satisfied(shape, state[1])

        name = machine(self._rules, "a", (0, (0,) * len(shape.contains)), accepting, moves)
        if name is None:
            raise TooLargeError("contains")
        return f"{_OPEN} {name} {_CLOSE}"

    # --- objects --------------------------------------------------------------------------------------------

    def _object(self, shape: ObjectShape) -> str:
        self._ledger.spend(len(shape.members) + 1, "size")
        if shape.hi is not None or shape.lo:
            if (len(shape.members) + 1) * max(shape.lo, shape.hi or 0) <= _COUNT_LIMIT:
                return self._counted_object(shape)
            self._ledger.notes.update(_counts(shape))
        first = next((i for i, member in enumerate(shape.members) if member.required), len(shape.members))
        pieces = [self._member(member, shared=index < first) for index, member in enumerate(shape.members)]
        tail = self._others(shape, after=True)
        separator = self._separator() if len(pieces) > 1 or tail else ""
        for index in range(len(pieces) - 1, first, -1):
            step = f"{separator} {pieces[index]}"
            tail = f"{step if shape.members[index].required else f'({step})?'} {tail}".rstrip()
        starts = (
            [f"{pieces[first]} {tail}".rstrip()]
            if first < len(pieces)
            else [self._others(shape, after=False)]
        )
        if first and first < len(pieces):
            tail = self._rules.add("o", f"{separator} {pieces[first]} {tail}".rstrip())
        for index in range(first - 1, -1, -1):
            starts.append(f"{pieces[index]} {tail}".rstrip())
            if index:
                tail = self._rules.add("o", f"({separator} {pieces[index]})? {tail}".rstrip())
        inside = either_of([start or EMPTY for start in reversed(starts)])
        if inside == EMPTY:
            return literal("{}")
        return f"{_BEGIN} {inside if len(starts) == 1 and '|' not in inside else f'({inside})'} {_END}"

    def _member(self, member: Member, *, shared: bool = False) -> str:
        """Return a member without separator; as a rule of its own where it is used twice."""
        name = literal(json.dumps(member.name, ensure_ascii=False) + ":")
        text = f"{name} {self._space()} {self._value(member.goal)}"
        return self._rules.add("m", text) if shared else text

    def _extra(self, shape: ObjectShape, *, needed: bool) -> str:
        """Return a rule for a member of another name, or nothing when there is none."""
        colon = f'":" {self._space()}'
        found = [
            f"{self._strings.term(extra.names)} {colon} {self._value(extra.goal)}"
            for extra in shape.extras
            if extra.needed is needed
        ]
        return self._rules.add("x", either_of(found)) if found else ""

    def _others(self, shape: ObjectShape, *, after: bool) -> str:
        """Return the members of other names: ``after`` some member, or as the first ones."""
        extra, needed = self._extra(shape, needed=False), self._extra(shape, needed=True)
        if not extra and not needed:
            return ""
        separator = self._separator()
        more = f"({separator} {extra})*" if extra else ""
        if needed and after:
            return f"{more} {separator} {needed} {more}".strip()
        if needed:
            before = f"({extra} {separator})*" if extra else ""
            return f"{before} {needed} {more}".strip()
        return more if after else f"({extra} {more})?"

    def _counted_object(self, shape: ObjectShape) -> str:
        size, cap = len(shape.members), shape.lo if shape.hi is None else shape.hi
        extra, needed = self._extra(shape, needed=False), self._extra(shape, needed=True)
        pieces = [self._member(member, shared=True) for member in shape.members]

        def step(
            state: tuple[int, int, bool], text: str, *, index: int, done: bool
        ) -> tuple[str, tuple[int, int, bool]]:
            count = state[1] + 1
            after = (index, min(count, cap) if shape.hi is None else count, done)
            return (f"{self._separator()} {text}" if state[1] else text, after)

        def moves(state: tuple[int, int, bool]) -> list[tuple[str, tuple[int, int, bool]]]:
            index, count, done = state
            self._ledger.spend(1, "minProperties" if shape.hi is None else "maxProperties")
            found = []
            room = shape.hi is None or count < shape.hi
            if index < size:
                if room:
                    found.append(step(state, pieces[index], index=index + 1, done=done))
                if not shape.members[index].required:
                    found.append(("", (index + 1, count, done)))
                return found
            if room and extra:
                found.append(step(state, extra, index=index, done=done))
            if room and needed and not done:
                found.append(step(state, needed, index=index, done=True))
            return found

        name = machine(
            self._rules, "o", (0, 0, not needed), lambda s: s[0] == size and s[1] >= shape.lo and s[2], moves
        )
        if name is None:
            raise TooLargeError("minProperties")
        return f"{_BEGIN} {name} {_END}"
