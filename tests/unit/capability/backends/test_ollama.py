# SPDX-License-Identifier: Apache-2.0
"""The Ollama codec: exact bytes, and replies in every shape a server may send. Defends P1, I7 and I12."""

import json
from dataclasses import replace

import pytest

from runner.capability.backends.ollama import OllamaBackend
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, InferenceReply, InferenceRequest, Usage
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, JsonObject, Message, Role

HERE = Address(scheme="http", host="127.0.0.1", port=11434)
MODEL = "qwen3:0.6b"
CANARY = "RSSMRA80A01F205X"
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


def backend(address: Address = HERE, *, context: int = 4096) -> OllamaBackend:
    return OllamaBackend(name="local", model=MODEL, address=address, context=context)


def ask(
    text: str = "Ciao?", *, schema: JsonObject | None = None, stream: bool = False, max_tokens: int = 64
) -> InferenceRequest:
    block = Block(id="b1", kind=BlockKind.GOAL, text=text, label=Label())
    message = Message(role=Role.USER, blocks=(block,))
    return InferenceRequest(
        messages=(message,), schema=schema, stream=stream, max_tokens=max_tokens, temperature=0.5, seed=7
    )


def read(data: bytes, *, stream: bool = True, status: int = 200) -> InferenceReply:
    decoder = backend().decoder(ask(stream=stream), status)
    decoder.feed(data)
    return decoder.finish()


def lines(*objects: object) -> bytes:
    return "".join(json.dumps(item) + "\n" for item in objects).encode()


def said(content: object, **more: object) -> object:
    return {"message": {"role": "assistant", "content": content}, "done": False, **more}


# --- requests ----------------------------------------------------------------------------------


def test_the_bytes_of_a_request_are_these_p1() -> None:
    wire = backend().encode(ask())
    assert wire.body.decode() == (
        '{"model":"qwen3:0.6b","messages":[{"role":"user","content":"Ciao?"}],"stream":false,"think":false,'
        '"truncate":false,"shift":false,"keep_alive":"5m","options":{"num_ctx":4096,"num_predict":64,'
        '"temperature":0.5,"seed":7}}'
    )
    assert (wire.method, wire.path, wire.address) == ("POST", "/api/chat", HERE)
    assert wire.headers == (("Content-Type", "application/json"), ("Accept", "application/json"))


def test_a_penalty_stands_among_the_options() -> None:
    body = json.loads(backend().encode(replace(ask(), frequency_penalty=0.5)).body)
    assert body["options"]["frequency_penalty"] == 0.5
    assert "frequency_penalty" not in body


def test_a_prompt_is_never_cut_in_silence_i7() -> None:
    """Ollama drops the beginning of a prompt beyond its context unless both are false."""
    body = json.loads(backend().encode(ask()).body)
    assert (body["truncate"], body["shift"], body["options"]["num_ctx"]) == (False, False, 4096)


def test_a_schema_travels_lowered_and_without_tools() -> None:
    referring: JsonObject = {"$ref": "#/$defs/a", "$defs": {"a": SCHEMA}}
    body = json.loads(backend().encode(ask(schema=referring)).body)
    assert body["format"] == {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": ["no", "yes"]}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    assert "tools" not in body


def test_what_cannot_be_expressed_is_refused_by_name_i7() -> None:
    with pytest.raises(BackendError, match=r"'local'.*has no grammar"):
        backend().encode(ask(schema={"$ref": "https://elsewhere.example/schema"}))
    with pytest.raises(BackendError, match="64 tokens leaves no room"):
        backend(context=64).encode(ask())
    with pytest.raises(BackendError) as caught:
        backend().encode(ask(CANARY + "\ud800"))
    assert CANARY not in str(caught.value)


# --- replies -----------------------------------------------------------------------------------


def test_a_reply_is_read_with_its_usage() -> None:
    end = said("", done=True, done_reason="length", prompt_eval_count=7, eval_count=2)
    usage = Usage(prompt_tokens=7, completion_tokens=2)
    assert read(lines(said("Buon"), said("giorno"), end)) == InferenceReply(
        text="Buongiorno", finish="length", usage=usage
    )


def test_an_error_in_mid_stream_has_our_words_and_never_the_servers_i12() -> None:
    with pytest.raises(BackendError, match="'local' answered 500: it failed") as caught:
        read(lines(said("Sono"), {"error": CANARY}, said("", done=True)))
    assert CANARY not in str(caught.value)


def test_thinking_is_not_mixed_into_the_answer() -> None:
    thought = {"message": {"content": "", "thinking": "Let me see."}, "done": False}
    assert read(lines(thought, said("42"), said("", done=True))).text == "42"
    whole = {"message": {"content": "42", "thinking": "Let me see."}, "done": True, "done_reason": "stop"}
    assert read(json.dumps(whole).encode(), stream=False).text == "42"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        lines(said("x")),
        lines(said("x", done="true")),
        lines(said("x"), said("", done=True)).rstrip(),
        lines({"done": True}),
        lines({"message": "x", "done": True}),
        lines(said(5, done=True)),
        lines(said("\ud800", done=True)),
        lines(said("x", done=True, done_reason=CANARY)),
        lines(["x"]),
        b"{\n" + lines(said("x", done=True)),
        b"[" * 100_000 + b"\n",
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_what_is_not_the_protocol_or_not_its_end_is_refused_i7(data: bytes, stream: bool) -> None:
    if not stream and data == lines(said("x"), said("", done=True)).rstrip():
        data = data.partition(b"\n")[0]
    with pytest.raises(BackendError) as caught:
        read(data, stream=stream)
    assert CANARY not in str(caught.value)
