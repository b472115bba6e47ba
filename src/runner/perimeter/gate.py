# SPDX-License-Identifier: Apache-2.0
"""The perimeter: the one object that holds backends, transports, tools, policy and record.

Owns `seal`, `seal_tools`, `task` and `release`, the single call site of P1. Leaves the order of a
call to `client.py` and `toolbox.py`, and the rules to `release.py` and `policy.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, final

from runner.kernel.decisions import Denied, Release, Span
from runner.kernel.errors import SealError
from runner.kernel.inference import WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.ports import Approver, Backend, Clock, Locality, Tool
from runner.perimeter.client import Registration, SealedClient
from runner.perimeter.policy import Policy
from runner.perimeter.probe import ask_server
from runner.perimeter.redact import Redactor
from runner.perimeter.release import Rules, judge
from runner.perimeter.sealed import claim_witness
from runner.perimeter.task import Task
from runner.perimeter.toolbox import SealedTools
from runner.perimeter.trace import records
from runner.perimeter.trace.commit import caps_digest
from runner.perimeter.trace.log import Trace

_WITNESS: Final = claim_witness()
_UNPROBED: Final = caps_digest({"probed": False})
"""The capabilities of a backend nobody has probed."""

LOCALITY_FRESH_S: Final = 5.0
"""How long a checked locality grade counts, in seconds: one connection's beginning, no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    locality: Locality
    at: float


@final
class Perimeter:
    """Where everything is decided. One per profile; `runner.open_profile` builds it."""

    def __init__(
        self,
        *,
        rules: Rules,
        policy: Policy,
        trace: Trace,
        clock: Clock,
        registrations: Mapping[str, Registration],
        approver: Approver | None = None,
    ) -> None:
        self.policy = policy
        self.trace = trace
        self.clock = clock
        self.approver = approver
        self._rules = rules
        self._registrations = dict(registrations)
        self._checked: dict[str, _Checked] = {}

    def __repr__(self) -> str:
        """Return the registered names only."""
        return f"<Perimeter backends={sorted(self._registrations)}>"

    def seal(self, backend: Backend) -> SealedClient:
        """Return the sealed client for `backend`; raise `SealError` if the profile does not register it."""
        self.registration(backend.name)
        return SealedClient(_WITNESS, self, backend)

    def seal_tools(self, tools: Sequence[Tool]) -> SealedTools:
        """Return `tools` behind the policy; raise `SealError` when two have one name."""
        by_name = {tool.spec.name: tool for tool in tools}
        if len(by_name) != len(tools):
            raise SealError("two tools have the same name")
        return SealedTools(_WITNESS, self, by_name)

    @contextmanager
    def task(self, goal: str) -> Iterator[Task]:
        """Open a task for what the user asked, and close it on record however it ends."""
        task = Task(
            goal,
            trace=self.trace,
            classifier=self._rules.classifier,
            fault_as_c3=self._rules.fault_as_c3,
            redactor=Redactor(self.trace.mint_id) if self._rules.redaction else None,
        )
        try:
            yield task
        except BaseException as error:
            task.end("failed" if isinstance(error, Exception) else "cancelled")
            raise
        task.end(task.outcome)

    def release(
        self, wire: WireRequest, label: Label, backend: str, *, removed: tuple[Span, ...] | None = None
    ) -> Release:
        """Return whether the bytes of `wire`, made from content labelled `label`, may go to `backend`.

        `removed` says that they were redacted, and where. Total: an unknown backend, a stale locality and any fault are `Denied`.
        """
        registration = self._registrations.get(backend)
        if registration is None:
            return Denied(reason="backend-not-registered", data_class=max(label.data_class, DataClass.C2))
        checked = self._checked.get(backend)
        if checked is None or self.clock.monotonic() - checked.at > LOCALITY_FRESH_S:
            return Denied(reason="locality-stale", data_class=label.data_class)
        return judge(
            wire,
            label,
            terms=registration.terms,
            locality=checked.locality,
            rules=self._rules,
            removed=removed,
        )

    def registration(self, backend: str) -> Registration:
        """Return how `backend` is registered; raise `SealError` if it is not."""
        if backend not in self._registrations:
            raise SealError(f"backend {backend!r} is not registered by the profile")
        return self._registrations[backend]

    async def check_locality(self, backend: Backend) -> Locality:
        """Return how local `backend` is, checked now; a change goes on record (I10).

        First by its address. A server on this machine is then asked about itself, and what it says may raise
        the grade or lower it; its questions go out under the grade of the address.
        """
        registration = self.registration(backend.name)
        locality = Locality.REMOTE
        if registration.terms.local:
            locality = await registration.locality.grade(registration.terms.address)
        self._note(backend, locality)
        if locality is Locality.L0 and registration.server is not None:
            questions = registration.server.questions
            answers = await ask_server(self, backend.name, registration.transport, questions, locality)
            locality = registration.server.grade(answers)
            self._note(backend, locality)
        return locality

    def _note(self, backend: Backend, locality: Locality) -> None:
        """Keep a checked grade; put it on record if it is not the latest one there."""
        known = self._checked.get(backend.name)
        self._checked[backend.name] = _Checked(locality=locality, at=self.clock.monotonic())
        if known is None or known.locality is not locality:
            self.trace.append(self._backend_record(backend, locality))

    def _backend_record(self, backend: Backend, locality: Locality) -> records.Backend:
        return records.Backend(
            name=backend.name,
            model=backend.model,
            locality=locality,
            is_local=locality is not Locality.REMOTE,
            caps_digest=_UNPROBED,
            endpoint_commit=self.trace.commit(str(backend.address).encode()),
        )
