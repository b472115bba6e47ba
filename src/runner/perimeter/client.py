# SPDX-License-Identifier: Apache-2.0
"""The sealed client: one inference, in order, through the one way out.

Owns the sequence encode, release, record, seal to disk, send, decode, label, validate. Leaves the
judgement to `Perimeter.release()` and sending to the transport. Carries P1, I4 and I9.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, assert_never, final

import anyio
import anyio.to_thread

from runner.kernel.decisions import Allowed, Denied, Redacted, Release
from runner.kernel.errors import (
    BackendError,
    EgressDenied,
    ReplyInvalid,
    RunnerError,
    SealError,
    TransportError,
)
from runner.kernel.inference import InferenceReply, InferenceRequest, Usage, WireRequest
from runner.kernel.labels import Label, join_labels
from runner.kernel.messages import Block, BlockKind
from runner.kernel.ports import Backend, Credential, Locality, LocalityCheck, ServerCheck, Transport
from runner.perimeter.probe import egress_record
from runner.perimeter.release import BackendTerms
from runner.perimeter.sealed import Sealed, refuse_subclass
from runner.perimeter.task import Task
from runner.perimeter.trace import records
from runner.perimeter.trace.log import Trace
from runner.perimeter.validate import fits, parse_json

OnText = Callable[[str], None]
"""Called with each piece of text as it arrives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A backend the profile configures: its terms, and the only way its bytes travel.

    `server` asks a local server about itself; without one, loopback is all that is checked.
    """

    terms: BackendTerms
    transport: Transport = field(repr=False)
    locality: LocalityCheck = field(repr=False)
    server: ServerCheck | None = field(default=None, repr=False)
    credential: Credential | None = None
    timeout_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer. `value` is the validated JSON when the request had a schema, else None."""

    block: Block
    value: Any = field(repr=False)
    usage: Usage


class Boundary(Protocol):
    """The part of the perimeter that a sealed client works through."""

    @property
    def trace(self) -> Trace:
        """The record."""

    def registration(self, backend: str) -> Registration:
        """Return how `backend` is registered."""

    async def check_locality(self, backend: Backend) -> Locality:
        """Check and record how local `backend` is, now."""

    def release(self, wire: WireRequest, label: Label, backend: str) -> Release:
        """Judge the bytes."""

    def task(self, goal: str) -> AbstractContextManager[Task]:
        """Open a task."""


@final
class SealedClient(Sealed):
    """A model behind the perimeter: the only client an `AgentLoop` accepts. Made by `Perimeter.seal`."""

    __slots__ = ("_backend", "_boundary")

    def __init__(self, witness: object, boundary: Boundary, backend: Backend) -> None:
        super().__init__(witness)
        self._boundary = boundary
        self._backend = backend

    def __init_subclass__(cls) -> None:
        """Raise `SealError`."""
        refuse_subclass(cls)

    @property
    def backend(self) -> str:
        """The configured name of the backend."""
        return self._backend.name

    @property
    def perimeter(self) -> object:
        """The perimeter that sealed this client, to be compared by identity only."""
        return self._boundary

    def task(self, goal: str) -> AbstractContextManager[Task]:
        """Open a task for what the user asked, inside this client's perimeter."""
        return self._boundary.task(goal)

    async def infer(self, request: InferenceRequest, *, task: Task, on_text: OnText | None = None) -> Reply:
        """Ask the model, if the perimeter lets these bytes go.

        Raises `EgressDenied`; `BackendError`, `TransportError` or `ReplyInvalid` when the exchange
        failed; `TraceError` when it could not be recorded, and then nothing was sent.
        """
        blocks = _blocks_of(request, task)
        label = join_labels([task.mark, *(block.label for block in blocks)])
        wire = self._backend.encode(request)
        locality = await self._boundary.check_locality(self._backend)
        decision = self._boundary.release(wire, label, self._backend.name)
        sent = egress_record(
            self._boundary.trace,
            decision,
            wire,
            backend=self._backend.name,
            locality=locality,
            inputs=tuple(block.id for block in blocks),
        )
        self._boundary.trace.append(sent, task=task.id)
        await anyio.to_thread.run_sync(self._boundary.trace.barrier)
        match decision:
            case Denied():
                raise EgressDenied(
                    backend=self._backend.name, reason=decision.reason, data_class=decision.data_class
                )
            case Allowed() | Redacted():
                reply = await self._exchange(decision.wire, request, sent, task, on_text)
            case _:
                assert_never(decision)
        block = task.mint(BlockKind.MODEL, reply.text, decision.label, blocks)
        self._record_result(sent, task, "ok", len(reply.text.encode("utf-8", "surrogatepass")), block.id)
        return Reply(block=block, value=_validated(reply, request), usage=reply.usage)

    async def _exchange(
        self,
        wire: WireRequest,
        request: InferenceRequest,
        sent: records.Egress,
        task: Task,
        on_text: OnText | None,
    ) -> InferenceReply:
        """Send and decode; a failure is put on record with its status before it is raised."""
        registration = self._boundary.registration(self._backend.name)
        try:
            with anyio.fail_after(registration.timeout_s):
                async with registration.transport.open(wire, credential=registration.credential) as reply:
                    decoder = self._backend.decoder(request, reply.status)
                    async for chunk in reply.chunks:
                        text = decoder.feed(chunk)
                        if text and on_text is not None:
                            on_text(text)
                    return decoder.finish()
        except TimeoutError:
            self._record_result(sent, task, "timeout", 0, None)
            raise TransportError(f"backend {self._backend.name!r} did not answer in time") from None
        except RunnerError:
            self._record_result(sent, task, "error", 0, None)
            raise
        except Exception as error:  # noqa: BLE001 - a foreign fault is translated, its text dropped (I12)
            self._record_result(sent, task, "error", 0, None)
            problem = f"backend {self._backend.name!r}: its reply could not be read ({type(error).__name__})"
            raise BackendError(problem) from None
        except anyio.get_cancelled_exc_class():
            self._record_result(sent, task, "cancelled", 0, None)
            raise

    def _record_result(
        self, sent: records.Egress, task: Task, status: records.Status, size: int, block: str | None
    ) -> None:
        result = records.EgressResult(
            call_id=sent.call_id, send_id=sent.send_id, status=status, bytes=size, block=block
        )
        self._boundary.trace.append(result, task=task.id)


def _blocks_of(request: InferenceRequest, task: Task) -> tuple[Block, ...]:
    """Return the request's blocks; raise `SealError` for one that this task did not mint unaltered."""
    blocks = tuple(block for message in request.messages for block in message.blocks)
    if not all(task.owns(block) for block in blocks):
        raise SealError("a request holds a block that this task did not mint: nobody knows its label")
    return blocks


def _validated(reply: InferenceReply, request: InferenceRequest) -> Any:  # noqa: ANN401 - parsed JSON
    """Return the parsed reply if the request had a schema; raise `ReplyInvalid` if it does not fit it."""
    if request.schema is None:
        return None
    if reply.finish == "length":
        raise ReplyInvalid("truncated: the reply reached its token limit before it was complete")
    try:
        value = parse_json(reply.text)
    except ValueError:
        raise ReplyInvalid("malformed_json: the reply is not JSON") from None
    if not fits(value, request.schema):
        raise ReplyInvalid("schema_violation: the reply does not fit its schema")
    return value
