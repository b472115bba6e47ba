# SPDX-License-Identifier: Apache-2.0
"""Validation: strict JSON, and whether a value fits a JSON Schema. The last word on every reply and call.

Owns one parser and one total predicate over `jsonschema`, whose own messages quote values and are never
used (I12).
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from jsonschema import Draft202012Validator

from runner.kernel.messages import JsonObject


def fits(value: object, schema: JsonObject) -> bool:
    """Return whether `value` fits `schema` (draft 2020-12). False for a value too deep to judge."""
    try:
        return Draft202012Validator(plain(schema)).is_valid(plain(value))
    except RecursionError:
        return False


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
