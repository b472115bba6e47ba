# SPDX-License-Identifier: Apache-2.0
"""P2: what is no call, or can be read in two ways, is refused; what has one reading is set right."""

from typing import Any

import pytest

from runner.capability.textcalls import ParsedCalls, parse_calls

Tools = dict[str, dict[str, Any]]


def _read(parsed: ParsedCalls) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name or "", call.arguments) for call in parsed.calls]


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        pytest.param("The answer is 42.", "rejected", "no_call", id="prose"),
        pytest.param("", "rejected", "no_call", id="empty"),
        pytest.param('{"name": "rm", "arguments": {}}', "rejected", "wrong_tool", id="unknown-tool"),
        pytest.param(
            '{"name": "find", "arguments": {"query": 3}}', "rejected", "schema_violation", id="type"
        ),
        pytest.param('{"name": "find", "arguments": {}}', "rejected", "missing_required", id="missing"),
        pytest.param(
            '{"name": "find", "arguments": {"query": "a", "sudo": true}}',
            "rejected",
            "hallucinated_argument",
            id="unknown-argument",
        ),
        pytest.param(
            '{"name": "find", "arguments": {"query": "a", "query": "b"}}',
            "ambiguous",
            "repeated_member",
            id="twice",
        ),
        pytest.param(
            '{"name": "find", "name": "save", "arguments": {"path": "b"}}',
            "ambiguous",
            "repeated_member",
            id="two-names",
        ),
        pytest.param(
            '{"name": "find", "tool": "save", "arguments": {"path": "b"}}',
            "rejected",
            "no_call",
            id="two-words",
        ),
        pytest.param(
            '{"name": "find", "arguments": {"query": "a"}, "then": "save"}',
            "ambiguous",
            "unknown_member",
            id="member-beside",
        ),
        pytest.param(
            'Write `<tool_call>{"name": "now", "arguments": {}}</tool_call>` to call it.',
            "ambiguous",
            "quoted_call",
            id="quoted",
        ),
        pytest.param(
            'For example {"name": "now", "arguments": {}} would call it.',
            "ambiguous",
            "text_after_call",
            id="example",
        ),
        pytest.param(
            'Like this:\n```json\n{"name": "now", "arguments": {}}\n```\nas I said.',
            "ambiguous",
            "text_after_call",
            id="fenced-example",
        ),
        pytest.param(
            '<think>{"name": "now", "arguments": {}}', "truncated", "truncated", id="open-reasoning"
        ),
        pytest.param("find('a')", "rejected", "no_call", id="python-without-brackets"),
        pytest.param("[find('a')]", "ambiguous", "positional_argument", id="positional"),
        pytest.param("[find(query=open('a'))]", "rejected", "malformed_json", id="nested-call"),
        pytest.param("[find(query='a' + 'b')]", "ambiguous", "quote_in_string", id="expression"),
        pytest.param('{"name": "find", "arguments": {"query": NaN}}', "rejected", "malformed_json", id="nan"),
        pytest.param(
            '{"name": "find", "arguments": {"query": "a", "limit": 1e999}}',
            "rejected",
            "malformed_json",
            id="infinite",
        ),
        pytest.param(
            '{"name": "find", "arguments": {"query": "\\ud800"}}',
            "rejected",
            "lone_surrogate",
            id="surrogate",
        ),
        pytest.param(
            '{"name": "find", "arguments": {"query": "C:\\docs"}}', "ambiguous", "escapes", id="escape"
        ),
        pytest.param(
            "<function=find><parameter=query>use </parameter> here</parameter></function>",
            "ambiguous",
            "tag_in_value",
            id="tag-in-value",
        ),
        pytest.param(
            '<tool_call>{"name": "now", "arguments": {}}\n{"name": "rm", "arguments": {}}</tool_call>',
            "rejected",
            "wrong_tool",
            id="one-of-two",
        ),
        pytest.param(
            'Action: now\nAction Input: {}\nAction: find\nAction Input: {"query": "a"}',
            "ambiguous",
            "text_after_call",
            id="two-actions",
        ),
        pytest.param("[" * 100_000, "rejected", "too_deep", id="deep"),
    ],
)
def test_what_is_no_call_or_has_two_readings_is_refused(
    text: str, status: str, reason: str, tools: Tools
) -> None:
    """P2: nothing runs that the model did not plainly ask for."""
    parsed = parse_calls(text, tools)
    assert (parsed.calls, parsed.status, parsed.reason) == ((), status, reason)


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        pytest.param("{'name': 'find', 'arguments': {'query': 'a'}}", "single_quotes", id="single-quotes"),
        pytest.param('{name: "find", arguments: {query: "a"}}', "bare_name", id="bare-names"),
        pytest.param(
            '{"name": "find", "arguments": {"query": "a",},}', "trailing_comma", id="trailing-comma"
        ),
        pytest.param(
            '{"name": "find", "arguments": {"query": \\"a\\"}}', "escaped_quotes", id="escaped-quotes"
        ),
        pytest.param('{"name": "find", "arguments": {"query": "a"}}}}', "stray_closer", id="stray-closer"),
        pytest.param(
            '<tool_call>{"name": "find", "arguments": {"query": "a"</tool_call>',
            "missing_closer",
            id="missing-closer",
        ),
        pytest.param(
            '<tool_call>{"name": "find", "arguments": {"query": "a"}}', "missing_end_marker", id="missing-end"
        ),
        pytest.param(
            'Now: {"name": "find", "arguments": {"query": "a"}}', "text_before_call", id="text-before"
        ),
    ],
)
def test_a_slip_with_one_reading_is_set_right_and_named(text: str, repair: str, tools: Tools) -> None:
    parsed = parse_calls(text, tools)
    assert _read(parsed) == [("find", {"query": "a"})]
    assert repair in {each.kind for each in parsed.repairs}
    assert all(0 <= each.at <= len(text) for each in parsed.repairs)


@pytest.mark.parametrize("opener", ["<think>", "[THINK]", ""])
def test_a_call_in_the_reasoning_is_no_call(opener: str, tools: Tools) -> None:
    """P2: what a model considered, it did not ask for."""
    closer = {"[THINK]": "[/THINK]"}.get(opener, "</think>")
    inside = '<tool_call>{"name": "save", "arguments": {"path": "x"}}</tool_call>'
    parsed = parse_calls(f'Hm. {opener}maybe {inside}?{closer}{{"name": "now", "arguments": {{}}}}', tools)
    assert _read(parsed) == [("now", {})]


def test_text_is_read_by_type_only_where_no_text_may_stand() -> None:
    tools: dict[str, dict[str, Any]] = {
        "t": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
    }
    assert _read(parse_calls('{"n": "4", "s": "4"}', tools)) == [("", {"n": 4, "s": "4"})]
    assert parse_calls('{"n": "4.0"}', tools).reason == "schema_violation"
    assert parse_calls('{"n": "true"}', tools).reason == "schema_violation"


def test_arguments_alone_are_for_the_only_tool(tools: Tools) -> None:
    """P2: with two tools, nobody guesses which one was meant."""
    assert parse_calls('{"query": "a"}', {"find": tools["find"]}).calls[0].name is None
    assert parse_calls('{"query": "a"}', tools).reason == "no_call"


def test_a_repr_shows_no_arguments(tools: Tools) -> None:
    """I12."""
    assert "Rossi" not in repr(parse_calls('{"name": "find", "arguments": {"query": "Rossi"}}', tools))


@pytest.mark.parametrize(
    "unit",
    [
        "<function=now></function>",
        '<tool_call>{"name": "now", "arguments": {}}</tool_call>',
        "[TOOL_CALLS]now[ARGS]{}",
        '{"name": "now", "arguments": {}}\n',
    ],
)
def test_the_calls_of_a_whole_reply_are_counted_and_a_reply_of_too_many_is_not_read_on(
    unit: str, tools: Tools
) -> None:
    """A model that repeats itself must not cost the square of its reply."""
    assert len(parse_calls(unit * 64, tools).calls) == 64
    more = parse_calls(unit * 65 + "<tool_call>{", tools)  # what follows would be read as cut off
    assert (more.status, more.reason, more.calls) == ("rejected", "too_many_calls", ())
