# SPDX-License-Identifier: Apache-2.0
"""The screen: lines, sections, tables and JSON, on standard output and standard error.

Owns layout. Foreign text stands in an indented block that is folded here, so that no line of it begins where
lines of ours begin. Nothing is ever parsed as markup: consoles are made with markup, emoji codes and
highlighting off, and texts arrive as `Text`.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from runner.adapters.cli.inert import folded, inert_line, to_json
from runner.kernel.errors import ConfigError, RunnerError
from runner.kernel.language import how_many

INDENT: Final = "  "
_NAME_ROOM: Final = 7
PROGRAM: Final = "akaion"


def output() -> Console:
    """Return the console of standard output: for results."""
    return _console(stderr=False)


def errors() -> Console:
    """Return the console of standard error: for progress, questions and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print one inert line in our column."""
    console.print(Text(inert_line(text), style=style))


def print_block(console: Console, text: str, *, depth: int = 1, mark: str = "", style: str = "") -> None:
    """Print foreign text as a block, folded to a terminal's width.

    Every line of it is indented by `depth` steps and stands behind `mark`.
    """
    indent = INDENT * depth + mark
    width = console.width - len(indent) - 1 if console.is_terminal else None
    for line in folded(text, width):
        console.print(Text(indent + line, style=style))


def print_facts(console: Console, facts: Iterable[tuple[str, str]]) -> None:
    """Print aligned pairs of our word and an inert value, at least one; a long value goes on below itself."""
    pairs = list(facts)
    room = max(_NAME_ROOM, *(len(name) for name, _ in pairs))
    width = console.width - room - 3 if console.is_terminal else None
    for name, value in pairs:
        for number, line in enumerate(folded(inert_line(value), width)):
            head = Text(f"{name if number == 0 else '':{room}}  ", style="bold")
            console.print(head.append(line, style="not bold"))


def print_table(console: Console, columns: Sequence[str], rows: Iterable[Sequence[Text | str]]) -> None:
    """Print a table of inert cells under `columns`; cells that are `Text` keep their style."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(cell) for cell in row))
    if console.is_terminal:
        console.print(table, soft_wrap=False)
        return
    wide = Console(file=console.file, width=_MACHINE_WIDTH, markup=False, emoji=False, highlight=False)
    with wide.capture() as captured:
        wide.print(table)
    for line in captured.get().splitlines():
        console.print(Text(line.rstrip()))


_MACHINE_WIDTH: Final = 4096
"""Cells of a line that no terminal will fold."""


def _cell(cell: Text | str) -> Text:
    if isinstance(cell, str):
        return Text(inert_line(cell))
    return Text(inert_line(cell.plain), style=cell.style)


def print_json(value: Mapping[str, Any], *, in_a_line: bool = False) -> None:
    """Print `value` on standard output as one JSON object in printable ASCII, over lines or all in one."""
    sys.stdout.write(to_json(value, indent=None if in_a_line else 2) + "\n")
    sys.stdout.flush()


def print_error(error: RunnerError) -> None:
    """Print why a command failed on standard error: every mistake of a profile, or one message."""
    console = errors()
    if not isinstance(error, ConfigError):
        print_line(console, f"{PROGRAM}: {error}", "red")
        return
    print_line(console, f"{PROGRAM}: {how_many(len(error.mistakes), 'mistake')} to correct", "red")
    for mistake in error.mistakes:
        print_line(console, f"{INDENT}{mistake}")
