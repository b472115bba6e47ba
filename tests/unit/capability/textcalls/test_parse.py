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
            'Now:\n{"name": "find", "arguments": {"query": "a"}}', "text_before_call", id="text-before"
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


CALL = '{"name": "now", "arguments": {}}'
WRITTEN = {
    "envelope": f"<tool_call>{CALL}</tool_call>",
    "function": "<function=now></function>",
    "mistral": "[TOOL_CALLS]now[ARGS]{}",
    "channel": "<|start|>assistant<|channel|>commentary to=functions.now<|message|>{}<|call|>",
    "fence": f"```json\n{CALL}\n```",
    "bare": CALL,
}
QUOTED = [
    'The file says "{}" and asks me to run it; I won\'t.',
    "The file says: {}",
    "> {}\nwhich I ignore.",
    "> {}",
    "- {}",
    "`{}`",
    'The file says "\n{}',
    "The file says \u201c\n{}\n\u201d",
    "The file says \u00ab\n{}",
    "An example:\n```xml\n{}",
    "An example:\n~~~\n{}",
    "{0}\nas the file says, then\n{0}",
    "I will not run\n{}\nsince I was not asked to.",
    "{} hmm, no.",
    "{}\n<think>No, better not.</think>",
    "{}<|end|><|start|>assistant<|channel|>final<|message|>No, better not.<|return|>",
]
THOUGHT = [
    "<think>{}</think>5",
    "<THINK>{}</THINK>5",
    "<THINK>\n{}",
    "<thinking>{}</thinking>5",
    "<thinking effort='high'>\n{}\n</thinking >\n5",
    "<reasoning>\n{}\n</reasoning>5",
    "<thought>{}</thought>5",
    "<seed:think>{}</seed:think>5",
    "<|START_THINKING|>\n{}\n<|END_THINKING|>5",
    "<|begin_of_thought|>\n{}\n<|end_of_thought|>5",
    "<|channel>thought\n{}\n<channel|>5",
    "Perhaps:\n{}\n</think>\nThe answer is 5.",
    "Perhaps:\n{}\n</thinking>\nThe answer is 5.",
    "<think>a</think>\n{}\n</think>5",
    "{} hmm, no.</think>The answer is 5.",
    "<|channel|>analysis<|message|>\n{}\n<|end|>5",
]


@pytest.mark.parametrize("form", list(WRITTEN))
@pytest.mark.parametrize("place", QUOTED)
def test_p2_a_call_that_is_quoted_or_taken_back_never_runs(place: str, form: str, tools: Tools) -> None:
    """Asked again, a model that meant it says so plainly."""
    parsed = parse_calls(place.format(WRITTEN[form]), tools)
    assert parsed.calls == ()
    assert parsed.reason != "no_call", "the model is asked again"


@pytest.mark.parametrize("form", list(WRITTEN))
@pytest.mark.parametrize("place", THOUGHT)
def test_p2_a_call_in_any_reasoning_never_runs(place: str, form: str, tools: Tools) -> None:
    assert parse_calls(place.format(WRITTEN[form]), tools).calls == ()


@pytest.mark.parametrize("form", list(WRITTEN))
@pytest.mark.parametrize(
    "place",
    [
        "{}",
        "\n\n  {}\n",
        "I look it up.\n{}",
        'It says "yes", so:\n\n{}',
        "<think>Perhaps.</think>{}",
        "<thinking>\n{{}}\n</thinking>\n\n{}",
        "<THINKING>\n{{}}\n</Thinking>\n{}",
        "Perhaps.</think>\n{}",
        "<think>a</think>Then\n</think>\n{}",
    ],
)
def test_a_call_in_its_place_is_read(place: str, form: str, tools: Tools) -> None:
    """What is refused elsewhere is not refused here."""
    assert _read(parse_calls(place.format(WRITTEN[form]), tools)) == [("now", {})]


@pytest.mark.parametrize("end", ["<|im_end|>", "</s>", "<|eot_id|>", "<end_of_turn>", "<|endoftext|>\n"])
def test_tokens_that_end_a_turn_are_no_text(end: str, tools: Tools) -> None:
    assert _read(parse_calls(WRITTEN["envelope"] + end, tools)) == [("now", {})]


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("Thought: I need it.\nAction: now\nAction Input: {}\nObservation: noon\nFinal Answer: noon", True),
        ("Action: now\nAction Input: {}\nObservation: noon", True),
        ("I look.\nAction: now\nAction Input: {}", True),
        ("The log says\nAction: now\nAction Input: {}\nObservation: noon\nand I won't.", False),
        ("> Action: now\n> Action Input: {}", False),
        ("```\nAction: now\nAction Input: {}\nObservation: noon\n```", False),
        ("An example:\n```text\nAction: now\nAction Input: {}", False),
        ("Action: now\nAction Input: {}\nObservation: noon</think>5", False),
    ],
)
def test_p2_text_follows_an_action_only_where_the_whole_reply_has_that_form(
    text: str, runs: bool, tools: Tools
) -> None:
    assert _read(parse_calls(text, tools)) == ([("now", {})] if runs else [])


def test_a_call_considered_first_hides_neither_the_answer_nor_the_call_after_it(tools: Tools) -> None:
    thought = WRITTEN["envelope"] + " hmm, no.</think>\n"
    assert parse_calls(thought + "The answer is 5.", tools).reason == "no_call"
    find = '<tool_call>{"name": "find", "arguments": {"query": "a"}}</tool_call>'
    assert _read(parse_calls(thought + find, tools)) == [("find", {"query": "a"})]


def test_a_fence_that_was_closed_quotes_nothing_after_it(tools: Tools) -> None:
    text = f"As in\n```\nx = 1\n```\nI call:\n{WRITTEN['envelope']}\n"
    assert _read(parse_calls(text, tools)) == [("now", {})]


def test_an_answer_with_brackets_is_an_answer(tools: Tools) -> None:
    """Fail closed is not fail often."""
    assert parse_calls("It is in note [1], and in [2].", tools).reason == "no_call"


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
