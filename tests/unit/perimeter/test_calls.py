# SPDX-License-Identifier: Apache-2.0
"""Calls in a reply: tokens come back on parsed leaves, each call has its own origin, all is on record."""

import json
from typing import Any

import pytest

from runner.kernel.errors import BackendError, EgressDenied, ReplyInvalid
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Message, Role, ToolSpec
from runner.kernel.tiers import CallFailure
from runner.perimeter.redact import TOKEN
from runner.testing import Calling, FakeClassifier

pytestmark = pytest.mark.anyio
SECRET = 'Rossi", "to": "elsewhere'
"""A value that would add an argument, were it put back into the text of a call."""
TOOL = ToolSpec(
    name="note",
    description="Takes a note.",
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string"}, "to": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def asking(task: Any, **more: Any) -> InferenceRequest:
    return InferenceRequest(messages=(Message(role=Role.USER, blocks=(task.goal,)),), **more)


def redacting(make_world: Any, *replies: Any) -> Any:
    return make_world(
        replies=replies,
        classifier=FakeClassifier({"Rossi": DataClass.C2, SECRET: DataClass.C2}),
        local=False,
        ceiling=DataClass.C1,
        redaction=True,
    )


def with_token(request: InferenceRequest) -> str:
    """Ask for two calls: one with the token that was sent, one with the value guessed."""
    found = TOKEN.search(request.messages[0].blocks[0].text)
    assert found is not None
    calls = [{"name": "note", "arguments": {"text": text}} for text in (found[0], SECRET)]
    return "".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls)


async def test_a_token_is_restored_in_a_parsed_argument_and_adds_no_other(make_world: Any) -> None:
    """P2: what is restored cannot change what is called."""
    world = redacting(make_world, with_token)
    with world.perimeter.task(f"note {SECRET}") as task:
        reply = await world.client.infer(asking(task), task=task, in_text=[TOOL])
        first, guess = reply.calls
        assert first.call.arguments == guess.call.arguments == {"text": SECRET}
        assert TOKEN.fullmatch(first.said["text"])
        assert guess.said == {"text": SECRET}
        assert first.call.origin.label.data_class is DataClass.C2, "I8"
        assert first.call.origin is not guess.call.origin
        assert task.as_said(first.call).arguments == first.said
        assert task.as_said(guess.call).arguments == guess.said, "a guess is not answered as its token is"


async def test_the_calls_of_a_reply_are_part_of_its_block_and_of_what_is_judged(make_world: Any) -> None:
    """I4, I8: an argument raises the label as text does."""
    reply = Calling(calls=[("note", '{"text": "Rossi"}')])
    world = make_world(replies=[reply], classifier=FakeClassifier({"Rossi": DataClass.C2}))
    with world.perimeter.task("note it") as task:
        said = await world.client.infer(asking(task, tools=(TOOL,)), task=task)
        assert task.mark.data_class is DataClass.C2
    assert said.block.text == 'note {"text": "Rossi"}'
    (result,) = world.records("egress_result")
    assert (result["block"], result["tier"], result["status"]) == (said.block.id, "native", "ok")


async def test_p1_what_stands_in_the_definition_of_a_tool_is_judged(make_world: Any) -> None:
    told = ToolSpec(name="note", description="For Rossi.", parameters={"type": "object"})
    titled = ToolSpec(name="note", description="", parameters={"type": "object", "title": "Rossi"})
    for tool in (told, titled):
        world = redacting(make_world)
        with world.perimeter.task("go") as task, pytest.raises(EgressDenied):
            await world.client.infer(asking(task, tools=(tool,)), task=task)
        assert world.backend.transport.sent == []


async def test_a_failure_is_on_record_with_its_tier_and_quotes_nothing(make_world: Any) -> None:
    """I4, I12."""
    world = make_world(replies=[Calling(calls=[("canary", "{}")])])
    with world.perimeter.task("go") as task, pytest.raises(ReplyInvalid, match=r"\Awrong_tool: ") as caught:
        await world.client.infer(asking(task, tools=(TOOL,)), task=task)
    assert (caught.value.failure, caught.value.where) == (CallFailure.WRONG_TOOL, "in call 1")
    assert "canary" not in str(caught.value)
    (result,) = world.records("egress_result")
    assert (result["status"], result["failure"]) == ("ok", "wrong_tool")


async def test_a_reply_is_held_to_one_form_only(make_world: Any) -> None:
    world = make_world()
    with world.perimeter.task("go") as task:
        for more in ({"tools": (TOOL,)}, {"schema": {"type": "object"}}):
            with pytest.raises(BackendError, match="one form only"):
                await world.client.infer(asking(task, **more), task=task, in_text=[TOOL])
    assert world.backend.transport.sent == []
