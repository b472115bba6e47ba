# SPDX-License-Identifier: Apache-2.0
"""What a reply comes to: a value, calls, or a class of failure.

Owns the last reading of what a model said: JSON under its schema, calls in the runtime's protocol, calls as
text. Nobody executes half a reply: if one call of it cannot be run, it has none. Leaves finding calls in a
text to the port `CallReader`, and whether a call may run to the policy. Carries P2 from below, and I7.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

from runner.kernel.errors import ReplyInvalid
from runner.kernel.inference import InferenceReply, InferenceRequest, WrittenCall
from runner.kernel.messages import JsonObject, ToolSpec
from runner.kernel.ports import CallReader, TextRead
from runner.kernel.tiers import MAX_CALLS, CallFailure, Tier
from runner.perimeter.validate import fits, parse_json, plain

CUT_OFF: Final = "length"
"""The word of `InferenceReply.finish` for a reply that ended because its tokens did."""
ENDED: Final = frozenset({"stop", "tool_calls", "tool_use"})
"""The words for a reply that its model ended. After any other, such as a filter's, nobody knows the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """What a reply says: `value` of a schema, or `calls`: names of offered tools, arguments that fit."""

    value: Any = field(default=None, repr=False)
    calls: tuple[WrittenCall, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for: the request, and the tools whose calls its text may hold (`in_text`)."""

    request: InferenceRequest = field(repr=False)
    in_text: tuple[ToolSpec, ...] = ()

    @property
    def tier(self) -> Tier | None:
        """How the reply is held to a form; None for free text."""
        if self.request.tools:
            return Tier.NATIVE
        if self.in_text:
            return Tier.TEXT
        return None if self.request.schema is None else Tier.CONSTRAINED

    @property
    def offered(self) -> Mapping[str, JsonObject]:
        """The parameters of each tool that may be called, by name."""
        return {tool.name: tool.parameters for tool in (*self.request.tools, *self.in_text)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A reply as it came.

    `read` is what the reader of texts found in it, where calls are taken from its text. `stray`: its text
    holds calls, and none are taken from there.
    """

    reply: InferenceReply
    read: TextRead | None = None
    stray: bool = False

    @property
    def text(self) -> str:
        """All that the model said: its text, and a line for each call that stands beside it."""
        if self.read is not None:
            return self.reply.text
        calls = [f"{call.name} {arguments_text(call)}" for call in self.reply.calls]
        return "\n".join(filter(None, [self.reply.text, *calls]))


def hear(reply: InferenceReply, asked: Asked, reader: CallReader | None) -> Heard:
    """Return `reply` with what `reader` finds in its text, where calls were to be found there.

    A reply to an offer of tools is looked through as well: a call in its text is not one, but no answer
    either. Calls beside a text that should hold them stay as they came, to be refused.
    """
    if reader is None or asked.tier in {None, Tier.CONSTRAINED}:
        return Heard(reply=reply)
    if asked.tier is Tier.TEXT and reply.calls:
        return Heard(reply=reply)
    read = reader.read(reply.text, asked.offered, finished=was_ended(reply, asked.request))
    if asked.tier is Tier.NATIVE:
        return Heard(reply=reply, stray=read.failure is None)
    return Heard(reply=replace(reply, calls=read.calls), read=read)


def understood(heard: Heard, asked: Asked) -> Understood:
    """Return what `heard` says; raise `ReplyInvalid` with the class of its failure."""
    match asked.tier:
        case None:
            return Understood()
        case Tier.CONSTRAINED:
            return Understood(value=_value(heard.reply, asked.request))
        case Tier.NATIVE | Tier.TEXT:
            _check_whole(heard, asked, asked.tier)
            calls = enumerate(heard.reply.calls, start=1)
            return Understood(calls=tuple(_judged(call, asked.offered, number) for number, call in calls))


def understood_twice(raw: Heard, shown: Heard, asked: Asked, sent: Asked) -> tuple[Understood, Understood]:
    """Return what `shown`, the reply with its tokens restored, says to `asked`, and `raw` to what was `sent`.

    Both are judged. What fits as it was said, and not with its tokens restored, stays as it was said: what
    follows must not tell a model elsewhere how long a value is. Raises `ReplyInvalid` otherwise.
    """
    said = understood(raw, sent)
    if shown is raw:
        return said, said
    try:
        return understood(shown, asked), said
    except ReplyInvalid:
        return understood(raw, asked), said


def was_ended(reply: InferenceReply, request: InferenceRequest) -> bool:
    """Return whether the model ended `reply` to `request`: by its last word, and by its count of tokens.

    A server may name what it read of a reply that its limit cut, as vLLM does with `tool_calls`. So one that
    took all its tokens is cut off, whatever its word. A model may also end in the last of them: that is not
    to be told apart, and it is asked once more with more room. A runtime that counts nothing reports 0.
    """
    return reply.finish in ENDED and not _took_all(reply, request)


def _took_all(reply: InferenceReply, request: InferenceRequest) -> bool:
    return reply.usage.completion_tokens >= request.max_tokens


def _value(reply: InferenceReply, request: InferenceRequest) -> Any:  # noqa: ANN401 - parsed JSON
    _check_ended(reply, request)
    try:
        value = parse_json(reply.text)
    except ValueError:
        _refuse(CallFailure.MALFORMED_JSON, "the reply is not JSON")
    if not fits(value, request.schema or {}):
        _refuse(CallFailure.SCHEMA_VIOLATION, "the reply does not fit its schema")
    return value


def _check_ended(reply: InferenceReply, request: InferenceRequest) -> None:
    """Raise `ReplyInvalid` for a reply that its model did not end: what is missing may be what matters."""
    if reply.finish == CUT_OFF or _took_all(reply, request):
        _refuse(CallFailure.TRUNCATED, "the reply reached its token limit before it was complete")
    if not was_ended(reply, request):
        _refuse(CallFailure.TRUNCATED, "the runtime ended the reply, not the model")


def _check_whole(heard: Heard, asked: Asked, tier: Tier) -> None:
    """Raise `ReplyInvalid` for a reply that is cut off, empty, endless, or says a call where none is read."""
    reply, read = heard.reply, heard.read
    _check_ended(reply, asked.request)
    if heard.stray and reply.calls:
        _refuse(CallFailure.AMBIGUOUS, "calls stand in the text of the reply, and others beside it")
    if heard.stray:
        _refuse(CallFailure.NO_CALL, "a call stands in the text of the reply, where none is taken from")
    if tier is Tier.TEXT and reply.calls and read is None:
        _refuse(CallFailure.NO_CALL, "a call stands beside the text of the reply, where none is taken from")
    if not reply.calls and not reply.text.strip():
        _refuse(CallFailure.NO_CALL, "the reply is empty")
    if len(reply.calls) > MAX_CALLS:
        _refuse(CallFailure.TOO_MANY_CALLS, f"the reply asks for more than {MAX_CALLS} calls")
    if read is not None and read.failure not in {None, CallFailure.NO_CALL}:
        _refuse(read.failure, "no call could be read in the reply", read.where)


def _judged(call: WrittenCall, offered: Mapping[str, JsonObject], number: int) -> WrittenCall:
    """Return `call` with its arguments read; raise `ReplyInvalid` if they do not fit the tool it names."""
    where = f"in call {number}"
    schema = offered.get(call.name)
    if schema is None:
        _refuse(CallFailure.WRONG_TOOL, "the reply calls a tool that was not offered", where)
    try:
        written = call.arguments
        arguments = parse_json(written) if isinstance(written, str) else plain(written)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        _refuse(CallFailure.MALFORMED_JSON, "the arguments of a call are no JSON object", where)
    if not fits(arguments, schema):
        _refuse(_misfit(arguments, schema), "the arguments of a call do not fit its tool", where)
    return WrittenCall(name=call.name, arguments=arguments)


def _misfit(arguments: dict[str, Any], schema: JsonObject) -> CallFailure:
    """Return the class of arguments that do not fit `schema`."""
    required, known = schema.get("required"), schema.get("properties")
    if isinstance(required, list | tuple) and not set(required) <= arguments.keys():
        return CallFailure.MISSING_REQUIRED
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    if closed and not arguments.keys() <= (known.keys() if isinstance(known, Mapping) else set()):
        return CallFailure.HALLUCINATED_ARGUMENT
    return CallFailure.SCHEMA_VIOLATION


def arguments_text(call: WrittenCall) -> str:
    """Return the arguments of `call` as JSON text; those that are text as they were written."""
    written = call.arguments
    return written if isinstance(written, str) else json.dumps(plain(written), ensure_ascii=False)


def _refuse(failure: CallFailure, problem: str, where: str = "") -> NoReturn:
    raise ReplyInvalid(problem, failure=failure, where=where)
