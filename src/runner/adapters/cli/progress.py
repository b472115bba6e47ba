# SPDX-License-Identifier: Apache-2.0
"""Progress: what is shown on standard error while a task runs.

On a terminal: the phase, a spinner, and the newest text of the model, inert. Elsewhere standard error is a
log, and a log holds no content (I12): then one plain line per phase and per tool, by name only, and one every
half minute that says how long it has been. Quiet: nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Final, Protocol, Self, assert_never

from rich.console import Console
from rich.status import Status
from rich.text import Text

from runner.adapters.cli.inert import inert_line, tail
from runner.adapters.cli.screen import print_line
from runner.adapters.cli.work import PERIOD_S, lasted, reporting
from runner.agent.steps import Event
from runner.kernel.language import how_many

_MARGIN: Final = 8
"""Cells of a line that the spinner and the spaces take."""
_KEPT: Final = 400
"""Characters of the model's text that are kept for showing its end."""


class Progress(Protocol):
    """Something that shows how far a task is."""

    def on_event(self, event: Event) -> None:
        """Show what the loop reports."""

    def loading(self, state: str) -> None:
        """Show that an embedded model is "loading" or "ready"."""

    def paused(self) -> AbstractContextManager[None]:
        """Leave the terminal alone while a question is asked."""

    def __enter__(self) -> Self:
        """Start showing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Stop showing, and leave nothing half drawn."""


def progress_on(console: Console, *, quiet: bool) -> Progress:
    """Return what shows progress on `console`."""
    if quiet:
        return PlainProgress(lambda _: None)
    if console.is_terminal:
        return LiveProgress(console)
    return PlainProgress(lambda line: print_line(console, line))


class PlainProgress:
    """A line per phase and per tool call, and one each `period_s` seconds, without content.

    Implements `Progress`.
    """

    def __init__(self, write: Callable[[str], None], period_s: float = PERIOD_S) -> None:
        self._write = write
        self._period_s = period_s
        self._calls = 0
        self._phase = ""
        self._asking = False
        self._lines: AbstractContextManager[None] = nullcontext()

    def on_event(self, event: Event) -> None:
        """Write a line for a phase, a tool's name or its status; the model's text is not written."""
        match event.kind:
            case "thinking":
                self._enter(event.text)
            case "call":
                self._enter(f"calling {event.text.partition(' ')[0]}")
            case "result":
                self._calls += 1
                self._enter(f"tool: {event.text}")
            case "text":
                pass
            case _:
                assert_never(event.kind)

    def loading(self, state: str) -> None:
        """Write a line."""
        self._enter(f"model: {state}")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Write nothing between a question and its answer."""
        self._asking = True
        try:
            yield
        finally:
            self._asking = False

    def __enter__(self) -> Self:
        self._calls = 0
        self._lines = reporting(self._goes_on, self._period_s)
        self._lines.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._lines.__exit__(kind, error, where)

    def _enter(self, phase: str) -> None:
        self._phase = phase
        self._write(phase)

    def _goes_on(self, seconds: float) -> None:
        if not self._asking:
            done = f"{how_many(self._calls, 'call')} done, " if self._calls else ""
            self._write(f"{self._phase}: {done}{lasted(seconds)}")


class LiveProgress:
    """A spinner, the phase and the end of the model's text; calls stay on screen. Implements `Progress`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase = ""
        self._text = ""
        self._status = Status("", console=console)

    def on_event(self, event: Event) -> None:
        """Draw the phase and the model's newest text; print calls above."""
        match event.kind:
            case "thinking":
                self._phase, self._text = event.text, ""
            case "text":
                self._text = (self._text + event.text)[-_KEPT:]
            case "call":
                self._print(event.text)
            case "result":
                self._phase, self._text = f"tool: {event.text}", ""
            case _:
                assert_never(event.kind)
        self._draw()

    def loading(self, state: str) -> None:
        """Draw the state."""
        self._phase, self._text = f"model: {state}", ""
        self._draw()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the spinner away for a while."""
        self._status.stop()
        try:
            yield
        finally:
            self._status.start()

    def __enter__(self) -> Self:
        self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._status.stop()

    def _print(self, call: str) -> None:
        line = inert_line(call)[: max(self._console.width - _MARGIN, 1)]
        self._console.print(Text(f"  {line}", style="dim", no_wrap=True, overflow="crop"))

    def _draw(self) -> None:
        phase = inert_line(self._phase)
        room = self._console.width - _MARGIN - len(phase)
        shown = Text(phase, no_wrap=True, overflow="crop")
        self._status.update(shown.append(f"  {tail(self._text, room)}", style="dim"))
