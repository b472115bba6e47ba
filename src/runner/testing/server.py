# SPDX-License-Identifier: Apache-2.0
"""Inference over a real socket: an HTTP server on loopback that keeps every byte it receives.

Owns the protocol, and the ways in which a server may fail. The one real thing among the fakes.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias, assert_never, cast

from runner.kernel.inference import Address
from runner.kernel.messages import Json, JsonObject
from runner.testing.inference import pieces, vector_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Answers `status` with a `Location`."""

    location: str
    status: int = 307


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Sends nothing until the server is closed, or only the head of a reply if `after_head`."""

    after_head: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakOff:
    """Closes the connection after the first `after` bytes of the body of a reply saying `text`."""

    text: str
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerError:
    """Answers an error `status`, whose body quotes `message` as real servers quote prompts."""

    status: int
    message: str = "scripted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawBytes:
    """Sends `data` as it is, head and all, and closes; `endless` sends it until the client goes away."""

    data: bytes
    endless: bool = False


Fault: TypeAlias = Redirect | Stall | BreakOff | ServerError | RawBytes
ServerReply: TypeAlias = str | JsonObject | Fault | Callable[[JsonObject], str]
"""One scripted answer: a text, an object sent as JSON, a fault, or a function of the request's JSON body."""


class ScriptedServer:
    """A real HTTP server on 127.0.0.1 that speaks `/v1/chat/completions`, streamed or whole.

    A context manager. Answers with `replies` in order; every request after the last gets status 500. On
    `/v1/embeddings` it answers each batch with `vector_of` its texts. On any other path it answers 404, as a
    server that says nothing about itself. Neither uses up a reply. `received` holds the raw bytes of every
    request, head and body, whatever its path; `bodies` the bodies alone.
    """

    def __init__(self, *, replies: Sequence[ServerReply] = ()) -> None:
        self._replies = iter(replies)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.received: list[bytes] = []
        self._http = _Listener(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def address(self) -> Address:
        """Where it listens."""
        return Address(scheme="http", host="127.0.0.1", port=self._http.server_port)

    @property
    def url(self) -> str:
        """Where it listens, as `http://127.0.0.1:port`."""
        return str(self.address)

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of the requests received so far."""
        return [raw.partition(b"\r\n\r\n")[2] for raw in self.received]

    def keep(self, raw: bytes) -> None:
        """Keep the bytes of a request."""
        with self._lock:
            self.received.append(raw)

    def take(self) -> ServerReply:
        """Return the next reply of the script."""
        with self._lock:
            return next(self._replies, ServerError(status=500, message="the script has no reply left"))

    def wait_until_closing(self) -> None:
        """Return when the server is being closed."""
        self._closing.wait()


class _Listener(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, script: ScriptedServer) -> None:
        self.script = script
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that goes away is part of many scripts."""


class _Handler(BaseHTTPRequestHandler):
    """Reads one request, keeps its bytes, answers, closes."""

    server: _Listener
    timeout = 30

    def handle(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b"\r\n", b"\n", b""):
            lines.append(line)
        if not lines:
            return
        head = b"".join(lines)
        size = next((int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")), 0)
        body = self.rfile.read(size)
        self.server.script.keep(head + b"\r\n" + body)
        if b" /v1/chat/completions " in lines[0]:
            self._answer(self.server.script.take(), body)
        elif b" /v1/embeddings " in lines[0]:
            self._send(200, "application/json", _embeddings_body(body))
        else:
            self._send(404, "application/json", b'{"error":{"code":404}}')

    def _answer(self, reply: ServerReply, body: bytes) -> None:
        stream = b'"stream":true' in body.replace(b'"stream": true', b'"stream":true')
        kind = "text/event-stream" if stream else "application/json"
        match reply:
            case Redirect():
                self._send(reply.status, kind, b"", ("Location", reply.location))
            case ServerError():
                error = {"error": {"code": reply.status, "message": reply.message}}
                self._send(reply.status, "application/json", json.dumps(error).encode("utf-8"))
            case Stall():
                if reply.after_head:
                    self._send(200, kind, b"", size=1)
                self.server.script.wait_until_closing()
            case RawBytes():
                self._send_raw(reply)
            case BreakOff():
                whole = _chat_body(reply.text, stream=stream)
                self._send(200, kind, whole[: reply.after], size=len(whole))
            case str():
                self._send(200, kind, _chat_body(reply, stream=stream))
            case Mapping():
                self._send(200, kind, _chat_body(json.dumps(reply, ensure_ascii=False), stream=stream))
            case _ if callable(reply):
                self._send(200, kind, _chat_body(reply(json.loads(body)), stream=stream))
            case _:
                assert_never(reply)

    def _send_raw(self, reply: RawBytes) -> None:
        self.wfile.write(reply.data)
        while reply.endless:
            self.wfile.write(reply.data)

    def _send(self, status: int, kind: str, body: bytes, *more: tuple[str, str], size: int = -1) -> None:
        headers = [("Content-Type", kind), ("Content-Length", str(len(body) if size < 0 else size)), *more]
        head = "".join(f"{name}: {value}\r\n" for name, value in headers)
        self.wfile.write(f"HTTP/1.1 {status} Scripted\r\n{head}Connection: close\r\n\r\n".encode() + body)
        self.wfile.flush()


def _embeddings_body(body: bytes) -> bytes:
    """Return the listing of vectors for the texts of the request `body`."""
    texts = json.loads(body)["input"]
    listed = [
        {"object": "embedding", "index": index, "embedding": vector_of(text)}
        for index, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return json.dumps({"object": "list", "data": listed, "usage": usage}).encode("ascii")


def _chat_body(text: str, *, stream: bool) -> bytes:
    """Return a chat completion saying `text`, with word counts as its usage."""
    usage = {"prompt_tokens": 1, "completion_tokens": len(text.split())}
    if not stream:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return json.dumps({"choices": [choice], "usage": usage}).encode("utf-8")
    events: list[JsonObject] = [
        {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
        for piece in pieces(text)
    ]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    events.append({"choices": [], "usage": usage})
    lines = [json.dumps(event, ensure_ascii=False) for event in events]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode("utf-8")


def oblige(body: JsonObject) -> str:
    """Return, as JSON text, the first value that fits the schema asked for in an OpenAI-shaped `body`.

    A scripted model that always does what it is asked, for `ScriptedServer(replies=[oblige] * n)`. Raises
    `KeyError` for a body without a `response_format`.
    """
    asked: Any = body["response_format"]
    return json.dumps(first_instance(asked["json_schema"]["schema"]), ensure_ascii=False)


def first_instance(schema: JsonObject) -> Json:
    """Return a small value of `schema`: the first of an enum, true, the least array, the shortest string.

    Knows the keywords the runner's own schemas use. Raises `ValueError` for a type it does not know.
    """
    named: Any = schema
    if "enum" in named:
        return cast("Json", named["enum"][0])
    match named.get("type"):
        case "object":
            return {name: first_instance(named["properties"][name]) for name in named.get("required", ())}
        case "array":
            return [first_instance(named["items"])] * max(1, named.get("minItems", 1))
        case "string":
            return "x" * int(max(1, named.get("minLength", 1)))
        case "integer" | "number":
            return cast("Json", named.get("minimum", 0))
        case "boolean":
            return True
        case _:
            raise ValueError("first_instance does not know this schema")
