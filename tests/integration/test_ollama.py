# SPDX-License-Identifier: Apache-2.0
"""The Ollama codec over a real socket, against a fake that Ollama's official client judges. P1, I7, I12."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from runner.capability.backends.ollama import OllamaBackend
from runner.capability.transport.http import HttpTransport
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


def backend(address: Address = HERE) -> OllamaBackend:
    return OllamaBackend(name="local", model=MODEL, address=address, context=4096)


def ask(*, schema: JsonObject | None = None, stream: bool = False, max_tokens: int = 64) -> InferenceRequest:
    block = Block(id="b1", kind=BlockKind.GOAL, text="Ciao?", label=Label())
    message = Message(role=Role.USER, blocks=(block,))
    return InferenceRequest(
        messages=(message,), schema=schema, stream=stream, max_tokens=max_tokens, temperature=0.5, seed=7
    )


async def infer(server: Any, request: InferenceRequest) -> tuple[InferenceReply, str]:
    codec = backend(server.address)
    async with HttpTransport(10.0).open(codec.encode(request), credential=None) as reply:
        decoder = codec.decoder(request, reply.status)
        shown = "".join([decoder.feed(chunk) async for chunk in reply.chunks])
    return decoder.finish(), shown


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_is_read_with_its_usage(ollama: Callable[..., Any], stream: bool) -> None:
    reply, shown = await infer(ollama(say="Buongiorno a tutti"), ask(stream=stream))
    usage = Usage(prompt_tokens=7, completion_tokens=4)
    assert reply == InferenceReply(text="Buongiorno a tutti", finish="stop", usage=usage)
    assert shown == (reply.text if stream else "")


@pytest.mark.anyio
async def test_a_reply_that_spent_its_budget_says_so(ollama: Callable[..., Any]) -> None:
    reply, _ = await infer(ollama(say="Buongiorno a tutti"), ask(stream=True, max_tokens=2))
    assert (reply.text, reply.finish) == ("Buongiorno", "length")


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [True, False])
async def test_a_schema_is_obeyed(ollama: Callable[..., Any], stream: bool) -> None:
    reply, _ = await infer(ollama(), ask(schema=SCHEMA, stream=stream))
    assert json.loads(reply.text) == {"answer": "no"}


@pytest.mark.anyio
async def test_an_error_in_mid_stream_has_our_words_and_never_the_servers_i12(
    ollama: Callable[..., Any],
) -> None:
    with pytest.raises(BackendError, match="'local' answered 500: it failed") as caught:
        await infer(ollama(say=RuntimeError(CANARY)), ask(stream=True))
    assert CANARY not in str(caught.value)


@pytest.mark.anyio
async def test_an_unknown_model_is_named_by_status_i12(ollama: Callable[..., Any]) -> None:
    with pytest.raises(BackendError, match="answered 404: it does not have this model"):
        await infer(ollama(name=CANARY), ask(stream=True))


# --- judged by the official client ---------------------------------------------------------------


def test_our_bytes_are_those_of_the_official_client(ollama: Callable[..., Any]) -> None:
    """But for two members it does not know, which keep a prompt whole."""
    module = pytest.importorskip("ollama")
    server = ollama()
    wire = backend().encode(ask(schema=SCHEMA))
    ours = json.loads(wire.body)
    with module.Client(host=str(server.address)) as client:
        client.chat(
            model=MODEL,
            messages=[{"role": "user", "content": "Ciao?"}],
            format=ours["format"],
            options={"num_ctx": 4096, "num_predict": 64, "temperature": 0.5, "seed": 7},
            keep_alive="5m",
            think=False,
        )
    [(method, path, _, body)] = server.requests
    theirs = {key: value for key, value in json.loads(body).items() if key != "tools" or value}
    assert {key: ours[key] for key in ours if key not in {"truncate", "shift"}} == theirs
    assert (method, path) == (wire.method, wire.path)


def test_the_official_client_reads_the_fake_as_our_codec_does(ollama: Callable[..., Any]) -> None:
    """The fake is faithful: listing, description, replies and faults are what Ollama's client expects."""
    module = pytest.importorskip("ollama")
    server = ollama(say="Buongiorno a tutti", thinking="Hm.")
    messages = [{"role": "user", "content": "Ciao?"}]
    with module.Client(host=str(server.address)) as client:
        [model] = client.list().models
        assert (model.model, model.digest, model.details.format) == (MODEL, "3a" * 32, "gguf")
        assert client.show(MODEL).capabilities == ["completion"]
        whole = client.chat(model=MODEL, messages=messages)
        streamed = list(client.chat(model=MODEL, messages=messages, stream=True))
        server.say = RuntimeError("out of memory")
        with pytest.raises(module.ResponseError, match="out of memory"):
            list(client.chat(model=MODEL, messages=messages, stream=True))
    assert whole.message.content == "".join(part.message.content for part in streamed) == "Buongiorno a tutti"
    assert whole.message.thinking == "Hm."
    last = streamed[-1]
    assert (last.done_reason, last.prompt_eval_count, last.eval_count) == ("stop", 7, 4)
