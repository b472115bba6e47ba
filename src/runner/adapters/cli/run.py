# SPDX-License-Identifier: Apache-2.0
"""`akaion run`: one task, from a profile to a shown answer.

Owns the command. The result is printed after the record was closed: an answer whose record could not be
finished is not shown (I9).
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from runner.adapters.cli.answer import print_record, print_result, result_data
from runner.adapters.cli.approver import approver_at, saying_unasked
from runner.adapters.cli.exits import status_of
from runner.adapters.cli.profiles import (
    DEFAULT,
    JsonOption,
    MatterOption,
    ProfileOption,
    SetOption,
    check_matter,
    parse_settings,
)
from runner.adapters.cli.progress import Progress, progress_on
from runner.adapters.cli.screen import errors, output, print_facts, print_json
from runner.agent.steps import Event, StopReason
from runner.assembly import Runtime, open_profile
from runner.kernel.labels import DataClass


class BackendName(StrEnum):
    """The two backends a profile can configure."""

    LOCAL = "local"
    REMOTE = "remote"


class ClassName(StrEnum):
    """The four data classes."""

    C0 = "C0"
    C1 = "C1"
    C2 = "C2"
    C3 = "C3"


ClassOption = Annotated[
    ClassName | None,
    typer.Option("--class", help="How sensitive the task's own words are. Without it C1, or what is found."),
]
BackendOption = Annotated[
    BackendName | None,
    typer.Option("--backend", help="Ask this backend of the profile instead of the preferred one."),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress, and only the answer with its evidence.")
]


def run(
    task: Annotated[str, typer.Argument(help="What to find out or to do, in plain words.")],
    *,
    profile: ProfileOption = DEFAULT,
    as_json: JsonOption = False,
    backend: BackendOption = None,
    class_: ClassOption = None,
    matter: MatterOption = None,
    settings: SetOption = None,
    quiet: QuietOption = False,
) -> None:
    """Do one task and print the answer with its evidence.

    The loop runs inside the profile's perimeter: what the model may read and what may leave is decided and
    recorded step by step. Texts of models and files are printed inert.
    """
    if not task.strip():
        raise typer.BadParameter("the task is empty", param_hint="TASK")
    progress = progress_on(errors(), quiet=quiet)
    with opened(profile, backend, settings, progress, matter=matter) as runtime, progress:
        loop = runtime.loop(on_event=shown_on(progress, runtime))
        result = loop.run(task, data_class=declared(class_), matter=matter)
    trace = runtime.trace_path
    if as_json:
        print_json(result_data(result, trace))
    else:
        print_result(output(), result)
        if result.stop is StopReason.DENIED and matter is None and (known := runtime.policy.matters):
            print_facts(output(), [("Matters", f"{', '.join(sorted(known))}  (those of the profile)")])
        if not quiet:
            print_record(output(), trace, profile)
    raise typer.Exit(status_of(result.stop))


def shown_on(progress: Progress, runtime: Runtime) -> Callable[[Event], None]:
    """Return what is told of each event of a loop of `runtime`."""
    asked = runtime.perimeter.approver is not None
    return progress.on_event if asked else saying_unasked(progress.on_event)


def declared(name: ClassName | None) -> DataClass | None:
    """Return the class that the option `--class` names."""
    return None if name is None else DataClass.parse(name)


@contextmanager
def opened(
    profile: str,
    backend: BackendName | None,
    settings: list[str] | None,
    progress: Progress,
    *,
    matter: str | None,
) -> Iterator[Runtime]:
    """Open a profile with a person at the terminal as its approver, and load an embedded model.

    Raises `ConfigError`, `ModelError`, `TraceError`, and `typer.BadParameter` for a `matter` that no grant
    names.
    """
    preferred = [] if backend is None else [f"inference.prefer={backend.value}"]
    overrides = parse_settings([*(settings or ()), *preferred])
    approver = approver_at(sys.stdin, pause=progress.paused)
    with open_profile(profile, approver=approver, **overrides) as runtime:
        check_matter(matter, runtime.perimeter.policy.matters)
        if runtime.config.inference.prefer == "local":
            with progress:
                runtime.load(progress.loading)
        yield runtime
