# SPDX-License-Identifier: Apache-2.0
"""I4, I8: whatever a task reads, asks, restores and is denied, in any order, its book passes the verifier.

The verifier recomputes the mark of each task from the record (S12). It shares no code with the perimeter.
"""

import json
from collections import Counter
from typing import Any

import anyio
import audited
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runner.kernel.errors import EgressDenied
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import BlockKind, Message, Role, ToolCall
from runner.kernel.opinions import Opinion
from runner.kernel.ports import GrantedCall, Locality, ToolOutput
from runner.perimeter.opinions import Opinions
from runner.perimeter.second_model import LocalModel
from runner.perimeter.trace import log as log_module
from runner.testing import (
    FakeClassifier,
    FakeTool,
    FrozenClock,
    ScriptedApprover,
    ScriptedBackend,
)

NAME = "Mario Rossi"
GOALS = ("what is due?", f"what does {NAME} owe?")
OPS = (
    "read C0",
    "read C1",
    "read C2",
    "read C3",
    "name",
    "ask",
    "ask all",
    "derive",
    "call",
    "clock back",
    "let go",
    "let the name go",
    "time passes",
    "picture",
    "picture C0",
    "embed",
    "embed all",
)

tasks = st.lists(
    st.tuples(st.sampled_from(GOALS), st.lists(st.sampled_from(OPS), max_size=7)), min_size=1, max_size=5
)


async def do(world: Any, tools: Any, task: Any, blocks: list[Any], op: str) -> None:
    match op.split():
        case ["name"]:
            label = Label(default=DataClass.C1)
            blocks.append(task.mint(BlockKind.TOOL, f"{NAME} owes", label, residue=label))
        case ["ask", *every]:
            chosen = tuple(blocks) if every else tuple(blocks[-1:])
            request = InferenceRequest(messages=(Message(role=Role.USER, blocks=chosen),))
            try:
                blocks.append((await world.client.infer(request, task=task)).block)
            except EgressDenied:
                return
        case ["read" | "picture" | "embed" as what, *more]:
            await carry(world, task, blocks, what, more)
        case ["derive"]:
            blocks.append(task.derive(blocks[0].text[:4], [blocks[0]]))
        case ["let", "go"]:
            last = next(block for block in reversed(blocks) if block.text)
            await world.client.declassify(last, task=task, lasts_s=60)
        case ["let", *_]:
            at = blocks[0].text.find(NAME)
            spans = [(at, at + len(NAME))] if at >= 0 else None
            await world.client.declassify(blocks[0], task=task, spans=spans, lasts_s=60)
        case ["time", _]:
            world.clock.advance(40)
        case ["call"]:
            call = ToolCall(tool="fake", arguments={"path": "files/a"}, origin=blocks[-1])
            blocks.append((await tools.call(call, task=task)).block)
        case _:
            world.clock._start_us -= 1_000_000_000


async def carry(world: Any, task: Any, blocks: list[Any], what: str, more: list[str]) -> None:
    """Bring in a text or a picture, of the class `more` or none; or embed the last text, or all of them."""
    if what == "read":
        blocks.append(task.mint(BlockKind.TOOL, "text", Label(default=DataClass.parse(more[0]))))
        return
    if what == "picture":
        data_class = DataClass.parse(more[0]) if more else None
        blocks.append(task.media(f"a picture of {NAME}".encode(), "image/png", data_class=data_class))
        return
    said = [block for block in blocks if block.media is None]
    try:
        blocks.append((await world.client.embed(said if more else said[-1:], task=task)).block)
    except EgressDenied:
        return


async def live(world: Any, tool: FakeTool, days: list[tuple[str, list[str]]]) -> None:
    tools = world.perimeter.seal_tools([tool])
    for goal, ops in days:
        with world.perimeter.task(goal) as task:
            blocks = [task.goal]
            for op in ops:
                await do(world, tools, task, blocks, op)
        world.clock.advance(50_000)


def advising(word: Opinion) -> ScriptedBackend:
    """A model that says `word` of whatever somebody owes, and nothing of the rest."""

    def say(request: InferenceRequest) -> str:
        telling = " owe" in request.messages[-1].blocks[0].text
        return json.dumps({"reason": word if telling else Opinion.NONE})

    return ScriptedBackend(replies=[say] * 400, name="opinion")


def report_of(world: Any) -> dict[str, Any]:
    world.perimeter.trace.close()
    return audited.report_of(world.store)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    days=tasks,
    local=st.booleans(),
    redaction=st.booleans(),
    person=st.booleans(),
    second=st.sampled_from([None, *Opinion]),
)
@example(days=[(GOALS[1], ["ask"])], local=False, redaction=True, person=False, second=None)
@example(days=[(GOALS[1], ["ask", "ask"])], local=False, redaction=True, person=False, second=Opinion.NONE)
@example(
    days=[(GOALS[1], ["ask", "call", "ask"])],
    local=False,
    redaction=True,
    person=False,
    second=Opinion.PERSON,
)
@example(
    days=[(GOALS[0], ["ask", "name", "ask all", "read C3", "ask"])],
    local=False,
    redaction=True,
    person=False,
    second=None,
)
@example(
    days=[(GOALS[1], ["let the name go", "ask", "read C2", "ask all", "derive", "ask all", "time passes"])],
    local=False,
    redaction=False,
    person=True,
    second=None,
)
@example(
    days=[(GOALS[1], ["let the name go", "ask", "read C2", "ask all", "derive", "ask all", "time passes"])],
    local=False,
    redaction=False,
    person=True,
    second=Opinion.NONE,
)
@example(
    days=[(GOALS[0], ["picture C0", "embed", "embed all", "ask all"])],
    local=True,
    redaction=True,
    person=False,
    second=None,
)
@example(
    days=[(GOALS[0], ["embed", "read C2", "let go", "embed all", "ask"])],
    local=False,
    redaction=True,
    person=True,
    second=Opinion.NONE,
)
@example(
    days=[(GOALS[0], ["read C2", "ask", "time passes", "ask", "time passes", "ask all", "call", "ask"])],
    local=False,
    redaction=True,
    person=True,
    second=None,
)
def test_i8_every_task_gives_a_book_that_passes(
    make_world: Any,
    grant: Any,
    *,
    days: list[tuple[str, list[str]]],
    local: bool,
    redaction: bool,
    person: bool,
    second: Opinion | None,
) -> None:
    """With a model as `second` opinion, which says that word of whatever somebody owes, and without one."""
    adviser = None if second is None else advising(second)
    tool = FakeTool(output=ToolOutput(text=f"a letter of {NAME}"))
    world = make_world(
        replies=["fine"] * 40,
        local=local,
        ceiling=None if local else DataClass.C1,
        locality=Locality.L2,
        redaction=redaction,
        declassification=person,
        classifier=FakeClassifier({NAME: DataClass.C2}),
        grants={"fake": grant(tool, ask=True)},
        approver=ScriptedApprover(answers=[True] * 40),
        adviser=adviser,
        opinions=None if adviser is None else Opinions([LocalModel(adviser)]),
    )
    anyio.run(live, world, tool, days)
    report = report_of(world)
    assert report["verdict"] == "PASS", report
    assert report["classifiers"] == ["rules-only" if second is None else "rules+local:scripted-model"]
    assert sum(report["declassified"].values()) == len(world.records("declassify"))
    assert len(world.store.files) >= (2 if len(days) > 2 else 1), "a log gives way after a day"


def test_i8_the_redaction_in_the_first_example_lowers_a_class(make_world: Any) -> None:
    """So the property above is not about denials alone."""
    world = make_world(
        replies=["fine"],
        local=False,
        ceiling=DataClass.C1,
        redaction=True,
        classifier=FakeClassifier({NAME: DataClass.C2}),
    )
    anyio.run(live, world, FakeTool(), [(GOALS[1], ["ask"])])
    report = report_of(world)
    assert (report["verdict"], report["declassified"]) == ("PASS", {"approval": 0, "rule": 1})
    assert report["lowering_rules"] == ["redact-detected"]


def test_i8_a_person_in_the_examples_lowers_a_class(make_world: Any) -> None:
    """So the property above is not about denials alone."""
    world = make_world(
        replies=["fine"] * 9,
        local=False,
        ceiling=DataClass.C1,
        declassification=True,
        classifier=FakeClassifier({NAME: DataClass.C2}),
        approver=ScriptedApprover(answers=[True] * 9),
    )
    ops = ["let the name go", "ask", "read C2", "ask all", "derive", "ask all"]
    anyio.run(live, world, FakeTool(), [(GOALS[1], ops)])
    report = report_of(world)
    assert (report["verdict"], report["declassified"]) == ("PASS", {"approval": 3, "rule": 0})


class Forward(FrozenClock):
    """A clock that is set forward by `seconds` at its reading `at`, as by a time server or after a sleep."""

    def __init__(self, at: int, seconds: int) -> None:
        super().__init__()
        self.at, self.seconds, self.readings = at, seconds, 0
        self.told = 0

    def now_us(self) -> int:
        self.readings += 1
        if self.readings == self.at:
            self._start_us += self.seconds * 1_000_000
        self.told = super().now_us()
        return self.told


class Punctual(FakeTool):
    """A tool that knows what the clock said last when it ran."""

    def __init__(self, clock: Forward) -> None:
        super().__init__(output=ToolOutput(text=f"a letter of {NAME}"))
        self.clock, self.ran = clock, list[int]()

    def run(self, call: GrantedCall) -> ToolOutput:
        self.ran.append(self.clock.told)
        return super().run(call)


@pytest.mark.parametrize("seconds", [61, 301])
def test_i4_a_clock_set_forward_at_any_reading_runs_nothing_late_and_the_book_passes(
    make_world: Any, grant: Any, seconds: int
) -> None:
    """Approvals of calls last five minutes; of what leaves, as asked here, and redaction one."""
    ends = Counter[tuple[int, int, int]]()
    clock = Forward(0, seconds)
    while clock.readings >= clock.at:
        clock = Forward(clock.at + 1, seconds)
        tool = Punctual(clock)
        world = make_world(
            replies=["fine"] * 9,
            local=False,
            ceiling=DataClass.C1,
            redaction=True,
            declassification=True,
            classifier=FakeClassifier({NAME: DataClass.C2}),
            grants={"fake": grant(tool, ask=True)},
            approver=ScriptedApprover(answers=[True] * 9),
            clock=clock,
        )
        anyio.run(live, world, tool, [(GOALS[1], ["ask", "let the name go", "ask", "call", "ask"])])
        report = report_of(world)
        assert report["verdict"] == "PASS", (clock.at, report["reasons"])
        calls = {each["call_id"] for each in world.records("tool_call")}
        lasting = [each["expires"] for each in world.records("approval") if each["call_id"] in calls]
        assert all(ran < expires for ran, expires in zip(tool.ran, lasting, strict=False)), clock.at
        ends[len(calls), len(tool.ran), len(world.backend.transport.sent)] += 1
    everything, *_ = ends
    assert ends[everything] < sum(ends.values())
    assert {ran for _, ran, _ in ends} == ({0, 1} if seconds > 300 else {1})


@pytest.mark.parametrize("late", ["before the record", "after the record"])
def test_p2_a_call_whose_approval_was_over_is_told_why_and_may_be_asked_about_anew(
    make_world: Any, grant: Any, late: str
) -> None:
    """It did not run, nobody said no, and the rule says which of the two it was."""
    clock = Forward(0, 301)
    tool = Punctual(clock)
    approver = ScriptedApprover(answers=[True, True])
    world = make_world(grants={"fake": grant(tool, ask=True)}, approver=approver, clock=clock)
    world.perimeter.trace.barrier()

    async def both() -> None:
        tools = world.perimeter.seal_tools([tool])
        async with world.perimeter.task("q") as task:
            call = ToolCall(tool="fake", arguments={"path": "files/a"}, origin=task.goal)
            clock.at = clock.readings + {"before the record": 4, "after the record": 5}[late]
            first = await tools.call(call, task=task)
            assert (first.status, first.rule, tool.ran) == ("denied", "approval-expired", [])
            assert "asked anew" in first.block.text
            second = await tools.call(call, task=task)
            assert (second.status, len(tool.ran)) == ("ok", 1)

    anyio.run(both)
    ends = [each["status"] for each in world.records("tool_result")]
    assert ends == (["ok"] if late == "before the record" else ["error", "ok"])
    assert len(approver.asked) == 2
    assert report_of(world)["verdict"] == "PASS"


def test_i4_a_runtime_that_fills_log_after_log_keeps_running_and_its_book_passes(
    make_world: Any, grant: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(log_module, "MAX_RECORDS", 120)
    tool = FakeTool()
    world = make_world(
        replies=["fine"] * 40,
        grants={"fake": grant(tool, ask=True)},
        approver=ScriptedApprover(answers=[True] * 40),
    )
    anyio.run(live, world, tool, [(GOALS[0], ["ask", "call", "ask all"])] * 20)
    report = report_of(world)
    assert (report["verdict"], len(world.backend.transport.sent)) == ("PASS", 40)
    assert report["logs"] == len(world.store.files) > 5
