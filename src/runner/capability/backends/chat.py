# SPDX-License-Identifier: Apache-2.0
"""The chat-completions shape that llama-server and OpenAI-like endpoints share, as pure functions.

Owns how a request is laid out as JSON, and how a reply is read, whole or as server-sent events (WHATWG HTML,
section 9.2). Leaves each runtime's own fields to its codec, and the validation of a constrained reply to
the caller. Serves P1: the bytes depend on the typed request only. Serves I12: what a server says about an
error is dropped, since it echoes the prompt; a status and our own words remain.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from runner.capability.grammar import compile_schema
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, InferenceReply, InferenceRequest, Usage, WireRequest
from runner.kernel.messages import JsonObject
from runner.kernel.ports import Decoder

PATH: Final = "/v1/chat/completions"
_OK: Final = 200
_FINISH: Final = re.compile(r"[a-z_]{1,32}\Z")
_PHRASES: Final[Mapping[int, str]] = {
    400: "it refused the request; the prompt may exceed its context, or it cannot read the grammar",
    401: "it wants a credential; check the one the profile names",
    403: "it does not accept the credential the profile names",
    404: "it does not have this model or path",
    413: "the request is too large for it",
    429: "too many requests",
    503: "it is not ready; its model may still be loading",
}


# --- requests ----------------------------------------------------------------------------------


def chat_wire(
    *, name: str, model: str, address: Address, request: InferenceRequest, fields: JsonObject
) -> WireRequest:
    """Return `request` as the exact bytes of a chat completion, with a runtime's own `fields` at the end.

    Raises `BackendError`, naming the backend `name`, for a lone surrogate, a number that is not finite, or a
    schema that is not JSON.
    """
    usage: JsonObject = {"stream_options": {"include_usage": True}} if request.stream else {}
    messages = [
        {"role": message.role.value, "content": "\n\n".join(block.text for block in message.blocks)}
        for message in request.messages
    ]
    body: JsonObject = {
        "model": model,
        "messages": messages,
        "temperature": request.temperature,
        "seed": request.seed,
        "stream": request.stream,
        **usage,
        **fields,
    }
    accept = "text/event-stream" if request.stream else "application/json"
    return WireRequest(
        method="POST",
        address=address,
        path=PATH,
        headers=(("Content-Type", "application/json"), ("Accept", accept)),
        body=_encode(name, body),
    )


def _encode(name: str, body: JsonObject) -> bytes:
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8")
    except (ValueError, TypeError, RecursionError):
        raise BackendError(f"backend {name!r}: the request holds what JSON in UTF-8 cannot carry") from None


def reply_budget(name: str, request: InferenceRequest, context: int) -> JsonObject:
    """Return the `max_tokens` member; raise `BackendError` when `context` tokens cannot hold it.

    A `context` of 0 is unknown and not checked.
    """
    if context and request.max_tokens >= context:
        raise BackendError(
            f"backend {name!r}: a reply of {request.max_tokens} tokens leaves no room for a prompt in a "
            f"context of {context}; ask for less, or raise the context in the profile"
        )
    return {"max_tokens": request.max_tokens}


def grammar_field(name: str, schema: JsonObject | None) -> JsonObject:
    """Return the `grammar` member (GBNF) that holds a llama.cpp reply to `schema`; nothing without a schema.

    Raises `BackendError`, naming the backend `name` and the reason, for a schema the compiler refuses.
    """
    if schema is None:
        return {}
    compiled = compile_schema(schema)
    if compiled.status == "refused" or compiled.gbnf is None:
        raise BackendError(f"backend {name!r}: the reply schema has no grammar: {compiled.reason}")
    return {"grammar": compiled.gbnf}


# --- replies -----------------------------------------------------------------------------------


def chat_decoder(*, name: str, status: int, stream: bool) -> Decoder:
    """Return a decoder for a reply of backend `name` that arrived with `status`, as events if `stream`."""
    if status != _OK:
        return _Refused(name, status)
    return _Stream(name) if stream else _Whole(name)


def describe_status(name: str, status: int) -> str:
    """Return our words for an error `status` of backend `name`."""
    phrase = _PHRASES.get(status, "it failed" if status >= 500 else "it refused the request")  # noqa: PLR2004 - RFC 9110
    return f"backend {name!r} answered {status}: {phrase}"


class _NotChatError(Exception):
    """The bytes are not this protocol. Carries no text of theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What one JSON object of a reply says; `error` is the status of an error it reports (0: none)."""

    text: str = field(default="", repr=False)
    finish: str | None = None
    usage: Usage | None = None
    error: int = 0


class _Refused:
    """The reply to a request that failed: its body is dropped unread."""

    def __init__(self, name: str, status: int) -> None:
        self._message = describe_status(name, status)

    def feed(self, chunk: bytes) -> str:  # noqa: ARG002 - the Decoder port
        return ""

    def finish(self) -> InferenceReply:
        raise BackendError(self._message)


class _Whole:
    """A reply that is one JSON object."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._chunks: list[bytes] = []

    def feed(self, chunk: bytes) -> str:
        self._chunks.append(chunk)
        return ""

    def finish(self) -> InferenceReply:
        try:
            part = parse_part(b"".join(self._chunks), "message")
        except _NotChatError:
            raise BackendError(f"backend {self._name!r} did not answer a chat completion") from None
        return _reply(self._name, part, complete=True)


class _Stream:
    """A reply as server-sent events, closed by `[DONE]`. After a fault the rest is dropped."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines = _Lines()
        self._data: list[bytes] = []
        self._texts: list[str] = []
        self._finish: str | None = None
        self._usage = Usage()
        self._error = 0
        self._broken = False
        self._done = False

    def feed(self, chunk: bytes) -> str:
        before = len(self._texts)
        try:
            for line in self._lines.split(chunk):
                if self._done or self._error:
                    break
                self._take_line(line)
        except _NotChatError:
            self._broken = self._done = True
        return "".join(self._texts[before:])

    def finish(self) -> InferenceReply:
        if self._broken:
            raise BackendError(f"backend {self._name!r} sent an event that is not a chat completion")
        part = _Part(text="".join(self._texts), finish=self._finish, usage=self._usage, error=self._error)
        return _reply(self._name, part, complete=self._done)

    def _take_line(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if not line:
            data, self._data = b"\n".join(self._data), []
            self._take_event(data)
        elif name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"error":
            self._error = 500

    def _take_event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self._done = True
        elif data:
            part = parse_part(data, "delta")
            self._texts.append(part.text)
            self._finish = part.finish or self._finish
            self._usage = part.usage or self._usage
            self._error = part.error


class _Lines:
    """Cuts bytes into lines, whatever their chunking, in linear time."""

    def __init__(self) -> None:
        self._open: list[bytes] = []

    def split(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that `chunk` completes, without their ends."""
        head, *rest = chunk.split(b"\n")
        self._open.append(head)
        for piece in rest:
            line = b"".join(self._open).removesuffix(b"\r")
            self._open = [piece]
            yield line


def _reply(name: str, part: _Part, *, complete: bool) -> InferenceReply:
    if part.error:
        raise BackendError(describe_status(name, part.error))
    if part.finish is None or not complete:
        raise BackendError(f"backend {name!r} broke off before the end of its reply")
    return InferenceReply(text=part.text, finish=part.finish, usage=part.usage or Usage())


# --- parsing: from here on the bytes are a server's, and nothing in them is believed -------------------


def parse_part(data: bytes, key: str) -> _Part:
    """Return what one JSON object says, its text under `key` ("message" or "delta") of its only choice.

    Reasoning text beside the answer is dropped. Raises `_NotChatError` for anything but the protocol.
    """
    try:
        members = _object(json.loads(data.decode("utf-8")))
    except (ValueError, RecursionError):
        raise _NotChatError from None
    if "error" in members:
        return _Part(error=_error_status(members["error"]))
    choices = members.get("choices")
    if not isinstance(choices, list) or len(choices) > 1:
        raise _NotChatError
    usage = _usage(members.get("usage"))
    if not choices:
        return _Part(usage=usage)
    choice = _object(choices[0])
    text = _text(_object(choice.get(key)).get("content"))
    return _Part(text=text, finish=_finish(choice.get("finish_reason")), usage=usage)


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _NotChatError
    return value


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or any("\ud800" <= char <= "\udfff" for char in value):
        raise _NotChatError
    return value


def _finish(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _FINISH.match(value):
        raise _NotChatError
    return value


def _usage(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    return Usage(
        prompt_tokens=_count(value.get("prompt_tokens")),
        completion_tokens=_count(value.get("completion_tokens")),
    )


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def _error_status(value: object) -> int:
    code = value.get("code") if isinstance(value, dict) else None
    return code if type(code) is int and 400 <= code <= 599 else 500  # noqa: PLR2004 - RFC 9110
