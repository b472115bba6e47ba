# SPDX-License-Identifier: Apache-2.0
"""A person at the terminal, asked before a call whose grant says `approval: ask`, or before content goes.

Owns the question, and whether there is anybody to ask: without a terminal on both sides there is no approver,
that is a no (I7), and the record says that nobody was asked rather than that a person refused (I9). What was
typed before the question was shown is thrown away: it cannot be an answer to it. What a model wrote stands
behind its mark on every line, however narrow the terminal: it cannot pass for class or tool, which stand
right above the question (I1).
"""

import sys
import termios
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TextIO

import anyio.to_thread

from runner.adapters.cli.screen import errors, print_block, print_line
from runner.agent.steps import UNAPPROVED, Event
from runner.kernel.ports import FOREIGN, RELEASE, ApprovalRequest

YES: Final = "yes"
LEAVING: Final = "This is above what may leave, and goes only if you say so:"


class TerminalApprover:
    """Asks on standard error and reads a whole "yes" from `answers`. Implements `Approver`.

    `pause` gives the terminal to the question while it is asked.
    """

    name = "terminal"

    def __init__(
        self,
        *,
        answers: TextIO | None = None,
        pause: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._answers = answers
        self._pause = pause

    async def approve(self, request: ApprovalRequest) -> bool:
        """Return True only if a person typed `yes`."""
        answers = sys.stdin if self._answers is None else self._answers
        console = errors()
        with self._pause():
            what = LEAVING if request.tool == RELEASE else "The next step needs your approval:"
            print_line(console, what, "bold yellow")
            for line in request.rendering.rstrip("\n").split("\n"):
                mark = FOREIGN if line.startswith(FOREIGN) else ""
                print_block(console, line.removeprefix(mark), mark=mark)
            _forget_typed(answers)
            allowed = "let this go" if request.tool == RELEASE else "allow this one call"
            console.print(f"Type {YES} to {allowed}, anything else to refuse: ", end="")
            typed: str = await anyio.to_thread.run_sync(answers.readline, abandon_on_cancel=True)
        return typed.strip() == YES


def approver_at(
    answers: TextIO, *, pause: Callable[[], AbstractContextManager[None]]
) -> TerminalApprover | None:
    """Return who is asked: a person whose `answers` and standard error are a terminal, or None for nobody."""
    if not (answers.isatty() and errors().is_terminal):
        return None
    return TerminalApprover(answers=answers, pause=pause)


def saying_unasked(on_event: Callable[[Event], None]) -> Callable[[Event], None]:
    """Return `on_event` of a run that has no approver: it also says which call was not approved, by name."""
    tool = ""

    def told(event: Event) -> None:
        nonlocal tool
        on_event(event)
        if event.kind == "call":
            tool = event.text.partition(" ")[0]
        elif event.kind == "result" and event.text == UNAPPROVED:
            print_line(errors(), f"not approved: there is no terminal to ask about {tool}")

    return told


def _forget_typed(answers: TextIO) -> None:
    """Drop what waits in the terminal; a stream that is no terminal device holds nothing typed."""
    try:
        termios.tcflush(answers, termios.TCIFLUSH)
    except (OSError, ValueError, termios.error):
        return
