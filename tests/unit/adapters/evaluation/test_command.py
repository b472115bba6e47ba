# SPDX-License-Identifier: Apache-2.0
"""`akaion eval toolcalls`: what it reads, goes on with, writes and exits with. No model is needed here."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from runner.adapters.cli import main as command
from runner.adapters.cli.evaluate import parse_tiers
from runner.adapters.evaluation.dataset import read_dataset
from runner.adapters.evaluation.rows import Order, Results, Row
from runner.kernel.tiers import Tier

MODEL = "smollm2-135m-instruct"
ITEMS = 4


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    parameters = {"type": "dict", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    asked, answered = [], []
    for at in range(ITEMS):
        question = [[{"role": "user", "content": f"Add {at}."}]]
        functions = [{"name": "add", "description": "Add.", "parameters": parameters}]
        asked.append(json.dumps({"id": f"i{at}", "question": question, "function": functions}))
        answered.append(json.dumps({"id": f"i{at}", "ground_truth": [{"add": {"a": [at]}}]}))
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "BFCL_x.json").write_text("\n".join(asked), encoding="utf-8")
    (folder / "possible_answer_BFCL_x.json").write_text("\n".join(answered), encoding="utf-8")
    return folder


def kept(dataset: Path, path: Path, outcomes: dict[Tier, str]) -> Results:
    """Write results of every item: all of one class in each tier."""
    results = Results.begin(path, Order(dataset=read_dataset(dataset).digest, seed=1))
    for at in range(ITEMS):
        for tier, outcome in outcomes.items():
            row = Row(
                model=MODEL,
                tier=tier,
                item=f"i{at}",
                category="x",
                outcome=outcome,
                failed=(),
                seconds=1.0,
                tokens=9,
            )
            results.add(row)
    return results


def measured(dataset: Path, path: Path, *options: str, capsys: pytest.CaptureFixture[str]) -> Any:
    arguments = ["eval", "toolcalls", "--model", MODEL, "--dataset", str(dataset), "--results", str(path)]
    status = command.main([*arguments, "--resume", *options])
    return status, *capsys.readouterr()


def test_what_is_measured_is_not_measured_again_and_needs_no_model(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(dataset, tmp_path / "r", {Tier.CONSTRAINED: "right", Tier.TEXT: "malformed_json"})
    before = (tmp_path / "r").read_bytes()
    options = ("--tiers", "text, constrained", "--json", "--html", str(tmp_path / "page.html"))
    status, out, _ = measured(dataset, tmp_path / "r", *options, capsys=capsys)
    said = json.loads(out)
    assert (status, said["verdict"], said["items"]) == (0, "pass", ITEMS)
    assert [(cell["tier"], cell["right"]["count"]) for cell in said["cells"]] == [
        ("constrained", ITEMS),
        ("text", 0),
    ]
    assert said["pairs"][0]["only_first"] == ITEMS
    assert "4 of 4" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (tmp_path / "r").read_bytes() == before


def test_a_malformed_call_in_the_constrained_tier_is_status_1_and_is_named(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(dataset, tmp_path / "r", {Tier.CONSTRAINED: "schema_violation"})
    status, out, _ = measured(dataset, tmp_path / "r", "--tiers", "constrained", capsys=capsys)
    assert status == 1
    assert "4 malformed calls" in out


def test_a_smaller_limit_reports_the_items_it_draws_only(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(dataset, tmp_path / "r", {Tier.CONSTRAINED: "right"})
    options = ("--tiers", "constrained", "--limit", "2", "--json")
    _, out, _ = measured(dataset, tmp_path / "r", *options, capsys=capsys)
    assert json.loads(out)["cells"][0]["items"] == 2


def test_a_model_whose_weights_are_missing_is_told_before_anything_is_asked(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = measured(dataset, tmp_path / "r", capsys=capsys)
    assert status == 1
    assert f"akaion models fetch {MODEL}" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--tiers", "constrained,magic"], "write some of native,constrained,text", id="tier"),
        pytest.param(["--model", "nope"], "write some of: ", id="model"),
        pytest.param(["--seed", "7"], "no file of results for the same", id="seed"),
    ],
)
def test_wrong_usage_is_status_2(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    kept(dataset, tmp_path / "r", {Tier.CONSTRAINED: "right"})
    status, _, err = measured(dataset, tmp_path / "r", *options, capsys=capsys)
    assert status == 2
    assert said in " ".join(err.replace("│", " ").split())


def test_a_dataset_that_cannot_be_read_is_status_2_with_its_line(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (dataset / "BFCL_x.json").write_text("{", encoding="utf-8")
    status, _, err = measured(dataset, tmp_path / "r", capsys=capsys)
    assert status == 2
    assert "BFCL_x.json:1: this line is not JSON" in err


def test_tiers_are_measured_in_their_own_order() -> None:
    assert parse_tiers("text, native") == (Tier.NATIVE, Tier.TEXT)


def test_a_row_is_read_back_as_it_was_written(dataset: Path, tmp_path: Path) -> None:
    row = replace(kept(dataset, tmp_path / "r", {Tier.TEXT: "truncated"}).rows[-1], failed=("truncated",) * 2)
    results = Results.begin(tmp_path / "other", Order(dataset="d", seed=1))
    results.add(row)
    assert asdict(Results.resume(tmp_path / "other", Order(dataset="d", seed=1)).rows[0]) == asdict(row)
