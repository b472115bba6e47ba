# SPDX-License-Identifier: Apache-2.0
"""How a canary stands in a request of each protocol, and what is heard in its answer. Pure.

Owns the forms that are tried and never used otherwise, and the reading of a whole answer for the places where
text, calls and reasoning can hide. Leaves the form a codec uses to its own `encode`, so that what was found
to be enforced is what is sent, and what an answer says to the perimeter. Serves P1.
Source of the forms: the server documentation of llama.cpp, llama-cpp-python, vLLM, OpenAI and Anthropic.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, Protocol

from runner.capability.backends.protocol import (
    NotProtocolError,
    encode_json,
    grammar_of,
    lowered_of,
    member_count,
    member_object,
    member_text,
    parse_object,
)
from runner.kernel.capabilities import Mechanism, Thinking
from runner.kernel.inference import InferenceRequest, WireRequest, WrittenCall
from runner.kernel.messages import Json, JsonObject, ToolSpec
from runner.kernel.probing import Canary, Heard

_BROKEN: Final = 'root ::= ("'
_OPEN: Final = "<think>"
_BESIDE: Final = ("reasoning", "reasoning_content", "thinking")

LLAMA: Final = (
    Mechanism.GRAMMAR,
    Mechanism.TOOLS,
    Mechanism.TOOLS_WITH_FORMAT,
    Mechanism.RESPONSE_FORMAT_FLAT,
    Mechanism.TOOL_CHOICE,
)
"""What is tried of llama.cpp."""
ENGINE_OTHERS: Final = (
    Mechanism.RESPONSE_FORMAT_FLAT,
    Mechanism.TOOL_CHOICE,
    Mechanism.GRAMMAR_UNTYPED,
    Mechanism.RESPONSE_FORMAT,
    Mechanism.JSON_SCHEMA,
)
"""Its other forms, in this process: there a grammar that no parser reads would be printed."""
LLAMA_OTHERS: Final = (*ENGINE_OTHERS[:3], Mechanism.GRAMMAR_BROKEN, *ENGINE_OTHERS[3:])
"""Its other forms, on a server."""


class Codec(Protocol):
    """The part of a codec that expresses what it uses itself."""

    @property
    def name(self) -> str:
        """Its name."""

    def encode(self, request: InferenceRequest) -> WireRequest:
        """Return the bytes of a request."""


def canary_wire(
    codec: Codec,
    canary: Canary,
    *,
    uses: Mechanism,
    form: Callable[[str, Canary], JsonObject],
    also: JsonObject | None = None,
) -> WireRequest:
    """Return the bytes of `canary`, where `codec` uses the mechanism `uses` for schemas.

    That form, and tools by themselves, are encoded by the codec itself. For the others, the members that
    `form` gives, by the name of the codec and the canary, come to a plain request. `also` comes to every one;
    a member that is None is taken out. Raises `BackendError`.
    """
    own = canary.mechanism in {uses, Mechanism.TOOLS}
    plain = canary if own else replace(canary, tools=())
    held = canary.mechanism in {uses, Mechanism.TOOLS_WITH_FORMAT}
    wire = codec.encode(plain.request(held=held))
    extra = {**({} if own else form(codec.name, canary)), **(also or {})}
    if not extra:
        return wire
    body: JsonObject = {**json.loads(wire.body), **extra}
    kept = {name: value for name, value in body.items() if value is not None}
    return replace(wire, body=encode_json(codec.name, kept))


# --- forms ---------------------------------------------------------------------------------------


def chat_form(name: str, canary: Canary) -> JsonObject:
    """Return the members that put `canary` into a chat completion, none for a form it does not have.

    Raises `BackendError`, naming the backend `name`, for a schema without a grammar.
    """
    if canary.tools:
        return _offered(canary)
    form = _CHAT.get(canary.mechanism)
    return {} if form is None else form(name, canary.schema)


_CHAT: Final[Mapping[Mechanism, Callable[[str, JsonObject], JsonObject]]] = {
    Mechanism.GRAMMAR_UNTYPED: lambda name, schema: {
        "grammar": {"type": "gbnf", "value": grammar_of(name, schema)}
    },
    Mechanism.GRAMMAR_BROKEN: lambda _, __: {"grammar": _BROKEN},
    Mechanism.JSON_SCHEMA: lambda name, schema: {"json_schema": lowered_of(name, schema)},
    Mechanism.RESPONSE_FORMAT: lambda _, schema: {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": schema},
        }
    },
    Mechanism.RESPONSE_FORMAT_FLAT: lambda _, schema: {
        "response_format": {"type": "json_schema", "schema": schema}
    },
    Mechanism.JSON_OBJECT: lambda _, schema: {"response_format": {"type": "json_object", "schema": schema}},
    Mechanism.STRUCTURED_OUTPUTS: lambda _, schema: {"structured_outputs": {"json": schema}},
    Mechanism.GUIDED_JSON: lambda _, schema: {"guided_json": schema},
}


def ollama_form(name: str, canary: Canary) -> JsonObject:  # noqa: ARG001 - as the other forms
    """Return the members that put `canary` into a request to Ollama."""
    return _offered(canary) if canary.tools else {}


def anthropic_form(name: str, canary: Canary) -> JsonObject:  # noqa: ARG001 - as the other forms
    """Return the members that put `canary` into a request to the Messages API."""
    if not canary.tools:
        return {}
    tools: list[Json] = [
        {"name": each.name, "description": each.description, "input_schema": each.parameters}
        for each in canary.tools
    ]
    chosen: JsonObject = {"type": "tool", "name": canary.choice}
    return {"tools": tools, **({"tool_choice": chosen} if canary.choice else {})}


def _offered(canary: Canary) -> JsonObject:
    """Return the tools of `canary`, and the one it demands, as chat completions have them."""
    chosen: JsonObject = {"type": "function", "function": {"name": canary.choice}}
    tools: list[Json] = [{"type": "function", "function": _function(each)} for each in canary.tools]
    return {"tools": tools, **({"tool_choice": chosen} if canary.choice else {})}


def _function(tool: ToolSpec) -> JsonObject:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


# --- parsing: from here on the bytes are a server's, and nothing in them is believed -------------------


def chat_heard(body: bytes) -> Heard:
    """Return what a whole chat completion says. Raises `NotProtocolError`, for an error in it too."""
    members = parse_object(body)
    choices = members.get("choices")
    if "error" in members or not isinstance(choices, list) or len(choices) != 1:
        raise NotProtocolError
    choice = member_object(choices[0])
    message = member_object(choice.get("message"))
    usage = members.get("usage")
    return _heard(
        message,
        text=member_text(message.get("content")),
        finish=choice.get("finish_reason"),
        tokens=member_count(usage.get("completion_tokens")) if isinstance(usage, dict) else 0,
    )


def ollama_heard(body: bytes) -> Heard:
    """Return what a whole answer of Ollama says. Raises `NotProtocolError`, for an error in it too."""
    members = parse_object(body)
    if "error" in members or members.get("done") is not True:
        raise NotProtocolError
    message = member_object(members.get("message"))
    return _heard(
        message,
        text=member_text(message.get("content")),
        finish=members.get("done_reason"),
        tokens=member_count(members.get("eval_count")),
    )


def anthropic_heard(body: bytes) -> Heard:
    """Return what a whole message says. Raises `NotProtocolError`, for an error in it too."""
    members = parse_object(body)
    content = members.get("content")
    if members.get("type") != "message" or not isinstance(content, list):
        raise NotProtocolError
    blocks = [member_object(block) for block in content]
    usage = members.get("usage")
    thought = any(block.get("type") in {"thinking", "redacted_thinking"} for block in blocks)
    return Heard(
        text="".join(member_text(block.get("text")) for block in blocks if block.get("type") == "text"),
        calls=tuple(
            WrittenCall(name=member_text(block.get("name")), arguments=member_object(block.get("input")))  # type: ignore[arg-type]  # JSON, as it was parsed
            for block in blocks
            if block.get("type") == "tool_use"
        ),
        truncated=members.get("stop_reason") == "max_tokens",
        thinking=Thinking.BESIDE if thought else Thinking.ABSENT,
        tokens=member_count(usage.get("output_tokens")) if isinstance(usage, dict) else 0,
    )


def _heard(message: Mapping[str, object], *, text: str, finish: object, tokens: int) -> Heard:
    thinking = Thinking.INLINE if _OPEN in text else Thinking.ABSENT
    if any(message.get(member) not in (None, "") for member in _BESIDE):
        thinking = Thinking.BESIDE
    return Heard(
        text=text,
        calls=tuple(_calls(message.get("tool_calls"))),
        truncated=finish == "length",
        thinking=thinking,
        tokens=tokens,
    )


def _calls(value: object) -> Iterator[WrittenCall]:
    """Yield the calls in a list of them; raise `NotProtocolError` for what is none."""
    if value is None:
        return
    if not isinstance(value, list):
        raise NotProtocolError
    for item in value:
        function = member_object(member_object(item).get("function"))
        arguments = function.get("arguments")
        if not isinstance(arguments, str | dict):
            raise NotProtocolError
        yield WrittenCall(name=member_text(function.get("name")), arguments=arguments)
