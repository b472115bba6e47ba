# SPDX-License-Identifier: Apache-2.0
"""Reading a dataset: what a function document means, and that what is not known is told with its line."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from runner.adapters.evaluation.dataset import read_dataset
from runner.adapters.evaluation.functions import Unclear, parse_function
from runner.kernel.errors import ConfigError

SHELF: dict[str, Any] = {
    "name": "shelf.find",
    "description": "Find a book.",
    "parameters": {
        "type": "dict",
        "properties": {
            "title": {"type": "string", "description": "What it is called."},
            "weight": {"type": "float", "default": 0.5},
            "size": {"type": "tuple", "items": {"type": "integer"}},
            "kind": {"type": "string", "enum": ["novel", "atlas"]},
            "extra": {"type": "any", "optional": True},
            "owner": {"type": "dict", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "tags": {"type": "dict"},
        },
        "required": ["title"],
    },
}


def _question(name: str, functions: list[dict[str, Any]], text: str = "Find the atlas.") -> dict[str, Any]:
    return {"id": name, "question": [[{"role": "user", "content": text}]], "function": functions}


def _answer(name: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": name, "ground_truth": calls}


def _written(folder: Path, category: str, asked: list[Any], answered: list[Any]) -> Path:
    for name, lines in (
        (f"BFCL_{category}.json", asked),
        (f"possible_answer_BFCL_{category}.json", answered),
    ):
        text = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _mistakes(folder: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_dataset(folder)
    return [str(mistake).removeprefix(f"{folder}/") for mistake in caught.value.mistakes]


def test_a_function_document_becomes_a_closed_json_schema() -> None:
    spec = parse_function(SHELF)
    assert (spec.name, spec.description) == ("shelf_find", "Find a book.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "What it is called."},
            "weight": {"type": "number", "default": 0.5},
            "size": {"type": "array", "items": {"type": "integer"}},
            "kind": {"type": "string", "enum": ["novel", "atlas"]},
            "extra": {},
            "owner": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
                "additionalProperties": False,
            },
            "tags": {"type": "object", "properties": {}, "required": [], "additionalProperties": True},
        },
        "required": ["title"],
        "additionalProperties": False,
    }


def test_a_function_without_arguments_takes_none() -> None:
    spec = parse_function({"name": "now", "parameters": {"type": "dict", "properties": {}}})
    assert spec.parameters["additionalProperties"] is False


@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        pytest.param({"a": {"type": "complex"}}, "properties.a.type", id="unknown-type"),
        pytest.param({"a": {"type": "string", "regex": "x"}}, "properties.a.regex", id="unknown-keyword"),
        pytest.param({"a": "string"}, "properties.a", id="no-object"),
        pytest.param({"a": {"type": "string", "items": {}}}, "properties.a.items", id="items-of-a-text"),
        pytest.param({"a": {"type": "string", "enum": []}}, "properties.a.enum", id="empty-enum"),
        pytest.param({"a": {"type": "float", "properties": {}}}, "properties.a", id="members-of-a-number"),
        pytest.param(
            {"a": {"type": "dict", "properties": {}, "required": ["b"]}},
            "properties.a.required",
            id="undeclared",
        ),
    ],
)
def test_what_is_not_known_in_a_document_is_no_guess(parameters: dict[str, Any], where: str) -> None:
    with pytest.raises(Unclear) as caught:
        parse_function({"name": "f", "parameters": {"type": "dict", "properties": parameters}})
    assert caught.value.where == f"function.parameters.{where}"


def test_a_document_that_nests_too_deeply_is_refused_before_it_is_followed() -> None:
    parameters: dict[str, Any] = {"type": "dict"}
    for _ in range(2000):
        parameters = {"type": "dict", "properties": {"a": parameters}}
    with pytest.raises(Unclear, match="too deeply"):
        parse_function({"name": "f", "parameters": parameters})


def test_a_dataset_is_read_in_the_order_of_files_and_lines(tmp_path: Path) -> None:
    right = {"shelf.find": {"title": ["atlas"], "kind": ["atlas", ""]}}
    _written(tmp_path, "b", [_question("b0", [SHELF])], [_answer("b0", [right])])
    _written(
        tmp_path,
        "a",
        [_question("a0", [SHELF]), "", _question("a1", [SHELF])],
        [_answer("a1", [right]), _answer("a0", [right, right])],
    )
    dataset = read_dataset(tmp_path)
    assert [(item.id, item.category) for item in dataset.items] == [("a0", "a"), ("a1", "a"), ("b0", "b")]
    assert dataset.items[0].question == "Find the atlas."
    assert [name for name, _ in dataset.items[0].right] == ["shelf_find", "shelf_find"]
    assert dataset.items[1].right == (("shelf_find", {"title": ["atlas"], "kind": ["atlas", ""]}),)


def test_every_mistake_of_a_dataset_is_told_with_file_and_line(tmp_path: Path) -> None:
    right = {"shelf.find": {"title": ["atlas"]}}
    bad = {"name": "f", "parameters": {"type": "dict", "properties": {"a": {"type": "file"}}}}
    asked = [
        _question("a0", [SHELF]),
        "{",
        _question("a2", [bad]),
        _question("a3", [SHELF]),
        _question("a0", [SHELF]),
        _question("a5", [SHELF, {**SHELF, "name": "shelf_find"}]),
        _question("a6", [SHELF]),
        {**_question("a7", [SHELF]), "question": [[], []]},
    ]
    answered = [
        _answer("a0", [right]),
        _answer("a3", [{"shelf.find": {"title": "atlas"}}]),
        _answer("a6", [{"f": {}}]),
        "NaN",
    ]
    _written(tmp_path, "x", asked, answered)
    assert [said.partition(". Fix")[0] for said in _mistakes(tmp_path)] == [
        "BFCL_x.json:2: this line is not JSON",
        "possible_answer_BFCL_x.json:4: this line is not JSON",
        "possible_answer_BFCL_x.json:2: ground_truth.0: an argument has a list of allowed values",
        "BFCL_x.json:3: function.0.parameters.properties.a.type: this type is not known here",
        "BFCL_x.json:4: id: no line of the answers can be read for this id",
        "BFCL_x.json:5: id: this id is there twice",
        "BFCL_x.json:6: function: two functions have one name",
        "BFCL_x.json:7: function: the answer calls a function that is not offered",
        "BFCL_x.json:8: a line has an id, a question of one turn by the user, and functions",
    ]


def test_a_folder_without_questions_or_without_answers_is_a_mistake(tmp_path: Path) -> None:
    assert "there are no questions here" in _mistakes(tmp_path)[0]
    (tmp_path / "BFCL_x.json").write_text(json.dumps(_question("a", [SHELF])), encoding="utf-8")
    missing = "possible_answer_BFCL_x.json: this file is missing. Fix: put it beside the questions"
    assert _mistakes(tmp_path) == [missing]


@pytest.mark.parametrize("empty", ["BFCL_x.json", "possible_answer_BFCL_x.json"])
def test_an_empty_file_is_the_one_mistake_and_no_measurement(tmp_path: Path, empty: str) -> None:
    """Nothing measured is not everything right (I7), and no line of the other file is blamed for it."""
    right = {"shelf.find": {"title": ["atlas"]}}
    _written(tmp_path, "x", [_question("a", [SHELF])] * 2, [_answer("a", [right])])
    (tmp_path / empty).write_text("\n", encoding="utf-8")
    fix = "fill it, or remove both files of its category"
    assert _mistakes(tmp_path) == [f"{empty}: this file is empty. Fix: {fix}"]


def test_i7_a_pipe_in_the_place_of_a_file_is_the_one_mistake_and_nothing_waits(tmp_path: Path) -> None:
    _written(tmp_path, "x", [_question("a", [SHELF])], [])
    (tmp_path / "BFCL_x.json").unlink()
    os.mkfifo(tmp_path / "BFCL_x.json")
    fix = "put the file itself beside the questions"
    assert _mistakes(tmp_path)[0] == f"BFCL_x.json: this is no regular file. Fix: {fix}"


def test_from_the_front_of_what_is_drawn_each_category_has_its_share(tmp_path: Path) -> None:
    right = {"shelf.find": {"title": ["atlas"]}}
    for category, count in (("a", 40), ("b", 20)):
        names = [f"{category}{at}" for at in range(count)]
        _written(
            tmp_path,
            category,
            [_question(name, [SHELF]) for name in names],
            [_answer(name, [right]) for name in names],
        )
    dataset = read_dataset(tmp_path)
    drawn = dataset.drawn(None, 1)
    for limit in (3, 15, 30, 60):
        assert drawn[:limit] == dataset.drawn(limit, 1)
        assert sum(item.category == "b" for item in drawn[:limit]) == limit // 3
    assert {item.id for item in drawn} == {item.id for item in dataset.items}
    assert dataset.drawn(15, 2) != drawn[:15]


def test_the_digest_of_a_dataset_is_that_of_what_its_files_say(tmp_path: Path) -> None:
    right = {"shelf.find": {"title": ["atlas"]}}
    first = read_dataset(_written(tmp_path, "a", [_question("a", [SHELF])], [_answer("a", [right])]))
    again = read_dataset(_written(tmp_path, "a", [_question("a", [SHELF])], [_answer("a", [right])]))
    other = read_dataset(_written(tmp_path, "a", [_question("a", [SHELF], "?")], [_answer("a", [right])]))
    assert first.digest == again.digest != other.digest


PUBLIC = Path(__file__).parents[4] / ".." / "shared" / "vectors" / "bfcl"


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public vectors are not here")
def test_the_public_files_are_read_whole() -> None:
    assert len(read_dataset(PUBLIC).items) == 300
