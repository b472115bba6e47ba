# SPDX-License-Identifier: Apache-2.0
"""`compile_schema`: what each keyword becomes, and that nothing is dropped without being named (I4)."""

import json
import random
import re
import runpy
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from runner.capability.grammar import (
    CompiledSchema,
    arrangements,
    canonical_text,
    compile_schema,
    json_literal,
    matches,
    shortest,
    validate_gbnf,
)


def grammar(schema: Any, *, assert_formats: bool = True) -> str:
    gbnf = compile_schema(schema, assert_formats=assert_formats).gbnf
    assert gbnf is not None
    return gbnf


def accepts(schema: Any, value: object) -> bool:
    compiled = compile_schema(schema)
    assert compiled.status == "exact", (compiled.approximations, compiled.reason)
    assert compiled.form is not None
    texts = [canonical_text(option) for option in arrangements(compiled.form, value)]
    return any(matches(grammar(schema), text) for text in texts)


KEYWORDS: dict[str, Any] = {
    "types": ({"type": ["integer", "null"]}, [3, None, 1.0], ["3", 1.5, True, []]),
    "enum": (
        {"enum": ["a", 1, None, {"x": [1]}, False]},
        ["a", 1, None, {"x": [1]}, False],
        ["b", 2, True, {}],
    ),
    "const number": ({"const": 1.5}, [1.5], [1, "1.5"]),
    "length": ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "é🎉\n"], ["a", "abcd"]),
    "pattern": ({"type": "string", "pattern": "^[A-Z]{2}\\d+$"}, ["AB1", "AB123"], ["A1", "AB", "xAB1"]),
    "search": ({"type": "string", "pattern": "b+c"}, ["abcd", "bc"], ["ac", ""]),
    "look-ahead": ({"type": "string", "pattern": "^(?!no)[a-z]+$"}, ["yes"], ["no", "nope"]),
    "date": ({"type": "string", "format": "date"}, ["2024-02-29"], ["2023-02-29", "2023-1-1"]),
    "uuid": ({"type": "string", "format": "uuid"}, ["0" * 8 + "-0000-0000-0000-" + "0" * 12], ["0" * 36]),
    "integers": (
        {"type": "integer", "minimum": -7, "exclusiveMaximum": 120},
        [-7, 0, 119],
        [-8, 120, 1200, 5.5],
    ),
    "numbers": (
        {"type": "number", "exclusiveMinimum": 0.25, "maximum": 3},
        [0.251, 1, 3],
        [0.25, 0, -1, 3.01],
    ),
    "multiples": ({"type": "integer", "multipleOf": 7, "minimum": 10}, [14, 700], [7, 15]),
    "cents": ({"type": "number", "multipleOf": 0.01}, [0.47, 4.7, 5], [0.475]),
    "items": (
        {"items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
        [[1], [1, 2], "x"],
        [[], [1, 2, 3], ["1"]],
    ),
    "tuple": (
        {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": False},
        [[], [1], [1, 2]],
        [[2], [1, 2, 3]],
    ),
    "contains": (
        {"type": "array", "contains": {"const": 1}, "maxContains": 1},
        [[1], [0, 1, 2]],
        [[], [0], [1, 1]],
    ),
    "required": (
        {
            "type": "object",
            "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
            "required": ["b"],
            "additionalProperties": False,
        },
        [{"b": None}, {"b": None, "a": None}],
        [{}, {"a": None}, {"b": 1}, {"b": None, "c": 1}],
    ),
    "additional": (
        {
            "type": "object",
            "properties": {"ab": {"type": "null"}},
            "additionalProperties": {"type": "integer"},
        },
        [{"a": 1, "abc": 2, "": 3}, {"ab": None}],
        [{"ab": 1}, {"x": None}],
    ),
    "patternProperties": (
        {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False},
        [{"x1": 1}],
        [{"x1": "1"}, {"y": 1}],
    ),
    "propertyNames": ({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}, [{"ab": 1}], [{"A": 1}]),
    "sizes": (
        {
            "type": "object",
            "properties": {"a": {}, "b": {}, "c": {}},
            "additionalProperties": False,
            "minProperties": 2,
        },
        [{"a": 1, "c": 2}],
        [{"a": 1}],
    ),
    "dependent": (
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        [{}, {"b": 1}, {"a": 1, "b": 1}],
        [{"a": 1}],
    ),
    "not": ({"not": {"type": "string", "pattern": "^a"}}, [1, "b", {}], ["a", "ab"]),
    "not required": ({"not": {"required": ["a"]}}, [{}, {"b": 1}], [{"a": 1}, "x", 1]),
    "not a digit": ({"type": "string", "pattern": "^[^\\d]$"}, ["x", "é"], ["3", "٣"]),
    "oneOf": ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5, "x"], [3, 1.5]),
    "allOf": (
        {"allOf": [{"minimum": 3, "type": "number"}, {"maximum": 4}, {"not": {"const": 3.5}}]},
        [3, 3.25, 4],
        [2, 5, 3.5],
    ),
    "if": (
        {"if": {"properties": {"k": {"const": 1}}, "required": ["k"]}, "then": {"required": ["v"]}},
        [{}, {"k": 2}, {"k": 1, "v": 0}],
        [{"k": 1}],
    ),
    "unevaluated": (
        {
            "type": "object",
            "anyOf": [
                {"properties": {"a": {"const": 1}}, "required": ["a"]},
                {"properties": {"b": {}}, "required": ["b"]},
            ],
            "unevaluatedProperties": False,
        },
        [{"a": 1}, {"b": 2}, {"a": 1, "b": 2}],
        [{"a": 2, "b": 1}, {"b": 1, "c": 1}],
    ),
    "recursion": (
        {
            "$ref": "#/$defs/t",
            "$defs": {
                "t": {
                    "type": "object",
                    "properties": {"c": {"type": "array", "items": {"$ref": "#/$defs/t"}}},
                    "additionalProperties": False,
                }
            },
        },
        [{}, {"c": [{}, {"c": []}]}],
        [{"c": [1]}, []],
    ),
    "typeless": ({"minLength": 2, "minimum": 5}, ["ab", 5, None, []], ["a", 4]),
    "boolean": (True, [1, "x", {"a": [None]}], []),
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_each_keyword_is_exact(name: str) -> None:
    schema, valid, invalid = KEYWORDS[name]
    assert [value for value in valid if not accepts(schema, value)] == []
    assert [value for value in invalid if accepts(schema, value)] == []


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "string", "pattern": "(a)\\1"}, "pattern"),
        ({"type": "string", "pattern": "a\\b"}, "pattern"),
        ({"type": "string", "format": "iri"}, "format"),
        ({"type": "object", "minProperties": 3}, "minProperties"),
        ({"type": "array", "minItems": 5000}, "minItems"),
        ({"type": "string", "maxLength": 10**9}, "maxLength"),
        ({"not": {"type": "array", "uniqueItems": True}}, "uniqueItems"),
        ({"not": {"patternProperties": {"^a": {"type": "null"}}}}, "patternProperties"),
    ],
)
def test_i4_what_is_not_enforced_is_named(schema: Any, keyword: str) -> None:
    compiled = compile_schema(schema)
    assert (compiled.status, compiled.approximations) == ("approximated", (keyword,))
    validate_gbnf(grammar(schema))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "http://elsewhere.example/s"}, "$ref: points outside"),
        ({"$ref": "#/nowhere"}, "$ref: the pointer leads nowhere"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "$ref: a cycle"),
        ({"type": "strin"}, "type: not a type"),
        ({"required": True}, "required: a list"),
        ({"minimum": "3"}, "minimum: a number"),
        (False, "no value satisfies"),
        ({"type": "string", "enum": [1]}, "no value satisfies"),
        ({"properties": {"a": {"$ref": "#"}}, "required": ["a"], "type": "object"}, "no value satisfies"),
    ],
)
def test_i4_what_cannot_be_read_is_refused_with_a_reason(schema: Any, reason: str) -> None:
    compiled = compile_schema(schema)
    assert (compiled.status, compiled.gbnf, compiled.lowered) == ("refused", None, None)
    assert (compiled.reason or "").startswith(reason)


def test_a_refusal_quotes_no_value_of_the_schema() -> None:
    """I12."""
    assert "Rossi" not in str(compile_schema({"type": "Rossi", "minimum": "Rossi"}))


def test_an_extra_member_cannot_be_a_declared_one_again() -> None:
    """A second "a" with another value would undo the first when parsed."""
    gbnf = grammar({"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]})
    assert matches(gbnf, '{"a":1,"b":2}')
    assert not matches(gbnf, '{"a":1,"a":2}')
    assert not matches(gbnf, '{"a":1,"\\u0061":2}')


def test_an_extra_member_cannot_be_a_declared_one_that_another_begins_with() -> None:
    gbnf = grammar({"type": "object", "properties": {"a": {"const": 1}, "abc": {"const": 2}}})
    assert matches(gbnf, '{"a":1,"ab":0,"abcd":0,"":0}')
    assert not matches(gbnf, '{"a":1,"a":2}')
    assert not matches(gbnf, '{"abc":2,"abc":3}')


def test_a_whole_multiple_has_no_point() -> None:
    """A long text with a point is read as a binary float, and may then be no multiple any more."""
    gbnf = grammar({"type": "number", "multipleOf": 3})
    assert matches(gbnf, "33")
    assert not matches(gbnf, "33.0")


def test_control_characters_come_out_escaped() -> None:
    gbnf = grammar({"type": "string"})
    assert matches(gbnf, '"a\\n\\u0001"')
    assert not matches(gbnf, '"a\n"')
    assert not matches(gbnf, '"a\x01"')


def test_members_keep_the_declared_order_and_space_is_bounded() -> None:
    gbnf = grammar({"type": "object", "properties": {"b": {"type": "null"}, "a": {"type": "null"}}})
    assert matches(gbnf, '{"b": null, "a":null}')
    assert not matches(gbnf, '{"a":null,"b":null}')
    assert not matches(gbnf, '{"b":  null}')


def test_formats_may_be_annotations() -> None:
    schema = {"type": "string", "format": "date"}
    assert not matches(grammar(schema), '"x"')
    assert matches(grammar(schema, assert_formats=False), '"x"')


def test_hundreds_of_long_lines_compile_to_a_trie() -> None:
    random.seed(7)
    lines = ["".join(random.choices('abcdeèà «»“”\n\t"\\🎉', k=200)) for _ in range(500)]  # noqa: S311
    assert compile_schema({"enum": lines}).status == "exact"
    gbnf = grammar({"enum": lines})
    assert all(rule.count(" | ") <= 20 for rule in gbnf.splitlines())
    assert all(matches(gbnf, canonical_text(line)) for line in lines[:20])
    assert not matches(gbnf, canonical_text(lines[0] + "x"))
    assert not matches(gbnf, canonical_text(lines[0][:-1]))


def test_long_strings_are_counted_in_blocks() -> None:
    """No repetition reaches 2000, and every length between the bounds has a way."""
    gbnf = grammar({"type": "string", "minLength": 2100, "maxLength": 4321})
    validate_gbnf(gbnf)
    verdicts = {size: matches(gbnf, f'"{"x" * size}"') for size in (2099, 2100, 3000, 3999, 4000, 4321, 4322)}
    assert verdicts == {2099: False, 2100: True, 3000: True, 3999: True, 4000: True, 4321: True, 4322: False}


def test_the_schema_is_not_changed() -> None:
    schema = {"oneOf": [{"properties": {"a": {"const": [1, {"b": 2}]}}}, {"required": ["c"]}]}
    before = json.dumps(schema)
    compile_schema(schema)
    assert json.dumps(schema) == before


def test_the_lowered_schema_spells_out_the_form() -> None:
    lowered = compile_schema(
        {
            "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"type": "integer"}}}],
            "$defs": {"base": {"type": "object", "properties": {"a": {"const": "x"}}, "required": ["a"]}},
        }
    ).lowered
    assert lowered == {
        "type": "object",
        "properties": {"a": {"type": "string", "enum": ["x"]}, "b": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": {},
    }


def test_the_lowered_schema_drops_what_engines_cannot_count() -> None:
    assert compile_schema({"type": "string", "minLength": 1, "maxLength": 5000}).lowered == {
        "type": "string",
        "minLength": 1,
    }


def test_a_recursive_schema_lowers_to_a_reference() -> None:
    lowered: Any = compile_schema({"type": "array", "items": {"$ref": "#"}}).lowered
    assert lowered["items"] == {"$ref": "#/$defs/d1"}
    assert lowered["$defs"]["d1"]["items"] == {"$ref": "#/$defs/d1"}


def test_shortest_is_the_least_a_reply_needs() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["xyz", "y"]}, "b": {}}, "required": ["a"]}
    assert shortest(grammar(schema)) == len('{"a":"y"}')


def test_terminals_by_hand() -> None:
    term = json_literal('perché "x" 🎉')
    gbnf = f"root ::= {term}\n"
    assert matches(gbnf, '"perché \\"x\\" 🎉"')
    assert gbnf.isascii()
    with pytest.raises(ValueError, match="surrogate"):
        json_literal("\ud800")


HOSTILE: dict[str, Any] = runpy.run_path(
    str(Path(__file__).resolve().parents[4] / "benchmarks" / "_grammar_hostile.py")
)["HOSTILE"]
MOST_CALLS = 2_000_000
"""Under a second of work; measured: 1.2 million for the worst."""


def _calls(schema: Any) -> tuple[int, CompiledSchema]:
    """Return how many functions, ours and built in, are called while `schema` is compiled."""
    count = 0

    def observe(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(observe)
    try:
        compiled = compile_schema(schema)
    finally:
        sys.setprofile(before)
    return count, compiled


@pytest.mark.parametrize("name", HOSTILE)
def test_i4_any_schema_ends_soon_with_an_answer(name: str) -> None:
    """Work is counted in calls, which are the same on every machine, and not in seconds."""
    calls, compiled = _calls(HOSTILE[name])
    assert calls < MOST_CALLS
    assert (compiled.gbnf is None) is (compiled.status == "refused")
    if compiled.gbnf is None:
        assert compiled.reason
    else:
        validate_gbnf(compiled.gbnf)
        assert len(compiled.gbnf) <= 1_100_000


def test_a_negated_class_leaves_out_ascii_only() -> None:
    """Engines deny the first byte of a character if anything a negated class leaves out begins with it."""
    compiled = compile_schema({"type": "string", "pattern": r"^\S+$"})
    assert compiled.status == "exact"
    assert compiled.gbnf is not None
    negated = re.findall(r"\[\^((?:\\.|[^\]\\])*)\]", compiled.gbnf)
    assert not [inside for inside in negated if re.search(r"\\u(?!00[0-7])|\\U", inside)]
    assert matches(compiled.gbnf, '"90°"')
    assert not matches(compiled.gbnf, '"90\u0085"')


def test_no_escape_has_as_many_digits_as_follow() -> None:
    """xgrammar reads every digit after `\\x`, llama.cpp two: `[^\\x5ca]` is another class to each."""
    schema = {
        "type": "object",
        "properties": {"\u00e8\u007fa\\b": {"type": "string", "pattern": r"^[^\\a-f\u00e9]b{2}\x1f$"}},
        "additionalProperties": {"type": "string"},
    }
    compiled = compile_schema(schema)
    assert compiled.gbnf is not None
    assert re.search(r"\\u005c[a-f]", compiled.gbnf)
    assert not re.search(r"\\x", compiled.gbnf)
