# SPDX-License-Identifier: Apache-2.0
"""Our reader of GBNF and the matcher: a bad grammar never reaches an engine (some crash on one)."""

import time

import pytest

from runner.capability.grammar import (
    GrammarSyntaxError,
    begins,
    literal,
    matches,
    parse_gbnf,
    shortest,
    validate_gbnf,
)

BAD = {
    "no root": 'start ::= "a"',
    "no rule": "",
    "missing rule": "root ::= other",
    "unclosed literal": 'root ::= "a',
    "unclosed class": "root ::= [a",
    "unclosed group": 'root ::= ("a"',
    "unknown escape": 'root ::= "\\q"',
    "short escape": 'root ::= "\\x1"',
    "empty alternative": 'root ::= | "a"',
    "empty rule": "root ::=",
    "reversed range": "root ::= [z-a]",
    "reversed repetition": 'root ::= "a"{3,2}',
    "large repetition": 'root ::= "a"{2000}',
    "multiplied repetition": 'root ::= ("a"{50}){40}',
    "left recursion": 'root ::= root "a" | "b"',
    "hidden left recursion": 'root ::= e root "a" | "b"\ne ::= "x"?',
    "mutual left recursion": 'root ::= a\na ::= b "x"\nb ::= a | "y"',
    "twice": 'root ::= "a"\nroot ::= "b"',
    "stray text": 'root ::= "a" ; "b"',
    "deep nesting": "root ::= " + "(" * 200 + '"a"' + ")" * 200,
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_grammar_is_refused(name: str) -> None:
    with pytest.raises(GrammarSyntaxError):
        validate_gbnf(BAD[name])


def test_an_error_names_the_line() -> None:
    with pytest.raises(GrammarSyntaxError, match="line 3"):
        parse_gbnf('# a comment\nroot ::= "a"\nb ::= "c\n')


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        ('root ::= "a" "b"* "c"?', ["a", "ab", "abbc"], ["", "b", "acc"]),
        ('root ::= "x"{2,3} | "y"{2,}', ["xx", "xxx", "yyyy"], ["x", "xxxx", "y"]),
        ("root ::= [^a-c\\]]+", ["xyz", "-"], ["xa", "]", ""]),
        ("root ::= [-a]", ["-", "a"], ["b"]),
        ('root ::= "\\u00e8\\x21\\U0001f389"', ["è!🎉"], ["e!"]),
        ('root ::= (\n "a" |\n "b"\n)', ["a", "b"], ["c"]),
        ('root ::= "(" root ")" | ""', ["", "()", "((()))"], ["(", "(()"]),
        ('root ::= s s\ns ::= "a" s "b" | "a" s "c" | ""', ["", "aabc", "abac"], ["aab"]),
        ('root ::= e e e\ne ::= "a"?', ["", "a", "aaa"], ["aaaa"]),
        ("root ::= .", ["x", "\n", "🎉"], ["", "xx"]),
    ],
)
def test_the_matcher_is_exact(grammar: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not matches(grammar, text)] == []
    assert [text for text in bad if matches(grammar, text)] == []


def test_a_prefix_is_told_from_a_mistake() -> None:
    grammar = 'root ::= "ab" "c"*'
    assert begins(grammar, "a")
    assert not matches(grammar, "a")
    assert not begins(grammar, "b")


def test_an_ambiguous_grammar_takes_linear_time() -> None:
    """Sets of stacks alone would be exponential here: 2 ** 400 ways."""
    grammar = 'root ::= s\ns ::= "a" s "b" | "a" s "c" | ""'
    started = time.process_time()
    assert matches(grammar, "a" * 400 + "bc" * 200)
    assert time.process_time() - started < 2


def test_deep_texts_do_not_recurse() -> None:
    grammar = 'root ::= "[" root "]" | "x"'
    assert matches(grammar, "[" * 5000 + "x" + "]" * 5000)
    assert not matches(grammar, "[" * 5000 + "x" + "]" * 4999)


def test_shortest_refuses_a_grammar_without_finite_texts() -> None:
    with pytest.raises(GrammarSyntaxError, match="finite"):
        shortest('root ::= "a" root')


def test_literals_are_ascii_and_exact() -> None:
    text = 'a"\\\n\t]^-[ è🎉\x00'
    assert literal(text).isascii()
    assert matches(f"root ::= {literal(text)}", text)
