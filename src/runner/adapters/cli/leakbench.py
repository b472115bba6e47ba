# SPDX-License-Identifier: Apache-2.0
"""`akaion leakbench`: what gets past the gate of a profile, measured with secrets of nobody.

Owns the command and how its result is shown. Leaves the measuring to `runner.adapters.leakbench`. Nothing of
the practice is sent: secrets are made up, the remote model is a receiver on loopback, the credential is not
read.
"""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from runner.adapters.cli.exits import Status
from runner.adapters.cli.profiles import DEFAULT, JsonOption, ProfileOption, inspect
from runner.adapters.cli.screen import errors, output, print_facts, print_json, print_line, print_table
from runner.adapters.leakbench.house import ceiling_of
from runner.adapters.leakbench.page import page
from runner.adapters.leakbench.parts import Order, parts_of, run
from runner.adapters.leakbench.plan import DEFENCES
from runner.adapters.leakbench.report import CAVEAT, Facts, Report
from runner.adapters.leakbench.tally import Tally

TRIALS: Final = 10_000
_SHOWN: Final = 20
"""Kinds and spellings that are listed; the JSON and the HTML report have all."""


def leakbench(
    *,
    profile: ProfileOption = DEFAULT,
    trials: Annotated[int, typer.Option("--trials", min=1, help="How many secrets are planted.")] = TRIALS,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same run.")] = 1,
    workers: Annotated[
        int, typer.Option("--workers", min=0, help="Processes; 0 is one for each core.", show_default=False)
    ] = 0,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write the report there, complete in itself."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Plant secrets of nobody, send them through the gate of a profile, and look at what arrives.

    Exits with 0 when nothing leaked that may not and record and requests agree, else with 1. Takes the
    ceiling, registers, redaction and remote protocol of the profile; the remote is a receiver on loopback.
    """
    found = inspect(profile)
    order = Order(named=profile, trials=trials, seed=seed)
    tally = _run(order, workers or os.cpu_count() or 1)
    facts = Facts(
        order=order, ceiling=ceiling_of(found.config), redaction=found.config.perimeter.redaction == "on"
    )
    report = Report(facts=facts, tally=tally)
    if html is not None:
        _write(html, page(report))
    if as_json:
        print_json(report.to_json())
    else:
        _print(report)
    if report.failures():
        raise typer.Exit(Status.FAILED)


def _run(order: Order, workers: int) -> Tally:
    """Return the tally of the whole run, with a bar on a terminal."""
    whole, console = Tally(), errors()
    columns = (TextColumn("planted"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    total = sum(part.last - part.first for part in parts_of(order))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=total)
        for done, tally in run(order, workers):
            whole.merge(tally)
            progress.advance(bar, done)
    return whole


def _write(target: Path, text: str) -> None:
    """Write the report; raise `typer.BadParameter` where that cannot be done."""
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot be written ({error.strerror})", param_hint="--html") from None


def _print(report: Report) -> None:
    console, tally = output(), report.tally
    print_table(console, ("defence", "trials", "secrets leaked", "ordinary texts denied"), _rows(report))
    for kind, transform, leaks, first in islice(report.broken(), _SHOWN):
        print_line(console, f"leaked {leaks} times: {kind}, {transform} (first in trial {first})", "red")
    matching = tally.matching
    facts = (
        ("Leaves", report.facts.ceiling_name),
        ("May not leak", f"{tally.held.total()} of the trials; {tally.held[False]} did"),
        ("Record", f"{matching['received']} requests arrived, {matching['recorded']} are on record"),
        ("Autonomy", f"{report.autonomy():.1%} of the steps needed no approval"),
        ("Verdict", "; ".join(report.failures()) or "no leak where none may be"),
        ("Note", CAVEAT),
    )
    print_facts(console, facts)


def _rows(report: Report) -> Iterator[tuple[str, str, str, str]]:
    for defence in DEFENCES:
        denied = report.false_denials(defence)
        yield (
            defence.value,
            str(report.trials(defence)),
            str(report.leaks(defence)),
            f"{denied['denied']} of {denied['texts']}",
        )
