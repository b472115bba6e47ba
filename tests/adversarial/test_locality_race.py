# SPDX-License-Identifier: Apache-2.0
"""I10 and P1 under load: a send is judged with the grade of its own check, whatever others are checking.

A model server on loopback passes everything on to a cloud and says so. Six threads ask it about a C3 file at
once. Every check begins with the declared grade L0, which would do; none may be judged with the beginning of
another's.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from runner import EgressDenied, open_profile
from runner.kernel.inference import InferenceRequest
from runner.kernel.messages import Message, Role, ToolCall

ROOT = Path(__file__).resolve().parents[2]
CANARY = "XYZZY"
THREADS, ROUNDS = 6, 15
CLOUD = {"remote_host": "https://cloud.example", "remote_model": "m"}


class PassesOn(BaseHTTPRequestHandler):
    """Ollama with one model of the cloud. It keeps what it is asked to chat about."""

    chats: list[bytes]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._answer({"models": [{"name": "m", "model": "m", "size": 1, **CLOUD}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/api/chat":
            self.chats.append(body)
        self._answer(CLOUD)

    def _answer(self, members: dict[str, Any]) -> None:
        body = json.dumps(members).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def passing_on() -> Iterator[tuple[str, list[bytes]]]:
    """Serve on loopback; yield the address and the chats that arrived."""
    chats: list[bytes] = []
    handler = type("Handler", (PassesOn,), {"chats": chats})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", chats
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let threads take turns as often as the interpreter can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def profile(url: str, folder: Path) -> dict[str, Any]:
    grant = {"tool": "read_file", "paths": [{"path": str(folder), "class": "C3"}]}
    return {
        "policy": {"grants": [grant]},
        "perimeter": {"locality_required": {"C2": "L0", "C3": "L0"}},
        "inference": {"prefer": "local", "local": {"runtime": "ollama", "endpoint": url, "model": "m"}},
    }


@pytest.mark.usefixtures("hasty")
def test_i10_p1_no_thread_is_judged_with_the_half_of_anothers_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    folder = tmp_path / "practice"
    folder.mkdir()
    (folder / "n.txt").write_text(f"The {CANARY} fee is 100 florins\n", encoding="utf-8")
    together, denied = threading.Barrier(THREADS), []

    with passing_on() as (url, chats), open_profile("detached", **profile(url, folder)) as runtime:
        client, tools = runtime.client, runtime.tools

        async def ask() -> None:
            with client.task("What is the fee?") as task:
                call = ToolCall(tool="read_file", arguments={"path": "practice/n.txt"}, origin=task.goal)
                read = (await tools.call(call, task=task)).block
                assert CANARY in read.text
                request = InferenceRequest(messages=(Message(role=Role.USER, blocks=(read,)),))
                together.wait(timeout=600)
                for _ in range(ROUNDS):
                    with pytest.raises(EgressDenied):
                        await client.infer(request, task=task)
                    denied.append(1)

        threads = [threading.Thread(target=anyio.run, args=(ask,)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        runtime.export_pin(tmp_path / "pin")

    assert (len(denied), chats) == (THREADS * ROUNDS, [])
    assert verdict(runtime.trace_path, tmp_path / "pin") == ("PASS", [])


def verdict(book: Path, pin: Path) -> tuple[str, list[Any]]:
    command = [sys.executable, "-I", "-S", str(ROOT / "verify" / "akaion_verify.py"), str(book)]
    done = subprocess.run([*command, "--pin", str(pin), "--json"], capture_output=True, check=False)
    said = json.loads(done.stdout)
    return said["verdict"], said["reasons"]
