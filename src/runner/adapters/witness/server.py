# SPDX-License-Identifier: Apache-2.0
"""The witness over HTTP: one path, `POST /add-checkpoint`.

Owns the protocol around the judge: lengths, times, statuses, and how many may ask at once. Leaves every
judgement to `Witness`. Says nothing of a request in its log but the status.
"""

import re
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from runner.adapters.witness.judge import MAX_REQUEST, Reply, Witness

PATH: Final = "/add-checkpoint"
MAX_CONNECTIONS: Final = 32
_TIMEOUT_S: Final = 10.0
_LENGTH: Final = re.compile("[0-9]{1,9}")


class WitnessServer(ThreadingHTTPServer):
    """Listens at `host` and `port` (0: any free one); `said` is told each status. Use `serve_forever`.

    Each connection has a thread, and `MAX_CONNECTIONS` are open at once: the oldest gives way to a new one.
    So nobody keeps others away by holding connections open, however slowly they are used.
    """

    daemon_threads = True

    def __init__(self, witness: Witness, host: str, port: int, said: Callable[[int], None]) -> None:
        self.witness = witness
        self.said = said
        self._open: dict[socket.socket, None] = {}  # oldest first
        self._guard = threading.Lock()
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - of the base class
        """Give a new connection its thread, and end the oldest one when there are too many."""
        with self._guard:
            self._open[request] = None
            oldest = next(iter(self._open)) if len(self._open) > MAX_CONNECTIONS else None
            self._open.pop(oldest, None)  # type: ignore[arg-type]  # None is no connection
        if oldest is not None:
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)  # whoever waits in its thread reads the end
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as above
        """Forget a connection that ends."""
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as above
        """Say nothing of a peer that went away: the base class would print its address."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: WitnessServer
    protocol_version = "HTTP/1.1"
    server_version = "akaion-witness"
    sys_version = ""
    timeout = _TIMEOUT_S

    def do_POST(self) -> None:
        """Answer a request: the name is that of the base class."""
        length = self._length()
        if self.path != PATH:
            reply = Reply(status=404, body=b"POST to /add-checkpoint\n")
        elif length is None:
            reply = Reply(status=413, body=b"state a length of at most 65536 bytes\n")
        else:
            self._answer(self.server.witness.add_checkpoint(self.rfile.read(length)))
            return
        self.close_connection = True  # what follows was not read
        self._answer(reply)

    def _length(self) -> int | None:
        """Return the length of the body in bytes; None unless one header says it, and it may be read."""
        stated = self.headers.get_all("Content-Length", [])
        if len(stated) != 1 or "Transfer-Encoding" in self.headers or not _LENGTH.fullmatch(stated[0]):
            return None
        length = int(stated[0])
        return length if length <= MAX_REQUEST else None

    def _answer(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.media)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)
        self.server.said(reply.status)

    def log_message(self, *_: object) -> None:
        """Say nothing: the base class would quote the request."""
