# SPDX-License-Identifier: Apache-2.0
r"""Terminals of GBNF: literals and character classes, as JSON text spells characters.

Owns escaping. Everything is written in ASCII, with the escapes that every GBNF dialect reads: ``\u`` and
never ``\x``, of which xgrammar takes every hexadecimal digit that follows, as C does, and not two. Leaves
structure to the emitters.

Invariant: inside a JSON string a control character, a quote and a backslash can only come out escaped, and
each character has exactly one spelling, so that lengths count characters.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from .automaton import inverse, union

if TYPE_CHECKING:
    from .automaton import Ranges

_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;/{}()<>=+*#@!?%&$~|'`")
_SPACE, _QUOTE, _BACKSLASH, _ASCII_END = 0x20, 0x22, 0x5C, 0x80
_SHORT = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r"}
_BASIC, _TOP = 0xFFFF, 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_RAW: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, _TOP))

CHAR = r"""[^"\\\u0000-\u001f] | "\\" ["\\bfnrt] | "\\u00" [01] [0-9a-f]"""
"""Any character of a JSON string."""


def _code(code: int) -> str:
    if chr(code) in _SAFE:
        return chr(code)
    return f"\\u{code:04x}" if code <= _BASIC else f"\\U{code:08x}"


class _Spelling(dict[int, str]):
    """How a literal spells each code point: a table for ASCII, worked out beyond it."""

    def __missing__(self, code: int) -> str:
        if _SURROGATES[0] <= code <= _SURROGATES[1]:
            raise ValueError("text: a lone surrogate has no UTF-8 form; remove it")
        return _code(code)


_SPELLING = _Spelling({code: _code(code) for code in range(_ASCII_END)})
_SPELLING.update({ord('"'): '\\"', ord("\\"): "\\\\", **{ord(char): char for char in "-[]^"}})


def literal(text: str) -> str:
    """Return the GBNF terminal for exactly ``text``.

    Arguments: ``text`` of Unicode characters, any length. Raises ``ValueError`` for a lone surrogate, which
    no UTF-8 stream can carry.
    """
    return f'"{text.translate(_SPELLING)}"'


def json_literal(text: str) -> str:
    """Return the terminal for ``text`` as a JSON string, quotes included; raises as ``literal`` does."""
    return literal(json.dumps(text, ensure_ascii=False))


def writable(text: str) -> bool:
    """Whether ``text`` has a UTF-8 form."""
    return text.isascii() or not any(_SURROGATES[0] <= ord(char) <= _SURROGATES[1] for char in text)


def char_class(ranges: Ranges) -> str:
    """Return the class of ``ranges``, negated where that is shorter and leaves out ASCII only.

    A model may write one character as several tokens. Of a beginning of one, llama.cpp denies a negated class
    as soon as anything it leaves out begins so too: without U+0085 there is no degree sign either.
    """
    left_out = inverse(ranges)
    negated = bool(left_out) and left_out[-1][1] < _ASCII_END
    parts = []
    for low, high in left_out if negated else ranges:
        parts.append(_code(low) if low == high else f"{_code(low)}-{_code(high)}")
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _within(ranges: Ranges, limits: Ranges) -> Ranges:
    found = []
    for low, high in ranges:
        for first, last in limits:
            if max(low, first) <= min(high, last):
                found.append((max(low, first), min(high, last)))
    return union(found)


@lru_cache(maxsize=4096)
def json_chars(ranges: Ranges) -> tuple[str, ...]:
    """Return the alternatives that spell one character of ``ranges`` inside a JSON string."""
    alternatives = []
    raw = _within(ranges, _RAW)
    if raw:
        (low, high), *more = raw
        single = low == high and not more
        alternatives.append(literal(chr(low)) if single else char_class(raw))
    escaped = [code for low, high in ranges for code in range(low, min(high, _BACKSLASH) + 1)]
    controls = [code for code in escaped if code < _SPACE]
    letters = [chr(code) for code in escaped if code in (_QUOTE, _BACKSLASH)]
    letters += [_SHORT[code] for code in controls if code in _SHORT]
    if len(letters) == 1:
        alternatives.append(literal("\\" + letters[0]))
    elif letters:
        inside = "".join(
            "\\\\" if letter == "\\" else '\\"' if letter == '"' else letter for letter in letters
        )
        alternatives.append(f'"\\\\" [{inside}]')
    if len(controls) == _SPACE:
        alternatives.append(r'"\\u00" [01] [0-9a-f]')
    else:
        alternatives += [literal(f"\\u{code:04x}") for code in controls if code not in _SHORT]
    return tuple(alternatives)


def json_char(ranges: Ranges) -> str:
    """Return one term that spells one character of ``ranges``, in parentheses when it has several."""
    alternatives = json_chars(ranges)
    if len(alternatives) == 1 and not alternatives[0].startswith('"\\\\'):
        return alternatives[0]
    return (
        f"({' | '.join(alternatives)})"
        if len(alternatives) > 1 or " " in alternatives[0]
        else alternatives[0]
    )
