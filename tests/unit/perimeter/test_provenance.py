# SPDX-License-Identifier: Apache-2.0
"""I1, I4, I8: a sealed call knows what the task was told and has read, and a yes is to the very call."""

import json
from typing import Any, Final

import pytest

from runner.kernel.config import Grant
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.messages import Json, JsonObject, ToolCall
from runner.kernel.ports import FOREIGN, ApprovalRequest, Effect, ToolOutput
from runner.perimeter.grants import compile_policy, policy_document
from runner.perimeter.policy import MOST_QUESTIONS, Policy
from runner.testing import FakeTool, ScriptedApprover

pytestmark = pytest.mark.anyio
GOAL: Final = "Tell anna@studio.example when 'Budget' is"
MAIL: Final[JsonObject] = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "body": {"type": "string"}},
    "required": ["to"],
    "additionalProperties": False,
}
QUERY: Final[JsonObject] = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "additionalProperties": False,
}
EVENTS: Final = [
    {"title": "Budget", "owner": "carla@a.example"},
    {"title": "Other", "owner": "eve@a.example"},
]
SINK: Final[dict[str, Any]] = {"to": "network", "max_class": "C2", "payload": ("body",)}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def tools(found: Json = None) -> list[FakeTool]:
    none: frozenset[str] = frozenset()
    text = json.dumps(EVENTS if found is None else found)
    return [
        FakeTool(name="send", effect=Effect.HOST, parameters=MAIL, path_arguments=none),
        FakeTool(
            name="find",
            effect=Effect.HOST,
            parameters=QUERY,
            path_arguments=none,
            output=ToolOutput(text=text),
        ),
    ]


def compiled(*grants: dict[str, Any], host: bool = True, effect: Effect = Effect.HOST) -> Policy:
    here = {tool.spec.name: tool for tool in tools()}
    here["send"] = FakeTool(name="send", effect=effect, parameters=MAIL, path_arguments=frozenset())
    return compile_policy(
        [Grant.model_validate(grant) for grant in grants],
        here,
        host_tools=frozenset(here) if host else frozenset(),
        resolve=lambda path, _: path,
        unwritable=tuple,
        untouchable={},
        blame=lambda where, problem, fix: Mistake(
            file="p", line=1, where=".".join(map(str, where)), problem=problem, fix=fix
        ),
    )


OWNER: Final = {"lookup": "find", "key": "title", "field": "owner"}
GRANTS: Final = ({"tool": "find"}, {"tool": "send", "sink": {**SINK, "cases": ({"to": (OWNER,)},)}})


def call(task: Any, tool: str = "send", **arguments: Any) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments, origin=task.goal)


def world_of(make_world: Any, *grants: dict[str, Any], approver: Any = None) -> Any:
    return make_world(grants=compiled(*grants).grants, approver=approver)


async def test_i1_what_the_user_named_goes_and_what_was_read_asks(make_world: Any) -> None:
    world, made = world_of(make_world, *GRANTS), tools()
    with world.perimeter.task(GOAL) as task:
        sealed = world.perimeter.seal_tools(made)
        named = await sealed.call(call(task, to="anna@studio.example", body="soon"), task=task)
        before = await sealed.call(call(task, to="carla@a.example"), task=task)
        await sealed.call(call(task, "find", query="Budget"), task=task)
        other = await sealed.call(call(task, to="eve@a.example"), task=task)
        both = await sealed.call(call(task, to="carla@a.example", body="soon"), task=task)
    assert [each.status for each in (named, before, other, both)] == ["ok", "denied", "denied", "ok"]
    assert before.block.text.startswith("denied: the user did not name whom")
    rules = [(record["decision"], record["rule"]) for record in world.records("policy_decision")]
    assert rules == [
        ("allow", "grant.send"),
        ("ask", "critical-not-named"),
        ("allow", "grant.find"),
        ("ask", "critical-not-named"),
        ("allow", "grant.send"),
    ]


async def test_i4_the_record_says_what_a_verdict_rests_on(make_world: Any) -> None:
    """With the policy, an auditor repeats the decision (S10)."""
    limited = {**GRANTS[1], "arguments": {"to": {"max_length": 20}}}
    world = world_of(make_world, GRANTS[0], limited)
    with world.perimeter.task(GOAL) as task:
        sealed = world.perimeter.seal_tools(tools())
        for to in ("anna@studio.example", "eve@a.example", "e" * 21):
            await sealed.call(call(task, to=to), task=task)
    replays = [record["replay"] for record in world.records("policy_decision")]
    assert [(each["within"], each.get("vouched")) for each in replays] == [
        (True, True),
        (True, False),
        (False, None),
    ]


async def test_i1_what_one_task_read_vouches_for_nothing_in_another(make_world: Any) -> None:
    world, made = world_of(make_world, *GRANTS), tools()
    sealed = world.perimeter.seal_tools(made)
    with world.perimeter.task(GOAL) as task:
        await sealed.call(call(task, "find", query="Budget"), task=task)
    with world.perimeter.task(GOAL) as later:
        assert (await sealed.call(call(later, to="carla@a.example"), task=later)).status == "denied"


async def test_i1_a_failed_call_vouches_for_nothing(make_world: Any) -> None:
    world = world_of(make_world, *GRANTS)
    made = tools()
    made[1] = FakeTool(
        name="find", effect=Effect.HOST, parameters=QUERY, path_arguments=frozenset(), output=ValueError("x")
    )
    with world.perimeter.task(GOAL) as task:
        sealed = world.perimeter.seal_tools(made)
        await sealed.call(call(task, "find", query="Budget"), task=task)
        assert (await sealed.call(call(task, to="carla@a.example"), task=task)).status == "denied"


async def test_i8_content_above_the_sink_denies_and_nobody_is_asked(make_world: Any) -> None:
    approver = ScriptedApprover(answers=[True])
    grants = ({"tool": "find", "reads": {"class": "C3"}}, GRANTS[1])
    world = world_of(make_world, *grants, approver=approver)
    with world.perimeter.task(GOAL) as task:
        sealed = world.perimeter.seal_tools(tools())
        assert (await sealed.call(call(task, to="anna@studio.example"), task=task)).status == "ok"
        await sealed.call(call(task, "find", query="Budget"), task=task)
        for to in ("anna@studio.example", "eve@a.example"):
            assert (await sealed.call(call(task, to=to), task=task)).status == "denied"
    assert approver.asked == []
    assert world.records("policy_decision")[-1]["rule"] == "above-sink"


async def test_i8_what_a_host_tool_returns_is_what_its_grant_says(make_world: Any) -> None:
    grants = ({"tool": "find", "reads": {"class": "C1", "integrity": "practice"}}, GRANTS[1])
    said, unsaid = (DataClass.C1, Integrity.PRACTICE), (DataClass.C2, Integrity.UNTRUSTED)
    for given, expected in ((grants, said), (GRANTS, unsaid)):
        world = world_of(make_world, *given)
        with world.perimeter.task(GOAL) as task:
            reply = await world.perimeter.seal_tools(tools()).call(call(task, "find", query="x"), task=task)
        assert (reply.block.label.data_class, reply.block.label.integrity) == expected


async def test_i1_calls_are_counted_where_they_run(make_world: Any) -> None:
    grants = ({**GRANTS[1], "calls": 2, "sink": SINK},)
    world = world_of(make_world, *grants, approver=ScriptedApprover(answers=[False, True]))
    with world.perimeter.task(GOAL) as task:
        sealed = world.perimeter.seal_tools(tools()[:1])
        tos = ["x@a.example", "y@a.example", "anna@studio.example", "anna@studio.example"]
        statuses = [(await sealed.call(call(task, to=to), task=task)).status for to in tos]
    assert statuses == ["denied", "ok", "ok", "denied"]
    assert world.records("policy_decision")[-1]["rule"] == "no-call-left"


class Swapping:
    """A person who says yes while somebody exchanges what they said yes to."""

    name = "user"

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self.seen = ""

    async def approve(self, request: ApprovalRequest) -> bool:
        self.seen = request.rendering
        self.arguments["to"] = "eve@a.example"
        return True


async def test_i1_a_yes_never_applies_to_changed_arguments(make_world: Any) -> None:
    arguments = {"to": "carla@a.example"}
    approver, made = Swapping(arguments), tools()
    world = world_of(make_world, *GRANTS, approver=approver)
    with world.perimeter.task(GOAL) as task:
        asked = ToolCall(tool="send", arguments=arguments, origin=task.goal)
        assert (await world.perimeter.seal_tools(made).call(asked, task=task)).status == "ok"
    (ran,) = made[0].calls
    assert ran.arguments == {"to": "carla@a.example"}
    decision, approval = world.records("policy_decision")[0], world.records("approval")[0]
    assert decision["args_commit"] == approval["args_commit"] == world.records("tool_call")[0]["args_commit"]


async def test_i1_the_question_shows_class_then_what_was_not_named_whole_and_where_it_was_read(
    make_world: Any,
) -> None:
    approver = ScriptedApprover(answers=[False])
    world = world_of(make_world, {"tool": "find"}, {"tool": "send", "sink": SINK}, approver=approver)
    hostile = "carla@a.example\x1b[2J\u202e" + "y" * 900
    with world.perimeter.task(GOAL) as task:
        sealed = world.perimeter.seal_tools(tools(found=[hostile[:40], "see eve@a.example"]))
        await sealed.call(call(task, "find", query="Budget"), task=task)
        await sealed.call(call(task, to=hostile, body="see eve@a.example"), task=task)
    lines = approver.asked[0].rendering.splitlines()
    assert lines[:2] == ["class C2", "tool 'send'"]
    assert lines[2:4] == [
        "you did not name: 'body', read from find",
        "you did not name: 'to', composed by the model",
    ]
    shown = "".join(line.removeprefix(FOREIGN) for line in lines if line.startswith(FOREIGN))
    assert shown.count("y" * 900) == 2, "alone, and among all arguments"
    assert shown.index('"to"') < shown.rindex('"body"')
    assert approver.asked[0].rendering.isascii()
    assert lines[-6:] == lines[:6]


async def test_i1_questions_end(make_world: Any) -> None:
    approver = ScriptedApprover(answers=[False] * 99)
    world = world_of(make_world, *GRANTS, approver=approver)
    with world.perimeter.task(GOAL) as task:
        sealed = world.perimeter.seal_tools(tools())
        for number in range(MOST_QUESTIONS + 2):
            await sealed.call(call(task, to=f"x{number}@a.example"), task=task)
            await sealed.call(call(task, to=f"x{number}@a.example"), task=task)
        assert (await sealed.call(call(task, to="anna@studio.example"), task=task)).status == "ok"
    assert len(approver.asked) == MOST_QUESTIONS
    rules = [record["rule"] for record in world.records("policy_decision")]
    assert rules.count("refused-before") == MOST_QUESTIONS
    assert rules.count("too-many-questions") == 4


# --- what a profile may not say --------------------------------------------------------------------------

WRONG: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "argument": ({"arguments": {"cc": {"max_length": 3}}}, "arguments.cc"),
    "pattern": ({"arguments": {"to": {"pattern": "(?=a)"}}}, "arguments.to.pattern"),
    "beneath": ({"arguments": {"to": {"beneath": ("a/../b",)}}}, "arguments.to.beneath"),
    "hosts": ({"arguments": {"to": {"hosts": ("https://a.example/x",)}}}, "arguments.to.hosts"),
    "hosts case": ({"arguments": {"to": {"hosts": ("A.example",)}}}, "arguments.to.hosts"),
    "range": ({"arguments": {"to": {"minimum": 3, "maximum": 2}}}, "arguments.to.minimum"),
    "payload": ({"sink": {**SINK, "payload": ("text",)}}, "sink.payload.0"),
    "case": ({"sink": {**SINK, "cases": ({}, {"bcc": ()})}}, "sink.cases.1.bcc"),
    "tool": ({"sink": {**SINK, "cases": ({"to": ({"source": "list"},)},)}}, "sink.cases.0.to.0"),
    "directory": (
        {"sink": {**SINK, "cases": ({"to": ({"lookup": "find", "field": "owner"},)},)}},
        "sink.cases.0.to.0",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_i1_what_a_grant_may_not_say_is_a_mistake_at_its_place(name: str) -> None:
    words, where = WRONG[name]
    with pytest.raises(ConfigError) as caught:
        compiled({"tool": "find"}, {"tool": "send", **words})
    assert [mistake.where for mistake in caught.value.mistakes] == [f"policy.grants.1.{where}"]


def test_i1_a_member_that_the_system_alone_writes_may_vouch_and_no_other_member_of_its_records() -> None:
    minted = {"tool": "find", "reads": {"class": "C2", "minted": ("owner",)}}
    cases = [({"to": ({"lookup": "find", "field": field},)},) for field in ("owner", "title")]
    assert compiled(minted, {"tool": "send", "sink": {**SINK, "cases": cases[0]}}).grants
    with pytest.raises(ConfigError, match="vouches for nothing"):
        compiled(minted, {"tool": "send", "sink": {**SINK, "cases": cases[1]}})


def test_i1_a_shipped_tool_with_a_network_says_up_to_which_class() -> None:
    with pytest.raises(ConfigError, match="no sink says up to which class"):
        compiled({"tool": "send"}, host=False, effect=Effect.NET)
    assert compiled({"tool": "send", "sink": SINK}, host=False, effect=Effect.NET).grants
    with pytest.raises(ConfigError, match="what a shipped tool returns is known"):
        compiled({"tool": "send", "sink": SINK, "reads": {"class": "C0"}}, host=False)


@pytest.mark.parametrize(
    "vouch",
    [
        {},
        {"values": ("a",), "up_to": 3.0},
        {"up_to": 3.0, "field": "x"},
        {"lookup": "find", "key": "title"},
        {"up_to": 0},
        {"lookup": "find", "field": "owner", "where": {"title": ("a",)}},
        {"lookup": "find", "field": "owner", "key": "title", "where": {}},
    ],
    ids=str,
)
def test_a_vouch_says_one_thing(vouch: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="1 validation error"):
        Grant.model_validate({"tool": "send", "sink": {**SINK, "cases": ({"to": (vouch,)},)}})


def test_nobody_is_asked_about_a_draft_so_it_has_no_cases() -> None:
    with pytest.raises(ValueError, match="1 validation error"):
        Grant.model_validate({"tool": "send", "sink": {**SINK, "to": "draft"}})


def test_the_policy_document_holds_every_word_about_flows() -> None:
    """The digest on record is of this: a change of a zero counts, and silence is what it was."""
    plain = policy_document(compiled({"tool": "send"}))
    assert "sink" not in json.dumps(plain)
    variants: list[dict[str, Any]] = [
        {},
        {"calls": 3},
        {"reads": {"class": "C1"}},
        {"reads": {"class": "C1", "integrity": "practice"}},
        {"arguments": {"to": {"minimum": 0}}},
        {"arguments": {"to": {"maximum": 0}}},
        {"arguments": {"to": {"named": True}}},
        {"sink": SINK},
        {"sink": {**SINK, "max_class": "C1"}},
        {"sink": {**SINK, "to": "write"}},
        {"sink": {**SINK, "payload": ()}},
        {"sink": {**SINK, "cases": ({"to": ({"up_to": 1.0},)},)}},
        {"sink": {**SINK, "cases": ({"to": ({"values": (1.0,)},)},)}},
        {"sink": {**SINK, "cases": ({"to": ({"source": "find"},)},)}},
        {"sink": {**SINK, "cases": ({"to": (OWNER,)},)}},
        {"sink": {**SINK, "cases": ({"to": ({**OWNER, "where": {"title": ("a",)}},)},)}},
        {"sink": {**SINK, "cases": ({"to": ({**OWNER, "where": {"title": (0,)}},)},)}},
        {"reads": {"class": "C1", "minted": ("title",)}},
        {"reads": {"class": "C1", "max_class": "C1"}},
    ]
    policies = [compiled({"tool": "find"}, {"tool": "send", **words}) for words in variants]
    documents = {json.dumps(policy_document(policy)) for policy in policies}
    assert len(documents) == len(variants)
