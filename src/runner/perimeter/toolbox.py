# SPDX-License-Identifier: Apache-2.0
"""The sealed tools: one call, in order, from decision to labelled result.

Owns the sequence decide, approve, record, seal to disk, run, label, record. Leaves the decision to
`policy.decide` and the effect to the tool. Carries I1, I4, I9 and P2: a denied call runs nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, assert_never, final

import anyio
import anyio.to_thread

from runner.kernel.decisions import Allow, Ask, Deny, ToolVerdict
from runner.kernel.errors import ToolError
from runner.kernel.labels import DataClass, Integrity, Label, join_labels
from runner.kernel.messages import Block, BlockKind, ToolCall, ToolSpec
from runner.kernel.ports import ApprovalRequest, Approver, Clock, Effect, Excerpt, Root, Tool, ToolOutput
from runner.perimeter.policy import OTHER, Policy, decide, narrow
from runner.perimeter.sealed import Sealed, refuse_subclass
from runner.perimeter.task import FILE_DEFAULT, Task
from runner.perimeter.trace import records
from runner.perimeter.trace.commit import rendering_digest
from runner.perimeter.trace.log import Trace
from runner.perimeter.validate import plain

APPROVAL_LASTS_US: Final = 300_000_000
"""How long a granted approval may wait for its call: five minutes, in microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReply:
    """What came of a call: `block` is the text for the model, `excerpts` are lines it may quote."""

    status: Literal["ok", "error", "denied"]
    block: Block
    excerpts: tuple[Excerpt, ...] = field(default=(), repr=False)


class Workshop(Protocol):
    """The part of the perimeter that sealed tools work through."""

    @property
    def trace(self) -> Trace:
        """The record."""

    @property
    def policy(self) -> Policy:
        """The grants."""

    @property
    def clock(self) -> Clock:
        """Time, for the expiry of approvals."""

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
        """Return what the policy says about `call`, without running or recording it."""
        if call.tool not in self._tools:
            return Deny(rule="tool-not-granted", hint="no such tool")
        return decide(self._workshop.policy, call)

    async def call(self, call: ToolCall, *, task: Task) -> ToolReply:
        """Run `call` if the policy lets it; a denial and a tool's own error are replies, not exceptions.

        Raises `TraceError` when a step could not be recorded, and then nothing further ran.
        """
        context = task.mark
        verdict = self.decide(call) if task.owns(call.origin) else Deny(rule="origin-unknown", hint="")
        decision = self._decision(call, verdict, context, task)
        self._workshop.trace.append(decision, task=task.id)
        match verdict:
            case Deny():
                await self._to_disk()
                return ToolReply(status="denied", block=_say(task, f"denied: {verdict.hint}", context))
            case Ask():
                if not await self._approved(call, decision, task):
                    return ToolReply(status="denied", block=_say(task, "denied: not approved", context))
            case Allow():
                pass
            case _:
                assert_never(verdict)
        return await self._run(call, decision, context, task)

    async def _run(
        self, call: ToolCall, decision: records.PolicyDecision, context: Label, task: Task
    ) -> ToolReply:
        trace, tool = self._workshop.trace, self._tools[call.tool]
        granted = narrow(self._workshop.policy, call)
        started = records.ToolCall(
            call_id=decision.call_id,
            tool=decision.tool,
            args_commit=decision.args_commit,
            net=tool.effect is Effect.NET,
        )
        trace.append(started, task=task.id)
        await self._to_disk()
        status: Literal["ok", "error"] = "ok"
        try:
            output = await anyio.to_thread.run_sync(tool.run, granted, abandon_on_cancel=True)
        except ToolError as error:
            status, output = "error", ToolOutput(text=f"error: {error}")
        except Exception as error:  # noqa: BLE001 - a tool's fault must not carry its payload further (I12)
            status, output = "error", ToolOutput(text=f"error: the tool failed ({type(error).__name__})")
        label = join_labels(
            [context, *(_label_of(root) for root in granted.roots), _effect_label(tool.effect)]
        )
        block = _say(task, output.text, label)
        result = records.ToolResult(
            call_id=decision.call_id,
            status=status,
            result_commit=trace.commit(_bytes(output.text)),
            bytes=len(_bytes(output.text)),
            block=block.id,
        )
        trace.append(result, task=task.id)
        return ToolReply(status=status, block=block, excerpts=output.excerpts)

    def _decision(
        self, call: ToolCall, verdict: ToolVerdict, context: Label, task: Task
    ) -> records.PolicyDecision:
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
        tool = self._workshop.policy.known(call.tool)
        return records.PolicyDecision(
            call_id=trace.mint_id(),
            tool=tool,
            tool_commit=trace.commit(_bytes(call.tool)) if tool == OTHER else None,
            decision=word,
            rule=verdict.rule,
            args_commit=trace.commit(_arguments(call)),
            data_class=context.data_class,
            inputs=(call.origin.id,) if task.owns(call.origin) else (),
        )

    async def _approved(self, call: ToolCall, decision: records.PolicyDecision, task: Task) -> bool:
        """Ask the approver about exactly these arguments; put the answer on record."""
        request = _approval_request(call, task.mark.data_class)
        approver = self._workshop.approver
        granted = approver is not None and await approver.approve(request) is True
        record = records.Approval(
            call_id=decision.call_id,
            by="none" if approver is None else "user",
            args_commit=decision.args_commit,
            rendering_digest=rendering_digest(request.rendering),
            expires=self._workshop.clock.now_us() + APPROVAL_LASTS_US,
            granted=granted,
        )
        self._workshop.trace.append(record, task=task.id)
        await self._to_disk()
        return granted

    async def _to_disk(self) -> None:
        await anyio.to_thread.run_sync(self._workshop.trace.barrier)


def _say(task: Task, text: str, label: Label) -> Block:
    return task.mint(BlockKind.TOOL, text, label)


def _label_of(root: Root) -> Label:
    """Return what reading under `root` makes of a block: its declared class, else the default for files."""
    return Label(
        declared=root.declared if root.declared is not None else DataClass.C0,
        default=FILE_DEFAULT if root.declared is None else DataClass.C0,
        integrity=Integrity.PRACTICE,
        matters=frozenset() if root.matter is None else frozenset({root.matter}),
        sources=frozenset({root.alias}),
    )


def _effect_label(effect: Effect) -> Label:
    """Return what a tool of this kind adds of itself.

    A file tool returns what lies under its roots. The network returns public pages from anyone. A host tool
    returns whatever the program has at hand, which nobody classified.
    """
    match effect:
        case Effect.READ | Effect.WRITE:
            return Label()
        case Effect.NET:
            return Label(integrity=Integrity.UNTRUSTED)
        case Effect.HOST:
            return Label(default=FILE_DEFAULT, integrity=Integrity.UNTRUSTED)
        case _:
            assert_never(effect)


def _approval_request(call: ToolCall, data_class: DataClass) -> ApprovalRequest:
    """Return what the approver sees: class first, then tool and arguments, escaped to inert ASCII, whole."""
    arguments = json.dumps(plain(call.arguments), ensure_ascii=True, indent=2, sort_keys=True)
    rendering = f"class {data_class.name}\ntool {call.tool!a}\narguments {arguments}\n"
    return ApprovalRequest(tool=call.tool, data_class=data_class, rendering=rendering)


def _arguments(call: ToolCall) -> bytes:
    """Return the normalised arguments that decision, approval and call commit to, all three."""
    text = json.dumps([call.tool, plain(call.arguments)], sort_keys=True, separators=(",", ":"))
    return text.encode("ascii")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
