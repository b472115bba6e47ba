# SPDX-License-Identifier: Apache-2.0
"""The meaning of each keyword of JSON Schema.

Owns one function per keyword or group of keywords that speak together. Leaves nodes and references to
``read``, conjunctions to ``expand``, and the tracking of what was evaluated to ``unevaluated``.

Invariant: a keyword is read exactly, or becomes ``Unknown``, or the schema is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from .formats import FORMATS, UNSUPPORTED
from .logic import ANYTHING, a, absent, both, either, negate
from .model import (
    ALL,
    FALSE,
    TRUE,
    ArraySize,
    Bounds,
    Contains,
    Formula,
    Has,
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
    SchemaRefusedError,
    Text,
    Truth,
    Unique,
    Unknown,
    Words,
)
from .unevaluated import unevaluated_items, unevaluated_members

if TYPE_CHECKING:
    from collections.abc import Callable

    from .reading import Reader

_MISSING = object()
_TYPES: dict[str, Formula] = {
    "object": a("object"),
    "array": a("array"),
    "string": a("string"),
    "number": a("number"),
    "boolean": a("boolean"),
    "null": a("null"),
    "integer": both(a("number"), Integral()),
}


def parse_count(value: object, keyword: str) -> int:
    """Return a non-negative whole number; raises ``SchemaRefusedError`` naming ``keyword`` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or value < 0:
        raise SchemaRefusedError(f"{keyword}: a non-negative integer is needed")
    return int(value)


def parse_number(value: object, keyword: str) -> Fraction:
    """Return a finite number exactly as written; raises ``SchemaRefusedError`` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SchemaRefusedError(f"{keyword}: a number is needed")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124
        raise SchemaRefusedError(f"{keyword}: a finite number is needed")
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def parse_names(value: object, keyword: str) -> tuple[str, ...]:
    """Return a list of names without repetition; raises ``SchemaRefusedError`` otherwise."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise SchemaRefusedError(f"{keyword}: a list of names is needed")
    return tuple(dict.fromkeys(value))


def parse_map(value: object, keyword: str) -> Mapping[str, object]:
    """Return a mapping; raises ``SchemaRefusedError`` otherwise."""
    if not isinstance(value, dict):
        raise SchemaRefusedError(f"{keyword}: an object is needed")
    return value


_Schema: TypeAlias = Mapping[str, object]


def _ignore(_reader: Reader, _schema: _Schema, _base: str) -> Formula:
    return ANYTHING


def _type(_reader: Reader, schema: _Schema, _base: str) -> Formula:
    names = schema["type"]
    if isinstance(names, str) and names in _TYPES:
        return _TYPES[names]
    known = parse_names([names] if isinstance(names, str) else names, "type")
    if not _TYPES.keys() >= set(known):
        raise SchemaRefusedError("type: not a type of JSON Schema")
    return Or(parts=tuple(_TYPES[name] for name in known), keyword="type")


def _enum(reader: Reader, schema: _Schema, _base: str) -> Formula:
    values = schema["enum"]
    if not isinstance(values, list):
        raise SchemaRefusedError("enum: a list is needed")
    return _one_of_values(reader, values)


def _const(reader: Reader, schema: _Schema, _base: str) -> Formula:
    return _one_of_values(reader, [schema["const"]])


def _one_of_values(reader: Reader, values: list[object]) -> Formula:
    words = frozenset(value for value in values if isinstance(value, str))
    truths = frozenset(value for value in values if isinstance(value, bool))
    numbers = frozenset(
        parse_number(value, "enum")
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool)
    )
    parts: list[Formula] = []
    if words:
        parts.append(both(a("string"), Words(words=words)))
    if numbers:
        parts.append(both(a("number"), Numbers(values=numbers)))
    if truths:
        parts.append(both(a("boolean"), Truth(allowed=truths)))
    if any(value is None for value in values):
        parts.append(a("null"))
    compound = [value for value in values if isinstance(value, list | dict)]
    if len(values) == 1:
        parts += [_equal(reader, value) for value in compound]
    else:
        parts += [Lit(node=reader.constant(value)) for value in compound]
    return Or(parts=tuple(parts), keyword="enum")


def _equal(reader: Reader, value: object) -> Formula:
    if isinstance(value, list):
        items = Items(prefix=tuple(reader.constant(item) for item in value), rest=FALSE)
        return both(a("array"), ArraySize(lo=len(value), hi=len(value)), items)
    members = parse_map(value, "const")
    names = tuple((name, reader.constant(item)) for name, item in members.items())
    return both(a("object"), *(Has(name=name) for name in members), Members(names=names, extra=FALSE))


def _bounds(_reader: Reader, schema: _Schema, _base: str) -> Formula:
    parts: list[Formula] = []
    for key, strict, low in (("minimum", "exclusiveMinimum", True), ("maximum", "exclusiveMaximum", False)):
        limit, exclusive = schema.get(key, _MISSING), schema.get(strict, _MISSING)
        if limit is not _MISSING:
            value = parse_number(limit, key)
            opened = exclusive is True  # draft 4
            parts.append(Bounds(lo=value, lo_open=opened) if low else Bounds(hi=value, hi_open=opened))
        if exclusive is not _MISSING and not isinstance(exclusive, bool):
            value = parse_number(exclusive, strict)
            parts.append(Bounds(lo=value, lo_open=True) if low else Bounds(hi=value, hi_open=True))
    return both(*parts)


def _multiple(_reader: Reader, schema: _Schema, _base: str) -> Formula:
    of = parse_number(schema["multipleOf"], "multipleOf")
    if of <= 0:
        raise SchemaRefusedError("multipleOf: a number above zero is needed")
    return Multiple(of=of)


def _limits(schema: _Schema, low: str, high: str) -> tuple[int, int | None]:
    lo = parse_count(schema[low], low) if low in schema else 0
    return lo, parse_count(schema[high], high) if high in schema else None


def _length(_reader: Reader, schema: _Schema, _base: str) -> Formula:
    lo, hi = _limits(schema, "minLength", "maxLength")
    return Length(lo=lo, hi=hi)


def _array_size(_reader: Reader, schema: _Schema, _base: str) -> Formula:
    lo, hi = _limits(schema, "minItems", "maxItems")
    return ArraySize(lo=lo, hi=hi)


def _object_size(_reader: Reader, schema: _Schema, _base: str) -> Formula:
    lo, hi = _limits(schema, "minProperties", "maxProperties")
    return ObjectSize(lo=lo, hi=hi)


def _pattern(_reader: Reader, schema: _Schema, _base: str) -> Formula:
    pattern = schema["pattern"]
    if not isinstance(pattern, str):
        raise SchemaRefusedError("pattern: a string is needed")
    return Text(pattern=pattern)


def _format(reader: Reader, schema: _Schema, _base: str) -> Formula:
    name = schema["format"]
    if not reader.assert_formats or not isinstance(name, str):
        return ANYTHING
    if name in FORMATS:
        return Text(pattern=FORMATS[name], keyword="format")
    if name in UNSUPPORTED:
        return either(Kind(kinds=ALL - {"string"}), Unknown(keyword="format"), keyword="format")
    return ANYTHING


def _items(reader: Reader, schema: _Schema, base: str) -> Formula:
    items, prefix = schema.get("items", True), schema.get("prefixItems", ())
    if isinstance(items, list):  # draft 7 and older
        prefix, items = items, schema.get("additionalItems", True)
    if not isinstance(prefix, list | tuple):
        raise SchemaRefusedError("prefixItems: a list of schemas is needed")
    return Items(prefix=tuple(reader.node(item, base) for item in prefix), rest=reader.node(items, base))


def _unique(_reader: Reader, schema: _Schema, _base: str) -> Formula:
    return Unique() if schema["uniqueItems"] is True else ANYTHING


def _contains(reader: Reader, schema: _Schema, base: str) -> Formula:
    lo, hi = 1, None
    if not reader.legacy:
        lo, hi = _limits({"minContains": 1, **schema}, "minContains", "maxContains")
    return Contains(item=reader.node(schema["contains"], base), lo=lo, hi=hi)


def _members(reader: Reader, schema: _Schema, base: str) -> Formula:
    return Members(
        names=reader.node_map(schema.get("properties", {}), "properties", base),
        patterns=reader.node_map(schema.get("patternProperties", {}), "patternProperties", base),
        extra=reader.node(schema.get("additionalProperties", True), base),
    )


def _required(_reader: Reader, schema: _Schema, _base: str) -> Formula:
    if isinstance(
        schema["required"], bool
    ):  # draft 3: says something about the parent, which later drafts ignore
        raise SchemaRefusedError("required: a list of names is needed")
    return both(*(Has(name=name) for name in parse_names(schema["required"], "required")))


def _naming(reader: Reader, schema: _Schema, base: str) -> Formula:
    return Naming(node=reader.node(schema["propertyNames"], base))


def _dependent_required(_reader: Reader, schema: _Schema, _base: str) -> Formula:
    needs = parse_map(schema["dependentRequired"], "dependentRequired")
    return both(*(_needs(name, parse_names(value, "dependentRequired")) for name, value in needs.items()))


def _needs(name: str, others: tuple[str, ...]) -> Formula:
    return either(
        both(a("object"), absent(name)), negate(a("object")), _all_of(others), keyword="dependentRequired"
    )


def _all_of(names: tuple[str, ...]) -> Formula:
    return both(a("object"), *(Has(name=name) for name in names))


def _when_present(name: str, node: int) -> Formula:
    then = both(a("object"), Has(name=name), Lit(node=node))
    return either(negate(a("object")), absent(name), then, keyword="dependentSchemas")


def _dependent_schemas(reader: Reader, schema: _Schema, base: str) -> Formula:
    pairs = reader.node_map(schema["dependentSchemas"], "dependentSchemas", base)
    return both(*(_when_present(name, node) for name, node in pairs))


def _dependencies(reader: Reader, schema: _Schema, base: str) -> Formula:
    parts: list[Formula] = []
    if reader.modern:  # the keyword left the specification
        return ANYTHING
    for name, value in parse_map(schema["dependencies"], "dependencies").items():
        if isinstance(value, list):
            parts.append(_needs(name, parse_names(value, "dependencies")))
        else:
            parts.append(_when_present(name, reader.node(value, base)))
    return both(*parts)


def _every(reader: Reader, schema: _Schema, base: str) -> Formula:
    return both(*(Lit(node=node) for node in reader.nodes(schema["allOf"], "allOf", base)))


def _some(reader: Reader, schema: _Schema, base: str) -> Formula:
    return either(*(Lit(node=node) for node in reader.nodes(schema["anyOf"], "anyOf", base)))


def _one(reader: Reader, schema: _Schema, base: str) -> Formula:
    return One(parts=reader.nodes(schema["oneOf"], "oneOf", base))


def _not(reader: Reader, schema: _Schema, base: str) -> Formula:
    return Lit(node=~reader.node(schema["not"], base))


def _condition(reader: Reader, schema: _Schema, base: str) -> Formula:
    if "if" not in schema:
        return ANYTHING
    test = reader.node(schema["if"], base)
    then, other = (reader.node(schema.get(key, True), base) for key in ("then", "else"))
    if then == other == TRUE:
        return ANYTHING
    return either(both(Lit(node=test), Lit(node=then)), both(Lit(node=~test), Lit(node=other)), keyword="if")


def _reference(reader: Reader, schema: _Schema, base: str) -> Formula:
    return Lit(node=reader.node(*reader.resolve(schema["$ref"], base)))


def _dynamic(reader: Reader, schema: _Schema, base: str) -> Formula:
    located = reader.resolve(schema["$dynamicRef"], base)
    target = located[0]
    name = target.get("$dynamicAnchor") if isinstance(target, dict) else None
    if isinstance(name, str) and len(reader.references.dynamic.get(name, ())) > 1:
        return Unknown(keyword="$dynamicRef")  # which one is meant depends on the path taken
    return Lit(node=reader.node(*located))


def _recursive(reader: Reader, schema: _Schema, base: str) -> Formula:
    return Lit(node=reader.node(*reader.resolve(schema["$recursiveRef"], base)))


_GROUPS: dict[str, tuple[Callable[[Reader, _Schema, str], Formula], tuple[str, ...]]] = {
    "type": (_type, ("type",)),
    "enum": (_enum, ("enum",)),
    "const": (_const, ("const",)),
    "bounds": (_bounds, ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
    "multipleOf": (_multiple, ("multipleOf",)),
    "length": (_length, ("minLength", "maxLength")),
    "pattern": (_pattern, ("pattern",)),
    "format": (_format, ("format",)),
    "items": (_items, ("items", "prefixItems", "additionalItems")),
    "array size": (_array_size, ("minItems", "maxItems")),
    "uniqueItems": (_unique, ("uniqueItems",)),
    "contains": (_contains, ("contains",)),
    "members": (_members, ("properties", "patternProperties", "additionalProperties")),
    "required": (_required, ("required",)),
    "object size": (_object_size, ("minProperties", "maxProperties")),
    "propertyNames": (_naming, ("propertyNames",)),
    "dependentRequired": (_dependent_required, ("dependentRequired",)),
    "dependentSchemas": (_dependent_schemas, ("dependentSchemas",)),
    "dependencies": (_dependencies, ("dependencies",)),
    "allOf": (_every, ("allOf",)),
    "anyOf": (_some, ("anyOf",)),
    "oneOf": (_one, ("oneOf",)),
    "not": (_not, ("not",)),
    "if": (_condition, ("if", "then", "else")),
    "$ref": (_reference, ("$ref",)),
    "$dynamicRef": (_dynamic, ("$dynamicRef",)),
    "$recursiveRef": (_recursive, ("$recursiveRef",)),
    "unevaluatedItems": (unevaluated_items, ("unevaluatedItems",)),
    "unevaluatedProperties": (unevaluated_members, ("unevaluatedProperties",)),
}
KEYWORDS = {key: (group, read) for group, (read, keys) in _GROUPS.items() for key in keys}
