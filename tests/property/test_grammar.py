# SPDX-License-Identifier: Apache-2.0
"""Grammars against an independent validator, on schemas and values nobody chose.

Two questions for every `exact` schema: is each text of the grammar a valid value (no false accept), and does
the grammar judge any value as the validator does, members put in declared order.
"""

import json
from typing import Any

import jsonschema
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from runner.capability.grammar import (
    GrammarSyntaxError,
    arrangements,
    canonical_text,
    compile_schema,
    literal,
    matches,
    parse_gbnf,
    sample,
    shortest,
    validate_gbnf,
)

NAMES = st.sampled_from(["a", "b", "ab", "c"])
NUMBERS = st.sampled_from([-2, -1, 0, 0.5, 1, 1.25, 2, 3, 10])
TEXTS = st.sampled_from(["", "a", "b", "ab", "aab", "ba", "é", "a1", "\n"])
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
TYPES = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])
COUNTS = st.integers(0, 3)
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.one_of(TYPES, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "minimum": NUMBERS,
        "exclusiveMaximum": NUMBERS,
        "multipleOf": st.sampled_from([1, 2, 3]),
        "minLength": COUNTS,
        "maxLength": COUNTS,
        "pattern": st.sampled_from(["^a", "b$", "a+b?", "^(a|b)*$", "[^a]", "^a{2}"]),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "minItems": COUNTS,
        "maxItems": COUNTS,
        "maxProperties": COUNTS,
        "minProperties": st.integers(0, 1),
    },
)


def _branches(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    return st.builds(
        lambda leaf, more: {**leaf, **more},
        LEAVES,
        st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(NAMES, inner, max_size=3),
                "additionalProperties": inner,
                "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=1),
                "propertyNames": inner,
                "items": inner,
                "prefixItems": some,
                "contains": inner,
                "allOf": some,
                "anyOf": some,
                "oneOf": some,
                "not": inner,
                "if": inner,
                "then": inner,
                "else": inner,
                "dependentRequired": st.dictionaries(
                    NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=1
                ),
                "dependentSchemas": st.dictionaries(NAMES, inner, max_size=1),
                "unevaluatedProperties": inner,
                "unevaluatedItems": inner,
            },
        ),
    )


SCHEMAS = st.recursive(st.one_of(st.booleans(), LEAVES), _branches, max_leaves=8)
SLOW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def _valid(schema: Any, value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Keep the first of repeated members; `json` keeps the last."""
    return dict(reversed(pairs))


@SLOW
@given(schema=SCHEMAS, values=st.lists(VALUES, min_size=1, max_size=8))
def test_an_exact_grammar_judges_as_the_validator_does(schema: Any, values: list[Any]) -> None:
    compiled = compile_schema(schema)
    if compiled.gbnf is not None:
        validate_gbnf(compiled.gbnf)
    if compiled.reason == "no value satisfies the schema":
        assert not any(_valid(schema, value) for value in values)
    assume(compiled.status == "exact")
    assert compiled.form is not None
    assert compiled.gbnf is not None
    for value in values:
        texts = [canonical_text(option) for option in arrangements(compiled.form, value, 200)]
        assert any(matches(compiled.gbnf, text) for text in texts) == _valid(schema, value), (schema, value)


@SLOW
@given(schema=SCHEMAS, seed=st.integers(0, 1000))
def test_every_text_of_an_exact_grammar_is_valid(schema: Any, seed: int) -> None:
    """No false accept, in the grammar's own words; and the lowered schema takes what the grammar takes."""
    compiled = compile_schema(schema)
    assume(compiled.status == "exact")
    assert compiled.gbnf is not None
    for text in sample(compiled.gbnf, seed, 12):
        value = json.loads(text)
        assert _valid(schema, value), (schema, text)
        assert _valid(schema, json.loads(text, object_pairs_hook=_first_wins)), (schema, text)
        assert _valid(compiled.lowered, value), (compiled.lowered, text)
        assert len(text) >= shortest(compiled.gbnf)


@given(st.text(max_size=60))
def test_reading_a_grammar_is_total(text: str) -> None:
    try:
        parse_gbnf(text)
    except GrammarSyntaxError:
        return


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.text(max_size=5))
def test_a_literal_is_exactly_its_text(text: str, other: str) -> None:
    grammar = f"root ::= {literal(text)}\n"
    assert grammar.isascii()
    assert matches(grammar, text)
    assert matches(grammar, other) == (text == other)


@given(VALUES)
def test_canonical_text_is_json_of_the_same_value(value: Any) -> None:
    assert json.loads(canonical_text(value)) == value
    assert matches(compile_schema(True).gbnf or "", canonical_text(value))
