# SPDX-License-Identifier: Apache-2.0
"""What a report says of its figures: intervals, thin cells, and what was measured."""

import pytest

from runner.adapters.leakbench.facts import Facts, Share
from runner.adapters.leakbench.parts import Order
from runner.adapters.leakbench.plots import heat_map

ORDER = Order(named="p", trials=8, seed=1)


@pytest.mark.parametrize(
    ("leaks", "trials", "low", "high"),
    [
        pytest.param(0, 10, 0.0, 0.2775, id="none"),
        pytest.param(10, 10, 0.7225, 1.0, id="all"),
        pytest.param(15, 20, 0.5313, 0.8881, id="some"),
        pytest.param(28, 48, 0.4428, 0.7115, id="more"),
        pytest.param(0, 0, 0.0, 1.0, id="no-trials"),
    ],
)
def test_the_interval_is_wilsons(leaks: int, trials: int, low: float, high: float) -> None:
    """Against values from its published form, to four places."""
    assert Share(leaks=leaks, trials=trials).interval == pytest.approx((low, high), abs=6e-5)


def test_a_cell_of_fewer_than_five_trials_is_drawn_small_and_says_thin() -> None:
    drawn = heat_map({"kind": {"a": (1, 4), "b": (1, 5), "c": (0, 0)}}, "label")
    assert drawn.count('width="9" height="9"') == 1
    assert drawn.count('width="17" height="17"') == 2
    assert "kind, a: 1 of 4 leaked, thin<" in drawn
    assert "kind, b: 1 of 5 leaked<" in drawn
    assert "kind, c: not planted<" in drawn


def test_the_words_say_what_may_leave_and_that_no_second_opinion_was_asked() -> None:
    words = dict(Facts(order=ORDER, ceiling=1, redaction=True, remote="anthropic", opinion="m").words())
    assert words["May leave"] == "C1; of the kinds planted: partita IVA, if typed"
    assert words["Redaction"] == "on"
    assert words["Remote"] == "a receiver on loopback that speaks anthropic, as the profile's remote does"
    assert words["2nd opinion"] == "not asked, though the profile names m: the rules are measured"
    assert dict(Facts(order=ORDER, ceiling=0, redaction=True).words())["May leave"] == (
        "C0; of the kinds planted: none"
    )
