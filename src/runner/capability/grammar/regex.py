# SPDX-License-Identifier: Apache-2.0
"""Regular expressions of JSON Schema (an ECMA-262 subset) as automata.

Owns parsing and the meaning of a pattern: searched anywhere unless anchored, ASCII ``\\d`` and ``\\w``. Leaves
what to do with an unsupported pattern to the caller.

Invariant: a construct outside the subset raises ``UnsupportedPatternError``; it is never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .automaton import STATE_LIMIT, TOP, Dfa, Ranges, boundaries, explore, product
from .model import TooLargeError

_NFA_LIMIT = 6000
_REPEAT_LIMIT = 2000
_DEPTH_LIMIT = 40


class UnsupportedPatternError(ValueError):
    """The pattern is invalid, or uses something outside the subset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chars:
    """One code point out of ``ranges``."""

    ranges: Ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """Parts in order."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of the parts."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """``part`` between ``lo`` and ``hi`` times."""

    part: Regex
    lo: int
    hi: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The start or the end of the text."""

    end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What follows matches ``part``, or does not."""

    part: Regex
    holds: bool


type Regex = Chars | Sequence | Choice | Repeat | Anchor | Look


def union(ranges: list[tuple[int, int]]) -> Ranges:
    """Return ``ranges`` ascending, merged and disjoint."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def inverse(ranges: Ranges) -> Ranges:
    """Return every code point outside ``ranges``."""
    result = []
    low = 0
    for first, last in ranges:
        if first > low:
            result.append((low, first - 1))
        low = last + 1
    if low <= TOP:
        result.append((low, TOP))
    return tuple(result)


_ANY: Ranges = ((0, TOP),)
_DIGIT: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
_DOT = inverse(((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)))
_CLASSES = {
    "d": _DIGIT,
    "w": _WORD,
    "s": _SPACE,
    "D": inverse(_DIGIT),
    "W": inverse(_WORD),
    "S": inverse(_SPACE),
}
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_EMPTY = Sequence(parts=())


class _Parser:
    """A recursive-descent reader of one pattern, bounded in depth."""

    __slots__ = ("_at", "_depth", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def parse(self) -> Regex:
        regex = self._choice()
        if self._at < len(self._text):
            raise UnsupportedPatternError("unbalanced parenthesis")
        return regex

    def _peek(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _take(self, token: str) -> bool:
        if self._text.startswith(token, self._at):
            self._at += len(token)
            return True
        return False

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise UnsupportedPatternError("pattern ends early")
        self._at += 1
        return char

    def _choice(self) -> Regex:
        self._depth += 1
        if self._depth > _DEPTH_LIMIT:
            raise UnsupportedPatternError("pattern nests too deeply")
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Choice(parts=tuple(parts))

    def _sequence(self) -> Regex:
        parts: list[Regex] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._quantified(self._term()))
        return parts[0] if len(parts) == 1 else Sequence(parts=tuple(parts))

    def _term(self) -> Regex:
        char = self._next()
        match char:
            case "^":
                return Anchor(end=False)
            case "$":
                return Anchor(end=True)
            case "(":
                return self._group()
            case "[":
                return Chars(ranges=self._class())
            case ".":
                return Chars(ranges=_DOT)
            case "\\":
                return Chars(ranges=self._escape())
            case "*" | "+" | "?":
                raise UnsupportedPatternError("nothing to repeat")
            case _:
                return Chars(ranges=((ord(char), ord(char)),))

    def _group(self) -> Regex:
        look: bool | None = None
        if self._take("?="):
            look = True
        elif self._take("?!"):
            look = False
        elif self._peek() == "?" and not self._take("?:"):
            self._named()
        regex = self._choice()
        if not self._take(")"):
            raise UnsupportedPatternError("unbalanced parenthesis")
        return regex if look is None else Look(part=regex, holds=look)

    def _named(self) -> None:
        if not self._take("?<") or self._peek() in ("=", "!"):
            raise UnsupportedPatternError("look-behind and inline flags are not supported")
        while self._next() != ">":
            pass

    def _quantified(self, regex: Regex) -> Regex:
        bounds = self._bounds()
        if bounds is None:
            return regex
        if isinstance(regex, Anchor | Look):
            raise UnsupportedPatternError("an assertion is repeated")
        self._take("?")
        if self._peek() in ("*", "+", "?") or (self._peek() == "{" and self._bounds() is not None):
            raise UnsupportedPatternError("a quantifier is quantified")
        return Repeat(part=regex, lo=bounds[0], hi=bounds[1])

    def _bounds(self) -> tuple[int, int | None] | None:
        if self._take("*"):
            return (0, None)
        if self._take("+"):
            return (1, None)
        if self._take("?"):
            return (0, 1)
        if self._peek() != "{":
            return None
        end = self._text.find("}", self._at)
        low, comma, high = self._text[self._at + 1 : end].partition(",") if end > 0 else ("", "", "")
        if not (low.isascii() and low.isdigit()) or not (high == "" or (high.isascii() and high.isdigit())):
            return None  # a literal brace
        if max(len(low), len(high)) > 4:  # noqa: PLR2004 - four digits already pass every limit
            raise TooLargeError("pattern")
        self._at = end + 1
        lo = int(low)
        hi = lo if not comma else (int(high) if high else None)
        if hi is not None and hi < lo:
            raise UnsupportedPatternError("a quantifier is reversed")
        return (lo, hi)

    def _escape(self) -> Ranges:
        char = self._next()
        if char in _CLASSES:
            return _CLASSES[char]
        code = self._code(char)
        return ((code, code),)

    def _code(self, char: str) -> int:
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "0" and not self._peek().isdigit():
            return 0
        if char == "x":
            return self._hex(2)
        if char == "u":
            return self._unicode()
        if char == "c" and self._peek().isascii() and self._peek().isalpha():
            return ord(self._next()) % 32
        if char.isascii() and char.isalnum():
            raise UnsupportedPatternError("this escape is not supported")
        return ord(char)

    def _hex(self, digits: int) -> int:
        text = self._peek(digits)
        if len(text) != digits or any(char not in "0123456789abcdefABCDEF" for char in text):
            raise UnsupportedPatternError("a hexadecimal escape is incomplete")
        self._at += digits
        return int(text, 16)

    def _unicode(self) -> int:
        if not self._take("{"):
            code = self._hex(4)
            if 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004 - the surrogates
                raise UnsupportedPatternError("a surrogate is escaped")
            return code
        end = self._text.find("}", self._at)
        code = self._hex(min(max(end - self._at, 1), 8))
        if not self._take("}") or code > TOP:
            raise UnsupportedPatternError("a code point escape is malformed")
        return code

    def _class(self) -> Ranges:
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        while not self._take("]"):
            first = self._class_part()
            if self._peek() == "-" and self._peek(2) not in ("-]", "-"):
                mark = self._at
                self._at += 1
                last = self._class_part()
                if len(first) == 1 and len(last) == 1 and first[0][0] == first[0][1] and last[0][0] == last[0][1]:
                    if last[0][0] < first[0][0]:
                        raise UnsupportedPatternError("a range is reversed")
                    ranges.append((first[0][0], last[0][0]))
                    continue
                self._at = mark + 1  # a class stands at one end: the hyphen is itself
                ranges.append((0x2D, 0x2D))
            ranges.extend(first)
        merged = union(ranges)
        return inverse(merged) if negated else merged

    def _class_part(self) -> Ranges:
        char = self._next()
        if char != "\\":
            return ((ord(char), ord(char)),)
        if self._take("b"):
            return ((8, 8),)
        return self._escape()


class _Nfa:
    """A Thompson automaton: plain, start-only and end-only empty moves, and moves on ranges."""

    __slots__ = ("at_end", "at_start", "chars", "empty")

    def __init__(self) -> None:
        self.empty: list[list[int]] = []
        self.at_start: dict[int, list[int]] = {}
        self.at_end: dict[int, list[int]] = {}
        self.chars: dict[int, tuple[Ranges, int]] = {}

    def new(self) -> int:
        if len(self.empty) >= _NFA_LIMIT:
            raise TooLargeError("pattern")
        self.empty.append([])
        return len(self.empty) - 1

    def add(self, regex: Regex, start: int) -> int:
        """Append ``regex`` after ``start`` and return where it ends."""
        match regex:
            case Chars(ranges=ranges):
                here, end = self.new(), self.new()
                self.empty[start].append(here)
                self.chars[here] = (ranges, end)
                return end
            case Sequence(parts=parts):
                for part in parts:
                    start = self.add(part, start)
                return start
            case Choice(parts=parts):
                end = self.new()
                for part in parts:
                    begin = self.new()
                    self.empty[start].append(begin)
                    self.empty[self.add(part, begin)].append(end)
                return end
            case Repeat():
                return self._repeat(regex, start)
            case Anchor(end=at_end):
                end = self.new()
                (self.at_end if at_end else self.at_start).setdefault(start, []).append(end)
                return end
            case Look():
                raise UnsupportedPatternError("a look-ahead stands elsewhere than at the start")

    def _repeat(self, regex: Repeat, start: int) -> int:
        for _ in range(regex.lo):
            start = self.add(regex.part, start)
        if regex.hi is None:
            loop = self.new()
            self.empty[start].append(loop)
            self.empty[self.add(regex.part, loop)].append(loop)
            return loop
        end = self.new()
        self.empty[start].append(end)
        for _ in range(regex.hi - regex.lo):
            start = self.add(regex.part, start)
            self.empty[start].append(end)
        return end

    def closure(self, states: frozenset[int], *, start: bool = False, end: bool = False) -> frozenset[int]:
        found = set(states)
        queue = list(states)
        while queue:
            state = queue.pop()
            targets = list(self.empty[state])
            if start:
                targets += self.at_start.get(state, ())
            if end:
                targets += self.at_end.get(state, ())
            for target in targets:
                if target not in found:
                    found.add(target)
                    queue.append(target)
        return frozenset(found)


def _determinise(regex: Regex) -> Dfa:
    """Search for ``regex`` anywhere: any characters, the expression, any characters."""
    anything = Repeat(part=Chars(ranges=_ANY), lo=0, hi=None)
    nfa = _Nfa()
    begin = nfa.new()
    accept = nfa.add(Sequence(parts=(anything, regex, anything)), begin)
    starts = boundaries(pair for ranges, _ in nfa.chars.values() for pair in ranges)
    index = {start: position for position, start in enumerate(starts)}
    reach: dict[int, tuple[tuple[tuple[int, int], ...], int]] = {}
    for state, (ranges, target) in nfa.chars.items():
        spans = tuple((index[low], index[high + 1] if high < TOP else len(starts)) for low, high in ranges)
        reach[state] = (spans, target)
    first = nfa.closure(frozenset({begin}), start=True)
    rows: dict[frozenset[int], list[frozenset[int]]] = {}

    def row(state: frozenset[int]) -> list[frozenset[int]]:
        hit: list[set[int]] = [set() for _ in starts]
        for member in state:
            for low, high in reach[member][0] if member in reach else ():
                for position in range(low, high):
                    hit[position].add(reach[member][1])
        closed: dict[frozenset[int], frozenset[int]] = {}
        for targets in map(frozenset, hit):
            if targets not in closed:
                closed[targets] = nfa.closure(targets)
        return [closed[frozenset(targets)] for targets in hit]

    def step(state: frozenset[int], symbol: int) -> frozenset[int] | None:
        if accept in state:
            return state  # the tail takes anything
        if state not in rows:
            rows[state] = row(state)
        return rows[state][symbol] or None

    def accepting(state: frozenset[int]) -> bool:
        return accept in nfa.closure(state, start=state == first, end=True)

    return explore(starts=starts, first=first, step=step, accepting=accepting, limit=STATE_LIMIT)


@lru_cache(maxsize=512)
def _outcome(pattern: str) -> Dfa | UnsupportedPatternError | TooLargeError:
    """Read ``pattern`` once; a failure is kept like a result, since it may have cost as much."""
    try:
        return _read(pattern)
    except (UnsupportedPatternError, TooLargeError) as error:
        return error


def language(pattern: str) -> Dfa:
    """Return the set of strings in which ``pattern`` is found.

    Leading look-aheads after ``^`` become intersections and differences, which is what they mean there.

    Raises ``UnsupportedPatternError`` outside the subset and ``TooLargeError`` past the bounds.
    """
    outcome = _outcome(pattern)
    if isinstance(outcome, UnsupportedPatternError):
        raise UnsupportedPatternError(*outcome.args)
    if isinstance(outcome, TooLargeError):
        raise TooLargeError(outcome.keyword)
    return outcome


def _read(pattern: str) -> Dfa:
    regex = _Parser(pattern).parse()
    parts = regex.parts if isinstance(regex, Sequence) else (regex,)
    if not parts or parts[0] != Anchor(end=False):
        return _determinise(regex)
    looks = 1
    while looks < len(parts) and isinstance(parts[looks], Look):
        looks += 1
    result = _determinise(Sequence(parts=(parts[0], *parts[looks:])))
    for look in parts[1:looks]:
        if isinstance(look, Look):
            ahead = _determinise(Sequence(parts=(Anchor(end=False), look.part)))
            result = product(result, ahead, without=not look.holds)
    return result
