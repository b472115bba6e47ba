# SPDX-License-Identifier: Apache-2.0
"""The order of a run: every item in every tier, each result kept before the next begins.

Owns the order and the clock. Tiers take turns on one item, so that a run that is broken off has measured the
same items in each. Leaves asking to `Proposer`, scoring to `score`, and keeping to `rows`.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Protocol

from runner.adapters.evaluation.dataset import Item
from runner.adapters.evaluation.rows import Results, Row
from runner.adapters.evaluation.score import Proposal, score
from runner.kernel.tiers import Tier


class Proposer(Protocol):
    """A model, asked for the calls of an item. Nothing that it proposes runs."""

    @property
    def model(self) -> str:
        """Its name."""

    def propose(self, item: Item, tier: Tier) -> Proposal:
        """Return what the model proposes for `item` when it is asked in `tier`."""


def measure(
    proposer: Proposer,
    items: Sequence[Item],
    tiers: Sequence[Tier],
    *,
    results: Results,
    seconds: Callable[[], float],
) -> Iterator[Row]:
    """Measure what `results` does not hold yet, and yield each row once it is kept.

    `seconds` is a clock that never goes back. Raises what `Results.add` raises, and what `proposer` does.
    """
    done = results.done()
    for item, tier in product(items, tiers):
        if (proposer.model, tier, item.id) in done:
            continue
        began = seconds()
        proposal = proposer.propose(item, tier)
        row = Row(
            model=proposer.model,
            tier=tier,
            item=item.id,
            category=item.category,
            outcome=score(item, tier, proposal),
            seconds=round(seconds() - began, 3),
            failed=proposal.failed,
            tokens=proposal.tokens,
        )
        results.add(row)
        yield row
