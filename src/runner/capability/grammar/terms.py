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
    from collections.abc import Container, Mapping

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
_ATOMS = (Terminal, Literal, Reference)


def check_repeats(term: Term, factor: int = 1) -> None:
    """Refuse a repetition whose count, multiplied by those around it, reaches the engines' limit."""
    match term:
        case Series(parts=parts) | Alternatives(parts=parts):
            for part in parts:
                if not isinstance(part, _ATOMS):
                    check_repeats(part, factor)
        case Repetition(part=part, lo=lo, hi=hi):
            factor *= max(lo if hi is None else hi, 1)
            if factor >= REPEAT_LIMIT:
                raise GrammarSyntaxError(
                    f"a repetition reaches {REPEAT_LIMIT}, which engines refuse or unbind"
                )
            check_repeats(part, factor)
        case Terminal() | Literal() | Reference():
            return
        case _:
            assert_never(term)


def _opens(term: Term, nullable: Container[str], found: set[str]) -> bool:  # noqa: PLR0911 - one per term
    """Add to ``found`` the rules that ``term`` may begin with; return whether it may be empty."""
    match term:
        case Series(parts=parts):
            for part in parts:  # noqa: SIM110 - a generator takes twice as long, and this is most of the check
                if not _opens(part, nullable, found):
                    return False
            return True
        case Literal(codes=codes):
            return not codes
        case Reference(name=name):
            found.add(name)
            return name in nullable
        case Alternatives(parts=parts):
            return any([_opens(part, nullable, found) for part in parts])  # noqa: C419 - every part is asked
        case Repetition(part=part, lo=lo):
            return _opens(part, nullable, found) or lo == 0
        case Terminal():
            return False
    assert_never(term)


def _all_nullable(rules: Mapping[str, Term]) -> set[str]:
    """Return the rules that may be empty: the least fixed point."""
    users: dict[str, list[str]] = {}
    doubtful: list[str] = []
    for name, term in rules.items():
        others: set[str] = set()
        if _opens(term, rules, others):
            doubtful.append(name)
            for other in others:
                users.setdefault(other, []).append(name)
    found: set[str] = set()
    queue = doubtful
    while queue:
        name = queue.pop()
        if name not in found and _opens(rules[name], found, set()):
            found.add(name)
            queue.extend(users.get(name, ()))
    return found


def _is_layered(rules: Mapping[str, Term], nullable: Container[str]) -> bool:
    """Whether the rules can be taken one by one, each after those of them it may begin with (Kahn 1962)."""
    waiting: dict[str, int] = {}
    before: dict[str, list[str]] = {}
    for name, term in rules.items():
        others: set[str] = set()
        _opens(term, nullable, others)
        others &= rules.keys()
        waiting[name] = len(others)
        for other in others:
            before.setdefault(other, []).append(name)
    ready = [name for name, count in waiting.items() if not count]
    done = 0
    while ready:
        done += 1
        for name in before.get(ready.pop(), ()):
            waiting[name] -= 1
            if not waiting[name]:
                ready.append(name)
    return done == len(rules)


def check_recursion(rules: Mapping[str, Term]) -> None:
    """Refuse left recursion, which the engines' stacks cannot follow.

    Arguments: ``rules`` without those that begin with a character, which are most.
    Most grammars pass even if each of these could be empty; only where one fails must it be known which can.
    """
    if not _is_layered(rules, rules) and not _is_layered(rules, _all_nullable(rules)):
        raise GrammarSyntaxError("a rule begins with itself (left recursion)")
