# SPDX-License-Identifier: Apache-2.0
"""Tiers: nothing runs that was not read whole and does not fit (P2); a fall has a reason; a denial is one."""

import json
from typing import Any

import pytest

from runner.agent.loop import AgentLoop
from runner.agent.steps import FailedStep, RunResult, StopReason, ToolStep
from runner.kernel.errors import RequestRefused
from runner.kernel.labels import DataClass
from runner.kernel.ports import Effect
from runner.kernel.tiers import CallFailure, Tier, tiers_from
from runner.testing import Calling, FakeClassifier, FakeTool, Truncated

NOTE: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
TEXT = tiers_from(Tier.TEXT)
NATIVE = tiers_from(Tier.NATIVE)
ANSWER = {"answer": "done"}


def call(text: str, name: str = "note") -> tuple[str, str]:
    return name, json.dumps({"text": text})


def written(arguments: Any, name: str = "note") -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {json.dumps(arguments)}}}</tool_call>'


def run(make_world: Any, grant: Any, replies: list[Any], **options: Any) -> tuple[RunResult, FakeTool, Any]:
    tool = FakeTool(name="note", parameters=NOTE, effect=Effect.HOST, path_arguments=frozenset())
    world = make_world(replies=replies, grants={"note": grant(tool, roots=())}, **options)
    loop = AgentLoop(client=world.client, tools=world.perimeter.seal_tools([tool]))
    return loop.run("Take a note."), tool, world


def failures(result: RunResult) -> list[tuple[str, str]]:
    return [(step.tier, step.failure) for step in result.steps if isinstance(step, FailedStep)]


def ran(tool: FakeTool) -> list[Any]:
    return [each.arguments["text"] for each in tool.calls]


def test_parallel_calls_run_in_order_each_decided_and_the_next_request_holds_all_results(
    make_world: Any, grant: Any
) -> None:
    several = Calling(calls=[call("a"), call("b"), call("a"), call("c")])
    result, tool, world = run(make_world, grant, [several, "answer", ANSWER], tiers=NATIVE)
    assert (result.stop, ran(tool)) == (StopReason.ANSWERED, ["a", "b", "c"])
    assert len(world.records("policy_decision")) == 3
    outputs = [block.text for block in world.backend.requests[1].messages[1].blocks][1:-1]
    assert len(outputs) == 3
    assert [each.name for each in world.backend.requests[0].tools] == ["note"]
    assert world.records("egress_result")[0]["tier"] == "native"


@pytest.mark.parametrize(
    ("bad", "failure"),
    [
        (Calling(calls=[call("a"), call("b", "forget")]), CallFailure.WRONG_TOOL),
        (Calling(calls=[call("a"), ("note", '{"text": "b"')]), CallFailure.MALFORMED_JSON),
        (Calling(calls=[("note", '{"text": "a", "text": "b"}')]), CallFailure.MALFORMED_JSON),
        (Calling(calls=[("note", '"{}"')]), CallFailure.MALFORMED_JSON),
        (Calling(calls=[("note", "")]), CallFailure.MALFORMED_JSON),
        (Calling(calls=[("note", "{}")]), CallFailure.MISSING_REQUIRED),
        (Calling(calls=[("note", '{"text": "a", "to": "b"}')]), CallFailure.HALLUCINATED_ARGUMENT),
        (Calling(calls=[("note", {"text": 3})]), CallFailure.SCHEMA_VIOLATION),
        (Calling(calls=[call("a")], finish="length"), CallFailure.TRUNCATED),
        (Calling(calls=[call(str(n)) for n in range(65)]), CallFailure.TOO_MANY_CALLS),
        (Calling(calls=[], text=written({"text": "smuggled"})), CallFailure.NO_CALL),
        (Calling(calls=[]), CallFailure.NO_CALL),
    ],
    ids=lambda value: value.value if isinstance(value, CallFailure) else "reply",
)
def test_p2_of_a_native_reply_with_one_bad_call_none_runs_and_the_tier_is_given_up(
    bad: Calling, failure: CallFailure, make_world: Any, grant: Any
) -> None:
    result, tool, world = run(make_world, grant, [bad, bad, {"tool": "answer"}, ANSWER], tiers=NATIVE)
    assert (ran(tool), result.stop) == ([], StopReason.ANSWERED)
    assert failures(result) == [("native", failure)] * 2
    assert [each.get("failure") for each in world.records("egress_result")] == [failure, failure, None, None]
    assert world.records("tool_call") == []


@pytest.mark.parametrize(
    ("bad", "failure"),
    [
        (written({"text": "a"})[:-14], CallFailure.TRUNCATED),
        (Truncated(text=written({"text": "a"})[:30]), CallFailure.TRUNCATED),
        (Truncated(text="I will"), CallFailure.TRUNCATED),
        (written({"text": "a"}) + written({"text": "b"}, "forget"), CallFailure.WRONG_TOOL),
        (written({}), CallFailure.MISSING_REQUIRED),
        (written({"text": "a", "to": "b"}), CallFailure.HALLUCINATED_ARGUMENT),
        (written({"text": 3}), CallFailure.SCHEMA_VIOLATION),
        (" ", CallFailure.NO_CALL),
    ],
    ids=lambda value: value.value if isinstance(value, CallFailure) else "reply",
)
def test_p2_a_call_in_text_that_cannot_be_run_is_repaired_once_and_told_in_our_words(
    bad: Any, failure: CallFailure, make_world: Any, grant: Any
) -> None:
    good = written({"text": "right"})
    result, tool, world = run(make_world, grant, [bad, good, "answer", ANSWER], tiers=TEXT)
    assert (ran(tool), result.stop) == (["right"], StopReason.ANSWERED)
    assert failures(result) == [("text", failure)]
    told = world.backend.requests[1].messages[1].blocks[-1].text
    assert told.startswith("Your last reply cannot be used: ")
    assert "forget" not in told, "I12: no word of the reply"


def test_a_call_in_text_that_stays_wrong_ends_the_run_and_nothing_ran(make_world: Any, grant: Any) -> None:
    result, tool, _ = run(make_world, grant, [written({})] * 2, tiers=TEXT)
    assert (ran(tool), result.stop) == ([], StopReason.FAILED)


@pytest.mark.parametrize("status", [400, 500])
def test_a_refused_form_falls_to_the_next_tier_at_once_and_is_not_tried_again(
    status: int, make_world: Any, grant: Any
) -> None:
    no = RequestRefused("no", status=status)
    replies = [no, no, written({"text": "x"}), "answer", ANSWER]
    result, tool, world = run(make_world, grant, replies, tiers=NATIVE)
    assert (ran(tool), result.stop) == (["x"], StopReason.ANSWERED)
    assert failures(result) == [("native", "refused"), ("constrained", "refused")]
    ends = [(each["status"], each["tier"], each.get("failure")) for each in world.records("egress_result")]
    assert ends[:2] == [("error", "native", "refused"), ("error", "constrained", "refused")]
    assert ends[2:4] == [("ok", "text", None)] * 2


@pytest.mark.parametrize("status", [401, 404, 429, 503])
def test_what_no_other_form_would_help_ends_the_run(status: int, make_world: Any, grant: Any) -> None:
    result, _, world = run(make_world, grant, [RequestRefused("no", status=status)], tiers=NATIVE)
    assert (result.stop, len(world.backend.transport.sent)) == (StopReason.FAILED, 1)


def test_i7_a_denial_leads_to_no_other_tier(make_world: Any, grant: Any) -> None:
    result, _, world = run(
        make_world, grant, [], tiers=NATIVE, local=False, ceiling=DataClass.C0, classifier=FakeClassifier()
    )
    assert (result.stop, world.backend.transport.sent) == (StopReason.DENIED, [])
    assert len(world.records("egress")) == 1


def test_nobody_is_shown_a_call_that_is_written_as_text(make_world: Any, grant: Any) -> None:
    shown: list[str] = []
    tool = FakeTool(name="note", parameters=NOTE, effect=Effect.HOST, path_arguments=frozenset())
    replies = [written({"text": "x"}), "answer", ANSWER]
    world = make_world(replies=replies, grants={"note": grant(tool, roots=())}, tiers=TEXT)
    loop = AgentLoop(
        client=world.client,
        tools=world.perimeter.seal_tools([tool]),
        on_event=lambda event: shown.append(event.text) if event.kind == "text" else None,
    )
    result = loop.run("Take a note.")
    assert [step.status for step in result.steps if isinstance(step, ToolStep)] == ["ok"]
    assert "tool_call" not in "".join(shown)


CUT = Truncated(text='{"text": "a a a a')
CONSTRAINED = tiers_from(Tier.CONSTRAINED)


@pytest.mark.parametrize(
    ("tiers", "replies"),
    [
        (CONSTRAINED, [{"tool": "note"}, CUT, {"text": "a"}]),
        (NATIVE, [Calling(calls=[call("b")], finish="length"), Calling(calls=[call("a")])]),
        (TEXT, [Truncated(text="I will"), written({"text": "a"})]),
    ],
    ids=["constrained", "native", "text"],
)
def test_p2_what_was_cut_off_never_runs_and_is_asked_again_with_more_room_and_less_repeating(
    tiers: Any, replies: list[Any], make_world: Any, grant: Any
) -> None:
    result, tool, world = run(make_world, grant, [*replies, {"tool": "answer"}, ANSWER], tiers=tiers)
    first, second = world.backend.requests[len(replies) - 2 : len(replies)]
    assert ran(tool) == ["a"]
    assert failures(result)[0][1] is CallFailure.TRUNCATED
    assert (first.temperature, first.frequency_penalty) == (0, 0)
    assert (second.temperature, second.frequency_penalty) == (0.4, 0.5)
    assert second.max_tokens == 2 * first.max_tokens
    assert second.seed != first.seed


def test_a_reply_that_does_not_fit_is_drawn_anew_without_a_penalty(make_world: Any, grant: Any) -> None:
    replies = [{"tool": "note"}, '{"text": 3}', {"text": "a"}, {"tool": "answer"}, ANSWER]
    _, tool, world = run(make_world, grant, replies, tiers=CONSTRAINED)
    first, second = world.backend.requests[1:3]
    assert ran(tool) == ["a"]
    assert (second.max_tokens, second.frequency_penalty) == (first.max_tokens, 0)
    assert (second.seed, second.temperature) == (1, 0.4)
