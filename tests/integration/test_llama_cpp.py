# SPDX-License-Identifier: Apache-2.0
"""The second embedded engine, real: `make test-llama-cpp` makes an environment that has it and not the first.

Defends I7, I10, I12 and P1.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from runner import StopReason, open_profile
from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.home import akaion_home
from runner.capability.transport.child import ChildEngine
from runner.capability.transport.inprocess import EngineTransport
from runner.kernel.errors import BackendError
from runner.kernel.inference import InferenceReply, InferenceRequest, WireRequest
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, JsonObject, Message, Role

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = akaion_home() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 2048
BACKEND = EmbeddedBackend(name="here", model="smollm2-135m-instruct", context=CONTEXT)
CANARY = "RSSMRA80A01F205X"
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes", "no"]}, "why": {"type": "string", "maxLength": 9}},
    "required": ["answer", "why"],
    "additionalProperties": False,
}


def has(distribution: str) -> bool:
    try:
        return bool(metadata.version(distribution))
    except metadata.PackageNotFoundError:
        return False


pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        has("xllamacpp") or not has("llama-cpp-python") or not WEIGHTS.is_file(),
        reason="not the second engine's environment: make test-llama-cpp",
    ),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineTransport]:
    transport = EngineTransport(WEIGHTS, context=CONTEXT, threads=1)
    yield transport
    transport.close()


def child_of(transport: EngineTransport) -> "subprocess.Popen[str]":
    transport.load()
    assert isinstance(transport._engine, ChildEngine)
    return transport._engine._process


def ask(text: str, *, schema: JsonObject | None = None, max_tokens: int = 48) -> InferenceRequest:
    block = Block(id="b1", kind=BlockKind.GOAL, text=text, label=Label())
    message = Message(role=Role.USER, blocks=(block,))
    return InferenceRequest(messages=(message,), schema=schema, max_tokens=max_tokens)


async def infer(transport: EngineTransport, request: InferenceRequest) -> InferenceReply:
    return await send(transport, BACKEND.encode(request))


async def send(transport: EngineTransport, wire: WireRequest) -> InferenceReply:
    async with transport.open(wire, credential=None) as reply:
        decoder = BACKEND.decoder(ask(""), reply.status)
        shown = "".join([decoder.feed(chunk) async for chunk in reply.chunks])
    result = decoder.finish()
    assert shown == result.text
    return result


async def test_a_reply_is_held_to_its_schema_whatever_the_model_wants(engine: EngineTransport) -> None:
    reply = await infer(engine, ask("Write a long poem about the sea.", schema=SCHEMA))
    assert set(json.loads(reply.text)) == {"answer", "why"}
    assert reply.finish == "stop"
    assert reply.usage.prompt_tokens > 0
    assert 0 < reply.usage.completion_tokens <= 48


async def test_text_ends_at_its_budget_and_says_the_same_twice(engine: EngineTransport) -> None:
    first = await infer(engine, ask("Name three fruits.", max_tokens=12))
    assert (first.finish, first.usage.completion_tokens) == ("length", 12)
    assert (await infer(engine, ask("Name three fruits.", max_tokens=12))).text == first.text != ""


async def test_a_prompt_beyond_the_context_is_refused_and_not_quoted_i12(engine: EngineTransport) -> None:
    with pytest.raises(BackendError, match="answered 400") as caught:
        await infer(engine, ask(f"{CANARY} " * CONTEXT))
    assert CANARY not in str(caught.value)


async def test_a_bad_grammar_is_refused_and_the_child_lives_i7(engine: EngineTransport) -> None:
    wire, before = BACKEND.encode(ask("Ciao.")), child_of(engine).pid
    bad = json.dumps(json.loads(wire.body) | {"grammar": "root ::= ((("}).encode()
    with pytest.raises(BackendError, match="answered 400"):
        await send(
            engine,
            WireRequest(
                method=wire.method, address=wire.address, path=wire.path, headers=wire.headers, body=bad
            ),
        )
    assert child_of(engine).pid == before


async def test_a_stopped_generation_frees_the_engine_at_once(engine: EngineTransport) -> None:
    endless = ask("Count from one to one thousand in words.", max_tokens=1900)
    async with engine.open(BACKEND.encode(endless), credential=None) as reply:
        await anext(aiter(reply.chunks))
    began = time.monotonic()
    await infer(engine, ask("Ciao.", max_tokens=1))
    assert time.monotonic() - began < 8  # to its end it takes 20 s and more


async def test_a_child_that_is_killed_is_a_backend_error_and_another_one_answers_i7(
    engine: EngineTransport,
) -> None:
    endless = ask("Count from one to one thousand in words.", max_tokens=1900)
    process = child_of(engine)
    with pytest.raises(BackendError, match="process died"):
        async with engine.open(BACKEND.encode(endless), credential=None) as reply:
            chunks = aiter(reply.chunks)
            await anext(chunks)
            process.send_signal(signal.SIGSEGV)
            async for _ in chunks:
                pass
    assert (await infer(engine, ask("Ciao.", max_tokens=1))).usage.completion_tokens == 1


def test_the_child_listens_nowhere_and_ends_with_its_engine_i10() -> None:
    transport = EngineTransport(WEIGHTS, context=512, threads=1)
    process = child_of(transport)
    links = [str(link.readlink()) for link in Path(f"/proc/{process.pid}/fd").iterdir()]
    assert not [link for link in links if link.startswith("socket:")]
    transport.close()
    assert process.returncode is not None


async def test_nothing_is_printed_i12(capfd: pytest.CaptureFixture[str]) -> None:
    transport = EngineTransport(WEIGHTS, context=512, threads=1)
    await infer(transport, ask("Ciao.", schema=SCHEMA, max_tokens=40))
    transport.close()
    assert capfd.readouterr() == ("", "")


def test_a_whole_run_of_the_shipped_profile_works_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    folder = tmp_path / "practice"
    folder.mkdir()
    (folder / "note.txt").write_text("The settlement figure is forty thousand florins.\n", encoding="utf-8")
    local = {"runtime": "embedded", "model": "mine", "weights": str(WEIGHTS), "context": 4096, "threads": 1}
    grants = [{"tool": "search_text", "paths": [{"path": str(folder), "class": "C3"}]}]
    settings: dict[str, Any] = {"inference": {"local": local}, "policy": {"grants": grants}}
    with open_profile("detached", **settings) as runtime:
        result = runtime.loop().run("What is the settlement figure?")
    assert result.stop in {StopReason.ANSWERED, StopReason.NOT_FOUND}
    command = [sys.executable, "-I", "-S", str(ROOT / "verify" / "akaion_verify.py")]
    done = subprocess.run([*command, str(runtime.trace_path), "--json"], capture_output=True, check=False)
    assert [reason["code"] for reason in json.loads(done.stdout)["reasons"]] == ["no-pin"]
