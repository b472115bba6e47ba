# SPDX-License-Identifier: Apache-2.0
"""Validation: does a value fit a JSON Schema? The last word on every reply and every argument.

Owns one total predicate over `jsonschema`, whose own messages quote values and are never used (I12).
"""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from runner.kernel.messages import JsonObject


def fits(value: object, schema: JsonObject) -> bool:
    """Return whether `value` fits `schema` (draft 2020-12). False for a value too deep to judge."""
    try:
        return Draft202012Validator(plain(schema)).is_valid(plain(value))
    except RecursionError:
        return False


def plain(value: object) -> Any:  # noqa: ANN401 - any JSON value, in the types the validator knows
    """Return `value` with its mappings and sequences as dict and list."""
    match value:
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value
