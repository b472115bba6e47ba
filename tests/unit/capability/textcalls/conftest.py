# SPDX-License-Identifier: Apache-2.0
"""The tools that a model is offered in the tests of this room."""

from typing import Any, Final

import pytest

TOOLS: Final[dict[str, dict[str, Any]]] = {
    "find": {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
            "exact": {"type": "boolean"},
        },
        "required": ["query"],
    },
    "save": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "meta": {"type": "object", "properties": {"year": {"type": "integer"}}},
            "rate": {"type": "number"},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    "now": {"type": "object", "properties": {}},
}


@pytest.fixture
def tools() -> dict[str, dict[str, Any]]:
    """Return the offered tools: name to JSON Schema."""
    return TOOLS
