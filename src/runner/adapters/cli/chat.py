# SPDX-License-Identifier: Apache-2.0
"""`akaion chat`: tasks line by line.

Owns the reading of lines. Every line is a task of its own: nothing of one reaches the next, so no content of
one matter meets another's by way of a conversation.
"""

import sys
from collections.abc import Iterator
from typing import Annotated, Final

import typer
from rich.console import Console

from runner.adapters.cli.answer import print_record, print_result, result_data
from runner.adapters.cli.profiles import DEFAULT, MatterOption, ProfileOption, SetOption
from runner.adapters.cli.progress import progress_on
from runner.adapters.cli.run import (
    BackendOption,
    ClassOption,
    QuietOption,
    declared,
    opened,
    shown_on,
)
from runner.adapters.cli.screen import errors, output, print_json, print_line

PROMPT: Final = "task> "


def chat(
    *,
    profile: ProfileOption = DEFAULT,
    backend: BackendOption = None,
    class_: ClassOption = None,
    matter: MatterOption = None,
    settings: SetOption = None,
    quiet: QuietOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line for each task on standard output.")
    ] = False,
) -> None:
    """Do tasks line by line; Ctrl-D ends.

    Lines come from a terminal or a pipe. Each is a task of its own; the model does not see the ones before.
    The exit status is 0 when the lines ended, whatever their answers: a script takes --json, or `akaion run`.
    """
    console = errors()
    progress = progress_on(console, quiet=quiet)
    with opened(profile, backend, settings, progress, matter=matter) as runtime:
        loop = runtime.loop(on_event=shown_on(progress, runtime))
        for task in _tasks(console):
            with progress:
                result = loop.run(task, data_class=declared(class_), matter=matter)
            if as_json:
                print_json(result_data(result, runtime.trace_path), in_a_line=True)
            else:
                print_result(output(), result)
    if not quiet and not as_json:
        print_record(output(), runtime.trace_path, profile)


def _tasks(console: Console) -> Iterator[str]:
    """Yield the lines of standard input that are not blank, asking for each one on a terminal."""
    ask = console.is_terminal and sys.stdin.isatty()
    if ask:
        print_line(console, "Type a task and press Enter. Ctrl-D ends.", "dim")
    while True:
        if ask:
            console.print(PROMPT, end="", style="bold")
        line = sys.stdin.readline()
        if not line:
            break
        if line.strip():
            yield line.strip()
    if ask:
        console.print()
