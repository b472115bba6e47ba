# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML file: words, tables and plots, complete in itself.

Owns what stands on the page; its frame is that of `runner.adapters.reports`. No question and no reply is in
it, only names and counts.
"""

from collections.abc import Iterator
from html import escape
from typing import Final

from runner.adapters.evaluation.report import CAVEAT, Cell, Report
from runner.adapters.evaluation.score import FAMILIES, Family
from runner.adapters.reports.document import document, note, table
from runner.adapters.reports.plots import BAD, FAINT, GOOD, MIDDLE, OTHER, intervals, stacked
from runner.adapters.reports.shares import interval_words
from runner.kernel.language import how_many

_COLOURS: Final = {
    Family.RIGHT.value: GOOD,
    Family.INTENT.value: OTHER,
    Family.SILENCE.value: "#9aa5b1",
    Family.SCHEMA.value: MIDDLE,
    Family.FORM.value: BAD,
    Family.TRUNCATION.value: "#7b4b94",
    Family.FAULT.value: FAINT,
}


def page(report: Report) -> str:
    """Return the whole HTML document."""
    return document("Tool calls by tier", _sections(report))


def _sections(report: Report) -> Iterator[str]:
    yield from _head(report)
    cells = {_name(cell): cell for cell in report.cells}
    yield "<h2>Right calls</h2>" + _right(report)
    yield intervals({name: (cell.right, cell.items) for name, cell in cells.items()}, "share of right calls")
    yield "<h2>What went wrong</h2>"
    parts = {name: {family.value: cell.families[family] for family in Family} for name, cell in cells.items()}
    yield stacked(parts, _COLOURS, "outcomes by family") + _classes(report)
    yield _second_tries(report)
    yield note(
        "Form and schema together are malformed: such a call could not be run whatever was meant. Where no "
        "call was written, nobody can tell whether none was meant or none could be written."
    )
    yield "<h2>Calls that could not be run, truncated ones apart</h2>"
    malformed = {name: (cell.malformed, cell.items) for name, cell in cells.items()}
    yield intervals(malformed, "share of malformed calls")
    yield "<h2>Tier against tier, on the same items</h2>" + _pairs(report)
    yield "<h2>By category</h2>" + _categories(report)
    yield "<h2>Tokens and time</h2>" + _costs(report)


def _head(report: Report) -> Iterator[str]:
    failures = report.failures()
    yield "<h1>Tool calls by tier</h1>"
    yield f"<p>{how_many(report.items, 'item')}, drawn with seed {report.order.seed}.</p>"
    yield note(f"SHA-256 of the dataset: {report.order.dataset}.")
    verdict = "; ".join(failures) or "constrained: no malformed call, and truncated below the limit"
    yield f'<p class="{"fail" if failures else "pass"}"><strong>{escape(verdict)}</strong></p>'
    yield note(CAVEAT)


def _name(cell: Cell) -> str:
    return f"{cell.model}, {cell.tier.value}"


def _right(report: Report) -> str:
    rows = [
        (
            cell.model,
            cell.tier.value,
            cell.items,
            cell.right,
            interval_words(cell.right, cell.items),
            cell.malformed,
            cell.truncated,
        )
        for cell in report.cells
    ]
    return table(("model", "tier", "items", "right", "95 %", "malformed", "truncated"), rows)


def _classes(report: Report) -> str:
    seen = [name for name in FAMILIES if any(cell.outcomes[name] for cell in report.cells)]
    rows = [(cell.model, cell.tier.value, *(cell.outcomes[name] for name in seen)) for cell in report.cells]
    return table(("model", "tier", *seen), rows)


def _second_tries(report: Report) -> str:
    families = (Family.FORM, Family.SCHEMA, Family.TRUNCATION)
    rows = [
        (cell.model, cell.tier.value, *(cell.first_failed[family] for family in families))
        for cell in report.cells
    ]
    return table(("model", "tier", *(f"first reply: {family.value}" for family in families)), rows) + note(
        "A reply that cannot be used is asked for once more. This table counts the items whose first such "
        "reply was of that family, whatever came of the second."
    )


def _pairs(report: Report) -> str:
    rows = [
        (
            pair.model,
            f"{pair.first.value} / {pair.second.value}",
            pair.items,
            pair.only_first,
            pair.only_second,
            f"{pair.chance:.4f}",
        )
        for pair in report.pairs()
    ]
    head = ("model", "tiers", "items", "only the first right", "only the second right", "p")
    return table(head, rows) + note(
        "p is that of McNemar's exact test, two-sided: the chance of a split at least as uneven if neither "
        "tier were better. It is not corrected for the number of comparisons."
    )


def _categories(report: Report) -> str:
    rows = [
        (
            cell.model,
            cell.tier.value,
            name,
            f"{part.right} of {part.items}",
            interval_words(part.right, part.items),
        )
        for cell in report.cells
        for name in report.categories
        for part in (cell.of_category(name),)
    ]
    return table(("model", "tier", "category", "right", "95 %"), rows)


def _costs(report: Report) -> str:
    rows = []
    for cell in report.cells:
        middle, high = cell.seconds()
        rows.append((cell.model, cell.tier.value, f"{cell.tokens:.0f}", f"{middle:.1f}", f"{high:.1f}"))
    head = ("model", "tier", "tokens, mean", "seconds, median", "seconds, 90 %")
    return table(head, rows) + note(
        "Tokens are those of prompts and replies that could be used. Time is of this machine, with whatever "
        "else ran on it."
    )
