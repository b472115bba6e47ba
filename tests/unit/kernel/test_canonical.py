# SPDX-License-Identifier: Apache-2.0
"""Canonical bytes: one encoding per value, nothing outside the profile, no value in an error (I12).

What is hashed, signed and committed in the trace passes here, so two encodings of one value would be two
records (P3).
"""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.canonical import (
    MAX_DEPTH,
    MAX_INTEGER,
    canonical_bytes,
    integer_text,
    member_text,
    string_text,
    utf_8,
)

member_names = st.from_regex(r"[a-z][a-z0-9_]{0,63}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(member_names, inner, max_size=4),
    max_leaves=12,
).filter(lambda value: depth(value) <= MAX_DEPTH)


def depth(value: Any) -> int:
    """How many containers surround the deepest value."""
    match value:
        case dict():
            return 1 + max(map(depth, value.values()), default=0)
        case list():
            return 1 + max(map(depth, value), default=0)
        case _:
            return 0


def nested(levels: int) -> Any:
    """Text inside `levels` lists."""
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


@given(values)
def test_parsing_back_gives_the_value(value: Any) -> None:
    assert json.loads(canonical_bytes(value)) == value


@given(values, st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter(value: Any, order: random.Random) -> None:
    assert canonical_bytes(shuffled(value, order)) == canonical_bytes(value)


def shuffled(value: Any, order: random.Random) -> Any:
    match value:
        case dict():
            members = list(value.items())
            order.shuffle(members)
            return {name: shuffled(item, order) for name, item in members}
        case list():
            return tuple(shuffled(item, order) for item in value)
        case _:
            return value


@given(values)
def test_parsing_and_encoding_again_gives_the_same_bytes(value: Any) -> None:
    once = canonical_bytes(value)
    assert canonical_bytes(json.loads(once)) == once


def test_the_bytes_are_those_of_rfc_8785() -> None:
    """Section 3.2.2.2: two-character escapes, lower-case \\u00xx for other controls, all else as it is."""
    value = {
        "b": [None, True, False, 0, -1, MAX_INTEGER],
        "a": '\x00\x08\t\n\x0b\x0c\r\x1f"\\/\x7fè€\u2028😀',
    }
    expected = (
        '{"a":"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\"\\\\/\x7fè€\u2028😀",'
        '"b":[null,true,false,0,-1,9007199254740991]}'
    )
    assert canonical_bytes(value) == expected.encode()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (0.5, "a float has no canonical encoding"),
        (1.0, "a float has no canonical encoding"),
        (float("nan"), "a float has no canonical encoding"),
        (float("inf"), "a float has no canonical encoding"),
        ([{"a": 1e300}], "a float has no canonical encoding"),
        ({1, 2}, "a set has no canonical encoding"),
        (object(), "a object has no canonical encoding"),
        (MAX_INTEGER + 1, "an integer is beyond 2^53-1"),
        (-MAX_INTEGER - 1, "an integer is beyond 2^53-1"),
        ({"": 1}, "a member name is not [a-z][a-z0-9_]{0,63}"),
        ({"A": 1}, "a member name is not [a-z][a-z0-9_]{0,63}"),
        ({"1a": 1}, "a member name is not [a-z][a-z0-9_]{0,63}"),
        ({"a-b": 1}, "a member name is not [a-z][a-z0-9_]{0,63}"),
        ({"a\n": 1}, "a member name is not [a-z][a-z0-9_]{0,63}"),
        ({"è": 1}, "a member name is not [a-z][a-z0-9_]{0,63}"),
        ({"a" * 65: 1}, "a member name is not [a-z][a-z0-9_]{0,63}"),
        ({"a": {"B": 1}}, "a member name is not [a-z][a-z0-9_]{0,63}"),
        (nested(MAX_DEPTH + 1), "nested deeper than 8"),
        ("\ud800", "a string holds a lone surrogate"),
        (["x", {"a": "\udfff"}], "a string holds a lone surrogate"),
    ],
)
def test_what_is_outside_the_profile_is_refused(value: Any, problem: str) -> None:
    with pytest.raises(ValueError) as refused:
        canonical_bytes(value)
    assert str(refused.value) == problem
    assert refused.value.__cause__ is None


@given(member_names, texts, st.integers(-MAX_INTEGER, MAX_INTEGER) | st.booleans().map(int))
def test_an_object_put_together_from_texts_has_the_same_bytes(name: str, text: str, number: int) -> None:
    whole = "{" + member_text(name) + "[" + string_text(text) + "," + integer_text(number) + "]}"
    assert utf_8(whole) == canonical_bytes({name: [text, number]})


@pytest.mark.parametrize(
    ("text", "value", "problem"),
    [
        (integer_text, 0.5, "a float has no canonical encoding"),
        (integer_text, "1", "a str has no canonical encoding"),
        (integer_text, MAX_INTEGER + 1, "an integer is beyond 2^53-1"),
        (integer_text, -MAX_INTEGER - 1, "an integer is beyond 2^53-1"),
        (member_text, "A", "a member name is not [a-z][a-z0-9_]{0,63}"),
        (utf_8, string_text("\ud800"), "a string holds a lone surrogate"),
    ],
)
def test_a_text_of_what_is_outside_the_profile_is_refused(
    text: Callable[[Any], object], value: Any, problem: str
) -> None:
    with pytest.raises(ValueError) as refused:
        text(value)
    assert str(refused.value) == problem


def test_the_limits_themselves_are_inside() -> None:
    assert canonical_bytes(nested(MAX_DEPTH)) == b'[[[[[[[["deep"]]]]]]]]'
    assert canonical_bytes({"a" * 64: MAX_INTEGER}) == b'{"' + b"a" * 64 + b'":9007199254740991}'


@given(values, st.sampled_from([0.25, MAX_INTEGER + 1, "\ud800"]))
def test_one_bad_value_anywhere_spoils_the_whole(value: Any, bad: Any) -> None:
    with pytest.raises(ValueError):
        canonical_bytes({"fine": value, "bad": [bad]})
