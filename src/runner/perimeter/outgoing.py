# SPDX-License-Identifier: Apache-2.0
"""What leaves for a request: the request itself, or its redacted form; and the record of either.

Owns when a person's yes and redaction are tried, what they put on record, and how a reply is restored. Leaves
the order of an inference to `client.py` and every judgement to `Perimeter.release()`: what leaves is what was
judged last.
Carries P1, I7 (whatever goes wrong here, the first denial stands) and I8 (a lowering has a `declassify`).
"""

import json
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol, assert_never

from runner.kernel.decisions import Allowed, Denied, Redacted, Release, Span
from runner.kernel.inference import InferenceReply, InferenceRequest, WireRequest, WrittenCall
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, JsonObject
from runner.kernel.ports import Backend, Endpoint
from runner.perimeter.declassify import LEAST_LEFT_US, Clearance, Subtraction
from runner.perimeter.marking import marked, places
from runner.perimeter.probe import egress_record
from runner.perimeter.redact import TOKEN, Entry, Redactor, StreamRestorer
from runner.perimeter.release import ABOVE_CEILING, Checked
from runner.perimeter.task import Task
from runner.perimeter.texts import texts_of
from runner.perimeter.trace import records
from runner.perimeter.trace.log import TooLate, Trace
from runner.perimeter.validate import parse_json

REDACTION_RULE: Final = "redact-detected"
"""The rule named by a declassification that redaction makes."""
DECLASSIFY_LASTS_US: Final = 60_000_000
"""How long it lasts, in microseconds: it is made for one send, which follows at once."""


class Gate(Protocol):
    """The part of the perimeter that an outgoing request passes."""

    @property
    def trace(self) -> Trace:
        """The record."""

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
        """Judge the bytes, the schema of the reply as it was given, and what is split over `parts`."""

    def record_egress(
        self,
        sent: records.Egress,
        backend: Endpoint,
        *,
        task: str | None = None,
        lowering: records.Declassify | None = None,
        parts: Sequence[str] = (),
    ) -> None:
        """Put a send of `parts` on record, after its grade and what lowered its class.

        Raises `TooLate` when that has expired by then.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """What was decided, and about which form of a request.

    `entries` are the tokens in a redacted one; `yes` is what a person said that lets the others leave.
    """

    request: InferenceRequest
    decision: Release
    entries: tuple[Entry, ...] = ()
    yes: Clearance | None = None


def judge_request(
    gate: Gate,
    backend: Backend,
    request: InferenceRequest,
    *,
    wire: WireRequest,
    label: Label,
    ceiling: DataClass | None,
    checked: Checked,
    task: Task,
) -> Outgoing:
    """Return the decision about `wire`, the bytes of `request` whose content is labelled `label`.

    If they are above the `ceiling`, what a person let go is subtracted; if they still are and the redacted
    form is not, the decision is about that one.
    """
    decision = gate.release(
        wire,
        label,
        backend.name,
        checked=checked,
        schema=request.schema,
        parts=parts_of(blocks_in(request)),
    )
    first = Outgoing(request=request, decision=decision)
    if not isinstance(decision, Denied) or decision.reason != ABOVE_CEILING or ceiling is None:
        return first
    cleared = judge_cleared(gate, backend, request, wire=wire, above=ceiling, checked=checked, task=task)
    if cleared is not None:
        return cleared
    try:
        redacted = task.redact(request, above=ceiling)
        if redacted is None:
            return first
        again = backend.encode(redacted.request)
    except Exception:  # noqa: BLE001 - I7: any fault at all closes
        return first
    second = gate.release(
        again,
        task.residue,
        backend.name,
        removed=redacted.spans,
        checked=checked,
        schema=redacted.request.schema,
        parts=parts_of(blocks_in(redacted.request)),
    )
    if not isinstance(second, Redacted):
        return first
    return Outgoing(request=redacted.request, decision=second, entries=redacted.entries)


def judge_cleared(
    gate: Gate,
    backend: Backend,
    request: InferenceRequest,
    *,
    wire: WireRequest,
    above: DataClass,
    checked: Checked,
    task: Task,
    also: AbstractSet[str] = frozenset(),
) -> Outgoing | None:
    """Return the permission for `wire` without what a person let go; None where that does not permit it.

    With `also`, ids of blocks: what would be permitted if a person let these go too. The yes that expires
    first counts for all of them. Raises nothing but what the record's clock raises.
    """
    now = gate.trace.now_us()
    given = task.clearances.valid(backend.name, now)
    if not given and not also:
        return None
    try:
        covered = task.clearances.covered(task.blocks, backend.name, above=above, now_us=now, also=also)
        regions = {block: cover.regions for block, cover in covered.items()}
        again, marks = marked(request, regions, gate.trace.mint_id)
        shown = places(wire, backend.encode(again), marks)
        if shown is None:
            return None
        left = Subtraction(
            backend=backend.name,
            until=given[0].expires if given else now + LEAST_LEFT_US,
            label=task.left(covered),
            regions=shown,
        )
    except Exception:  # noqa: BLE001 - I7: any fault at all closes
        return None
    decision = gate.release(
        wire,
        task.mark,
        backend.name,
        subtracted=left,
        checked=checked,
        schema=request.schema,
        parts=parts_of(blocks_in(request)),
    )
    if not isinstance(decision, Allowed):
        return None
    return Outgoing(request=request, decision=decision, yes=given[0] if given else None)


def record_send(
    gate: Gate,
    backend: Endpoint,
    decision: Release,
    *,
    wire: WireRequest,
    blocks: tuple[Block, ...],
    checked: Checked,
    task: Task,
    yes: Clearance | None = None,
) -> tuple[Release, records.Egress]:
    """Put on record that `wire`, made from `blocks`, is sent or denied, after what lowered it; return both.

    The decision is another one where what lowered it had expired by the time of its record: a denial.

    What redaction lowers is the class of the task: the block that brought it about is an input of the send,
    whether or not the request quotes it. `yes` is what a person said, without which it would not leave.
    """
    lowering = None
    if isinstance(decision, Redacted):
        blocks = tuple(dict.fromkeys([*blocks, task.peak]))
        lowering = _declassify(
            gate, backend.name, decision, wire, max(block.label.data_class for block in blocks)
        )
    elif isinstance(decision, Allowed) and yes is not None:
        lowering = _by_a_person(gate, yes, decision, task.mark)
    record = partial(
        egress_record,
        gate.trace,
        wire=wire,
        backend=backend.name,
        locality=checked.locality,
        inputs=tuple(block.id for block in blocks),
    )
    sent = record(decision, declassify=None if lowering is None else lowering.id)
    parts = _leaving(decision, blocks)
    try:
        gate.record_egress(sent, backend, task=task.id, lowering=lowering, parts=parts)
    except TooLate:
        over = Denied(reason="declassification-over", data_class=task.mark.data_class)
        sent = record(over)
        gate.record_egress(sent, backend, task=task.id)
        return over, sent
    return decision, sent


def _leaving(decision: Release, blocks: tuple[Block, ...]) -> tuple[str, ...]:
    """Return the texts that leave. Of what is redacted, neither a value nor its token is among them."""
    match decision:
        case Denied():
            return ()
        case Allowed():
            return parts_of(blocks)
        case Redacted():
            texts = texts_of(decision.wire, host=False)
            return tuple(TOKEN.sub(" ", each.text) for each in texts if each.is_value)
        case _:
            assert_never(decision)


def blocks_in(request: InferenceRequest) -> tuple[Block, ...]:
    """Return the blocks of `request`, each once."""
    return tuple(dict.fromkeys(block for message in request.messages for block in message.blocks))


def parts_of(blocks: Iterable[Block]) -> tuple[str, ...]:
    """Return the texts of `blocks` over which something may be split, without what the runner wrote."""
    return tuple(
        block.text for block in blocks if block.media is None and block.kind is not BlockKind.INSTRUCTION
    )


def _declassify(
    gate: Gate, backend: str, decision: Redacted, wire: WireRequest, before: DataClass
) -> records.Declassify | None:
    """Return the record of lowering `wire`, of class `before`; None when its class was not above.

    It commits to the bytes as they were: with the salt, they can be compared with those that were sent.
    """
    after = decision.label
    if after.data_class >= before:
        return None
    return records.Declassify(
        id=gate.trace.mint_id(),
        rule=REDACTION_RULE,
        source=gate.trace.commit("\n".join(sorted(after.sources)).encode("utf-8", "surrogatepass")),
        from_class=before,
        to_class=after.data_class,
        backend=backend,
        expires=gate.trace.now_us() + DECLASSIFY_LASTS_US,
        commit=gate.trace.commit(wire.body),
    )


def _by_a_person(gate: Gate, yes: Clearance, decision: Allowed, mark: Label) -> records.Declassify:
    """Return the record of what a person's `yes` lets leave: it commits to what was approved.

    What it lowers is the class of the task, whatever the request quotes.
    """
    return records.Declassify(
        id=gate.trace.mint_id(),
        approval=yes.approval,
        source=gate.trace.commit("\n".join(sorted(mark.sources)).encode("utf-8", "surrogatepass")),
        from_class=mark.data_class,
        to_class=decision.label.data_class,
        backend=yes.backend,
        expires=yes.expires,
        commit=yes.commit,
    )


def restored(reply: InferenceReply, request: InferenceRequest, redactor: Redactor) -> InferenceReply:
    """Return `reply` with its tokens restored: on the parsed leaves where it is JSON, else in its text.

    A reply to a request with a schema that cannot be read as JSON stays as it is, and so do the arguments of
    such a call: nothing is ever restored inside raw JSON.
    """
    reply = replace(reply, calls=tuple(_restored_call(call, redactor) for call in reply.calls))
    try:
        value = parse_json(reply.text)
        if request.schema is not None or isinstance(value, dict | list | str):
            return replace(reply, text=json.dumps(redactor.restore(value), ensure_ascii=False))
    except RecursionError:
        return reply
    except ValueError:
        if request.schema is not None:
            return reply
    return replace(reply, text=str(redactor.restore(reply.text)))


def _restored_call(call: WrittenCall, redactor: Redactor) -> WrittenCall:
    written = call.arguments
    try:
        value = redactor.restore(parse_json(written) if isinstance(written, str) else written)
    except (ValueError, RecursionError):
        return call
    return replace(call, arguments=value) if isinstance(value, dict) else call


class Shown:
    """Shows a redacted reply as it arrives: restored, but for JSON, which is restored when it is whole."""

    __slots__ = ("_on_text", "_restorer")

    def __init__(self, redactor: Redactor, on_text: Callable[[str], None] | None, *, whole: bool) -> None:
        self._on_text = on_text
        self._restorer = None if whole else StreamRestorer(redactor)

    def feed(self, piece: str) -> None:
        """Take the next piece of the reply."""
        self._show(piece if self._restorer is None else self._restorer.feed(piece))

    def finish(self) -> None:
        """Show what was held back."""
        self._show("" if self._restorer is None else self._restorer.finish())

    def _show(self, text: str) -> None:
        if text and self._on_text is not None:
            self._on_text(text)
