# SPDX-License-Identifier: Apache-2.0
"""The sealed client: one inference, in order, through the one way out.

Owns the sequence encode, release, record, seal to disk, send, decode, label, validate. Leaves the
judgement to `Perimeter.release()` and sending to the transport. Carries P1, I4 and I9. Where redaction can
help, the request is rewritten, encoded again and judged again: what leaves is always what was judged last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, assert_never, final

import anyio.to_thread

from runner.kernel.capabilities import Capabilities
from runner.kernel.decisions import Allowed, Denied, Redacted
from runner.kernel.errors import BackendError, EgressDenied, ReplyInvalid, SealError, raises_bare
from runner.kernel.inference import InferenceReply, InferenceRequest, Usage, WireRequest
from runner.kernel.labels import DataClass, join_labels
from runner.kernel.messages import Block, BlockKind
from runner.kernel.ports import (
    Backend,
    Credential,
    Embedder,
    Endpoint,
    LocalityCheck,
    Probeable,
    ServerCheck,
    Transport,
)
from runner.perimeter.aside import aside, in_time
from runner.perimeter.consent import LASTS_S, Desk, Destination, let_go, offer, propose
from runner.perimeter.embed import Embeddings, embed_batch
from runner.perimeter.exchange import exchange
from runner.perimeter.fixed import fixed_request
from runner.perimeter.opening import Opening
from runner.perimeter.outgoing import Outgoing, Shown, blocks_in, judge_request, record_send, restored
from runner.perimeter.redact import Redactor
from runner.perimeter.release import BackendTerms, Checked
from runner.perimeter.results import encoded, failures_on_record, record_result
from runner.perimeter.sealed import Sealed, refuse_subclass
from runner.perimeter.task import Task
from runner.perimeter.validate import fits, parse_json

OnText = Callable[[str], None]
"""Called with each piece of text as it arrives. In a reply with a schema, tokens show as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A backend the profile configures: its terms, and the only way its bytes travel.

    `server` asks a local server about itself; without one, loopback is all that is checked. `codec` knows how
    to ask the runtime what it does; without one, that stays unknown.
    """

    terms: BackendTerms
    transport: Transport = field(repr=False)
    locality: LocalityCheck = field(repr=False)
    server: ServerCheck | None = field(default=None, repr=False)
    codec: Probeable | None = field(default=None, repr=False)
    credential: Credential | None = None
    timeout_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer. `value` is the validated JSON when the request had a schema, else None.

    `said` is the same value as the model wrote it, its tokens not restored: whoever goes on from an answer
    goes by that, so that a model elsewhere cannot see from what follows what a token stands for.
    """

    block: Block
    value: Any = field(repr=False)
    said: Any = field(repr=False)
    usage: Usage


class Boundary(Desk, Protocol):
    """The part of the perimeter that a sealed client works through: the gate, and what stands around it."""

    def registration(self, backend: str) -> Registration:
        """Return how `backend` is registered."""

    async def check_locality(self, backend: Endpoint) -> Checked:
        """Return how local `backend` is, checked now."""

    async def capabilities(self, backend: Endpoint) -> Capabilities:
        """Return what `backend` was seen to do, asked at the first need."""

    async def second_opinion(self, outgoing: Outgoing, backend: str, task: Task) -> bool:
        """Say whether somebody was asked about what would leave: then it is to be judged again."""

    def task(self, goal: str, *, data_class: DataClass | None = None, matter: str | None = None) -> Opening:
        """Return the opening of a task for a goal of at least this class, and of this matter."""


@final
class SealedClient(Sealed):
    """A model behind the perimeter: the only client an `AgentLoop` accepts. Made by `Perimeter.seal`."""

    __slots__ = ("_backend", "_boundary", "_embedder")

    def __init__(
        self, witness: object, boundary: Boundary, backend: Backend, embedder: Embedder | None = None
    ) -> None:
        super().__init__(witness)
        self._boundary = boundary
        self._backend = backend
        self._embedder = embedder

    def __init_subclass__(cls) -> None:
        """Raise `SealError`."""
        refuse_subclass(cls)

    @property
    def backend(self) -> str:
        """The configured name of the backend."""
        return self._backend.name

    @property
    def embeds(self) -> str | None:
        """The model that `embed` asks; None when the profile configures none."""
        return None if self._embedder is None else self._embedder.model

    @raises_bare
    async def capabilities(self) -> Capabilities:
        """Return what the backend was seen to do; it is asked at the first need, once per runtime.

        Sends at most five canaries, each on record; see `docs/explanation/probes.md`. Nothing is known of a
        backend that cannot be asked. Raises `TraceError`.
        """
        return await self._boundary.capabilities(self._backend)

    @property
    def perimeter(self) -> object:
        """The perimeter that sealed this client, to be compared by identity only."""
        return self._boundary

    def task(self, goal: str, *, data_class: DataClass | None = None, matter: str | None = None) -> Opening:
        """Return the opening of a task for what the user asked, inside this client's perimeter.

        Use it by `with`, and on an event loop by `async with`: a long goal then holds up nobody. `data_class`
        is the least class of `goal`, as the user says: None for what anybody types. `matter` is the client
        matter it is for, as a grant of the profile names it. Raises `PerimeterError` for one that no grant
        names.
        """
        return self._boundary.task(goal, data_class=data_class, matter=matter)

    @raises_bare
    async def infer(self, request: InferenceRequest, *, task: Task, on_text: OnText | None = None) -> Reply:
        """Ask the model, if the perimeter lets these bytes go.

        Raises `EgressDenied`; `BackendError`, `TransportError` or `ReplyInvalid` when the exchange
        failed; `ClassifierFault` when the reply could not be classified or a second opinion not be had;
        `TraceError` when something could not be recorded, and then nothing was sent.
        What is raised shows no frame of an exchange, since these hold prompts and replies (I12).
        """
        request = fixed_request(request)
        blocks = _blocks_of(request, task)
        wire = encoded(self._backend.name, partial(self._backend.encode, request))
        checked, outgoing = await self._decided(request, wire, blocks, task)
        decision, sent = record_send(
            self._boundary,
            self._backend,
            outgoing.decision,
            wire=wire,
            blocks=blocks,
            checked=checked,
            task=task,
            yes=outgoing.yes,
        )
        match decision:
            case Denied() as denied:
                await anyio.to_thread.run_sync(self._boundary.trace.barrier)
                raise EgressDenied(
                    backend=self._backend.name, reason=denied.reason, data_class=denied.data_class
                )
            case Allowed() | Redacted():
                pass
            case _:
                assert_never(decision)
        if not self._boundary.registration(self._backend.name).terms.local:
            task.expose()
        with failures_on_record(self._boundary.trace, sent, task=task.id):
            await anyio.to_thread.run_sync(self._boundary.trace.barrier)
            raw, reply = await self._answered(request, outgoing, decision, task, on_text)
            examined = await aside(partial(task.examine, reply.text), size=len(reply.text))
            # What the model said is computed from what it saw: that is the residue. What stood behind the
            # tokens stays in the label, and what a person let go it saw in clear.
            label = join_labels([task.mark, *(block.label for block in blocks), decision.label])
            residue = decision.label if outgoing.yes is None else label
            block = task.mint(BlockKind.MODEL, reply.text, label, blocks, residue=residue, examined=examined)
            if isinstance(decision, Redacted):
                task.wrote(block, raw.text)
            if outgoing.yes is not None:
                task.clearances.said(block, self._backend.name)
        size = len(raw.text.encode("utf-8", "surrogatepass"))
        record_result(self._boundary.trace, sent, "ok", task=task.id, size=size, block=block.id)
        value, said = _validated_twice(reply, request, raw, outgoing.request)
        return Reply(block=block, value=value, said=said, usage=reply.usage)

    @raises_bare
    async def embed(self, blocks: Sequence[Block], *, task: Task) -> Embeddings:
        """Return the vectors of the texts in `blocks`, minted by `task`, as one batch, one send.

        The model is the one that the profile names for this backend (`embeddings`). The vectors carry a label
        no lower than that of anything in the batch, and so does the task from then on.

        Raises `EgressDenied` for the whole batch when one text of it, or the task, is above the ceiling;
        `BackendError` when the profile names no such model, and for a batch that is empty, above `MAX_BATCH`
        texts or holds media; `TransportError` or `ReplyInvalid` when the exchange failed; `TraceError` when
        it could not be recorded, and then nothing was sent.
        """
        if self._embedder is None:
            name = self._backend.name
            fix = f"write inference.{name}.embeddings: MODEL in it"
            raise BackendError(f"backend {name!r}: the profile names no model for embeddings. Fix: {fix}")
        return await embed_batch(self._boundary, self._embedder, blocks, task=task)

    @raises_bare
    async def declassify(
        self,
        block: Block,
        *,
        task: Task,
        spans: Sequence[tuple[int, int]] | None = None,
        lasts_s: float = LASTS_S,
    ) -> bool:
        """Ask a person whether `block` may go to this backend, in this task, for `lasts_s` seconds.

        Returns their answer, True for what may leave anyway. `spans` are the parts of its text that may, in
        code points: then the rest of it counts as before. Without an approver, for C3, and unless the profile
        says `perimeter.declassification: ask`, the answer is no. A yes sends nothing: the next `infer` is
        judged without what was let go, and everything else in it counts.

        Raises `SealError` for a block that this task did not mint, `PerimeterError` for one without text, and
        for spans or a time out of bounds, and `TraceError`.
        """
        if not task.owns(block):
            raise SealError("this task did not mint the block: nobody knows its label")
        return await let_go(self._boundary, propose(block, self._to, spans, lasts_s), task=task)

    @property
    def _to(self) -> Destination:
        terms = self._boundary.registration(self._backend.name).terms
        return Destination(backend=self._backend, terms=terms)

    async def _decided(
        self, request: InferenceRequest, wire: WireRequest, blocks: tuple[Block, ...], task: Task
    ) -> tuple[Checked, Outgoing]:
        """Return how local the backend is and the decision about `wire`, which nobody has to be asked about.

        Rules come first. What they would let leave, a second opinion is asked about; what only C2 content
        keeps, a person. Both take time and may change what the task is, so locality and bytes are then judged
        afresh.
        """
        while True:
            checked = await self._boundary.check_locality(self._backend)
            outgoing = await self._judged(request, wire, blocks, checked, task)
            if await self._boundary.second_opinion(outgoing, self._backend.name, task):
                continue
            if not await offer(
                self._boundary, outgoing, self._to, request=request, wire=wire, checked=checked, task=task
            ):
                return checked, outgoing

    async def _judged(
        self,
        request: InferenceRequest,
        wire: WireRequest,
        blocks: tuple[Block, ...],
        checked: Checked,
        task: Task,
    ) -> Outgoing:
        """Return the decision about `wire`, made with everything the task has seen until now.

        What another call of this task reads meanwhile raises mark or residue (I8): then it is judged again.
        """
        while True:
            mark, residue, seen = task.mark, task.residue, len(task.blocks)
            judge = partial(
                judge_request,
                self._boundary,
                self._backend,
                request,
                wire=wire,
                label=join_labels([mark, *(block.label for block in blocks)]),
                ceiling=self._boundary.registration(self._backend.name).terms.ceiling,
                checked=checked,
                task=task,
            )
            late = Outgoing(
                request=request, decision=Denied(reason="fault.release", data_class=mark.data_class)
            )
            seconds = self._boundary.registration(self._backend.name).timeout_s
            outgoing = await in_time(judge, seconds=seconds, late=late)
            unchanged = outgoing.yes is None or len(task.blocks) == seen  # a new block may not be covered
            if unchanged and (task.mark, task.residue) == (mark, residue):
                return outgoing

    async def _answered(
        self,
        request: InferenceRequest,
        outgoing: Outgoing,
        decision: Allowed | Redacted,
        task: Task,
        on_text: OnText | None,
    ) -> tuple[InferenceReply, InferenceReply]:
        """Send what was decided; return the reply as it came, and as it is with its tokens restored."""
        match decision:
            case Allowed():
                raw = await self._exchange(decision.wire, request, on_text)
                return raw, raw
            case Redacted():
                redactor = _map_of(task)
                redactor.mark_sent(outgoing.entries)
                shown = Shown(redactor, on_text, whole=request.schema is not None)
                raw = await self._exchange(decision.wire, outgoing.request, shown.feed)
                shown.finish()
                return raw, restored(raw, request, redactor)
            case _:
                assert_never(decision)

    async def _exchange(
        self, wire: WireRequest, request: InferenceRequest, on_text: OnText | None
    ) -> InferenceReply:
        way = self._boundary.registration(self._backend.name)
        return await exchange(
            wire,
            request,
            self._backend,
            transport=way.transport,
            credential=way.credential,
            timeout_s=way.timeout_s,
            on_text=on_text,
        )


def _blocks_of(request: InferenceRequest, task: Task) -> tuple[Block, ...]:
    """Return the request's blocks, each once; raise `SealError` for one this task did not mint unaltered."""
    blocks = blocks_in(request)
    if not all(task.owns(block) for block in blocks):
        raise SealError("a request holds a block that this task did not mint: nobody knows its label")
    return blocks


def _map_of(task: Task) -> Redactor:
    """Return the task's map; raise `SealError` if it has none, and so nothing was redacted by it."""
    if task.redactor is None:
        raise SealError("a redacted request without a map")
    return task.redactor


def _validated_twice(
    reply: InferenceReply, request: InferenceRequest, raw: InferenceReply, sent: InferenceRequest
) -> tuple[Any, Any]:
    """Return the value of `reply`, a reply to `request`, and what was `raw` said to what was `sent`.

    Both are validated. What fits as it was said, and not with its tokens restored, stays as it was said: what
    follows must not tell a model elsewhere how long a value is. Raises `ReplyInvalid` otherwise.
    """
    said = _validated(raw, sent)
    if reply is raw:
        return said, said
    try:
        return _validated(reply, request), said
    except ReplyInvalid:
        return (_validated(raw, request), said)


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
