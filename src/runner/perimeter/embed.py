# SPDX-License-Identifier: Apache-2.0
"""One batch of texts turned into vectors, in order, through the one way out.

Owns the sequence encode, release, record, seal to disk, send, read, validate, label: one send, one decision
and one result for the whole batch. Leaves the judgement to `Perimeter.release()`. Carries P1, I4, I8 and I9.
A batch is judged as the join of everything in it and of what the task has seen: one text above the ceiling
keeps all of it here. Nothing in it is redacted: the vector of a token would be of no use, and nobody would
know.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, assert_never

import anyio.to_thread

from runner.kernel.decisions import Allowed, Denied, Redacted, Release
from runner.kernel.errors import BackendError, EgressDenied, ReplyInvalid, SealError
from runner.kernel.inference import EmbeddingReply, EmbeddingRequest, InferenceRequest, Usage, WireRequest
from runner.kernel.labels import join_labels
from runner.kernel.messages import Block, Message, Role
from runner.kernel.ports import Credential, Embedder, Endpoint, Transport
from runner.perimeter.aside import aside, in_time
from runner.perimeter.exchange import collect
from runner.perimeter.outgoing import Gate as RequestGate
from runner.perimeter.outgoing import Outgoing, parts_of, record_send
from runner.perimeter.release import Checked
from runner.perimeter.results import encoded, failures_on_record, record_result
from runner.perimeter.task import Task

MAX_BATCH: Final = 2048
"""The most texts of one batch. More are several batches, each judged and on record by itself."""
MAX_DIMENSIONS: Final = 16_384
"""The longest vector that is taken."""
VECTOR_BYTES: Final = 1 << 18
SLACK_BYTES: Final = 1 << 20
"""What a reply may hold for each vector, and beyond them."""


class Way(Protocol):
    """How the bytes for a backend travel."""

    @property
    def transport(self) -> Transport:
        """What sends them."""

    @property
    def credential(self) -> Credential | None:
        """What is added to them."""

    @property
    def timeout_s(self) -> float:
        """How long an answer may take, in seconds."""


class Gate(RequestGate, Protocol):
    """The part of the perimeter that a batch passes."""

    def registration(self, backend: str) -> Way:
        """Return how `backend` is registered."""

    async def check_locality(self, backend: Endpoint) -> Checked:
        """Return how local `backend` is, checked now."""

    async def second_opinion(self, outgoing: Outgoing, backend: str, task: Task) -> bool:
        """Say whether somebody was asked about what would leave: then it is to be judged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """The vectors of a batch: one for each of its blocks, in order, all of one length, all numbers finite.

    `block` stands for them on record. Its label is theirs: no lower than that of anything in the batch.
    """

    block: Block
    vectors: tuple[tuple[float, ...], ...] = field(repr=False)
    usage: Usage


async def embed_batch(gate: Gate, embedder: Embedder, blocks: Sequence[Block], *, task: Task) -> Embeddings:
    """Return the vectors of `blocks`, if the perimeter lets the batch go. See `SealedClient.embed`."""
    _check(blocks, task)
    request = EmbeddingRequest(blocks=tuple(blocks))
    inputs = tuple(dict.fromkeys(blocks))
    wire = encoded(embedder.name, partial(embedder.encode, request))
    checked, decision = await _decided(gate, embedder, wire, inputs, task)
    decision, sent = record_send(
        gate, embedder, decision, wire=wire, blocks=inputs, checked=checked, task=task
    )
    match decision:
        case Denied() as denied:
            await anyio.to_thread.run_sync(gate.trace.barrier)
            raise EgressDenied(backend=embedder.name, reason=denied.reason, data_class=denied.data_class)
        case Allowed() | Redacted():
            pass
        case _:
            assert_never(decision)
    with failures_on_record(gate.trace, sent, task=task.id):
        await anyio.to_thread.run_sync(gate.trace.barrier)
        reply, size = await _answered(gate, embedder, request, decision.wire)
        label = join_labels([task.mark, *(block.label for block in inputs), decision.label])
        payload = json.dumps(reply.vectors, separators=(",", ":")).encode("ascii")
        block = task.vectors(payload, label, inputs, residue=decision.label)
    record_result(gate.trace, sent, "ok", task=task.id, size=size, block=block.id, usage=reply.usage)
    return Embeddings(block=block, vectors=reply.vectors, usage=reply.usage)


def _check(blocks: Sequence[Block], task: Task) -> None:
    """Raise `SealError` for a block this task did not mint unaltered, `BackendError` for too few or many."""
    if not 0 < len(blocks) <= MAX_BATCH:
        raise BackendError(f"a batch has 1 to {MAX_BATCH} texts. Fix: embed in several batches")
    if not all(task.owns(block) for block in blocks):
        raise SealError("a batch holds a block that this task did not mint: nobody knows its label")


async def _decided(
    gate: Gate, embedder: Embedder, wire: WireRequest, inputs: tuple[Block, ...], task: Task
) -> tuple[Checked, Release]:
    """Return how local the model is and the decision about the batch, which nobody has to be asked about.

    As for a request: a second opinion is asked about each text that the rules would let leave, and may raise
    the task.
    """
    about = InferenceRequest(messages=(Message(role=Role.USER, blocks=inputs),))
    while True:
        checked = await gate.check_locality(embedder)
        decision = await _judged(gate, embedder, wire=wire, inputs=inputs, checked=checked, task=task)
        outgoing = Outgoing(request=about, decision=decision)
        if not await gate.second_opinion(outgoing, embedder.name, task):
            return checked, decision


async def _judged(
    gate: Gate,
    embedder: Embedder,
    *,
    wire: WireRequest,
    inputs: tuple[Block, ...],
    checked: Checked,
    task: Task,
) -> Release:
    """Return the decision about the batch, made with everything the task has seen until now (I8)."""
    while True:
        mark = task.mark
        label = join_labels([mark, *(block.label for block in inputs)])
        parts = parts_of(inputs)
        judge = partial(gate.release, wire, label, embedder.name, checked=checked, parts=parts)
        late = Denied(reason="fault.release", data_class=label.data_class)
        seconds = gate.registration(embedder.name).timeout_s
        decision: Release = await in_time(judge, seconds=seconds, late=late)
        if task.mark == mark:
            return decision


async def _answered(
    gate: Gate, embedder: Embedder, request: EmbeddingRequest, wire: WireRequest
) -> tuple[EmbeddingReply, int]:
    """Send what was decided; return the validated vectors, and how many bytes they came in."""
    way = gate.registration(embedder.name)
    answer = await collect(
        wire,
        backend=embedder.name,
        transport=way.transport,
        credential=way.credential,
        timeout_s=way.timeout_s,
        limit=len(request.blocks) * VECTOR_BYTES + SLACK_BYTES,
    )
    parse = partial(embedder.parse, request, answer.status, answer.body)
    reply = await aside(parse, size=len(answer.body))
    _validate(reply, len(request.blocks))
    return reply, len(answer.body)


def _validate(reply: EmbeddingReply, count: int) -> None:
    """Raise `ReplyInvalid` unless there are `count` vectors of one length, of finite numbers."""
    lengths = {len(vector) for vector in reply.vectors}
    if len(reply.vectors) != count:
        raise ReplyInvalid("vectors_missing: the reply has not one vector for each text")
    if len(lengths) != 1 or not 0 < min(lengths) <= MAX_DIMENSIONS:
        raise ReplyInvalid(f"vectors_uneven: the vectors are not all of one length of 1 to {MAX_DIMENSIONS}")
    if not all(abs(number) < float("inf") for vector in reply.vectors for number in vector):
        raise ReplyInvalid("vectors_not_finite: a vector holds what is not a finite number")
