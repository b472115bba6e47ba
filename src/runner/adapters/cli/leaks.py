# SPDX-License-Identifier: Apache-2.0
"""The leak bench on a profile: run with a bar, and shown.

Owns how its result is shown. Leaves the measuring to `runner.adapters.leakbench`. Nothing of the practice is
sent: secrets are made up, the remote model is a receiver on loopback, the credential is not read.
"""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import typer

from runner.adapters.cli.exits import Status
from runner.adapters.cli.profiles import Inspected, inspect
from runner.adapters.cli.screen import errors, output, print_facts, print_json, print_line, print_table
from runner.adapters.cli.work import meter
from runner.adapters.cli.written import write_report
from runner.adapters.leakbench.bench import Outcome
from runner.adapters.leakbench.facts import CAVEAT, TERMS, Facts
from runner.adapters.leakbench.house import ceiling_of, registered
from runner.adapters.leakbench.page import page
from runner.adapters.leakbench.parts import Order, parts_of, run
from runner.adapters.leakbench.plan import DEFENCES, Defence
from runner.adapters.leakbench.report import SOURCES, Report
from runner.adapters.leakbench.tally import Tally
from runner.kernel.language import how_many

_HEAD: Final = ("defence", "secret in", "leaked", "95 % interval", "permitted", "of what may not leak")
_TYPED_SHOWN: Final = 5
_SHOWN: Final = 20
"""Kinds and spellings that are listed; the JSON and the HTML report have all."""


def measure(profile: str, *, trials: int, seed: int, workers: int, html: Path | None, as_json: bool) -> None:
    """Run the bench on `profile` and show what came of it, with `html` also as a page.

    `workers` are processes; 0 is one for each core. Raises `typer.Exit` when something leaked that may not.
    """
    found = inspect(profile)
    order = Order(named=profile, trials=trials, seed=seed)
    tally = _run(order, workers or os.cpu_count() or 1)
    facts = _facts(order, found)
    report = Report(facts=facts, tally=tally)
    if html is not None:
        write_report(html, page(report))
    if as_json:
        print_json(report.to_json())
    else:
        _print(report)
    if report.failures():
        raise typer.Exit(Status.FAILED)


def _facts(order: Order, found: Inspected) -> Facts:
    config = found.config
    remote, opinion = config.inference.remote, config.opinion
    return Facts(
        order=order,
        ceiling=ceiling_of(config),
        redaction=config.perimeter.redaction == "on",
        remote="" if remote is None else remote.backend,
        registers=registered(config, found.source),
        opinion="" if opinion is None else opinion.model,
    )


def _run(order: Order, workers: int) -> Tally:
    """Return the tally of the whole run, and show how far it is."""
    whole, done = Tally(), 0
    total = sum(part.last - part.first for part in parts_of(order))
    with meter(errors(), "planting") as tell:
        for trials, tally in run(order, workers):
            whole.merge(tally)
            done += trials
            tell(done, total)
    return whole


def _print(report: Report) -> None:
    console = output()
    print_facts(console, report.facts.words())
    print_table(console, _HEAD, _rows(report))
    for kind, transform, leaks, first in islice(report.broken(), _SHOWN):
        print_line(
            console, f"leaked {how_many(leaks, 'time')}: {kind}, {transform} (first in trial {first})", "red"
        )
    for each in islice(report.typed_leaks(), _TYPED_SHOWN):
        where = f"{each['kind']}, {each['transform']}, {each['split']}, in {each['carrier']}"
        print_line(console, f"typed leak that nothing promised to stop: {where} (trial {each['trial']})")
    print_facts(console, _results(report))


def _results(report: Report) -> Iterator[tuple[str, str]]:
    matching, ordinary = report.tally.matching, report.false_denials(Defence.BOTH)
    yield "May not leak", report.must_hold_words()
    yield (
        "Ordinary",
        f"{ordinary['denied']} of {ordinary['texts']} ordinary texts were denied as the profile is",
    )
    yield "Steps", report.steps_words()
    yield "Record", f"requests that arrived {matching['received']}, on record {matching['recorded']}"
    yield "Verdict", "; ".join(report.failures()) or "no leak where none may be"
    yield "Terms", TERMS
    yield "Note", CAVEAT


def _rows(report: Report) -> Iterator[tuple[str, ...]]:
    for defence in DEFENCES:
        for source in SOURCES:
            share, held = report.share(defence, source), report.held(defence, source)
            permitted = report.tally.outcomes[defence, source, Outcome.PERMITTED]
            yield (
                defence.value,
                source,
                f"{share.leaks} of {share.trials}",
                share.interval_words,
                str(permitted),
                f"{held.leaks} of {held.trials}",
            )
