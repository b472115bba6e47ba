# SPDX-License-Identifier: Apache-2.0
"""I10, P1, I5: model servers on loopback, asked about themselves over real sockets, in whole runs.

The record of every run is read by the verifier. An `L1` is what the server's own listing supports, no more.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner import ConfigError, RunResult, StopReason, open_profile
from runner.capability.home import akaion_home
from runner.kernel.errors import RunnerError
from runner.kernel.inference import InferenceRequest
from runner.kernel.messages import Message, Role
from runner.testing import ScriptedServer

ROOT = Path(__file__).resolve().parents[2]
SECRET = "The settlement figure is forty thousand florins"
WEIGHTS = akaion_home() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
CLOUD = {"remote_host": "https://ollama.com:443", "remote_model": "gpt-oss:120b"}
Servers = Callable[..., Any]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def practice(tmp_path: Path) -> Path:
    folder = tmp_path / "practice"
    folder.mkdir()
    (folder / "note.txt").write_text(f"Of the settlement\n{SECRET}\n", encoding="utf-8")
    return folder


def run(
    url: object,
    practice: Path,
    *,
    data_class: str,
    profile: str = "attached",
    runtime: str = "ollama",
    model: str = "qwen3:0.6b",
    c3: str = "L1",
) -> tuple[RunResult, list[dict[str, Any]]]:
    """Run a question over a folder of `data_class`; return the result and the record, verified."""
    grants = [{"tool": "search_text", "paths": [{"path": str(practice), "class": data_class}]}]
    local = {"runtime": runtime, "endpoint": str(url), "model": model, "context": 4096}
    settings: dict[str, Any] = {
        "policy": {"grants": grants},
        "perimeter": {"locality_required": {"C2": "L1", "C3": c3}},
        "inference": {"prefer": "local", "local": local, "remote": None, "timeout_s": 20},
    }
    with open_profile(profile, **settings) as runtime_:
        result = runtime_.loop().run("What is the settlement figure?")
    return result, verified(runtime_.trace_path)


def verified(book: Path) -> list[dict[str, Any]]:
    """Return the entries of a book, after the verifier found nothing wrong with it but the missing pin."""
    command = [sys.executable, "-I", "-S", str(ROOT / "verify" / "akaion_verify.py"), str(book), "--json"]
    verdict = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    assert [reason["code"] for reason in verdict["reasons"]] == ["no-pin"]
    lines = [line for log in sorted(book.glob("*.jsonl")) for line in log.read_bytes().splitlines()]
    return [entry for line in lines if (entry := json.loads(line))["kind"] != "seal"]


def bodies(entries: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [entry["body"] for entry in entries if entry["kind"] == kind]


def grades(entries: list[dict[str, Any]]) -> set[str]:
    """The grades on record."""
    return {body["locality"] for body in bodies(entries, "backend")}


# --- Ollama --------------------------------------------------------------------------------------


def test_i10_an_ollama_that_holds_the_model_is_fingerprinted_and_may_read_c3(
    ollama: Servers, practice: Path
) -> None:
    server = ollama()
    result, entries = run(server.address, practice, data_class="C3", profile="detached")
    assert result.stop in {StopReason.ANSWERED, StopReason.NOT_FOUND}
    assert SECRET.encode() in server.received
    assert grades(entries) == {"L0", "L1"}
    sent = bodies(entries, "egress")
    assert {body["locality"] for body in sent if body["class"] == "C3"} == {"L1"}
    probes = [entry for entry in entries if entry["kind"] == "egress" and "task" not in entry]
    assert {(probe["body"]["class"], *probe["body"]["inputs"]) for probe in probes} == {("C0",)}
    assert len(sent) == len(server.requests) == 3 * server.paths.count("/api/chat")


def test_i10_a_fingerprint_is_not_containment(ollama: Servers, practice: Path) -> None:
    """The shipped profiles ask L2 for C3: a relay on loopback could imitate everything that was asked."""
    server = ollama()
    result, entries = run(server.address, practice, data_class="C3", profile="detached", c3="L2")
    assert (result.stop, "locality-too-weak" in str(result.detail)) == (StopReason.DENIED, True)
    assert b"florins" not in server.received
    assert grades(entries) == {"L0", "L1"}


@pytest.mark.parametrize("data_class", ["C2", "C3"])
@pytest.mark.parametrize(
    "options",
    [
        {"listed": CLOUD},
        {"shown": CLOUD},
        {"name": "gpt-oss:120b-cloud"},
        {"name": "glm-4.6:cloud"},
    ],
)
def test_i10_an_ollama_that_passes_requests_on_is_remote_and_never_gets_the_file(
    options: dict[str, Any], data_class: str, ollama: Servers, practice: Path
) -> None:
    """Not even the question goes: the profile calls this backend local, and it is not."""
    server = ollama(**options)
    result, entries = run(server.address, practice, data_class=data_class, model=server.name)
    assert result.stop is StopReason.DENIED
    assert b"florins" not in server.received
    asked = set() if "name" in options else {"L0"}  # its very name says cloud: it was asked nothing
    assert grades(entries) == {"remote"} | asked
    chats = [body for body in bodies(entries, "egress") if body["inputs"]]
    assert [(body["decision"], body["locality"]) for body in chats] == [("denied", "remote")]
    assert "/api/chat" not in server.paths


@pytest.mark.parametrize("options", [{"listed": CLOUD}, {"name": "gpt-oss:120b-cloud"}])
def test_i10_where_nothing_may_leave_a_cloud_model_gets_nothing_at_all(
    options: dict[str, Any], ollama: Servers, practice: Path
) -> None:
    server = ollama(**options)
    result, entries = run(server.address, practice, data_class="C0", profile="detached", model=server.name)
    assert (result.stop, "not-local" in str(result.detail)) == (StopReason.DENIED, True)
    assert "/api/chat" not in server.paths
    assert b"settlement" not in server.received
    asked = set() if "name" in options else {"L0"}  # its very name says cloud: it was asked nothing
    assert grades(entries) == {"remote"} | asked


def test_i10_a_model_that_moves_to_the_cloud_between_two_requests_is_noticed(
    ollama: Servers, practice: Path
) -> None:
    server = ollama()
    original = server.chat

    def moving(asked: Any) -> Iterator[dict[str, Any]]:
        server.listed |= CLOUD
        yield from original(asked)

    server.chat = moving
    result, entries = run(server.address, practice, data_class="C3", profile="detached")
    assert result.stop is StopReason.DENIED
    assert server.paths.count("/api/chat") == 1
    assert [body["locality"] for body in bodies(entries, "backend")] == ["L0", "L1", "L0", "remote"]


@pytest.mark.parametrize(
    "options",
    [
        {"answers": {"/api/tags": (500, b"{}")}},
        {"answers": {"/api/show": (200, b"not json")}},
        {"answers": {"/api/tags": (200, b'{"models":[]}')}},
        {"listed": {"name": "other", "model": "other"}},
    ],
)
def test_i10_a_server_that_does_not_vouch_for_the_model_stays_declared(
    options: dict[str, Any], ollama: Servers, practice: Path
) -> None:
    server = ollama(**options)
    result, entries = run(server.address, practice, data_class="C3", profile="detached")
    assert (result.stop, "locality-too-weak" in str(result.detail)) == (StopReason.DENIED, True)
    assert grades(entries) == {"L0"}
    assert b"florins" not in server.received


# --- llama-server ---------------------------------------------------------------------------------


def llama_answers(model: str) -> dict[str, tuple[int, bytes]]:
    entry = {"id": model, "owned_by": "llamacpp", "meta": {"n_params": 1}}
    return {
        "/props": (200, json.dumps({"model_path": f"/models/{model}.gguf"}).encode()),
        "/v1/models": (200, json.dumps({"data": [entry]}).encode()),
    }


@pytest.mark.parametrize("path", ["/props", "/v1/models"])
@pytest.mark.parametrize("status", [302, 307])
def test_i10_a_llama_server_that_redirects_is_remote_and_is_not_followed(
    status: int, path: str, ollama: Servers, practice: Path
) -> None:
    with ScriptedServer() as elsewhere:
        redirect = (status, f"{elsewhere.url}{path}".encode())
        server = ollama(answers={**llama_answers("m"), path: redirect})
        result, entries = run(
            server.address, practice, data_class="C1", profile="detached", runtime="llamacpp", model="m"
        )
        assert elsewhere.received == []
    assert (result.stop, "not-local" in str(result.detail)) == (StopReason.DENIED, True)
    assert set(server.paths) == {"/props", "/v1/models"}
    assert grades(entries) == {"L0", "remote"}


def test_i10_a_llama_server_that_has_loaded_another_model_stays_declared(
    ollama: Servers, practice: Path
) -> None:
    server = ollama(answers=llama_answers("another"))
    result, entries = run(
        server.address, practice, data_class="C2", profile="detached", runtime="llamacpp", model="m"
    )
    assert result.stop is StopReason.FAILED
    assert grades(entries) == {"L0"}
    assert b"florins" not in server.received


@pytest.mark.model
@pytest.mark.skipif(not WEIGHTS.is_file(), reason="no weights: make models")
@pytest.mark.parametrize(("model", "expected"), [(WEIGHTS.stem, {"L0", "L1"}), ("another", {"L0"})])
def test_i10_a_real_llama_server_is_fingerprinted(model: str, expected: set[str]) -> None:
    xllamacpp = pytest.importorskip("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel, params.verbosity = str(WEIGHTS), 4096, 1, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames, params.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(params)
    local = {"runtime": "llamacpp", "endpoint": server.listening_address, "model": model}
    with open_profile("detached", inference={"local": local}, policy={"grants": []}) as runtime:
        ask(runtime, "Say hello.")
    assert grades(verified(runtime.trace_path)) == expected


def ask(runtime: Any, text: str) -> str:
    """Ask the preferred backend one free question; return its answer."""

    async def infer() -> str:
        with runtime.client.task(text) as task:
            message = Message(role=Role.USER, blocks=(task.goal,))
            request = InferenceRequest(messages=(message,), max_tokens=8)
            return str((await runtime.client.infer(request, task=task)).block.text)

    anyio = pytest.importorskip("anyio")
    return str(anyio.run(infer))


# --- vLLM ------------------------------------------------------------------------------------------


def vllm_answers(owner: str) -> dict[str, tuple[int, bytes]]:
    entry = {"id": "m", "owned_by": owner, "root": "/models/m", "parent": None, "max_model_len": 4096}
    choice = {"message": {"role": "assistant", "content": "Ciao."}, "finish_reason": "stop"}
    return {
        "/version": (200, b'{"version":"0.32.0"}'),
        "/v1/models": (200, json.dumps({"data": [entry]}).encode()),
        "/v1/chat/completions": (200, json.dumps({"choices": [choice]}).encode()),
    }


@pytest.mark.parametrize(("owner", "expected"), [("vllm", {"L0", "L1"}), ("openai", {"L0", "remote"})])
def test_i10_a_gateway_that_answers_for_vllm_gets_nothing(
    owner: str, expected: set[str], ollama: Servers
) -> None:
    server = ollama(answers=vllm_answers(owner))
    local = {"runtime": "vllm", "endpoint": str(server.address), "model": "m"}
    with open_profile("detached", inference={"local": local}, policy={"grants": []}) as runtime:
        if owner == "vllm":
            assert ask(runtime, "Ciao?") == "Ciao."
        else:
            with pytest.raises(RunnerError, match="not-local"):
                ask(runtime, "Ciao?")
    assert ("/v1/chat/completions" in server.paths) is (owner == "vllm")
    assert grades(verified(runtime.trace_path)) == expected


# --- Anthropic -------------------------------------------------------------------------------------

TOKEN = "tok-5f3c9a1e7b2d4c6f"
MESSAGE = {
    "type": "message",
    "content": [{"type": "text", "text": "Ciao."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}


def anthropic(url: object) -> dict[str, Any]:
    remote = {"backend": "anthropic", "endpoint": str(url), "model": "m", "credential": "env:MODEL_TOKEN"}
    return {
        "policy": {"grants": []},
        "perimeter": {"max_egress_class": "C1"},
        "inference": {"prefer": "remote", "local": None, "remote": remote},
    }


@pytest.mark.parametrize("status", [200, 401, 500])
def test_i5_an_anthropic_key_travels_only_in_its_own_header(
    status: int, ollama: Servers, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setenv("MODEL_TOKEN", TOKEN)
    echo = json.dumps(MESSAGE if status == 200 else {"type": "error", "error": {"type": TOKEN}})
    server = ollama(answers={"/v1/messages": (status, echo.encode())})
    with open_profile("attached", **anthropic(server.address)) as runtime:
        assert TOKEN not in repr(vars(runtime))
        if status == 200:
            assert ask(runtime, "Ciao?") == "Ciao."
        else:
            with pytest.raises(RunnerError, match=f"answered {status}") as caught:
                ask(runtime, "Ciao?")
            assert TOKEN not in str(caught.value)
    [(method, path, head, body)] = server.requests
    assert (method, path) == ("POST", "/v1/messages")
    assert f"x-api-key: {TOKEN}\n".encode() in head
    assert b"authorization" not in head.lower()
    assert TOKEN.encode() not in body
    assert all(TOKEN.encode() not in file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert grades(verified(runtime.trace_path)) == {"remote"}


def test_a_missing_anthropic_key_is_a_config_error_before_anything_is_sent(ollama: Servers) -> None:
    server = ollama()
    with pytest.raises(ConfigError, match=r"inference\.remote\.credential"):
        open_profile("attached", **anthropic(server.address))
    assert server.requests == []
