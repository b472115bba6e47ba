# SPDX-License-Identifier: Apache-2.0
"""An engine in a child process: what can take a process down takes down that one.

Owns the child's life: starting it, talking to it over its pipes, stopping a reply, and its death. Leaves what
it computes to its program, `llamachild`, and the order of requests to `inprocess`. Carries P1 and grade L2 of
I10 as the engine in this process does: the child has the two pipes and nothing else to talk over, and runs
the code that is installed here. Carries I7: a grammar is read by our own reader first, since llama.cpp
crashes on some that it cannot read, and a dead child is a `BackendError`, never half a reply.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from runner.capability.grammar import GrammarSyntaxError, validate_gbnf
from runner.kernel.errors import BackendError, ModelError

PROGRAM: Final = Path(__file__).with_name("llamachild.py")
PATIENCE_S: Final = 2.0
"""How long a stopped reply may take to end before the child is ended with it."""


class ChildEngine:
    """A child process that answers one request at a time, started by `command`, which gets only pipes.

    Started again by the first request after it died or was ended. Raises `ModelError` when it does not load.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process = self._start()

    def handle_chat_completions(self, text: str, take: Callable[[str], bool]) -> None:
        """Ask for the chat completion `text`, in JSON; pass each event to `take` until it says True.

        Raises `BackendError` when the child dies, `ModelError` when it cannot be started again, and
        `ValueError` for a request whose grammar our reader cannot read: the child never sees it.
        """
        _check_grammar(text)
        if self._process.poll() is not None:
            self._process = self._start()
        self._write(text.replace("\n", " ").replace("\r", " "))  # outside strings: in one, JSON escapes them
        give_up: float | None = None
        while (line := self._read()) != "null":
            if give_up is None and take(line):
                self._write("null")
                give_up = time.monotonic() + PATIENCE_S
            elif give_up is not None and time.monotonic() > give_up:
                self.close()
                return

    def close(self) -> None:
        """End the child. Repeatable."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def __del__(self) -> None:
        """End the child with its engine."""
        if hasattr(self, "_process"):
            self.close()

    def _start(self) -> "subprocess.Popen[str]":
        process = subprocess.Popen(  # noqa: S603 - this Python and our own program
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        ready = process.stdout.readline() if process.stdout is not None else ""
        if ready.strip() != "{}":
            process.kill()
            process.communicate()
            raise ModelError(
                "the engine in a child process cannot use the weights it was given. Fix: akaion models verify"
            )
        return process

    def _write(self, line: str) -> None:
        try:
            if self._process.stdin is not None:
                self._process.stdin.write(f"{line}\n")
                self._process.stdin.flush()
        except OSError:
            raise self._died() from None

    def _read(self) -> str:
        line = "" if self._process.stdout is None else self._process.stdout.readline()
        if not line.endswith("\n"):
            raise self._died()
        return line.rstrip("\n")

    def _died(self) -> BackendError:
        self.close()
        return BackendError(
            "the embedded engine's process died in the middle of a reply. Fix: ask again, which starts"
            " another; if it dies again, the memory is too small for the model, or its file is damaged"
        )


def start_llama(weights: Path, *, context: int, threads: int, batch: int) -> ChildEngine:
    """Return the engine of `llama-cpp-python` with `weights` loaded; raise `ModelError` when they are not."""
    numbers = (str(context), str(threads), str(batch))
    return ChildEngine([sys.executable, "-I", str(PROGRAM), str(weights), *numbers])


def _check_grammar(text: str) -> None:
    """Raise `ValueError` for a request with a grammar that is none."""
    gbnf = json.loads(text).get("grammar")
    if gbnf is None:
        return
    try:
        validate_gbnf(gbnf)
    except (GrammarSyntaxError, TypeError, AttributeError):
        raise ValueError("the grammar of a request cannot be read") from None
