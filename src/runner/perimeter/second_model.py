# SPDX-License-Identifier: Apache-2.0
"""A local model as second opinion: one question about one window of a text, by its own way through the gate.

Owns the order of a question: encode, release, record, seal to disk, send, read. It is the order of any send,
and the record is that of any send, of the task, with the block it is about as its input. Leaves what is asked
to `second.py` and what comes of it to `opinions.py`. Carries P1, I4 and I9.

A text that is still to be judged may be anything, so the question is labelled C3: it goes where C3 may go,
which is never to another machine, and to none below the locality grade the profile asks for C3. It asks no
second opinion: `Perimeter.release()` knows rules only.
"""

from functools import partial
from typing import Final, Protocol, assert_never

import anyio
import anyio.to_thread

from runner.kernel.decisions import Allowed, Denied, Redacted, Release
from runner.kernel.errors import BackendError, EgressDenied
from runner.kernel.inference import WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block
from runner.kernel.opinions import Opinion
from runner.kernel.ports import Backend
from runner.perimeter.client import Registration
from runner.perimeter.exchange import exchange
from runner.perimeter.probe import egress_record
from runner.perimeter.release import Checked
from runner.perimeter.replies import was_ended
from runner.perimeter.results import encoded, failures_on_record, record_result
from runner.perimeter.second import QUESTION, ask_about, parse_answer, windows
from runner.perimeter.task import Task
from runner.perimeter.trace import records
from runner.perimeter.trace.log import Trace

UNJUDGED: Final = Label(declared=DataClass.C3)
"""The label of a question: what it is about may be anything."""


class Gate(Protocol):
    """The part of the perimeter that a question passes."""

    @property
    def trace(self) -> Trace:
        """The record."""

    def registration(self, backend: str) -> Registration:
        """Return how `backend` is registered."""

    async def check_locality(self, backend: Backend) -> Checked:
        """Return how local `backend` is, checked now."""

    def release(
        self, wire: WireRequest, label: Label, backend: str, *, checked: Checked | None = None
    ) -> Release:
        """Judge the bytes."""

    def record_egress(self, sent: records.Egress, backend: Backend, *, task: str | None = None) -> None:
        """Put a send on record, after the grade it was judged with."""


class LocalModel:
    """A model that a backend of this machine serves. Implements `Adviser`."""

    def __init__(self, backend: Backend) -> None:
        self.name = f"local:{backend.model}"
        self.version = f"{backend.model}+{QUESTION}"
        self._backend = backend

    async def ask(self, block: Block, task: Task, gate: Gate) -> Opinion:
        """Return the highest opinion on any window of the text of `block`.

        Raises `ValueError` for a text of too many windows, `EgressDenied` where the backend is not local
        enough, `BackendError` or `TransportError` for no answer, and `TraceError`.
        """
        found = Opinion.NONE
        for window in windows(block.text):
            found = max(found, await self._about(window, block, task, gate), key=lambda each: each.data_class)
            if found.data_class is DataClass.C3:
                break
        return found

    async def _about(self, window: str, block: Block, task: Task, gate: Gate) -> Opinion:
        request = ask_about(window)
        wire = encoded(self._backend.name, partial(self._backend.encode, request))
        checked = await gate.check_locality(self._backend)
        decision = gate.release(wire, UNJUDGED, self._backend.name, checked=checked)
        sent = egress_record(
            gate.trace,
            decision,
            wire,
            backend=self._backend.name,
            locality=checked.locality,
            inputs=(block.id,),
        )
        gate.record_egress(sent, self._backend, task=task.id)
        match decision:
            case Denied():
                await anyio.to_thread.run_sync(gate.trace.barrier)
                name = self._backend.name
                raise EgressDenied(backend=name, reason=decision.reason, data_class=decision.data_class)
            case Allowed() | Redacted():
                way = gate.registration(self._backend.name)
                with failures_on_record(gate.trace, sent, task=task.id):
                    await anyio.to_thread.run_sync(gate.trace.barrier)
                    reply = await exchange(
                        decision.wire,
                        request,
                        self._backend,
                        transport=way.transport,
                        credential=None,
                        timeout_s=way.timeout_s,
                        on_text=None,
                    )
                size = len(reply.text.encode("utf-8", "surrogatepass"))
                record_result(gate.trace, sent, "ok", task=task.id, size=size, usage=reply.usage)
                if not was_ended(reply, request):
                    raise BackendError("truncated: the model did not end its answer")
                return parse_answer(reply.text)
            case _:
                assert_never(decision)
