# SPDX-License-Identifier: Apache-2.0
"""Codecs: the exact bytes of a request, and what is read from a reply. Defends P1 and I12."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.backends.openai import OpenAIBackend
from runner.capability.backends.vllm import VllmBackend
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, InferenceReply, InferenceRequest, Usage
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, JsonObject, Message, Role
from runner.kernel.ports import Backend

LOCAL = Address(scheme="http", host="127.0.0.1", port=8080)
AWAY = Address(scheme="https", host="models.example", port=443)
LLAMA = LlamaCppBackend(name="local", model="small", address=LOCAL, context=4096)
EMBEDDED = EmbeddedBackend(name="here", model="small", context=4096)
OPENAI = OpenAIBackend(name="away", model="large", address=AWAY)
VLLM = VllmBackend(name="local", model="small", address=LOCAL, context=4096)
CODECS = [LLAMA, EMBEDDED, OPENAI, VLLM]
CANARY = "RSSMRA80A01F205X"
SCHEMA: JsonObject = {"type": "string", "enum": ["yes", "no"]}


def block(text: str) -> Block:
    return Block(id="b1", kind=BlockKind.GOAL, text=text, label=Label())


def ask(
    *texts: str, schema: JsonObject | None = None, stream: bool = False, max_tokens: int = 16
) -> InferenceRequest:
    message = Message(role=Role.USER, blocks=tuple(block(text) for text in texts or ("Ciao.",)))
    return InferenceRequest(messages=(message,), schema=schema, stream=stream, max_tokens=max_tokens)


def events(*objects: object, end: str = "data: [DONE]\n\n") -> bytes:
    return "".join(f"data: {json.dumps(item)}\n\n" for item in objects).encode() + end.encode()


def delta(text: str | None = None, finish: str | None = None, **more: object) -> object:
    return {"choices": [{"index": 0, "delta": {"content": text, **more}, "finish_reason": finish}]}


def whole(message: object, finish: object = "stop") -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}]}).encode()


def read(data: bytes, *, stream: bool, status: int = 200, backend: Backend = LLAMA) -> InferenceReply:
    decoder = backend.decoder(ask(stream=stream), status)
    decoder.feed(data)
    return decoder.finish()


# --- requests ----------------------------------------------------------------------------------


def test_the_bytes_of_a_llama_server_request_are_these() -> None:
    system = Message(role=Role.SYSTEM, blocks=(block("Sii breve."), block("Rispondi in italiano.")))
    user = Message(role=Role.USER, blocks=(block("Perché?"),))
    wire = LLAMA.encode(InferenceRequest(messages=(system, user), max_tokens=16, temperature=0.0, seed=7))
    expected = (
        '{"model":"small","messages":[{"role":"system","content":"Sii breve.\\n\\nRispondi in italiano."},'
        '{"role":"user","content":"Perché?"}],"temperature":0.0,"seed":7,"stream":false,'
        '"max_tokens":16,"cache_prompt":true}'
    )
    assert wire.body == expected.encode()
    assert (wire.method, wire.address, wire.path) == ("POST", LOCAL, "/v1/chat/completions")
    assert wire.headers == (("Content-Type", "application/json"), ("Accept", "application/json"))


@pytest.mark.parametrize("codec", [LLAMA, VLLM], ids=["llama-server", "vllm"])
def test_a_penalty_is_said_where_there_is_one(codec: Backend) -> None:
    assert json.loads(codec.encode(replace(ask(), frequency_penalty=0.5)).body)["frequency_penalty"] == 0.5
    assert "frequency_penalty" not in json.loads(codec.encode(ask()).body)


def test_a_schema_becomes_a_grammar_and_never_travels_with_tools() -> None:
    body = json.loads(LLAMA.encode(ask(schema=SCHEMA)).body)
    assert body["grammar"].startswith("root ::=")
    assert not {"tools", "tool_choice", "response_format", "json_schema"} & set(body)


def test_the_bytes_of_a_vllm_request_are_these_p1() -> None:
    """One kind of constraint, and it is ours: `guided_*` and whitespace without end stand nowhere."""
    wire = VLLM.encode(ask(schema=SCHEMA, stream=True))
    body = json.loads(wire.body)
    assert (wire.method, wire.path, wire.address) == ("POST", "/v1/chat/completions", LOCAL)
    assert body == {
        "model": "small",
        "messages": [{"role": "user", "content": "Ciao."}],
        "temperature": 0.0,
        "seed": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 16,
        "include_reasoning": False,
        "chat_template_kwargs": {"enable_thinking": False},
        "structured_outputs": {"grammar": json.loads(LLAMA.encode(ask(schema=SCHEMA)).body)["grammar"]},
    }
    assert "structured_outputs" not in json.loads(VLLM.encode(ask()).body)


def test_an_openai_schema_is_a_strict_response_format() -> None:
    body = json.loads(OPENAI.encode(ask(schema=SCHEMA)).body)
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
    }
    assert body["max_completion_tokens"] == 16
    assert "grammar" not in body


def test_the_embedded_engine_always_streams_so_that_it_can_be_stopped() -> None:
    wire = EMBEDDED.encode(ask(stream=False))
    body = json.loads(wire.body)
    assert (body["stream"], body["return_progress"], wire.address.scheme) == (True, True, "inproc")
    reply = read(events(delta("ok", "stop")), stream=False, backend=EMBEDDED)
    assert reply.text == "ok"


@pytest.mark.parametrize("backend", [LLAMA, VLLM], ids=["llama", "vllm"])
def test_a_schema_without_a_grammar_is_refused_by_name(backend: Backend) -> None:
    refused: JsonObject = {"$ref": "https://elsewhere.example/schema"}
    with pytest.raises(BackendError, match=r"'local'.*has no grammar"):
        backend.encode(ask(schema=refused))


@pytest.mark.parametrize("backend", [LLAMA, VLLM, EMBEDDED], ids=["llama", "vllm", "embedded"])
def test_a_reply_budget_beyond_the_context_is_refused(backend: Backend) -> None:
    with pytest.raises(BackendError, match="4096 tokens leaves no room"):
        backend.encode(ask(max_tokens=4096))


def test_a_context_that_is_not_known_is_not_checked() -> None:
    unknown = LlamaCppBackend(name="away", model="m", address=AWAY, context=0)
    assert json.loads(unknown.encode(ask(max_tokens=4096)).body)["max_tokens"] == 4096


@pytest.mark.parametrize("backend", CODECS)
def test_what_json_cannot_carry_is_refused_without_a_quote_i12(backend: Backend) -> None:
    with pytest.raises(BackendError) as caught:
        backend.encode(ask(CANARY + "\ud800"))
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


# --- replies -----------------------------------------------------------------------------------


def test_a_whole_reply_is_read() -> None:
    data = json.loads(whole({"role": "assistant", "content": "Sì."}))
    data["usage"] = {"prompt_tokens": 9, "completion_tokens": 2}
    reply = read(json.dumps(data).encode(), stream=False)
    assert reply == InferenceReply(
        text="Sì.", finish="stop", usage=Usage(prompt_tokens=9, completion_tokens=2)
    )


def test_a_stream_shows_text_as_it_comes_and_reads_the_same_in_the_end() -> None:
    decoder = LLAMA.decoder(ask(stream=True), 200)
    shown = [
        decoder.feed(events(delta(None, role="assistant"), end="")),
        decoder.feed(events(delta("Buon"), end="")),
        decoder.feed(events(delta("giorno"), end="")),
        decoder.feed(events(delta(finish="length"), {"choices": [], "usage": {"completion_tokens": 2}})),
    ]
    assert shown == ["", "Buon", "giorno", ""]
    assert decoder.finish() == InferenceReply(
        text="Buongiorno", finish="length", usage=Usage(completion_tokens=2)
    )


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
def test_reasoning_is_not_mixed_into_the_answer(member: str) -> None:
    """llama-server calls it `reasoning_content`, vLLM `reasoning`. What a parser moved there is no answer."""
    assert read(whole({"content": "42", member: "Let me think."}), stream=False).text == "42"
    stream = events(delta(None, **{member: "Let me think."}), delta("42", "stop"))
    assert read(stream, stream=True).text == "42"
    assert read(whole({"content": None, member: '{"a": 1}'}), stream=False, backend=VLLM).text == ""


def test_event_streams_may_have_comments_other_fields_and_carriage_returns() -> None:
    data = events(delta("a"), delta("b", "stop")).replace(b"\n", b"\r\n")
    assert read(b": ping\r\n\r\nid: 1\r\nevent: x\r\n" + data, stream=True).text == "ab"


@pytest.mark.parametrize(
    ("status", "words"),
    [(400, "refused"), (404, "model or path"), (503, "loading"), (500, "failed"), (418, "refused")],
)
def test_an_error_status_has_our_words_and_never_the_servers_i12(status: int, words: str) -> None:
    body = json.dumps({"error": {"message": CANARY}}).encode()
    with pytest.raises(BackendError, match=f"'local' answered {status}: .*{words}") as caught:
        read(body, stream=True, status=status)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("end", ["data: [DONE]\n\n", ""])
def test_an_error_in_mid_stream_is_an_error_with_status_200_too(end: str) -> None:
    data = events(delta("Sono"), {"error": {"code": 503, "message": CANARY}}, delta("!", "stop"), end=end)
    decoder = LLAMA.decoder(ask(stream=True), 200)
    assert decoder.feed(data) == "Sono"
    with pytest.raises(BackendError, match="answered 503") as caught:
        decoder.finish()
    assert CANARY not in str(caught.value)


def test_an_error_field_of_an_old_server_is_an_error() -> None:
    with pytest.raises(BackendError, match="answered 500"):
        read(b'error: {"message":"x"}\n\n' + events(delta("x", "stop")), stream=True)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[" * 100_000,
        b"\xff",
        b'{"choices":[]}',
        b'{"choices":"x"}',
        whole("text"),
        whole({"content": 5}),
        whole({"content": "\ud800"}),
        whole({"content": "x"}, finish=None),
        whole({"content": "x"}, finish=CANARY),
        whole({"content": "x"}, finish=["stop"]),
    ],
)
def test_a_whole_reply_that_is_not_the_protocol_is_refused(data: bytes) -> None:
    with pytest.raises(BackendError) as caught:
        read(data, stream=False)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"choices":[]}',
        b"data: {\n\ndata: [DONE]\n\n",
        events(delta("x", "stop"), end=""),
        events(delta("x")),
        events({"choices": [{"delta": {}}, {"delta": {}}]}),
        events(delta("x", "stop"), end="data: [DONE]"),
    ],
)
def test_a_stream_without_its_end_or_its_shape_is_refused(data: bytes) -> None:
    with pytest.raises(BackendError):
        read(data, stream=True)


@pytest.mark.parametrize("build", [repr, str])
def test_a_reply_never_shows_in_a_repr_i12(build: Callable[[object], str]) -> None:
    assert CANARY not in build(read(events(delta(CANARY, "stop")), stream=True))
    assert CANARY not in build(LLAMA.encode(ask(CANARY)))
