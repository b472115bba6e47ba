# SPDX-License-Identifier: Apache-2.0
"""Native tools in each protocol: what is offered, and calls that are read the same wherever bytes are cut."""

import json
from typing import Any

import pytest

from runner.capability.backends.anthropic import AnthropicBackend
from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.backends.ollama import OllamaBackend
from runner.capability.backends.openai import OpenAIBackend
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, InferenceReply, InferenceRequest, WrittenCall
from runner.kernel.messages import ToolSpec
from runner.kernel.ports import Backend

HERE = Address(scheme="http", host="127.0.0.1", port=8080)
PARAMETERS: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}}
TOOL = ToolSpec(name="add", description="Adds.", parameters=PARAMETERS)
LLAMACPP = LlamaCppBackend(name="b", model="m", address=HERE, context=0)
OLLAMA = OllamaBackend(name="b", model="m", address=HERE, context=4096)
ANTHROPIC = AnthropicBackend(name="b", model="m", address=HERE)
CHAT = [
    LLAMACPP,
    OpenAIBackend(name="b", model="m", address=HERE),
    EmbeddedBackend(name="b", model="m", context=0),
]
TWO = (WrittenCall(name="add", arguments='{"n":1}'), WrittenCall(name="sub", arguments='{"n":2}'))


def asking(*, stream: bool = False) -> InferenceRequest:
    return InferenceRequest(messages=(), tools=(TOOL,), stream=stream)


def body_of(backend: Backend) -> Any:
    return json.loads(backend.encode(asking()).body)


def events(*items: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(item).encode() + b"\n\n" for item in items)


def delta(*calls: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": None, "tool_calls": list(calls)}, "finish_reason": finish}]}


def piece(index: int, arguments: str, **more: str) -> dict[str, Any]:
    name = {"name": more["name"]} if "name" in more else {}
    return {"index": index, "id": more.get("id"), "function": {**name, "arguments": arguments}}


CHAT_STREAM = (
    events(
        delta(piece(0, "", id="x", name="add")),
        delta(piece(0, '{"n"')),
        delta(piece(1, '{"n":', id="y", name="sub")),
        delta(piece(0, ":1}"), piece(1, "2}")),
        delta(finish="tool_calls"),
    )
    + b"data: [DONE]\n\n"
)


def begun(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def more(index: int, text: str) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": text}
    return {"type": "content_block_delta", "index": index, "delta": delta}


ANTHROPIC_STREAM = events(
    begun(0, type="text", text=""),
    begun(1, type="tool_use", id="x", name="add", input={}),
    more(1, ""),
    more(1, '{"n"'),
    more(1, ":1}"),
    begun(2, type="tool_use", id="y", name="sub", input={}),
    more(2, '{"n":2}'),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
)
OLLAMA_STREAM = b"".join(
    json.dumps(line).encode() + b"\n"
    for line in (
        {"message": {"content": "", "tool_calls": [{"function": {"name": "add", "arguments": {"n": 1}}}]}},
        {"message": {"content": "", "tool_calls": [{"function": {"name": "sub", "arguments": {"n": 2}}}]}},
        {"message": {"content": ""}, "done": True, "done_reason": "stop"},
    )
)


def read(backend: Backend, *chunks: bytes, stream: bool) -> InferenceReply:
    decoder = backend.decoder(asking(stream=stream), 200)
    for chunk in chunks:
        decoder.feed(chunk)
    return decoder.finish()


def plain(calls: tuple[WrittenCall, ...]) -> list[tuple[str, Any]]:
    return [
        (call.name, json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments)
        for call in calls
    ]


@pytest.mark.parametrize("backend", CHAT, ids=lambda each: type(each).__name__)
def test_chat_completions_offer_tools_in_their_form_and_no_constraint(backend: Backend) -> None:
    body = body_of(backend)
    function = {"name": "add", "description": "Adds.", "parameters": PARAMETERS}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert {"grammar", "response_format", "json_schema"}.isdisjoint(body)


def test_ollama_is_told_in_words_what_it_drops_from_a_schema() -> None:
    (tool,) = body_of(OLLAMA)["tools"]
    assert tool["function"]["parameters"] == PARAMETERS
    assert tool["function"]["description"] == (
        'Adds. Arguments: {"type":"object","properties":{"n":{"type":"integer","maximum":9}}}'
    )


def test_anthropic_is_offered_an_input_schema() -> None:
    assert body_of(ANTHROPIC)["tools"] == [
        {"name": "add", "description": "Adds.", "input_schema": PARAMETERS}
    ]


@pytest.mark.parametrize("backend", [*CHAT, OLLAMA, ANTHROPIC], ids=lambda each: type(each).__name__)
def test_without_tools_nothing_is_offered(backend: Backend) -> None:
    body = json.loads(backend.encode(InferenceRequest(messages=())).body)
    assert {"tools", "tool_choice", "parallel_tool_calls"}.isdisjoint(body)


@pytest.mark.parametrize(
    ("backend", "stream"),
    [(LLAMACPP, CHAT_STREAM), (ANTHROPIC, ANTHROPIC_STREAM), (OLLAMA, OLLAMA_STREAM)],
    ids=["chat", "anthropic", "ollama"],
)
def test_a_streamed_reply_has_the_same_calls_wherever_it_is_cut(backend: Backend, stream: bytes) -> None:
    for cut in range(len(stream) + 1):
        reply = read(backend, stream[:cut], stream[cut:], stream=True)
        assert (plain(reply.calls), reply.text) == (plain(TWO), "")


@pytest.mark.parametrize(
    ("backend", "whole"),
    [
        (
            LLAMACPP,
            {
                "choices": [
                    {
                        "finish_reason": "tool_calls",
                        "message": {
                            "content": None,
                            "tool_calls": [
                                {"id": "same", "function": {"name": "add", "arguments": '{"n":1}'}},
                                {"id": "same", "function": {"name": "sub", "arguments": '{"n":2}'}},
                            ],
                        },
                    }
                ]
            },
        ),
        (
            ANTHROPIC,
            {
                "type": "message",
                "stop_reason": "tool_use",
                "content": [
                    {"type": "tool_use", "id": "same", "name": "add", "input": {"n": 1}},
                    {"type": "tool_use", "id": "same", "name": "sub", "input": {"n": 2}},
                ],
            },
        ),
    ],
    ids=["chat", "anthropic"],
)
def test_a_whole_reply_has_its_calls_apart_whatever_ids_the_server_gave(backend: Backend, whole: Any) -> None:
    assert plain(read(backend, json.dumps(whole).encode(), stream=False).calls) == plain(TWO)


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, "{}", id="x", name="add"), piece(0, "{}", id="y")],
        [piece(0, "{}", id="x", name="add"), piece(0, "", name="sub")],
        [{"id": "x", "function": {"name": "add", "arguments": "{}"}}],
        [{"index": 0, "function": {"name": ["add"], "arguments": "{}"}}],
        [{"index": 0, "function": {"name": "add", "arguments": 3}}],
        [{"index": 0, "function": None}],
    ],
    ids=["two-ids", "two-names", "no-place", "name-no-text", "arguments-a-number", "no-function"],
)
def test_i7_pieces_of_two_calls_in_one_place_are_no_call(pieces: list[Any]) -> None:
    stream = events(*map(delta, pieces), delta(finish="tool_calls")) + b"data: [DONE]\n\n"
    with pytest.raises(BackendError, match="not its protocol"):
        read(LLAMACPP, stream, stream=True)


def test_only_where_a_protocol_begins_with_an_empty_object_no_text_is_one() -> None:
    """P2: arguments that never came are told from arguments that are none."""
    ended = ({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"})
    begin = begun(0, type="tool_use", id="x", name="now", input={})
    for stream in ((begin,), (begin, more(0, "")), (begin, more(0, "{}"))):
        assert plain(read(ANTHROPIC, events(*stream, *ended), stream=True).calls) == [("now", {})]
    missing = begun(0, type="tool_use", id="x", name="now")
    assert read(ANTHROPIC, events(missing, *ended), stream=True).calls[0].arguments == ""
    silent = events(delta(piece(0, "", id="x", name="now")), delta(finish="tool_calls")) + b"data: [DONE]\n\n"
    assert read(LLAMACPP, silent, stream=True).calls[0].arguments == ""


def test_i7_arguments_with_a_member_twice_are_not_the_protocol() -> None:
    twice = b'{"message":{"tool_calls":[{"function":{"name":"add","arguments":{"n":1,"n":2}}}]},"done":true}'
    with pytest.raises(BackendError, match="did not answer in its protocol"):
        read(OLLAMA, twice, stream=False)
