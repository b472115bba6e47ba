# SPDX-License-Identifier: Apache-2.0
"""What measurements have in common: intervals, the test of pairs, tables and plots that quote safely."""

import pytest

from runner.adapters.reports.document import document, table
from runner.adapters.reports.plots import intervals, stacked
from runner.adapters.reports.shares import interval_words, mcnemar, wilson


@pytest.mark.parametrize(
    ("first", "second", "chance"),
    [
        pytest.param(0, 0, 1.0, id="no-pairs"),
        pytest.param(5, 5, 1.0, id="even"),
        pytest.param(0, 1, 1.0, id="one"),
        pytest.param(0, 5, 0.0625, id="five-to-none"),
        pytest.param(10, 2, 0.038574, id="ten-to-two"),
        pytest.param(0, 20, 2 / 2**20, id="twenty-to-none"),
    ],
)
def test_mcnemars_exact_test_gives_the_binomial_chance(first: int, second: int, chance: float) -> None:
    """By hand: 2 * (1 + 12 + 66) / 4096 for ten to two."""
    assert mcnemar(first, second) == pytest.approx(chance, rel=1e-4)
    assert mcnemar(second, first) == mcnemar(first, second)


def test_an_interval_is_all_of_it_without_trials_and_touches_the_end_at_none_and_all() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 50)[0] == 0.0
    assert wilson(50, 50)[1] == 1.0
    assert interval_words(28, 48) == "44.3 to 71.2 %"


def test_a_document_and_its_tables_escape_what_comes_in_and_forbid_scripts() -> None:
    said = document("a<b", [table(("h<",), [("<script>", 3)])])
    assert "<title>a&lt;b</title>" in said
    assert "<th>h&lt;</th>" in said
    assert '<td>&lt;script&gt;</td><td class="n">3</td>' in said
    assert "default-src 'none'" in said


def test_a_plot_of_intervals_draws_the_line_of_wilson_and_says_the_counts() -> None:
    drawn = intervals({"m<": (28, 48), "none": (0, 0)}, "label")
    assert "m&lt;" in drawn
    assert "28 of 48 (44% to 71%)" in drawn
    assert 'd="M392.8 10h80.6"' in drawn  # 260 + 300 * 0.4428, 300 * (0.7115 - 0.4428)
    assert drawn.count("<circle") == 1  # nothing is known of a share without trials


def test_a_stacked_bar_is_cut_by_its_counts_and_names_each_part() -> None:
    drawn = stacked({"row": {"a": 1, "b": 3}}, {"a": "#111", "b": "#222"}, "label")
    assert 'width="75.0" height="14" fill="#111"><title>row: a, 1 of 4</title>' in drawn
    assert 'x="335.0" y="25" width="225.0" height="14" fill="#222"><title>row: b, 3 of 4</title>' in drawn
    assert ">1, 3</text>" in drawn
