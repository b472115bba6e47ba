# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of the records and the verifier's own table say the same about shapes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import akaion_verify as av
import bookbuilder as bb
import jsonschema
import pytest
from bookbuilder import LogBuilder

SCHEMA = Path(__file__).resolve().parents[2] / "contracts" / "trace" / "v1" / "records.schema.json"
WORDS = ["", "C0", "C3", "b1", "b01", "other", "release", "remote", "none", "denied", "ask", "tool", "x y"]
LISTS = [[], ["b1"], ["b1", "b1"], ["C1"], {}, {"a": 1}, {"a": None}]
VALUES: list[Any] = [None, True, -1, 0, 3, 2**53, *WORDS, "a" * 32, "a" * 64, *LISTS, "absent"]


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    if not SCHEMA.is_file():
        pytest.skip("the contract is not beside this checkout")
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def examples() -> list[dict[str, Any]]:
    log = LogBuilder(changes={"extensions": ["x_a"]}).open().play(bb.story())
    following = log.next().open().play([log.recovery()])
    return [json.loads(line) for line in [*log.lines, *following.lines]]


def verifier_accepts(record: object) -> bool:
    try:
        av.parse_record(record, ["x_a"])
    except av.Fault:
        return False
    return True


def test_every_kind_has_an_example_and_each_is_valid(validator: jsonschema.Draft202012Validator) -> None:
    records = examples()
    assert {record["kind"] for record in records} == {"seal", *av.BODIES}
    assert [record for record in records if not validator.is_valid(record)] == []


def changed(record: dict[str, Any], place: str, name: str, value: object) -> dict[str, Any]:
    copied = copy.deepcopy(record)
    members = copied.get(place, copied)
    members[name] = value
    if value == "absent":
        del members[name]
    return copied


@pytest.mark.parametrize("kind", ["seal", *av.BODIES])
def test_schema_and_verifier_agree_on_every_changed_member(
    kind: str, validator: jsonschema.Draft202012Validator
) -> None:
    only = validator.evolve(schema={**validator.schema, "oneOf": [{"$ref": f"#/$defs/{kind}"}]})
    record = [record for record in examples() if record["kind"] == kind][-1]
    answers = []
    for place in ("", "body"):
        members = record.get(place, record)
        for name in {
            *members,
            "extra",
            "x_a",
            "task",
            "declassify",
            "tool_commit",
            "rule",
            "tier",
            "failure",
        } - {"kind"}:
            for edited in [changed(record, place, name, value) for value in VALUES]:
                answers.append(only.is_valid(edited))
                assert answers[-1] == verifier_accepts(edited), (name, edited)
    assert True in answers
    assert False in answers
