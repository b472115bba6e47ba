# SPDX-License-Identifier: Apache-2.0
"""The sealed client: one inference, in order, through the one way out.

Owns the sequence encode, release, record, seal to disk, send, decode, label, validate. Leaves the
judgement to `Perimeter.release()`, sending to the transport, and what a reply comes to, to `replies.py`.
Carries P1, I4 and I9. Where redaction can help, the request is rewritten, encoded again and judged again:
what leaves is always what was judged last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, assert_never, final

import anyio.to_thread

from runner.kernel.capabilities import Capabilities, tiers_for
from runner.kernel.decisions import Allowed, Denied, Redacted
from runner.kernel.errors import (
    BackendError,
    EgressDenied,
    ReplyInvalid,
    SealError,
    raises_bare,
    raises_bare_here,
)
from runner.kernel.inference import InferenceReply, InferenceRequest, Usage, WireRequest, WrittenCall
from runner.kernel.labels import DataClass, join_labels
from runner.kernel.messages import Block, BlockKind, JsonObject, ToolCall, ToolSpec
from runner.kernel.ports import (
    Backend,
    CallReader,
    Credential,
    Embedder,
    Endpoint,
    LocalityCheck,
    Probeable,
    ServerCheck,
    Transport,
)
from runner.kernel.tiers import WITHOUT_NATIVE, Tier, tiers_from
from runner.perimeter.aside import aside, in_time
from runner.perimeter.consent import LASTS_S, Desk, Destination, let_go, offer, propose
from runner.perimeter.embed import Embeddings, embed_batch
from runner.perimeter.exchange import exchange
from runner.perimeter.fixed import fixed_request
from runner.perimeter.opening import Opening
from runner.perimeter.outgoing import Outgoing, Shown, blocks_in, judge_request, record_send, restored
from runner.perimeter.redact import Redactor
from runner.perimeter.release import BackendTerms, Checked
from runner.perimeter.replies import Asked, Heard, Understood, arguments_text, hear, understood_twice
from runner.perimeter.results import encoded, failures_on_record, record_result
from runner.perimeter.sealed import Sealed, refuse_subclass
from runner.perimeter.task import Examined, Task
from runner.perimeter.validate import plain

OnText = Callable[[str], None]
"""Called with each piece of text as it arrives. In a reply with a schema, tokens show as they are; calls that
stand in a text are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A backend the profile configures: its terms, and the only way its bytes travel.

    `server` asks a local server about itself; without one, loopback is all that is checked. `codec` knows how
    to ask the runtime what it does; without one, that stays unknown. `first` is the tier in which the profile
    says it is asked for calls first; without one, those that its capabilities allow are tried, or `tiers`
    where nothing is known of it.
    """

    terms: BackendTerms
    transport: Transport = field(repr=False)
    locality: LocalityCheck = field(repr=False)
    server: ServerCheck | None = field(default=None, repr=False)
    codec: Probeable | None = field(default=None, repr=False)
    credential: Credential | None = None
    timeout_s: float = 600.0
    first: Tier | None = None
    tiers: tuple[Tier, ...] = WITHOUT_NATIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call that a model asked for, which fits a tool that was offered; `said` are its arguments as written.

    See `Reply.said`.
    """

    call: ToolCall
    said: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer. `value` is the validated JSON when the request had a schema, else None.

    `calls` are those it asks for, all of them judged, where it was offered tools: none when it says something
    else. Each has a block of its own for its origin.

    `said` is the same value as the model wrote it, its tokens not restored: whoever goes on from an answer
    goes by that, so that a model elsewhere cannot see from what follows what a token stands for.
    """

    block: Block
    value: Any = field(repr=False)
    said: Any = field(repr=False)
    usage: Usage
    calls: tuple[AskedCall, ...] = ()


class Boundary(Desk, Protocol):
    """The part of the perimeter that a sealed client works through: the gate, and what stands around it."""

    @property
    def reader(self) -> CallReader | None:
        """Who reads calls in the text of a reply; None means nobody, and such calls cannot be asked for."""

    def registration(self, backend: str) -> Registration:
        """Return how `backend` is registered."""

    async def check_locality(self, backend: Endpoint) -> Checked:
        """Return how local `backend` is, checked now."""

    @property
    def keeps_findings(self) -> bool:
        """Whether there is a place for findings: without one, nobody is asked for the sake of a run."""

    def known(self, backend: str) -> Capabilities | None:
        """Return what `backend` was seen to do; None if nobody asked it yet."""

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
    def tiers(self) -> tuple[Tier, ...]:
        """How this model is asked for calls, in the order the ways are tried.

        The profile's word comes first, then what the backend was seen to do in this runtime (`capabilities`).
        Sends nothing.
        """
        way = self._boundary.registration(self._backend.name)
        found = self._boundary.known(self._backend.name)
        tiers = way.tiers if found is None else tiers_for(found)
        tiers = tiers if way.first is None else tiers_from(way.first)
        return tuple(tier for tier in tiers if tier is not Tier.TEXT or self._boundary.reader is not None)

    @property
    def may_probe(self) -> bool:
        """Whether the order of `tiers` waits for a probe.

        The profile leaves it open, the backend is called local, there is a way to ask, and nobody asked in
        this runtime yet. A remote one is probed by a person only: it need not learn that a run began whose
        first question is then denied.
        """
        way = self._boundary.registration(self._backend.name)
        open_yet = way.first is None and self._boundary.known(self._backend.name) is None
        return way.terms.local and open_yet and way.codec is not None and self._boundary.keeps_findings

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

    @raises_bare_here
    def task(self, goal: str, *, data_class: DataClass | None = None, matter: str | None = None) -> Opening:
        """Return the opening of a task for what the user asked, inside this client's perimeter.

        Use it by `with`, and on an event loop by `async with`: a long goal then holds up nobody. `data_class`
        is the least class of `goal`, as the user says: None for what anybody types. `matter` is the client
        matter it is for, as a grant of the profile names it. Raises `PerimeterError` for one that no grant
        names.
        """
        return self._boundary.task(goal, data_class=data_class, matter=matter)

    @raises_bare
    async def infer(
        self,
        request: InferenceRequest,
        *,
        task: Task,
        on_text: OnText | None = None,
        in_text: Sequence[ToolSpec] = (),
    ) -> Reply:
        """Ask the model, if the perimeter lets these bytes go.

        `in_text` are tools whose calls are read, strictly, in the text of the reply: the messages describe
        them to the model. All calls of a reply fit the tools that were offered, or it is `ReplyInvalid`.

        Raises `EgressDenied`; `BackendError`, `TransportError` or `ReplyInvalid` when the exchange
        failed; `ClassifierFault` when the reply could not be classified or a second opinion not be had;
        `TraceError` when something could not be recorded, and then nothing was sent.
        What is raised shows no frame of an exchange, since these hold prompts and replies (I12).
        """
        request = fixed_request(request)
        asked = self._asked(request, in_text)
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
            await aside(task.expose, size=len(task.goal.text))
        with failures_on_record(self._boundary.trace, sent, task=task.id, tier=asked.tier):
            await anyio.to_thread.run_sync(self._boundary.trace.barrier)
            raw, shown = await self._answered(asked, outgoing, decision, task, on_text)
            sent_as = replace(asked, request=outgoing.request)
            outcome = await aside(partial(_outcome, raw, shown, asked, sent_as), size=len(shown.text))
            found, said = _calls_of(outcome)
            texts = (shown.text, *map(arguments_text, found))
            examined = await aside(lambda: [*map(task.examine, texts)], size=sum(map(len, texts)))
            mint = self._minter(task, outgoing, decision, blocks)
            block = mint(blocks, raw.text, examined[0])
            origins = [
                mint((block,), *each) for each in zip(map(arguments_text, said), examined[1:], strict=True)
            ]
        failure = outcome.failure if isinstance(outcome, ReplyInvalid) else None
        ended = partial(record_result, self._boundary.trace, sent, "ok", tier=asked.tier, failure=failure)
        size = len(raw.text.encode("utf-8", "surrogatepass"))
        ended(task=task.id, size=size, block=block.id, usage=raw.reply.usage)
        if isinstance(outcome, ReplyInvalid):
            raise outcome
        calls = tuple(map(_asked_call, found, said, origins))
        value, as_said = outcome[0].value, outcome[1].value
        return Reply(block=block, value=value, said=as_said, usage=raw.reply.usage, calls=calls)

    def _minter(
        self, task: Task, outgoing: Outgoing, decision: Allowed | Redacted, blocks: tuple[Block, ...]
    ) -> Callable[[tuple[Block, ...], str, Examined], Block]:
        """Return what mints a block of a reply: from its inputs, what was said, and what was found in it.

        What the model said is computed from what it saw: that is the residue. What stood behind the tokens
        stays in the label, and what a person let go it saw in clear.
        """
        label = join_labels([task.mark, *(block.label for block in blocks), decision.label])
        residue = decision.label if outgoing.yes is None else label

        def mint(inputs: tuple[Block, ...], said: str, examined: Examined) -> Block:
            text = examined.text
            block = task.mint(BlockKind.MODEL, text, label, inputs, residue=residue, examined=examined)
            if isinstance(decision, Redacted):
                task.wrote(block, said)
            if outgoing.yes is not None:
                task.clearances.said(block, self._backend.name)
            return block

        return mint

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

    def _asked(self, request: InferenceRequest, in_text: Sequence[ToolSpec]) -> Asked:
        """Return what is asked for; raise `BackendError` where nobody can tell what the reply says."""
        if in_text and (request.tools or request.schema is not None):
            raise BackendError("a reply is held to one form only: calls in its text, tools, or a schema")
        if in_text and self._boundary.reader is None:
            raise BackendError("nobody reads calls in the text of a reply here. Fix: Perimeter(reader=...)")
        return Asked(request=request, in_text=tuple(in_text))

    async def _answered(
        self,
        asked: Asked,
        outgoing: Outgoing,
        decision: Allowed | Redacted,
        task: Task,
        on_text: OnText | None,
    ) -> tuple[Heard, Heard]:
        """Send what was decided; return the reply as it came, and as it is with its tokens restored."""
        match decision:
            case Allowed():
                raw = await self._heard(decision.wire, asked, on_text)
                return raw, raw
            case Redacted():
                redactor = _map_of(task)
                redactor.mark_sent(outgoing.entries)
                shown = Shown(redactor, on_text, whole=asked.tier is Tier.CONSTRAINED)
                sent = replace(asked, request=outgoing.request)
                raw = await self._heard(decision.wire, sent, shown.feed)
                shown.finish()
                return raw, replace(raw, reply=restored(raw.reply, asked.request, redactor))
            case _:
                assert_never(decision)

    async def _heard(self, wire: WireRequest, asked: Asked, on_text: OnText | None) -> Heard:
        """Return the reply to what was asked, with the calls that stand in its text."""
        if asked.tier is Tier.TEXT and on_text is not None and self._boundary.reader is not None:
            on_text = _held_back(on_text, self._boundary.reader.shown(asked.offered))
        reply = await self._exchange(wire, asked.request, on_text)
        return await aside(partial(hear, reply, asked, self._boundary.reader), size=len(reply.text))

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


def _held_back(on_text: OnText, shown: Callable[[str], str]) -> OnText:
    """Return `on_text` for what is surely no part of a call: nobody is shown one that is never made."""

    def show(piece: str) -> None:
        if text := shown(piece):
            on_text(text)

    return show


def _outcome(
    raw: Heard, shown: Heard, asked: Asked, sent: Asked
) -> tuple[Understood, Understood] | ReplyInvalid:
    """Return what was understood, or why nothing was: the send goes on record either way."""
    try:
        return understood_twice(raw, shown, asked, sent)
    except ReplyInvalid as invalid:
        return invalid


def _calls_of(
    outcome: tuple[Understood, Understood] | ReplyInvalid,
) -> tuple[tuple[WrittenCall, ...], tuple[WrittenCall, ...]]:
    """Return the calls with their tokens restored, and as they were said; none of a reply of no use."""
    return ((), ()) if isinstance(outcome, ReplyInvalid) else (outcome[0].calls, outcome[1].calls)


def _asked_call(call: WrittenCall, said: WrittenCall, origin: Block) -> AskedCall:
    made = ToolCall(tool=call.name, arguments=plain(call.arguments), origin=origin)
    return AskedCall(call=made, said=plain(said.arguments))
