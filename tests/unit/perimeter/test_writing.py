# SPDX-License-Identifier: Apache-2.0
"""I8, I1: what is written stays at or below the class of its folder, and comes back as nobody's word."""

from dataclasses import replace
from typing import Any

import pytest

from runner.capability.tools.drafting import MoveToBin, PatchFile
from runner.kernel.config import Config, Grant, parse_config
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.messages import JsonObject, ToolCall
from runner.kernel.ports import Effect, Root, Tool, ToolOutput
from runner.perimeter.flows import Flow, LookedUp, NamedSource, Sink, SinkKind, Vouch
from runner.perimeter.grants import compile_policy, policy_document
from runner.perimeter.lint import lint
from runner.perimeter.policy import Policy
from runner.perimeter.widening import Permissions, newly_permitted, no_longer_permitted
from runner.testing import FakeTool, ScriptedApprover

pytestmark = pytest.mark.anyio

READ, WRITE = FakeTool(name="read_file", veils=True), FakeTool(name="write_file", effect=Effect.WRITE)
TOOLS: dict[str, Tool] = {
    "read_file": READ,
    "write_file": WRITE,
    "move_to_bin": MoveToBin(),
    "patch_file": PatchFile(),
}
TO: JsonObject = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
C1 = Root(alias="notes", path="/g/notes", declared=DataClass.C1, written=True)
C2 = Root(alias="drafts", path="/g/drafts", written=True)
C3 = Root(alias="cases", path="/g/cases", declared=DataClass.C3, written=True)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def writing(task: Any, path: str) -> ToolCall:
    return ToolCall(tool="write_file", arguments={"path": path}, origin=task.goal)


@pytest.mark.parametrize(
    ("seen", "path", "status"),
    [
        (DataClass.C1, "notes/a", "ok"),
        (DataClass.C2, "notes/a", "denied"),
        (DataClass.C2, "drafts/a", "ok"),
        (DataClass.C3, "drafts/a", "denied"),
        (DataClass.C3, "cases/a", "ok"),
        (DataClass.C3, "notes/a", "denied"),
        (DataClass.C2, ".", "denied"),
    ],
)
async def test_i8_nothing_is_written_into_a_folder_of_a_lower_class(
    seen: DataClass, path: str, status: str, make_world: Any, grant: Any
) -> None:
    """Read there again it would be of that class: a way round every ceiling."""
    tool = FakeTool(name="write_file", effect=Effect.WRITE)
    world = make_world(grants={"write_file": grant(tool, roots=(C1, C2, C3))})
    with world.perimeter.task("q", data_class=seen) as task:
        reply = await world.perimeter.seal_tools([tool]).call(writing(task, path), task=task)
    assert (reply.status, len(tool.calls)) == (status, int(status == "ok"))
    (decision,) = world.records("policy_decision")
    assert decision["rule"] == ("grant.write_file" if status == "ok" else "above-folder")
    into = {"notes/a": "C1", "drafts/a": "C2", "cases/a": "C3", ".": "C1"}[path]
    assert decision["replay"]["into"] == into


async def test_i8_what_a_task_read_after_its_start_counts_too(make_world: Any, grant: Any) -> None:
    tool = FakeTool(name="write_file", effect=Effect.WRITE)
    reader = FakeTool(name="read_file")
    cases = Root(alias="cases", path="/g/cases", declared=DataClass.C3)
    world = make_world(
        grants={"write_file": grant(tool, roots=(C2,)), "read_file": grant(reader, roots=(cases,))}
    )
    tools = world.perimeter.seal_tools([tool, reader])
    with world.perimeter.task("q") as task:
        assert (await tools.call(writing(task, "drafts/a"), task=task)).status == "ok"
        read = ToolCall(tool="read_file", arguments={"path": "cases/a"}, origin=task.goal)
        assert (await tools.call(read, task=task)).status == "ok"
        assert (await tools.call(writing(task, "drafts/a"), task=task)).rule == "above-folder"


async def test_a_denial_by_class_names_no_content_and_nobody_is_asked(make_world: Any, grant: Any) -> None:
    tool = FakeTool(name="write_file", effect=Effect.WRITE)
    approver = ScriptedApprover(answers=[])
    world = make_world(grants={"write_file": grant(tool, roots=(C1,), ask=True)}, approver=approver)
    with world.perimeter.task("q", data_class=DataClass.C3) as task:
        reply = await world.perimeter.seal_tools([tool]).call(writing(task, "notes/a"), task=task)
    assert reply.status == "denied"
    assert approver.asked == []


@pytest.mark.parametrize(("written", "integrity"), [(True, Integrity.UNTRUSTED), (False, Integrity.PRACTICE)])
async def test_i8_what_lies_where_a_tool_writes_is_nobodys_word(
    written: bool, integrity: Integrity, make_world: Any, grant: Any
) -> None:
    tool = FakeTool(name="read_file")
    root = Root(alias="drafts", path="/g/drafts", written=written)
    world = make_world(grants={"read_file": grant(tool, roots=(root,))})
    with world.perimeter.task("q") as task:
        call = ToolCall(tool="read_file", arguments={"path": "drafts/a"}, origin=task.goal)
        reply = await world.perimeter.seal_tools([tool]).call(call, task=task)
    assert reply.block.label.integrity is integrity


@pytest.mark.parametrize(
    "vouch", [NamedSource(tool="read_file"), LookedUp(tool="read_file", field="to", key="name")]
)
@pytest.mark.parametrize(("written", "status"), [(True, "denied"), (False, "ok")])
async def test_i1_what_a_model_may_have_drafted_vouches_for_no_value(
    vouch: Vouch, written: bool, status: str, make_world: Any, grant: Any
) -> None:
    """It would write down whom to pay, and read that back from where the user told it to look."""
    reader = FakeTool(name="read_file", output=ToolOutput(text='{"name": "Anna Verdi", "to": "a@x.example"}'))
    mailer = FakeTool(name="mail", effect=Effect.HOST, path_arguments=frozenset(), parameters=TO)
    root = Root(alias="drafts", path="/g/drafts", written=written)
    flow = Flow(sink=Sink(kind=SinkKind.NETWORK, ceiling=DataClass.C2, cases=({"to": (vouch,)},)))
    grants = {"read_file": grant(reader, roots=(root,)), "mail": replace(grant(mailer, roots=()), flow=flow)}
    world = make_world(grants=grants)
    tools = world.perimeter.seal_tools([reader, mailer])
    with world.perimeter.task("write to Anna Verdi as drafts/a says") as task:
        read = ToolCall(tool="read_file", arguments={"path": "drafts/a"}, origin=task.goal)
        assert (await tools.call(read, task=task)).status == "ok"
        mail = ToolCall(tool="mail", arguments={"to": "a@x.example"}, origin=task.goal)
        assert (await tools.call(mail, task=task)).status == status


# --- grants --------------------------------------------------------------------------------------------


def blame(where: tuple[str | int, ...], problem: str, fix: str) -> Mistake:
    return Mistake(file="p.yaml", line=1, where=".".join(map(str, where)), problem=problem, fix=fix)


def compiled(*grants: dict[str, Any]) -> Policy:
    return compile_policy(
        [Grant.model_validate(grant) for grant in grants],
        TOOLS,
        host_tools=frozenset(),
        resolve=lambda path, _: path,
        unwritable=lambda: ["/u/akaion", "/u/profile.yaml", "/opt/program"],
        untouchable={"/u/akaion/keys": "keys lie here"},
        blame=blame,
    )


def on(tool: str, *paths: Any) -> dict[str, Any]:
    return {"tool": tool, "paths": list(paths)}


@pytest.mark.parametrize("inner", ["/s/rossi/drafts", "/s/rossi", "/s"], ids=["below", "same", "above"])
def test_i8_a_folder_that_shares_files_with_one_that_is_written_to_is_known_as_such(inner: str) -> None:
    policy = compiled(on("read_file", "/s/rossi", "/t"), on("write_file", inner))
    rossi, other = policy.grants["read_file"].roots
    assert (rossi.written, other.written) == (True, False)
    assert policy.grants["write_file"].roots[0].written
    assert not compiled(on("read_file", "/s/rossi")).grants["read_file"].roots[0].written


def test_i8_a_folder_inside_one_of_a_higher_class_holds_that_class() -> None:
    policy = compiled(
        on("read_file", {"path": "/s/rossi", "class": "C3"}),
        on("write_file", {"path": "/s/rossi/drafts", "class": "C1"}),
    )
    assert policy.grants["write_file"].roots[0].declared is DataClass.C3


@pytest.mark.parametrize(
    "path", ["/u/akaion/models", "/u", "/u/profile.yaml", "/opt/program/lib", "/opt", "/"]
)
def test_i5_no_tool_writes_where_the_perimeters_own_files_lie(path: str) -> None:
    with pytest.raises(ConfigError, match=r"may write|keys lie here"):
        compiled(on("write_file", path))


def test_i8_a_folder_that_is_written_to_is_not_redactable() -> None:
    """What detectors miss in a model's text would leave as C1: nobody vouches for such a text."""
    with pytest.raises(ConfigError, match=r"policy\.grants\.0\.paths\.0\.redactable: what a tool writes"):
        compiled(on("write_file", {"path": "/s", "redactable": True}))
    policy = compiled(on("read_file", {"path": "/s", "redactable": True}), on("write_file", "/s/drafts"))
    assert not policy.grants["read_file"].roots[0].redactable


def test_i6_the_document_of_a_policy_says_which_folders_are_written_to_and_no_other_changed() -> None:
    document: Any = policy_document(compiled(on("read_file", "/s", "/t"), on("write_file", "/s")))
    read, write = document["grants"]
    assert [root.get("written") for root in read["roots"]] == [True, None]
    assert write["effect"] == "write"


# --- in words -------------------------------------------------------------------------------------------


def permissions(*grants: dict[str, Any]) -> Permissions:
    config: Config = parse_config(
        {"profile": "detached", "policy": {"grants": grants}, "inference": {"local": LOCAL}},
        file="p.yaml",
        locate=lambda _: 1,
    )
    return Permissions(config=config, policy=compiled(*grants))


LOCAL = {"runtime": "embedded", "model": "small"}
NOTES = on("read_file", "/s")
DIFFERENCES = {
    "a tool that writes": (
        (NOTES,),
        (NOTES, on("write_file", "/s/drafts")),
        ["write_file may write what it likes: /s/drafts (C2 by default)"],
    ),
    "a tool that moves into the bin": (
        (NOTES,),
        (NOTES, on("move_to_bin", "/s/drafts")),
        ["move_to_bin may move files to the bin: /s/drafts (C2 by default)"],
    ),
    "a tool that patches": (
        (NOTES,),
        (NOTES, on("patch_file", "/s/drafts")),
        ["patch_file may change files: /s/drafts (C2 by default)"],
    ),
    "another folder to patch in": (
        (on("patch_file", "/s/drafts"),),
        (on("patch_file", "/s/drafts", "/t"),),
        ["patch_file may change files beneath /t (C2 by default)"],
    ),
    "another folder": (
        (on("write_file", "/s/drafts"),),
        (on("write_file", "/s/drafts", "/t"),),
        ["write_file may write beneath /t (C2 by default)"],
    ),
    "a higher class": (
        (on("write_file", {"path": "/t", "class": "C1"}),),
        (on("write_file", {"path": "/t", "class": "C3"}),),
        ["write_file may write content up to class C3 into /t; before: C1"],
    ),
    "another matter": (
        (on("write_file", "/t"),),
        (on("write_file", {"path": "/t", "matter": "rossi"}),),
        ["write_file may write content of the matter rossi into /t; before: of no matter"],
    ),
    "no tool writes there any more": (
        (NOTES, on("write_file", "/s/drafts")),
        (NOTES,),
        ["what lies in /s counts as the practice's own for read_file; before: a tool could write there"],
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_i1_what_may_newly_be_written_is_said_in_words(name: str) -> None:
    old, new, said = DIFFERENCES[name]
    assert list(newly_permitted(permissions(*old), permissions(*new))) == said


def test_i1_what_may_no_longer_be_written_is_said_too() -> None:
    old, new = permissions(NOTES, on("write_file", "/t")), permissions(NOTES)
    assert no_longer_permitted(old, new) == ("write_file may write what it likes: /t (C2 by default)",)


def found(*grants: dict[str, Any]) -> list[str]:
    both = permissions(*grants)
    return [finding.means for finding in lint(both.config, both.policy, homes=["/people/anna"])]


def test_a_grant_that_writes_too_widely_is_remarked_on() -> None:
    (means,) = found(on("write_file", "/people"))
    assert means == "a tool may write anywhere in /people, which holds far more than one kind of work"


def test_a_folder_for_drafts_inside_one_of_a_higher_class_is_remarked_on() -> None:
    cases, drafts = {"path": "/s/rossi", "class": "C3"}, {"path": "/s/rossi/drafts", "class": "C1"}
    said = found(on("read_file", cases), on("write_file", drafts))
    assert (
        "/s/rossi/drafts is C1 here and shares files with a folder of C3: what is of C3 may be written there"
        in said
    )


def test_a_folder_for_drafts_that_the_reader_knows_by_the_same_name_is_no_remark() -> None:
    assert found(on("read_file", "/s/rossi", "/s/rossi/drafts"), on("write_file", "/s/rossi/drafts")) == []
    (means,) = found(on("read_file", "/s/rossi"), on("write_file", "/s/rossi/drafts"))
    assert "one file has two names" in means


async def test_a_sink_of_a_write_tool_is_judged_beside_the_folder(make_world: Any, grant: Any) -> None:
    """A profile may want the user to name what is written to: then it says `sink`, as for any tool."""
    tool = FakeTool(name="write_file", effect=Effect.WRITE)
    flow = Flow(sink=Sink(kind=SinkKind.WRITE, ceiling=DataClass.C2))
    world = make_world(grants={"write_file": replace(grant(tool, roots=(C2,)), flow=flow)})
    with world.perimeter.task("write drafts/a please") as task:
        tools = world.perimeter.seal_tools([tool])
        assert (await tools.call(writing(task, "drafts/a"), task=task)).status == "ok"
        assert (await tools.call(writing(task, "drafts/b"), task=task)).status == "denied"
