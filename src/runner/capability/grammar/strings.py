# SPDX-License-Identifier: Apache-2.0
"""String shapes as GBNF.

Owns listed strings (a trie when they are many), strings that are not listed, lengths and automata. Leaves
the spelling of characters to ``terminals``.

Invariant: a term is the whole JSON string, quotes included, and accepts the set of its shape and nothing
else.
"""

from __future__ import annotations

import json
from functools import lru_cache

from .automaton import inverse, union
from .model import REPEAT_LIMIT, Ledger, StringShape
from .pieces import either_of, piece_of
from .rules import Rules, repeated
from .shapes import string_set
from .terminals import CHAR, json_chars, literal, writable

_FLAT = 8
_BLOCK = 1000
_NESTED = 16
"""The most groups within a group of one rule: a straight run of a trie is written into one."""
_QUOTE = literal('"')


class StringWriter:
    """Writes string shapes into ``rules``, each once."""

    __slots__ = ("_exits", "_ledger", "_rules", "_terms")

    def __init__(self, rules: Rules, ledger: Ledger) -> None:
        self._rules = rules
        self._ledger = ledger
        self._terms: dict[StringShape, str] = {}
        self._exits: dict[tuple[frozenset[str], bool], str] = {}

    def term(self, shape: StringShape) -> str:
        """Return the term for ``shape``, the same for the same shape; raises ``TooLargeError``."""
        if shape not in self._terms:
            self._terms[shape] = self._new_string(shape)
        return self._terms[shape]

    def _new_string(self, shape: StringShape) -> str:
        if shape.words is not None:
            return self._words(shape.words)
        self._rules.once("char", CHAR)
        if shape == StringShape():
            return self._rules.once("string", f"{_QUOTE} char* {_QUOTE}")
        if not shape.texts and not shape.barred:
            many = _chars(self._rules, shape.lo, shape.hi)
            return self._rules.add("string", f"{_QUOTE} {many} {_QUOTE}" if many else literal('""'))
        if not shape.texts and not shape.lo and shape.hi is None:
            return self._rules.add("string", f"{_QUOTE} {self._barred(shape.barred)}")
        return self._rules.add("string", f"{_QUOTE} {self._rules.adopt('s', _piece(shape))}")

    def _words(self, words: frozenset[str]) -> str:
        """Return the listed strings: flat when few, else a trie whose branches are rules."""
        texts = sorted(json.dumps(word, ensure_ascii=False) for word in words if writable(word))
        self._ledger.spend(len(texts), "enum")
        if len(texts) <= _FLAT:
            return self._rules.add("string", either_of([literal(text) for text in texts]))
        first = self._rules.reserve("string")
        work = [(first, 0, len(texts), 0)]
        while work:
            name, low, high, depth = work.pop()
            found: list[str] = []
            while low < high:
                end = low + 1
                while end < high and texts[end][depth] == texts[low][depth]:
                    end += 1
                if end == low + 1:
                    found.append(literal(texts[low][depth:]))
                else:
                    shared = _shared(texts[low], texts[end - 1], depth)
                    branch = self._rules.reserve("t")
                    found.append(f"{literal(texts[low][depth:shared])} {branch}")
                    work.append((branch, low, end, shared))
                low = end
            self._rules.define(name, either_of(found))
        return first

    def _barred(self, words: frozenset[str]) -> str:
        """Return "any string but these": a trie that any other character leaves for good."""
        trie: list[dict[str, int]] = [{}]
        ends: set[int] = set()
        for word in sorted(words):
            node = 0
            for char in word:
                if char not in trie[node]:
                    trie[node][char] = len(trie)
                    trie.append({})
                node = trie[node][char]
            ends.add(node)
        self._ledger.spend(len(trie), "size")
        tail = self._rules.once("tail", f"char* {_QUOTE}")
        leaf = self._rules.once("more", f"char {tail}")
        texts = [leaf] * len(trie)
        for node in range(len(trie) - 1, -1, -1):  # what follows a node was added after it
            if branches := trie[node]:
                ways = [
                    f"{_spelled(char)} {texts[target]}" for char, target in branches.items() if writable(char)
                ]
                body = either_of([self._off(frozenset(branches), node in ends), *ways])
                fits = len(branches) == 1 and node and body.count("(") < _NESTED
                texts[node] = f"({body})" if fits else self._rules.define(self._rules.reserve("k"), body)
        return texts[0]

    def _off(self, chars: frozenset[str], end: bool) -> str:  # noqa: FBT001 - half of the key
        """Return the rule for leaving a trie by another character than ``chars``, or by ending there."""
        key = (chars, end)
        if key not in self._exits:
            plain, *escaped = (f"{text} tail" for text in _others(chars))
            rest = [*escaped, *([] if end else [_QUOTE])]
            if len(rest) > 1:  # the same for most, so it is read once
                rest = [self._rules.add("e", either_of(rest))]
            self._exits[key] = self._rules.add("off", either_of([plain, *rest]))
        return self._exits[key]


@lru_cache(maxsize=128)
def _piece(shape: StringShape) -> str:
    """Return the rules of a shape that is not listed, after the opening quote; raises ``TooLargeError``."""
    return piece_of(string_set(shape), quoted=True)


@lru_cache(maxsize=1024)
def _spelled(char: str) -> str:
    """Return the terminal for one character of a JSON string."""
    return json_chars(((ord(char), ord(char)),))[0]


@lru_cache(maxsize=1024)
def _others(chars: frozenset[str]) -> tuple[str, ...]:
    """Return the alternatives for any character of a JSON string but ``chars``."""
    return json_chars(inverse(union([(ord(char), ord(char)) for char in chars])))


def _chars(rules: Rules, lo: int, hi: int | None) -> str:
    """Return ``lo`` to ``hi`` characters, in blocks where one repetition would be too long for engines."""
    if max(lo, hi or 0) < REPEAT_LIMIT:
        return repeated("char", lo, hi) if hi != 0 else ""
    block = rules.once("block", f"char{{{_BLOCK}}}")
    full, part = divmod(lo, _BLOCK)
    fixed = [repeated(block, full, full)] if full else []
    fixed += [repeated("char", part, part)] if part else []
    if hi is None:
        return " ".join([*fixed, "char*"])
    full, part = divmod(hi - lo, _BLOCK)
    if full > 1:  # the last full block is counted with the part, so that every length has a way
        fixed.append(repeated(block, 0, full - 1))
        part += _BLOCK
    else:
        part = hi - lo
    return " ".join([*fixed, *([repeated("char", 0, part)] if part else [])])


def _shared(one: str, other: str, start: int) -> int:
    """Return where two texts that agree up to ``start`` first differ."""
    end = start
    while end < min(len(one), len(other)) and one[end] == other[end]:
        end += 1
    return end
