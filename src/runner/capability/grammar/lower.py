# SPDX-License-Identifier: Apache-2.0
"""From the form back to a plain JSON Schema, for endpoints that take one.

Owns the lowered text: one type per alternative, members, items and bounds spelled out, references only
where the schema is recursive. What the target keyword cannot say is left out, since every reply is
validated again.

Invariant: the lowered schema accepts every value that the grammar accepts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import (
    REPEAT_LIMIT,
    TRUE,
    ArrayShape,
    Goal,
    NullShape,
    NumberShape,
    ObjectShape,
    Shape,
    StringShape,
    TruthShape,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from .form import Form

_INLINE_LIMIT = 2000
_DEPTH_LIMIT = 24


def lower(form: Form) -> dict[str, object]:
    """Return the schema of ``form``; references are inlined but for recursion and for very large results."""
    return _Lowering(form).schema()


def number(value: Fraction) -> int | float:
    """Return ``value`` as JSON writes it."""
    return value.numerator if value.denominator == 1 else float(value)


class _Lowering:
    __slots__ = ("_definitions", "_form", "_names", "_open", "_size")

    def __init__(self, form: Form) -> None:
        self._form = form
        self._open: list[Goal] = []
        self._names: dict[Goal, str] = {}
        self._definitions: dict[str, object] = {}
        self._size = 0

    def schema(self) -> dict[str, object]:
        root = self._goal(self._form.root)
        while len(self._definitions) < len(self._names):
            for wanted, name in list(self._names.items()):
                if name not in self._definitions:
                    self._definitions[name] = {}
                    self._definitions[name] = self._alternatives(wanted)
        return {**root, "$defs": self._definitions} if self._definitions else root

    def _goal(self, wanted: Goal) -> dict[str, object]:
        if not wanted - {TRUE} or wanted not in self._form.shapes:  # the latter beside "contains"
            return {}
        self._size += 1
        deep = len(self._open) > _DEPTH_LIMIT or self._size > _INLINE_LIMIT
        if deep or wanted in self._open or wanted in self._names:
            name = self._names.setdefault(wanted, f"d{len(self._names) + 1}")
            return {"$ref": f"#/$defs/{name}"}
        return self._alternatives(wanted)

    def _alternatives(self, wanted: Goal) -> dict[str, object]:
        self._open.append(wanted)
        found = [self._shape(shape) for shape in self._form.shapes[wanted]]
        self._open.pop()
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _shape(self, shape: Shape) -> dict[str, object]:
        match shape:
            case NullShape():
                return {"type": "null"}
            case TruthShape(allowed=allowed):
                return {"type": "boolean"} if len(allowed) > 1 else {"const": True in allowed}
            case NumberShape():
                return _number(shape)
            case StringShape():
                return _string(shape)
            case ArrayShape():
                return self._array(shape)
            case ObjectShape():
                return self._object(shape)

    def _array(self, shape: ArrayShape) -> dict[str, object]:
        result: dict[str, object] = {"type": "array"}
        if shape.prefix:
            result["prefixItems"] = [self._goal(item) for item in shape.prefix]
        if shape.hi is None or shape.hi > len(shape.prefix):
            result["items"] = self._goal(shape.rest)
        else:
            result["items"] = False
        result.update(_sizes("Items", shape.lo, shape.hi))
        return result

    def _object(self, shape: ObjectShape) -> dict[str, object]:
        result: dict[str, object] = {
            "type": "object",
            "properties": {member.name: self._goal(member.goal) for member in shape.members},
        }
        required = [member.name for member in shape.members if member.required]
        if required:
            result["required"] = required
        match [extra for extra in shape.extras if not extra.needed]:
            case [] if not shape.extras:
                result["additionalProperties"] = False
            case [one]:
                result["additionalProperties"] = self._goal(one.goal)
            case _:
                result["additionalProperties"] = {}
        result.update(_sizes("Properties", shape.lo, shape.hi))
        return result


def _number(shape: NumberShape) -> dict[str, object]:
    if shape.values is not None:
        return {"enum": [number(value) for value in sorted(shape.values)]}
    result: dict[str, object] = {"type": "integer" if shape.integral else "number"}
    bounds = shape.bounds
    if bounds.lo is not None:
        result["exclusiveMinimum" if bounds.lo_open else "minimum"] = number(bounds.lo)
    if bounds.hi is not None:
        result["exclusiveMaximum" if bounds.hi_open else "maximum"] = number(bounds.hi)
    whole = [number(multiple) for multiple in shape.multiples if multiple.denominator == 1]
    if len(whole) == 1:  # fractions are left out: in binary floats 0.47 is no multiple of 0.01
        result["multipleOf"] = whole[0]
    return result


def _string(shape: StringShape) -> dict[str, object]:
    if shape.words is not None:
        return {"type": "string", "enum": sorted(shape.words)}
    result: dict[str, object] = {"type": "string"}
    result.update(_sizes("Length", shape.lo, shape.hi))
    positive = [text.pattern for text in sorted(shape.texts, key=lambda text: text.pattern) if text.holds]
    if positive:
        result["pattern"] = _anchored(positive[0])
    return result


def _sizes(of: str, lo: int, hi: int | None) -> dict[str, object]:
    """Return the bounds that engines can count; larger ones they refuse or ignore."""
    found: dict[str, object] = {}
    if 0 < lo < REPEAT_LIMIT:
        found[f"min{of}"] = lo
    if hi is not None and hi < REPEAT_LIMIT:
        found[f"max{of}"] = hi
    return found


def _anchored(pattern: str) -> str:
    """Return ``pattern`` with both anchors, since converters take every pattern as a whole match."""
    if (
        pattern.startswith("^")
        and pattern.endswith("$")
        and not pattern.endswith("\\$")
        and "|" not in pattern
    ):
        return pattern
    if pattern.startswith("^(?:") and pattern.endswith(")$"):  # ours, from a format
        return pattern
    return f"^[\\s\\S]*(?:{pattern})[\\s\\S]*$"
