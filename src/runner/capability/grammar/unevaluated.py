# SPDX-License-Identifier: Apache-2.0
"""``unevaluatedProperties`` and ``unevaluatedItems``.

Owns the case analysis: which branches hold decides which names and positions were evaluated, so each
combination of branches is a case, with its own set, and the cases are alternatives. Leaves all else to
``read``.

Invariant: too many cases, or ``contains`` beside ``unevaluatedItems``, become ``Unknown``: noted, not
guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .logic import ANYTHING, a, absent, both, either, negate
from .model import ALL, TRUE, And, Formula, Has, Items, Kind, Lit, Members, Or, TooLargeError, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .reading import Reader

_CASE_LIMIT = 48
_DEPTH_LIMIT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """Under ``condition``, these names, patterns and positions count as evaluated."""

    condition: tuple[Formula, ...] = ()
    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    all_members: bool = False
    positions: int = 0
    all_items: bool = False
    by_contains: bool = False

    def __and__(self, other: _Case) -> _Case:
        return _Case(
            condition=(*self.condition, *other.condition),
            names=self.names | other.names,
            patterns=self.patterns | other.patterns,
            all_members=self.all_members or other.all_members,
            positions=max(self.positions, other.positions),
            all_items=self.all_items or other.all_items,
            by_contains=self.by_contains or other.by_contains,
        )


def _join(*choices: list[_Case]) -> list[_Case]:
    result = [_Case()]
    for cases in choices:
        if len(result) * len(cases) > _CASE_LIMIT:
            raise TooLargeError("unevaluatedProperties")
        result = [one & other for one in result for other in cases]
    return result


def _own(schema: Mapping[str, object], *, outer: bool) -> _Case:
    items, prefix = schema.get("items"), schema.get("prefixItems")
    positional = items if isinstance(items, list) else prefix
    names, patterns = schema.get("properties"), schema.get("patternProperties")
    return _Case(
        names=frozenset(names if isinstance(names, dict) else ()),
        patterns=frozenset(patterns if isinstance(patterns, dict) else ()),
        all_members="additionalProperties" in schema or (not outer and "unevaluatedProperties" in schema),
        positions=len(positional) if isinstance(positional, list) else 0,
        all_items=("items" in schema and not isinstance(items, list))
        or (isinstance(items, list) and "additionalItems" in schema)
        or (not outer and "unevaluatedItems" in schema),
        by_contains="contains" in schema,
    )


class _Cases:
    """Walks the in-place applicators of one schema."""

    __slots__ = ("_reader",)

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def of(self, schema: object, base: str, depth: int = 0) -> list[_Case]:
        if depth > _DEPTH_LIMIT:
            raise TooLargeError("unevaluatedProperties")
        if not isinstance(schema, dict):
            return [_Case()]
        inner = self._reader.references.base_of(schema, base)
        found = [[_own(schema, outer=depth == 0)]]
        references = [schema[key] for key in ("$ref", "$recursiveRef") if key in schema]
        found.extend(self.of(*self._reader.resolve(name, inner), depth + 1) for name in references)
        if "$dynamicRef" in schema:
            raise TooLargeError("unevaluatedProperties")
        found.extend(self.of(part, inner, depth + 1) for part in self._list(schema, "allOf"))
        found.append(self._some(self._list(schema, "anyOf"), inner, depth))
        found.append(self._one(self._list(schema, "oneOf"), inner, depth))
        found.append(self._condition(schema, inner, depth))
        found.extend(self._dependent(schema, inner, depth))
        return _join(*found)

    @staticmethod
    def _list(schema: Mapping[str, object], key: str) -> list[object]:
        value = schema.get(key, [])
        return value if isinstance(value, list) else []

    def _holding(self, part: object, base: str, depth: int) -> list[_Case]:
        holds = _Case(condition=(Lit(node=self._reader.node(part, base)),))
        return [holds & case for case in self.of(part, base, depth + 1)]

    def _failing(self, part: object, base: str) -> _Case:
        return _Case(condition=(Lit(node=~self._reader.node(part, base)),))

    def _some(self, parts: list[object], base: str, depth: int) -> list[_Case]:
        sides = [[self._failing(part, base), *self._holding(part, base, depth)] for part in parts]
        return _join(*sides)  # "none holds" contradicts anyOf itself, and falls away there

    def _one(self, parts: list[object], base: str, depth: int) -> list[_Case]:
        if not parts:
            return [_Case()]
        return [case for part in parts for case in self._holding(part, base, depth)]

    def _condition(self, schema: Mapping[str, object], base: str, depth: int) -> list[_Case]:
        if "if" not in schema:
            return [_Case()]
        then, other = (self.of(schema.get(key), base, depth + 1) for key in ("then", "else"))
        holding = _join(self._holding(schema["if"], base, depth), then)
        return [*holding, *_join([self._failing(schema["if"], base)], other)]

    def _dependent(self, schema: Mapping[str, object], base: str, depth: int) -> Iterable[list[_Case]]:
        dependent = schema.get("dependentSchemas")
        for name, part in dependent.items() if isinstance(dependent, dict) else ():
            there = _Case(condition=(a("object"), Has(name=name)))
            away = _Case(condition=(either(negate(a("object")), absent(name)),))
            yield [away, *_join([there], self.of(part, base, depth + 1))]


def unevaluated_members(reader: Reader, schema: Mapping[str, object], base: str) -> Formula:
    """Return what ``unevaluatedProperties`` says; raises ``SchemaRefusedError`` as reading does."""
    rest = reader.node(schema["unevaluatedProperties"], base)
    if reader.legacy or rest == TRUE:
        return ANYTHING
    try:
        cases = _Cases(reader).of(schema, base)
    except TooLargeError:
        return either(Kind(kinds=ALL - {"object"}), Unknown(keyword="unevaluatedProperties"))
    parts = []
    for case in cases:
        names = tuple((name, TRUE) for name in sorted(case.names))
        patterns = tuple((pattern, TRUE) for pattern in sorted(case.patterns))
        limit: Formula = And() if case.all_members else Members(names=names, patterns=patterns, extra=rest)
        parts.append(both(*case.condition, limit))
    return Or(parts=(Kind(kinds=ALL - {"object"}), *parts), keyword="unevaluatedProperties")


def unevaluated_items(reader: Reader, schema: Mapping[str, object], base: str) -> Formula:
    """Return what ``unevaluatedItems`` says; raises ``SchemaRefusedError`` as reading does."""
    rest = reader.node(schema["unevaluatedItems"], base)
    if reader.legacy or rest == TRUE:
        return ANYTHING
    unknown = either(Kind(kinds=ALL - {"array"}), Unknown(keyword="unevaluatedItems"))
    try:
        cases = _Cases(reader).of(schema, base)
    except TooLargeError:
        return unknown
    parts = []
    for case in cases:
        if case.by_contains and not case.all_items:
            return unknown
        limit: Formula = And() if case.all_items else Items(prefix=(TRUE,) * case.positions, rest=rest)
        parts.append(both(*case.condition, limit))
    return Or(parts=(Kind(kinds=ALL - {"array"}), *parts), keyword="unevaluatedItems")
