# SPDX-License-Identifier: Apache-2.0
"""P1, I4: the transport is the only thing that opens a connection, and each one is on record.

From the source: what can open a connection is called in the modules named here and nowhere else. From
outside: Python's own audit events, in a process that does whole runs, say where it connected; the record says
the same.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from runner.testing import ScriptedServer, oblige

SRC: Final = Path(__file__).parents[2] / "src" / "runner"
OPENERS: Final = {
    "AsyncClient",
    "AsyncHTTPTransport",
    "Client",
    "FTP",
    "HTTPConnection",
    "HTTPSConnection",
    "HTTPTransport",
    "IMAP4",
    "Popen",
    "SMTP",
    "connect_tcp",
    "connect_unix",
    "create_connection",
    "create_datagram_endpoint",
    "create_server",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "create_udp_socket",
    "execv",
    "execve",
    "fork",
    "getaddrinfo",
    "gethostbyname",
    "open_connection",
    "open_process",
    "open_unix_connection",
    "posix_spawn",
    "run_process",
    "sendmsg",
    "sendto",
    "sock_connect",
    "socket",
    "socketpair",
    "start_server",
    "system",
    "urlopen",
    "urlretrieve",
}
"""Names of functions and classes that reach out of the process, or make what does."""
ALLOWED: Final = {
    "adapters/ledger/verdict.py: Popen": "the verifier, in a process of its own",
    "adapters/cli/machine.py: connect_tcp": "`akaion doctor` knocks at an endpoint on loopback",
    "capability/backends/datapizza.py: AsyncClient": "the stage: a transport that sends nothing",
    "capability/backends/datapizza.py: Client": "the stage: a transport that sends nothing",
    "capability/sandbox/running.py: Popen": "a program that the policy allowed, inside its walls (P2)",
    "capability/transport/child.py: Popen": "an engine in a process of its own, which is told no address",
    "capability/transport/http.py: AsyncHTTPTransport": "the transport",
    "capability/transport/locality.py: getaddrinfo": "what a name means now (I10)",
    "capability/transport/signer.py: socket": "the signer's socket, a file of this machine",
    "capability/transport/signerd.py: socket": "the signer's socket, a file of this machine",
}
"""Where they are called, and why."""


def called(source: str) -> set[str]:
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [func.attr for func in calls if isinstance(func, ast.Attribute)]
    names += [func.id for func in calls if isinstance(func, ast.Name)]
    return OPENERS & set(names)


def test_p1_what_can_open_a_connection_is_called_in_the_transport_only() -> None:
    found = {
        f"{path.relative_to(SRC)}: {name}"
        for path in SRC.rglob("*.py")
        if path != SRC / "testing" / "server.py"
        for name in called(path.read_text(encoding="utf-8"))
    }
    assert found == ALLOWED.keys()


@pytest.mark.parametrize(
    "source",
    [
        "import socket\nsocket.socket()",
        "urlopen('x')",
        "import os\nos.system('curl x')",
        "anyio.connect_tcp()",
    ],
)
def test_the_rule_sees_what_it_is_for(source: str) -> None:
    assert called(source)


RUN: Final = """
import json, sys
reached = []
def watch(event, args):
    if event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        reached.append([event, *(args[1] if isinstance(args[1], tuple) else [str(args[1])])][:3])
    elif event in {"socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"}:
        reached.append([event, str(args[0]), 0])
sys.addaudithook(watch)
from runner import AgentLoop, EgressDenied, open_profile
given = json.loads(sys.argv[1])
with open_profile("attached", **given) as rt:
    local = AgentLoop(client=rt.client_for("local"), tools=rt.tools)
    remote = AgentLoop(client=rt.client_for("remote"), tools=rt.perimeter.seal_tools(()))
    denied = AgentLoop(client=rt.client_for("remote"), tools=rt.tools)
    ends = [
        remote.run("How is a notice of default usually structured?").stop.value,
        local.run("What does the seller of the mill ask for?").stop.value,
        denied.run("What does the seller of the mill ask for?").stop.value,
    ]
    book = str(rt.trace_path)
print(json.dumps({"reached": reached, "book": book, "ends": ends}))
"""


def test_i4_every_connection_of_a_run_is_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "letter.txt").write_text(
        "The seller of the mill asks for forty thousand florins.\n"
    )
    grant = {"tool": "search_text", "paths": [{"path": str(tmp_path / "files"), "class": "C3"}]}
    with ScriptedServer(replies=[oblige] * 9) as remote, ScriptedServer(replies=[oblige] * 9) as local:
        given = {
            "policy": {"grants": [grant]},
            "perimeter": {"max_egress_class": "C1", "locality_required": {"C2": "L0", "C3": "L0"}},
            "inference": {
                "prefer": "remote",
                "local": {"runtime": "llamacpp", "model": "m", "tier": "constrained", "endpoint": local.url},
                "remote": {"backend": "openai", "endpoint": remote.url, "model": "m", "tier": "constrained"},
            },
        }
        told = _in_another_process(given)
        ports = {"remote": remote.address.port, "local": local.address.port}
    assert told["ends"][0] == "answered"
    assert told["ends"][2] == "denied"
    sends = [each for each in _egress(Path(told["book"])) if each["decision"] != "denied"]
    expected = [["socket.connect", "127.0.0.1", ports[each["backend"]]] for each in sends]
    assert told["reached"] == expected
    assert {each["backend"] for each in sends} == {"remote", "local"}
    assert len(remote.received) + len(local.received) == len(sends)
    assert any(each["decision"] == "denied" for each in _egress(Path(told["book"])))


def _in_another_process(given: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(given)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _egress(book: Path) -> list[dict[str, Any]]:
    lines = [line for log in sorted(book.glob("*.jsonl")) for line in log.read_bytes().splitlines()]
    return [entry["body"] for line in lines if (entry := json.loads(line))["kind"] == "egress"]
