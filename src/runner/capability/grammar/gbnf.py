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
_ESCAPES = {"t": 9, "r": 13, "n": 10, "\\": 92, '"': 34, "[": 91, "]": 93}
_REPEATS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_MARKS = frozenset({"", "::=", "|", "(", ")"})
"""Tokens that are neither a term nor a repetition nor the end of a line; the empty one ends the text."""

_LINES = ("\r", "\n")

_TOKEN = re.compile(
    r"""[ \t]*(?:\#[^\n]*)?                            # blanks and a comment
    ( "(?:[^"\\\r\n]|\\[^\r\n])*"                   # a literal
    | [A-Za-z0-9-]+                                 # a name
    | \[(?:[^\]\\\r\n]|\\[^\r\n])*\]               # a class
    | \{[ ]*[0-9]{1,6}[ ]*(?:,[ ]*[0-9]{0,6}[ ]*)?\} # a repetition
    | [\r\n]+ | ::= | . | \Z )                      # single characters, good and bad, and the end""",
    re.VERBOSE | re.DOTALL,
)

_HEX = "[0-9A-Fa-f]"
_ESCAPED = rf"\\(?:x{_HEX}{{2}}|u{_HEX}{{4}}|U{_HEX}{{8}}|.)"
_ESCAPE = re.compile(_ESCAPED, re.DOTALL)
_ITEM = re.compile(rf"({_ESCAPED}|[^\\])(?:-({_ESCAPED}|[^\\]))?", re.DOTALL)
"""One character of a class, or a range; a hyphen at an end is itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """The rules of a valid grammar by name; ``root`` is the start."""

    rules: dict[str, Term]


def _code(text: str) -> int:
    """Return the code point that a character or an escape spells; raises ``GrammarSyntaxError``."""
    if len(text) == 1:
        return ord(text)
    code = _ESCAPES.get(text[1:]) if len(text) == len("\\n") else int(text[2:], 16)  # noqa: FURB166 - no "0x"
    if code is None or code > TOP:
        raise GrammarSyntaxError("an escape is not known")
    return code


def _literal(token: str) -> Literal:
    """Return what a literal spells; raises ``GrammarSyntaxError``."""
    text = _ESCAPE.sub(lambda escape: chr(_code(escape[0])), token[1:-1])
    return Literal(codes=tuple(map(ord, text)))


def _class(token: str) -> Terminal:
    """Return what a class spells; raises ``GrammarSyntaxError``."""
    negated = token.startswith("[^")
    ranges: list[tuple[int, int]] = []
    for first, last in _ITEM.findall(token[2:-1] if negated else token[1:-1]):
        low = _code(first)
        high = _code(last) if last else low
        if high < low:
            raise GrammarSyntaxError("a range is reversed")
        ranges.append((low, high))
    merged = union(ranges)
    return Terminal(ranges=inverse(merged) if negated else merged)


@lru_cache(maxsize=4096)
def _atom(text: str) -> Term | None:
    """Return the term that a token is alone, if it is one; raises ``GrammarSyntaxError``."""
    first = text[0]
    if first == "-" or (first.isascii() and first.isalnum()):
        return Reference(name=text)
    if text == ".":
        return Terminal(ranges=((0, TOP),))
    if first == '"' and len(text) > 1:
        return _literal(text)
    return _class(text) if first == "[" and len(text) > 1 else None


@lru_cache(maxsize=256)
def _counts(token: str) -> tuple[int, int | None]:
    """Return the least and the most that ``{...}`` asks for; raises ``GrammarSyntaxError``."""
    low, comma, high = (part.strip() for part in token[1:-1].partition(","))
    lo, hi = int(low), (int(high) if high else None) if comma else int(low)
    if hi is not None and hi < lo:
        raise GrammarSyntaxError("a repetition is reversed")
    return lo, hi


class _Parser:
    """Reads tokens; groups are kept on a list, so that nesting is bounded by a count alone.

    A grammar has few different tokens, so each is understood once: ``_atoms`` and ``_repeats`` are tables.
    """

    __slots__ = ("_at", "_atoms", "_plain", "_repeats", "_tokens", "unsure")

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = _TOKEN.findall(text)
        self._at = 0
        self._plain = True
        self.unsure: dict[str, Term] = {}
        """The rules that may begin with another rule, or be empty."""
        self._atoms: dict[str, Term] = {}
        self._repeats = dict(_REPEATS)
        for token in {*self._tokens} - _MARKS:
            if (atom := _atom(token)) is not None:
                self._atoms[token] = atom
            elif token[0] == "{" and len(token) > 1:
                self._repeats[token] = _counts(token)
            elif token not in _REPEATS and token[0] not in _LINES:
                raise self._error("this is no part of a grammar", at=token)

    def parse(self) -> dict[str, Term]:
        """Return the rules by name. Raises ``GrammarSyntaxError``."""
        rules: dict[str, Term] = {}
        self._skip_lines()
        while name := self._tokens[self._at]:
            if not isinstance(self._atoms.get(name), Reference):
                raise self._error("a rule name is expected")
            if name in rules:
                raise self._error("the rule is defined twice")
            self._at += 1
            if self._tokens[self._at] != "::=":
                raise self._error('"::=" is expected')
            self._at += 1
            self._plain = True
            rules[name] = self._body()
            if not self._plain:
                self.unsure[name] = rules[name]
            self._skip_lines()
        for name, atom in self._atoms.items():
            if name not in rules and isinstance(atom, Reference):
                raise self._error("the rule that is named here is not defined", at=name)
        return rules

    def _error(self, message: str, *, at: str | None = None) -> GrammarSyntaxError:
        """Return an error with the line read, or the first that has the token ``at``."""
        before = self._tokens[: self._at if at is None else self._tokens.index(at)]
        return GrammarSyntaxError(f"line {1 + ''.join(before).count(chr(10))}: {message}")

    def _skip_lines(self) -> None:
        while self._tokens[self._at].startswith(_LINES):
            self._at += 1

    def _body(self) -> Term:  # noqa: C901 - one branch per kind of token
        """Return the alternatives from here to the end of the line, which ends a rule that has begun."""
        tokens, atoms = self._tokens, self._atoms
        around: list[tuple[list[Term], list[Term]]] = []
        ways: list[Term] = []
        series: list[Term] = []
        while piece := tokens[self._at]:
            if (atom := atoms.get(piece)) is not None:
                series.append(atom)
            elif piece in self._repeats:
                self._repeat(series)
            elif piece == "|":
                ways.append(self._series(series))
                series = []
            elif piece == "(":
                if len(around) == _DEPTH_LIMIT:
                    raise self._error("the grammar nests too deeply")
                around.append((ways, series))
                ways, series = [], []
            elif piece == ")" and around:
                group = self._either(ways, series)
                ways, series = around.pop()
                series.append(group)
            elif piece[0] not in _LINES:
                raise self._error("the end of the line is expected")
            elif series and not around:
                break
            self._at += 1
        if around:
            raise self._error("a parenthesis is not closed")
        return self._either(ways, series)

    def _repeat(self, series: list[Term]) -> None:
        """Repeat the last term of ``series`` as the token read says."""
        if not series or self._tokens[self._at - 1][0] in _LINES:
            raise self._error("there is nothing to repeat")
        lo, hi = self._repeats[self._tokens[self._at]]
        series[-1] = Repetition(part=series[-1], lo=lo, hi=hi)
        if (lo if hi is None else hi) > 1:
            check_repeats(series[-1])

    def _series(self, parts: list[Term]) -> Term:
        if not parts:
            raise self._error('an alternative is empty; write ""')
        first = parts[0]
        if not isinstance(first, Terminal) and not (isinstance(first, Literal) and first.codes):
            self._plain = False
        return parts[0] if len(parts) == 1 else Series(parts=tuple(parts))

    def _either(self, ways: list[Term], last: list[Term]) -> Term:
        """Return the alternatives ``ways`` and the series ``last``."""
        term = self._series(last)
        return Alternatives(parts=(*ways, term)) if ways else term


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
    check_recursion(parser.unsure)
    return Grammar(rules=rules)


def validate_gbnf(text: str) -> None:
    """Raise ``GrammarSyntaxError`` when ``text`` must not reach an engine; see ``parse_gbnf``."""
    parse_gbnf(text)
