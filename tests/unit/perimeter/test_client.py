# SPDX-License-Identifier: Apache-2.0
"""P1, I4, I8, I9, I12: the order and the record of one inference."""

import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runner.kernel.errors import BackendError, EgressDenied, ReplyInvalid, SealError, TraceError
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass, Integrity, Label
from runner.kernel.messages import Block, BlockKind, Message, Role
from runner.kernel.opinions import Opinion
from runner.kernel.ports import Locality
from runner.testing import FakeClassifier, FakeFinding, FixedLocality, Truncated

pytestmark = pytest.mark.anyio

CANARY = "the-secret-of-the-client"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def asking(*blocks: Block, schema: dict[str, Any] | None = None) -> InferenceRequest:
    return InferenceRequest(messages=(Message(role=Role.USER, blocks=blocks),), schema=schema)


async def test_p1_an_allowed_request_is_recorded_sealed_sent_and_its_reply_labelled(make_world: Any) -> None:
    world = make_world(replies=["hello"], local=False, ceiling=DataClass.C1)
    with world.perimeter.task("a question") as task:
        reply = await world.client.infer(asking(task.goal), task=task)
    assert reply.block.text == "hello"
    assert reply.block.label.data_class is DataClass.C1
    assert len(world.backend.transport.sent) == 1
    (egress,) = world.records("egress")
    assert (egress["decision"], egress["class"], egress["locality"]) == ("allowed", "C1", "remote")
    assert egress["inputs"] == [task.goal.id]
    assert egress["bytes"] == len(world.backend.transport.sent[0].body)
    (result,) = world.records("egress_result")
    assert (result["status"], result["block"]) == ("ok", reply.block.id)


async def test_i4_the_tokens_that_the_backend_counted_are_on_record_and_none_that_it_did_not(
    make_world: Any,
) -> None:
    world = make_world(replies=["two words"])
    with world.perimeter.task("a question") as task:
        await world.client.infer(asking(task.goal), task=task)
    (result,) = world.records("egress_result")
    assert result["x_tokens_out"] == 2
    assert "x_tokens_in" not in result
    (header,) = world.records("header")
    assert "x_tokens_out" in header["extensions"]


async def test_i9_nothing_is_sent_before_its_record_is_sealed_and_durable(make_world: Any) -> None:
    seen: list[list[str]] = []
    world: Any = None

    def answer(_: InferenceRequest) -> str:
        seen.append(world.order())
        return "ok"

    world = make_world(replies=[answer])
    with world.perimeter.task("q") as task:
        await world.client.infer(asking(task.goal), task=task)
    (durable,) = seen
    assert durable[-1] == "seal"
    assert "egress" in durable


async def test_i9_when_the_record_cannot_be_written_nothing_is_sent(make_world: Any) -> None:
    world = make_world(replies=["never"])
    with pytest.raises(TraceError), world.perimeter.task("q") as task:
        (log,) = world.store.files.values()
        log.fault = OSError(28, "disk full")
        await world.client.infer(asking(task.goal), task=task)
    assert world.backend.transport.sent == []


async def test_p1_a_denied_request_sends_nothing_and_is_on_record(make_world: Any) -> None:
    world = make_world(replies=["never"], local=False, ceiling=DataClass.C0)
    with pytest.raises(EgressDenied) as caught, world.perimeter.task(CANARY) as task:
        await world.client.infer(asking(task.goal), task=task)
    assert CANARY not in str(caught.value)
    assert world.backend.transport.sent == []
    (egress,) = world.records("egress")
    assert (egress["decision"], egress["reason"], egress["class"]) == ("denied", "class-above-ceiling", "C1")
    assert world.records("task_end")[0]["outcome"] == "failed"


async def test_i8_after_reading_c3_everything_the_task_asks_is_c3(make_world: Any) -> None:
    """The high-water mark holds even for a request that leaves the secret block out."""
    world = make_world(replies=["never"], local=False, ceiling=DataClass.C1)
    with pytest.raises(EgressDenied) as caught, world.perimeter.task("q") as task:
        task.mint(BlockKind.TOOL, CANARY, Label(declared=DataClass.C3))
        await world.client.infer(asking(task.instruction("harmless")), task=task)
    assert caught.value.reason == "c3-never-leaves"


async def test_i8_a_new_task_is_clean_again(make_world: Any) -> None:
    world = make_world(replies=["fine"], local=False, ceiling=DataClass.C1)
    with world.perimeter.task("first") as task:
        task.mint(BlockKind.TOOL, CANARY, Label(declared=DataClass.C3))
    with world.perimeter.task("second") as task:
        reply = await world.client.infer(asking(task.goal), task=task)
    assert reply.block.text == "fine"


@pytest.mark.parametrize("forge", ["text", "label", "id", "foreign"])
async def test_i8_a_block_the_task_did_not_mint_is_refused(forge: str, make_world: Any) -> None:
    world = make_world(replies=["never"])
    with world.perimeter.task("other") as other:
        foreign = other.goal
    with pytest.raises(SealError), world.perimeter.task("q") as task:
        secret = task.mint(BlockKind.TOOL, CANARY, Label(declared=DataClass.C3))
        forged = {
            "text": replace(task.goal, text=CANARY),
            "label": replace(secret, label=Label()),
            "id": Block(id="b999", kind=BlockKind.GOAL, text=CANARY, label=Label()),
            "foreign": foreign,
        }[forge]
        await world.client.infer(asking(forged), task=task)
    assert world.backend.transport.sent == []


async def test_i8_derived_blocks_and_replies_join_their_inputs(make_world: Any) -> None:
    world = make_world(replies=["reply"])
    with world.perimeter.task("q") as task:
        secret = task.mint(
            BlockKind.TOOL,
            "x",
            Label(declared=DataClass.C3, integrity=Integrity.UNTRUSTED, matters=frozenset({"m"})),
        )
        cut = task.derive("y", [secret])
        reply = await world.client.infer(asking(task.goal, cut), task=task)
    for block in (cut, reply.block):
        assert block.label.data_class is DataClass.C3
        assert block.label.integrity is Integrity.UNTRUSTED
        assert block.label.matters == {"m"}
    classify = {record["block"]: record for record in world.records("classify")}
    assert classify[reply.block.id]["inputs"] == [task.goal.id, cut.id]


async def test_i8_no_method_of_a_task_takes_a_block_of_another(make_world: Any) -> None:
    """Only its own task knows what redaction would leave of it: derived elsewhere, what was declared fell."""
    world = make_world()
    with world.perimeter.task("one") as one, world.perimeter.task("two") as two:
        read = one.foreign("He wants to sell.", declared=DataClass.C2, source="cases")
        opinion = Opinion.PERSON
        makes: tuple[Callable[[], object], ...] = (
            lambda: two.derive("sell", [read]),
            lambda: two.derive("sell", [two.goal, read]),
            lambda: two.derive("sell", [replace(two.goal)]),
            lambda: two.derive("sell", []),
            lambda: two.mint(BlockKind.TOOL, "sell", Label(), [read]),
            lambda: two.vectors(b"[]", Label(), [read], residue=Label()),
            lambda: two.opined(read, opinion, by="local", version="1"),
        )
        for make in makes:
            with pytest.raises(SealError):
                make()
        assert two.blocks == (two.goal,)
        assert one.derive("sell", [read]).label.declared is DataClass.C2


async def test_p1_what_detectors_find_in_a_reply_raises_its_class(make_world: Any) -> None:
    world = make_world(replies=["the code is " + CANARY], classifier=FakeClassifier({CANARY: DataClass.C3}))
    with world.perimeter.task("q") as task:
        reply = await world.client.infer(asking(task.goal), task=task)
        assert task.mark.data_class is DataClass.C3
    assert reply.block.label.detected is DataClass.C3


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        ('{"n": "one"}', "schema_violation"),
        ("{}", "schema_violation"),
        ('{"n": 1', "malformed_json"),
        (Truncated(text='{"n": 1}'), "truncated"),
    ],
)
async def test_a_constrained_reply_is_validated_before_use(
    answer: Any, failure: str, make_world: Any
) -> None:
    world = make_world(replies=[answer])
    with world.perimeter.task("q") as task:
        with pytest.raises(ReplyInvalid, match=failure) as caught:
            await world.client.infer(asking(task.goal, schema=SCHEMA), task=task)
        assert "one" not in str(caught.value)


async def test_a_valid_constrained_reply_is_parsed(make_world: Any) -> None:
    world = make_world(replies=['{"n": 3}'])
    with world.perimeter.task("q") as task:
        reply = await world.client.infer(asking(task.goal, schema=SCHEMA), task=task)
    assert reply.value == {"n": 3}


async def test_i8_what_a_task_reads_while_locality_is_checked_counts_for_the_send(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls of one task at once: the mark that counts is that of the moment the send is judged."""
    world = make_world(replies=["fine"])
    with world.perimeter.task("q") as task:

        async def meanwhile(_self: object, _address: object) -> Locality:
            task.mint(BlockKind.TOOL, "read by another call", Label(declared=DataClass.C3))
            return Locality.L2

        monkeypatch.setattr(FixedLocality, "grade", meanwhile)
        await world.client.infer(asking(task.goal), task=task)
    assert world.records("egress")[0]["class"] == "C3"


class FailsOnce(FakeClassifier):
    """Raises at the first text it is shown."""

    def classify(self, text: str, *, source: str | None = None) -> FakeFinding:
        found = super().classify(text, source=source)
        if len(self.seen) == 1:
            raise ValueError("once")
        return found


async def test_i8_a_goal_is_not_below_what_its_start_says(make_world: Any) -> None:
    """What was put on record as C3, for want of a finding, stays C3."""
    world = make_world(replies=["fine"], classifier=FailsOnce(), fault_as_c3=True)
    with world.perimeter.task("q") as task:
        await world.client.infer(asking(task.goal), task=task)
    assert [world.records(kind)[0]["class"] for kind in ("task_start", "classify", "egress")] == ["C3"] * 3


async def test_i4_a_failed_exchange_is_on_record(make_world: Any) -> None:
    world = make_world(replies=[BackendError("refused")])
    with pytest.raises(BackendError), world.perimeter.task("q") as task:
        await world.client.infer(asking(task.goal), task=task)
    assert world.records("egress_result")[0]["status"] == "error"


async def test_i10_locality_is_checked_for_each_request_and_goes_stale(make_world: Any) -> None:
    world = make_world(replies=["a", "b"], locality=Locality.L0)
    with world.perimeter.task("q") as task:
        await world.client.infer(asking(task.goal), task=task)
        wire = world.backend.encode(asking(task.goal))
        world.clock.advance(60)
        stale = world.perimeter.release(wire, Label(), "scripted")
        assert stale.reason == "locality-stale"
        await world.client.infer(asking(task.goal), task=task)
    assert [record["locality"] for record in world.records("backend")] == ["L0"]


async def test_p1_release_denies_a_backend_nobody_registered(make_world: Any) -> None:
    world = make_world()
    wire = world.backend.encode(asking())
    assert world.perimeter.release(wire, Label(), "rogue").reason == "backend-not-registered"


async def test_i12_no_content_reaches_the_trace(make_world: Any) -> None:
    world = make_world(replies=[CANARY])
    with world.perimeter.task(CANARY) as task:
        await world.client.infer(asking(task.goal, task.instruction(CANARY)), task=task)
    for log in world.store.files.values():
        assert CANARY.encode() not in log.data
    assert CANARY not in repr(task)
    assert CANARY not in repr(task.goal)
    assert CANARY not in repr(world.backend.transport.sent[0])


def test_i12_what_a_program_is_raised_shows_nothing_that_it_gave(make_world: Any) -> None:
    """Media, texts and matters stand in the frames below; a traceback with locals would show them."""
    world = make_world()
    with world.perimeter.task("q") as task:
        calls: tuple[Callable[[str], object], ...] = (
            lambda word: task.media(word.encode(), "bad type"),
            lambda word: task.derive(word, []),
            lambda word: task.foreign([word], declared=DataClass.C1, source="x"),
            lambda word: task.instruction([word]),
            lambda word: world.client.task("q", matter=word),
            lambda word: world.perimeter.task([word]),
        )
        for call in calls:
            with pytest.raises(Exception, match=r".") as caught:
                call(CANARY.upper())
            shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
            below = [frame for frame in shown.stack if "/tests/" not in frame.filename]
            assert [frame.name for frame in below][-1:] == ["seam"]
            assert not any(CANARY.upper() in str(frame.locals) for frame in below)
