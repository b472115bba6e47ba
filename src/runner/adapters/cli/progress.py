# SPDX-License-Identifier: Apache-2.0
"""Progress: what is shown on standard error while a task runs.

On a terminal: the phase, a spinner, and the newest text of the model, inert. Elsewhere standard error is a
log, and a log holds no content (I12): then one plain line
per phase and per tool, by name only. Quiet: nothing.
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
from runner.agent.steps import Event

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
    """One line per phase and per tool call, without content. Implements `Progress`."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def on_event(self, event: Event) -> None:
        """Write a line for a phase, a tool's name or its status; the model's text is not written."""
        match event.kind:
            case "thinking":
                self._write(event.text)
            case "call":
                self._write(f"calling {event.text.partition(' ')[0]}")
            case "result":
                self._write(f"tool: {event.text}")
            case "text":
                pass
            case _:
                assert_never(event.kind)

    def loading(self, state: str) -> None:
        """Write a line."""
        self._write(f"model: {state}")

    def paused(self) -> AbstractContextManager[None]:
        """Nothing is drawn, so nothing is in the way."""
        return nullcontext()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        pass


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
