# SPDX-License-Identifier: Apache-2.0
"""The `akaion` command as a process, against a model that answers from a script on loopback."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from runner.kernel.messages import JsonObject
from runner.testing import ScriptedServer

SOURCE: Final = Path(__file__).resolve().parents[2] / "src"
VERIFIER: Final = Path(__file__).resolve().parents[2] / "verify" / "akaion_verify.py"
LINE: Final = "Udienza: 14 ottobre 2026, ore 9.30, aula 5."
QUESTION: Final = "Quando è fissata l'udienza?"
ANSWER: Final = "Il 14 ottobre 2026 alle 9.30."
TIMEOUT_S: Final = 600
"""A guard against hanging: every wait is for an event, or for a process to end."""
ROUNDS: Final = 50
ASKS: Final = b"anything else to refuse: "


def reply(body: JsonObject, answer: str = ANSWER, *, supported: bool = True) -> str:
    """Answer by what the grammar asks for, whatever the order of the loop's questions."""
    if '\\"it\\"' in str(body["grammar"]):
        return json.dumps({"it": "udienza", "en": "hearing"})
    return json.dumps({"answer": answer if supported else "not found"})


@dataclass(frozen=True, kw_only=True)
class Practice:
    """A practice in a temporary folder: files, profile, home, and the model's address."""

    root: Path
    endpoint: str

    def profile(self, *, grant: str = "", more: str = "") -> Path:
        path = self.root / "studio.yaml"
        path.write_text(
            "profile: detached\n"
            "policy:\n"
            "  grants:\n"
            f"    - {{tool: search_text, paths: [{{path: files}}]{grant}}}\n"
            "inference:\n"
            f"  local: {{runtime: llamacpp, endpoint: '{self.endpoint}', model: scripted, context: 4096}}\n"
            f"{more}",
            encoding="utf-8",
        )
        return path

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
        return {
            **kept,
            "AKAION_HOME": str(self.root / "home"),
            "HOME": str(self.root),
            "PYTHONPATH": str(SOURCE),
            "PYTHONUTF8": "1",
        }

    def akaion(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
            check=False,
            env=self.environment,
            cwd=self.root,
        )

    def ask(self, *options: str, profile: Path | None = None) -> subprocess.CompletedProcess[str]:
        return self.akaion("run", "--profile", str(profile or self.profile()), *options, QUESTION)

    def verify(self) -> dict[str, Any]:
        pin = self.root / "device.vkey"
        assert self.akaion("keys", "export", str(pin)).returncode == 0
        done = subprocess.run(
            [sys.executable, "-I", "-S", VERIFIER, self.root / "home" / "trace", "--pin", pin, "--json"],
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        verdict: dict[str, Any] = json.loads(done.stdout)
        return verdict


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "runner.adapters.cli.main", *arguments]


def practice_at(root: Path, endpoint: str) -> Practice:
    (root / "files").mkdir()
    (root / "files" / "avviso.txt").write_text(f"Tribunale di Example\n\n{LINE}\n", encoding="utf-8")
    return Practice(root=root, endpoint=endpoint)


@pytest.fixture
def practice(tmp_path: Path) -> Iterator[Practice]:
    with ScriptedServer(replies=[reply] * ROUNDS) as server:
        yield practice_at(tmp_path, server.url)


def test_an_answer_comes_with_its_evidence_its_class_and_the_way_to_verify_it(practice: Practice) -> None:
    done = practice.ask()
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["Answer", f"  {ANSWER}"]
    assert lines[2:5] == ["Evidence", "  files/avviso.txt:3", f"    {LINE}"]
    assert re.fullmatch(r"Class +C2, personal data", lines[5])
    assert re.fullmatch(r"Stopped +answered, after 1 tool call and \d+ tokens", lines[6])
    assert f"akaion-verify {practice.root / 'home' / 'trace'} --pin device.vkey" in done.stdout


def test_the_record_of_an_answer_passes_the_verifier_with_the_exported_pin(practice: Practice) -> None:
    """I4: the hint that the command prints leads to a PASS."""
    assert practice.ask().returncode == 0
    assert practice.verify()["verdict"] == "PASS"


def test_json_is_one_object_with_the_documented_members(practice: Practice) -> None:
    done = practice.ask("--json")
    data = json.loads(done.stdout)
    assert list(data) == [
        *("answer", "stop", "found", "class", "evidence", "steps", "tokens", "task", "trace", "detail"),
        *("confirmed", "unread", "not_whole", "notes"),
    ]
    assert (data["answer"], data["stop"], data["found"], data["class"]) == (ANSWER, "answered", True, "C2")
    assert data["evidence"] == [{"file": "files/avviso.txt", "page": None, "line": 3, "quote": LINE}]
    assert [(step["tool"], step["status"]) for step in data["steps"]] == [("search_text", "ok")]
    assert data["trace"] == str(practice.root / "home" / "trace")
    assert data["tokens"] > 0
    assert (data["confirmed"], data["unread"]) == (False, 0)
    assert data["notes"] == ["not confirmed: there was no second reading of the file"]
    assert re.fullmatch(r"[0-9a-f]{32}", data["task"])


def test_quiet_prints_answer_and_evidence_and_nothing_on_standard_error(practice: Practice) -> None:
    done = practice.ask("--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert "akaion-verify" not in done.stdout


def test_i12_standard_error_that_is_no_terminal_names_phases_and_no_content(practice: Practice) -> None:
    done = practice.ask()
    assert "calling search_text" in done.stderr
    assert not any(word in done.stderr.lower() for word in ("udienza", "ottobre", "hearing", "tribunale"))


def test_a_denial_exits_4_and_nothing_reached_the_model(tmp_path: Path) -> None:
    """P1: C3 content needs a model inside the process; the server sees the search words only."""
    with ScriptedServer(replies=[reply] * ROUNDS) as server:
        practice = practice_at(tmp_path, server.url)
        path = practice.profile()
        path.write_text(path.read_text("utf-8").replace("{path: files}", "{path: files, class: C3}"), "utf-8")
        done = practice.ask("--json", profile=path)
        received = b"".join(server.received)
    data = json.loads(done.stdout)
    assert (done.returncode, data["stop"], data["class"], data["answer"]) == (4, "denied", "C3", "")
    assert "denied" in data["detail"]
    assert b"Udienza: 14" not in received


def test_not_found_exits_3(tmp_path: Path) -> None:
    with ScriptedServer(replies=[lambda body: reply(body, supported=False)] * ROUNDS) as server:
        done = practice_at(tmp_path, server.url).ask()
    assert done.returncode == 3
    assert done.stdout.startswith("No answer\n  not found: ")
    assert "Evidence" not in done.stdout


def test_a_spent_budget_exits_4(practice: Practice) -> None:
    done = practice.ask(profile=practice.profile(more="budget: {tokens: 1}\n"))
    assert done.returncode == 4
    assert "the budget of tokens is spent" in done.stdout


def test_a_backend_that_is_not_there_exits_1_without_a_traceback(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        gone = server.url
    done = practice_at(tmp_path, gone).ask()
    assert done.returncode == 1
    assert done.stdout.startswith("No answer\n  failed: ")
    assert "Traceback" not in done.stdout + done.stderr


def test_every_mistake_of_a_profile_is_told_with_file_line_and_fix(practice: Practice) -> None:
    path = practice.profile(more="budget:\n  steps: 0\n  secondi: 5\n")
    done = practice.ask(profile=path)
    assert (done.returncode, done.stdout) == (2, "")
    first = path.read_text("utf-8").splitlines().index("budget:") + 1
    assert "akaion: 2 mistakes to correct" in done.stderr
    assert re.search(rf"{re.escape(str(path))}:{first + 1}: budget\.steps: .*Fix: ", done.stderr)
    assert re.search(rf"{re.escape(str(path))}:{first + 2}: budget\.secondi: .*Fix: ", done.stderr)
    assert not (practice.root / "home" / "trace").exists()


def test_a_backend_that_the_profile_does_not_configure_is_a_usage_error(practice: Practice) -> None:
    done = practice.ask("--backend", "remote")
    assert done.returncode == 2
    assert "inference.prefer" in done.stderr


@pytest.mark.parametrize("arguments", [("run",), ("run", " "), ("run", "--nonsense", "x"), ("nonsense",)])
def test_wrong_usage_exits_2(practice: Practice, arguments: tuple[str, ...]) -> None:
    assert practice.akaion(*arguments).returncode == 2


def test_what_a_model_says_cannot_act_on_the_terminal_nor_pass_for_our_lines(tmp_path: Path) -> None:
    """The reader's screen (design 02): escapes are shown, and foreign lines are indented."""
    hostile = "14 ottobre 2026, aula 5 \x1b]52;c;YQ\x07\x9bJ\x1b]8;;\x1b\\\nClass    C0\u202e"
    line = f"{LINE} Class C0, YQ, J, 52, 8"  # so that a line bears the hostile answer out
    with ScriptedServer(replies=[lambda body: reply(body, hostile)] * ROUNDS) as server:
        practice = practice_at(tmp_path, server.url)
        (tmp_path / "files" / "avviso.txt").write_text(f"{line}\n", encoding="utf-8")
        shown, data = practice.ask(), practice.ask("--json")
    assert shown.returncode == 0, shown.stderr
    assert "\\x1b]52;c;" in shown.stdout
    assert "\\u202e" in shown.stdout
    assert [line for line in shown.stdout.splitlines() if line.startswith("Class")] == [
        "Class    C2, personal data"
    ]
    assert json.loads(data.stdout)["answer"] == hostile
    for text in (shown.stdout, data.stdout):
        assert all(char.isprintable() or char == "\n" for char in text)


def test_chat_does_each_line_of_a_pipe_as_a_task_of_its_own(practice: Practice) -> None:
    done = practice.akaion("chat", "--profile", str(practice.profile()), stdin=f"{QUESTION}\n\nE dove?\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"  {ANSWER}\n") == 2
    assert done.stdout.count("akaion-verify") == 1
    log = json.loads(practice.akaion("trace", "show", "--json").stdout)["logs"][0]
    assert [record["kind"] for record in log["records"]].count("task_start") == 2
    done = practice.akaion("chat", "--json", "-p", str(practice.profile()), stdin=f"{QUESTION}\nE dove?\n")
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["answer"] for each in results] == [ANSWER] * 2
    assert len({each["task"] for each in results}) == 2


def test_i1_a_call_that_must_be_approved_is_refused_without_a_terminal(practice: Practice) -> None:
    done = practice.ask(profile=practice.profile(grant=", approval: ask"))
    assert "not approved: there is no terminal to ask about search_text" in done.stderr
    shown = practice.akaion("trace", "show").stdout
    assert re.search(r"approval +nobody to ask", shown)
    assert "tool_call" not in shown
    (listed,) = json.loads(practice.akaion("runs", "--json").stdout)["runs"]
    assert (listed["approvals"], listed["denials"]) == ({"nobody to ask": 1}, 1)
    said = practice.akaion("runs", "show", listed["task"]).stdout
    assert re.search(r"Denied +nobody to ask 1\n", said), "as many as were not run"
    assert "denied: search_text 1" in said


def test_i9_a_record_of_no_terminal_says_that_nobody_was_asked(practice: Practice) -> None:
    """A refusal is a person's act, and counts against the task: nobody was there to say no."""
    for words in (("run", QUESTION), ("chat",)):
        done = practice.akaion(
            *words, "--profile", str(practice.profile(grant=", approval: ask")), stdin=QUESTION
        )
        assert "not approved: there is no terminal to ask about search_text" in done.stderr
    logs = json.loads(practice.akaion("trace", "show", "--json").stdout)["logs"]
    answers = [each["body"] for log in logs for each in log["records"] if each["kind"] == "approval"]
    assert [(each["by"], each["granted"]) for each in answers] == [("none", False)] * 2
    assert practice.verify()["verdict"] == "PASS"


@pytest.mark.parametrize(("typed", "granted"), [("yes", True), ("y", False), ("", False)])
def test_i1_a_person_at_the_terminal_approves_with_a_whole_yes(
    practice: Practice, typed: str, *, granted: bool
) -> None:
    profile = practice.profile(grant=", approval: ask")
    screen = _at_a_terminal(practice, ("run", "-p", str(profile), QUESTION), typed)
    assert "class C1" in screen
    shown = practice.akaion("trace", "show", "--json").stdout
    kinds = {record["kind"]: record for record in json.loads(shown)["logs"][0]["records"]}
    assert kinds["approval"]["body"]["granted"] is granted
    assert kinds["approval"]["body"]["by"] == "user"
    assert ("tool_call" in kinds) is granted


def _at_a_terminal(practice: Practice, arguments: tuple[str, ...], typed: str) -> str:
    """Run the command on a pseudo-terminal, type a line once it asks, and return what was on the screen."""
    ours, theirs = os.openpty()
    environment = {**practice.environment, "TERM": "xterm"}
    with subprocess.Popen(
        command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=practice.root
    ) as process:
        os.close(theirs)
        screen = b""
        try:
            while chunk := os.read(ours, 4096):
                before, screen = screen, screen + chunk
                if ASKS in screen and ASKS not in before:
                    os.write(ours, typed.encode() + b"\n")
        except OSError:  # Linux says so when the last process has closed the terminal
            pass
        finally:
            os.close(ours)
        process.wait(TIMEOUT_S)
    return screen.decode("utf-8", "replace")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let programs that are started here be interrupted: what a shell runs in its background ignores that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_exits_130_and_the_record_is_closed(tmp_path: Path) -> None:
    """I9: the task ends as cancelled, the log is complete and passes."""
    asked, release = threading.Event(), threading.Event()

    def hold(_body: JsonObject) -> str:
        asked.set()
        release.wait(TIMEOUT_S)
        return ""

    with ScriptedServer(replies=[hold]) as server:
        practice = practice_at(tmp_path, server.url)
        with subprocess.Popen(
            command("run", "-p", str(practice.profile()), QUESTION),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=practice.environment,
            cwd=tmp_path,
        ) as process:
            assert asked.wait(TIMEOUT_S)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=TIMEOUT_S)
            release.set()
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert practice.verify()["verdict"] == "PASS"
    assert "outcome cancelled" in practice.akaion("trace", "show").stdout
