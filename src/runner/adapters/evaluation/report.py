# SPDX-License-Identifier: Apache-2.0
"""What a run says: shares by model and tier with their intervals, pairs of tiers, tokens and time.

Owns counting and the JSON form. Leaves drawing to `page` and the terminal. A figure is a statement about
these items, these models and this build; nothing is extrapolated, and counts stand beside every share.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import median, quantiles
from typing import Any, Final

from runner.adapters.evaluation.rows import Order, Row
from runner.adapters.evaluation.score import FAMILIES, MALFORMED, RIGHT, Family
from runner.adapters.reports.shares import mcnemar, wilson
from runner.kernel.language import how_many
from runner.kernel.tiers import Tier

TRUNCATED_GOAL: Final = 0.02
"""The share of truncated replies that the constrained tier must stay below."""
CAVEAT: Final = (
    "A figure here is a statement about these items, these weights and this build. The intervals take the "
    "items for drawn at random from others like them. Right means one of the listed answers: a call that "
    "some person would accept, and the list does not have, counts as wrong."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The rows of one model in one tier."""

    model: str
    tier: Tier
    rows: tuple[Row, ...]

    @property
    def items(self) -> int:
        """How many were measured."""
        return len(self.rows)

    @property
    def outcomes(self) -> Counter[str]:
        """How many of each class."""
        return Counter(row.outcome for row in self.rows)

    @property
    def families(self) -> Counter[Family]:
        """How many of each family."""
        return Counter(FAMILIES[row.outcome] for row in self.rows)

    @property
    def right(self) -> int:
        """How many were right."""
        return self.outcomes[RIGHT]

    @property
    def malformed(self) -> int:
        """How many could not be run whatever was meant, truncated ones apart."""
        return sum(self.families[family] for family in MALFORMED)

    @property
    def truncated(self) -> int:
        """How many reached their token limit."""
        return self.families[Family.TRUNCATION]

    def of_category(self, category: str) -> "Cell":
        """Return the part of this that is of one category."""
        rows = tuple(row for row in self.rows if row.category == category)
        return Cell(model=self.model, tier=self.tier, rows=rows)

    def seconds(self) -> tuple[float, float]:
        """Return the median and the 90th percentile of the time an item took."""
        return _middle_and_high([row.seconds for row in self.rows])

    @property
    def tokens(self) -> float:
        """The mean number of tokens of an item, prompts and replies that could be used."""
        return sum(row.tokens for row in self.rows) / max(1, self.items)

    @property
    def first_failed(self) -> Counter[Family]:
        """How many items had a reply that could not be used, by the family of the first such reply."""
        return Counter(FAMILIES[row.failed[0]] for row in self.rows if row.failed)

    def to_json(self) -> dict[str, Any]:
        """Return the counts, intervals to five places, tokens and seconds."""
        middle, high = self.seconds()
        return {
            "model": self.model,
            "tier": self.tier.value,
            "items": self.items,
            "right": _share(self.right, self.items),
            "malformed": _share(self.malformed, self.items),
            "truncated": _share(self.truncated, self.items),
            "families": {family.value: self.families[family] for family in Family},
            "outcomes": {name: self.outcomes[name] for name in FAMILIES},
            "first_failed": {family.value: self.first_failed[family] for family in Family},
            "tokens_mean": round(self.tokens, 1),
            "seconds": {"median": round(middle, 2), "p90": round(high, 2)},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two tiers of one model over the items that both have: how often each alone was right."""

    model: str
    first: Tier
    second: Tier
    items: int
    only_first: int
    only_second: int

    @property
    def chance(self) -> float:
        """The exact two-sided p value of McNemar's test."""
        return mcnemar(self.only_first, self.only_second)

    def to_json(self) -> dict[str, Any]:
        """Return the counts and the p value."""
        return {**asdict(self), "p": round(self.chance, 5)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run, whole or not: there are `items` to be measured in each cell."""

    order: Order
    items: int
    rows: tuple[Row, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """One for each model, in the order they were measured, and each tier that was."""
        grouped: dict[tuple[str, Tier], list[Row]] = {}
        for row in self.rows:
            grouped.setdefault((row.model, row.tier), []).append(row)
        ranks = {model: rank for rank, model in enumerate(dict.fromkeys(row.model for row in self.rows))}
        order = sorted(grouped, key=lambda key: (ranks[key[0]], list(Tier).index(key[1])))
        return tuple(Cell(model=key[0], tier=key[1], rows=tuple(grouped[key])) for key in order)

    @property
    def categories(self) -> Sequence[str]:
        """The categories of the items, in order."""
        return sorted({row.category for row in self.rows})

    def pairs(self) -> tuple[Pair, ...]:
        """Return each two tiers of one model."""
        cells = combinations(self.cells, 2)
        return tuple(_pair(first, second) for first, second in cells if first.model == second.model)

    def failures(self) -> tuple[str, ...]:
        """Return what is wrong with the run or with the constrained tier, a sentence each."""
        found = []
        for cell in self.cells:
            name = f"{cell.model}, {cell.tier.value}"
            if cell.items < self.items:
                found.append(f"{name}: measured {cell.items} of {how_many(self.items, 'item')}")
            if faults := cell.families[Family.FAULT]:
                found.append(
                    f"{name}: {how_many(faults, 'item')} failed for reasons that are not the model's"
                )
            if cell.tier is Tier.CONSTRAINED and cell.malformed:
                found.append(
                    f"{name}: {how_many(cell.malformed, 'malformed call')}, where a grammar should leave none"
                )
            if cell.tier is Tier.CONSTRAINED and cell.truncated >= TRUNCATED_GOAL * cell.items:
                found.append(f"{name}: truncated {cell.truncated} of {how_many(cell.items, 'answer')}")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            **asdict(self.order),
            "items": self.items,
            "verdict": "fail" if self.failures() else "pass",
            "failures": list(self.failures()),
            "cells": [
                {
                    **cell.to_json(),
                    "categories": {
                        name: _share(part.right, part.items)
                        for name in self.categories
                        for part in (cell.of_category(name),)
                    },
                }
                for cell in self.cells
            ],
            "pairs": [pair.to_json() for pair in self.pairs()],
            "caveat": CAVEAT,
        }


def _pair(first: Cell, second: Cell) -> Pair:
    one, other = _right_by_item(first.rows), _right_by_item(second.rows)
    both = one.keys() & other.keys()
    return Pair(
        model=first.model,
        first=first.tier,
        second=second.tier,
        items=len(both),
        only_first=sum(one[item] and not other[item] for item in both),
        only_second=sum(other[item] and not one[item] for item in both),
    )


def _right_by_item(rows: Iterable[Row]) -> Mapping[str, bool]:
    return {row.item: row.outcome == RIGHT for row in rows}


def _share(count: int, trials: int) -> dict[str, Any]:
    low, high = wilson(count, trials)
    return {"count": count, "of": trials, "interval": [round(low, 5), round(high, 5)]}


def _middle_and_high(values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return 0.0, 0.0
    high = quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else values[0]
    return median(values), high
