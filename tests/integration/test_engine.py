# SPDX-License-Identifier: Apache-2.0
"""The real engine with the smallest model: constrained, stopped, streamed, and the same over HTTP.

Needs the `embedded` extra and the weights in `AKAION_HOME` (`make models`). Defends I7, I10, I12 and P1.
"""

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.home import akaion_home
from runner.capability.transport.http import HttpTransport
from runner.capability.transport.inprocess import EngineTransport
from runner.capability.transport.locality import LoopbackCheck
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, InferenceReply, InferenceRequest, WireRequest
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, JsonObject, Message, Role
from runner.kernel.ports import Backend, Credential, Locality, Transport

WEIGHTS = akaion_home() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 2048
BACKEND = EmbeddedBackend(name="here", model="smollm2-135m-instruct", context=CONTEXT)
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.model,
    pytest.mark.skipif(not WEIGHTS.is_file(), reason="no weights: make models"),
]
xllamacpp = pytest.importorskip("xllamacpp")


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineTransport]:
    transport = EngineTransport(WEIGHTS, context=CONTEXT, threads=1)
    yield transport
    transport.close()


def ask(
    text: str, *, schema: JsonObject | None = None, stream: bool = False, max_tokens: int = 24
) -> InferenceRequest:
    block = Block(id="b1", kind=BlockKind.GOAL, text=text, label=Label())
    message = Message(role=Role.USER, blocks=(block,))
    return InferenceRequest(messages=(message,), schema=schema, stream=stream, max_tokens=max_tokens)


async def infer(
    backend: Backend, transport: Transport, request: InferenceRequest, credential: Credential | None = None
) -> InferenceReply:
    async with transport.open(backend.encode(request), credential=credential) as reply:
        decoder = backend.decoder(request, reply.status)
        shown = "".join([decoder.feed(chunk) async for chunk in reply.chunks])
    result = decoder.finish()
    assert shown in {"", result.text}
    return result


async def test_a_constrained_reply_validates_whatever_the_model_wants(engine: EngineTransport) -> None:
    request = ask("Write a long poem about the sea.", schema=SCHEMA)
    reply = await infer(BACKEND, engine, request)
    assert json.loads(reply.text) in ({"answer": "yes"}, {"answer": "no"})
    assert reply.finish == "stop"
    assert reply.usage.completion_tokens > 0


async def test_a_stream_says_what_a_whole_reply_says(engine: EngineTransport) -> None:
    whole = await infer(BACKEND, engine, ask("Name three fruits."))
    streamed = await infer(BACKEND, engine, ask("Name three fruits.", stream=True))
    plain = LlamaCppBackend(name="plain", model="m", address=Address(scheme="inproc"), context=CONTEXT)
    unframed = await infer(plain, engine, ask("Name three fruits."))
    assert whole.text
    assert (streamed.text, unframed.text) == (whole.text, whole.text)


async def test_a_stopped_generation_frees_the_engine_at_once(engine: EngineTransport) -> None:
    endless = ask("Count from one to one thousand in words.", max_tokens=1900)
    async with engine.open(BACKEND.encode(endless), credential=None) as reply:
        await anext(aiter(reply.chunks))
    began = time.monotonic()
    await infer(BACKEND, engine, ask("Ciao.", max_tokens=1))
    assert time.monotonic() - began < 5  # to its end it takes 10 s and more


async def test_a_long_prompt_can_be_abandoned(engine: EngineTransport) -> None:
    """Reading 1,000 tokens takes seconds; the engine reports between batches, and can be stopped there."""
    long = ask(" ".join(f"clause {number}" for number in range(200)))
    async with engine.open(BACKEND.encode(long), credential=None) as reply:
        first = await anext(aiter(reply.chunks))
        assert b"prompt_progress" in first
    report = await infer(BACKEND, engine, ask("Ciao.", max_tokens=1))
    assert report.usage.completion_tokens == 1


async def test_a_shared_beginning_is_read_once(engine: EngineTransport) -> None:
    shared = " ".join(f"clause {number}" for number in range(40))
    cached = []
    for question in ("What is this?", "Who wrote it?"):
        wire = BACKEND.encode(ask(f"{shared}\n{question}", max_tokens=1))
        async with engine.open(wire, credential=None) as reply:
            events = b"".join([chunk async for chunk in reply.chunks]).decode().split("\n\n")
        usage = [json.loads(event[6:])["usage"] for event in events if '"usage"' in event]
        cached.append(usage[0]["prompt_tokens_details"]["cached_tokens"] / usage[0]["prompt_tokens"])
    assert cached[0] < 0.2
    assert cached[1] > 0.9


async def test_a_prompt_beyond_the_context_is_refused(engine: EngineTransport) -> None:
    with pytest.raises(BackendError, match="answered 400"):
        await infer(BACKEND, engine, ask("word " * (CONTEXT + 1)))


async def test_a_bad_grammar_is_refused_and_not_ignored_i7(
    engine: EngineTransport, capfd: pytest.CaptureFixture[str]
) -> None:
    wire = BACKEND.encode(ask("Ciao."))
    body = json.loads(wire.body) | {"grammar": "root ::= ((("}
    bad = WireRequest(
        method=wire.method,
        address=wire.address,
        path=wire.path,
        headers=wire.headers,
        body=json.dumps(body).encode(),
    )
    async with engine.open(bad, credential=None) as reply:
        decoder = BACKEND.decoder(ask("Ciao."), reply.status)
    with pytest.raises(BackendError, match="answered 400"):
        decoder.finish()
    capfd.readouterr()  # llama.cpp prints grammars it cannot parse; ours always parse


async def test_nothing_is_printed_i12(capfd: pytest.CaptureFixture[str]) -> None:
    transport = EngineTransport(WEIGHTS, context=512, threads=1)
    transport.load()
    await infer(BACKEND, transport, ask("Ciao.", schema=SCHEMA, max_tokens=8))
    transport.close()
    assert capfd.readouterr() == ("", "")


_LISTENING = """
import sys
from pathlib import Path
from runner.capability.transport.inprocess import EngineTransport
engine = EngineTransport(Path(sys.argv[1]), context=512, threads=1)
engine.load()
own = {link.readlink().name for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}
tables = [Path("/proc/self/net") / table for table in ("tcp", "tcp6")]
rows = [line.split() for path in tables if path.exists() for line in path.read_text().splitlines()[1:]]
print([row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own])
engine.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_engine_listens_nowhere_i10() -> None:
    """In a process of its own: what other tests serve in this one is not the engine's."""
    command = [sys.executable, "-c", _LISTENING, str(WEIGHTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_a_server_over_http_says_the_same(engine: EngineTransport) -> None:
    request = ask("Name three fruits.", schema=SCHEMA)
    key = secrets.token_hex(16)
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel, params.verbosity = str(WEIGHTS), CONTEXT, 1, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_batch = params.n_ubatch = 64
    params.api_keys, params.hostnames, params.port = [key], ["127.0.0.1"], 0
    server = xllamacpp.Server(params)
    port = int(server.listening_address.rpartition(":")[2])
    address = Address(scheme="http", host="127.0.0.1", port=port)
    remote = LlamaCppBackend(name="server", model="m", address=address, context=CONTEXT)
    credential = Credential(header="Authorization", value=f"Bearer {key}")

    assert await LoopbackCheck().grade(address) is Locality.L0
    for stream in (False, True):
        asked = ask("Name three fruits.", schema=SCHEMA, stream=stream)
        over_http = await infer(remote, HttpTransport(60.0), asked, credential)
        assert over_http.text == (await infer(BACKEND, engine, request)).text
    with pytest.raises(BackendError, match="answered 401"):
        await infer(remote, HttpTransport(60.0), request)
