# SPDX-License-Identifier: Apache-2.0
"""Arguments as their schema wants them: read by type where a model wrote text, then judged.

Owns schema-directed decoding: a string becomes another type only where the schema allows no string, and only
if it is that type's own spelling. Leaves the last word to the perimeter, which validates again.
"""

from collections.abc import Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator

from runner.capability.textcalls.cursor import Unreadable
from runner.capability.textcalls.values import MAX_DEPTH, read_whole

_DECODABLE: Final = frozenset({"object", "array", "integer", "number", "boolean", "null"})
_TYPES: Final[Mapping[type, str]] = {
    bool: "boolean",
    type(None): "null",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
}
_OPEN: Final = ("patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas")
"""Where one of these stands, `properties` alone does not say which members there may be."""


def fitted(arguments: Any, schema: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - parse step
    """Return `arguments` as an object that fits `schema`.

    Raises `Unreadable`: `malformed_json`, `hallucinated_argument`, `missing_required` or `schema_violation`.
    """
    value = _object(arguments)
    unknown = value.keys() - _properties(schema).keys()
    if unknown and not schema.get("additionalProperties") and not any(word in schema for word in _OPEN):
        raise Unreadable("hallucinated_argument")
    if any(name not in value for name in _names(schema.get("required"))):
        raise Unreadable("missing_required")
    value = {name: decoded(each, _properties(schema).get(name), schema) for name, each in value.items()}
    try:
        valid = Draft202012Validator(dict(schema)).is_valid(value)
    except Exception:  # noqa: BLE001 - what cannot be judged does not fit
        valid = False
    if not valid:
        raise Unreadable("schema_violation")
    return value


def _object(arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - parse step
    """Return arguments that may be encoded once more, or be null for none."""
    if isinstance(arguments, str):
        arguments = _read(arguments)
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise Unreadable("malformed_json")
    return arguments


def decoded(value: Any, schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:  # noqa: ANN401 - JSON
    """Return `value` with every string read as what `schema`, a part of `root`, says stands there. Total."""
    schema = _resolved(schema, root)
    if depth > MAX_DEPTH or not isinstance(schema, Mapping):
        return value
    if isinstance(value, str):
        types = types_of(schema, root)
        if not types or "string" in types:
            return value
        value = _typed(value, types)
    match value:
        case dict():
            below = _properties(schema)
            return {name: decoded(each, below.get(name), root, depth + 1) for name, each in value.items()}
        case list():
            return [decoded(each, schema.get("items"), root, depth + 1) for each in value]
        case _:
            return value


def types_of(schema: Any, root: Mapping[str, Any], depth: int = 0) -> frozenset[str]:  # noqa: ANN401 - JSON
    """Return the types that `schema`, a part of `root`, names; none if it leaves them open."""
    schema = _resolved(schema, root)
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return frozenset()
    if "type" in schema:
        named = schema["type"]
        return frozenset([named] if isinstance(named, str) else _names(named))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return frozenset(_type_name(each) for each in values) if isinstance(values, list) else frozenset()
    parts = [types_of(part, root, depth + 1) for word in ("anyOf", "oneOf") for part in schema.get(word, ())]
    return frozenset().union(*parts) if parts and all(parts) else frozenset()


def _typed(text: str, types: frozenset[str]) -> Any:  # noqa: ANN401 - JSON
    """Return what `text` spells, if that is of one of `types`; else `text`, which then does not fit."""
    try:
        value = _read(text.strip())
    except Unreadable:
        return text
    name = _type_name(value)
    fits = name in types or (name == "integer" and "number" in types)
    return value if fits and types <= _DECODABLE else text


def _read(text: str) -> Any:  # noqa: ANN401 - parse step
    try:
        return read_whole(text)
    except Unreadable:
        raise Unreadable("malformed_json") from None


def _type_name(value: object) -> str:
    return _TYPES.get(type(value), "object")


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _names(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []


def _resolved(schema: Any, root: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return what a reference inside the document stands for; of a chain, what the first few steps reach."""
    for _ in range(MAX_DEPTH):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            return schema
        schema = root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            schema = schema.get(name) if isinstance(schema, Mapping) else None
    return schema
