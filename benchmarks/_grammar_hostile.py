# SPDX-License-Identifier: Apache-2.0
"""Schemas that are meant to take long: the set behind "any schema ends soon, with an answer".

Owns the schemas, by name. `grammar.py` beside this file times them; a unit test counts the work.
"""

from __future__ import annotations

from typing import Any


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def _chain(length: int) -> dict[str, Any]:
    parts = {f"d{i}": {"properties": {"x": {"$ref": f"#/$defs/d{i + 1}"}}} for i in range(length)}
    return {"$defs": {**parts, f"d{length}": {}}, "$ref": "#/$defs/d0"}


def _back_and_forth(count: int) -> dict[str, Any]:
    """Return schemas that each refer to every other one."""
    every = {f"m{i}": {"$ref": f"#/$defs/d{i}"} for i in range(count)}
    return {"$defs": {f"d{i}": {"properties": every} for i in range(count)}, "$ref": "#/$defs/d0"}


HOSTILE: dict[str, Any] = {
    "nested": _nested(400),
    "chain of references": _chain(300),
    "cycle of references": {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        "$ref": "#/$defs/a",
    },
    "cycles through members": _back_and_forth(40),
    "cycle through not": {"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"},
    "10,000 values": {"enum": [f"value {i}" for i in range(10_000)]},
    "10,000 numbers": {"enum": list(range(10_000))},
    "2,000 objects": {"enum": [{"a": i, "b": [i]} for i in range(2000)]},
    "1,000 optional": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(1000)}},
    "counted": {"type": "object", "properties": {f"p{i}": {} for i in range(1000)}, "maxProperties": 500},
    "long text": {"type": "string", "maxLength": 65_536},
    "nested bounds": {"maxItems": 1999, "items": {"maxItems": 1999, "items": {"maxLength": 1999}}},
    "conjunction of choices": {
        "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(40)]
    },
    "overlapping oneOf": {"oneOf": [{"properties": {f"a{i}": {"minimum": i}}} for i in range(60)]},
    "large not": {
        "not": {"anyOf": [{"properties": {f"a{i}": {"type": "null"}, f"b{i}": {}}} for i in range(40)]}
    },
    "exponential pattern": {"type": "string", "pattern": "^(a|b)*a(a|b){24}$"},
    "nested pattern": {"type": "string", "pattern": "^((a{0,50}){0,50}){0,50}$"},
    "many patterns": {"allOf": [{"pattern": f"x{i}.*y{i}"} for i in range(30)]},
    "huge numbers": {"minimum": 1e300, "maximum": 1.5e308, "multipleOf": 1e-300},
    "unevaluated": {
        "anyOf": [{"properties": {f"a{i}": True}} for i in range(30)],
        "unevaluatedProperties": False,
    },
}
