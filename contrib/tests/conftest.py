# SPDX-License-Identifier: Apache-2.0
"""The two packages as their users get them: built into wheels, unpacked, and imported from there."""

import json
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import datapizza.clients
import pytest

CONTRIB = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the wheel of each package, by the last part of its name."""
    folder = tmp_path_factory.mktemp("wheels")
    for project in sorted(CONTRIB.glob("datapizza-ai-clients-*")):
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=project, check=True, capture_output=True)
    return {wheel.name.split("-")[0].rpartition("_")[2]: wheel for wheel in folder.glob("*.whl")}


@pytest.fixture(scope="session", autouse=True)
def unpacked(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put the wheels where Python finds them, and nothing else of this folder."""
    site = tmp_path_factory.mktemp("site")
    for wheel in wheels.values():
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    datapizza.clients.__path__.append(str(site / "datapizza" / "clients"))
    return site


class Server:
    """A chat server that answers from a script and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: list[Any] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def says(self, *texts: str, finish: str = "stop") -> None:
        """Answer the next requests with these texts."""
        for text in texts:
            choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
            self.answers.append({"choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})

    def close(self) -> None:
        """Stop answering."""
        self._http.shutdown()
        self._http.server_close()

    def _handler(server) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - two selves
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append((self.path, body))
                answer = server.answers.pop(0)
                if isinstance(answer, int):
                    self.send_response(answer)
                    self.send_header("Location", "http://192.0.2.1/")
                    self.end_headers()
                    return
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    """Yield a scripted server on loopback."""
    made = Server()
    yield made
    made.close()
