# SPDX-License-Identifier: Apache-2.0
"""I1, I4, I8, I9, I12, P2: the order and the record of one tool call."""

import asyncio
import json
import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest

from runner.kernel.errors import SealError, ToolError, TraceError
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.messages import ToolCall
from runner.kernel.ports import FOREIGN, Effect, GrantedCall, Root, ToolOutput
from runner.perimeter.completing import to_its_end
from runner.perimeter.toolbox import APPROVAL_LASTS_US
from runner.testing import FakeTool, MemoryLogFile, ScriptedApprover

pytestmark = pytest.mark.anyio

CANARY = "the-secret-of-the-client"
PRIVILEGED = Root(alias="cases", path="/granted/cases", declared=DataClass.C3, matter="rossi")
PLAIN = Root(alias="forms", path="/granted/forms", declared=None)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def call(task: Any, tool: str = "fake", **arguments: Any) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments, origin=task.goal)


async def test_i9_a_call_runs_only_after_its_records_are_sealed(
    make_world: Any, grant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[list[str]] = []
    tool = FakeTool()
    world = make_world(grants={"fake": grant(tool)})
    run = tool.run

    def watch(granted: GrantedCall) -> ToolOutput:
        order.append(world.order())
        return run(granted)

    monkeypatch.setattr(tool, "run", watch)
    with world.perimeter.task("q") as task:
        reply = await world.perimeter.seal_tools([tool]).call(call(task, path="files/a.txt"), task=task)
    assert reply.status == "ok"
    (durable,) = order
    assert durable[-3:] == ["policy_decision", "tool_call", "seal"]
    decision, started = world.records("policy_decision")[0], world.records("tool_call")[0]
    assert decision["decision"] == "allow"
    assert decision["args_commit"] == started["args_commit"]
    assert decision["call_id"] == started["call_id"] == world.records("tool_result")[0]["call_id"]


@pytest.mark.parametrize("by_the_loop", [False, True])
async def test_i9_what_changes_something_has_ended_and_is_on_record_before_it_is_cancelled(
    by_the_loop: bool, make_world: Any, grant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a file changes after the record of its task is closed."""
    begun, cancelled, changed = threading.Event(), threading.Event(), []
    tool = FakeTool(effect=Effect.WRITE)
    world = make_world(grants={"fake": grant(tool)})

    def slow(_: GrantedCall) -> ToolOutput:
        begun.set()
        assert cancelled.wait(120)
        changed.append("it")
        return ToolOutput(text="done")

    monkeypatch.setattr(tool, "run", slow)

    async def work() -> None:
        with world.perimeter.task("q") as task:
            await world.perimeter.seal_tools([tool]).call(call(task, path="files/a.txt"), task=task)

    async def scoped() -> None:
        with scope:
            await work()
        raise asyncio.CancelledError

    scope = anyio.CancelScope()
    running = asyncio.ensure_future(work() if by_the_loop else scoped())
    await anyio.to_thread.run_sync(begun.wait)
    cancel = running.cancel if by_the_loop else scope.cancel
    cancel()
    asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, cancelled.set)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert changed == ["it"]
    assert [body["status"] for body in world.records("tool_result")] == ["ok"]
    assert [body["outcome"] for body in world.records("task_end")] == ["cancelled"]


async def test_i9_what_was_cancelled_before_it_began_does_not_begin() -> None:
    begun = []

    async def work() -> None:
        begun.append("it")

    with anyio.CancelScope() as scope:
        scope.cancel()
        await to_its_end(work)
    assert scope.cancelled_caught
    assert begun == []


async def test_what_is_waited_for_raises_what_it_raises() -> None:
    async def work() -> None:
        raise TraceError("the record cannot be written")

    with pytest.raises(TraceError, match="cannot be written"):
        await to_its_end(work)


@pytest.mark.parametrize(
    ("tool", "arguments", "rule"),
    [
        ("rogue", {"path": "files"}, "tool-not-granted"),
        ("fake", {"path": "files", "extra": 1}, "arguments-invalid"),
        ("fake", {}, "arguments-invalid"),
        ("fake", {"path": 3}, "arguments-invalid"),
        ("fake", {"path": "other/a"}, "path-outside-grant"),
        ("fake", {"path": "files/../../etc/passwd"}, "path-outside-grant"),
        ("fake", {"path": "/etc/passwd"}, "path-outside-grant"),
        ("fake", {"path": "files//a"}, "path-outside-grant"),
        ("fake", {"path": "files/a\0b"}, "path-outside-grant"),
        ("fake", {"path": "files\\..\\a"}, "path-outside-grant"),
    ],
)
async def test_i1_what_no_grant_names_is_denied_recorded_and_does_not_run(
    tool: str, arguments: dict[str, Any], rule: str, make_world: Any, grant: Any
) -> None:
    fake = FakeTool()
    world = make_world(grants={"fake": grant(fake)})
    with world.perimeter.task("q") as task:
        reply = await world.perimeter.seal_tools([fake]).call(call(task, tool, **arguments), task=task)
    assert reply.status == "denied"
    assert fake.calls == []
    (decision,) = world.records("policy_decision")
    assert (decision["decision"], decision["rule"]) == ("deny", rule)
    assert world.records("tool_call") == []


async def test_i1_a_sealed_tool_without_a_grant_is_not_even_shown(make_world: Any, grant: Any) -> None:
    shown, hidden = FakeTool(name="shown"), FakeTool(name="hidden")
    world = make_world(grants={"shown": grant(shown)})
    tools = world.perimeter.seal_tools([shown, hidden])
    assert [spec.name for spec in tools.specs] == ["shown"]


async def test_i1_an_empty_allow_list_grants_nothing(make_world: Any, grant: Any) -> None:
    fake = FakeTool()
    world = make_world(grants={"fake": grant(fake, roots=())})
    with world.perimeter.task("q") as task:
        reply = await world.perimeter.seal_tools([fake]).call(call(task, path="."), task=task)
    assert (reply.status, fake.calls) == ("denied", [])
    assert world.records("policy_decision")[0]["rule"] == "no-path-granted"


async def test_a_call_touches_only_the_root_it_names(make_world: Any, grant: Any) -> None:
    fake = FakeTool()
    world = make_world(grants={"fake": grant(fake, roots=(PRIVILEGED, PLAIN))})
    tools = world.perimeter.seal_tools([fake])
    with world.perimeter.task("q") as task:
        await tools.call(call(task, path="forms/x"), task=task)
        await tools.call(call(task, path="."), task=task)
    assert [granted.roots for granted in fake.calls] == [(PLAIN,), (PRIVILEGED, PLAIN)]


@pytest.mark.parametrize(
    ("path", "expected"), [("cases/a", DataClass.C3), ("forms/a", DataClass.C2), (".", DataClass.C3)]
)
async def test_i8_a_result_takes_the_class_of_every_root_it_could_read(
    path: str, expected: DataClass, make_world: Any, grant: Any
) -> None:
    fake = FakeTool(output=ToolOutput(text="nothing found"))
    world = make_world(grants={"fake": grant(fake, roots=(PRIVILEGED, PLAIN))})
    with world.perimeter.task("q") as task:
        reply = await world.perimeter.seal_tools([fake]).call(call(task, path=path), task=task)
        assert task.mark.data_class is expected
    assert reply.block.label.data_class is expected
    assert reply.block.label.integrity is Integrity.PRACTICE


@pytest.mark.parametrize("fault", [ToolError("no such file"), ValueError(CANARY)])
async def test_i12_an_error_is_labelled_and_a_foreign_one_is_not_quoted(
    fault: Exception, make_world: Any, grant: Any
) -> None:
    fake = FakeTool(output=fault)
    world = make_world(grants={"fake": grant(fake, roots=(PRIVILEGED,))})
    with world.perimeter.task("q") as task:
        reply = await world.perimeter.seal_tools([fake]).call(call(task, path="cases/a"), task=task)
    assert reply.status == "error"
    assert reply.block.label.data_class is DataClass.C3
    assert CANARY not in reply.block.text
    assert world.records("tool_result")[0]["status"] == "error"


async def test_an_ask_without_an_approver_is_a_denial(make_world: Any, grant: Any) -> None:
    fake = FakeTool()
    world = make_world(grants={"fake": grant(fake, ask=True)})
    with world.perimeter.task("q") as task:
        reply = await world.perimeter.seal_tools([fake]).call(call(task, path="files"), task=task)
    assert (reply.status, fake.calls) == ("denied", [])
    (approval,) = world.records("approval")
    assert (approval["by"], approval["granted"]) == ("none", False)


@pytest.mark.parametrize("answer", [True, False])
async def test_an_approval_is_bound_to_the_arguments_and_used_once(
    answer: bool, make_world: Any, grant: Any
) -> None:
    fake, approver = FakeTool(), ScriptedApprover(answers=[answer])
    world = make_world(grants={"fake": grant(fake, ask=True)}, approver=approver)
    tools = world.perimeter.seal_tools([fake])
    with world.perimeter.task("q") as task:
        first = await tools.call(call(task, path="files"), task=task)
        second = await tools.call(call(task, path="files"), task=task)
    assert (first.status == "ok") is answer
    assert second.status == "denied"
    assert len(approver.asked) == (2 if answer else 1), "nobody is asked again about what they refused"
    decision, approval = world.records("policy_decision")[0], world.records("approval")[0]
    assert decision["args_commit"] == approval["args_commit"]
    assert approval["granted"] is answer


async def test_the_approver_sees_the_class_first_and_everything_escaped(make_world: Any, grant: Any) -> None:
    fake, approver = FakeTool(), ScriptedApprover(answers=[True])
    world = make_world(grants={"fake": grant(fake, ask=True)}, approver=approver)
    hostile = "files/\x1b[2Jx\u202egnp.exe" + "y" * 5000
    with world.perimeter.task("q") as task:
        await world.perimeter.seal_tools([fake]).call(call(task, path=hostile), task=task)
    (shown,) = (request.rendering for request in approver.asked)
    assert shown.startswith("class C1\ntool 'fake'\n")
    assert "\nclass C1\ntool 'fake'\n" in shown[-200:], "I1: and again where the question is"
    assert shown.isascii()
    assert "\x1b" not in shown
    assert "y" * 5000 in shown.replace("\n" + FOREIGN, "")


async def test_i4_a_clock_set_back_leaves_no_approval_that_expired_before_its_call(
    make_world: Any, grant: Any
) -> None:
    """A log does not go back in time, so what it says about later is reckoned by its own time."""
    fake, approver = FakeTool(), ScriptedApprover(answers=[True])
    world = make_world(grants={"fake": grant(fake, ask=True)}, approver=approver)
    with world.perimeter.task("q") as task:
        world.clock._start_us -= 600_000_000
        reply = await world.perimeter.seal_tools([fake]).call(call(task, path="files"), task=task)
    (log,) = world.store.files.values()
    times = {record["kind"]: record.get("ts") for record in map(json.loads, log.durable.splitlines())}
    assert reply.status == "ok"
    assert world.records("approval")[0]["expires"] == times["tool_call"] + APPROVAL_LASTS_US


async def test_i7_an_approval_that_expires_before_its_call_is_a_denial(
    make_world: Any, grant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk stalls, or the machine sleeps, between a person's yes and the call it was for."""
    fake, approver = FakeTool(), ScriptedApprover(answers=[True])
    world = make_world(grants={"fake": grant(fake, ask=True)}, approver=approver)
    sync = MemoryLogFile.sync

    def stall(log: MemoryLogFile) -> None:
        world.clock.advance(APPROVAL_LASTS_US / 1_000_000)
        sync(log)

    with world.perimeter.task("q") as task:
        monkeypatch.setattr(MemoryLogFile, "sync", stall)
        reply = await world.perimeter.seal_tools([fake]).call(call(task, path="files"), task=task)
    assert (reply.status, fake.calls) == ("denied", [])
    assert world.records("approval")[0]["granted"] is True
    assert world.records("tool_call") == []


async def test_a_call_from_an_unknown_origin_is_denied(make_world: Any, grant: Any) -> None:
    fake = FakeTool()
    world = make_world(grants={"fake": grant(fake)})
    with world.perimeter.task("other") as other:
        pass
    with world.perimeter.task("q") as task:
        foreign = ToolCall(tool="fake", arguments={"path": "files"}, origin=other.goal)
        reply = await world.perimeter.seal_tools([fake]).call(foreign, task=task)
    assert (reply.status, fake.calls) == ("denied", [])


async def test_i12_an_unknown_tool_name_enters_the_trace_as_a_commitment(make_world: Any) -> None:
    world = make_world()
    with world.perimeter.task("q") as task:
        await world.perimeter.seal_tools([]).call(call(task, CANARY, path=CANARY), task=task)
    (decision,) = world.records("policy_decision")
    assert decision["tool"] == "other"
    assert len(str(decision["tool_commit"])) == 64
    assert all(CANARY.encode() not in log.data for log in world.store.files.values())


async def test_i8_a_host_tools_output_is_untrusted_and_counts_as_unclassified_files_do(
    make_world: Any, grant: Any
) -> None:
    fake = FakeTool(effect=Effect.HOST, path_arguments=frozenset(), parameters={"type": "object"})
    world = make_world(grants={"fake": grant(fake, roots=())})
    with world.perimeter.task("q") as task:
        reply = await world.perimeter.seal_tools([fake]).call(call(task), task=task)
    assert reply.block.label.integrity is Integrity.UNTRUSTED
    assert reply.block.label.data_class is DataClass.C2


async def test_two_tools_of_one_name_cannot_be_sealed(make_world: Any) -> None:
    with pytest.raises(SealError):
        make_world().perimeter.seal_tools([FakeTool(), FakeTool()])


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
@pytest.mark.parametrize(
    ("roots", "expected"),
    [((), DataClass.C2), ((PLAIN,), DataClass.C2), ((PRIVILEGED,), DataClass.C3)],
    ids=["no root", "unclassified", "privileged"],
)
async def test_i8_what_a_file_tool_returns_without_any_folder_is_what_nobody_classified(
    make_world: Any, grant: Any, effect: Effect, roots: tuple[Root, ...], expected: DataClass
) -> None:
    fake = FakeTool(effect=effect, path_arguments=frozenset(), parameters={"type": "object"})
    world = make_world(grants={"fake": grant(fake, roots=roots)})
    with world.perimeter.task("q") as task:
        reply = await world.perimeter.seal_tools([fake]).call(call(task), task=task)
    assert (reply.status, reply.block.label.data_class) == ("ok", expected)


async def test_i8_a_call_with_two_paths_has_the_class_of_both(make_world: Any, grant: Any) -> None:
    fake = FakeTool(
        path_arguments=frozenset({"one", "other"}),
        parameters={
            "type": "object",
            "properties": {"one": {"type": "string"}, "other": {"type": "string"}},
        },
    )
    public = Root(alias="site", path="/granted/site", declared=DataClass.C0)
    world = make_world(grants={"fake": grant(fake, roots=(public, PRIVILEGED))})
    with world.perimeter.task("q") as task:
        tools = world.perimeter.seal_tools([fake])
        reply = await tools.call(call(task, one="site/a", other="cases/b"), task=task)
    assert (reply.status, reply.block.label.data_class) == ("ok", DataClass.C3)
