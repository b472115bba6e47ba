# SPDX-License-Identifier: Apache-2.0
"""From goals to shapes: a tableau over JSON types.

Owns the choice between alternatives. A goal is a conjunction of literals; per JSON type its formulas are
worked off one by one, a disjunction splits the branch, and every branch that survives is one shape. Child
goals are again conjunctions of literals, of which there are finitely many, so recursion needs nothing
special. (Smullyan, First-Order Logic, 1968, chapter II, for the method.)

Invariant: every step is paid from the ledger; ``oneOf`` is a plain choice only where no value can satisfy
two branches, and otherwise says so or excludes the overlap.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, assert_never

from .logic import both, negate
from .model import (
    ALL,
    FALSE,
    KINDS,
    And,
    ArrayShape,
    Draft,
    Extra,
    Formula,
    Goal,
    Kind,
    Ledger,
    Lit,
    NullShape,
    NumberShape,
    ObjectDraft,
    ObjectShape,
    One,
    Or,
    Shape,
    StringShape,
    TruthShape,
)
from .objects import ObjectSettler
from .shapes import TOPS, goal, meet, settle_array, settle_number, settle_string

if TYPE_CHECKING:
    from .read import Reader

T = TypeVar("T", bound=Hashable)

_NEVER = frozenset({FALSE})
_ANYTHING: dict[str, Shape] = {
    "object": ObjectShape(extras=(Extra(names=StringShape(), goal=frozenset()),)),
    "array": ArrayShape(),
    "string": StringShape(),
    "number": NumberShape(),
    "boolean": TruthShape(),
    "null": NullShape(),
}
"""What the goal without literals comes to, in every schema."""
_PROBE_DEPTH = 5
_NESTING_LIMIT = 24


@dataclass(slots=True, kw_only=True)
class _Branch:
    """One alternative in the making: formulas to do, choices put off, literals already taken, the draft."""

    todo: list[Formula]
    choices: list[Or]
    taken: frozenset[int]
    draft: Draft


class Expander:
    """Answers what shapes a goal has, remembering each answer."""

    __slots__ = ("_found", "_kinds", "_ledger", "_nesting", "_objects", "_open", "_reader")

    def __init__(self, reader: Reader, ledger: Ledger) -> None:
        self._reader = reader
        self._ledger = ledger
        self._objects = ObjectSettler(ledger, self.strings)
        self._found: dict[tuple[Goal, str], tuple[Shape, ...]] = {}
        self._open: set[tuple[Goal, str]] = set()
        self._kinds: dict[int, frozenset[str]] = {}
        self._nesting = 0

    def shapes(self, wanted: Goal) -> tuple[Shape, ...]:
        """Return the alternatives of ``wanted``, of every type. Raises ``TooLargeError`` past the budget."""
        kinds = self._kinds_of_all(wanted)
        return tuple(shape for kind in KINDS if kind in kinds for shape in self.of_kind(wanted, kind))

    def strings(self, wanted: Goal) -> tuple[StringShape, ...]:
        """Return the string alternatives of ``wanted``."""
        return tuple(shape for shape in self.of_kind(wanted, "string") if isinstance(shape, StringShape))

    def of_kind(self, wanted: Goal, kind: str) -> tuple[Shape, ...]:
        """Return the alternatives of ``wanted`` that are of type ``kind``."""
        if not wanted:
            return (_ANYTHING[kind],)
        key = (wanted, kind)
        if key not in self._found:
            self._open.add(key)
            self._nesting += 1
            drafts = _distinct(self._drafts(wanted, kind))
            settled = [shape for draft in drafts for shape in self._settle(draft)]
            self._found[key] = _merge_words(_distinct(settled))
            self._nesting -= 1
            self._open.discard(key)
        return self._found[key]

    def _drafts(self, wanted: Goal, kind: str) -> list[Draft]:
        if kind not in self._kinds_of_all(wanted):
            return []
        start: list[Formula] = [Lit(node=literal) for literal in sorted(wanted, reverse=True)]
        branches = [_Branch(todo=start, choices=[], taken=frozenset(), draft=TOPS[kind])]
        found: list[Draft] = []
        while branches:
            branch = branches.pop()
            if not self._work_off(branch, kind):
                continue
            if not branch.choices:
                found.append(branch.draft)
                continue
            choice = min(branch.choices, key=lambda choice: len(choice.parts))
            rest = [other for other in branch.choices if other is not choice]
            self._ledger.spend(len(choice.parts), choice.keyword)
            branches.extend(
                _Branch(todo=[part], choices=list(rest), taken=branch.taken, draft=branch.draft)
                for part in reversed(choice.parts)
            )
        return found

    def _work_off(self, branch: _Branch, kind: str) -> bool:
        """Do every formula of ``branch`` but the choices; return whether it survives."""
        while branch.todo:
            self._ledger.spend(1, "allOf")
            formula = branch.todo.pop()
            match formula:
                case And(parts=parts):
                    branch.todo.extend(reversed(parts))
                case Lit(node=node):
                    if node == FALSE or ~node in branch.taken:
                        return False
                    if node not in branch.taken:
                        branch.taken |= {node}
                        branch.todo.append(self._said_by(node))
                case Or() | One():
                    if not self._choose(formula, branch, kind):
                        return False
                case _:
                    draft = meet(branch.draft, formula, self._ledger)
                    if draft is None:
                        return False
                    branch.draft = draft
        return True

    def _said_by(self, literal: int) -> Formula:
        if literal < 0 and "not" in self._ledger.dropped:
            self._ledger.note("not")
            return And()
        return self._reader.formula(literal) if literal >= 0 else negate(self._reader.formula(~literal))

    def _choose(self, formula: Or | One, branch: _Branch, kind: str) -> bool:
        """Put off a choice, take it at once when only one part is possible, or fail when none is."""
        choice = self._exclusive(formula, kind) if isinstance(formula, One) else formula
        parts = tuple(part for part in choice.parts if kind in self._kinds_in(part))
        if not parts:
            return False
        if len(parts) == 1:
            branch.todo.append(parts[0])
        elif choice.keyword in self._ledger.dropped and choice.keyword != "oneOf":
            self._ledger.note(choice.keyword)
        elif not any(part == Kind(kinds=ALL) or part == And() for part in parts):
            branch.choices.append(Or(parts=parts, keyword=choice.keyword))
        return True

    # --- which types a formula can speak of, without working it off -----------------------------------------

    def _kinds_of_all(self, wanted: Goal) -> frozenset[str]:
        kinds = ALL
        for literal in wanted:
            kinds &= self._kinds_of(literal)
            if not kinds:  # what cannot matter is not read
                break
        return kinds

    def _kinds_of(self, literal: int) -> frozenset[str]:
        if literal < 0:
            return frozenset() if literal == FALSE else ALL
        if literal not in self._kinds:
            self._kinds[literal] = ALL  # while it is being found: a reference to itself adds nothing
            self._kinds[literal] = self._kinds_in(self._reader.formula(literal))
        return self._kinds[literal]

    def _kinds_in(self, formula: Formula) -> frozenset[str]:
        match formula:
            case Kind(kinds=kinds):
                return kinds
            case And(parts=parts):
                return ALL.intersection(*(self._kinds_in(part) for part in parts))
            case Or(parts=parts):
                return frozenset().union(*(self._kinds_in(part) for part in parts))
            case One(parts=literals):
                return frozenset().union(*(self._kinds_of(literal) for literal in literals))
            case Lit(node=node):
                return self._kinds_of(node)
        return ALL

    # --- oneOf ----------------------------------------------------------------------------------------------

    def _exclusive(self, one: One, kind: str) -> Or:
        live = [literal for literal in one.parts if kind in self._kinds_of(literal)]
        if "oneOf" in self._ledger.dropped:
            if len(live) > 1:
                self._ledger.note("oneOf")
            return Or(parts=tuple(Lit(node=literal) for literal in live), keyword="oneOf")
        parts = []
        for index, literal in enumerate(live):
            rivals = [
                Lit(node=~other)
                for position, other in enumerate(live)
                if position != index and self._overlap(literal, other, kind)
            ]
            parts.append(both(Lit(node=literal), *rivals))
        return Or(parts=tuple(parts), keyword="oneOf")

    def _overlap(self, one: int, other: int, kind: str) -> bool:
        self._ledger.spend(5, "oneOf")
        return self.inhabited(goal((one, other)), _PROBE_DEPTH, (kind,))

    def inhabited(self, wanted: Goal, depth: int, kinds: tuple[str, ...] = KINDS) -> bool:
        """Whether some value may satisfy ``wanted``, looking ``depth`` levels down; doubt answers yes."""
        if wanted == _NEVER:
            return False
        if depth <= 0 or self._nesting > _NESTING_LIMIT:
            return True
        for kind in kinds:
            if (wanted, kind) in self._open:
                return True
            self._ledger.spend(1, "oneOf")
            if any(self._possible(shape, depth - 1) for shape in self.of_kind(wanted, kind)):
                return True
        return False

    def _possible(self, shape: Shape, depth: int) -> bool:
        match shape:
            case ObjectShape(members=members):
                return all(self.inhabited(member.goal, depth) for member in members if member.required)
            case ArrayShape(prefix=prefix, rest=rest, lo=lo):
                needed = prefix[:lo] if lo <= len(prefix) else (*prefix, rest)
                return all(self.inhabited(item, depth) for item in needed)
        return True

    def _settle(self, draft: Draft) -> list[Shape]:
        match draft:
            case ObjectDraft():
                return list(self._objects.settle(draft))
            case ArrayShape():
                settled = settle_array(draft, self._ledger)
                return [settled] if settled else []
            case StringShape():
                words = settle_string(draft, self._ledger)
                return [words] if words else []
            case NumberShape():
                return list(settle_number(draft, self._ledger))
            case TruthShape() | NullShape():
                return [draft]
        assert_never(draft)


def _distinct(items: list[T]) -> tuple[T, ...]:
    """Return ``items`` in order, each once; one alone is not hashed."""
    return tuple(items) if len(items) < 2 else tuple(dict.fromkeys(items))  # noqa: PLR2004


def _merge_words(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """Join the listed strings of several alternatives into one, so that they become one trie."""
    lists = [shape.words for shape in shapes if isinstance(shape, StringShape) and shape.words is not None]
    if len(lists) < 2:  # noqa: PLR2004 - nothing to join
        return shapes
    others = [shape for shape in shapes if not (isinstance(shape, StringShape) and shape.words is not None)]
    return (StringShape(words=frozenset().union(*lists)), *others)
