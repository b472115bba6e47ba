# SPDX-License-Identifier: Apache-2.0
"""P2: the parser of written calls is total, and what it returns fits what was offered."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from runner.capability.textcalls import parse_calls
from runner.capability.textcalls.dialects import MARKERS

TOOLS: dict[str, dict[str, Any]] = {
    "find": {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
    },
    "now": {"type": "object", "properties": {}},
}
_CALL = '{"name": "find", "arguments": {"query": "a", "limit": 3}}'
PIECES = st.sampled_from(
    [
        *MARKERS,
        *_CALL,
        _CALL,
        _CALL[:-1],
        "</tool_call>",
        "<parameter=query>",
        "</parameter>",
        "</function>",
        "<|message|>",
        " to=functions.find",
        "<|call|>",
        "[ARGS]",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
        "<think>",
        "</think>",
        "<THINKING a='1'>",
        "</thinking >",
        "<\u017fcratchpad>",
        "<|\u017fTART_THINKING|>",
        "[think]",
        "<|START_THINKING|>",
        "\n",
        "<|start|>assistant",
        "<|im_end|>",
        "```json\n",
        "```",
        "Action: find\n",
        "Action Input: ",
        "find(",
        "query=",
        "'",
        "\\",
        "\\n",
        "\\ud83d",
        "\ud800",
        "\x00",
        "call:find",
        "<escape>",
        "1e9",
        "-",
        ";",
    ]
)
TEXTS = st.lists(PIECES, max_size=24).map("".join)


@settings(deadline=None)
@given(TEXTS, st.booleans())
def test_any_text_gives_an_answer_that_fits_the_tools(text: str, finished: bool) -> None:
    parsed = parse_calls(text, TOOLS, finished=finished)
    assert (parsed.status == "ok") == (parsed.reason is None)
    assert parsed.status == "ok" or not parsed.calls
    for call in parsed.calls:
        assert call.name in TOOLS
        assert Draft202012Validator(TOOLS[call.name]).is_valid(call.arguments)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_json_arguments_come_out_as_they_went_in(arguments: dict[str, Any]) -> None:
    tools: dict[str, dict[str, Any]] = {"t": {"type": "object", "additionalProperties": True}}
    for text in (json.dumps({"name": "t", "arguments": arguments}),
                 json.dumps({"name": "t", "arguments": json.dumps(arguments)})):  # fmt: skip
        (call,) = parse_calls(text, tools).calls
        assert call.arguments == arguments
