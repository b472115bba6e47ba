# SPDX-License-Identifier: Apache-2.0
"""Asking for a page: each send judged and on record before it leaves, redirects like any other.

Owns the order judge, record, seal to disk, send, record, and what a redirect is: a new request that the
server composed, at most five, none from https to http. Leaves whether the call may run to `policy.py`, the
judgement of the bytes to `Perimeter.release_page`, and what a page says to the tool. Carries P1, P2 and I9;
I5: a credential is added once a request was let go, and never after a redirect to somewhere else; and I12:
the record and what a denial says name no host, no path and nothing that a server said.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, assert_never

import anyio
import anyio.to_thread

from runner.kernel.decisions import Allowed, Denied, Redacted, Release
from runner.kernel.errors import ToolError, TransportError
from runner.kernel.inference import Answer, WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.ports import Credential, GrantedCall, Locality, ToolOutput, Transport, WebTool
from runner.kernel.web import Url, follow, place_of
from runner.perimeter.fixed import fixed_wire
from runner.perimeter.logins import NOBODY, Logins, stand_in
from runner.perimeter.policy import ToolGrant
from runner.perimeter.release import BackendTerms
from runner.perimeter.task import Task
from runner.perimeter.trace import records
from runner.perimeter.trace.log import Trace

MOST_REDIRECTS: Final = 5
"""How often in a row a page may be somewhere else."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
NOT_PLAIN: Final = "address-not-plain"
_IN_ADDRESS: Final = "credential-in-address"
_IN_PAGE: Final = "credential-in-page"
_IN_WORDS: Final = {
    "address-not-registered": "that host, path or port is not granted",
    NOT_PLAIN: "it leads to an address that is not plain https",
    "redirect-to-plain-http": "it leads from https to http",
    "too-many-redirects": f"it leads elsewhere more than {MOST_REDIRECTS} times",
    _IN_ADDRESS: "the credential of a host stands in the address",
    _IN_PAGE: "it repeats the credential of a host, and is not shown",
    "c3-never-leaves": "the address says what is privileged",
    "class-above-ceiling": "the address says more than may leave",
    "more-than-is-read": "the address is longer than can be judged",
}
"""What a model is told of a denial, by the rule on record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """The one way of tools to the network: a `transport`, and the class above which nothing leaves by it.

    `logins` are the credentials that pages are asked for with.
    """

    transport: Transport
    ceiling: DataClass | None
    logins: Logins = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """A page to be asked for: who asks, in which call, and of what the address was composed.

    `label` is that of the address, and `inputs` are the blocks that it follows from.
    """

    tool: WebTool
    call: GrantedCall
    url: Url = field(repr=False)
    label: Label
    inputs: tuple[str, ...]
    call_id: str


def page_terms(grant: ToolGrant, url: Url, ceiling: DataClass | None) -> BackendTerms | None:
    """Return what `grant` says of asking for `url`, where `ceiling` may leave; None for no place of it."""
    place, sink = place_of(url, grant.places), grant.flow.sink
    if place is None or sink is None:
        return None
    return BackendTerms(
        name=grant.tool,
        local=False,
        address=url.address,
        ceiling=None if ceiling is None else min(ceiling, sink.ceiling),
        any_host=place.is_open,
    )


class PageDenied(ToolError):
    """A page, or where it led to, was not asked for. `rule` is the reason on record."""

    def __init__(self, rule: str) -> None:
        self.rule = rule
        super().__init__(_IN_WORDS.get(rule, "that page may not be asked for"))


class PageGate(Protocol):
    """The part of the perimeter that a page is asked for through."""

    @property
    def trace(self) -> Trace:
        """The record."""

    @property
    def outlet(self) -> Outlet | None:
        """The way out; None where there is none, and then every request is denied."""

    def release_page(self, wire: WireRequest, label: Label, tool: str, url: Url) -> Release:
        """Judge the bytes that ask for `url`."""

    def record_page(self, sent: records.Egress, task: str, tool: str, wire: WireRequest) -> None:
        """Put a send on record; what it says is remembered if it leaves."""


async def fetch(gate: PageGate, what: Fetch, task: Task) -> ToolOutput:
    """Return what the tool reads in the page, wherever it led within the grant.

    Raises `PageDenied` when a request was not let go, which is on record as a send; `ToolError` when no page
    came; `TraceError` when something could not be recorded, and then nothing was sent.

    Once a server has led away from where it was asked, what follows is asked as nobody. What a server said is
    compared with what was sent on the way to it only, so no stranger learns of a credential from a denial.
    The first address is compared with every one: whoever composed it, no server did.
    """
    url, denial, redirects, led_away = what.url, None, 0, False
    logins, sent = _logins(gate), list[Credential]()
    while True:
        if stand_in(sent if redirects else logins.every, str(url)):
            denial = _IN_ADDRESS
        credential = None if led_away else logins.credential_for(url)
        answer = await _ask(gate, what, url, task, denial=denial, credential=credential)
        sent += [] if credential is None else [credential]
        if answer.status not in REDIRECTS:
            break
        before, redirects = url, redirects + 1
        url = _led_to(gate, what, before, answer, task)
        led_away = led_away or url.address != before.address
        if (before.scheme, url.scheme) == ("https", "http"):
            denial = "redirect-to-plain-http"
        elif redirects > MOST_REDIRECTS:
            denial = "too-many-redirects"
    return await anyio.to_thread.run_sync(partial(_read, what, url, answer, sent), abandon_on_cancel=True)


def _read(what: Fetch, url: Url, answer: Answer, sent: Sequence[Credential]) -> ToolOutput:
    """Return what the tool reads in `answer`, in all of which no credential stands that was `sent` for it.

    Raises `PageDenied` where one does, or might in what nobody reads; and `ToolError`.
    """
    output = what.tool.read(what.call, url, answer)
    if sent:
        quotable = "\n".join(excerpt.text for excerpt in output.excerpts)
        if stand_in(sent, *what.tool.texts(url, answer), output.text, quotable, unread=True):
            raise PageDenied(_IN_PAGE)
    return output


def _logins(gate: PageGate) -> Logins:
    return NOBODY if gate.outlet is None else gate.outlet.logins


def _transport(gate: PageGate) -> Transport:
    if gate.outlet is None:
        raise PageDenied("nothing-may-leave")
    return gate.outlet.transport


def _led_to(gate: PageGate, what: Fetch, url: Url, answer: Answer, task: Task) -> Url:
    """Return where the `answer` of `url` leads; raise `PageDenied`, on record, for no plain address."""
    location = answer.header("location") or ""
    further = follow(url, location) if location else None
    if further is None:
        asked = location.encode("utf-8", "surrogatepass")
        denied = _record(gate, what, asked, asked, data_class=what.label.data_class, reason=NOT_PLAIN)
        gate.trace.append(denied, task=task.id)
        raise PageDenied(NOT_PLAIN)
    return further


async def _ask(
    gate: PageGate, what: Fetch, url: Url, task: Task, *, denial: str | None, credential: Credential | None
) -> Answer:
    """Return the answer of `url`, if it may be asked: `denial` says why it may not, whatever else is judged.

    `credential` goes with it. Raises as `fetch`.
    """
    wire = fixed_wire(what.tool.request(url))
    name = what.tool.spec.name
    decision = gate.release_page(wire, what.label, name, url)
    if denial is not None:
        decision = Denied(reason=denial, data_class=what.label.data_class)
    sent = _egress(gate, what, decision, wire)
    gate.record_page(sent, task.id, name, wire)
    match decision:
        case Denied(reason=reason):
            await anyio.to_thread.run_sync(gate.trace.barrier)
            raise PageDenied(reason)
        case Allowed() | Redacted():
            return await _send(gate, decision.wire, sent, task, credential)
        case _:
            assert_never(decision)


async def _send(
    gate: PageGate, wire: WireRequest, sent: records.Egress, task: Task, credential: Credential | None
) -> Answer:
    """Send what was let go and is on record, once that is on the disk; return the whole answer.

    How it ended is on record, whatever ends it: once, and behind the seal of the send. Raises `ToolError`,
    naming nothing, and `TraceError`.
    """
    status: records.Status = "cancelled"
    size = 0
    try:
        await anyio.to_thread.run_sync(gate.trace.barrier)
        async with _transport(gate).open(wire, credential=credential) as reply:
            body = b"".join([chunk async for chunk in reply.chunks])
            status, size = "ok", len(body)
            return Answer(status=reply.status, body=body, headers=reply.headers)
    except TransportError:
        status = "error"
        problem = "that host cannot be reached, is not a public one, or did not answer as it should"
        raise ToolError(problem) from None
    except Exception:
        status = "error"
        raise
    finally:
        gate.trace.barrier()  # it may have been cancelled before
        result = records.EgressResult(call_id=sent.call_id, send_id=sent.send_id, status=status, bytes=size)
        gate.trace.append(result, task=task.id)


def _egress(gate: PageGate, what: Fetch, decision: Release, wire: WireRequest) -> records.Egress:
    """Return the record of asking for a page: it commits to the host, and to method and target."""
    host, asked = wire.address.host.encode(), f"{wire.method} {wire.path}".encode()
    match decision:
        case Denied(reason=reason, data_class=found):
            return _record(gate, what, host, asked, data_class=found, reason=reason)
        case Allowed(label=label) | Redacted(label=label):
            return _record(gate, what, host, asked, data_class=label.data_class)
        case _:
            assert_never(decision)


def _record(
    gate: PageGate,
    what: Fetch,
    host: bytes,
    asked: bytes,
    *,
    data_class: DataClass,
    reason: str | None = None,
) -> records.Egress:
    return records.Egress(
        call_id=what.call_id,
        send_id=gate.trace.mint_id(),
        channel="tool",
        host_commit=gate.trace.commit(host),
        locality=Locality.REMOTE,
        data_class=data_class,
        inputs=what.inputs,
        decision="allowed" if reason is None else "denied",
        reason=reason,
        payload_commit=gate.trace.commit(asked),
        bytes=len(asked),
    )
