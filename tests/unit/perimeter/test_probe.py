# SPDX-License-Identifier: Apache-2.0
"""P1, I4, I9, I10: a model server is asked about itself on record, without content, before each request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from runner.kernel.decisions import Allowed, Denied
from runner.kernel.errors import EgressDenied, Redirected, TraceError, TransportError
from runner.kernel.inference import Answer, InferenceRequest, WireReply, WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import BlockKind, Message, Role
from runner.kernel.ports import Credential, Locality
from runner.perimeter.probe import egress_record
from runner.testing import IN_PROCESS, FakeClassifier, FakeServerCheck

pytestmark = pytest.mark.anyio

CANARY = "the-secret-of-the-client"


def question(path: str, body: bytes = b"") -> WireRequest:
    method = "POST" if body else "GET"
    return WireRequest(method=method, address=IN_PROCESS, path=path, headers=(), body=body)


QUESTIONS = (question("/list"), question("/show", b'{"model":"scripted-model"}'))


def check(locality: Locality) -> FakeServerCheck:
    return FakeServerCheck(locality=locality, questions=QUESTIONS)


async def infer(world: Any, *, goal: str = "q", read: DataClass | None = None) -> None:
    with world.perimeter.task(goal) as task:
        blocks = [task.goal]
        if read is not None:
            blocks.append(task.mint(BlockKind.TOOL, CANARY, Label(declared=read)))
        message = Message(role=Role.USER, blocks=tuple(blocks))
        await world.client.infer(InferenceRequest(messages=(message,)), task=task)


async def test_i10_the_declared_grade_comes_first_and_the_fingerprint_after_it(make_world: Any) -> None:
    server = check(Locality.L1)
    world = make_world(replies=["listing", "description", "hello"], locality=Locality.L0, server=server)
    await infer(world)
    assert [record["locality"] for record in world.records("backend")] == ["L0", "L1"]
    first, second, request = world.records("egress")
    for probe in (first, second):
        assert (probe["class"], probe["inputs"], probe["decision"]) == ("C0", [], "allowed")
        assert (probe["channel"], probe["locality"]) == ("inference", "L0")
    assert (request["locality"], request["class"]) == ("L1", "C1")
    assert [record["bytes"] for record in (first, second)] == [0, len(QUESTIONS[1].body)]
    [answers] = server.seen
    assert [answer.status for answer in answers if answer] == [200, 200]
    assert [b"listi" in answer.body for answer in answers if answer] == [True, False]


async def test_i4_a_question_belongs_to_no_task_and_has_its_result(make_world: Any) -> None:
    world = make_world(replies=["a", "b", "hello"], locality=Locality.L0, server=check(Locality.L1))
    await infer(world)
    probes, results = world.records("egress")[:2], world.records("egress_result")[:2]
    assert [result["send_id"] for result in results] == [probe["send_id"] for probe in probes]
    assert [result["status"] for result in results] == ["ok", "ok"]
    assert all("block" not in result for result in results)
    assert world.records("task_end")[0]["counts"]["egress"] == 1


async def test_i9_no_question_is_sent_before_its_record_is_sealed_and_durable(make_world: Any) -> None:
    seen: list[list[str]] = []
    world: Any = None
    server = check(Locality.L1)

    class Watching:
        def open(self, wire: WireRequest, *, credential: object) -> Any:
            seen.append(world.order())
            return world.backend.transport.open(wire, credential=credential)

    world = make_world(replies=["a", "b", "hello"], locality=Locality.L0, server=server)
    registration = world.perimeter.registration("scripted")
    object.__setattr__(registration, "transport", Watching())
    await infer(world)
    assert len(seen) == 3
    assert all(order[-1] == "seal" or order[-2:] == ["seal", "egress_result"] for order in seen[:2])
    assert seen[0].count("egress") == 2


async def test_i9_when_a_question_cannot_be_recorded_it_is_not_sent(make_world: Any) -> None:
    world = make_world(replies=["never"], locality=Locality.L0, server=check(Locality.L1))
    with pytest.raises(TraceError), world.perimeter.task("q") as task:
        (log,) = world.store.files.values()
        log.fault = OSError(28, "disk full")
        message = Message(role=Role.USER, blocks=(task.goal,))
        await world.client.infer(InferenceRequest(messages=(message,)), task=task)
    assert world.backend.transport.sent == []


async def test_i10_the_server_is_asked_again_for_each_request(make_world: Any) -> None:
    server = check(Locality.L1)
    world = make_world(replies=["a", "b", "one", "c", "d", "two"], locality=Locality.L0, server=server)
    await infer(world)
    await infer(world)
    assert len(server.seen) == 2
    assert [record["locality"] for record in world.records("backend")] == ["L0", "L1", "L0", "L1"]


async def test_i5_i8_a_question_carries_no_credential_and_no_content(make_world: Any) -> None:
    world = make_world(replies=["a", "b", "hello"], locality=Locality.L0, server=check(Locality.L1))
    await infer(world, goal=CANARY)
    assert world.backend.transport.credentials[:2] == [None, None]
    assert all(CANARY.encode() not in wire.body for wire in world.backend.transport.sent[:2])


@pytest.mark.parametrize("read", [DataClass.C2, DataClass.C3])
@pytest.mark.parametrize("ceiling", [None, DataClass.C0, DataClass.C1])
async def test_i10_a_local_server_that_passes_requests_on_gets_no_personal_data(
    read: DataClass, ceiling: DataClass | None, make_world: Any
) -> None:
    server = check(Locality.REMOTE)
    world = make_world(replies=["a", "b", "never"], locality=Locality.L0, server=server, ceiling=ceiling)
    with pytest.raises(EgressDenied):
        await infer(world, read=read)
    assert [wire.path for wire in world.backend.transport.sent] == ["/list", "/show"]
    denied = world.records("egress")[-1]
    assert (denied["decision"], denied["locality"], denied["class"]) == ("denied", "remote", read.name)


@pytest.mark.parametrize("ceiling", [None, DataClass.C0, DataClass.C1])
async def test_i10_such_a_server_does_not_even_get_the_question(
    ceiling: DataClass | None, make_world: Any
) -> None:
    """A question that the user typed is C1."""
    server = check(Locality.REMOTE)
    world = make_world(replies=["a", "b", "never"], locality=Locality.L0, server=server, ceiling=ceiling)
    with pytest.raises(EgressDenied, match="not-local"):
        await infer(world)
    assert world.records("egress")[-1]["locality"] == "remote"


async def test_i10_only_a_server_on_loopback_is_asked(make_world: Any) -> None:
    """Elsewhere it could say what it likes, and in this process there is none."""
    server = check(Locality.L1)
    inside = make_world(replies=["hello"], locality=Locality.L2, server=server)
    await infer(inside)
    away = make_world(replies=["never"], locality=Locality.REMOTE, server=server, ceiling=DataClass.C1)
    with pytest.raises(EgressDenied, match="not-local"):
        await infer(away)
    assert server.seen == []


@pytest.mark.parametrize(
    ("failure", "status", "answer"),
    [
        (TransportError("refused"), "error", None),
        (TimeoutError(), "timeout", None),
        (Redirected(307), "error", Answer(status=307, body=b"")),
    ],
)
async def test_i10_a_question_without_an_answer_is_on_record_and_told_as_such(
    failure: Exception, status: str, answer: Answer | None, make_world: Any
) -> None:
    server = check(Locality.L0)
    world = make_world(replies=[failure, "b", "hello"], locality=Locality.L0, server=server)
    await infer(world)
    assert world.records("egress_result")[0]["status"] == status
    assert server.seen[0][0] == answer
    assert server.seen[0][1] is not None


async def test_i10_an_answer_without_end_is_no_answer(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.perimeter.probe.MAX_ANSWER_BYTES", 10)
    server = check(Locality.L0)
    world = make_world(replies=["a" * 100, "b", "hello"], locality=Locality.L0, server=server)
    await infer(world)
    assert server.seen[0][0] is None
    assert world.records("egress_result")[0]["status"] == "error"


async def test_p1_a_question_that_may_not_leave_is_denied_on_record_and_not_sent(make_world: Any) -> None:
    """A name of the profile that a detector takes for more than it is: the server is not asked."""
    classifier = FakeClassifier({"scripted-model": DataClass.C3, "/list": DataClass.C3})
    server = check(Locality.L0)
    world = make_world(replies=["never"], locality=Locality.L0, server=server, classifier=classifier)
    with pytest.raises(EgressDenied):
        await infer(world)
    assert world.backend.transport.sent == []
    assert [record["decision"] for record in world.records("egress")] == ["denied"] * 3
    assert server.seen == [(None, None)]


async def test_i10_requests_at_the_same_time_go_out_under_the_grade_on_record(make_world: Any) -> None:
    """Rule S11: the locality of a send is that of the latest record of its backend, whatever came between."""
    server = check(Locality.L1)
    world = make_world(replies=["x"] * 30, locality=Locality.L0, server=server)
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(infer, world)
    latest = None
    for record in world.records():
        if record["kind"] == "backend":
            latest = record["locality"]
        if record["kind"] == "egress":
            assert record["locality"] == latest
            assert (record["inputs"] == []) is (latest == "L0")
    assert len(world.records("egress")) == 30


async def test_i10_a_check_that_is_still_going_on_judges_nothing(make_world: Any) -> None:
    """The grade travels by value: neither the caller's own nor the last finished is the half of another."""
    asked, answer = anyio.Event(), anyio.Event()
    world = make_world(replies=["a", "b", "c", "d"], locality=Locality.L0, server=check(Locality.REMOTE))
    wire = question("/chat", b"{}")
    checked = await world.perimeter.check_locality(world.backend)
    registration = world.perimeter.registration("scripted")

    class Holding:
        @asynccontextmanager
        async def open(self, wire: WireRequest, *, credential: Credential | None) -> AsyncIterator[WireReply]:
            asked.set()
            await answer.wait()
            async with world.backend.transport.open(wire, credential=credential) as reply:
                yield reply

    object.__setattr__(registration, "transport", Holding())
    async with anyio.create_task_group() as group:
        group.start_soon(world.perimeter.check_locality, world.backend)
        await asked.wait()
        label = Label(declared=DataClass.C2)
        own = world.perimeter.release(wire, label, "scripted", checked=checked)
        last = world.perimeter.release(wire, label, "scripted")
        answer.set()
    assert (type(own), type(last)) == (Denied, Denied)


async def test_i10_a_check_of_one_backend_says_nothing_about_another(make_world: Any) -> None:
    world = make_world(locality=Locality.L2)
    checked = await world.perimeter.check_locality(world.backend)
    wire = question("/chat", b"{}")
    assert isinstance(world.perimeter.release(wire, Label(), "scripted", checked=checked), Allowed)
    other = replace(checked, backend="other")
    assert world.perimeter.release(wire, Label(), "scripted", checked=other).reason == "locality-stale"


async def test_i10_each_send_stands_behind_the_grade_it_was_judged_with(make_world: Any) -> None:
    """Rule S11, when another call has put another grade on record between the check and the send."""
    world = make_world(replies=["x"] * 9, locality=Locality.L0, server=check(Locality.L1))
    first = await world.perimeter.check_locality(world.backend)
    await infer(world)
    stamp: Any = {"backend": "scripted", "inputs": ()}
    decision = Denied(reason="x", data_class=DataClass.C0)
    for locality in (Locality.L0, first.locality):
        sent = egress_record(world.perimeter.trace, decision, QUESTIONS[0], locality=locality, **stamp)
        world.perimeter.record_egress(sent, world.backend)
    world.perimeter.trace.barrier()
    order = [(each["kind"], each["locality"]) for each in world.records() if "locality" in each]
    assert order[-4:] == [("backend", "L0"), ("egress", "L0"), ("backend", "L1"), ("egress", "L1")]
