# SPDX-License-Identifier: Apache-2.0
"""Long work: how far it is, and for how long it has been at it, on standard error.

Owns the bar and the spinner of a terminal, and what stands in their place elsewhere: a plain line every half
minute. Work that is over sooner writes none. Carries I12: our words and counts, never content.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Final, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from runner.adapters.cli.screen import print_line

PERIOD_S: Final = 30.0
"""Seconds between two lines."""
_MINUTE_S: Final = 60

Tell: TypeAlias = Callable[[int, int], None]
"""Told how much is done, and of how much."""


def lasted(seconds: float) -> str:
    """Return a time in whole seconds as words: "45 s", "2 min 5 s"."""
    minutes, rest = divmod(int(seconds), _MINUTE_S)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def reporting(report: Callable[[float], None], period_s: float = PERIOD_S) -> Iterator[None]:
    """Call `report` with the seconds gone by, every `period_s` seconds and in another thread, meanwhile.

    Where it cannot be written any more, the lines end and the work goes on.
    """
    over, began = Event(), monotonic()

    def lines() -> None:
        try:
            while not over.wait(period_s):
                report(monotonic() - began)
        except OSError:
            return

    thread = Thread(target=lines, name="akaion-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def busy(console: Console, what: str, period_s: float = PERIOD_S) -> Iterator[None]:
    """Show that `what` goes on, of which nobody knows how much is left."""
    if console.is_terminal:
        with console.status(what):
            yield
        return
    with reporting(lambda seconds: print_line(console, f"{what}: {lasted(seconds)}"), period_s):
        yield


@contextmanager
def meter(console: Console, what: str, period_s: float = PERIOD_S) -> Iterator[Tell]:
    """Give what is to be told how far `what` is, and show it."""
    if console.is_terminal:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return
    far = ""

    def tell(done: int, total: int) -> None:
        nonlocal far
        far = f"{done} of {total}, "

    with reporting(lambda seconds: print_line(console, f"{what}: {far}{lasted(seconds)}"), period_s):
        yield tell
