# SPDX-License-Identifier: Apache-2.0
"""Characters as a person is shown them: which can be seen, how the others are written, how wide they are.

Owns the table that a question to a person and a terminal share. A character is shown as it is if Unicode
calls it printable and something can be seen of it; any other one as its number. Leaves layout to others.
Carries I1: what a person says yes to is what they saw.
"""

import unicodedata
from typing import Final

_UNSEEN: Final = frozenset(
    code
    for first, last in (
        (0x034F, 0x034F),  # combining grapheme joiner
        (0x115F, 0x1160),  # Hangul fillers
        (0x17B4, 0x17B5),  # Khmer inherent vowels
        (0x180B, 0x180F),  # Mongolian variation selectors
        (0x2800, 0x2800),  # braille without dots
        (0x3164, 0x3164),  # Hangul filler
        (0xFE00, 0xFE0F),  # variation selectors
        (0xFFA0, 0xFFA0),  # Hangul filler, half wide
        (0xFFF0, 0xFFF8),
        (0x13441, 0x13442),  # Egyptian blanks
        (0x16FE4, 0x16FE4),  # Khitan filler
        (0x1D159, 0x1D159),  # musical note without a head
        (0xE0000, 0xE0FFF),  # tags, variation selectors
    )
    for code in range(first, last + 1)
)
"""Printable characters that show nothing: those that Unicode lets a program ignore, and blanks by nature.

Source: Default_Ignorable_Code_Point in DerivedCoreProperties.txt of Unicode 15, and its code charts.
"""
_TWO_DIGITS: Final = 0xFF
_FOUR_DIGITS: Final = 0xFFFF
_FIRST_PLANE: Final = 0xFFFF
_WIDE: Final = frozenset("WFA")
"""East Asian widths that take two cells, or may: A does in terminals set for Chinese, Japanese or Korean."""


def is_seen(char: str) -> bool:
    """Return whether `char`, one character, can be seen for what it is; the space can."""
    return char.isprintable() and ord(char) not in _UNSEEN


def number_of(char: str) -> str:
    """Return the number of `char`, one character, in the notation of Python and JSON."""
    code = ord(char)
    if code <= _TWO_DIGITS:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _FOUR_DIGITS else f"\\U{code:08x}"


def cells_of(char: str) -> int:
    """Return how many terminal cells `char`, one character that is seen, takes at most: 1 or 2."""
    if ord(char) > _FIRST_PLANE or unicodedata.category(char) == "So":
        return 2  # symbols, of which terminals have tables of their own
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1
