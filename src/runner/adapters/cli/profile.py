# SPDX-License-Identifier: Apache-2.0
"""`akaion profile check`: whether a profile is right, and what it says in short.

Owns the summary. Leaves the judgement to what judges a profile before a run (I6), by way of `profiles`.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from runner.adapters.cli.exits import Status
from runner.adapters.cli.profiles import Inspected, JsonOption, classifier_words, inspect, missing_for
from runner.adapters.cli.screen import output, print_facts, print_json, print_line
from runner.kernel.config import Grant
from runner.kernel.errors import ConfigError

app: Final = typer.Typer(help="Check a profile before using it.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _profile() -> None:
    """Check a profile before using it."""


@app.command(epilog="Example:  akaion profile check studio.yaml")
def check(
    file: Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped profile.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Judge a profile: print its limits in short, or every mistake with its line and fix.

    Nothing is opened, made or sent. The exit status is 0 for a profile that can be used, else 2.
    """
    try:
        found = inspect(file)
        warning = missing_for(file)
    except ConfigError as error:
        if not as_json:
            raise
        print_json({"ok": False, "mistakes": [_mistake_data(error, i) for i in range(len(error.mistakes))]})
        raise typer.Exit(Status.USAGE) from None
    if as_json:
        print_json(_summary_data(found, warning))
        return
    print_facts(output(), _summary(found))
    if warning:
        print_line(output(), f"Warning: {warning}", "yellow")


def _mistake_data(error: ConfigError, index: int) -> dict[str, Any]:
    mistake = error.mistakes[index]
    return {
        "file": mistake.file,
        "line": mistake.line,
        "where": mistake.where,
        "problem": mistake.problem,
        "fix": mistake.fix,
    }


def _summary(found: Inspected) -> Iterator[tuple[str, str]]:
    config, inference = found.config, found.config.inference
    yield "Profile", f"{found.source.file}, based on {config.profile}"
    yield "May leave", _ceiling_words(config.perimeter.max_egress_class)
    yield "Classifier", classifier_words(config)
    local, remote = inference.local, inference.remote
    if local is not None:
        yield "Local model", f"{local.model}, {local.endpoint or 'in this process'}"
    if remote is not None:
        yield "Remote model", f"{remote.model}, {remote.endpoint}, up to {remote.max_class or 'the ceiling'}"
    yield "Asked first", inference.prefer
    for grant in config.policy.grants:
        yield "Grant", _grant_words(grant)
    if not config.policy.grants:
        yield "Grant", "none: every tool is denied"
    budget = config.budget
    yield "Budget", f"{budget.steps} tool calls, {budget.tokens} tokens, {budget.seconds} s"
    yield "Record", str(found.places.trace)
    yield "Device key", str(found.places.key)


def _ceiling_words(ceiling: str) -> str:
    return "nothing" if ceiling == "none" else f"content up to class {ceiling}"


def _grant_words(grant: Grant) -> str:
    paths = ", ".join(f"{entry.path} ({entry.data_class or 'C2 by default'})" for entry in grant.paths)
    asks = ", asks first" if grant.approval == "ask" else ""
    return f"{grant.tool}: {paths or 'no folder'} [{grant.access}{asks}]"


def _summary_data(found: Inspected, warning: str) -> dict[str, Any]:
    return {
        "ok": True,
        "warning": warning,
        "file": found.source.file,
        "classifier": classifier_words(found.config),
        "trace": str(found.places.trace),
        "key": str(found.places.key),
        "config": found.config.model_dump(mode="json", by_alias=True),
    }
