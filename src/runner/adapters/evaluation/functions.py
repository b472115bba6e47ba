# SPDX-License-Identifier: Apache-2.0
"""From a function document of a dataset to the tool that a model is offered.

Owns the reading: the Python words of such documents (`dict`, `float`, `tuple`, `any`) become those of JSON
Schema. What it does not know is a mistake with its place, never a guess: a schema that says less than the
document would count a wrong call as right. Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from runner.kernel.errors import RunnerError
from runner.kernel.messages import JsonObject, ToolSpec

_TYPES: Final = {
    "dict": "object",
    "object": "object",
    "float": "number",
    "number": "number",
    "double": "number",
    "integer": "integer",
    "int": "integer",
    "string": "string",
    "str": "string",
    "char": "string",
    "boolean": "boolean",
    "bool": "boolean",
    "array": "array",
    "list": "array",
    "tuple": "array",
    "null": "null",
}
_ANY: Final = "any"
_CHECKED: Final = frozenset({"type", "properties", "required", "items", "enum", "additionalProperties"})
_DROPPED: Final = frozenset({"optional"})
"""Said by `required` already."""
_KEPT: Final = frozenset(
    {
        *("description", "title", "default", "example", "examples", "format", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
    }
)
"""Keywords that mean in a document what they mean in JSON Schema."""
DEPTH: Final = 16
"""How deep a document may nest."""


class Unclear(RunnerError):
    """A document cannot be read: `where` is the dotted field, `problem` what is wrong with it."""

    def __init__(self, where: str, problem: str) -> None:
        self.where = where
        self.problem = problem
        super().__init__(problem)


def tool_name(name: str) -> str:
    """Return `name` as every model protocol takes it: the point of `module.function` becomes `_`."""
    return name.replace(".", "_")


def parse_function(document: Any, where: str = "function") -> ToolSpec:  # noqa: ANN401 - parse step
    """Return the tool that `document`, a member of a dataset's `function` list, describes.

    Its arguments are closed: a name that the document does not declare is not allowed. Raises `Unclear`.
    """
    match document:
        case {"name": str(name), "parameters": {"type": "dict" | "object"} as parameters} if name:
            described = document.get("description", "")
            if not isinstance(described, str):
                raise Unclear(f"{where}.description", "this is no text")
            schema = _schema(parameters, f"{where}.parameters", DEPTH)
            return ToolSpec(name=tool_name(name), description=described, parameters=schema)
        case _:
            raise Unclear(where, "a function has a name, and parameters of the type dict")


def _schema(document: Any, where: str, depth: int) -> JsonObject:  # noqa: ANN401 - parse step
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise Unclear(where, "this is no object")
    if not depth:
        raise Unclear(where, "this nests too deeply")
    if unknown := document.keys() - _CHECKED - _KEPT - _DROPPED:
        raise Unclear(f"{where}.{min(unknown)}", "this keyword is not known here")
    kind = _type(document.get("type"), where)
    schema: dict[str, Any] = {} if kind is None else {"type": kind}
    schema |= {key: document[key] for key in document if key in _KEPT}
    for key, value in _children(document, kind, where, depth):
        schema[key] = value
    return schema


def _type(said: Any, where: str) -> str | None:  # noqa: ANN401 - parse step
    """Return the JSON type that `said` means; None for any."""
    if said == _ANY:
        return None
    if not isinstance(said, str) or said not in _TYPES:
        raise Unclear(f"{where}.type", "this type is not known here")
    return _TYPES[said]


def _children(
    document: Mapping[str, Any], kind: str | None, where: str, depth: int
) -> Iterator[tuple[str, Any]]:
    """Yield the keywords of `document` that speak of other values, each in words of JSON Schema."""
    if "enum" in document:
        yield "enum", _enum(document["enum"], f"{where}.enum")
    if "items" in document:
        if kind != "array":
            raise Unclear(f"{where}.items", "only an array has items")
        yield "items", _schema(document["items"], f"{where}.items", depth - 1)
    if kind != "object":
        if "properties" in document or "required" in document:
            raise Unclear(where, "only a dict has properties")
        return
    properties = document.get("properties", {})
    if not isinstance(properties, dict):
        raise Unclear(f"{where}.properties", "this is no object")
    required = document.get("required", [])
    if not isinstance(required, list) or not all(name in properties for name in required):
        raise Unclear(f"{where}.required", "this is no list of declared names")
    yield (
        "properties",
        {name: _schema(value, f"{where}.properties.{name}", depth - 1) for name, value in properties.items()},
    )
    yield "required", list(required)
    yield "additionalProperties", _others(document, properties, where, depth)


def _others(document: Mapping[str, Any], properties: Mapping[str, Any], where: str, depth: int) -> Any:  # noqa: ANN401
    """Return what members may be there beside the declared ones: none, unless nothing or that is declared."""
    said = document.get("additionalProperties", not properties and depth < DEPTH)
    if isinstance(said, bool):
        return said
    return _schema(said, f"{where}.additionalProperties", depth - 1)


def _enum(said: Any, where: str) -> list[Any]:  # noqa: ANN401 - parse step
    if not isinstance(said, list) or not said:
        raise Unclear(where, "this is no list of values")
    return list(said)
