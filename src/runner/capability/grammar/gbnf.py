# SPDX-License-Identifier: Apache-2.0
"""Reading GBNF, before an engine does.

Owns the syntax (that of llama.cpp, ``grammars/README.md`` there) and the checks that keep a bad grammar
away from engines: some crash on one. Leaves matching to ``match``.

Invariant: a grammar that passes parses in every dialect we target; one that does not never reaches an
engine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from .automaton import TOP, inverse, union
from .terms import (
    Alternatives,
    GrammarSyntaxError,
    Literal,
    Reference,
    Repetition,
    Series,
    Term,
    Terminal,
    check_recursion,
    check_repeats,
)

_DEPTH_LIMIT = 100
_LENGTH_LIMIT = 4_000_000
_HYPHEN = 0x2D
_DIGITS = frozenset("0123456789abcdefABCDEF")
_ESCAPES = {"t": 9, "r": 13, "n": 10, "\\": 92, '"': 34, "[": 91, "]": 93}
_HEX = {"x": 2, "u": 4, "U": 8}
_REPEATS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}

_Token: TypeAlias = tuple[str, str, int]
"""Kind, text and line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """The rules of a valid grammar by name; ``root`` is the start."""

    rules: dict[str, Term]


_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t]|\#[^\n]*)+)|(?P<line>[\r\n]+)|(?P<define>::=)|(?P<name>[A-Za-z0-9-]+)
    |(?P<literal>"(?:[^"\\\r\n]|\\[^\r\n])*")|(?P<class>\[(?:[^\]\\\r\n]|\\[^\r\n])*\])
    |(?P<repeat>[*+?]|\{[ ]*[0-9]{1,6}[ ]*(?:,[ ]*[0-9]{0,6}[ ]*)?\})|(?P<mark>[|().])""",
    re.VERBOSE,
)


def _lex(text: str) -> list[_Token]:
    """Return the tokens of ``text`` without blanks. Raises ``GrammarSyntaxError``."""
    tokens: list[_Token] = []
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise GrammarSyntaxError(f"line {line}: this is no part of a grammar")
        at = found.end()
        if found.lastgroup == "line":
            tokens.append(("line", "", line))
            line += found.group().count("\n")
        elif found.lastgroup != "blank":
            tokens.append((found.lastgroup, found.group(), line))
    tokens.append(("end", "", line))
    return tokens


@lru_cache(maxsize=4096)
def _codes(body: str) -> tuple[tuple[int, bool], ...]:
    """Return the code points a literal or class spells, each with whether it was escaped."""
    codes: list[tuple[int, bool]] = []
    at = 0
    while at < len(body):
        char = body[at]
        at += 1
        if char != "\\":
            codes.append((ord(char), False))
            continue
        escape = body[at]
        at += 1
        if escape in _ESCAPES:
            codes.append((_ESCAPES[escape], True))
            continue
        size = _HEX.get(escape, 0)
        digits = body[at : at + size]
        if not size or len(digits) != size or not _DIGITS.issuperset(digits) or int(digits, 16) > TOP:
            raise GrammarSyntaxError("an escape is not known")
        codes.append((int(digits, 16), True))
        at += size
    return tuple(codes)


@lru_cache(maxsize=4096)
def _class(token: str) -> Terminal:
    """Return what a class spells; raises ``GrammarSyntaxError``."""
    negated = token.startswith("[^")
    codes = _codes(token[2:-1] if negated else token[1:-1])
    ranges: list[tuple[int, int]] = []
    at = 0
    while at < len(codes):
        low = high = codes[at][0]
        at += 1
        if at + 1 < len(codes) and codes[at] == (_HYPHEN, False):
            high = codes[at + 1][0]
            at += 2
        if high < low:
            raise GrammarSyntaxError("a range is reversed")
        ranges.append((low, high))
    merged = union(ranges)
    return Terminal(ranges=inverse(merged) if negated else merged)


class _Parser:
    """Recursive descent over tokens; nesting is bounded, everything else is a loop."""

    __slots__ = ("_at", "_depth", "_tokens", "used")

    def __init__(self, text: str) -> None:
        self._tokens = _lex(text)
        self._at = 0
        self._depth = 0
        self.used: dict[str, set[str]] = {}
        """The rules each rule names."""

    def parse(self) -> dict[str, Term]:
        rules: dict[str, Term] = {}
        self._skip_lines()
        while self._kind() != "end":
            name = self._expect("name", "a rule name is expected")
            if name in rules:
                raise self._error("the rule is defined twice")
            self._expect("define", '"::=" is expected')
            self._skip_lines()
            references = self.used[name] = set[str]()
            rules[name] = self._alternatives(references, nested=False)
            if self._kind() not in ("line", "end"):
                raise self._error("the end of the line is expected")
            self._skip_lines()
        return rules

    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _error(self, message: str) -> GrammarSyntaxError:
        return GrammarSyntaxError(f"line {self._tokens[self._at][2]}: {message}")

    def _expect(self, kind: str, message: str) -> str:
        if self._kind() != kind:
            raise self._error(message)
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _skip_lines(self) -> None:
        while self._kind() == "line":
            self._at += 1

    def _alternatives(self, used: set[str], *, nested: bool) -> Term:
        self._depth += 1
        if self._depth > _DEPTH_LIMIT:
            raise self._error("the grammar nests too deeply")
        parts = [self._series(used, nested=nested)]
        while self._tokens[self._at][1] == "|":
            self._at += 1
            self._skip_lines()
            parts.append(self._series(used, nested=nested))
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Alternatives(parts=tuple(parts))

    def _series(self, used: set[str], *, nested: bool) -> Term:
        parts: list[Term] = []
        while (term := self._term(used)) is not None:
            while self._kind() == "repeat":
                term = self._repeated(term)
            parts.append(term)
            if nested:
                self._skip_lines()
        if not parts:
            raise self._error('an alternative is empty; write ""')
        return parts[0] if len(parts) == 1 else Series(parts=tuple(parts))

    def _term(self, used: set[str]) -> Term | None:
        kind, text, _ = self._tokens[self._at]
        if kind not in ("literal", "class", "name") and text not in ("(", "."):
            return None
        self._at += 1
        match kind:
            case "literal":
                return Literal(codes=tuple(code for code, _ in _codes(text[1:-1])))
            case "class":
                return _class(text)
            case "name":
                used.add(text)
                return Reference(name=text)
        if text == ".":
            return Terminal(ranges=((0, TOP),))
        self._skip_lines()
        term = self._alternatives(used, nested=True)
        if self._tokens[self._at][1] != ")":
            raise self._error("a parenthesis is not closed")
        self._at += 1
        return term

    def _repeated(self, term: Term) -> Term:
        text = self._expect("repeat", "a repetition is expected")
        if text in _REPEATS:
            lo, hi = _REPEATS[text]
            return Repetition(part=term, lo=lo, hi=hi)
        low, comma, high = (part.strip() for part in text[1:-1].partition(","))
        lo, hi = int(low), (int(high) if high else None) if comma else int(low)
        if hi is not None and hi < lo:
            raise self._error("a repetition is reversed")
        return Repetition(part=term, lo=lo, hi=hi)


@lru_cache(maxsize=32)
def parse_gbnf(text: str) -> Grammar:
    """Return the rules of ``text``.

    Arguments: ``text`` is a whole grammar with a rule ``root``.
    Raises ``GrammarSyntaxError`` when it does not parse, names a missing rule, begins a rule with itself,
    repeats something 2000 times or more, or is longer than four million characters.
    """
    if len(text) > _LENGTH_LIMIT:
        raise GrammarSyntaxError("the grammar is too long")
    parser = _Parser(text)
    rules = parser.parse()
    if "root" not in rules:
        raise GrammarSyntaxError('there is no rule "root"')
    for name, term in rules.items():
        check_repeats(term, 1)
        if not parser.used[name] <= rules.keys():
            raise GrammarSyntaxError(f"rule {name}: it names a rule that is not defined")
    check_recursion(rules, parser.used)
    return Grammar(rules=rules)


def validate_gbnf(text: str) -> None:
    """Raise ``GrammarSyntaxError`` when ``text`` must not reach an engine; see ``parse_gbnf``."""
    parse_gbnf(text)
