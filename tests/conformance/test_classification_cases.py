# SPDX-License-Identifier: Apache-2.0
"""I6 against shared cases: how many are met is a ratchet, and each one that is not has its reason here.

The cases live beside the repository, not in it; the test is skipped where they are absent. A case's
class is what the gate would see: what was detected joined with C1, the default of task text.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from runner.kernel.labels import DataClass
from runner.perimeter.classify import classify_text

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases" / "classification.jsonl"

KNOWN_GAPS = {
    "privilege": "a document that calls itself secret: its label says so, the lexicon asks for a person",
    "quasi-id": "a combination of facts that singles somebody out: no rule sees it, a second opinion may",
    "rot13": "letter ciphers are not opened: echo and labels carry what was read, not detection",
    "reversed": "reversed text is not opened, as above",
}


def _cases() -> list[dict[str, Any]]:
    if not CASES.is_file():
        return []
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def _same(kind: str, expected: str, found: str) -> bool:
    """Compare letters and digits; a telephone without its country; a date by its kind alone."""
    if kind == "birth_date":
        return True
    plain = [
        "".join(character for character in text if character.isalnum()).upper() for text in (expected, found)
    ]
    return (
        plain[0].removeprefix("39") == plain[1].removeprefix("39")
        if kind == "phone"
        else plain[0] == plain[1]
    )


def _problem(case: dict[str, Any]) -> str:
    """Return what is wrong with the answer to `case`, or nothing."""
    text = case["text"]
    found = classify_text(text)
    expected_class = DataClass[case["data_class"]]
    effective = found.data_class if expected_class is DataClass.C0 else max(found.data_class, DataClass.C1)
    if effective is not expected_class:
        return f"class {effective.name}, not {expected_class.name}"
    kinds = {span.kind for span in found.spans}
    for item in case["expect"]:
        if item["kind"] not in kinds:
            return f"no {item['kind']}"
    return "" if case["expect"] or expected_class > DataClass.C1 or not kinds else f"found {sorted(kinds)}"


@pytest.mark.skipif(not CASES.is_file(), reason="the shared cases are not beside this checkout")
def test_every_case_but_the_known_gaps_is_met() -> None:
    problems = {case["id"]: problem for case in _cases() if (problem := _problem(case))}
    assert set(problems) == set(KNOWN_GAPS), problems


@pytest.mark.skipif(not CASES.is_file(), reason="the shared cases are not beside this checkout")
def test_spans_in_the_clear_are_exactly_the_values() -> None:
    plain = {"text", "joined"}
    for case in _cases():
        found = [span for span in classify_text(case["text"]).spans if span.view.value in plain]
        for item in case["expect"]:
            same_kind = [case["text"][span.start : span.end] for span in found if span.kind == item["kind"]]
            folded = [text.translate(str.maketrans("МА", "MA", "\u200b\xad")) for text in same_kind]
            assert not folded or any(_same(item["kind"], item["value"], text) for text in folded), case["id"]
