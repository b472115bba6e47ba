# SPDX-License-Identifier: Apache-2.0
"""I1, I7 and P1: judging what a model wrote is total, bounded in time, and fetches nothing."""

import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from runner.perimeter import keywords
from runner.perimeter.validate import MAX_BITS, MAX_CHARACTERS, MAX_DEPTH, fits, is_bounded, unjudgeable

CATASTROPHIC = r"^(\w+\s?)*$"
"""Backtracking, every letter more doubles the time: with 64 letters, longer than the world is old."""


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": CATASTROPHIC},
        {"propertyNames": {"pattern": CATASTROPHIC}},
        {"patternProperties": {CATASTROPHIC: True}, "additionalProperties": False},
    ],
)
def test_i7_a_pattern_takes_linear_time_whatever_the_model_writes(schema: dict[str, Any]) -> None:
    text = "a" * 64 + "!"
    assert not fits(text if "pattern" in schema else {text: 1}, schema)


def test_i7_unique_items_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with each would be some two thousand million comparisons."""
    items = [{"k": number} for number in range(60_000)]
    assert not fits([*items, {"k": 0.0}], {"uniqueItems": True})
    monkeypatch.setattr(keywords, "MAX_STEPS", 1)
    assert fits(items, {"uniqueItems": True})


def test_i7_a_schema_that_branches_and_refers_to_itself_is_not_judged_for_ever() -> None:
    """At each level two ways, and the innermost value fits neither: two to the sixtieth."""
    branch: Any = {"type": "array", "items": {"$ref": "#"}}
    schema: Any = {"anyOf": [branch, {**branch, "minItems": 1}]}
    assert not fits(nested(MAX_DEPTH - 4), schema)


def test_i7_the_steps_of_one_value_are_not_charged_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keywords, "MAX_STEPS", 5)
    schema = {"items": {"type": "integer"}}
    for _ in range(3):
        assert fits([1, 2, 3], schema)
        assert not fits([1, 2, 3, 4, 5], schema)


@pytest.mark.parametrize(
    ("value", "bounded"),
    [
        (nested(MAX_DEPTH), True),
        (nested(MAX_DEPTH + 1), False),
        (nested(100_000), False),
        ({"a": "x" * (MAX_CHARACTERS - 2)}, True),
        ({"a": "x" * MAX_CHARACTERS}, False),
        ({"x" * MAX_CHARACTERS: 1}, False),
        ([0] * (MAX_CHARACTERS + 1), False),
        ([(1 << MAX_BITS) - 1], True),
        ([1 << MAX_BITS], False),
        ([-(1 << MAX_BITS)], False),
        (float("nan"), False),
        (float("inf"), False),
        ({1: 2}, False),
        (b"bytes", False),
        ({"a": [None, True, 1.5, "x", ()]}, True),
    ],
)
def test_i7_a_value_is_bounded_in_depth_and_size_and_is_json(value: object, *, bounded: bool) -> None:
    assert is_bounded(value) is bounded
    assert fits(value, {}) is bounded


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"properties": {"a": {"pattern": "(?=x)"}}}, "properties.a.pattern"),
        ({"anyOf": [{"pattern": r"(a)\1"}]}, "anyOf.0.pattern"),
        ({"patternProperties": {"(?!x)": True}}, "patternProperties"),
        ({"patternProperties": {"x": True}, "unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"pattern": "\ud800"}, "pattern"),
        ({"properties": {"pattern": {"type": "string"}}, "pattern": CATASTROPHIC}, None),
    ],
)
def test_i1_a_schema_that_cannot_be_judged_in_time_is_named_and_nothing_fits_it(
    schema: dict[str, Any], where: str | None
) -> None:
    assert unjudgeable(schema) == where
    assert fits({}, schema) is (where is None)


@pytest.mark.parametrize(
    ("value", "divisor", "multiple"),
    [
        (4.76, 0.01, True),
        (0.3, 0.1, True),
        (1.1, 0.1, True),
        (4.765, 0.01, False),
        (1e308, 1e-7, True),
        (1e-7, 1e-8, True),
        (10**300, 0.5, True),
        (7, 2, False),
        (-6, 3, True),
        (0.75, 0.5, False),
        (5.0, 5, True),
    ],
)
def test_a_multiple_is_one_of_the_decimals_as_they_are_written(
    value: float, divisor: float, *, multiple: bool
) -> None:
    assert fits(value, {"multipleOf": divisor}) is multiple


def test_p1_a_schema_that_refers_elsewhere_fetches_nothing_and_nothing_fits_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    def refuse(*where: object, **_: object) -> None:
        asked.append(where)
        raise OSError

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert not fits(1, {"$ref": "http://127.0.0.1:9/schema.json"})
    assert not fits(1, {"not": {"$ref": "http://127.0.0.1:9/schema.json"}})
    assert asked == []


@pytest.mark.parametrize(
    "schema",
    [{"$ref": "#/nowhere"}, {"minimum": "x"}, {"pattern": 3}, {"type": "no-such-type"}, {"multipleOf": 0}],
)
@pytest.mark.parametrize("value", [1, "x", [], {}])
def test_i7_a_schema_that_is_none_raises_nothing(schema: dict[str, Any], value: Any) -> None:
    assert fits(value, schema) in {True, False}


def test_i7_a_text_that_cannot_be_searched_fits_no_pattern_and_no_denial_of_one() -> None:
    assert not fits("\ud800", {"pattern": "x"})
    assert not fits("\ud800", {"not": {"pattern": "x"}})


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 1.5]) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
_SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "uniqueItems": st.booleans(),
        "pattern": st.sampled_from(["a", "^b$", "[ab]"]),
        "properties": st.just({"a": {"type": "integer"}}),
        "patternProperties": st.sampled_from([{"^b": {"type": "string"}}, {"[bc]": False}, {}]),
        "additionalProperties": st.sampled_from([True, False, {"type": "array"}, {"uniqueItems": True}]),
        "multipleOf": st.sampled_from([1, 2, 3]),
        "items": st.sampled_from([{"uniqueItems": True}, {"multipleOf": 2}]),
    },
)


@given(value=_VALUES, schema=_SCHEMAS)
def test_where_the_ordinary_validator_has_no_flaw_the_two_agree(value: Any, schema: dict[str, Any]) -> None:
    assert fits(value, schema) is Draft202012Validator(schema).is_valid(value)
