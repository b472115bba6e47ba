# SPDX-License-Identifier: Apache-2.0
"""The intermediate form: what a schema says, before it is a grammar.

Owns the words shared by the room: literals and goals, formulas over atoms, one shape per JSON type, and the
ledger that bounds the work. Leaves reading to ``read``, logic to ``expand``, text to ``emit``.

Invariant: whatever is dropped is named in ``Ledger.notes``; whatever is too large raises, never hangs (I4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fractions import Fraction

KINDS = ("object", "array", "string", "number", "boolean", "null")
ALL = frozenset(KINDS)

TRUE = 0
"""The literal every value satisfies. A literal is a node number, or its bitwise complement for "not"."""
FALSE = ~TRUE

REPEAT_LIMIT = 2000
"""Engines refuse, or silently unbound, a repetition that reaches this count (llama.cpp)."""

LENGTH_LIMIT = 1_000_000
"""The longest string whose length the grammar still counts, in blocks."""

Goal: TypeAlias = frozenset[int]
"""A conjunction of literals: the unit that becomes a rule."""


class SchemaRefusedError(ValueError):
    """The schema cannot become a grammar; the message says which keyword and why, never a value."""


class TooLargeError(Exception):
    """A step passed its bound. ``keyword`` names what can be approximated instead."""

    def __init__(self, keyword: str) -> None:
        super().__init__(keyword)
        self.keyword = keyword


@dataclass(slots=True, kw_only=True)
class Ledger:
    """What one compilation may still spend, and what it gave up so far.

    Arguments: ``fuel`` in elementary steps, ``dropped`` keywords to approximate from the start.
    """

    fuel: int
    dropped: frozenset[str] = frozenset()
    notes: set[str] = field(default_factory=set)

    def spend(self, amount: int, keyword: str) -> None:
        """Take ``amount`` steps. Raises ``TooLargeError`` naming ``keyword`` when none are left."""
        self.fuel -= amount
        if self.fuel < 0:
            raise TooLargeError(keyword)

    def note(self, keyword: str) -> None:
        """Record that ``keyword`` is not enforced by the grammar."""
        self.notes.add(keyword)


# --- formulas -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    """All parts hold; without parts, true."""

    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Or:
    """Some part holds; without parts, false. ``keyword`` is what to blame when it is too large."""

    parts: tuple[Formula, ...] = ()
    keyword: str = "anyOf"


@dataclass(frozen=True, slots=True, kw_only=True)
class One:
    """Exactly one of the literals holds (``oneOf``)."""

    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lit:
    """A node holds, or does not (a negative number)."""

    node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The value is of one of these JSON types."""

    kinds: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A boolean is one of these."""

    allowed: frozenset[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Integral:
    """A number is mathematically an integer, or is not."""

    holds: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A number lies between ``lo`` and ``hi``; ``None`` is no bound, ``open`` excludes the end."""

    lo: Fraction | None = None
    lo_open: bool = False
    hi: Fraction | None = None
    hi_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiple:
    """A number is a multiple of ``of``."""

    of: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A number is one of ``values``, or none of them."""

    values: frozenset[Fraction]
    holds: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """A string has ``lo`` to ``hi`` code points."""

    lo: int = 0
    hi: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A string matches a regular expression (searched, as ECMA-262 does), or does not."""

    pattern: str
    keyword: str = "pattern"
    holds: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A string is one of ``words``, or none of them."""

    words: frozenset[str]
    holds: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySize:
    """An array has ``lo`` to ``hi`` items."""

    lo: int = 0
    hi: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """The items of an array, by position, then the rest."""

    prefix: tuple[int, ...] = ()
    rest: int = TRUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Contains:
    """Between ``lo`` and ``hi`` items, at or after ``start``, satisfy ``item``."""

    item: int
    lo: int = 1
    hi: int | None = None
    start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    """The items of an array differ from each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSize:
    """An object has ``lo`` to ``hi`` members."""

    lo: int = 0
    hi: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """``properties``, ``patternProperties`` and ``additionalProperties`` of one schema, in declared order."""

    names: tuple[tuple[str, int], ...] = ()
    patterns: tuple[tuple[str, int], ...] = ()
    extra: int = TRUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Has:
    """An object has a member of this name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HasOther:
    """An object has a member whose name is none of ``names`` and matches none of ``patterns``."""

    names: frozenset[str]
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Every member name of an object satisfies ``node``."""

    node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Something we do not express; ``keyword`` is noted and the value passes."""

    keyword: str


Atom: TypeAlias = (
    Kind
    | Truth
    | Integral
    | Bounds
    | Multiple
    | Numbers
    | Length
    | Text
    | Words
    | ArraySize
    | Items
    | Contains
    | Unique
    | ObjectSize
    | Members
    | Has
    | HasOther
    | Naming
    | Unknown
)
Formula: TypeAlias = And | Or | One | Lit | Atom


# --- shapes: one JSON type each, every constraint merged ----------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NullShape:
    """The value ``null``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthShape:
    """Some of the booleans."""

    allowed: frozenset[bool] = frozenset({True, False})


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberShape:
    """An interval of numbers; ``integral`` is ``None`` where both kinds are in."""

    integral: bool | None = None
    bounds: Bounds = Bounds()
    multiples: frozenset[Fraction] = frozenset()
    values: frozenset[Fraction] | None = None
    barred: frozenset[Fraction] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class StringShape:
    """A set of strings: the words if given, else all; within length, texts, and without barred words."""

    words: frozenset[str] | None = None
    barred: frozenset[str] = frozenset()
    texts: frozenset[Text] = frozenset()
    lo: int = 0
    hi: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayShape:
    """Items by position, then the rest, with a length and counted items."""

    prefix: tuple[Goal, ...] = ()
    rest: Goal = frozenset()
    lo: int = 0
    hi: int | None = None
    contains: tuple[Contains, ...] = ()
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectDraft:
    """Constraints on an object as they are met, before names are sorted out."""

    members: tuple[Members, ...] = ()
    required: tuple[str, ...] = ()
    naming: Goal = frozenset()
    others: tuple[HasOther, ...] = ()
    lo: int = 0
    hi: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One declared member."""

    name: str
    goal: Goal
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Members whose name is in ``names``; one of those marked ``needed`` must be there."""

    names: StringShape
    goal: Goal
    needed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectShape:
    """Declared members in order, then others, ``lo`` to ``hi`` in all."""

    members: tuple[Member, ...] = ()
    extras: tuple[Extra, ...] = ()
    lo: int = 0
    hi: int | None = None


Draft: TypeAlias = NullShape | TruthShape | NumberShape | StringShape | ArrayShape | ObjectDraft
Shape: TypeAlias = NullShape | TruthShape | NumberShape | StringShape | ArrayShape | ObjectShape
