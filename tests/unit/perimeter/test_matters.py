# SPDX-License-Identifier: Apache-2.0
"""Matters (I1, I4, I8): the content of one meets another's only when a person said so, and one never asks."""

from typing import Any

import anyio
import pytest

from runner.kernel.config import Grant
from runner.kernel.errors import ConfigError, EgressDenied, Mistake, PerimeterError
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Message, Role, ToolCall
from runner.kernel.ports import ApprovalRequest, Effect, GrantedCall, Root, ToolOutput
from runner.perimeter.grants import compile_policy
from runner.testing import FakeClassifier, FakeTool, ScriptedApprover

pytestmark = pytest.mark.anyio

ROSSI = Root(alias="one", path="/g/one", declared=DataClass.C2, matter="rossi")
BIANCHI = Root(alias="two", path="/g/two", declared=DataClass.C2, matter="bianchi")
FORMS = Root(alias="forms", path="/g/forms", declared=DataClass.C1)
ALL = (ROSSI, BIANCHI, FORMS)
LETTER = "The board agreed to close the western plant in spring and to move the line abroad without notice."
PIECE = "agreed to close the western plant in spring and"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def read(task: Any, path: str) -> ToolCall:
    return ToolCall(tool="fake", arguments={"path": path}, origin=task.goal)


@pytest.fixture
def office(make_world: Any, grant: Any) -> Any:
    """Return a maker of a world with one tool over two matters and a folder of none."""

    def make(
        *, answers: list[bool] | None = None, effect: Effect = Effect.READ, roots: Any = ALL, **more: Any
    ) -> Any:
        tool = FakeTool(effect=effect, output=ToolOutput(text=LETTER))
        approver = None if answers is None else ScriptedApprover(answers=answers)
        world = make_world(grants={"fake": grant(tool, roots=roots)}, approver=approver, **more)
        return world, world.perimeter.seal_tools([tool]), tool, approver

    return make


async def statuses(tools: Any, task: Any, *paths: str) -> list[str]:
    return [(await tools.call(read(task, path), task=task)).status for path in paths]


@pytest.mark.parametrize("matter", ["rossi", None])
async def test_i8_one_matter_and_folders_of_none_never_ask(office: Any, matter: str | None) -> None:
    """Utility: whoever works on one matter sees no question, whether or not it was named at the start."""
    world, tools, tool, approver = office(answers=[])
    with world.perimeter.task("q", matter=matter) as task:
        assert await statuses(tools, task, "one/a", ".", "one", "forms/x", ".") == ["ok"] * 5
        assert task.matters == {"rossi"}
        assert task.mark.matters == {"rossi"}
    assert approver.asked == []
    assert all(BIANCHI not in call.roots for call in tool.calls), "a path that names no folder stays inside"
    assert [call.roots for call in tool.calls][1] == (ROSSI, FORMS)


@pytest.mark.parametrize("answer", [True, False, None])
async def test_i1_a_second_matter_asks_and_without_an_approver_it_is_denied(
    office: Any, answer: bool | None
) -> None:
    world, tools, tool, approver = office(answers=None if answer is None else [answer])
    with world.perimeter.task("q", matter="rossi") as task:
        assert await statuses(tools, task, "one/a") == ["ok"]
        reply = await tools.call(read(task, "two/b"), task=task)
        held = task.matters
        decision, approval = world.records("policy_decision")[-1], world.records("approval")[-1]
        nowhere = await tools.call(read(task, "nowhere/b"), task=task)
    assert (reply.status == "ok") is (answer is True)
    assert held == ({"rossi", "bianchi"} if answer else {"rossi"})
    assert reply.block.label.matters == held
    assert len(tool.calls) == (2 if answer else 1)
    assert (decision["decision"], decision["rule"]) == ("ask", "matters-meet")
    assert (approval["by"], approval["granted"]) == ("none" if answer is None else "user", answer is True)
    if approver is not None:
        (asked,) = approver.asked
        assert "brings together the matters bianchi, rossi\n" in asked.rendering
        assert asked.rendering.count("brings together") == 2, "above what the model wrote, and below it"
    if not answer:
        assert "rossi" not in reply.block.text + task.goal.text
        assert reply.block.text == nowhere.block.text, "a folder of another matter is answered as none"
        assert "bianchi" not in reply.block.text, "a model of one matter is not told the names of others"


async def test_i1_a_search_over_two_matters_asks_before_it_reads_either(office: Any) -> None:
    world, tools, tool, _ = office()
    with world.perimeter.task("q") as task:
        assert await statuses(tools, task, ".") == ["denied"]
        assert (tool.calls, task.matters) == ([], frozenset())


async def test_a_person_is_asked_once_for_two_matters_in_a_task(office: Any) -> None:
    world, tools, _, approver = office(answers=[True])
    with world.perimeter.task("q") as task:
        assert await statuses(tools, task, ".", "two/b", "one/a", ".") == ["ok"] * 4
    assert len(approver.asked) == 1
    with world.perimeter.task("another") as later:
        assert await statuses(tools, later, ".") == ["denied"], "the yes was for that task"


async def test_i8_two_calls_at_once_do_not_slip_two_matters_in(office: Any) -> None:
    world, tools, tool, _ = office()
    done: list[str] = []

    async def one(path: str) -> None:
        done.extend(await statuses(tools, task, path))

    with world.perimeter.task("q") as task:
        async with anyio.create_task_group() as group:
            group.start_soon(one, "one/a")
            group.start_soon(one, "two/b")
        assert len(task.matters) == 1
    assert sorted(done) == ["denied", "ok"]
    assert len(tool.calls) == 1


async def test_i1_a_yes_does_not_count_for_a_matter_that_came_in_while_it_was_awaited(
    make_world: Any, grant: Any
) -> None:
    third = Root(alias="three", path="/g/three", declared=DataClass.C2, matter="verdi")
    tool = FakeTool()

    class Slow:
        name = "slow"

        async def approve(self, request: ApprovalRequest) -> bool:
            assert "bianchi, rossi" in request.rendering
            task.admit({"verdi"})
            return True

    world = make_world(grants={"fake": grant(tool, roots=(*ALL, third))}, approver=Slow())
    tools = world.perimeter.seal_tools([tool])
    with world.perimeter.task("q", matter="rossi") as task:
        assert await statuses(tools, task, "two/b") == ["denied"]
    assert tool.calls == []


@pytest.mark.parametrize(
    ("effect", "path", "roots", "asks"),
    [
        (Effect.WRITE, "one/a", ALL, False),
        (Effect.WRITE, "forms/a", ALL, True),
        (Effect.WRITE, "two/a", ALL, True),
        (Effect.HOST, "one/a", (ROSSI, FORMS), False),
        (Effect.HOST, "one/a", ALL, True),
    ],
)
async def test_i8_a_write_keeps_a_matter_in_its_folder_and_a_host_tool_has_all_its_folders(
    office: Any, effect: Effect, path: str, roots: Any, *, asks: bool
) -> None:
    world, tools, _, _ = office(effect=effect, roots=roots)
    with world.perimeter.task("q", matter="rossi") as task:
        assert await statuses(tools, task, path) == ["denied" if asks else "ok"]


async def test_a_tool_with_no_folder_of_the_matter_is_denied(office: Any) -> None:
    world, tools, _, _ = office(roots=(BIANCHI,), answers=[])
    with world.perimeter.task("q") as task:
        task.admit({"rossi"})
        assert await statuses(tools, task, ".") == ["denied"]
    assert world.records("policy_decision")[0]["rule"] == "no-path-granted"


async def test_i4_i12_the_start_commits_to_the_matter_and_no_name_is_in_the_record(office: Any) -> None:
    world, tools, _, _ = office(answers=[True])
    with world.perimeter.task("q", matter="rossi") as task:
        await statuses(tools, task, "one/a", "two/b")
    with world.perimeter.task("q") as task:
        await statuses(tools, task, "forms/a")
    first, second = world.records("task_start")
    (commit,) = first["matters"]
    assert len(str(commit)) == 64
    assert "matters" not in second
    premises = {"fits": True, "inside": True, "reached": 1}
    assert [decision["replay"] for decision in world.records("policy_decision")] == [
        {**premises, "meets": False, "matters": 1},
        {**premises, "meets": True, "matters": 2},
        {**premises, "meets": False},
    ]
    (log,) = world.store.files.values()
    assert b"rossi" not in log.data
    assert b"bianchi" not in log.data


async def test_a_matter_that_no_grant_names_is_refused(office: Any) -> None:
    world, _, _, _ = office()
    with pytest.raises(PerimeterError, match="use one of the profile's: bianchi, rossi"):
        world.perimeter.task("q", matter="verdi").__enter__()
    assert world.records("task_start") == []


async def test_i8_an_echo_raises_a_class_across_matters_and_shares_nothing_else(office: Any) -> None:
    """What one matter's file says is C2 wherever it is typed; nothing of that file comes with it."""
    world, tools, _, _ = office(local=False, ceiling=DataClass.C1, replies=["ok"])
    with world.perimeter.task("q", matter="rossi") as task:
        await statuses(tools, task, "one/a")
    with world.perimeter.task(f"Sum up: {PIECE}", matter="bianchi") as other:
        assert other.mark.data_class is DataClass.C2
        assert other.mark.matters == {"bianchi"}
        with pytest.raises(EgressDenied):
            await world.client.infer(asking(other), task=other)
    with world.perimeter.task("What is a lease?", matter="bianchi") as other:
        await world.client.infer(asking(other), task=other)
        assert other.mark.matters == {"bianchi"}
    (sent,) = world.backend.transport.sent
    assert b"plant" not in sent.body


async def test_i8_what_was_judged_for_one_matter_is_the_same_answer_for_another_and_no_content(
    make_world: Any,
) -> None:
    classifier = FakeClassifier({"Mario": DataClass.C2})
    world = make_world(
        local=False, ceiling=DataClass.C1, replies=["ok"] * 3, classifier=classifier, redaction=True
    )
    tokens = []
    for _ in range(2):
        with world.perimeter.task("ask Mario") as task:
            await world.client.infer(asking(task), task=task)
        tokens.append(world.backend.transport.sent[-1].body)
    assert all(b"Mario" not in body for body in tokens)
    assert tokens[0] != tokens[1], "a map belongs to one task, so to one matter"
    assert not any("Mario" in repr(key) for key in world.perimeter._rules.judged._new)


def asking(task: Any) -> InferenceRequest:
    return InferenceRequest(messages=(Message(role=Role.USER, blocks=(task.goal,)),), max_tokens=8)


def blame(where: tuple[str | int, ...], problem: str, fix: str) -> Mistake:
    return Mistake(file="p.yaml", line=1, where=".".join(map(str, where)), problem=problem, fix=fix)


def compiled(*paths: dict[str, str]) -> list[Mistake]:
    """Return the mistakes of a policy with one path for each of two tools, and the rest for the second."""
    first, *rest = paths
    grants = [{"tool": "fake", "paths": [first]}, {"tool": "list_dir", "paths": rest}]
    try:
        compile_policy(
            [Grant.model_validate(grant) for grant in grants],
            {"fake": FakeTool(), "list_dir": FakeTool(name="list_dir")},
            host_tools=frozenset(),
            resolve=lambda path, _: path,
            unwritable=list,
            untouchable={},
            blame=blame,
        )
    except ConfigError as error:
        return list(error.mistakes)
    return []


@pytest.mark.parametrize(
    ("paths", "wrong"),
    [
        ([{"path": "/p/one", "matter": "one"}, {"path": "/p", "matter": "two"}], ["policy.grants.1.paths.0"]),
        ([{"path": "/p/one", "matter": "one"}, {"path": "/p"}], ["policy.grants.1.paths.0"]),
        ([{"path": "/p"}, {"path": "/p/one", "matter": "one"}], ["policy.grants.1.paths.0"]),
        ([{"path": "/p/one", "matter": "one"}, {"path": "/p/one"}], ["policy.grants.1.paths.0"]),
        ([{"path": "/p/one", "matter": "one"}, {"path": "/p/one/in", "matter": "one"}], []),
        ([{"path": "/p/one", "matter": "one"}, {"path": "/p/two", "matter": "two"}], []),
        ([{"path": "/p"}, {"path": "/p/in"}], []),
    ],
    ids=["inside-another", "inside-none", "around", "same-place", "same-matter", "beside", "no-matter"],
)
def test_i1_a_file_belongs_to_one_matter_at_most(paths: list[dict[str, str]], wrong: list[str]) -> None:
    mistakes = compiled(*paths)
    assert [mistake.where for mistake in mistakes] == wrong
    assert all("another matter" in mistake.problem for mistake in mistakes)


def test_a_granted_call_is_what_a_tool_gets(office: Any) -> None:
    """The roots are in the call: a tool that searches everywhere searches this matter."""
    world, tools, tool, _ = office()

    async def go() -> None:
        with world.perimeter.task("q", matter="bianchi") as task:
            await statuses(tools, task, ".")

    anyio.run(go)
    assert tool.calls == [GrantedCall(arguments={"path": "."}, roots=(BIANCHI, FORMS))]
