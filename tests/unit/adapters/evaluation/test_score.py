# SPDX-License-Identifier: Apache-2.0
"""The score: what counts as right, and in which class a wrong call falls."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.adapters.evaluation.answers import folded, is_right
from runner.adapters.evaluation.dataset import Item
from runner.adapters.evaluation.score import FAMILIES, Family, Proposal, score
from runner.kernel.tiers import CallFailure, Tier

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text("ab ", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("arguments", "allowed", "right"),
    [
        pytest.param({"a": 5}, {"a": [5]}, True, id="number"),
        pytest.param({"a": 5.0}, {"a": [5]}, True, id="decimal-of-a-whole-number"),
        pytest.param({"a": True}, {"a": [1]}, False, id="yes-is-not-one"),
        pytest.param({"a": 1}, {"a": [True]}, False, id="one-is-not-yes"),
        pytest.param({"a": "5"}, {"a": [5]}, False, id="text-is-no-number"),
        pytest.param({"a": "New York, NY"}, {"a": ["new york ny"]}, True, id="case-spaces-marks"),
        pytest.param({"a": "x^2"}, {"a": ["x**2"]}, True, id="two-signs-of-a-power"),
        pytest.param({"a": "york"}, {"a": ["new york"]}, False, id="part-of-a-text"),
        pytest.param({}, {"a": ["m", ""]}, True, id="may-be-absent"),
        pytest.param({}, {"a": ["m"]}, False, id="may-not-be-absent"),
        pytest.param({"a": 1, "b": 2}, {"a": [1]}, False, id="one-too-many"),
        pytest.param({"a": [1, 2]}, {"a": [[1, 2]]}, True, id="list"),
        pytest.param({"a": [2, 1]}, {"a": [[1, 2]]}, False, id="list-in-another-order"),
        pytest.param({"a": ["A b"]}, {"a": [["ab"]]}, True, id="texts-in-a-list"),
        pytest.param({"a": [1]}, {"a": [[1, 2]]}, False, id="shorter-list"),
        pytest.param({"a": {"x": 1}}, {"a": [{"x": [1, 2], "y": [3, ""]}]}, True, id="object"),
        pytest.param({"a": {"x": 1}}, {"a": [{"x": [1], "y": [3]}]}, False, id="object-lacks-a-member"),
        pytest.param({"a": {"x": 4}}, {"a": [{"x": [1, 2]}]}, False, id="object-with-another-value"),
        pytest.param({"a": [{"x": "A"}]}, {"a": [[{"x": ["a"]}]]}, True, id="objects-in-a-list"),
        pytest.param({"a": None}, {"a": [None]}, True, id="null"),
    ],
)
def test_arguments_are_right_as_the_leaderboard_takes_them(
    arguments: dict[str, Any],
    allowed: dict[str, list[Any]],
    right: bool,
) -> None:
    assert is_right(arguments, allowed) is right


@given(st.dictionaries(st.sampled_from("abc"), JSON), st.dictionaries(st.sampled_from("abc"), st.lists(JSON)))
def test_the_comparison_is_total(arguments: dict[str, Any], allowed: dict[str, list[Any]]) -> None:
    assert is_right(arguments, allowed) in {True, False}


def _listed(value: Any) -> Any:
    """Return `value` as a dataset writes it: an object lists the allowed values of each member."""
    if isinstance(value, dict):
        return {name: [_listed(each)] for name, each in value.items()}
    return [_listed(each) for each in value] if isinstance(value, list) else value


@given(st.dictionaries(st.sampled_from("abc"), JSON))
def test_a_value_is_one_of_its_own_answers(arguments: dict[str, Any]) -> None:
    assert is_right(arguments, {name: [None, _listed(value)] for name, value in arguments.items()})


@given(st.text())
def test_folding_twice_is_folding_once_and_leaves_no_space(text: str) -> None:
    assert " " not in folded(text)
    assert folded(folded(text)) == folded(text)


def _item(*right: tuple[str, dict[str, list[Any]]]) -> Item:
    return Item(id="i", category="c", question="", tools=(), right=right)


ONE = _item(("f", {"a": [1]}))
TWO = _item(("f", {"a": [1, 2]}), ("f", {"a": [1]}))


@pytest.mark.parametrize(
    ("item", "calls", "outcome"),
    [
        pytest.param(ONE, [("f", {"a": 1})], "right", id="right"),
        pytest.param(ONE, [("f", {"a": 2})], "wrong_value", id="value"),
        pytest.param(ONE, [("g", {"a": 1})], "other_tool", id="tool"),
        pytest.param(ONE, [("f", {"a": 1})] * 2, "wrong_count", id="too-many"),
        pytest.param(ONE, [], "declined", id="declined"),
        pytest.param(
            TWO, [("f", {"a": 1}), ("f", {"a": 2})], "right", id="the-only-place-is-left-to-the-other"
        ),
        pytest.param(TWO, [("f", {"a": 2}), ("f", {"a": 1})], "right", id="order-is-free"),
        pytest.param(TWO, [("f", {"a": 2}), ("f", {"a": 2})], "wrong_value", id="one-place-for-two"),
        pytest.param(TWO, [("f", {"a": 1}), ("g", {"a": 1})], "other_tool", id="one-of-two-tools"),
    ],
)
def test_calls_are_compared_with_the_right_ones_in_any_order(
    item: Item, calls: list[tuple[str, dict[str, Any]]], outcome: str
) -> None:
    assert score(item, Tier.CONSTRAINED, Proposal(calls=tuple(calls))) == outcome


def test_a_failure_of_the_runner_is_its_own_class_whatever_else_was_said() -> None:
    assert score(ONE, Tier.TEXT, Proposal(failure="truncated")) == "truncated"


@pytest.mark.parametrize("tier", [Tier.NATIVE, Tier.TEXT])
def test_a_reply_without_a_call_is_intent_only_where_it_was_a_choice(tier: Tier) -> None:
    assert FAMILIES[score(ONE, tier, Proposal())] is Family.SILENCE
    assert FAMILIES[score(ONE, Tier.CONSTRAINED, Proposal())] is Family.INTENT


def test_every_failure_that_the_runner_knows_has_a_family() -> None:
    assert {failure.value for failure in CallFailure} <= FAMILIES.keys()
    assert {family for name, family in FAMILIES.items() if name in set(CallFailure)} == {
        *(Family.SILENCE, Family.FORM, Family.SCHEMA, Family.TRUNCATION, Family.FAULT)
    }
