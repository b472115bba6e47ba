# SPDX-License-Identifier: Apache-2.0
"""Merging atoms into shapes.

Owns ``meet`` (one more atom) and the settling of strings, numbers and arrays. Objects settle in
``objects``, since their names need more. Leaves choice between alternatives to ``expand``.

Invariant: a shape without values is ``None``, so that nothing impossible is emitted; what is dropped is
noted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

from .automaton import EVERYTHING, Dfa, among, few, lengths, product
from .model import (
    FALSE,
    LENGTH_LIMIT,
    REPEAT_LIMIT,
    TRUE,
    ArrayShape,
    ArraySize,
    Atom,
    Bounds,
    Contains,
    Draft,
    Goal,
    Has,
    HasOther,
    Integral,
    Items,
    Kind,
    Ledger,
    Length,
    Members,
    Multiple,
    Naming,
    NullShape,
    Numbers,
    NumberShape,
    ObjectDraft,
    ObjectSize,
    StringShape,
    Text,
    TooLargeError,
    Truth,
    TruthShape,
    Unique,
    Unknown,
    Words,
)
from .numeric import includes, pieces, sides
from .pattern import UnsupportedPatternError
from .regex import language
from .terminals import writable

if TYPE_CHECKING:
    from collections.abc import Iterable

_FEW_WORDS, _MANY_WORDS = 32, 200

TOPS: dict[str, Draft] = {
    "object": ObjectDraft(),
    "array": ArrayShape(),
    "string": StringShape(),
    "number": NumberShape(),
    "boolean": TruthShape(),
    "null": NullShape(),
}
"""The unconstrained draft of each type."""


def goal(literals: Iterable[int]) -> Goal:
    """Return a conjunction in normal form: without what is always true, and false when contradictory."""
    kept = frozenset(literals) - {TRUE}
    if len(kept) < 2:  # noqa: PLR2004 - nothing to contradict
        return kept
    return frozenset({FALSE}) if any(~literal in kept or literal == FALSE for literal in kept) else kept


def meet(draft: Draft, atom: Atom, ledger: Ledger) -> Draft | None:  # noqa: PLR0911 - one line per type
    """Return ``draft`` with ``atom``, or ``None`` when nothing satisfies both.

    An atom about another type leaves the draft as it is.
    """
    match atom:
        case Kind(kinds=kinds):
            return draft if any(type(draft) is type(TOPS[kind]) for kind in kinds) else None
        case Unknown(keyword=keyword):
            ledger.note(keyword)
            return draft
        case Truth(allowed=allowed):
            return _meet_truth(draft, allowed)
        case Integral() | Bounds() | Multiple() | Numbers():
            return _meet_number(draft, atom) if isinstance(draft, NumberShape) else draft
        case Length() | Text() | Words():
            return _meet_string(draft, atom) if isinstance(draft, StringShape) else draft
        case ArraySize() | Items() | Contains() | Unique():
            return _meet_array(draft, atom) if isinstance(draft, ArrayShape) else draft
        case ObjectSize() | Members() | Has() | HasOther() | Naming():
            return _meet_object(draft, atom) if isinstance(draft, ObjectDraft) else draft
    assert_never(atom)


def _meet_truth(draft: Draft, allowed: frozenset[bool]) -> Draft | None:
    if not isinstance(draft, TruthShape):
        return draft
    kept = draft.allowed & allowed
    return TruthShape(allowed=kept) if kept else None


def _meet_number(draft: NumberShape, atom: Integral | Bounds | Multiple | Numbers) -> NumberShape | None:
    match atom:
        case Integral(holds=holds):
            return None if draft.integral is (not holds) else replace(draft, integral=holds)
        case Bounds():
            return replace(draft, bounds=_tighter(draft.bounds, atom))
        case Multiple(of=of):
            return replace(draft, multiples=draft.multiples | {of})
        case Numbers(values=values, holds=True):
            return replace(draft, values=values if draft.values is None else draft.values & values)
        case Numbers(values=values):
            return replace(draft, barred=draft.barred | values)


def _tighter(one: Bounds, other: Bounds) -> Bounds:
    lo, lo_open, hi, hi_open = one.lo, one.lo_open, one.hi, one.hi_open
    if other.lo is not None and (lo is None or (other.lo, other.lo_open) > (lo, lo_open)):
        lo, lo_open = other.lo, other.lo_open
    if other.hi is not None and (hi is None or (other.hi, not other.hi_open) < (hi, not hi_open)):
        hi, hi_open = other.hi, other.hi_open
    return Bounds(lo=lo, lo_open=lo_open, hi=hi, hi_open=hi_open)


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def _meet_string(draft: StringShape, atom: Length | Text | Words) -> StringShape | None:
    match atom:
        case Length(lo=lo, hi=hi):
            lo, hi = max(draft.lo, lo), _least(draft.hi, hi)
            return None if hi is not None and lo > hi else replace(draft, lo=lo, hi=hi)
        case Text():
            return replace(draft, texts=draft.texts | {atom})
        case Words(words=words, holds=True):
            kept = words if draft.words is None else draft.words & words
            return replace(draft, words=kept) if kept else None
        case Words(words=words):
            return replace(draft, barred=draft.barred | words)


def _meet_array(draft: ArrayShape, atom: ArraySize | Items | Contains | Unique) -> ArrayShape | None:
    match atom:
        case ArraySize(lo=lo, hi=hi):
            lo, hi = max(draft.lo, lo), _least(draft.hi, hi)
            return None if hi is not None and lo > hi else replace(draft, lo=lo, hi=hi)
        case Items(prefix=prefix, rest=rest):
            size = max(len(draft.prefix), len(prefix))
            merged = tuple(
                goal((*_at(draft, index), prefix[index] if index < len(prefix) else rest))
                for index in range(size)
            )
            return replace(draft, prefix=merged, rest=goal((*draft.rest, rest)))
        case Contains():
            return draft if atom in draft.contains else replace(draft, contains=(*draft.contains, atom))
        case Unique():
            return replace(draft, unique=True)


def _at(shape: ArrayShape, index: int) -> Goal:
    return shape.prefix[index] if index < len(shape.prefix) else shape.rest


def _meet_object(
    draft: ObjectDraft, atom: ObjectSize | Members | Has | HasOther | Naming
) -> ObjectDraft | None:
    match atom:
        case ObjectSize(lo=lo, hi=hi):
            lo, hi = max(draft.lo, lo), _least(draft.hi, hi)
            return None if hi is not None and lo > hi else replace(draft, lo=lo, hi=hi)
        case Members():
            return draft if atom in draft.members else replace(draft, members=(*draft.members, atom))
        case Has(name=name):
            return draft if name in draft.required else replace(draft, required=(*draft.required, name))
        case HasOther():
            return draft if atom in draft.others else replace(draft, others=(*draft.others, atom))
        case Naming(node=node):
            return replace(draft, naming=goal((*draft.naming, node)))


# --- settling -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def string_set(shape: StringShape) -> Dfa:
    """Return the set of an unbounded string shape as an automaton (``words`` is not looked at).

    Raises ``TooLargeError`` past the bounds and ``UnsupportedPatternError`` for an unsupported pattern.
    """
    result = EVERYTHING
    for text in sorted(shape.texts, key=lambda text: (not text.holds, text.pattern)):
        found = language(text.pattern, wide=not text.holds)
        if result is EVERYTHING and text.holds:
            result = found  # a product with everything would number its states alike
        else:
            result = product(result, found, without=not text.holds, keyword=text.keyword)
    if shape.barred:
        result = product(result, among(shape.barred), without=True, keyword="not")
    if shape.lo or shape.hi is not None:
        result = product(
            result, lengths(shape.lo, shape.hi), keyword="maxLength" if shape.hi else "minLength"
        )
    return result


def settle_string(shape: StringShape, ledger: Ledger) -> StringShape | None:
    """Return ``shape`` with what it can express, or ``None`` when it holds no string."""
    texts = frozenset(text for text in shape.texts if _supported(text, ledger))
    lo, hi = shape.lo, shape.hi
    if shape.words is not None:
        kept = frozenset(word for word in shape.words if writable(word) and _admits(shape, texts, word))
        return StringShape(words=kept) if kept else None
    if lo > LENGTH_LIMIT:
        ledger.note("minLength")
        lo = 0
    if hi is not None and hi > LENGTH_LIMIT:
        ledger.note("maxLength")
        hi = None
    shape = StringShape(barred=shape.barred, texts=texts, lo=lo, hi=hi)
    while shape.texts or (shape.barred and (lo or hi is not None)):
        ledger.spend(50, "pattern")
        try:
            return None if string_set(shape).is_empty() else shape
        except TooLargeError as error:
            ledger.note(error.keyword)
            shape = _without(shape, error.keyword)
            lo, hi = shape.lo, shape.hi
    return shape


def _without(shape: StringShape, keyword: str) -> StringShape:
    if keyword in ("maxLength", "minLength") and (shape.lo or shape.hi is not None):
        return replace(shape, lo=0, hi=None)
    if keyword in ("not", "enum") and shape.barred:
        return replace(shape, barred=frozenset())
    return StringShape(lo=shape.lo, hi=shape.hi) if shape.texts else StringShape()


def _supported(text: Text, ledger: Ledger) -> bool:
    try:
        language(text.pattern, wide=not text.holds)
    except (UnsupportedPatternError, TooLargeError):
        ledger.note(text.keyword)
        return False
    return True


def _admits(shape: StringShape, texts: frozenset[Text], word: str) -> bool:
    if word in shape.barred or len(word) < shape.lo or (shape.hi is not None and len(word) > shape.hi):
        return False
    return all(language(text.pattern, wide=not text.holds).holds(word) is text.holds for text in texts)


def in_strings(shape: StringShape, word: str) -> bool:
    """Whether ``word`` is in a settled string shape."""
    return (shape.words is None or word in shape.words) and _admits(shape, shape.texts, word)


def few_words(shape: StringShape) -> tuple[str, ...]:
    """Return the strings of a settled shape when it holds only a few, and none otherwise."""
    if shape.words is not None:
        return tuple(sorted(shape.words)) if len(shape.words) <= _MANY_WORDS else ()
    return few(string_set(shape), _FEW_WORDS) if shape.texts else ()


def both_strings(one: StringShape, other: StringShape, ledger: Ledger) -> StringShape | None:
    """Return the strings in both settled shapes, or ``None`` when there are none."""
    words = (
        one.words if other.words is None else other.words if one.words is None else one.words & other.words
    )
    merged = StringShape(
        words=words,
        barred=one.barred | other.barred,
        texts=one.texts | other.texts,
        lo=max(one.lo, other.lo),
        hi=_least(one.hi, other.hi),
    )
    return settle_string(merged, ledger)


def settle_number(shape: NumberShape, ledger: Ledger) -> list[NumberShape]:
    """Return ``shape`` as intervals that hold numbers, or as listed values."""
    if shape.values is not None:
        kept = frozenset(value for value in shape.values if includes(shape, value))
        return [NumberShape(values=kept)] if kept else []
    ledger.spend(1 + 5 * len(shape.barred), "not")
    return [piece for part in pieces(shape) for piece in _settle_piece(part, ledger)]


def _settle_piece(shape: NumberShape, ledger: Ledger) -> list[NumberShape]:
    while shape.bounds != Bounds() or shape.multiples:
        ledger.spend(20, "number")
        try:
            return [shape] if any(sides(shape)) else []
        except TooLargeError as error:
            if shape.multiples:
                ledger.note("multipleOf")
                shape = replace(shape, multiples=frozenset())
                continue
            if shape.bounds.lo is not None:
                ledger.note("minimum")
            if shape.bounds.hi is not None:
                ledger.note("maximum")
            del error
            shape = replace(shape, bounds=Bounds())
    return [shape]


def settle_array(shape: ArrayShape, ledger: Ledger) -> ArrayShape | None:
    """Return ``shape`` with what it can express, or ``None`` when its length is impossible."""
    lo, hi, rest = shape.lo, shape.hi, shape.rest
    if rest == frozenset({FALSE}):
        hi = _least(hi, len(shape.prefix))
    for index, item in enumerate(shape.prefix):
        if item == frozenset({FALSE}):
            hi = _least(hi, index)
    if hi is not None and lo > hi:
        return None
    if lo >= REPEAT_LIMIT:
        ledger.note("minItems")
        lo = 0
    if hi is not None and hi >= REPEAT_LIMIT:
        ledger.note("maxItems")
        hi = None
    if shape.unique and (hi is None or hi > 1):
        ledger.note("uniqueItems")
    contains = tuple(item for item in shape.contains if item.lo or item.hi is not None)
    prefix = shape.prefix if hi is None else shape.prefix[:hi]
    return ArrayShape(prefix=prefix, rest=rest, lo=lo, hi=hi, contains=contains)
