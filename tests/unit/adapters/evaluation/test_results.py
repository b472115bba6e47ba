# SPDX-License-Identifier: Apache-2.0
"""Results: written as they come, gone on with where they ended, and counted as they are."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from runner.adapters.evaluation.page import page
from runner.adapters.evaluation.report import Report
from runner.adapters.evaluation.rows import Order, Results, Row
from runner.adapters.evaluation.score import FAMILIES, Family
from runner.kernel.errors import ConfigError
from runner.kernel.tiers import Tier

ORDER = Order(dataset="d" * 64, seed=1)
ROW = Row(
    model="m",
    tier=Tier.TEXT,
    item="a",
    category="one",
    outcome="right",
    seconds=1.5,
    failed=(),
    tokens=14,
)


def test_rows_are_on_disk_as_they_come_and_are_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    begun = Results.begin(path, ORDER)
    begun.add(ROW)
    assert len(path.read_text("ascii").splitlines()) == 2
    resumed = Results.resume(path, ORDER)
    assert resumed.rows == [ROW]
    assert resumed.done() == {("m", "text", "a")}
    resumed.add(replace(ROW, item="b"))
    assert Results.resume(path, ORDER).rows == [ROW, replace(ROW, item="b")]


def test_a_line_that_a_crash_tore_is_cut_off_and_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    results = Results.begin(path, ORDER)
    results.add(ROW)
    results.add(replace(ROW, item="b"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    resumed = Results.resume(path, ORDER)
    assert resumed.rows == [ROW]
    resumed.add(replace(ROW, item="b"))
    assert path.read_bytes() == whole


def test_i7_a_pipe_is_no_file_of_results_and_nothing_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "r.jsonl")
    with pytest.raises(ConfigError, match="no regular file"):
        Results.resume(tmp_path / "r.jsonl", ORDER)


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("mine", "ascii")
    with pytest.raises(ConfigError, match="there already"):
        Results.begin(path, ORDER)
    with pytest.raises(ConfigError, match="no file of results"):
        Results.resume(path, ORDER)
    assert path.read_text("ascii") == "mine"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(ORDER, dataset="e" * 64), id="dataset"),
        pytest.param(replace(ORDER, seed=2), id="seed"),
    ],
)
def test_a_run_goes_on_only_with_what_it_began_with(tmp_path: Path, other: Order) -> None:
    Results.begin(tmp_path / "r.jsonl", ORDER)
    with pytest.raises(ConfigError, match="no file of results for the same"):
        Results.resume(tmp_path / "r.jsonl", other)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("{}", id="nothing"),
        pytest.param('{"model":', id="torn-in-the-middle"),
        pytest.param(json.dumps({"model": 1}), id="other-members"),
        pytest.param("same", id="twice"),
        pytest.param("outcome", id="unknown-outcome"),
    ],
)
def test_a_line_that_is_no_result_is_a_mistake_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    Results.begin(path, ORDER).add(ROW)
    row = path.read_text("ascii").splitlines()[1]
    added = {"same": row, "outcome": row.replace("right", "splendid").replace('"a"', '"b"')}.get(line, line)
    with path.open("a", encoding="ascii") as file:
        file.write(added + "\n")
    with pytest.raises(ConfigError, match=r"r\.jsonl:3: this line is no result"):
        Results.resume(path, ORDER)


def _rows(tier: Tier, outcomes: str) -> tuple[Row, ...]:
    names = {"r": "right", "v": "wrong_value", "j": "malformed_json", "t": "truncated", "x": "refused"}
    return tuple(
        replace(
            ROW,
            tier=tier,
            item=f"i{at}",
            category="one" if at % 2 else "two",
            outcome=names[each],
            seconds=float(at),
            failed=(names[each],) if each in "jt" else (),
            tokens=10 + at,
        )
        for at, each in enumerate(outcomes)
    )


REPORT = Report(
    order=ORDER,
    items=8,
    rows=(*_rows(Tier.TEXT, "jjjrvjtx"), *_rows(Tier.CONSTRAINED, "rrvrvrrv")),
)


def test_a_report_counts_what_was_measured_and_pairs_the_same_items() -> None:
    constrained, text = REPORT.cells
    assert (constrained.tier, constrained.items, constrained.right, constrained.malformed) == (
        *(Tier.CONSTRAINED, 8, 5, 0),
    )
    assert (text.right, text.malformed, text.truncated) == (1, 4, 1)
    (pair,) = REPORT.pairs()
    assert (pair.first, pair.second, pair.items) == (Tier.CONSTRAINED, Tier.TEXT, 8)
    assert (pair.only_first, pair.only_second) == (4, 0)
    assert pair.chance == 0.125
    assert constrained.seconds() == pytest.approx((3.5, 6.3))
    assert constrained.tokens == 13.5
    assert text.first_failed == {Family.FORM: 4, Family.TRUNCATION: 1}


def test_a_pair_counts_only_items_that_both_tiers_have() -> None:
    rows = (*_rows(Tier.TEXT, "jj"), *_rows(Tier.CONSTRAINED, "rrrr"))
    (pair,) = Report(order=ORDER, items=4, rows=rows).pairs()
    assert (pair.items, pair.only_first) == (2, 2)


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        pytest.param("rrrr", [], id="clean"),
        pytest.param("vvvv", [], id="wrong-is-no-failure-of-form"),
        pytest.param("rjrr", ["1 malformed call,"], id="malformed"),
        pytest.param("rtrr", ["truncated 1 of 4 answers"], id="truncated"),
        pytest.param("rxrr", ["1 item failed for reasons"], id="fault"),
        pytest.param("rrr", ["measured 3 of 4 items"], id="unfinished"),
    ],
)
def test_a_constrained_tier_fails_the_run_by_form_and_not_by_intent(outcomes: str, said: list[str]) -> None:
    report = Report(order=ORDER, items=4, rows=_rows(Tier.CONSTRAINED, outcomes))
    assert len(report.failures()) == len(said)
    assert all(part in failure for part, failure in zip(said, report.failures(), strict=True))


def test_the_text_tier_may_fail_by_form() -> None:
    assert Report(order=ORDER, items=2, rows=_rows(Tier.TEXT, "jt")).failures() == ()


def test_the_json_and_the_page_say_the_same_counts() -> None:
    said = REPORT.to_json()
    assert said["cells"][0]["right"] == {"count": 5, "of": 8, "interval": [0.30574, 0.86316]}
    assert said["cells"][0]["categories"]["two"]["count"] == 2
    assert said["cells"][1]["families"]["form"] == 4
    assert said["cells"][1]["outcomes"].keys() == FAMILIES.keys()
    assert said["pairs"][0]["p"] == 0.125
    shown = page(REPORT)
    assert "30.6 to 86.3 %" in shown
    assert "m, constrained: right, 5 of 8" in shown
    assert "0.1250" in shown
