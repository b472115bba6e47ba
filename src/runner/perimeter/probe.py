# SPDX-License-Identifier: Apache-2.0
"""Questions to a model server about itself, and the record of any send on channel `inference`.

Owns the order of a question: release, record, seal to disk, send, as for a request, but without a task and
with no content. Leaves what to ask and what answers mean to a `ServerCheck`, or to a codec. Carries P1, I4,
I9, and I10: no answer is the answer None, so silence never raises a grade.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Literal, Protocol, assert_never

import anyio
import anyio.to_thread

from runner.kernel.decisions import Allowed, Denied, Redacted, Release
from runner.kernel.errors import Redirected, TraceError, TraceUnavailable
from runner.kernel.inference import Address, Answer, WireRequest
from runner.kernel.labels import Label
from runner.kernel.ports import Credential, Endpoint, Locality, LocalityCheck, ServerCheck, Transport
from runner.perimeter.release import Checked
from runner.perimeter.trace import records
from runner.perimeter.trace.log import Trace

ANSWER_TIMEOUT_S: Final = 2.0
"""How long one question may take. Two of them stay within the freshness of a grade."""
MAX_ANSWER_BYTES: Final = 4 << 20
ADDRESS_TIMEOUT_S: Final = 5.0
"""How long grading an address may take, name resolution included."""
PROBE_TIMEOUT_S: Final = 120.0
"""How long a run waits for a probe, all in all, and never more than half of the time it has left."""
_LOOK_S: Final = 0.02
"""How often one who waits looks whether another's probe is over."""


class Gate(Protocol):
    """The part of the perimeter that a question passes."""

    @property
    def trace(self) -> Trace:
        """The record."""

    def release(
        self, wire: WireRequest, label: Label, backend: str, *, checked: Checked | None = None
    ) -> Release:
        """Judge the bytes."""

    def record_egress(self, sent: records.Egress, backend: Endpoint, *, task: str | None = None) -> None:
        """Put a send on record, after the grade it was judged with."""


class Turn(Protocol):
    """A lock for threads."""

    def acquire(self, *, blocking: bool) -> bool:
        """Take it, and say whether it was free."""

    def release(self) -> None:
        """Give it back."""


async def grade_address(check: LocalityCheck, address: Address) -> Locality:
    """Return how local `check` finds `address`; `REMOTE` when it fails, hangs or answers no grade (I7)."""
    try:
        with anyio.fail_after(ADDRESS_TIMEOUT_S):
            return _as_grade(await check.grade(address))
    except Exception:  # noqa: BLE001 - in doubt nothing is local
        return Locality.REMOTE


async def grade_server(
    gate: Gate, backend: Endpoint, transport: Transport, server: ServerCheck, checked: Checked
) -> Locality:
    """Return the grade that `server` reads in the answers of the server of `backend`; in doubt `REMOTE`.

    Raises `TraceError` when a question could not be recorded, and then it was not sent.
    """
    try:
        answers = await ask_server(gate, backend, transport, server.questions, checked)
        return _as_grade(server.grade(answers))
    except TraceError:
        raise
    except Exception:  # noqa: BLE001 - in doubt nothing is local
        return Locality.REMOTE


def _as_grade(answer: object) -> Locality:
    """Return `answer` if it is a grade: a check is somebody's code, and may say anything."""
    return answer if isinstance(answer, Locality) else Locality.REMOTE


async def ask_server(
    gate: Gate,
    backend: Endpoint,
    transport: Transport,
    questions: Sequence[WireRequest],
    checked: Checked,
    *,
    credential: Credential | None = None,
    timeout_s: float = ANSWER_TIMEOUT_S,
) -> tuple[Answer | None, ...]:
    """Return the answers of the server of `backend`, as `put` does, with None for a denied question too."""
    said = await put(gate, backend, transport, questions, checked, credential=credential, timeout_s=timeout_s)
    return tuple(None if isinstance(answer, Denied) else answer for answer in said)


async def put(
    gate: Gate,
    backend: Endpoint,
    transport: Transport,
    questions: Sequence[WireRequest],
    checked: Checked,
    *,
    credential: Credential | None = None,
    timeout_s: float = ANSWER_TIMEOUT_S,
) -> tuple[Answer | Denied | None, ...]:
    """Put `questions` to the server of `backend`, whose address was `checked`; return what came of each.

    That is None when there was no whole reply in `timeout_s` seconds. A redirect is an answer without a body.
    `credential` is for a backend that answers nobody without it. Raises
    `TraceError` when it could not be recorded, and then nothing was sent.
    """
    decisions = [gate.release(wire, Label(), backend.name, checked=checked) for wire in questions]
    sends = [
        egress_record(gate.trace, decision, wire, backend=backend.name, locality=checked.locality, inputs=())
        for decision, wire in zip(decisions, questions, strict=True)
    ]
    asked: list[tuple[Release, records.Egress]] = []
    answers: list[Answer | Denied | None] = []
    try:
        for decision, sent in zip(decisions, sends, strict=True):
            gate.record_egress(sent, backend)
            asked.append((decision, sent))
        await anyio.to_thread.run_sync(gate.trace.barrier)
        for decision, sent in asked:
            answers.append(
                await _answer(
                    gate.trace, decision, sent, transport, credential=credential, timeout_s=timeout_s
                )
            )
    except TraceUnavailable:
        raise  # there is no record to put it on
    except BaseException:  # cancelled, or one was refused: what was let go and got no result has this one
        gate.trace.barrier()
        for decision, sent in asked[len(answers) :]:
            if not isinstance(decision, Denied):
                _record_result(gate.trace, sent, "cancelled", 0)
        raise
    return tuple(answers)


async def _answer(
    trace: Trace,
    decision: Release,
    sent: records.Egress,
    transport: Transport,
    *,
    credential: Credential | None,
    timeout_s: float,
) -> Answer | Denied | None:
    match decision:
        case Denied():
            return decision
        case Allowed() | Redacted():
            answer, status = await _exchange(decision.wire, transport, credential, timeout_s)
        case _:
            assert_never(decision)
    _record_result(trace, sent, status, 0 if answer is None else len(answer.body))
    return answer


def _record_result(trace: Trace, sent: records.Egress, status: records.Status, size: int) -> None:
    trace.append(records.EgressResult(call_id=sent.call_id, send_id=sent.send_id, status=status, bytes=size))


async def _exchange(
    wire: WireRequest, transport: Transport, credential: Credential | None, timeout_s: float
) -> tuple[Answer | None, records.Status]:
    """Send `wire`; return the answer, if there is one, and how the send ended. Cancellation passes."""
    try:
        with anyio.fail_after(timeout_s):
            async with transport.open(wire, credential=credential) as reply:
                body = b""
                async for chunk in reply.chunks:
                    body += chunk
                    if len(body) > MAX_ANSWER_BYTES:
                        return None, "error"
                return Answer(status=reply.status, body=body), "ok"
    except TimeoutError:
        return None, "timeout"
    except Redirected as redirect:
        return Answer(status=redirect.status, body=b""), "error"
    except Exception:  # noqa: BLE001 - a `TransportError`, or whatever else a transport comes up with (I7)
        return None, "error"


def egress_record(
    trace: Trace,
    decision: Release,
    wire: WireRequest,
    *,
    backend: str,
    locality: Locality,
    inputs: tuple[str, ...],
    declassify: str | None = None,
) -> records.Egress:
    """Return the record of sending `wire`, made from the blocks `inputs`, or of denying it.

    `declassify` names the record that lowered their class, if one did.
    """
    word: Literal["allowed", "redacted", "denied"]
    match decision:
        case Allowed():
            word, reason, body, found = "allowed", None, decision.wire.body, decision.label.data_class
        case Redacted():
            word, reason, body, found = "redacted", None, decision.wire.body, decision.label.data_class
        case Denied():
            word, reason, body, found = "denied", decision.reason, wire.body, decision.data_class
        case _:
            assert_never(decision)
    return records.Egress(
        call_id=trace.mint_id(),
        send_id=trace.mint_id(),
        channel="inference",
        backend=backend,
        locality=locality,
        data_class=found,
        inputs=inputs,
        decision=word,
        reason=reason,
        payload_commit=trace.commit(body),
        bytes=len(body),
        declassify=declassify,
    )


async def at_first_need(
    probe: Callable[[], Awaitable[object]], *, wanted: Callable[[], bool], lock: Turn
) -> None:
    """Await `probe()` if it is still `wanted` when `lock` is free; it found nothing if it fails or is late.

    Tasks of several event loops may need it at once: so the lock is one for threads, and nobody blocks on it.
    Raises `TraceError`.
    """
    left = anyio.current_effective_deadline() - anyio.current_time()
    with anyio.move_on_after(min(PROBE_TIMEOUT_S, left / 2)):
        async with _held(lock):
            if not wanted():
                return
            try:
                await probe()
            except TraceError:
                raise
            except Exception:  # noqa: BLE001 - a codec or a store is somebody's code: nothing was found (I7)
                return


@asynccontextmanager
async def _held(lock: Turn) -> AsyncIterator[None]:
    while not lock.acquire(blocking=False):  # noqa: ASYNC110 - an event belongs to one event loop
        await anyio.sleep(_LOOK_S)
    try:
        yield
    finally:
        lock.release()
