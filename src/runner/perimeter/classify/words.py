# SPDX-License-Identifier: Apache-2.0
"""The words of a folded text: what registers and echoes compare.

Owns the cutting into words and their places. Words are lower-case ASCII letters and digits, so accents,
case, punctuation and line ends make no difference. Leaves what words mean to `registers` and `echo`.
Carries the linear bound: one pass of C code over the text, and a second only where something was found.
"""

from collections.abc import Sequence
from typing import Final

_TO_WORDS: Final = bytes(code if bytes([code]).isalnum() else 0x20 for code in bytes(range(256)).lower())
"""Letters become small, digits stay, and everything else is a space."""


def words_of(data: bytes) -> list[bytes]:
    """Return the words of `data`, a folded text, in order."""
    return data.translate(_TO_WORDS).split()


def places_of(data: bytes, words: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return where each of `words`, the words of `data`, stands: half-open ranges of bytes."""
    lowered, position = data.translate(_TO_WORDS), 0
    places: list[tuple[int, int]] = []
    for word in words:
        start = lowered.index(word, position)
        position = start + len(word)
        places.append((start, position))
    return places
