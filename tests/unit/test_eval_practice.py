# SPDX-License-Identifier: Apache-2.0
"""The evaluation's scoring rule: it defends the published figures, which no lenient score may inflate."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "eval_practice.py"))
score, stands, evaluate = SCRIPT["score"], SCRIPT["stands"], SCRIPT["evaluate"]
parse_questions, totals = SCRIPT["parse_questions"], SCRIPT["totals"]
file_tools, overrides_of, parse_options = SCRIPT["file_tools"], SCRIPT["_overrides"], SCRIPT["_parse_options"]

EXPECTED = {"found": True, "file": "a/b.txt", "answer_any": ["7 May"], "quote_any": ["on 7 May"]}
ABSENT = {"found": False}


def result(**changes: Any) -> dict[str, Any]:
    answer = {
        "found": True,
        "file": "a/b.txt",
        "line": 2,
        "quote": "It is on 7 May, early.",
        "answer": "7 May",
    }
    return answer | changes


NOT_FOUND = result(found=False, file=None, line=None, quote=None, answer="")


def test_right_needs_file_quote_and_answer() -> None:
    assert score(EXPECTED, result()) == "right"


def test_case_and_spacing_do_not_matter() -> None:
    assert score(EXPECTED, result(quote="IT IS  ON\n7 may, early.")) == "right"


def test_the_quote_may_carry_the_answer() -> None:
    assert score(EXPECTED, result(answer="in spring")) == "right"


@pytest.mark.parametrize(
    "changes",
    [
        {"file": "a/c.txt"},
        {"file": "b.txt"},
        {"file": None},
        {"quote": "It is early."},
        {"quote": ""},
        {"quote": None},
    ],
)
def test_a_right_answer_with_the_wrong_evidence_is_wrong(changes: dict[str, Any]) -> None:
    assert score(EXPECTED, result(**changes)) == "wrong"


def test_a_right_quote_without_the_answer_is_wrong() -> None:
    expected = {**EXPECTED, "answer_any": ["noon"]}
    assert score(expected, result()) == "wrong"
    assert score(expected, result(answer="At NOON")) == "right"


def test_not_found_is_never_wrong_and_never_right() -> None:
    assert score(EXPECTED, NOT_FOUND) == "not_found"
    assert score(ABSENT, NOT_FOUND) == "not_found"


def test_an_answer_to_what_the_files_do_not_hold_is_wrong() -> None:
    assert score(ABSENT, result()) == "wrong"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p" / "a").mkdir(parents=True)
    (tmp_path / "p" / "a" / "b.txt").write_text("Title\n  It is on 7  May, early.\n", encoding="utf-8")
    (tmp_path / "out.txt").write_text("x\nIt is on 7 May, early.\n", encoding="utf-8")
    return tmp_path / "p"


def test_a_quote_stands_only_at_its_own_line(folder: Path) -> None:
    assert stands(folder, result())
    assert not stands(folder, result(line=1))
    assert not stands(folder, result(line=0))
    assert not stands(folder, result(line=9))
    assert not stands(folder, result(line=None))
    assert not stands(folder, result(quote="  "))


def test_a_cited_file_lies_inside_the_folder(folder: Path) -> None:
    assert not stands(folder, result(file="../out.txt"))
    assert not stands(folder, result(file="a"))
    assert not stands(folder, result(file=None))


def test_an_unverified_quote_is_scored_wrong_however_well_it_reads(folder: Path) -> None:
    questions = parse_questions(json.dumps([{"id": "q", "question": "When?", "expected": EXPECTED}]))
    assert [item.score for item in evaluate(questions, folder, lambda _: result())] == ["right"]
    invented = result(quote="It is certainly on 7 May.")
    assert [item.score for item in evaluate(questions, folder, lambda _: invented)] == ["wrong"]


def test_totals_tell_a_right_not_found_from_a_missed_answer(folder: Path) -> None:
    entries = [
        {"id": "q1", "question": "When?", "expected": EXPECTED},
        {"id": "q2", "question": "Who?", "expected": ABSENT},
        {"id": "q3", "question": "Where?", "expected": EXPECTED},
    ]
    answers = {"When?": NOT_FOUND, "Who?": NOT_FOUND, "Where?": result()}
    scored = list(evaluate(parse_questions(json.dumps(entries)), folder, answers.__getitem__))
    counts = totals(scored)
    assert [item.correct for item in scored] == [False, True, True]
    assert (counts["right"], counts["wrong"], counts["not_found"], counts["rightly_not_found"]) == (
        1,
        0,
        2,
        1,
    )


def test_the_tools_are_those_for_files_that_the_profile_grants(tmp_path: Path) -> None:
    """So the figures are of what a profile gives, whichever search that is."""
    profile = tmp_path / "p.yaml"
    grants = ", ".join(
        f"{{tool: {tool}, paths: [.]}}" for tool in ("search_documents", "write_file", "read_file")
    )
    profile.write_text(f"profile: detached\npolicy: {{grants: [{grants}]}}\n", encoding="utf-8")
    assert file_tools(str(profile)) == ["search_documents", "read_file"]
    options = parse_options(["q.json", str(tmp_path), "--seconds", "60"])
    overrides = overrides_of(options, file_tools(str(profile)))
    assert overrides["budget"] == {"seconds": 60}
    assert overrides["policy"]["grants"][1] == {"tool": "read_file", "paths": [str(tmp_path.resolve())]}
