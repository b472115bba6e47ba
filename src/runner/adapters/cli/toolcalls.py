# SPDX-License-Identifier: Apache-2.0
"""The measurement of tool calls: run with a bar, and shown.

Owns how it is started and how its result is shown. Leaves the measuring to `runner.adapters.evaluation`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

import typer

from runner.adapters.cli.exits import Status
from runner.adapters.cli.models import known_models
from runner.adapters.cli.screen import errors, output, print_facts, print_json, print_line, print_table
from runner.adapters.cli.work import meter
from runner.adapters.cli.written import write_report
from runner.adapters.evaluation.asking import open_model
from runner.adapters.evaluation.dataset import Item, read_dataset
from runner.adapters.evaluation.page import page
from runner.adapters.evaluation.report import CAVEAT, Report
from runner.adapters.evaluation.rows import Order, Results
from runner.adapters.evaluation.run import measure
from runner.adapters.reports.shares import interval_words
from runner.kernel.language import how_many
from runner.kernel.tiers import Tier

_HEAD: Final = (
    "model",
    "tier",
    "items",
    "right",
    "95 % interval",
    "no call",
    "form",
    "schema",
    "intent",
    "truncated",
)


def evaluate(
    *,
    models: Sequence[str],
    dataset: Path,
    tiers: Sequence[Tier],
    limit: int | None,
    seed: int,
    threads: int,
    results: Path | None,
    resume: bool,
    html: Path | None,
    as_json: bool,
) -> None:
    """Measure `models` in `tiers` and show what came of it, with `html` also as a page.

    Raises `typer.BadParameter` for a model that nobody knows, `ConfigError` for a dataset or a file of
    results that cannot be read, `ModelError` for a model that is not here, and `typer.Exit` when the
    constrained tier failed.
    """
    if not set(models) <= set(known_models()):
        raise typer.BadParameter(f"write some of: {', '.join(known_models())}", param_hint="--model")
    if resume and results is None:
        raise typer.BadParameter("say which file to go on with: --results FILE", param_hint="--resume")
    read = read_dataset(dataset)
    items = read.drawn(limit, seed)
    order = Order(dataset=read.digest, seed=seed)
    kept = Results.resume(results, order) if resume and results is not None else Results.begin(results, order)
    _run(models, items, tiers, kept, threads)
    names = {item.id for item in items}
    rows = tuple(row for row in kept.rows if row.item in names)
    report = Report(order=order, items=len(items), rows=rows)
    if html is not None:
        write_report(html, page(report))
    if as_json:
        print_json(report.to_json())
    else:
        _print(report)
    if report.failures():
        raise typer.Exit(Status.FAILED)


def _run(
    models: Sequence[str], items: Sequence[Item], tiers: Sequence[Tier], kept: Results, threads: int
) -> None:
    """Measure what is not kept yet, and show how far each model is."""
    done = kept.done()
    for model in dict.fromkeys(models):
        left = sum((model, tier, item.id) not in done for item in items for tier in tiers)
        if not left:
            continue
        with meter(errors(), model) as tell, open_model(model, threads) as proposer:
            measured = measure(proposer, items, tiers, results=kept, seconds=monotonic)
            for number, _ in enumerate(measured, 1):
                tell(number, left)


def _print(report: Report) -> None:
    console = output()
    print_table(console, _HEAD, _rows(report))
    for pair in report.pairs():
        print_line(
            console,
            f"{pair.model}: only {pair.first.value} right {pair.only_first}, only {pair.second.value} right "
            f"{pair.only_second}, of {how_many(pair.items, 'item')} (McNemar's exact p = {pair.chance:.4f})",
        )
    verdict = "; ".join(report.failures()) or "constrained: no malformed call, truncated below the limit"
    print_facts(console, [("Verdict", verdict), ("Note", CAVEAT)])


def _rows(report: Report) -> Iterator[tuple[str, ...]]:
    for cell in report.cells:
        families = {family.value: count for family, count in cell.families.items()}
        yield (
            cell.model,
            cell.tier.value,
            str(cell.items),
            str(cell.right),
            interval_words(cell.right, cell.items),
            *(str(families.get(name, 0)) for name in ("no call", "form", "schema", "intent", "truncation")),
        )
