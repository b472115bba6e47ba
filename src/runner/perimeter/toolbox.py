# SPDX-License-Identifier: Apache-2.0
"""The sealed tools: one call, in order, from decision to labelled result.

Owns the sequence decide, approve, record, seal to disk, run, label, record. Leaves the decision to
`policy.decide` and the effect to the tool. Carries I1, I4, I9 and P2: a denied call runs nothing. Carries I8:
what was restored goes into no sink below its class, and what a tool makes of it keeps that class.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal, Protocol, assert_never, final

import anyio
import anyio.to_thread

from runner.kernel.decisions import Allow, Ask, Deny, ToolVerdict
from runner.kernel.errors import ToolError, TraceError, raises_bare
from runner.kernel.labels import DataClass, Label, join_labels
from runner.kernel.messages import Block, BlockKind, ToolCall, ToolSpec
from runner.kernel.ports import (
    Approver,
    Effect,
    Excerpt,
    GrantedCall,
    Tool,
    ToolOutput,
    Veil,
    WebTool,
)
from runner.kernel.web import parse_url
from runner.perimeter.aside import aside
from runner.perimeter.asking import ask_person
from runner.perimeter.completing import to_its_end
from runner.perimeter.effects import label_of, own_label, residue_of, sink_of
from runner.perimeter.fetching import NOT_PLAIN, Fetch, PageDenied, PageGate, fetch
from runner.perimeter.flows import Reads
from runner.perimeter.known import NOTHING_KNOWN, Known, provenance
from runner.perimeter.named import spelling_of
from runner.perimeter.policy import (
    MATTERS_MEET,
    NO_MATTER,
    NOT_NAMED,
    Policy,
    call_key,
    carried,
    decide,
    matters_of,
    narrow,
    needs_a_person,
    normalised,
    premises,
    reach,
)
from runner.perimeter.question import approval_request
from runner.perimeter.sealed import Sealed, refuse_subclass
from runner.perimeter.task import REDACTED_DEFAULT, Task
from runner.perimeter.trace import records
from runner.perimeter.validate import is_bounded, plain
from runner.perimeter.withhold import withhold, withhold_lines

APPROVAL_LASTS_US: Final = 300_000_000
"""How long a granted approval may wait for its call: five minutes, in microseconds."""
DENIED: Final = "denied: "
"""How a denial begins that a model is told."""
UNBOUNDED: Final = Deny(
    rule="arguments-unbounded", hint="the arguments are no JSON, or too large, or too deep"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReply:
    """What came of a call: `block` is the text for the model, `excerpts` are lines it may quote.

    `unread` counts the files that the tool came upon and could not read as text, `not_whole` the documents
    that it could not read all of, `withheld` the texts of its result that the grant keeps from the task.
    `rule` is the rule of the policy that denied the call, as it is on record; empty for any other reply.
    """

    status: Literal["ok", "error", "denied"]
    block: Block
    excerpts: tuple[Excerpt, ...] = field(default=(), repr=False)
    unread: int = 0
    not_whole: int = 0
    withheld: int = 0
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What a call is made of: the task's mark, the part of it that redaction would leave, and its matters."""

    mark: Label
    residue: Label
    matters: AbstractSet[str]

    def join(self, labels: Sequence[Label], residues: Sequence[Label]) -> "_Seen":
        """Return this with what the tool itself adds."""
        return replace(
            self, mark=join_labels([self.mark, *labels]), residue=join_labels([self.residue, *residues])
        )


class Workshop(PageGate, Protocol):
    """The part of the perimeter that sealed tools work through."""

    @property
    def policy(self) -> Policy:
        """The grants."""

    @property
    def approver(self) -> Approver | None:
        """Who answers an `Ask`; None means nobody, and that is a denial."""


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
        veiled = bounded and self._is_veiled(call, task)
        call = task.as_said(call) if veiled else call
        opened = self._as_named(call, task) if bounded else None
        call = opened or call
        held = DataClass.C0 if veiled or opened else task.held(call.arguments, origin=call.origin)
        residue = task.residue.with_detected(held)
        context = _Seen(mark=task.mark, residue=residue, matters=task.matters)
        known = task.ledger.known(task.mark)
        verdict = self._verdict(call, task, known) if bounded else UNBOUNDED
        matters = context.matters | self._reached(call, verdict, context)
        if isinstance(verdict, Allow):
            task.admit(matters)  # before anything else happens: another call is decided knowing of this one
            task.ledger.runs(call.tool)
        decision = self._decision(call, verdict, context, len(matters), task, known=known)
        self._workshop.trace.append(decision, task=task.id)
        match verdict:
            case Deny():
                await self._to_disk()
                said = _say(task, DENIED + verdict.hint, context)
                return ToolReply(status="denied", block=said, rule=verdict.rule)
            case Ask():
                if not await self._approved(call, verdict, decision, matters, task, known=known):
                    return ToolReply(status="denied", block=_say(task, _refusal(verdict), context))
            case Allow():
                pass
            case _:
                assert_never(verdict)
        veil = task.veil if veiled else None
        return await self._run(call, decision, context, task, veil=veil, named=opened is not None)

    def _is_veiled(self, call: ToolCall, task: Task) -> bool:
        """Say whether a model elsewhere gets to see what `call` returns: then it is answered from that.

        Otherwise the answer would tell it what it may not see: which of its guesses stands in a file, and
        how long what it cannot see is. Only a tool that says so goes by a veil; what another returns for a
        value stays here.
        """
        grant = self._workshop.policy.grants.get(call.tool)
        if not task.exposed or grant is None or grant.effect is not Effect.READ or not grant.roots:
            return False
        if getattr(self._tools.get(call.tool), "veils", False) is not True:
            return False
        return all(residue_of(root).data_class <= REDACTED_DEFAULT for root in grant.roots)

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

    def _reached(self, call: ToolCall, verdict: ToolVerdict, context: _Seen) -> AbstractSet[str]:
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

    async def _run(
        self,
        call: ToolCall,
        decision: records.PolicyDecision,
        context: _Seen,
        task: Task,
        *,
        veil: Veil | None,
        named: bool,
    ) -> ToolReply:
        effect = self._workshop.policy.grants[call.tool].effect
        started = records.ToolCall(
            call_id=decision.call_id,
            tool=decision.tool,
            args_commit=decision.args_commit,
            net=effect is Effect.NET,
        )
        self._workshop.trace.append(started, task=task.id)
        await self._to_disk()
        work = partial(self._done, call, decision, context, task, veil=veil, named=named)
        return await (to_its_end(work) if effect is Effect.WRITE else work())

    async def _done(
        self,
        call: ToolCall,
        decision: records.PolicyDecision,
        context: _Seen,
        task: Task,
        *,
        veil: Veil | None,
        named: bool,
    ) -> ToolReply:
        """Run the tool, and return what came of it, which is on record."""
        trace, tool = self._workshop.trace, self._tools[call.tool]
        effect = self._workshop.policy.grants[call.tool].effect
        granted = narrow(self._workshop.policy, call, context.matters)
        reached = reach(self._workshop.policy, call, context.matters)
        status: Literal["ok", "error"] = "ok"
        rule = ""
        try:
            if isinstance(tool, WebTool) and effect is Effect.NET:
                output = await fetch(self._workshop, self._page(tool, granted, decision, task), task)
            else:
                run = partial(tool.run, replace(granted, veil=veil, named=named))
                output = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
            _check_output(output)
        except TraceError:
            raise
        except PageDenied as denial:
            status, rule, output = "error", denial.rule, ToolOutput(text=f"{DENIED}{denial}")
        except ToolError as error:
            status, output = "error", ToolOutput(text=f"error: {error}")
        except Exception as error:  # noqa: BLE001 - a tool's fault must not carry its payload further (I12)
            status, output = "error", ToolOutput(text=f"error: the tool failed ({type(error).__name__})")
        reads = self._workshop.policy.grants[call.tool].flow.reads
        output, withheld = await _shown(output, reads, task, lines=isinstance(tool, WebTool))
        own = own_label(effect, reached, reads)
        residues = [own, *(residue_of(root) for root in reached)]
        context = context.join([own, *(label_of(root) for root in reached)], residues)
        text = output.text
        context = replace(context, mark=context.mark.with_detected(task.behind(text)))
        examined = await aside(partial(task.examine, text), size=len(text))
        block = task.mint(BlockKind.TOOL, text, context.mark, residue=context.residue, examined=examined)
        if veil is not None:
            task.was_veiled(block)
        result = records.ToolResult(
            call_id=decision.call_id,
            status=status,
            result_commit=trace.commit(_bytes(text)),
            bytes=len(_bytes(text)),
            block=block.id,
        )
        trace.append(result, task=task.id)
        if status == "ok":
            drafted = any(root.written for root in reached)
            asked = carried(
                self._workshop.policy.grants[call.tool], call.arguments, task.ledger.known(task.mark).said
            )
            task.ledger.returned(call.tool, asked, text, block.label, drafted=drafted)
            source = join_labels(residues).data_class
            await aside(partial(task.remember, text, source), size=len(text))
        said: Literal["ok", "error", "denied"] = "denied" if rule else status
        return ToolReply(
            status=said,
            block=block,
            excerpts=output.excerpts,
            unread=output.unread,
            not_whole=output.not_whole,
            rule=rule,
            withheld=withheld,
        )

    def _page(self, tool: WebTool, call: GrantedCall, decision: records.PolicyDecision, task: Task) -> Fetch:
        """Return what `call`, which may run, asks for, with the label of whoever composed the address.

        A page that the user named is the user's; any other address is made of all that the task has seen.
        Raises `PageDenied` for what is no address: the policy lets none pass.
        """
        text = call.arguments.get(tool.url_argument)
        url = parse_url(text) if isinstance(text, str) else None
        if url is None:
            raise PageDenied(NOT_PLAIN)
        known = task.ledger.known(task.mark)
        named = spelling_of(url, known.said) is not None
        return Fetch(
            tool=tool,
            call=call,
            url=url,
            label=known.spoken if named else task.mark,
            inputs=(task.goal.id if named else task.peak.id,),
            call_id=decision.call_id,
        )

    def _decision(
        self,
        call: ToolCall,
        verdict: ToolVerdict,
        context: _Seen,
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
    ) -> bool:
        """Ask the approver about exactly these arguments, and these `matters`.

        Matters that the task was let in to meanwhile were not in the question: then a yes does not count.
        """
        meeting = matters if verdict.rule == MATTERS_MEET else NO_MATTER
        unnamed = {
            name: provenance(call.arguments[name], known)
            for name in needs_a_person(self._workshop.policy, call, known)
        }
        request = approval_request(call, task.mark.data_class, meeting, unnamed)
        task.ledger.asked()
        yes = await ask_person(self._workshop, decision, request, task=task.id, lasts_us=APPROVAL_LASTS_US)
        if yes is None or not task.matters <= matters:
            task.ledger.was_refused(call_key(call), by_person=self._workshop.approver is not None)
            return False
        task.admit(matters)
        task.ledger.runs(call.tool)
        return True

    async def _to_disk(self) -> None:
        await anyio.to_thread.run_sync(self._workshop.trace.barrier)


async def _shown(
    output: ToolOutput, reads: Reads | None, task: Task, *, lines: bool
) -> tuple[ToolOutput, int]:
    """Return what the task is shown of `output`, and how many texts it is not: of a page, `lines` of it.

    None of those is quoted.
    """
    if reads is None or reads.most is None:
        return output, 0
    work = withhold_lines if lines else withhold
    text, count = await aside(partial(work, output.text, reads.most, task.class_of), size=len(output.text))
    left = tuple(each for each in output.excerpts if lines and each.text in text)
    return (replace(output, text=text, excerpts=left) if count else output), count


def _check_output(output: object) -> None:
    """Raise `TypeError` for what a tool returned that is no output: a tool is somebody's code."""
    if not isinstance(output, ToolOutput) or not isinstance(output.text, str):
        raise TypeError("a tool returns a ToolOutput")


def _say(task: Task, text: str, context: _Seen) -> Block:
    return task.mint(BlockKind.TOOL, text, context.mark, residue=context.residue)


def _refusal(verdict: Ask) -> str:
    """Return what the model is told when nobody said yes. It names no matter: their names are content."""
    if verdict.rule == MATTERS_MEET:
        fix = "open the task for one matter (`--matter NAME`, in a program `matter=`), or name a path"
        return f"{DENIED}this would bring two matters together; {fix}"
    if verdict.rule == NOT_NAMED:
        return f"{DENIED}the user did not name whom or what this is for, and nobody approved it"
    return f"{DENIED}not approved"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
