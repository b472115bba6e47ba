# SPDX-License-Identifier: Apache-2.0
"""The vLLM codec and check against a real server: `make test-vllm` starts one and says where it listens.

Defends P1, I7, I10 and I12. What vLLM accepts and ignores is asserted here too, since the codec is as it is
because of that: when such a test fails, the codec can become simpler.
"""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from runner import StopReason, open_profile
from runner.capability.backends.listings import VllmCheck
from runner.capability.backends.vllm import VllmBackend
from runner.capability.transport.http import HttpTransport
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, Answer, InferenceReply, InferenceRequest
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, JsonObject, Message, Role
from runner.kernel.ports import Locality

URL = os.environ.get("AKAION_VLLM", "")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not URL, reason="no vLLM: make test-vllm"),
]
ROOT = Path(__file__).resolve().parents[2]
MODEL = "smollm2-135m-instruct"
CONTEXT = 4096
CANARY = "RSSMRA80A01F205X"
HERE = Address(scheme="http", host="127.0.0.1", port=urlsplit(URL).port or 1)
BACKEND = VllmBackend(name="local", model=MODEL, address=HERE, context=CONTEXT)
POEM = "Write a long poem about the sea."
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "maxLength": 12, "pattern": "^[a-f\\\\\\-]+$"},
        "depth": {"type": "integer", "minimum": 10, "maximum": 19},
        "tags": {"type": "array", "items": {"enum": ["è", '"b"', "c\\d"]}, "minItems": 2, "maxItems": 2},
    },
    "required": ["place", "depth", "tags"],
    "additionalProperties": False,
}


def ask(
    text: str = POEM, *, schema: JsonObject | None = None, stream: bool = False, max_tokens: int = 64
) -> InferenceRequest:
    block = Block(id="b1", kind=BlockKind.GOAL, text=text, label=Label())
    message = Message(role=Role.USER, blocks=(block,))
    return InferenceRequest(messages=(message,), schema=schema, stream=stream, max_tokens=max_tokens)


async def infer(
    request: InferenceRequest, backend: VllmBackend = BACKEND
) -> tuple[InferenceReply, list[str]]:
    """Return the reply and the pieces of it that became visible on the way."""
    async with HttpTransport(60.0).open(backend.encode(request), credential=None) as reply:
        decoder = backend.decoder(request, reply.status)
        shown = [decoder.feed(chunk) async for chunk in reply.chunks]
    return decoder.finish(), list(filter(None, shown))


def raw(more: Mapping[str, object], *, max_tokens: int = 24) -> httpx.Response:
    """Send our own bytes with the members of `more` in place of the codec's constraint."""
    body = json.loads(BACKEND.encode(ask(max_tokens=max_tokens)).body)
    return httpx.post(f"{URL}/v1/chat/completions", json={**body, **more}, timeout=60, trust_env=False)


def text_of(response: httpx.Response) -> str:
    assert response.status_code == 200
    return str(response.json()["choices"][0]["message"]["content"])


# --- what the codec sends ------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_is_held_to_its_schema_whatever_the_model_wants(stream: bool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    reply, _ = await infer(ask(schema=SCHEMA, stream=stream))
    jsonschema.validate(json.loads(reply.text), SCHEMA)
    assert (reply.finish, "\n" in reply.text) == ("stop", False)
    assert 0 < reply.usage.completion_tokens <= 64


async def test_a_stream_comes_in_pieces_and_says_what_the_whole_says() -> None:
    whole, hidden = await infer(ask())
    streamed, shown = await infer(ask(stream=True))
    assert (hidden, len(shown) > 8) == ([], True)
    assert streamed.text == whole.text == "".join(shown)
    assert (streamed.finish, streamed.usage) == (whole.finish, whole.usage)


async def test_leaving_a_stream_stops_the_server() -> None:
    wire = BACKEND.encode(ask("Count from one to one thousand in words.", stream=True, max_tokens=3900))
    async with HttpTransport(60.0).open(wire, credential=None) as reply:
        await anext(aiter(reply.chunks))
        assert running() == 1
    deadline = time.monotonic() + 10
    while running() and time.monotonic() < deadline:
        pass  # each look is a request of some milliseconds
    assert running() == 0


def running() -> float:
    """Return how many requests the server works on."""
    lines = httpx.get(f"{URL}/metrics", timeout=10, trust_env=False).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_requests_running{"))


async def test_errors_are_told_by_status_and_never_quote_the_prompt_i12() -> None:
    other = VllmBackend(name="local", model="another", address=HERE, context=CONTEXT)
    for backend, text, words in (
        (other, CANARY, "answered 404: it does not have this model"),
        (BACKEND, f"{CANARY} " * CONTEXT, "answered 400: it refused the request; the prompt may exceed"),
    ):
        for stream in (False, True):
            with pytest.raises(BackendError, match=words) as caught:
                await infer(ask(text, stream=stream), backend)
            assert CANARY not in str(caught.value)


async def test_a_prompt_is_never_cut_and_a_reply_ends_at_its_budget() -> None:
    reply, _ = await infer(ask("word " * (CONTEXT - 100), max_tokens=16))
    assert reply.usage.prompt_tokens > CONTEXT - 100
    short, _ = await infer(ask(max_tokens=4))
    assert (short.finish, short.usage.completion_tokens) == ("length", 4)
    with pytest.raises(BackendError, match="leaves no room"):
        BACKEND.encode(ask(max_tokens=CONTEXT))


# --- what vLLM does with other forms: a probe of its behaviour ------------------------------------


def test_structured_outputs_are_enforced_on_what_the_model_would_never_say_i7() -> None:
    nonce = f"zq{secrets.token_hex(3)}"
    assert text_of(raw({"structured_outputs": {"grammar": f'root ::= "{nonce}"'}})) == nonce
    quoted = text_of(raw({"structured_outputs": {"json": {"enum": [nonce]}}}))
    assert json.loads(quoted) == nonce


@pytest.mark.parametrize("member", ["guided_json", "guided_grammar", "grammar"])
def test_other_runtimes_words_are_accepted_and_ignored(member: str) -> None:
    """200, and a poem: why a probe is a test of behaviour, and why the codec has its own word."""
    nonce = f"zq{secrets.token_hex(3)}"
    value: Any = {"enum": [nonce]} if member == "guided_json" else f'root ::= "{nonce}"'
    assert text_of(raw({member: value})) == text_of(raw({}))


def test_whitespace_has_no_bound_where_a_schema_is_sent() -> None:
    """`disable_any_whitespace` of a request is read by nobody in vLLM 0.32: the codec sends a grammar."""
    schema: JsonObject = {
        "type": "object",
        "properties": {"answer": {"enum": ["zq7"]}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    wide = {"json": schema, "disable_any_whitespace": True}
    assert "\n" in text_of(raw({"structured_outputs": wide}))
    ours = json.loads(BACKEND.encode(ask(schema=schema)).body)["structured_outputs"]
    assert json.loads(text_of(raw({"structured_outputs": ours}))) == {"answer": "zq7"}


@pytest.mark.parametrize(
    "more",
    [
        {"structured_outputs": {"json": {}, "grammar": 'root ::= "a"'}},
        {"structured_outputs": {"grammar": "root ::= ((("}},
        {"structured_outputs": {"schema": {}}},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]},
    ],
    ids=["two kinds", "no grammar", "no kind", "tools without the server's flags"],
)
def test_what_the_server_cannot_do_is_refused_and_not_ignored(more: dict[str, object]) -> None:
    assert raw(more).status_code == 400


# --- locality, and whole runs ----------------------------------------------------------------------


def answers(check: VllmCheck) -> list[Answer]:
    replies = [httpx.get(f"{URL}{wire.path}", timeout=10, trust_env=False) for wire in check.questions]
    return [Answer(status=reply.status_code, body=reply.content) for reply in replies]


def test_i10_the_server_is_fingerprinted_and_says_its_context() -> None:
    check = VllmCheck(model=MODEL, address=HERE)
    assert check.grade(answers(check)) is Locality.L1
    assert VllmCheck(model="another", address=HERE).grade(answers(check)) is Locality.L0
    [entry] = json.loads(answers(check)[1].body)["data"]
    assert entry["max_model_len"] == CONTEXT


def test_a_whole_run_reads_a_file_and_its_record_verifies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model this small may answer or not: that it was asked, held to schemas and recorded is the test."""
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    folder = tmp_path / "practice"
    folder.mkdir()
    (folder / "note.txt").write_text("The settlement figure is forty thousand florins.\n", encoding="utf-8")
    local = {"runtime": "vllm", "endpoint": URL, "model": MODEL, "context": CONTEXT}
    grants = [{"tool": "search_text", "paths": [{"path": str(folder), "class": "C2"}]}]
    settings: dict[str, Any] = {"inference": {"local": local}, "policy": {"grants": grants}}
    with open_profile("appliance", **settings) as runtime:
        result = runtime.loop().run("What is the settlement figure?")
    assert result.stop in {StopReason.ANSWERED, StopReason.NOT_FOUND}
    command = [sys.executable, "-I", "-S", str(ROOT / "verify" / "akaion_verify.py")]
    done = subprocess.run([*command, str(runtime.trace_path), "--json"], capture_output=True, check=False)
    assert [reason["code"] for reason in json.loads(done.stdout)["reasons"]] == ["no-pin"]
    lines = [line for log in runtime.trace_path.glob("*.jsonl") for line in log.read_bytes().splitlines()]
    entries = [entry for line in lines if (entry := json.loads(line))["kind"] != "seal"]
    assert {entry["body"]["locality"] for entry in entries if entry["kind"] == "backend"} == {"L0", "L1"}
    sent = [entry["body"] for entry in entries if entry["kind"] == "egress" and entry["body"]["inputs"]]
    assert "C2" in {body["class"] for body in sent}
    assert {body["decision"] for body in sent} == {"allowed"}
