# SPDX-License-Identifier: Apache-2.0
"""A result, for a person and as data.

Owns what is shown of a `RunResult`: the answer, where it comes from, its class, why the run stopped, and how
to have its record checked. Answer and quotes are foreign text and go through `screen`'s blocks.
"""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any, Final, assert_never

from rich.console import Console

from runner.adapters.cli.codes import CLASSES
from runner.adapters.cli.profiles import DEFAULT
from runner.adapters.cli.screen import print_block, print_facts, print_line
from runner.agent.steps import FailedStep, RunResult, Step, StopReason, ToolStep
from runner.kernel.language import how_many
from runner.perimeter.validate import plain

PIN: Final = "device.vkey"
_REASONS: Final[Mapping[StopReason, str]] = {
    StopReason.ANSWERED: "answered",
    StopReason.NOT_FOUND: "not found: the files do not hold the answer, or no line of them supports one",
    StopReason.STEPS: "the budget of tool calls is spent",
    StopReason.TOKENS: "the budget of tokens is spent",
    StopReason.TIME: "the time is over",
    StopReason.NO_PROGRESS: "no progress: the same call came again",
    StopReason.DENIED: "denied",
    StopReason.FAILED: "failed",
}


def print_result(console: Console, result: RunResult) -> None:
    """Print the answer, its evidence, its class and why the run stopped."""
    if result.stop is StopReason.ANSWERED:
        print_line(console, "Answer", "bold")
        print_block(console, result.answer)
    else:
        print_line(console, "No answer", "bold")
        print_block(console, describe_stop(result))
    if result.evidence:
        print_line(console, "Evidence", "bold")
    elif result.stop is StopReason.ANSWERED:
        print_facts(console, [("Source", "none: nothing that was read bears this out")])
    for evidence in result.evidence:
        print_block(console, evidence.place, style="cyan")
        print_block(console, evidence.quote, depth=2)
    notes = [("Note", note) for note in result.notes]
    print_facts(console, [("Class", CLASSES[result.data_class]), ("Stopped", _summary(result)), *notes])


def print_record(console: Console, trace: Path, profile: str) -> None:
    """Print where the record of a finished run is, and how somebody else checks it."""
    option = "" if profile == DEFAULT else f" --profile {quote(profile)}"
    print_facts(
        console,
        [
            ("Record", str(trace)),
            ("Verify", f"akaion-verify {quote(str(trace))} --pin {PIN}"),
            ("Pin", f"akaion keys export {PIN}{option}  (once; keep it away from the record)"),
        ],
    )


def describe_stop(result: RunResult) -> str:
    """Return why a run ended: our words, and for a denial or a failure the rule or the backend's state."""
    return f"{_REASONS[result.stop]}: {result.detail}" if result.detail else _REASONS[result.stop]


def _summary(result: RunResult) -> str:
    calls = sum(isinstance(step, ToolStep) for step in result.steps)
    spent = f"{how_many(calls, 'tool call')} and {how_many(result.tokens, 'token')}"
    return f"{result.stop.value.replace('_', ' ')}, after {spent}"


def result_data(result: RunResult, trace: Path) -> dict[str, Any]:
    """Return the result as JSON data; the texts are exact."""
    return {
        "answer": result.answer,
        "stop": result.stop.value,
        "found": result.stop is StopReason.ANSWERED,
        "class": result.data_class.name,
        "evidence": [
            {
                "file": evidence.file,
                "page": evidence.page,
                "line": evidence.line,
                "quote": evidence.quote,
            }
            for evidence in result.evidence
        ],
        "steps": [_step_data(step) for step in result.steps],
        "tokens": result.tokens,
        "task": result.task,
        "trace": str(trace),
        "detail": result.detail,
        "confirmed": result.confirmed,
        "unread": result.unread,
        "not_whole": result.not_whole,
        "notes": list(result.notes),
    }


def _step_data(step: Step) -> dict[str, Any]:
    match step:
        case ToolStep():
            return {"tool": step.tool, "arguments": plain(step.arguments), "status": step.status}
        case FailedStep():
            return {"failure": step.failure.value, "tier": step.tier.value}
        case _:
            assert_never(step)
