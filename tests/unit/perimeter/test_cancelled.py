# SPDX-License-Identifier: Apache-2.0
"""I4: a send that was let go has one result on record, wherever whoever waits for it is cancelled."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import pytest
from audited import report_of
from awaits import Cancelled

from runner.capability.tools.web import WebFetch
from runner.kernel.errors import TraceError
from runner.kernel.inference import InferenceRequest, WireReply, WireRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Message, Role, ToolCall
from runner.kernel.opinions import Opinion
from runner.kernel.ports import Effect, Locality
from runner.kernel.web import Place
from runner.perimeter.fetching import Outlet
from runner.perimeter.flows import Flow, Limits, Sink, SinkKind
from runner.perimeter.opinions import Opinions
from runner.perimeter.policy import ToolGrant
from runner.perimeter.second_model import LocalModel
from runner.testing import (
    IN_PROCESS,
    Calling,
    FakeClassifier,
    FakeServerCheck,
    ScriptedBackend,
)

pytestmark = pytest.mark.anyio
NAME: Final = "Mario Rossi"
HOST: Final = "www.example.org"
QUESTIONS: Final = tuple(
    WireRequest(method="GET", address=IN_PROCESS, path=path, headers=(), body=b"") for path in ("/a", "/b")
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Pages:
    """Leads from the first page to another, piece by piece. Implements `Transport`."""

    @asynccontextmanager
    async def open(self, wire: WireRequest, *, credential: object) -> AsyncIterator[WireReply]:
        del credential
        await asyncio.sleep(0)
        moved = wire.path == "/"
        headers = (("location", "/further"),) if moved else (("content-type", "text/plain"),)
        yield WireReply(status=302 if moved else 200, chunks=pieces(), headers=headers)
        await asyncio.sleep(0)


async def pieces() -> AsyncIterator[bytes]:
    for each in (b"a page ", b"of words"):
        await asyncio.sleep(0)
        yield each


def request(task: Any) -> InferenceRequest:
    return InferenceRequest(messages=(Message(role=Role.USER, blocks=(task.goal,)),), max_tokens=8)


async def infer(world: Any, task: Any) -> None:
    await world.client.infer(request(task), task=task)


async def embed(world: Any, task: Any) -> None:
    await world.client.embed([task.goal], task=task)


async def page(world: Any, task: Any) -> None:
    call = ToolCall(tool="web_fetch", arguments={"url": f"https://{HOST}/"}, origin=task.goal)
    reply = await world.perimeter.seal_tools([WebFetch()]).call(call, task=task)
    assert reply.status == "ok", reply.block.text


REMOTE: Final[dict[str, Any]] = {"local": False, "ceiling": DataClass.C1}
REDACTED: Final[dict[str, Any]] = {
    **REMOTE,
    "redaction": True,
    "classifier": FakeClassifier({NAME: DataClass.C2}),
}


def advised() -> dict[str, Any]:
    adviser = ScriptedBackend(replies=[json.dumps({"reason": Opinion.NONE})] * 9, name="opinion")
    return {**REMOTE, "adviser": adviser, "opinions": Opinions([LocalModel(adviser)])}


def web() -> dict[str, Any]:
    tool = WebFetch()
    limits = {"url": Limits(places=(Place(host=HOST),))}
    grant = ToolGrant(
        tool=tool.spec.name,
        effect=Effect.NET,
        parameters=tool.spec.parameters,
        url_argument="url",
        flow=Flow(limits=limits, sink=Sink(kind=SinkKind.NETWORK, ceiling=DataClass.C1)),
    )
    outlet = Outlet(transport=Pages(), ceiling=DataClass.C1)
    return {"local": False, "ceiling": DataClass.C1, "grants": {"web_fetch": grant}, "outlet": outlet}


WAYS: Final[
    dict[str, tuple[Callable[[Any, Any], Coroutine[Any, Any, None]], Callable[[], dict[str, Any]]]]
] = {
    "a request": (infer, lambda: REMOTE),
    "a redacted request": (infer, lambda: REDACTED),
    "a second opinion and a request": (infer, advised),
    "a batch": (embed, lambda: REMOTE),
    "a page that is elsewhere": (page, web),
    "questions to a server and a request": (
        infer,
        lambda: {
            "locality": Locality.L0,
            "server": FakeServerCheck(locality=Locality.L1, questions=QUESTIONS),
        },
    ),
}


@pytest.mark.parametrize("by", ["a scope", "the loop"])
@pytest.mark.parametrize("way", WAYS)
def test_i4_a_send_has_one_result_wherever_it_is_cancelled(make_world: Any, way: str, by: str) -> None:
    work, settings = WAYS[way]
    at, came, results = 0, True, set[str]()

    async def cut(world: Any) -> bool:
        async with world.perimeter.task(f"what does {NAME} owe? see https://{HOST}/") as task:
            running = asyncio.current_task()
            assert running is not None
            with anyio.CancelScope() as scope:
                cancel = scope.cancel if by == "a scope" else running.cancel
                cancelled = Cancelled(work(world, task), cancel, at)
                try:
                    await cancelled
                except asyncio.CancelledError:
                    if by == "a scope":
                        raise
                    running.uncancel()
        return cancelled.came

    while came:
        world = make_world(replies=["fine"] * 9, **settings())
        came = anyio.run(cut, world)
        world.perimeter.trace.close()
        sends = [each["send_id"] for each in world.records("egress") if each["decision"] != "denied"]
        ended = world.records("egress_result")
        assert sorted(each["send_id"] for each in ended) == sorted(sends), at
        assert report_of(world.store)["verdict"] == "PASS", at
        results |= {each["status"] for each in ended}
        at += 1
    assert results == {"ok", "cancelled"}
    assert at > 5


@pytest.mark.parametrize("tokens", [-1, True, 1 << 53, 0])
async def test_i4_a_send_has_its_result_whatever_its_codec_counts(make_world: Any, tokens: int) -> None:
    world = make_world(replies=[Calling(calls=(), tokens=tokens)])
    async with world.perimeter.task("q") as task:
        await infer(world, task)
    (ended,) = world.records("egress_result")
    assert (ended["status"], "x_tokens_out" in ended) == ("ok", False)


async def test_i4_a_question_that_cannot_be_recorded_leaves_a_result_of_those_before_it(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = FakeServerCheck(locality=Locality.L1, questions=QUESTIONS)
    world = make_world(replies=["fine"] * 9, locality=Locality.L0, server=server)
    record, sent = world.perimeter.record_egress, list[object]()

    def full(egress: Any, *args: Any, **named: Any) -> None:
        if sent:
            raise TraceError("the log holds 100000 records")
        sent.append(egress)
        record(egress, *args, **named)

    monkeypatch.setattr(
        type(world.perimeter), "record_egress", lambda _, *args, **named: full(*args, **named)
    )
    async with world.perimeter.task("q") as task:
        with pytest.raises(TraceError):
            await infer(world, task)
    (probed,), (ended,) = world.records("egress"), world.records("egress_result")
    assert (ended["send_id"], ended["status"]) == (probed["send_id"], "cancelled")
