# SPDX-License-Identifier: Apache-2.0
"""Long work says on a log how far it is and for how long; I12: in our words and in counts."""

import io
from threading import Event, active_count

import pytest
from rich.console import Console

from runner.adapters.cli.progress import PlainProgress
from runner.adapters.cli.work import busy, lasted, meter, reporting
from runner.agent import steps

LIMIT_S = 60.0
"""A guard against hanging: no test waits so long for what it waits for."""
SOON_S = 0.001


class Log(io.StringIO):
    """A log that can be waited for: until it holds `sought`."""

    def __init__(self, sought: str) -> None:
        super().__init__()
        self._sought, self._there = sought, Event()

    def write(self, text: str) -> int:
        size = super().write(text)
        if self._sought in self.getvalue():
            self._there.set()
        return size

    def wait(self) -> bool:
        return self._there.wait(LIMIT_S)


def console(log: io.StringIO, *, terminal: bool = False) -> Console:
    return Console(file=log, force_terminal=terminal, color_system=None, soft_wrap=True)


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0 s"), (59.9, "59 s"), (125, "2 min 5 s")])
def test_a_time_is_said_in_whole_seconds(seconds: float, said: str) -> None:
    assert lasted(seconds) == said


def test_a_log_is_told_what_is_done_and_for_how_long() -> None:
    log = Log("indexing: 3 of 7, 0 s\n")
    with meter(console(log), "indexing", SOON_S) as tell:
        tell(3, 7)
        assert log.wait()


def test_a_log_is_told_that_something_goes_on() -> None:
    log = Log("searching: 0 s\n")
    with busy(console(log), "searching", SOON_S):
        assert log.wait()


def test_short_work_writes_no_line_and_leaves_no_thread() -> None:
    log, before = io.StringIO(), active_count()
    with meter(console(log), "indexing") as tell:
        tell(7, 7)
    with busy(console(log), "searching"):
        pass
    assert log.getvalue() == ""
    assert active_count() == before


def test_a_terminal_has_a_bar_or_a_spinner_instead() -> None:
    screen = io.StringIO()
    with meter(console(screen, terminal=True), "indexing") as tell:
        tell(3, 7)
    with busy(console(screen, terminal=True), "searching"):
        pass
    assert "3/7" in screen.getvalue()
    assert "searching" in screen.getvalue()


def test_a_log_that_takes_no_more_lines_does_not_end_the_work() -> None:
    asked = Event()

    def full(_: float) -> None:
        asked.set()
        raise OSError

    with reporting(full, SOON_S):
        assert asked.wait(LIMIT_S)


def progress(log: Log) -> PlainProgress:
    def write(line: str) -> None:
        log.write(f"{line}\n")

    return PlainProgress(write, SOON_S)


def test_i12_a_run_in_a_log_says_its_phase_its_calls_and_for_how_long() -> None:
    log = Log("tool: ok: 1 call done, 0 s\n")
    with progress(log) as shown:
        shown.on_event(steps.Event(kind="call", text='search_text {"query": "Rossi"}'))
        shown.on_event(steps.Event(kind="result", text="ok"))
        assert log.wait()
    assert "Rossi" not in log.getvalue()


def test_no_line_comes_between_a_question_and_its_answer() -> None:
    log = Log("answering: 0 s\n")
    shown = progress(log)
    shown.on_event(steps.Event(kind="thinking", text="answering"))
    with shown.paused():
        shown._goes_on(0)
        assert log.getvalue() == "answering\n"
    shown._goes_on(0)
    assert log.wait()
