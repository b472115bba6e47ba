# SPDX-License-Identifier: Apache-2.0
"""The order of a run: tiers take turns on each item, and what was measured is not measured again."""

from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from runner.adapters.evaluation.dataset import Item
from runner.adapters.evaluation.rows import Order, Results
from runner.adapters.evaluation.run import measure
from runner.adapters.evaluation.score import Proposal
from runner.kernel.tiers import Tier

ORDER = Order(dataset="d", seed=1)
ITEMS = tuple(
    Item(id=name, category="c", question="", tools=(), right=(("f", {"a": [1]}),)) for name in ("one", "two")
)
TIERS = (Tier.CONSTRAINED, Tier.TEXT)


@dataclass(slots=True)
class Scripted:
    """Proposes the right call when constrained, and breaks off at the question `until`."""

    until: int = 99
    asked: list[tuple[str, Tier]] = field(default_factory=list)
    model: str = "m"

    def propose(self, item: Item, tier: Tier) -> Proposal:
        if len(self.asked) == self.until:
            raise KeyboardInterrupt
        self.asked.append((item.id, tier))
        if tier is Tier.TEXT:
            return Proposal(failure="no_call", failed=("no_call", "no_call"))
        return Proposal(calls=(("f", {"a": 1}),), tokens=12)


def test_tiers_take_turns_on_each_item_and_each_row_holds_what_was_measured() -> None:
    ticks = count()
    results = Results.begin(None, ORDER)
    proposer = Scripted()
    rows = list(measure(proposer, ITEMS, TIERS, results=results, seconds=lambda: float(next(ticks))))
    assert proposer.asked == [(name, tier) for name in ("one", "two") for tier in TIERS]
    assert [row.outcome for row in rows] == ["right", "no_call"] * 2
    assert [row.seconds for row in rows] == [1.0] * 4
    assert [(row.failed, row.tokens) for row in rows[:2]] == [((), 12), (("no_call", "no_call"), 0)]
    assert results.rows == rows


def test_a_run_that_was_broken_off_goes_on_with_the_next_question(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    results = Results.begin(path, ORDER)
    with pytest.raises(KeyboardInterrupt):
        list(measure(Scripted(until=3), ITEMS, TIERS, results=results, seconds=lambda: 0.0))
    again = Scripted()
    resumed = Results.resume(path, ORDER)
    list(measure(again, ITEMS, TIERS, results=resumed, seconds=lambda: 0.0))
    assert again.asked == [("two", Tier.TEXT)]
    assert [(row.item, row.tier) for row in Results.resume(path, ORDER).rows] == [
        (name, tier) for name in ("one", "two") for tier in TIERS
    ]
