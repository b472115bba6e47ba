# SPDX-License-Identifier: Apache-2.0
"""The receiver: a real HTTP server on loopback that stands where the remote model would.

Owns listening, and keeping every byte of every request. It speaks the chat protocols, whole and streamed, and
embeddings, only so far that a codec reads an answer. Leaves judging what it got to `judge`. Standard library
only.
"""

import json
from collections.abc import Mapping
from socketserver import StreamRequestHandler, TCPServer
from threading import Lock, Thread
from typing import Any, Final, Self

_HOST: Final = "127.0.0.1"
_SAID: Final = "va bene"


class Receiver:
    """Listens on a free port of loopback while its block is open. One request at a time, one a connection."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: list[bytes] = []
        self._server = _Server(self)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{_HOST}:{self._server.server_address[1]}"

    def keep(self, body: bytes) -> None:
        """Keep the body of a request."""
        with self._lock:
            self._kept.append(body)

    def take(self) -> tuple[bytes, ...]:
        """Return the bodies received since the last call, and forget them."""
        with self._lock:
            taken, self._kept = tuple(self._kept), []
        return taken


class _Server(TCPServer):
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        super().__init__((_HOST, 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: whoever broke off has the error on its own side."""


class _Handler(StreamRequestHandler):
    server: _Server
    timeout = 30

    def handle(self) -> None:
        """Read one request, keep its body, answer, close."""
        target = self.rfile.readline().split(b" ")[1:2]
        size = 0
        while (line := self.rfile.readline()) not in {b"\r\n", b"\n", b""}:
            name, _, value = line.partition(b":")
            size = int(value) if name.lower() == b"content-length" else size
        body = self.rfile.read(size)
        if not target:
            return
        self.server.receiver.keep(body)
        kind, answer = reply_to(target[0].decode("latin-1"), _parsed(body))
        head = (
            "HTTP/1.1 200 OK",
            f"Content-Type: {kind}",
            f"Content-Length: {len(answer)}",
            "Connection: close",
        )
        self.wfile.write("\r\n".join((*head, "", "")).encode("ascii") + answer)


def _parsed(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def reply_to(target: str, asked: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return content type and body of an answer in the protocol of the path `target`."""
    stream = asked.get("stream") is True
    if "embed" in target:
        return "application/json", _embeddings(asked.get("input", ""))
    if "messages" in target:
        return _events(_MESSAGE_EVENTS, "") if stream else ("application/json", _whole(_MESSAGE))
    return _events(_CHAT_EVENTS, "data: [DONE]\n\n") if stream else ("application/json", _whole(_CHAT))


def _whole(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _events(events: tuple[Mapping[str, Any], ...], end: str) -> tuple[str, bytes]:
    lines = (
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        if "type" in event
        else f"data: {json.dumps(event)}\n\n"
        for event in events
    )
    return "text/event-stream", ("".join(lines) + end).encode()


def _embeddings(texts: object) -> bytes:
    count = len(texts) if isinstance(texts, list) else 1
    data = [{"object": "embedding", "index": index, "embedding": [0.5, -0.5]} for index in range(count)]
    return _whole({"object": "list", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}})


_USAGE: Final = {"prompt_tokens": 1, "completion_tokens": 2}
_CHAT: Final = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": _SAID}, "finish_reason": "stop"}],
    "usage": _USAGE,
}
_CHAT_EVENTS: Final[tuple[Mapping[str, Any], ...]] = (
    {"choices": [{"index": 0, "delta": {"content": _SAID}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": _USAGE},
)
_MESSAGE: Final = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": _SAID}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
_MESSAGE_EVENTS: Final[tuple[Mapping[str, Any], ...]] = (
    {"type": "message_start", "message": {**_MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": _SAID}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)
