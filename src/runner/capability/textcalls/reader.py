# SPDX-License-Identifier: Apache-2.0
"""The parser behind the port: what it found, in the kernel's words.

Owns the translation of its reasons into classes of failure, and of where they were seen into a few words of
ours, which a model is told. Leaves the last word on arguments to the perimeter. Carries I12: no words of the
text.
"""

from collections.abc import Callable, Mapping
from typing import Any

from runner.capability.textcalls.parse import ParsedCall, ParsedCalls, parse_calls
from runner.capability.textcalls.stream import CallStream
from runner.kernel.inference import WrittenCall
from runner.kernel.messages import JsonObject
from runner.kernel.ports import TextRead
from runner.kernel.tiers import CallFailure


class TextCallReader:
    """Reads calls that a model wrote as text. Implements `CallReader`."""

    def read(self, text: str, tools: Mapping[str, JsonObject], *, finished: bool) -> TextRead:
        """Return the calls in `text`; see `parse_calls`."""
        parsed = parse_calls(text, _schemas(tools), finished=finished)
        if parsed.status != "ok":
            return TextRead(failure=_failure(parsed), where=_where(parsed, text))
        return TextRead(calls=tuple(_written(call, tools) for call in parsed.calls))

    def shown(self, tools: Mapping[str, JsonObject]) -> Callable[[str], str]:
        """Return what takes each piece of a reply and returns what is surely no part of a call."""
        return CallStream(_schemas(tools)).feed


def _schemas(tools: Mapping[str, JsonObject]) -> dict[str, dict[str, Any]]:
    return {name: dict(schema) for name, schema in tools.items()}


def _written(call: ParsedCall, tools: Mapping[str, JsonObject]) -> WrittenCall:
    """Return `call` under its name; one without a name is for the one tool that was offered."""
    return WrittenCall(name=next(iter(tools)) if call.name is None else call.name, arguments=call.arguments)


def _failure(parsed: ParsedCalls) -> CallFailure:
    """Return the class of a reason; what has none of its own is a text that is not in the form of a call."""
    match parsed.status:
        case "truncated":
            return CallFailure.TRUNCATED
        case "ambiguous":
            return CallFailure.AMBIGUOUS
        case _ if parsed.reason in set(CallFailure):
            return CallFailure(parsed.reason)
        case _:
            return CallFailure.MALFORMED_JSON


def _where(parsed: ParsedCalls, text: str) -> str:
    """Return where in `text` it was seen: by line and column, or by call; nothing where there is no call."""
    if parsed.number is not None:
        return f"in call {parsed.number}"
    if parsed.at is None or parsed.reason == CallFailure.NO_CALL:
        return ""
    before = text[: parsed.at]
    return f"at line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"
