# SPDX-License-Identifier: Apache-2.0
"""Parsed GBNF, and the checks on it.

Owns the terms of a rule, the check on repetitions and the one on left recursion. Leaves syntax to ``gbnf``.

Invariant: what passes here is refused or unbounded by no engine for its counts, and loops none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

from .model import REPEAT_LIMIT

if TYPE_CHECKING:
    from .automaton import Ranges


class GrammarSyntaxError(ValueError):
    """The grammar does not parse, or uses what some engine refuses; the message has the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """One code point out of ``ranges``."""

    ranges: Ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """Exactly these code points; none is the empty text."""

    codes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A rule by name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Parts in order; none is the empty text."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternatives:
    """One of the parts."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """``part`` between ``lo`` and ``hi`` times; ``None`` is without end."""

    part: Term
    lo: int
    hi: int | None


Term: TypeAlias = Terminal | Literal | Reference | Series | Alternatives | Repetition


def check_repeats(term: Term, factor: int) -> None:
    """Refuse a repetition whose count, multiplied by those around it, reaches the engines' limit."""
    match term:
        case Terminal() | Literal() | Reference():
            return
        case Series(parts=parts) | Alternatives(parts=parts):
            for part in parts:
                check_repeats(part, factor)
        case Repetition(part=part, lo=lo, hi=hi):
            factor *= max(lo if hi is None else hi, 1)
            if factor >= REPEAT_LIMIT:
                raise GrammarSyntaxError(
                    f"a repetition reaches {REPEAT_LIMIT}, which engines refuse or unbind"
                )
            check_repeats(part, factor)
        case _:
            assert_never(term)


def _nullable(term: Term, known: set[str]) -> bool:
    match term:
        case Terminal():
            return False
        case Literal(codes=codes):
            return not codes
        case Reference(name=name):
            return name in known
        case Series(parts=parts):
            return all(_nullable(part, known) for part in parts)
        case Alternatives(parts=parts):
            return any(_nullable(part, known) for part in parts)
        case Repetition(part=part, lo=lo):
            return lo == 0 or _nullable(part, known)
    assert_never(term)


def _left(term: Term, nullable: set[str]) -> set[str]:
    """Return the rules that ``term`` may begin with."""
    match term:
        case Reference(name=name):
            return {name}
        case Series(parts=parts):
            found: set[str] = set()
            for part in parts:
                found |= _left(part, nullable)
                if not _nullable(part, nullable):
                    break
            return found
        case Alternatives(parts=parts):
            return set[str]().union(*(_left(part, nullable) for part in parts))
        case Repetition(part=part):
            return _left(part, nullable)
    return set()


def _all_nullable(rules: dict[str, Term], users: dict[str, list[str]]) -> set[str]:
    """Return the rules that may be empty; ``users`` are the rules that name each rule."""
    found: set[str] = set()
    queue = list(rules)
    while queue:
        name = queue.pop()
        if name not in found and _nullable(rules[name], found):
            found.add(name)
            queue.extend(users.get(name, ()))
    return found


def check_recursion(rules: dict[str, Term], used: dict[str, set[str]]) -> None:
    """Refuse left recursion, which the engines' stacks cannot follow."""
    users: dict[str, list[str]] = {}
    for name, others in used.items():
        for other in others:
            users.setdefault(other, []).append(name)
    nullable = _all_nullable(rules, users)
    waiting = {name: _left(term, nullable) for name, term in rules.items()}
    counts = {name: len(left) for name, left in waiting.items()}
    before: dict[str, list[str]] = {}
    for name, left in waiting.items():
        for other in left:
            before.setdefault(other, []).append(name)
    ready = [name for name, count in counts.items() if not count]
    done = 0
    while ready:
        done += 1
        for name in before.get(ready.pop(), ()):
            counts[name] -= 1
            if not counts[name]:
                ready.append(name)
    if done < len(rules):
        raise GrammarSyntaxError("a rule begins with itself (left recursion)")
