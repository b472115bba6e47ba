# SPDX-License-Identifier: Apache-2.0
"""P1, I4, I8, I9, I12: a batch of texts is judged, sent and recorded as one; its vectors carry a label."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runner.kernel.errors import (
    BackendError,
    EgressDenied,
    ReplyInvalid,
    SealError,
    TraceError,
    TransportError,
)
from runner.kernel.inference import EmbeddingRequest
from runner.kernel.labels import DataClass, Integrity, Label
from runner.kernel.messages import Block, BlockKind
from runner.kernel.ports import Locality
from runner.perimeter.embed import MAX_BATCH, MAX_DIMENSIONS
from runner.testing import FakeClassifier, FakeFinding, FixedLocality, vector_of

pytestmark = pytest.mark.anyio

CANARY = "the-secret-of-the-client"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def texts(task: Any, *said: str, declared: DataClass = DataClass.C1) -> list[Block]:
    return [task.foreign(text, declared=declared, source="memory") for text in said]


async def test_p1_a_batch_is_one_send_on_record_and_its_vectors_come_back_labelled(make_world: Any) -> None:
    world = make_world(local=False, ceiling=DataClass.C1)
    with world.perimeter.task("index these") as task:
        blocks = texts(task, "one", "two", "three", "one")
        found = await world.client.embed(blocks, task=task)
        assert task.owns(found.block)
    assert found.vectors == tuple(map(vector_of, ["one", "two", "three", "one"]))
    (wire,) = world.embedder.transport.sent
    assert json.loads(wire.body)["input"] == ["one", "two", "three", "one"]
    assert world.backend.transport.sent == []
    (egress,) = world.records("egress")
    assert (egress["backend"], egress["decision"], egress["class"]) == (
        "scripted-embeddings",
        "allowed",
        "C1",
    )
    assert egress["inputs"] == [block.id for block in blocks]
    assert egress["bytes"] == len(wire.body)
    (result,) = world.records("egress_result")
    assert (result["send_id"], result["status"], result["block"]) == (egress["send_id"], "ok", found.block.id)
    assert found.block.label.data_class is DataClass.C1
    assert found.block.label.integrity is Integrity.UNTRUSTED
    assert found.block.label.sources == {"memory"}
    (labelled,) = [each for each in world.records("classify") if each["block"] == found.block.id]
    assert labelled["inputs"] == [block.id for block in blocks]


async def test_p1_one_text_above_the_ceiling_keeps_the_whole_batch_here(make_world: Any) -> None:
    world = make_world(local=False, ceiling=DataClass.C1)
    with world.perimeter.task("q") as task:
        blocks = [*texts(task, "public"), *texts(task, CANARY, declared=DataClass.C2)]
        with pytest.raises(EgressDenied) as caught:
            await world.client.embed(blocks, task=task)
    assert (caught.value.backend, caught.value.reason) == ("scripted-embeddings", "class-above-ceiling")
    assert world.embedder.transport.sent == []
    (egress,) = world.records("egress")
    assert (egress["decision"], egress["reason"], egress["class"]) == ("denied", "class-above-ceiling", "C2")
    assert world.records("egress_result") == []
    assert CANARY not in str(caught.value)


async def test_i8_after_reading_c3_a_harmless_batch_is_c3(make_world: Any) -> None:
    world = make_world(local=False, ceiling=DataClass.C1)
    with world.perimeter.task("q") as task:
        task.mint(BlockKind.TOOL, CANARY, Label(declared=DataClass.C3))
        with pytest.raises(EgressDenied, match="c3-never-leaves"):
            await world.client.embed(texts(task, "harmless"), task=task)


async def test_p1_the_gate_reads_every_text_of_the_batch(make_world: Any) -> None:
    """Declared C0, and found in the bytes all the same."""
    world = make_world(local=False, ceiling=DataClass.C1, classifier=FakeClassifier({"Rossi": DataClass.C2}))
    with world.perimeter.task("q") as task:
        blocks = texts(task, *["x"] * 50, "Rossi", declared=DataClass.C0)
        wire = world.embedder.encode(EmbeddingRequest(blocks=tuple(blocks)))
        await world.perimeter.check_locality(world.embedder)
        denied = world.perimeter.release(wire, Label(), "scripted-embeddings")
    assert (denied.reason, denied.data_class) == ("class-above-ceiling", DataClass.C2)


async def test_i8_vectors_are_no_lower_than_anything_in_their_batch(make_world: Any) -> None:
    world = make_world()
    with world.perimeter.task("q") as task:
        blocks = [*texts(task, "a", declared=DataClass.C3), *texts(task, "b", declared=DataClass.C0)]
        found = await world.client.embed(blocks[1:], task=task)
        assert task.mark.data_class is DataClass.C3
        assert task.residue.data_class is DataClass.C3
    assert found.block.label.data_class is DataClass.C3


async def test_i8_vectors_of_what_was_found_stay_found_however_they_are_written(make_world: Any) -> None:
    """What a detector finds can be redacted, a vector made of it cannot: it stays in the residue."""
    world = make_world(classifier=FakeClassifier({"Rossi": DataClass.C2}), redaction=True)
    with world.perimeter.task("q") as task:
        owed = task.mint(BlockKind.TOOL, "Rossi owes", Label(), residue=Label())
        before = task.residue.data_class
        await world.client.embed([owed], task=task)
        assert (before, task.residue.data_class) == (DataClass.C1, DataClass.C2)


async def test_i8_what_a_task_reads_while_locality_is_checked_counts_for_the_batch(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world()
    with world.perimeter.task("q") as task:
        blocks = texts(task, "a")

        async def meanwhile(_self: object, _address: object) -> Locality:
            task.mint(BlockKind.TOOL, "read by another call", Label(declared=DataClass.C3))
            return Locality.L2

        monkeypatch.setattr(FixedLocality, "grade", meanwhile)
        await world.client.embed(blocks, task=task)
    assert world.records("egress")[0]["class"] == "C3"


class Meanwhile(FakeClassifier):
    """Does `work` once, when it is shown `text`: as another call of the task would, at that moment."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.work: Callable[[], object] | None = None

    def classify(self, text: str, *, source: str | None = None) -> FakeFinding:
        """Find nothing."""
        if text == self._text and self.work is not None:
            work, self.work = self.work, None
            work()
        return super().classify(text, source=source)


async def test_i8_what_a_task_reads_while_a_batch_is_judged_counts_for_it(make_world: Any) -> None:
    reading = Meanwhile("scripted-embedder")
    world = make_world(local=False, ceiling=DataClass.C1, classifier=reading)
    with world.perimeter.task("q") as task:
        blocks = texts(task, "a")
        reading.work = lambda: task.mint(BlockKind.TOOL, CANARY, Label(declared=DataClass.C3))
        with pytest.raises(EgressDenied, match="c3-never-leaves"):
            await world.client.embed(blocks, task=task)
    assert world.embedder.transport.sent == []


async def test_i9_when_the_record_cannot_be_written_no_batch_is_sent(make_world: Any) -> None:
    world = make_world()
    with pytest.raises(TraceError), world.perimeter.task("q") as task:
        blocks = texts(task, "a")
        (log,) = world.store.files.values()
        log.fault = OSError(28, "disk full")
        await world.client.embed(blocks, task=task)
    assert world.embedder.transport.sent == []


async def test_i9_the_record_of_a_batch_is_sealed_before_it_leaves(make_world: Any) -> None:
    world = make_world()
    with world.perimeter.task("q") as task:
        await world.client.embed(texts(task, "a"), task=task)
    order = world.order()
    assert "seal" in order[order.index("egress") : order.index("egress_result")]


@pytest.mark.parametrize(
    ("vectors", "problem"),
    [
        ([[1.0]], "vectors_missing"),
        ([[1.0], [2.0], [3.0]], "vectors_missing"),
        ([[1.0], [2.0, 3.0]], "vectors_uneven"),
        ([[], []], "vectors_uneven"),
        ([[0.0] * (MAX_DIMENSIONS + 1)] * 2, "vectors_uneven"),
        ([[1.0], [float("nan")]], "vectors_not_finite"),
        ([[1.0], [float("-inf")]], "vectors_not_finite"),
    ],
    ids=["too few", "too many", "uneven", "empty", "too long", "nan", "infinite"],
)
async def test_vectors_are_validated_before_use(vectors: Any, problem: str, make_world: Any) -> None:
    world = make_world(vectors=[vectors])
    with world.perimeter.task("q") as task, pytest.raises(ReplyInvalid, match=problem):
        await world.client.embed(texts(task, "a", "b"), task=task)
    (result,) = world.records("egress_result")
    assert (result["status"], "block" in result) == ("error", False)


@pytest.mark.parametrize(
    ("fault", "raised", "status"),
    [
        (TransportError("broke off"), TransportError, "error"),
        (TimeoutError(), TransportError, "timeout"),
        (ValueError(CANARY), BackendError, "error"),
    ],
    ids=["transport", "timeout", "foreign"],
)
async def test_i4_a_batch_that_failed_has_one_result(
    fault: Exception, raised: type[Exception], status: str, make_world: Any
) -> None:
    world = make_world(vectors=[fault])
    with world.perimeter.task("q") as task, pytest.raises(raised) as caught:
        await world.client.embed(texts(task, "a"), task=task)
    assert [each["status"] for each in world.records("egress_result")] == [status]
    assert CANARY not in str(caught.value)


async def test_a_batch_is_of_texts_this_task_minted_and_not_too_many(make_world: Any) -> None:
    world = make_world()
    with world.perimeter.task("other") as other:
        foreign = other.goal
    with world.perimeter.task("q") as task:
        (block,) = texts(task, "a")
        for forged in (foreign, replace(block, text=CANARY), replace(block, label=Label())):
            with pytest.raises(SealError, match="did not mint"):
                await world.client.embed([block, forged], task=task)
        for batch in ([], [block] * (MAX_BATCH + 1)):
            with pytest.raises(BackendError, match="1 to"):
                await world.client.embed(batch, task=task)
    assert world.embedder.transport.sent == []


async def test_without_a_model_for_it_the_client_says_what_to_configure(make_world: Any) -> None:
    world = make_world()
    client = world.perimeter.seal(world.backend)
    assert (client.embeds, world.client.embeds) == (None, "scripted-embedder")
    with (
        world.perimeter.task("q") as task,
        pytest.raises(BackendError, match=r"inference\.scripted\.embeddings"),
    ):
        await client.embed([task.goal], task=task)


async def test_p1_an_embedder_nobody_registered_is_not_sealed(make_world: Any) -> None:
    world = make_world()
    world.embedder._name = "rogue"
    with pytest.raises(SealError, match="not registered"):
        world.perimeter.seal(world.backend, embedder=world.embedder)


async def test_i12_no_text_and_no_vector_is_in_the_record_or_a_repr(make_world: Any) -> None:
    world = make_world()
    with world.perimeter.task("q") as task:
        found = await world.client.embed(texts(task, CANARY), task=task)
    for log in world.store.files.values():
        assert CANARY.encode() not in log.data
        assert json.dumps(found.vectors[0][0]).encode() not in log.data
    assert str(found.vectors[0][0]) not in repr(found)
