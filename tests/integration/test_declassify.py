# SPDX-License-Identifier: Apache-2.0
"""A person lets a file go to a remote model: from the profile and the question to bytes and verdict."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from runner import AgentLoop, DataClass, StopReason, open_profile
from runner.kernel.messages import JsonObject
from runner.kernel.ports import FOREIGN
from runner.testing import ScriptedApprover, ScriptedServer

ROOT: Final = Path(__file__).resolve().parents[2]
VERIFIER: Final = ROOT / "verify" / "akaion_verify.py"
LINE: Final = "Udienza Rossi: 14 ottobre 2026, ore 9.30, codice fiscale RSSMRA80A01F205X."
QUESTION: Final = "Quando è fissata l'udienza?"
ANSWER: Final = "14 ottobre 2026"
ASKS: Final = b"anything else to refuse: "


def reply(body: JsonObject) -> str:
    """Answer by what the schema asks for, whatever the order of the loop's questions."""
    if '"it"' in json.dumps(body["response_format"]):
        return json.dumps({"it": "udienza", "en": "hearing"})
    return json.dumps({"answer": ANSWER})


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(replies=[reply] * 20) as server:
        yield server


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ScriptedServer) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "avviso.txt").write_text(f"Tribunale di Example\n\n{LINE}\n", encoding="utf-8")
    path = tmp_path / "studio.yaml"
    path.write_text(
        "profile: attached\nperimeter: {declassification: ask}\npolicy:\n  grants:\n"
        "    - {tool: search_text, paths: [files]}\n    - {tool: read_file, paths: [files]}\n"
        "inference:\n  prefer: remote\n  local: null\n"
        f"  remote: {{backend: openai, endpoint: '{server.url}', model: m}}\n",
        encoding="utf-8",
    )
    return path


def ask(profile: Path, approver: ScriptedApprover, **more: Any) -> Any:
    with open_profile(profile, approver=approver, **more) as runtime:
        return AgentLoop(client=runtime.client, tools=runtime.tools).run(QUESTION)


def verdict(profile: Path) -> dict[str, Any]:
    pin = profile.parent / "device.vkey"
    with open_profile(profile) as runtime:
        runtime.export_pin(pin)
    trace = profile.parent / "home" / "trace"
    done = subprocess.run(
        [sys.executable, "-I", "-S", VERIFIER, trace, "--pin", pin, "--json"],
        capture_output=True,
        check=False,
        timeout=600,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_p1_a_file_that_a_person_let_go_is_answered_from_and_the_record_passes(
    profile: Path, server: ScriptedServer
) -> None:
    """Two documents: what the search found, and the file, read whole for the second look."""
    approver = ScriptedApprover(answers=[True, True])
    result = ask(profile, approver)
    assert (result.stop, result.answer) == (StopReason.ANSWERED, ANSWER)
    assert [evidence.quote for evidence in result.evidence] == [LINE]
    assert result.data_class is DataClass.C2, "the answer stays what it is"
    assert len(approver.asked) == 2
    assert all(LINE in asked.rendering.replace(f"\n{FOREIGN}", "") for asked in approver.asked)
    assert any(b"RSSMRA80A01F205X" in body for body in server.bodies)
    report = verdict(profile)
    assert (report["verdict"], report["declassified"]["approval"]) == ("PASS", len(server.bodies) - 1)


@pytest.mark.parametrize("answers", [[], [False], [False, True]])
def test_i1_a_no_lets_nothing_of_it_leave(profile: Path, server: ScriptedServer, answers: list[bool]) -> None:
    approver = ScriptedApprover(answers=answers)
    result = ask(profile, approver)
    assert (result.stop, len(approver.asked)) == (StopReason.DENIED, 1)
    assert not any(b"RSSMRA80A01F205X" in body for body in server.bodies)
    assert verdict(profile)["verdict"] == "PASS"


def test_i1_a_profile_that_does_not_say_so_asks_nobody(profile: Path, server: ScriptedServer) -> None:
    approver = ScriptedApprover(answers=[True, True])
    profile.write_text(profile.read_text().replace("perimeter: {declassification: ask}\n", ""))
    result = ask(profile, approver)
    assert (result.stop, approver.asked) == (StopReason.DENIED, [])
    assert not any(b"RSSMRA80A01F205X" in body for body in server.bodies)


def test_p1_a_privileged_folder_is_not_asked_about(profile: Path, server: ScriptedServer) -> None:
    privileged = {"path": str(profile.parent / "files"), "class": "C3"}
    approver = ScriptedApprover(answers=[True, True])
    result = ask(profile, approver, policy={"grants": [{"tool": "search_text", "paths": [privileged]}]})
    assert (result.stop, approver.asked) == (StopReason.DENIED, [])
    assert "c3-never-leaves" in result.detail
    assert not any(b"RSSMRA80A01F205X" in body for body in server.bodies)


@pytest.mark.parametrize(("typed", "left"), [("yes", True), ("y", False)])
def test_a_person_at_the_terminal_sees_class_destination_and_text_and_says_yes(
    profile: Path, server: ScriptedServer, typed: str, *, left: bool
) -> None:
    ours, theirs = os.openpty()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(profile.parent),
        "AKAION_HOME": str(profile.parent / "home"),
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONUTF8": "1",
        "TERM": "xterm",
        "COLUMNS": "120",
    }
    command = [sys.executable, "-W", "error", "-m", "runner.adapters.cli.main", "run", "-p", str(profile)]
    screen = b""
    with subprocess.Popen(
        [*command, QUESTION], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        try:
            while chunk := os.read(ours, 4096):
                before, screen = screen.count(ASKS), screen + chunk
                if screen.count(ASKS) > before:
                    os.write(ours, typed.encode() + b"\n")
        except OSError:  # Linux says so when the last process has closed the terminal
            pass
        finally:
            os.close(ours)
        process.wait(600)
    shown = screen.decode()
    assert "class C2" in shown
    assert "let this text go to remote" in shown
    assert f"which is m at {server.url}" in shown
    assert "for 15 min, in this task only" in shown
    assert "codice fiscale" in shown
    assert "Type yes to let this go" in shown
    assert any(b"RSSMRA80A01F205X" in body for body in server.bodies) is left
    assert process.returncode == (0 if left else 4)
