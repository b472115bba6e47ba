# SPDX-License-Identifier: Apache-2.0
"""The codec for Anthropic's Messages API.

Owns its layout: the system prompt beside the messages, a schema as `output_config.format`, typed events.
Leaves bytes to `protocol`, and the API key to the perimeter, which adds it after `release()` (I5). Serves P1.
`temperature` and `seed` are not sent: the API has no seed, and its present models refuse a temperature.
Source: the API reference and the types of the anthropic-sdk-python repository, version 2.10.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from runner.capability.backends.canaries import anthropic_form, anthropic_heard, canary_wire
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
    has_media,
    lowered_of,
    member_arguments,
    member_count,
    member_object,
    member_text,
    member_word,
    parse_object,
    read_by,
    text_of,
)
from runner.kernel.capabilities import Facts, Mechanism
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, Answer, InferenceRequest, Usage, WireRequest
from runner.kernel.messages import Block, Json, JsonObject, Message, Role, ToolSpec
from runner.kernel.ports import Decoder
from runner.kernel.probing import Canary, Heard

PATH: Final = "/v1/messages"
VERSION: Final = "2023-06-01"
MEDIA: Final = IMAGES | {"application/pdf"}
_FINISH: Final[Mapping[str, str]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_ERRORS: Final[Mapping[object, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
_KEPT: Final = frozenset({"type", "enum", "const", "required", "$ref"})
"""Keywords that travel as they are. Bounds and patterns do not: the API refuses them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicBackend:
    """A Messages endpoint at `address`, asked for `model`. Implements `Backend` and `Probeable`.

    A schema is loosened to the keywords the API takes, so the reply is validated by whoever asked.
    """

    name: str
    model: str
    address: Address

    mechanisms: ClassVar[tuple[Mechanism, ...]] = (
        Mechanism.OUTPUT_CONFIG,
        Mechanism.TOOLS,
        Mechanism.TOOLS_WITH_FORMAT,
        Mechanism.TOOL_CHOICE,
    )
    other_forms: ClassVar[tuple[Mechanism, ...]] = (Mechanism.TOOL_CHOICE,)
    wrapped: ClassVar[bool] = True

    def encode(self, request: InferenceRequest) -> WireRequest:
        """Return the exact bytes for `request`; raise `BackendError` if it cannot be expressed."""
        spoken = [message for message in request.messages if message.role is Role.SYSTEM]
        system = [text_of(message) for message in spoken if not has_media(self.name, message, MEDIA)]
        instructions: JsonObject = {"system": "\n\n".join(system)} if system else {}
        body: JsonObject = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            **instructions,
            "messages": [
                {"role": message.role.value, "content": _content(self.name, message)}
                for message in request.messages
                if message.role is not Role.SYSTEM
            ],
            "stream": request.stream,
            **_output_config(self.name, request.schema),
            **_offer(request.tools),
        }
        accept = "text/event-stream" if request.stream else "application/json"
        return WireRequest(
            method="POST",
            address=self.address,
            path=PATH,
            headers=(
                ("Content-Type", "application/json"),
                ("Accept", accept),
                ("anthropic-version", VERSION),
            ),
            body=encode_json(self.name, body),
        )

    def decoder(self, request: InferenceRequest, status: int) -> Decoder:
        """Return a decoder for the reply to `request` that arrived with `status`."""
        if request.stream:
            parse = read_by(parse_event, request)
            return decoder_for(self.name, status, lambda: Stream(self.name, Events().split, parse))
        return decoder_for(self.name, status, lambda: Whole(self.name, read_by(parse_message, request)))

    def canary(self, canary: Canary) -> WireRequest:
        """Return the exact bytes of `canary`; raise `BackendError` if it cannot be expressed."""
        return canary_wire(self, canary, uses=self.mechanisms[0], form=anthropic_form)

    def heard(self, body: bytes) -> Heard:
        """Return what `body`, the whole reply to a canary, says; raise `BackendError`."""
        return anthropic_heard(body)

    @property
    def facts_asked(self) -> tuple[WireRequest, ...]:
        """What the runtime is asked about itself."""
        return ()

    def facts(self, answers: Sequence[Answer | None]) -> Facts:  # noqa: ARG002 - the Probeable port
        """Return what `answers` say. Total."""
        return Facts()


def _content(name: str, message: Message) -> Json:
    """Return what a message says: its text, or with media a block for each of its blocks, in order."""
    if not has_media(name, message, MEDIA):
        return text_of(message)
    return [_said(block) for block in message.blocks]


def _said(block: Block) -> JsonObject:
    if block.media is None:
        return {"type": "text", "text": block.text}
    source = {"type": "base64", "media_type": block.media.mime, "data": base64_of(block.media)}
    return {"type": "image" if block.media.mime in IMAGES else "document", "source": source}


def _offer(tools: Sequence[ToolSpec]) -> JsonObject:
    """Return the members that offer `tools`; nothing without any."""
    if not tools:
        return {}
    offered: Json = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in tools
    ]
    return {"tools": offered, "tool_choice": {"type": "auto"}}


# --- schemas -----------------------------------------------------------------------------------


def _output_config(name: str, schema: JsonObject | None) -> JsonObject:
    if schema is None:
        return {}
    lowered = lowered_of(name, schema)
    return {"output_config": {"format": {"type": "json_schema", "schema": _accepted(name, lowered)}}}


def _accepted(name: str, schema: Json) -> JsonObject:
    """Return a lowered `schema` in the API's keywords; raise `BackendError` for what it cannot hold at all.

    It cannot hold free values, objects with free member names, or arrays with a type for each place.
    """
    if not isinstance(schema, Mapping) or not schema or "prefixItems" in schema:
        raise BackendError(f"backend {name!r}: the reply schema allows what this API cannot be held to")
    kept: dict[str, Json] = {key: value for key, value in schema.items() if key in _KEPT}
    for key in ("properties", "$defs"):
        if isinstance(inner := schema.get(key), Mapping):
            kept[key] = {member: _accepted(name, value) for member, value in inner.items()}
    if isinstance(options := schema.get("anyOf"), list):
        kept["anyOf"] = [_accepted(name, option) for option in options]
    if schema.get("type") == "array":
        kept["items"] = _accepted(name, schema.get("items"))
    if schema.get("type") == "object":
        if not schema.get("properties") and schema.get("additionalProperties") is not False:
            raise BackendError(f"backend {name!r}: the reply schema has an object without declared members")
        kept["additionalProperties"] = False
    return kept


# --- parsing: from here on the bytes are a server's, and nothing in them is believed -------------------


def parse_message(data: bytes) -> Part:
    """Return what a whole reply says: its text blocks, joined. Raises `NotProtocolError`."""
    members = parse_object(data)
    if members.get("type") == "error":
        return _error(members)
    content = members.get("content")
    if members.get("type") != "message" or not isinstance(content, list):
        raise NotProtocolError
    blocks = [member_object(block) for block in content]
    return Part(
        text="".join(_text_in(block, "text") for block in blocks),
        finish=_finish(members.get("stop_reason")),
        usage=_usage(members.get("usage")),
        calls=tuple(_call(block, None) for block in blocks if block.get("type") == "tool_use"),
    )


def parse_event(data: bytes) -> Part:
    """Return what one event says; kinds of event and of block that are not known say nothing.

    Raises `NotProtocolError`.
    """
    members = parse_object(data)
    part = Part()
    match members.get("type"):
        case "message_start":
            part = Part(usage=_usage(member_object(members.get("message")).get("usage")))
        case "content_block_start":
            block = member_object(members.get("content_block"))
            part = Part(text=_text_in(block, "text"), calls=_begun(block, members.get("index")))
        case "content_block_delta":
            delta = member_object(members.get("delta"))
            part = Part(text=_text_in(delta, "text_delta"), calls=_more(delta, members.get("index")))
        case "message_delta":
            delta = member_object(members.get("delta"))
            part = Part(finish=_finish(delta.get("stop_reason")), usage=_usage(members.get("usage")))
        case "message_stop":
            part = Part(done=True)
        case "error":
            part = _error(members)
        case kind if not isinstance(kind, str):
            raise NotProtocolError
    return part


def _begun(block: Mapping[str, object], place: object) -> tuple[CallPart, ...]:
    """Return the call that a block begins, if it is one. Its input follows in pieces of JSON text."""
    return (_call(block, _place(place)),) if block.get("type") == "tool_use" else ()


def _more(delta: Mapping[str, object], place: object) -> tuple[CallPart, ...]:
    """Return the next piece of a call's input, if that is what `delta` holds."""
    if delta.get("type") != "input_json_delta":
        return ()
    return (CallPart(place=_place(place), arguments=member_text(delta.get("partial_json"))),)


def _call(block: Mapping[str, object], place: int | None) -> CallPart:
    return CallPart(
        place=place,
        id=member_text(block.get("id")),
        name=member_text(block.get("name")),
        arguments=member_arguments(block.get("input")),
    )


def _place(value: object) -> int:
    if type(value) is not int:
        raise NotProtocolError
    return value


def _text_in(members: Mapping[str, object], kind: str) -> str:
    return member_text(members.get("text")) if members.get("type") == kind else ""


def _finish(value: object) -> str | None:
    word = member_word(value)
    return None if word is None else _FINISH.get(word, word)


def _usage(value: object) -> Usage:
    if not isinstance(value, dict):
        return Usage()
    prompt = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return Usage(
        prompt_tokens=sum(member_count(value.get(key)) for key in prompt),
        completion_tokens=member_count(value.get("output_tokens")),
    )


def _error(members: Mapping[str, object]) -> Part:
    kind = member_object(members.get("error")).get("type")
    return Part(error=_ERRORS.get(kind, 500) if isinstance(kind, str) else 500)
