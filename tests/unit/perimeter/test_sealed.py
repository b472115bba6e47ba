# SPDX-License-Identifier: Apache-2.0
"""P1: a sealed object exists only if the perimeter made it."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from runner.kernel.errors import SealError
from runner.kernel.inference import InferenceRequest
from runner.kernel.messages import Message, Role
from runner.perimeter.client import SealedClient
from runner.perimeter.sealed import Witness, claim_witness
from runner.perimeter.toolbox import SealedTools
from runner.testing import FakeTool, ScriptedBackend


def test_p1_the_witness_is_claimed_once() -> None:
    with pytest.raises(SealError):
        claim_witness()


@pytest.mark.parametrize("witness", [None, object(), Witness(), True])
def test_p1_no_other_witness_opens_the_constructor(witness: object, make_world: Any) -> None:
    world = make_world()
    with pytest.raises(SealError):
        SealedClient(witness, world.perimeter, ScriptedBackend(replies=[]))
    with pytest.raises(SealError):
        SealedTools(witness, world.perimeter, {})


@pytest.mark.parametrize("cls", [SealedClient, SealedTools])
def test_p1_a_sealed_class_cannot_be_subclassed(cls: type) -> None:
    with pytest.raises(SealError):
        type("Mine", (cls,), {})


@pytest.mark.parametrize("thief", [copy.copy, copy.deepcopy, pickle.dumps])
def test_p1_sealed_objects_cannot_be_copied_or_pickled(
    thief: Callable[[object], object], make_world: Any
) -> None:
    world = make_world()
    for sealed in (world.client, world.perimeter.seal_tools([FakeTool()])):
        with pytest.raises(SealError):
            thief(sealed)


async def _infer(client: Any, world: Any, task: Any) -> None:
    request = InferenceRequest(messages=(Message(role=Role.USER, blocks=(task.goal,)),))
    try:
        await client.infer(request, task=task)
    finally:
        assert world.backend.transport.sent == []


def test_p1_an_object_made_around_the_constructor_holds_nothing(make_world: Any) -> None:
    world, client, tools = make_world(), object.__new__(SealedClient), object.__new__(SealedTools)
    for empty, member in ((client, "backend"), (client, "perimeter"), (tools, "specs"), (tools, "perimeter")):
        with pytest.raises(AttributeError):
            getattr(empty, member)
    with pytest.raises(AttributeError):
        client.task("q")
    with pytest.raises(AttributeError), world.perimeter.task("q") as task:
        anyio.run(_infer, client, world, task)


def test_p1_sealed_objects_take_no_new_attributes(make_world: Any) -> None:
    client = make_world().client
    with pytest.raises(AttributeError):
        client.infer = None
    with pytest.raises(AttributeError):
        client.anything = None


def test_p1_an_unregistered_backend_cannot_be_sealed(make_world: Any) -> None:
    with pytest.raises(SealError, match="not registered"):
        make_world().perimeter.seal(ScriptedBackend(replies=[], name="rogue"))
