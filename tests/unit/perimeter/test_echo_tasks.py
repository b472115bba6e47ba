# SPDX-License-Identifier: Apache-2.0
"""I6, I8: what one task read is recognised when it is typed into another, and does not leave from there."""

from typing import Any

import pytest

from runner.kernel.errors import EgressDenied
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Message, Role, ToolCall
from runner.kernel.ports import Effect, Root, ToolOutput
from runner.testing import FakeTool

pytestmark = pytest.mark.anyio

TEXT = "The board agreed to close the western plant in spring and to move the line abroad without notice."
PIECE = "agreed to close the western plant in spring and"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def read(world: Any, tool: FakeTool) -> None:
    with world.perimeter.task("q") as task:
        call = ToolCall(tool="fake", arguments={"path": "files/a.txt"}, origin=task.goal)
        await world.perimeter.seal_tools([tool]).call(call, task=task)


@pytest.mark.parametrize(
    ("declared", "redactable", "expected"),
    [
        (DataClass.C3, False, DataClass.C3),
        (DataClass.C2, False, DataClass.C2),
        (None, False, DataClass.C2),
        (None, True, DataClass.C1),  # the grant says that the words around what is found may leave
        (DataClass.C1, False, DataClass.C1),
    ],
)
async def test_i6_a_passage_read_under_a_grant_keeps_its_class_when_typed_later(
    make_world: Any, grant: Any, declared: DataClass | None, redactable: bool, expected: DataClass
) -> None:
    root = Root(alias="files", path="/granted/files", declared=declared, redactable=redactable)
    tool = FakeTool(output=ToolOutput(text=TEXT), veils=True)
    world = make_world(grants={"fake": grant(tool, roots=(root,))})
    with world.perimeter.task(f"Sum up: {PIECE}") as before:
        assert before.mark.data_class is DataClass.C1
    await read(world, tool)
    with world.perimeter.task(f"Sum up: {PIECE}") as after:
        assert after.mark.data_class is expected
        assert after.residue.data_class is expected
        assert after.goal.label.detected is (expected if expected > DataClass.C1 else DataClass.C0)


async def test_p1_a_typed_echo_does_not_leave(make_world: Any, grant: Any) -> None:
    root = Root(alias="files", path="/granted/files", declared=DataClass.C3)
    tool = FakeTool(output=ToolOutput(text=TEXT))
    world = make_world(
        replies=["ok", "ok"], local=False, ceiling=DataClass.C1, grants={"fake": grant(tool, roots=(root,))}
    )
    await read(world, tool)
    with world.perimeter.task(f"Sum up: {PIECE}") as task:
        request = InferenceRequest(messages=(Message(role=Role.USER, blocks=(task.goal,)),), max_tokens=8)
        with pytest.raises(EgressDenied, match="C3"):
            await world.client.infer(request, task=task)


@pytest.mark.parametrize("output", [ToolOutput(text="done"), RuntimeError(TEXT)])
async def test_words_of_the_runner_are_no_source(make_world: Any, grant: Any, output: Any) -> None:
    """An error's text is ours and stands in every task: remembered, it would taint all that follow."""
    root = Root(alias="files", path="/granted/files", declared=DataClass.C3)
    tool = FakeTool(output=output)
    world = make_world(grants={"fake": grant(tool, roots=(root,))})
    await read(world, tool)
    with world.perimeter.task("error: the tool failed (RuntimeError)") as task:
        assert task.mark.data_class is DataClass.C1


async def test_a_tool_that_read_nothing_labelled_is_no_source_even_in_a_privileged_task(
    make_world: Any, grant: Any
) -> None:
    """The mark of a task is on its blocks, not on the words of a public file it read as well."""
    public = Root(alias="files", path="/granted/files", declared=DataClass.C0)
    tool = FakeTool(output=ToolOutput(text=TEXT), effect=Effect.READ)
    world = make_world(grants={"fake": grant(tool, roots=(public,))})
    with world.perimeter.task("q") as task:
        task.foreign("secret", declared=DataClass.C3, source="test")
        call = ToolCall(tool="fake", arguments={"path": "files/a.txt"}, origin=task.goal)
        await world.perimeter.seal_tools([tool]).call(call, task=task)
    with world.perimeter.task(PIECE) as later:
        assert later.mark.data_class is DataClass.C1
