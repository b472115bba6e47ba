# SPDX-License-Identifier: Apache-2.0
"""What the tests of whole runs share: a server on loopback that answers as Ollama does.

Written from Ollama's API description (docs/api.md of its repository) and types; its official client reads it
in `test_ollama.py`, so that it cannot drift into what our codec would like.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from runner.kernel.inference import Address
from runner.testing import first_instance

GGUF = {
    "parent_model": "",
    "format": "gguf",
    "family": "llama",
    "families": ["llama"],
    "parameter_size": "134.52M",
    "quantization_level": "Q4_1",
}
SINCE = "2026-01-01T00:00:00Z"


class FakeOllama:
    """Ollama with one model, `name`. `listed` and `shown` are added to its listing and its description.

    `say` is what the model answers, a text or the words of a failure in mid-stream; without it the model
    obliges the schema in `format`, or says "Ciao.". `thinking` is what it thinks before. `answers` replaces
    the status and body of a path altogether. `requests` holds method, path, head and body of every request.
    """

    def __init__(
        self,
        *,
        name: str = "qwen3:0.6b",
        listed: Mapping[str, Any] | None = None,
        shown: Mapping[str, Any] | None = None,
        say: str | Exception | None = None,
        thinking: str = "",
        answers: Mapping[str, tuple[int, bytes]] | None = None,
    ) -> None:
        self.name = name
        self.say = say
        self.thinking = thinking
        self.answers = dict(answers or {})
        self.listed = {
            "name": name,
            "model": name,
            "modified_at": SINCE,
            "size": 98_765_432,
            "digest": "3a" * 32,
            "details": GGUF,
            **(listed or {}),
        }
        self.shown = {
            "modelfile": "FROM /models/blobs/sha256",
            "parameters": "",
            "template": "{{ .Prompt }}",
            "details": GGUF,
            "model_info": {"general.architecture": "llama"},
            "capabilities": ["completion"],
            "modified_at": SINCE,
            **(shown or {}),
        }
        self.requests: list[tuple[str, str, bytes, bytes]] = []
        self._http = _Listener(self)

    @property
    def address(self) -> Address:
        """Where it listens."""
        return Address(scheme="http", host="127.0.0.1", port=self._http.server_port)

    @property
    def paths(self) -> list[str]:
        """The paths asked for, in order."""
        return [path for _, path, _, _ in self.requests]

    @property
    def received(self) -> bytes:
        """Every byte received."""
        return b"".join(head + body for _, _, head, body in self.requests)

    @contextmanager
    def serving(self) -> Iterator["FakeOllama"]:
        """Serve until the block is left."""
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            thread.join()
            self._http.server_close()

    def chat(self, asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the objects of a reply, the last one with `done`."""
        text = self._text(asked)
        budget = int(asked.get("options", {}).get("num_predict", -1))
        pieces = [text[start : start + 5] for start in range(0, len(text), 5)]
        kept = pieces if budget < 0 else pieces[:budget]
        head = {"model": asked["model"], "created_at": SINCE}
        if self.thinking and asked.get("think") is not False:
            yield {**head, "message": _message("", thinking=self.thinking), "done": False}
        for piece in kept:
            yield {**head, "message": _message(piece), "done": False}
        if isinstance(self.say, Exception):
            yield {"error": str(self.say)}
            return
        yield {
            **head,
            "message": _message(""),
            "done": True,
            "done_reason": "stop" if kept == pieces else "length",
            "total_duration": 5,
            "load_duration": 1,
            "prompt_eval_count": 7,
            "prompt_eval_duration": 2,
            "eval_count": len(kept),
            "eval_duration": 2,
        }

    def _text(self, asked: Mapping[str, Any]) -> str:
        if isinstance(self.say, str):
            return self.say
        schema = asked.get("format")
        return json.dumps(first_instance(schema)) if isinstance(schema, dict) else "Ciao."


def _message(content: str, **more: str) -> dict[str, str]:
    return {"role": "assistant", "content": content, **more}


class _Listener(ThreadingHTTPServer):
    def __init__(self, ollama: FakeOllama) -> None:
        self.ollama = ollama
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that goes away is part of many tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Listener
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        self._serve({"/api/show": self._show, "/api/chat": self._chat})

    def _serve(self, routes: Mapping[str, Callable[[Mapping[str, Any]], None]]) -> None:
        ollama = self.server.ollama
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        ollama.requests.append((self.command, self.path, str(self.headers).encode(), body))
        if self.path in ollama.answers:
            status, answer = ollama.answers[self.path]
            self._send(status, answer)
        elif self.path in routes:
            routes[self.path](json.loads(body))
        elif self.command == "GET" and self.path == "/api/tags":
            self._send(200, json.dumps({"models": [ollama.listed]}).encode())
        else:
            self._send(404, b"404 page not found", kind="text/plain")

    def _known(self, asked: Mapping[str, Any]) -> bool:
        name = asked.get("model", "")
        if name in {self.server.ollama.name, self.server.ollama.name.removesuffix(":latest")}:
            return True
        self._send(404, json.dumps({"error": f"model '{name}' not found"}).encode())
        return False

    def _show(self, asked: Mapping[str, Any]) -> None:
        if self._known(asked):
            self._send(200, json.dumps(self.server.ollama.shown).encode())

    def _chat(self, asked: Mapping[str, Any]) -> None:
        if not self._known(asked):
            return
        parts = list(self.server.ollama.chat(asked))
        if asked.get("stream", True):
            self._send_lines([json.dumps(part).encode() + b"\n" for part in parts])
        elif "error" in parts[-1]:
            self._send(500, json.dumps(parts[-1]).encode())
        else:
            messages = [part["message"] for part in parts]
            thinking = "".join(message.get("thinking", "") for message in messages)
            text = "".join(message["content"] for message in messages)
            message = _message(text, **({"thinking": thinking} if thinking else {}))
            self._send(200, json.dumps({**parts[-1], "message": message}).encode())

    def _send(self, status: int, body: bytes, *, kind: str = "application/json; charset=utf-8") -> None:
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", body.decode())
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_lines(self, lines: Sequence[bytes]) -> None:
        """Send `lines` as Go's server does: chunked, the status long gone when something fails."""
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")


@pytest.fixture
def ollama() -> Iterator[Callable[..., FakeOllama]]:
    """Return a maker of servers, each serving until the test ends: `ollama(name=..., listed={...})`."""
    with ExitStack() as opened:
        yield lambda **options: opened.enter_context(FakeOllama(**options).serving())
