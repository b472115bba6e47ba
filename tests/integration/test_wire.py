# SPDX-License-Identifier: Apache-2.0
"""P1, I4, I8: media and embeddings through `open_profile`, with real sockets and the real verifier."""

import base64
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest
from datapizza.embedders import ClientEmbedder

from runner import EgressDenied, open_profile
from runner.adapters.datapizza import SealedDatapizzaClient
from runner.kernel.errors import BackendError
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Message, Role
from runner.testing import ScriptedServer, vector_of

ROOT = Path(__file__).resolve().parents[2]
PIXEL = b"\x89PNG\r\n\x1a\n a pixel without words"
NAMED = b"\x89PNG\r\n\x1a\n\0\0\0\x18tEXtComment\0RSSMRA80A01F205X....\0\0\0\0IEND"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def attached(url: str, **more: Any) -> dict[str, Any]:
    remote = {
        "backend": "openai",
        "endpoint": url,
        "model": "m",
        "tier": "constrained",
        "embeddings": "vectors",
        **more,
    }
    return {
        "policy": {"grants": []},
        "perimeter": {"max_egress_class": "C1"},
        "inference": {"prefer": "remote", "local": None, "remote": remote},
    }


def records(book: Path, kind: str) -> list[dict[str, Any]]:
    lines = [line for log in sorted(book.glob("*.jsonl")) for line in log.read_bytes().splitlines()]
    return [entry["body"] for line in lines if (entry := json.loads(line))["kind"] == kind]


def verdict(book: Path) -> dict[str, Any]:
    command = [sys.executable, "-I", "-S", str(ROOT / "verify" / "akaion_verify.py"), str(book), "--json"]
    report: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
    return report


def test_p1_a_batch_for_a_remote_model_is_one_request_under_a_name_of_its_own() -> None:
    with ScriptedServer() as server:
        with open_profile("attached", **attached(server.url)) as rt:

            async def index() -> Any:
                async with rt.client.task("index the handbook") as task:
                    said = [
                        task.foreign(text, declared=DataClass.C1, source="books") for text in ("uno", "due")
                    ]
                    found = await rt.client.embed(said, task=task)
                    told = [*said, task.foreign("tre", declared=DataClass.C2, source="books")]
                    with pytest.raises(EgressDenied, match="class-above-ceiling"):
                        await rt.client.embed(told, task=task)
                    return found

            found = anyio.run(index)
            book = rt.trace_path
        (request,) = server.received
    assert found.vectors == (vector_of("uno"), vector_of("due"))
    assert found.block.label.data_class is DataClass.C1
    assert request.startswith(b"POST /v1/embeddings HTTP/1.1\r\n")
    (body,) = server.bodies
    assert json.loads(body) == {"model": "vectors", "input": ["uno", "due"], "encoding_format": "float"}
    sends = records(book, "egress")
    assert [(each["backend"], each["decision"], each["class"]) for each in sends] == [
        ("remote-embeddings", "allowed", "C1"),
        ("remote-embeddings", "denied", "C2"),
    ]
    assert len(records(book, "egress_result")) == 1
    assert [(each["name"], each["model"]) for each in records(book, "backend")] == [
        ("remote-embeddings", "vectors")
    ]
    assert records(book, "header")[0]["backends"] == ["remote", "remote-embeddings"]
    assert verdict(book)["verdict"] == "UNTRUSTED", "consistent; nobody pinned a key"


def test_i5_a_batch_carries_the_credential_of_its_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKAION_TEST_TOKEN", "sk-0123456789")
    with ScriptedServer() as server:
        profile = attached(server.url, credential="env:AKAION_TEST_TOKEN")
        with open_profile("attached", **profile) as rt, rt.client.task("index") as task:
            anyio.run(lambda: rt.client.embed([task.goal], task=task))
    assert b"sk-0123456789" in server.received[0]
    assert b"sk-0123456789" not in server.bodies[0]


@pytest.mark.parametrize(
    ("data", "declared", "leaves"),
    [(PIXEL, "C1", True), (PIXEL, None, False), (NAMED, "C0", False)],
    ids=["declared", "unlabelled", "declared, with a name in it"],
)
def test_p1_a_picture_leaves_only_as_what_it_is(data: bytes, declared: str | None, leaves: bool) -> None:
    with ScriptedServer(replies=["a dot"]) as server:
        profile = attached(server.url)
        with open_profile("attached", **profile) as rt, rt.client.task("what is this?") as task:
            known = None if declared is None else DataClass.parse(declared)
            picture = task.media(data, "image/png", data_class=known)
            said = Message(role=Role.USER, blocks=(task.goal, picture))
            request = InferenceRequest(messages=(said,))
            with nullcontext() if leaves else pytest.raises(EgressDenied):
                anyio.run(lambda: rt.client.infer(request, task=task))
    arrived = b"".join(server.received)
    assert (base64.b64encode(data) in arrived) is leaves


def test_p1_a_datapizza_embedder_over_a_sealed_client_is_one_batch() -> None:
    with ScriptedServer() as server:
        profile = attached(server.url)
        with open_profile("attached", **profile) as rt, rt.client.task("index") as task:
            client = SealedDatapizzaClient(rt.client, task=task, data_class=DataClass.C1)
            found = ClientEmbedder(client=client).embed(["uno", "due"])
            book = rt.trace_path
    assert found == [list(vector_of("uno")), list(vector_of("due"))]
    assert len(server.received) == len(records(book, "egress")) == 1


def test_an_embedding_without_a_model_says_what_to_write() -> None:
    profile = attached("http://127.0.0.1:9")
    del profile["inference"]["remote"]["embeddings"]
    said = pytest.raises(BackendError, match=r"inference\.remote\.embeddings: MODEL")
    with open_profile("attached", **profile) as rt, rt.client.task("index") as task, said:
        anyio.run(lambda: rt.client.embed([task.goal], task=task))


def test_i10_a_local_model_for_vectors_is_checked_under_its_own_name_and_address() -> None:
    with ScriptedServer() as chats, ScriptedServer() as vectors:
        local = {
            "runtime": "llamacpp",
            "model": "m",
            "endpoint": chats.url,
            "embeddings": "e5",
            "embeddings_endpoint": vectors.url,
        }
        with open_profile("detached", policy={"grants": []}, inference={"local": local}) as rt:

            async def index() -> Any:
                async with rt.client.task("index", data_class=DataClass.C2) as task:
                    return await rt.client.embed([task.goal], task=task)

            found = anyio.run(index)
            book = rt.trace_path
    assert chats.received == []
    assert [raw.split(b" ")[1] for raw in vectors.received] == [b"/props", b"/v1/models", b"/v1/embeddings"]
    assert found.block.label.data_class is DataClass.C2
    assert {each["backend"] for each in records(book, "egress")} == {"local-embeddings"}
