# SPDX-License-Identifier: Apache-2.0
"""Validation: strict JSON, and whether a value fits a JSON Schema. The last word on every reply and call.

Owns one parser and one total predicate. A model chooses the values: the predicate is bounded in size, depth
and time, and what cannot be judged does not fit. Leaves the keywords to `keywords.py`. The messages of
`jsonschema` quote values and are never used (I12).
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from runner.kernel.messages import JsonObject
from runner.perimeter.keywords import compiles, is_valid

MAX_CHARACTERS: Final = 1 << 20
"""The greatest value that is judged, about as long as its JSON text."""
MAX_DEPTH: Final = 64
"""The deepest nesting of a value that is judged."""
MAX_BITS: Final = 2048
"""The greatest integer that is judged: twice as long as a float, and short enough to be written out."""


def fits(value: object, schema: JsonObject) -> bool:
    """Return whether `value` fits `schema` (draft 2020-12). Total, and bounded in time.

    False for a value that is not `is_bounded`, for a schema that is none or that `unjudgeable` objects to,
    and where judging takes too many steps.
    """
    try:
        return is_bounded(value) and unjudgeable(schema) is None and is_valid(plain(value), plain(schema))
    except Exception:  # noqa: BLE001 - what cannot be judged does not fit
        return False


def is_bounded(value: object) -> bool:
    """Return whether `value` is JSON of at most `MAX_CHARACTERS` and `MAX_DEPTH`. Total; no recursion."""
    left, stack = MAX_CHARACTERS, [(value, 0)]
    while stack:
        item, depth = stack.pop()
        match item:
            case Mapping() if all(isinstance(name, str) for name in item):
                left -= sum(map(len, item)) + len(item)
                stack.extend((each, depth + 1) for each in item.values())
            case list() | tuple():
                left -= len(item)
                stack.extend((each, depth + 1) for each in item)
            case str():
                left -= len(item)
            case int() if item.bit_length() <= MAX_BITS:
                left -= item.bit_length() // 3
            case float() if math.isfinite(item):
                pass
            case None:
                pass
            case _:
                return False
        if left < 0 or depth > MAX_DEPTH:
            return False
    return True


def unjudgeable(schema: JsonObject) -> str | None:
    """Return what in `schema` cannot be judged in bounded time, as a dotted path; None if there is nothing.

    That is a `pattern`, or a name under `patternProperties`, that RE2 cannot compile, such as one that looks
    around or refers back; and `unevaluatedProperties` beside `patternProperties`.
    """
    members = list(_members(schema))
    for where, name, value in members:
        if name == "pattern" and isinstance(value, str) and not compiles(value):
            return where
        if name == "patternProperties" and isinstance(value, Mapping) and not all(map(compiles, value)):
            return where
    names = {name for _, name, _ in members}
    return "unevaluatedProperties" if {"unevaluatedProperties", "patternProperties"} <= names else None


def _members(schema: JsonObject) -> Iterator[tuple[str, str, object]]:
    """Yield every member in `schema`, wherever it stands: dotted path, name, value."""
    stack: list[tuple[str, object]] = [("", schema)]
    while stack:
        where, item = stack.pop()
        match item:
            case Mapping():
                below = [(f"{where}.{name}".lstrip("."), name, each) for name, each in item.items()]
                yield from below
                stack.extend((path, each) for path, _, each in below)
            case list() | tuple():
                stack.extend((f"{where}.{index}", each) for index, each in enumerate(item))
            case _:
                pass


def parse_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a strict JSON text (RFC 8259, members unique).

    Raises `ValueError`, which does not quote the text, for NaN, Infinity, a repeated member, anything
    that is not JSON, and nesting too deep to read.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise ValueError("not strict JSON") from None


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise ValueError
    return found


def plain(value: object) -> Any:  # noqa: ANN401 - any JSON value, in the types the validator knows
    """Return `value` with its mappings and sequences as dict and list."""
    match value:
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value
