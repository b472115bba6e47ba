# SPDX-License-Identifier: Apache-2.0
"""The codec for Ollama's own `/api/chat`: JSON in, one JSON object or a line of JSON a piece out.

Owns the fields only Ollama knows. Leaves bytes and schemas to `protocol`, and what the server says of itself
to `listings`. Serves P1: a request becomes the same bytes whatever came before it.

Parameters of tools pass through structures that drop bounds, patterns, references and more. So the whole
schema stands in the description as well, and arguments are validated by whoever asked.

Ollama cuts a prompt that exceeds its context, silently, unless told not to: half a file would be read as a
whole one. So `truncate` and `shift` are off, and the context is always stated.
Source: the API description and types of the ollama/ollama repository, version 0.33.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from runner.capability.backends.canaries import canary_wire, ollama_form, ollama_heard
from runner.capability.backends.facts import ollama_facts, ollama_questions
from runner.capability.backends.protocol import (
    CallPart,
    Lines,
    Part,
    Stream,
    Whole,
    base64_of,
    decoder_for,
    encode_json,
    function_of,
    has_media,
    lowered_of,
    member_arguments,
    member_count,
    member_list,
    member_object,
    member_text,
    member_word,
    parse_object,
    read_by,
    reply_budget,
    sampling,
    text_of,
)
from runner.kernel.capabilities import Facts, Mechanism
from runner.kernel.inference import Address, Answer, InferenceRequest, Usage, WireRequest
from runner.kernel.messages import JsonObject, Message, ToolSpec
from runner.kernel.ports import Decoder
from runner.kernel.probing import Canary, Heard

PATH: Final = "/api/chat"
PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/webp"})
KEEP_ALIVE: Final = "5m"
"""How long the model stays in memory: said outright, so that no setting keeps prompts there for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaBackend:
    """An Ollama server at `address`, asked for `model` with a context of `context` tokens.

    Implements `Backend` and `Probeable`. A schema travels as `format`. Some models and servers ignore it, so
    the reply is validated by whoever asked. Thinking is off: it would spend the reply's budget, and with some
    models loses the format.
    """

    name: str
    model: str
    address: Address
    context: int

    mechanisms: ClassVar[tuple[Mechanism, ...]] = (
        Mechanism.FORMAT,
        Mechanism.TOOLS,
        Mechanism.TOOLS_WITH_FORMAT,
        Mechanism.TOOL_CHOICE,
    )
    other_forms: ClassVar[tuple[Mechanism, ...]] = (Mechanism.TOOL_CHOICE,)
    wrapped: ClassVar[bool] = False

    def encode(self, request: InferenceRequest) -> WireRequest:
        """Return the exact bytes for `request`; raise `BackendError` if it cannot be expressed."""
        schema = request.schema
        constraint: JsonObject = {} if schema is None else {"format": lowered_of(self.name, schema)}
        body: JsonObject = {
            "model": self.model,
            "messages": [_said(self.name, message) for message in request.messages],
            "stream": request.stream,
            "think": False,
            "truncate": False,
            "shift": False,
            "keep_alive": KEEP_ALIVE,
            "options": {
                "num_ctx": self.context,
                "num_predict": reply_budget(self.name, request, self.context),
                **sampling(request),
            },
            **constraint,
            **_offer(request.tools),
        }
        accept = "application/x-ndjson" if request.stream else "application/json"
        return WireRequest(
            method="POST",
            address=self.address,
            path=PATH,
            headers=(("Content-Type", "application/json"), ("Accept", accept)),
            body=encode_json(self.name, body),
        )

    def decoder(self, request: InferenceRequest, status: int) -> Decoder:
        """Return a decoder for the reply to `request` that arrived with `status`."""
        parse = read_by(parse_line, request)
        if request.stream:
            return decoder_for(self.name, status, lambda: Stream(self.name, Lines().split, parse))
        return decoder_for(self.name, status, lambda: Whole(self.name, parse))

    def canary(self, canary: Canary) -> WireRequest:
        """Return the exact bytes of `canary`; raise `BackendError` if it cannot be expressed."""
        return canary_wire(self, canary, uses=self.mechanisms[0], form=ollama_form)

    def heard(self, body: bytes) -> Heard:
        """Return what `body`, the whole reply to a canary, says; raise `BackendError`."""
        return ollama_heard(body)

    @property
    def facts_asked(self) -> tuple[WireRequest, ...]:
        """What the runtime is asked about itself."""
        return ollama_questions(self.address, self.model)

    def facts(self, answers: Sequence[Answer | None]) -> Facts:
        """Return what `answers` say. Total."""
        return ollama_facts(answers, model=self.model, context=self.context)


def _offer(tools: Sequence[ToolSpec]) -> JsonObject:
    """Return the member that offers `tools`; nothing without any."""
    if not tools:
        return {}
    told = [f"{tool.description} Arguments: {_schema_text(tool)}" for tool in tools]
    return {"tools": [function_of(tool, described=text) for tool, text in zip(tools, told, strict=True)]}


def _schema_text(tool: ToolSpec) -> str:
    return json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":"))


def _said(name: str, message: Message) -> JsonObject:
    """Return `message`, its pictures beside its text."""
    said: JsonObject = {"role": message.role.value, "content": text_of(message)}
    if not has_media(name, message, PICTURES):
        return said
    return {**said, "images": [base64_of(block.media) for block in message.blocks if block.media]}


def parse_line(data: bytes) -> Part:
    """Return what one object of a reply says; one with `done` is the last. Thinking is dropped.

    An error may come in mid-stream, after status 200. Raises `NotProtocolError`.
    """
    members = parse_object(data)
    if "error" in members:
        return Part(error=500)
    done = members.get("done") is True
    message = member_object(members.get("message"))
    calls = [
        member_object(member_object(each).get("function")) for each in member_list(message.get("tool_calls"))
    ]
    return Part(
        text=member_text(message.get("content")),
        finish=(member_word(members.get("done_reason")) or "stop") if done else None,
        usage=Usage(
            prompt_tokens=member_count(members.get("prompt_eval_count")),
            completion_tokens=member_count(members.get("eval_count")),
        ),
        done=done,
        calls=tuple(
            CallPart(
                place=None,
                name=member_text(call.get("name")),
                arguments=member_arguments(call.get("arguments")),
            )
            for call in calls
        ),
    )
