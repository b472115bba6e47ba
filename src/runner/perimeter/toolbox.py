# SPDX-License-Identifier: Apache-2.0
"""The sealed tools: one call, in order, from decision to labelled result.

Owns the sequence decide, approve, record, seal to disk, run. Leaves the decision to `policy.decide`, what
comes of a tool to `running.py`, and what a model is told of a denial to `telling.py`. Carries I1, I4, I9 and
P2: a denied call runs nothing. Carries I8: what was restored goes into no sink below its class.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Final, Literal, assert_never, final

import anyio
import anyio.to_thread

from runner.kernel.decisions import Allow, Ask, Deny, ToolVerdict
from runner.kernel.errors import raises_bare
from runner.kernel.labels import DataClass
from runner.kernel.messages import Block, BlockKind, ToolCall, ToolSpec
from runner.kernel.ports import Effect, Tool
from runner.perimeter.aside import aside
from runner.perimeter.asking import ask_person
from runner.perimeter.completing import to_its_end
from runner.perimeter.effects import residue_of, sink_of
from runner.perimeter.known import NOTHING_KNOWN, Known, provenance
from runner.perimeter.policy import (
    MATTERS_MEET,
    NO_MATTER,
    call_key,
    decide,
    matters_of,
    narrow,
    needs_a_person,
    normalised,
    premises,
    reach,
)
from runner.perimeter.question import approval_request
from runner.perimeter.running import Seen, Started, ToolReply, Workshop, run_tool
from runner.perimeter.sealed import Sealed, refuse_subclass
from runner.perimeter.task import REDACTED_DEFAULT, Task
from runner.perimeter.telling import EXPIRED, told
from runner.perimeter.trace import records
from runner.perimeter.trace.log import TooLate
from runner.perimeter.validate import is_bounded, plain

APPROVAL_LASTS_US: Final = 300_000_000
"""How long a granted approval may wait for its call: five minutes, in microseconds."""
NOWHERE: Final = ".."
"""A folder that no path leads to."""
UNBOUNDED: Final = Deny(
    rule="arguments-unbounded", hint="the arguments are no JSON, or too large, or too deep"
)


@final
class SealedTools(Sealed):
    """Tools behind the perimeter: the only tools an `AgentLoop` accepts. Made by `Perimeter.seal_tools`."""

    __slots__ = ("_tools", "_workshop")

    def __init__(self, witness: object, workshop: Workshop, tools: Mapping[str, Tool]) -> None:
        super().__init__(witness)
        self._workshop = workshop
        self._tools = tools

    def __init_subclass__(cls) -> None:
        """Raise `SealError`."""
        refuse_subclass(cls)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model may be told: the granted tools only."""
        return tuple(tool.spec for name, tool in self._tools.items() if name in self._workshop.policy.grants)

    @property
    def perimeter(self) -> object:
        """The perimeter that sealed these tools, to be compared by identity only."""
        return self._workshop

    def decide(self, call: ToolCall) -> ToolVerdict:
        """Return what the policy says about `call` in a task of no matter yet, without running it."""
        return self._decided(call, NO_MATTER)

    @raises_bare
    async def call(self, call: ToolCall, *, task: Task) -> ToolReply:
        """Run `call` if the policy lets it; a denial and a tool's own error are replies, not exceptions.

        Arguments beyond the bounds are denied, and what goes on record is a call without any. Raises
        `TraceError` when a step could not be recorded, and then nothing further ran. What is raised shows no
        frame of the call, since these hold what was read (I12).
        """
        bounded = is_bounded(call.arguments)
        call = replace(call, arguments=plain(call.arguments) if bounded else {})  # nobody else can change it
        opened = self._as_named(call, task) if bounded else None
        seen = opened or (await self._as_seen(call, task) if bounded else call)
        veiled = bounded and self._is_veiled(seen, task)
        call = seen if veiled or opened else call
        held = DataClass.C0 if veiled or opened else task.held(call.arguments, origin=call.origin)
        residue = task.residue.with_detected(held)
        context = Seen(mark=task.mark, residue=residue, matters=task.matters)
        known = task.ledger.known(task.mark)
        verdict = self._verdict(call, task, known) if bounded else UNBOUNDED
        matters = context.matters | self._reached(call, verdict, context)
        if isinstance(verdict, Allow):
            task.admit(matters)  # before anything else happens: another call is decided knowing of this one
            task.ledger.runs(call.tool)
        decision = self._decision(call, verdict, context, len(matters), task, known=known)
        self._workshop.trace.append(decision, task=task.id)
        until = None
        match verdict:
            case Deny():
                await self._to_disk()
                said = self._denial(call, verdict, context, known, task)
                return ToolReply(status="denied", block=said, rule=verdict.rule)
            case Ask():
                yes = await self._approved(call, verdict, decision, matters, task, known=known)
                if yes is None:
                    said = self._denial(call, verdict, context, known, task)
                    return ToolReply(status="denied", block=said)
                until = yes.expires
            case Allow():
                pass
            case _:
                assert_never(verdict)
        try:
            self._begin(decision, call, task, until=until)
        except TooLate:
            await self._to_disk()
            said = self._denial(call, EXPIRED, context, known, task)
            return ToolReply(status="denied", block=said, rule=EXPIRED.rule)
        if isinstance(verdict, Ask):
            task.admit(matters)
            task.ledger.runs(call.tool)
        started = Started(
            call=call,
            decision=decision,
            seen=context,
            task=task,
            veil=task.veil if veiled else None,
            named=opened is not None,
            until=until,
        )
        return await self._run(started)

    async def _as_seen(self, call: ToolCall, task: Task) -> ToolCall:
        """Return `call` as a model elsewhere made it, with its paths' folders named as that may see them.

        What is behind a token is restored in no path: a folder that is named right by a guess is not found.
        """
        grant = self._workshop.policy.grants.get(call.tool)
        if not task.exposed or grant is None or not grant.veils:
            return call
        call = task.as_said(call)
        paths = {name: call.arguments.get(name) for name in grant.path_arguments}
        seen = {name: await _seen_path(path, task) for name, path in paths.items() if isinstance(path, str)}
        return replace(call, arguments={**call.arguments, **seen})

    def _is_veiled(self, call: ToolCall, task: Task) -> bool:
        """Say whether a model elsewhere gets to see what `call` returns: then it is answered from that.

        Otherwise the answer would tell it what it may not see: which of its guesses stands in a file, and
        how long what it cannot see is. What the call reaches decides: a folder that is redactable, or nothing
        that may not leave. What is not answered so stays here, see `run_tool`.
        """
        grant = self._workshop.policy.grants.get(call.tool)
        if not task.exposed or grant is None or not grant.veils or not grant.roots:
            return False
        reached = reach(self._workshop.policy, call, task.matters)
        may_leave = [residue_of(root).data_class <= REDACTED_DEFAULT for root in reached]
        return all(may_leave) or any(root.redactable for root in reached)

    def _as_named(self, call: ToolCall, task: Task) -> ToolCall | None:
        """Return `call` with what stands behind the tokens of its paths; None if the program named none.

        A program names a file as a tool named it to a model elsewhere, and the user's file is opened. What
        such a model says itself never gets here, and no path does that it was not shown, word for word.
        """
        grant = self._workshop.policy.grants.get(call.tool)
        if grant is None or grant.effect is not Effect.READ:
            return None
        return task.as_named(call, grant.path_arguments)

    def _decided(
        self, call: ToolCall, matters: AbstractSet[str], known: Known = NOTHING_KNOWN
    ) -> ToolVerdict:
        if call.tool not in self._tools:
            return Deny(rule="tool-not-granted", hint="no such tool")
        return decide(self._workshop.policy, call, matters, known)

    def _reached(self, call: ToolCall, verdict: ToolVerdict, context: Seen) -> AbstractSet[str]:
        """Return the matters whose content `call` would bring, none for a denied one."""
        if isinstance(verdict, Deny):
            return NO_MATTER
        return matters_of(reach(self._workshop.policy, call, context.matters))

    def _verdict(self, call: ToolCall, task: Task, known: Known) -> ToolVerdict:
        """Return the policy's verdict, unless the call carries a restored value to a sink below its class.

        A model that only ever saw a token does not get to say where the value behind it goes.
        """
        if not task.owns(call.origin):
            return Deny(rule="origin-unknown", hint="")
        verdict = self._decided(call, task.matters, known)
        if isinstance(verdict, Deny):
            return verdict
        effect = self._workshop.policy.grants[call.tool].effect
        if effect is Effect.WRITE and task.exposed:
            hint = "a task whose content is redacted for a model elsewhere writes nothing; use a local model"
            return Deny(rule="write-behind-veil", hint=hint)
        sink = sink_of(effect, narrow(self._workshop.policy, call, task.matters).roots)
        if task.held(call.arguments, origin=call.origin, sent=True) > sink:
            return Deny(
                rule="restored-value-to-sink", hint=f"{call.tool} may not be given what stood behind a token"
            )
        return verdict

    def _begin(
        self, decision: records.PolicyDecision, call: ToolCall, task: Task, *, until: int | None
    ) -> None:
        """Put the start of `call` on record, if the approval that lets it run lasts: `until` then.

        Raises `TooLate` when it does not by the time of the record, and then it is not on it; `TraceError`.
        """
        record = records.ToolCall(
            call_id=decision.call_id,
            tool=decision.tool,
            args_commit=decision.args_commit,
            net=self._workshop.policy.grants[call.tool].effect is Effect.NET,
        )
        self._workshop.trace.append(record, task=task.id, before=until)

    async def _run(self, started: Started) -> ToolReply:
        """Run a call, once its start is on the disk."""
        await self._to_disk()
        tool = started.call.tool
        effect = self._workshop.policy.grants[tool].effect
        work = partial(run_tool, self._workshop, self._tools[tool], started)
        return await (to_its_end(work) if effect is Effect.WRITE else work())

    def _decision(
        self,
        call: ToolCall,
        verdict: ToolVerdict,
        context: Seen,
        matters: int,
        task: Task,
        *,
        known: Known,
    ) -> records.PolicyDecision:
        """Return the record of `verdict`; `matters` counts those the task has once the call has run."""
        trace = self._workshop.trace
        word: Literal["allow", "ask", "deny"]
        match verdict:
            case Allow():
                word = "allow"
            case Ask():
                word = "ask"
            case Deny():
                word = "deny"
            case _:
                assert_never(verdict)
        tool, tool_commit = trace.vocab_or_other(call.tool, self._workshop.policy.grants)
        replay = premises(self._workshop.policy, call, context.matters, known).stated()
        return records.PolicyDecision(
            call_id=trace.mint_id(),
            tool=tool,
            tool_commit=tool_commit,
            decision=word,
            rule=verdict.rule,
            args_commit=trace.commit(normalised(call)),
            replay=replay | ({records.MATTERS: matters} if matters else {}),
            data_class=context.mark.data_class,
            inputs=(call.origin.id,) if task.owns(call.origin) else (),
        )

    async def _approved(
        self,
        call: ToolCall,
        verdict: Ask,
        decision: records.PolicyDecision,
        matters: AbstractSet[str],
        task: Task,
        *,
        known: Known,
    ) -> records.Approval | None:
        """Ask the approver about exactly these arguments, and these `matters`; return the yes, or None.

        Matters that the task was let in to meanwhile were not in the question: then a yes does not count.
        """
        meeting = matters if verdict.rule == MATTERS_MEET else NO_MATTER
        unnamed = {
            name: provenance(call.arguments[name], known)
            for name in needs_a_person(self._workshop.policy, call, known)
        }
        request = approval_request(call, task.mark.data_class, meeting, unnamed)
        somebody = self._workshop.approver is not None
        if somebody:
            task.ledger.asked()
        yes = await ask_person(self._workshop, decision, request, task=task.id, lasts_us=APPROVAL_LASTS_US)
        if yes is None or not task.matters <= matters:
            task.ledger.was_refused(call_key(call), by_person=somebody)
            return None
        return yes

    def _denial(self, call: ToolCall, refused: Deny | Ask, context: Seen, known: Known, task: Task) -> Block:
        """Return what the model is told of `call`, which does not run."""
        said = told(self._workshop.policy, call, refused, context.matters, known)
        return task.mint(BlockKind.TOOL, said, context.mark, residue=context.residue)

    async def _to_disk(self) -> None:
        await anyio.to_thread.run_sync(self._workshop.trace.barrier)


async def _seen_path(path: str, task: Task) -> str:
    """Return `path` with its folder, which comes first, named as a model elsewhere may see it."""
    folder, *rest = path.split("/")
    try:
        seen = await aside(partial(task.as_seen, folder), size=len(folder))
    except Exception:  # noqa: BLE001 - any fault of any classifier closes (I7): a path that leads nowhere
        seen = NOWHERE
    return "/".join([seen or folder, *rest])
