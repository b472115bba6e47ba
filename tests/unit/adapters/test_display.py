# SPDX-License-Identifier: Apache-2.0
"""What is shown: results, progress, questions. Foreign text is inert, and a log holds no content (I12)."""

import io
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Literal

import anyio
import pytest
from rich.console import Console

from runner.adapters.cli import approver
from runner.adapters.cli.answer import describe_stop, print_result, result_data
from runner.adapters.cli.approver import TerminalApprover, approver_at, saying_unasked
from runner.adapters.cli.exits import MEANING, Status, status_of
from runner.adapters.cli.progress import LiveProgress, PlainProgress, progress_on
from runner.agent.steps import Event, Evidence, FailedStep, RunResult, StopReason, ToolStep
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, ToolCall
from runner.kernel.ports import FOREIGN, ApprovalRequest
from runner.kernel.tiers import CallFailure, Tier
from runner.perimeter.question import approval_request

SECRET = "Rossi\x1b[2J"


def console(*, terminal: bool, width: int = 40) -> Console:
    return Console(
        file=io.StringIO(),
        force_terminal=terminal,
        color_system=None,
        width=width,
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def text_of(screen: Console) -> str:
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def result(stop: StopReason = StopReason.ANSWERED, *, detail: str = "") -> RunResult:
    return RunResult(
        answer=SECRET,
        stop=stop,
        evidence=(Evidence(file="files/\x1ba.txt", line=3, quote=f"{SECRET}\nClass  C0"),),
        steps=(
            ToolStep(tool="read_file", arguments={"path": "a"}, status="ok"),
            FailedStep(failure=CallFailure.TRUNCATED, tier=Tier.TEXT),
        ),
        data_class=DataClass.C2,
        tokens=12,
        task="0" * 32,
        detail=detail,
    )


def test_i7_only_an_answer_is_a_success() -> None:
    assert [stop for stop in StopReason if status_of(stop) is Status.DONE] == [StopReason.ANSWERED]


def test_every_status_is_documented() -> None:
    assert all(f"\n  {status:<3}  " in MEANING for status in Status)


@pytest.mark.parametrize("stop", StopReason)
def test_every_reason_has_words_and_the_rule_stands_beside_a_denial(stop: StopReason) -> None:
    assert describe_stop(result(stop))
    assert describe_stop(result(stop, detail="above-ceiling")).endswith(": above-ceiling")


def test_i7_an_answer_that_nothing_bears_out_says_so_and_its_data_has_no_evidence() -> None:
    bare = replace(result(), evidence=())
    screen = console(terminal=False, width=100)
    print_result(screen, bare)
    assert "Source   none: nothing that was read bears this out\n" in text_of(screen)
    assert result_data(bare, Path("book"))["evidence"] == []
    for other in (result(), replace(bare, stop=StopReason.NOT_FOUND)):
        screen = console(terminal=False, width=100)
        print_result(screen, other)
        assert "Source" not in text_of(screen)


def test_a_result_is_inert_and_its_lines_cannot_pass_for_ours() -> None:
    screen = console(terminal=True)
    print_result(screen, result())
    lines = text_of(screen).splitlines()
    assert all(line.isprintable() for line in lines)
    assert [line for line in lines if line.startswith("Class")] == ["Class    C2, personal data"]
    assert "  Rossi\\x1b[2J" in lines


def test_without_an_answer_the_draft_is_not_shown() -> None:
    screen = console(terminal=True)
    print_result(screen, result(StopReason.DENIED, detail="locality"))
    assert "Rossi" not in text_of(screen).partition("Evidence")[0]
    assert "denied: locality" in text_of(screen)


def test_result_data_keeps_the_exact_texts(tmp_path: Path) -> None:
    data = result_data(result(), tmp_path)
    assert data["answer"] == SECRET
    assert data["steps"] == [
        {"tool": "read_file", "arguments": {"path": "a"}, "status": "ok"},
        {"failure": "truncated", "tier": "text"},
    ]


def test_files_that_are_no_text_are_told_to_people_and_programs(tmp_path: Path) -> None:
    screen, told = console(terminal=False), replace(result(StopReason.NOT_FOUND), evidence=(), unread=2)
    print_result(screen, told)
    assert "2 files could not be read as text" in text_of(screen)
    data = result_data(told, tmp_path)
    assert (data["unread"], data["notes"]) == (2, ["2 files could not be read as text"])


# --- progress ------------------------------------------------------------------------------------

EVENTS = (
    Event(kind="thinking", text="answering"),
    Event(kind="text", text=SECRET),
    Event(kind="call", text='search_text {"query": "Rossi\x1b[2J"}'),
    Event(kind="result", text="ok"),
)


def test_i12_progress_in_a_log_names_phases_and_tools_only() -> None:
    screen = console(terminal=False)
    progress = progress_on(screen, quiet=False)
    with progress:
        progress.loading("loading")
        for event in EVENTS:
            progress.on_event(event)
    assert text_of(screen).splitlines() == ["model: loading", "answering", "calling search_text", "tool: ok"]


def test_quiet_shows_nothing() -> None:
    screen = console(terminal=True)
    progress = progress_on(screen, quiet=True)
    with progress:
        for event in EVENTS:
            progress.on_event(event)
    assert isinstance(progress, PlainProgress)
    assert text_of(screen) == ""


@pytest.mark.parametrize("width", [1, 5, 12, 40])
def test_progress_on_a_terminal_shows_the_call_and_no_control_of_it(width: int) -> None:
    """Any width: a display that could hang on a narrow one would hold the task."""
    screen = console(terminal=True, width=width)
    progress = progress_on(screen, quiet=False)
    assert isinstance(progress, LiveProgress)
    with progress:
        for event in EVENTS:
            progress.on_event(event)
        with progress.paused():
            pass
    assert "\x1b[2J" not in text_of(screen)
    assert width < 40 or 'search_text {"query": "Rossi' in text_of(screen)


# --- approval ------------------------------------------------------------------------------------


class Keyboard(io.StringIO):
    """Typed lines from a terminal, or from what is not one."""

    def __init__(self, typed: str, *, terminal: bool = True) -> None:
        super().__init__(typed)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def ask(typed: str) -> bool:
    request = ApprovalRequest(
        tool="send_mail", data_class=DataClass.C2, rendering="class C2\ntool 'send_mail'\n\x1b[2J[bold]x"
    )
    return anyio.run(TerminalApprover(answers=Keyboard(typed)).approve, request)


@pytest.mark.parametrize(
    ("typed", "granted"),
    [("yes\n", True), (" yes \n", True), ("y\n", False), ("YES\n", False), ("\n", False), ("", False)],
)
def test_i1_only_a_whole_yes_approves(
    typed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, granted: bool
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert ask(typed) is granted
    said = capsys.readouterr().err
    assert "  class C2" in said
    assert "[bold]x" in said
    assert "\x1b[2J" not in said


@pytest.mark.parametrize("width", [20, 40, 72, 80, 200])
def test_i1_a_question_cannot_be_imitated_by_what_it_is_about(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text padded to every place where a fold could break, then the truth once more, then the question."""
    screen = console(terminal=True, width=width)
    monkeypatch.setattr(approver, "errors", lambda: screen)
    fakes = [f"{line:{room}}" for line in ("class C0", "tool 'list_dir'") for room in range(9, 80)]
    origin = Block(id="b0", kind=BlockKind.GOAL, text="q", label=Label())
    call = ToolCall(tool="send", arguments={"text": " ".join(["." * 79] * 60 + fakes)}, origin=origin)
    anyio.run(TerminalApprover(answers=Keyboard("yes\n")).approve, approval_request(call, DataClass.C2))
    _, *lines, question = text_of(screen).split("\n")
    ours = [line for line in lines if not line.startswith("  " + FOREIGN)]
    half = len(ours) // 2
    assert ours == ours[:half] * 2 == lines[:half] + lines[-half:]
    assert ours[:2] == ["  class C2", "  tool 'send'"]
    assert question.startswith("Type yes to allow this one call")
    assert all(len(line) < width for line in lines)


@pytest.mark.parametrize("mode", ["no keyboard", "no screen"])
def test_i7_without_a_terminal_on_both_sides_nobody_is_asked(
    mode: Literal["no keyboard", "no screen"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1" if mode == "no keyboard" else "0")
    assert approver_at(Keyboard("yes\n", terminal=mode == "no screen"), pause=nullcontext) is None
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert isinstance(approver_at(Keyboard("yes\n"), pause=nullcontext), TerminalApprover)


def test_a_call_that_nobody_could_approve_is_named_once_and_another_denial_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told: list[Event] = []
    on_event = saying_unasked(told.append)
    events = [
        Event(kind="call", text='send_mail {"to": "Rossi"}'),
        Event(kind="result", text="not approved"),
        Event(kind="call", text="read_file {}"),
        Event(kind="result", text="denied"),
    ]
    for event in events:
        on_event(event)
    assert told == events
    assert capsys.readouterr().err == "not approved: there is no terminal to ask about send_mail\n"
