# SPDX-License-Identifier: Apache-2.0
"""Negation of formulas.

Owns the rules that push "not" down to atoms. A keyword that speaks of one type passes every other type, so
its negation also says that the value is of that type.

Invariant: a negation that cannot be said exactly becomes ``Unknown``, which is noted, never a guess.
"""

from __future__ import annotations

from itertools import combinations
from typing import assert_never

from .model import (
    ALL,
    FALSE,
    TRUE,
    And,
    ArraySize,
    Bounds,
    Contains,
    Formula,
    Has,
    HasOther,
    Integral,
    Items,
    Kind,
    Length,
    Lit,
    Members,
    Multiple,
    Naming,
    Numbers,
    ObjectSize,
    One,
    Or,
    Text,
    Truth,
    Unique,
    Unknown,
    Words,
)


def both(*parts: Formula) -> And:
    """Return the conjunction of ``parts``."""
    return And(parts=parts)


def either(*parts: Formula, keyword: str = "anyOf") -> Or:
    """Return the disjunction of ``parts``, blamed on ``keyword`` when it is too large."""
    return Or(parts=parts, keyword=keyword)


NOTHING = Or()
ANYTHING = And()


def a(kind: str) -> Kind:
    """Return "the value is of type ``kind``"."""
    return Kind(kinds=frozenset({kind}))


def absent(name: str) -> Members:
    """Return "no member is called ``name``" (any other type passes)."""
    return Members(names=((name, FALSE),))


def negate(formula: Formula) -> Formula:  # noqa: C901, PLR0911, PLR0912 - one line per form
    """Return the negation of ``formula``, negation standing only inside literals and atoms."""
    match formula:
        case And(parts=parts):
            return Or(parts=tuple(negate(part) for part in parts), keyword="not")
        case Or(parts=parts):
            return And(parts=tuple(negate(part) for part in parts))
        case One(parts=literals):
            none = And(parts=tuple(Lit(node=~node) for node in literals))
            pairs = (both(Lit(node=one), Lit(node=other)) for one, other in combinations(literals, 2))
            return Or(parts=(none, *pairs), keyword="not")
        case Lit(node=node):
            return Lit(node=~node)
        case Kind(kinds=kinds):
            return Kind(kinds=ALL - kinds)
        case Truth(allowed=allowed):
            return both(a("boolean"), Truth(allowed=frozenset({True, False}) - allowed))
        case Integral(holds=holds):
            return both(a("number"), Integral(holds=not holds))
        case Bounds():
            return both(a("number"), _outside(formula))
        case Numbers(values=values, holds=holds):
            return both(a("number"), Numbers(values=values, holds=not holds))
        case Words(words=words, holds=holds):
            return both(a("string"), Words(words=words, holds=not holds))
        case Length(lo=lo, hi=hi):
            return both(a("string"), _size(Length, lo, hi))
        case ArraySize(lo=lo, hi=hi):
            return both(a("array"), _size(ArraySize, lo, hi))
        case ObjectSize(lo=lo, hi=hi):
            return both(a("object"), _size(ObjectSize, lo, hi))
        case Text(pattern=pattern, keyword=keyword, holds=holds):
            if keyword == "format":  # the expressions are narrower than the formats
                return both(a("string"), Unknown(keyword="format"))
            return both(a("string"), Text(pattern=pattern, keyword=keyword, holds=not holds))
        case Items():
            return both(a("array"), _not_items(formula))
        case Contains(item=item, lo=lo, hi=hi, start=start):
            fewer = Contains(item=item, lo=0, hi=lo - 1, start=start) if lo > 0 else NOTHING
            more = Contains(item=item, lo=hi + 1, start=start) if hi is not None else NOTHING
            return both(a("array"), either(fewer, more))
        case Members():
            return both(a("object"), _not_members(formula))
        case Has(name=name):
            return both(a("object"), absent(name))
        case HasOther(names=names, patterns=patterns):
            known = tuple((name, TRUE) for name in sorted(names))
            return both(
                a("object"), Members(names=known, patterns=tuple((p, TRUE) for p in patterns), extra=FALSE)
            )
        case Unique():
            return both(a("array"), Unknown(keyword="uniqueItems"))
        case Naming():
            return both(a("object"), Unknown(keyword="propertyNames"))
        case Multiple():
            return both(a("number"), Unknown(keyword="multipleOf"))
        case Unknown():
            return formula
    assert_never(formula)


def _size(atom: type[Length | ArraySize | ObjectSize], lo: int, hi: int | None) -> Or:
    below = (atom(lo=0, hi=lo - 1),) if lo > 0 else ()
    above = (atom(lo=hi + 1),) if hi is not None else ()
    return Or(parts=(*below, *above))


def _outside(bounds: Bounds) -> Or:
    below = (Bounds(hi=bounds.lo, hi_open=not bounds.lo_open),) if bounds.lo is not None else ()
    above = (Bounds(lo=bounds.hi, lo_open=not bounds.hi_open),) if bounds.hi is not None else ()
    return Or(parts=(*below, *above))


def _not_items(items: Items) -> Or:
    wrong: list[Formula] = [
        both(ArraySize(lo=index + 1), Items(prefix=(*(TRUE,) * index, ~literal)))
        for index, literal in enumerate(items.prefix)
        if literal != TRUE
    ]
    if items.rest == FALSE:
        wrong.append(ArraySize(lo=len(items.prefix) + 1))
    elif items.rest != TRUE:
        wrong.append(Contains(item=~items.rest, start=len(items.prefix)))
    return Or(parts=tuple(wrong), keyword="items")


def _not_members(members: Members) -> Or:
    wrong: list[Formula] = [
        both(Has(name=name), Members(names=((name, ~literal),))) if literal != FALSE else Has(name=name)
        for name, literal in members.names
        if literal != TRUE
    ]
    # "Some member matching a pattern is wrong" would need a member whose name cannot come twice: not said.
    if any(literal != TRUE for _, literal in members.patterns):
        wrong.append(Unknown(keyword="patternProperties"))
    if members.extra == FALSE:
        names = frozenset(name for name, _ in members.names)
        wrong.append(HasOther(names=names, patterns=tuple(pattern for pattern, _ in members.patterns)))
    elif members.extra != TRUE:
        wrong.append(Unknown(keyword="additionalProperties"))
    return Or(parts=tuple(wrong), keyword="not")
