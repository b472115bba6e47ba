# SPDX-License-Identifier: Apache-2.0
"""The perimeter: the one object that holds backends, transports, tools, policy and record.

Owns `seal`, `seal_tools`, `task` and `release`, the single call site of P1. Leaves the order of a
call to `client.py` and `toolbox.py`, and the rules to `release.py` and `policy.py`.
"""

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, final

from runner.kernel.capabilities import UNPROBED, Capabilities
from runner.kernel.decisions import Denied, Release, Span
from runner.kernel.errors import PerimeterError, SealError, raises_bare_here
from runner.kernel.inference import WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import JsonObject
from runner.kernel.opinions import Opinion
from runner.kernel.ports import (
    Approver,
    Backend,
    CallReader,
    Clock,
    Embedder,
    Endpoint,
    FindingStore,
    Locality,
    Tool,
)
from runner.kernel.web import Url
from runner.perimeter.client import Registration, SealedClient
from runner.perimeter.declassify import Subtraction
from runner.perimeter.fetching import Outlet, page_terms
from runner.perimeter.fixed import exact_text, fixed_backend, fixed_embedder
from runner.perimeter.opening import Opening
from runner.perimeter.opinions import Opinions
from runner.perimeter.outgoing import Outgoing
from runner.perimeter.policy import Policy
from runner.perimeter.probe import at_first_need, grade_address, grade_server
from runner.perimeter.probing import Probe, probe_backend
from runner.perimeter.recent import RecentSends, place_of
from runner.perimeter.redact import Redactor
from runner.perimeter.release import Checked, Rules, judge
from runner.perimeter.sealed import claim_witness
from runner.perimeter.task import Examined, Task, examine
from runner.perimeter.texts import values_of
from runner.perimeter.toolbox import SealedTools
from runner.perimeter.trace import records
from runner.perimeter.trace.commit import caps_digest
from runner.perimeter.trace.log import Trace
from runner.perimeter.validate import unjudgeable

_WITNESS: Final = claim_witness()
_UNPROBED: Final = caps_digest({"probed": False})
"""The digest of what is known of a backend that nobody has probed."""

LOCALITY_FRESH_S: Final = 5.0
"""How long a checked locality grade counts, in seconds: one connection's beginning, no more."""
_NOWHERE: Final = float("nan")
"""The time of a clock that failed: no other is near it."""


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
        opinions: Opinions | None = None,
        findings: FindingStore | None = None,
        reader: CallReader | None = None,
        outlet: Outlet | None = None,
    ) -> None:
        self.policy = policy
        self.outlet = outlet
        self.trace = trace
        self.clock = clock
        self.approver = approver
        self.reader = reader
        self._rules = rules
        self._opinions = opinions
        self._registrations = dict(registrations)
        self._recent = RecentSends()
        self._finished: dict[str, Checked] = {}  # the last whole check of each backend; no half of one
        self._recording = threading.Lock()  # guards _recorded, and a send beside its grade
        self._findings = findings
        self._found: dict[str, Capabilities] = {}  # what each backend was seen to do
        self._probing = threading.Lock()  # held for a probe at the first need
        self._recorded: dict[str, records.Backend] = {}  # the latest record of each backend

    def __repr__(self) -> str:
        """Return the registered names only."""
        return f"<Perimeter backends={sorted(self._registrations)}>"

    def seal(self, backend: Backend, *, embedder: Embedder | None = None) -> SealedClient:
        """Return the sealed client for `backend`, which embeds by `embedder`, if there is one.

        Raises `SealError` if the profile does not register both.
        """
        self.registration(backend.name)
        if embedder is not None:
            self.registration(embedder.name)
            embedder = fixed_embedder(embedder)
        return SealedClient(_WITNESS, self, fixed_backend(backend), embedder)

    def seal_tools(self, tools: Sequence[Tool]) -> SealedTools:
        """Return `tools` behind the policy.

        Raises `SealError` when two have one name, and for one whose arguments could take for ever to judge.
        """
        by_name = {tool.spec.name: tool for tool in tools}
        if len(by_name) != len(tools):
            raise SealError("two tools have the same name")
        for name, tool in by_name.items():
            where = unjudgeable(tool.spec.parameters)
            if where is not None:
                raise SealError(
                    f"tool {name!r}: {where} of its parameters could take for ever to judge."
                    " Fix: use patterns that RE2 compiles, without look-around and back-references"
                )
        return SealedTools(_WITNESS, self, by_name)

    @raises_bare_here
    def task(self, goal: str, *, data_class: DataClass | None = None, matter: str | None = None) -> Opening:
        """Return the opening of a task for what the user asked, closed on record however it ends.

        Use it by `with`, and on an event loop by `async with`. `data_class` is the least class of `goal`, as
        the user says; None leaves it at the default. `matter` is the one that it is for. Raises
        `PerimeterError` for a matter that no grant names.
        """
        if matter is not None and matter not in self.policy.matters:
            known = ", ".join(sorted(self.policy.matters)) or "none"
            raise PerimeterError(f"no grant names this matter. Fix: use one of the profile's: {known}")
        rules = self._rules
        reading = partial(
            examine, classifier=rules.classifier, echo=rules.echo, fault_as_c3=rules.fault_as_c3
        )
        opening = partial(self._open_task, data_class=data_class, matter=matter)
        return Opening(exact_text(goal), reading, opening)

    def _open_task(
        self, goal: str, examined: Examined, *, data_class: DataClass | None, matter: str | None
    ) -> Task:
        return Task(
            goal,
            trace=self.trace,
            classifier=self._rules.classifier,
            fault_as_c3=self._rules.fault_as_c3,
            data_class=data_class,
            matter=matter,
            redactor=Redactor(self.trace.mint_id) if self._rules.redaction else None,
            echo=self._rules.echo,
            examined=examined,
        )

    def release(
        self,
        wire: WireRequest,
        label: Label,
        backend: str,
        *,
        removed: tuple[Span, ...] | None = None,
        subtracted: Subtraction | None = None,
        checked: Checked | None = None,
        schema: JsonObject | None = None,
        parts: Sequence[str] = (),
    ) -> Release:
        """Return whether the bytes of `wire`, made from content labelled `label`, may go to `backend`.

        `removed` says that they were redacted, and where; `subtracted` what of them a person let go to this
        backend. `schema` is that of the reply, as it was given: a codec may write it in pieces. `parts` are
        the texts it was made of: with what was sent lately, nothing may be split over them. `checked` is
        the caller's own check of locality; without one, the last that was finished counts. Total: an unknown
        backend, a stale locality, a yes that has expired or was for another backend, and any fault are
        `Denied`.
        """
        try:
            if subtracted is not None and not self._counts(subtracted, backend):
                return Denied(reason="declassification-over", data_class=label.data_class)
            return self._released(
                wire,
                label,
                backend,
                removed=removed,
                subtracted=subtracted,
                checked=checked,
                schema=schema,
                parts=(*self._recent.before(place_of(wire.address), parts), *parts) if parts else (),
            )
        except Exception:  # noqa: BLE001 - I7: any fault at all closes, and what it was about counts as C3
            return Denied(reason="fault.release", data_class=DataClass.C3)

    def _released(
        self,
        wire: WireRequest,
        label: Label,
        backend: str,
        *,
        removed: tuple[Span, ...] | None,
        subtracted: Subtraction | None,
        checked: Checked | None,
        schema: JsonObject | None,
        parts: Sequence[str],
    ) -> Release:
        registration = self._registrations.get(backend)
        if registration is None:
            return Denied(reason="backend-not-registered", data_class=max(label.data_class, DataClass.C2))
        checked = self._finished.get(backend) if checked is None else checked
        if checked is None or checked.backend != backend or self._is_stale(checked):
            return Denied(reason="locality-stale", data_class=label.data_class)
        return judge(
            wire,
            label,
            terms=registration.terms,
            locality=checked.locality,
            rules=self._rules,
            removed=removed,
            subtracted=subtracted,
            schema=schema,
            parts=parts,
        )

    def release_page(self, wire: WireRequest, label: Label, tool: str, url: Url) -> Release:
        """Return whether the bytes of `wire` may ask for `url`, an address composed of content so labelled.

        The grant of `tool` must hold its place, whoever named it. What the name of a host says is judged
        where the grant leaves a part of it open. With what was asked lately, nothing may be split over
        addresses. Total, as `release`.
        """
        try:
            grant = self.policy.grants[tool]
            terms = page_terms(grant, url, None if self.outlet is None else self.outlet.ceiling)
            if terms is None or (wire.address, wire.path) != (url.address, url.target):
                return Denied(reason="address-not-registered", data_class=label.data_class)
            parts, place = values_of(wire), place_of(wire.address)
            before = [*self._recent.before(tool, parts), *self._recent.before(place, parts)]
            return judge(
                wire,
                label,
                terms=terms,
                locality=Locality.REMOTE,
                rules=self._rules,
                parts=(*before, *parts),
            )
        except Exception:  # noqa: BLE001 - I7: any fault at all closes, and what it was about counts as C3
            return Denied(reason="fault.release", data_class=DataClass.C3)

    def record_page(self, sent: records.Egress, task: str, tool: str, wire: WireRequest) -> None:
        """Put a send of `tool` on record, and keep what it says for the next; raise `TraceError`."""
        self.trace.append(sent, task=task)
        if sent.decision != "denied":
            with self._recording:
                self._recent.remember(tool, values_of(wire))
                if any(wire.address.host == each.terms.address.host for each in self._registrations.values()):
                    self._recent.remember(place_of(wire.address), values_of(wire))

    @property
    def declassification(self) -> bool:
        """Whether a person may let content go to a backend that is not local."""
        return self._rules.declassification

    async def second_opinion(self, outgoing: Outgoing, backend: str, task: Task) -> bool:
        """Ask for second opinions on what would leave this machine for `backend`; say whether anyone was.

        Nobody is, about what the rules deny, what stays here, and what this task has an opinion on: then this
        returns at once. What was said has raised the task. Raises `ClassifierFault` and `TraceError`.
        """
        if self._opinions is None or isinstance(outgoing.decision, Denied):
            return False
        if self.registration(backend).terms.local:
            return False
        return await self._opinions.give(outgoing.request, task, self)

    async def opinion_on(self, text: str) -> Opinion | None:
        """Ask for a second opinion on `text`, as a task of its own on record; return it, None for no opinion.

        None too where the profile asks nobody. Raises `ClassifierFault` and `TraceError`.
        """
        async with self.task(text) as task:
            return None if self._opinions is None else await self._opinions.about(task.goal, task, self)

    def registration(self, backend: str) -> Registration:
        """Return how `backend` is registered; raise `SealError` if it is not."""
        if backend not in self._registrations:
            raise SealError(f"backend {backend!r} is not registered by the profile")
        return self._registrations[backend]

    async def check_locality(self, backend: Endpoint) -> Checked:
        """Return how local `backend` is, checked now (I10).

        First by its address. A server on this machine is then asked about itself, and what it says may raise
        the grade or lower it; its questions go out under the grade of the address. A check that fails, takes
        too long or answers no grade found nothing local. Raises `TraceError` when a question could not be
        recorded.
        """
        registration = self.registration(backend.name)
        locality = Locality.REMOTE
        if registration.terms.local:
            locality = await grade_address(registration.locality, registration.terms.address)
        checked = self._checked(backend, locality)
        if locality is Locality.L0 and registration.server is not None:
            answered = await grade_server(self, backend, registration.transport, registration.server, checked)
            checked = self._checked(backend, answered)
        self._finished[backend.name] = checked
        return checked

    def known(self, backend: str) -> Capabilities | None:
        """Return what `backend` was seen to do in this runtime; None if nobody asked it yet."""
        return self._found.get(backend)

    @property
    def keeps_findings(self) -> bool:
        """Whether there is a place for findings: without one, nobody is asked for the sake of a run."""
        return self._findings is not None

    async def capabilities(self, backend: Endpoint) -> Capabilities:
        """Return what `backend` was seen to do; it is asked at the first need, once per runtime.

        A probe that fails or takes too long found nothing, and that stands too: it never ends what it is for.
        Raises `SealError` if `backend` is not registered, and `TraceError`.
        """
        if self.registration(backend.name).codec is None:
            return UNPROBED
        wanted = partial(self._is_unknown, backend.name)
        await at_first_need(partial(self.probe, backend), wanted=wanted, lock=self._probing)
        return self._found.setdefault(backend.name, UNPROBED)

    def _is_unknown(self, backend: str) -> bool:
        return backend not in self._found

    async def probe(self, backend: Endpoint, *, forms: bool = False, fresh: bool = False) -> Probe:
        """Find out what `backend` does, and put it on record; a `fresh` finding goes by nothing kept before.

        With `forms`, the other forms of its protocol are tried, which no codec uses: that is for people to
        read, and changes nothing. Raises `SealError` if it is not registered, and `TraceError`.
        """
        way = self.registration(backend.name)
        if way.codec is None:
            return Probe(capabilities=UNPROBED)
        came = await probe_backend(
            self, backend, way.codec, way, store=self._findings, forms=forms, fresh=fresh
        )
        if not forms:
            self._found[backend.name] = came.capabilities
            checked = self._finished.get(backend.name)
            with self._recording:
                self._record_backend(backend, Locality.REMOTE if checked is None else checked.locality)
        return came

    def record_egress(
        self,
        sent: records.Egress,
        backend: Endpoint,
        *,
        task: str | None = None,
        lowering: records.Declassify | None = None,
        parts: Sequence[str] = (),
    ) -> None:
        """Put a send to `backend` on record, after the grade it was judged with and what lowered its class.

        `parts` are the texts that leave with it: they are remembered for the sends to come, unless the
        backend is as local as C3 needs, where whatever they make together may go too.

        A grade that is not the latest on record goes first, and no other call's comes between the two: the
        record tells of each send how local its backend was for that very send. Raises `TooLate` when what
        lowered its class has expired by the time of the record, and then the send is not on it; `TraceError`.
        """
        with self._recording:
            self._record_backend(backend, sent.locality)
            before = None if lowering is None else lowering.expires
            if lowering is not None:
                self.trace.append(lowering, task=task, before=before)
            self.trace.append(sent, task=task, before=before)
            if parts and sent.locality.rank < self._rules.locality_c3.rank:  # else nothing found can matter
                self._recent.remember(place_of(backend.address), parts)

    def _checked(self, backend: Endpoint, locality: Locality) -> Checked:
        return Checked(backend=backend.name, locality=locality, at=self._monotonic())

    def _counts(self, subtracted: Subtraction, backend: str) -> bool:
        return subtracted.backend == backend and self.trace.now_us() < subtracted.until

    def _is_stale(self, checked: Checked) -> bool:
        """Say whether a check is too old; one from a clock that went back or stands nowhere is."""
        return not 0 <= self.clock.monotonic() - checked.at <= LOCALITY_FRESH_S

    def _monotonic(self) -> float:
        """Return the clock, or nowhere when it fails: what was checked then is stale at once."""
        try:
            return self.clock.monotonic()
        except Exception:  # noqa: BLE001 - as above
            return _NOWHERE

    def _record_backend(self, backend: Endpoint, locality: Locality) -> None:
        """Put on record what `backend` is, unless the latest record of it says the same."""
        found = self._found.get(backend.name)
        digest = _UNPROBED if found is None else caps_digest(found.as_json())
        latest = self._recorded.get(backend.name)
        if latest is not None and (latest.locality, latest.caps_digest) == (locality, digest):
            return
        record = records.Backend(
            name=backend.name,
            model=backend.model,
            locality=locality,
            is_local=locality is not Locality.REMOTE,
            caps_digest=digest,
            endpoint_commit=self.trace.commit(str(backend.address).encode()),
        )
        self.trace.append(record)
        self._recorded[backend.name] = record
