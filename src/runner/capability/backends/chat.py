# SPDX-License-Identifier: Apache-2.0
"""The chat-completions shape that llama-server and OpenAI-like endpoints share, as pure functions.

Owns `ChatCodec`, which their codecs are made of, how a request is laid out as JSON, and what one object of a
reply says. Leaves each runtime's own fields to its codec, the handling of bytes to `protocol`, and the
validation of a constrained reply to the caller. Serves P1: the bytes depend on the typed request only.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from runner.capability.backends.canaries import canary_wire, chat_form, chat_heard
from runner.capability.backends.protocol import (
    IMAGES,
    CallPart,
    Events,
    NotProtocolError,
    Part,
    Stream,
    Whole,
    base64_of,
    decoder_for,
    encode_json,
    function_of,
    grammar_of,
    has_media,
    member_arguments,
    member_count,
    member_list,
    member_object,
    member_text,
    member_word,
    parse_object,
    read_by,
    sampling,
    text_of,
)
from runner.kernel.capabilities import Mechanism
from runner.kernel.inference import Address, InferenceRequest, Usage, WireRequest
from runner.kernel.messages import Block, Json, JsonObject, Message, ToolSpec
from runner.kernel.ports import Decoder
from runner.kernel.probing import Canary, Heard

PATH: Final = "/v1/chat/completions"
_END: Final = b"[DONE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCodec:
    """What codecs of chat completions are alike in: asked at `address` for `model`, each with its `fields`.

    The first of its `mechanisms` is the one that it holds a reply to a schema by.
    """

    name: str
    model: str
    address: Address

    mechanisms: ClassVar[tuple[Mechanism, ...]]

    def fields(self, request: InferenceRequest) -> JsonObject:
        """Return the members of `request` that only this runtime knows; raise `BackendError`."""
        raise NotImplementedError

    def encode(self, request: InferenceRequest) -> WireRequest:
        """Return the exact bytes for `request`; raise `BackendError` if it cannot be expressed."""
        return chat_wire(
            name=self.name,
            model=self.model,
            address=self.address,
            request=request,
            fields=self.fields(request),
        )

    def decoder(self, request: InferenceRequest, status: int) -> Decoder:
        """Return a decoder for the reply to `request` that arrived with `status`."""
        return chat_decoder(name=self.name, request=request, status=status, stream=request.stream)

    def canary(self, canary: Canary) -> WireRequest:
        """Return the exact bytes of `canary`; raise `BackendError` if it cannot be expressed."""
        return canary_wire(self, canary, uses=self.mechanisms[0], form=chat_form)

    def heard(self, body: bytes) -> Heard:
        """Return what `body`, the whole reply to a canary, says; raise `BackendError`."""
        return chat_heard(body)


def chat_wire(
    *,
    name: str,
    model: str,
    address: Address,
    request: InferenceRequest,
    fields: JsonObject,
    media: Collection[str] = IMAGES,
) -> WireRequest:
    """Return `request` as the exact bytes of a chat completion, with a runtime's own `fields` at the end.

    Raises `BackendError`, naming the backend `name`, for a lone surrogate, a number that is not finite, a
    schema that is not JSON, or media that are not among the types `media` or not in a message of the user.
    """
    usage: JsonObject = {"stream_options": {"include_usage": True}} if request.stream else {}
    body: JsonObject = {
        "model": model,
        "messages": [
            {"role": message.role.value, "content": _content(name, message, media)}
            for message in request.messages
        ],
        **sampling(request),
        "stream": request.stream,
        **usage,
        **_offer(request.tools),
        **fields,
    }
    accept = "text/event-stream" if request.stream else "application/json"
    return WireRequest(
        method="POST",
        address=address,
        path=PATH,
        headers=(("Content-Type", "application/json"), ("Accept", accept)),
        body=encode_json(name, body),
    )


def _content(name: str, message: Message, media: Collection[str]) -> Json:
    """Return what a message says: its text, or with media a part for each block, in order."""
    if not has_media(name, message, media):
        return text_of(message)
    return [_part(block) for block in message.blocks]


def _part(block: Block) -> JsonObject:
    if block.media is None:
        return {"type": "text", "text": block.text}
    url = f"data:{block.media.mime};base64,{base64_of(block.media)}"
    return {"type": "image_url", "image_url": {"url": url}}


def _offer(tools: Sequence[ToolSpec]) -> JsonObject:
    """Return the members that offer `tools`; nothing without any."""
    if not tools:
        return {}
    return {
        "tools": [function_of(tool) for tool in tools],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }


def grammar_field(name: str, schema: JsonObject | None) -> JsonObject:
    """Return the `grammar` member that holds a llama.cpp reply to `schema`; nothing without a schema.

    Raises `BackendError`, naming the backend `name` and the reason, for a schema the compiler refuses.
    """
    return {} if schema is None else {"grammar": grammar_of(name, schema)}


def chat_decoder(*, name: str, request: InferenceRequest, status: int, stream: bool) -> Decoder:
    """Return a decoder for the reply of backend `name` to `request`, which arrived with `status`.

    It comes as events if `stream`.
    """
    if stream:
        parse = read_by(parse_event, request)
        return decoder_for(name, status, lambda: Stream(name, Events().split, parse))
    whole = read_by(lambda data: parse_part(data, "message"), request)
    return decoder_for(name, status, lambda: Whole(name, whole))


# --- parsing: from here on the bytes are a server's, and nothing in them is believed -------------------


def parse_event(data: bytes) -> Part:
    """Return what one event says; the last one is `[DONE]`. Raises `NotProtocolError`."""
    return Part(done=True) if data == _END else parse_part(data, "delta")


def parse_part(data: bytes, key: str) -> Part:
    """Return what one JSON object says, its text under `key` ("message" or "delta") of its only choice.

    Reasoning text beside the answer is dropped. Raises `NotProtocolError` for anything but the protocol.
    """
    members = parse_object(data)
    if "error" in members:
        return Part(error=_error_status(members["error"]))
    choices = members.get("choices")
    if not isinstance(choices, list) or len(choices) > 1:
        raise NotProtocolError
    usage = _usage(members.get("usage"))
    if not choices:
        return Part(usage=usage)
    choice = member_object(choices[0])
    said = member_object(choice.get(key))
    return Part(
        text=member_text(said.get("content")),
        finish=member_word(choice.get("finish_reason")),
        usage=usage,
        calls=tuple(_call(member_object(call), key) for call in member_list(said.get("tool_calls"))),
    )


def _call(members: Mapping[str, object], key: str) -> CallPart:
    """Return a call of a message, which is whole, or of a delta, which says its place."""
    function = member_object(members.get("function"))
    place = members.get("index") if key == "delta" else None
    if key == "delta" and type(place) is not int:
        raise NotProtocolError
    return CallPart(
        place=place if isinstance(place, int) else None,
        id=member_text(members.get("id")),
        name=member_text(function.get("name")),
        arguments=member_arguments(function.get("arguments")),
    )


def _usage(value: object) -> Usage:
    if not isinstance(value, dict):
        return Usage()
    return Usage(
        prompt_tokens=member_count(value.get("prompt_tokens")),
        completion_tokens=member_count(value.get("completion_tokens")),
    )


def _error_status(value: object) -> int:
    code = value.get("code") if isinstance(value, dict) else None
    return code if type(code) is int and 400 <= code <= 599 else 500  # noqa: PLR2004 - RFC 9110
