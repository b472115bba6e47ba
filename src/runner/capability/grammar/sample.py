# SPDX-License-Identifier: Apache-2.0
"""Texts of a grammar, at random: what a model under it may write, whatever its mind.

Owns the random walk. Long texts are steered to an end by the shallowest alternatives, so every walk ends.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from .gbnf import parse_gbnf
from .terms import Alternatives, Literal, Reference, Repetition, Series, Term, Terminal

if TYPE_CHECKING:
    from .automaton import Ranges

_FREE_STEPS = 300
_UNREACHED = 10**6
_ASCII_SHARE = 0.8
_LAST_ASCII = 0x7E
_SURROGATES = range(0xD800, 0xE000)


def sample(gbnf: str, seed: int, count: int) -> list[str]:
    """Return ``count`` texts of the grammar ``gbnf``, the same ones for the same ``seed``.

    Raises ``GrammarSyntaxError`` when the grammar does not parse (see ``parse_gbnf``).
    """
    source = random.Random(seed)  # noqa: S311 - not a secret
    rules = parse_gbnf(gbnf).rules
    depths = _depths(rules)
    return [_text(rules, depths, source) for _ in range(count)]


def _depth(term: Term, depths: dict[str, int]) -> int:
    match term:
        case Reference(name=name):
            return depths[name] + 1
        case Series(parts=parts):
            return max((_depth(part, depths) for part in parts), default=0)
        case Alternatives(parts=parts):
            return min(_depth(part, depths) for part in parts)
        case Repetition(part=part, lo=lo):
            return _depth(part, depths) if lo else 0
    return 0


def _depths(rules: dict[str, Term]) -> dict[str, int]:
    depths = dict.fromkeys(rules, _UNREACHED)
    while True:
        after = {name: min(depths[name], _depth(term, depths)) for name, term in rules.items()}
        if after == depths:
            return depths
        depths = after


def _char(ranges: Ranges, source: random.Random) -> str:
    low, high = source.choice(ranges)
    if source.random() < _ASCII_SHARE:
        high = min(high, max(low, _LAST_ASCII))
    code = source.randint(low, high)
    return chr(code) if code not in _SURROGATES else chr(low)


def _text(rules: dict[str, Term], depths: dict[str, int], source: random.Random) -> str:
    out: list[str] = []
    stack: list[Term] = [rules["root"]]
    steps = 0
    while stack:
        steps += 1
        tight = steps > _FREE_STEPS
        match stack.pop():
            case Terminal(ranges=ranges):
                out.append(_char(ranges, source))
            case Literal(codes=codes):
                out.extend(map(chr, codes))
            case Reference(name=name):
                stack.append(rules[name])
            case Series(parts=parts):
                stack.extend(reversed(parts))
            case Alternatives(parts=parts):
                stack.append(
                    min(parts, key=lambda part: _depth(part, depths)) if tight else source.choice(parts)
                )
            case Repetition(part=part, lo=lo, hi=hi):
                most = lo + source.choice([0, 0, 1, 2, 3])
                stack.extend([part] * (lo if tight else most if hi is None else min(most, hi)))
    return "".join(out)
