# SPDX-License-Identifier: Apache-2.0
"""Letting content go to a backend that is not local: whether a person may be asked, and what is asked.

Owns the decision, its record, and when a question is worth asking. Leaves the words to `question.py`, what a
yes covers to `declassify.py`, and the last word to `Perimeter.release()`: a yes lets nothing leave by itself.
Carries I1 (off unless the profile says `ask`; no approver is a no), I4, and I8: C3 is never asked about.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Final, Protocol, assert_never

import anyio.to_thread

from runner.kernel.decisions import Allow, Ask, Denied, Deny, ToolVerdict
from runner.kernel.errors import PerimeterError
from runner.kernel.inference import InferenceRequest, WireRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Block
from runner.kernel.ports import RELEASE, Approver, Backend
from runner.perimeter.aside import aside
from runner.perimeter.asking import ask_person
from runner.perimeter.cuts import Regions
from runner.perimeter.declassify import Clearance, is_readable
from runner.perimeter.outgoing import Gate, Outgoing, judge_cleared
from runner.perimeter.question import release_request
from runner.perimeter.release import ABOVE_CEILING, BackendTerms, Checked
from runner.perimeter.task import Task
from runner.perimeter.trace import records

LASTS_S: Final = 900.0
"""How long a yes lasts if nobody says otherwise, in seconds."""
LEAST_S: Final = 60.0
MOST_S: Final = 86_400.0
"""A yes lasts a minute at least and a day at most."""
MOST_SPANS: Final = 14
"""Parts of one block in one question: as many as its record holds."""
MOST_QUESTIONS: Final = 4
"""Questions that one request may bring up. More are not read: then the request is denied, unasked."""


class Desk(Gate, Protocol):
    """The part of the perimeter that a question about letting go passes."""

    @property
    def approver(self) -> Approver | None:
        """Who answers; None means nobody, and that is a no."""

    @property
    def declassification(self) -> bool:
        """Whether the profile lets a person be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where content would go, and on which terms."""

    backend: Backend
    terms: BackendTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What would go where: `block`, or its `spans`, for `lasts_s` seconds."""

    block: Block
    to: Destination
    spans: Regions | None = None
    lasts_s: float = LASTS_S


def propose(
    block: Block, to: Destination, spans: Sequence[tuple[int, int]] | None, lasts_s: float
) -> Proposal:
    """Return the proposal.

    Raises `PerimeterError` for a block without text, a time out of bounds, and spans that are none.

    Each of 1 to `MOST_SPANS` lies inside the text of `block`, holds something, and overlaps no other.
    """
    if not is_readable(block):
        raise PerimeterError("only a text is let go: nobody can be shown what media or vectors say")
    if not LEAST_S <= lasts_s <= MOST_S:
        raise PerimeterError(f"content is let go for {LEAST_S:.0f} to {MOST_S:.0f} seconds")
    if spans is None:
        return Proposal(block=block, to=to, lasts_s=lasts_s)
    parts = tuple(sorted((start, end) for start, end in spans))
    edges = [0, *(edge for part in parts for edge in part), len(block.text)]
    if edges != sorted(edges) or any(start == end for start, end in parts):
        raise PerimeterError("a span lies outside its block, holds nothing, or overlaps another")
    if not 0 < len(parts) <= MOST_SPANS:
        raise PerimeterError(f"between one and {MOST_SPANS} spans are let go at once")
    return Proposal(block=block, to=to, spans=parts, lasts_s=lasts_s)


def decide_release(block: Block, terms: BackendTerms, *, enabled: bool) -> ToolVerdict:
    """Return whether `block` may go to the backend of `terms` by a person's word. Pure and total.

    It may anyway when its class is not above the ceiling.
    """
    found = block.label.data_class
    objections = (
        ("declassification-off", not enabled, "the profile lets nobody be asked: perimeter.declassification"),
        ("backend-is-local", terms.local, "a local backend has no ceiling to be above"),
        ("nothing-may-leave", terms.ceiling is None, "nothing may leave under this profile"),
        ("c3-never-leaves", found is DataClass.C3, "C3 never leaves"),
    )
    if not terms.local and terms.ceiling is not None and found <= terms.ceiling:
        return Allow(rule="not-above-ceiling")
    for rule, stands, hint in objections:
        if stands:
            return Deny(rule=rule, hint=hint)
    return Ask(rule="declassify")


async def let_go(desk: Desk, what: Proposal, *, task: Task) -> bool:
    """Ask a person about `what`, put the answer on record, and return whether it was yes.

    True at once, and nothing recorded, for what may leave anyway. Raises `TraceError`.
    """
    verdict = decide_release(what.block, what.to.terms, enabled=desk.declassification)
    if isinstance(verdict, Allow):
        return True
    decision = _decision(desk, what, verdict, task)
    desk.trace.append(decision, task=task.id)
    match verdict:
        case Deny():
            await anyio.to_thread.run_sync(desk.trace.barrier)
            return False
        case Ask():
            request = release_request(what.block, what.spans, backend=what.to.backend, seconds=what.lasts_s)
        case _:
            assert_never(verdict)
    lasts_us = round(what.lasts_s * 1_000_000)
    yes = await ask_person(desk, decision, request, task=task.id, lasts_us=lasts_us)
    if yes is None or desk.trace.now_us() >= yes.expires:
        return False
    task.clearances.give(
        Clearance(
            block=what.block.id,
            backend=what.to.backend.name,
            spans=what.spans,
            expires=yes.expires,
            approval=yes.call_id,
            commit=yes.args_commit,
        )
    )
    return True


async def offer(
    desk: Desk,
    outgoing: Outgoing,
    to: Destination,
    *,
    request: InferenceRequest,
    wire: WireRequest,
    checked: Checked,
    task: Task,
) -> bool:
    """Ask about what alone keeps `wire` from leaving; return whether every answer was yes.

    Nobody is asked where a yes would change nothing, about C3, or twice about one block. Raises `TraceError`.
    """
    decision, ceiling = outgoing.decision, to.terms.ceiling
    if not isinstance(decision, Denied) or decision.reason != ABOVE_CEILING or ceiling is None:
        return False
    if decision.data_class is DataClass.C3 or not desk.declassification or desk.approver is None:
        return False
    now, name = desk.trace.now_us(), to.backend.name
    questions = partial(
        task.clearances.open_questions,
        task.blocks,
        name,
        above=ceiling,
        now_us=now,
        most=MOST_QUESTIONS,
        outside=task.outside,
    )
    try:
        asking = await aside(questions, size=sum(len(block.text) for block in task.blocks))
    except Exception:  # noqa: BLE001 - I7: what cannot be judged is not asked about, and stays denied
        return False
    would = partial(
        judge_cleared,
        desk,
        to.backend,
        request,
        wire=wire,
        above=ceiling,
        checked=checked,
        task=task,
        also=frozenset(block.id for block in asking),
    )
    if not 0 < len(asking) <= MOST_QUESTIONS or await aside(would, size=len(wire.body)) is None:
        return False
    for block in asking:
        what = Proposal(block=block, to=to)
        if not task.clearances.ask_once(name, block) or not await let_go(desk, what, task=task):
            return False
    return True


def _decision(desk: Desk, what: Proposal, verdict: Ask | Deny, task: Task) -> records.PolicyDecision:
    """Return the record of `verdict`: it says what may go where, and commits to the very text."""
    block, backend, ceiling = what.block, what.to.backend.name, what.to.terms.ceiling
    bound = {
        "backend": backend,
        "task": task.id,
        "block": block.id,
        "sha256": sha256(block.text.encode("utf-8", "surrogatepass")).hexdigest(),
        "spans": what.spans,
        "seconds": what.lasts_s,
    }
    arguments = json.dumps([RELEASE, bound], sort_keys=True, separators=(",", ":"))
    replay: dict[str, str | int | bool] = {"backend": backend, "chars": len(block.text)}
    if ceiling is not None:
        replay["to"] = ceiling.name
    for number, (start, end) in enumerate(what.spans or ()):
        replay |= {f"s{number}": start, f"e{number}": end}
    return records.PolicyDecision(
        call_id=desk.trace.mint_id(),
        tool=RELEASE,
        decision="ask" if isinstance(verdict, Ask) else "deny",
        rule=verdict.rule,
        args_commit=desk.trace.commit(arguments.encode("ascii")),
        replay=replay,
        data_class=block.label.data_class,
        inputs=(block.id,),
    )
