# SPDX-License-Identifier: Apache-2.0
"""What comes of a call that may run: the tool's output, labelled, shown as far as its grant says, on record.

Owns the order run, withhold, label, record, and what is kept of a result. Leaves whether a call may run, and
everything before that, to `toolbox.py`. Carries I4, I8 and I12: what a tool makes of what it was given keeps
that class, and a tool's fault carries no payload further.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Protocol

import anyio
import anyio.to_thread

from runner.kernel.errors import ToolError, TraceError
from runner.kernel.labels import Label, join_labels
from runner.kernel.messages import Block, BlockKind, ToolCall
from runner.kernel.ports import Approver, Effect, Excerpt, GrantedCall, Tool, ToolOutput, Veil, WebTool
from runner.kernel.web import parse_url
from runner.perimeter.aside import aside
from runner.perimeter.effects import label_of, own_label, residue_of
from runner.perimeter.fetching import NOT_PLAIN, Fetch, PageDenied, PageGate, fetch
from runner.perimeter.flows import Reads
from runner.perimeter.named import spelling_of
from runner.perimeter.policy import Policy, carried, narrow, reach
from runner.perimeter.task import Task
from runner.perimeter.telling import DENIED, EXPIRED
from runner.perimeter.trace import records
from runner.perimeter.withhold import withhold, withhold_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReply:
    """What came of a call: `block` is the text for the model, `excerpts` are lines it may quote.

    `unread` counts the files that the tool came upon and could not read as text, `not_whole` the documents
    that it could not read all of, `withheld` the texts of its result that the grant keeps from the task.
    `rule` is the rule of the policy that denied the call, as it is on record, or says that the approval of it
    had expired; empty for any other reply.
    """

    status: Literal["ok", "error", "denied"]
    block: Block
    excerpts: tuple[Excerpt, ...] = field(default=(), repr=False)
    unread: int = 0
    not_whole: int = 0
    withheld: int = 0
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a call is made of: the task's mark, the part of it that redaction would leave, and its matters."""

    mark: Label
    residue: Label
    matters: AbstractSet[str]

    def join(self, labels: Sequence[Label], residues: Sequence[Label]) -> "Seen":
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A `call` of `task` that `decision` lets run, made of what `seen` says; its start is on record.

    It is answered through `veil`, if there is one. `named` says that the program itself named its file, and
    `until` when the approval expires that lets it run: microseconds since 1970, None where none was needed.
    """

    call: ToolCall
    decision: records.PolicyDecision
    seen: Seen
    task: Task
    veil: Veil | None
    named: bool
    until: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """How a tool ended, with the rule that denied it or a page of it, if one did."""

    status: Literal["ok", "error"]
    output: ToolOutput
    rule: str = ""


async def run_tool(workshop: Workshop, tool: Tool, started: Started) -> ToolReply:
    """Run `tool` for the call that was `started`, and return what came of it; its own error is a reply.

    Redaction lowers the default of what it returns only if no model elsewhere could have asked it about what
    that may not see: it answered from behind the veil, or before such a model saw the task. Of a tool that
    has no veil it lowers nothing: a count, or three letters of a value, is nothing that a detector finds.

    Raises `TraceError` when the result could not be recorded.
    """
    trace, task, call = workshop.trace, started.task, started.call
    grant = workshop.policy.grants[call.tool]
    reached = reach(workshop.policy, call, started.seen.matters)
    came = await _outcome(workshop, tool, started)
    reads = grant.flow.reads
    output, withheld = await _shown(came.output, reads, task, lines=isinstance(tool, WebTool))
    own = own_label(grant.effect, reached, reads)
    falls = grant.veils and (started.veil is not None or not task.exposed)
    residues = [own, *(residue_of(root) if falls else label_of(root) for root in reached)]
    context = started.seen.join([own, *(label_of(root) for root in reached)], residues)
    text = output.text
    context = replace(context, mark=context.mark.with_detected(task.behind(text)))
    examined = await aside(partial(task.examine, text), size=len(text))
    block = task.mint(BlockKind.TOOL, text, context.mark, residue=context.residue, examined=examined)
    if started.veil is not None:
        task.was_veiled(block)
    result = records.ToolResult(
        call_id=started.decision.call_id,
        status=came.status,
        result_commit=trace.commit(_bytes(text)),
        bytes=len(_bytes(text)),
        block=block.id,
    )
    trace.append(result, task=task.id)
    if came.status == "ok":
        drafted = any(root.written for root in reached)
        asked = carried(grant, call.arguments, task.ledger.known(task.mark).said)
        task.ledger.returned(call.tool, asked, text, block.label, drafted=drafted)
        source = join_labels(residues).data_class
        await aside(partial(task.remember, text, source), size=len(text))
    return ToolReply(
        status="denied" if came.rule else came.status,
        block=block,
        excerpts=output.excerpts,
        unread=output.unread,
        not_whole=output.not_whole,
        rule=came.rule,
        withheld=withheld,
    )


async def _outcome(workshop: Workshop, tool: Tool, started: Started) -> _Outcome:
    """Return how `tool` ended; raise `TraceError`. It never begins once what lets it run has expired."""
    if started.until is not None and workshop.trace.now_us() >= started.until:  # the disk took that long
        said = f"{DENIED}{EXPIRED.hint}"
        return _Outcome(status="error", output=ToolOutput(text=said), rule=EXPIRED.rule)
    granted = narrow(workshop.policy, started.call, started.seen.matters)
    granted = replace(granted, veil=started.veil, named=started.named)
    effect = workshop.policy.grants[started.call.tool].effect
    try:
        if isinstance(tool, WebTool) and effect is Effect.NET:
            page = _page(tool, granted, started.decision, started.task)
            output = await fetch(workshop, page, started.task)
        else:
            output = await anyio.to_thread.run_sync(partial(tool.run, granted), abandon_on_cancel=True)
        _check_output(output)
    except TraceError:
        raise
    except PageDenied as denial:
        return _Outcome(status="error", output=ToolOutput(text=f"{DENIED}{denial}"), rule=denial.rule)
    except ToolError as error:
        return _Outcome(status="error", output=ToolOutput(text=f"error: {error}"))
    except Exception as error:  # noqa: BLE001 - a tool's fault must not carry its payload further (I12)
        said = f"error: the tool failed ({type(error).__name__})"
        return _Outcome(status="error", output=ToolOutput(text=said))
    return _Outcome(status="ok", output=output)


def _page(tool: WebTool, call: GrantedCall, decision: records.PolicyDecision, task: Task) -> Fetch:
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


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
