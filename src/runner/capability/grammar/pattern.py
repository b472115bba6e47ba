# SPDX-License-Identifier: Apache-2.0
"""Reading a regular expression of JSON Schema (an ECMA-262 subset).

Owns syntax and the meaning of classes. The specification means ECMA-262 and validators use what their
language has, so a class has a narrow reading, what both take for it, and a wide one, what either may take
for it. Leaves sets of strings to ``regex``.

Invariant: a construct outside the subset raises ``UnsupportedPatternError``; it is never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from .automaton import TOP, Ranges, inverse, union
from .model import TooLargeError

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


Regex: TypeAlias = Chars | Sequence | Choice | Repeat | Anchor | Look


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
)
_NARROW = {"d": _DIGIT, "w": _WORD, "s": _SPACE, ".": inverse(((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)))}
"""What ECMA-262 and Python's ``re`` both take for a class."""


_WIDE = {
    # Letters of all alphabets are too many ranges for an engine: beyond ASCII, everything may be a letter.
    "w": union([*_WORD, (0x80, TOP)]),
    "s": union([*_SPACE, (0x1C, 0x1F), (0x85, 0x85), (0xFEFF, 0xFEFF)]),
    ".": inverse(((0x0A, 0x0A),)),
}
"""What either of them may take for a class; digits are looked up when first needed."""


@lru_cache(maxsize=1)
def _all_digits() -> Ranges:
    everything = "".join(map(chr, range(TOP + 1)))
    return tuple((match.start(), match.end() - 1) for match in re.finditer(r"\d+", everything))


def _wide(name: str) -> Ranges:
    return _all_digits() if name == "d" else _WIDE[name]


_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_EMPTY = Sequence(parts=())


class Parser:
    """A recursive-descent reader of one pattern, bounded in depth."""

    __slots__ = ("_at", "_depth", "_text", "_wide")

    def __init__(self, text: str, *, wide: bool) -> None:
        self._text = text
        self._wide = wide
        self._at = 0
        self._depth = 0

    def parse(self) -> Regex:
        """Return the whole pattern. Raises ``UnsupportedPatternError`` and ``TooLargeError``."""
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
        if char == "(":
            return self._group()
        if char == "^":
            return Anchor(end=False)
        if char == "$":
            # Python's "$" also stands before a last line feed.
            newline = Sequence(parts=(Chars(ranges=((10, 10),)), Anchor(end=True)))
            return Choice(parts=(Anchor(end=True), newline)) if self._wide else Anchor(end=True)
        return Chars(ranges=self._one(char))

    def _one(self, char: str) -> Ranges:
        match char:
            case "[":
                return self._class()
            case ".":
                return self._named_class(".", wide=self._wide)
            case "\\":
                return self._escape(wide=self._wide)
            case "*" | "+" | "?":
                raise UnsupportedPatternError("nothing to repeat")
        return ((ord(char), ord(char)),)

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

    def _named_class(self, name: str, *, wide: bool) -> Ranges:
        return _wide(name) if wide else _NARROW[name]

    def _escape(self, *, wide: bool) -> Ranges:
        char = self._next()
        if char in ("d", "w", "s"):
            return self._named_class(char, wide=wide)
        if char in ("D", "W", "S"):
            return inverse(self._named_class(char.lower(), wide=not wide))
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
        wide = self._wide is not negated
        while not self._take("]"):
            first = self._class_part(wide=wide)
            if self._peek() == "-" and self._peek(2) not in ("-]", "-"):
                mark = self._at
                self._at += 1
                last = self._class_part(wide=wide)
                if (
                    len(first) == 1
                    and len(last) == 1
                    and first[0][0] == first[0][1]
                    and last[0][0] == last[0][1]
                ):
                    if last[0][0] < first[0][0]:
                        raise UnsupportedPatternError("a range is reversed")
                    ranges.append((first[0][0], last[0][0]))
                    continue
                self._at = mark + 1  # a class stands at one end: the hyphen is itself
                ranges.append((0x2D, 0x2D))
            ranges.extend(first)
        merged = union(ranges)
        return inverse(merged) if negated else merged

    def _class_part(self, *, wide: bool) -> Ranges:
        char = self._next()
        if char != "\\":
            return ((ord(char), ord(char)),)
        if self._take("b"):
            return ((8, 8),)
        return self._escape(wide=wide)
