# SPDX-License-Identifier: Apache-2.0
"""The words of a folded text: what registers and echoes compare.

Owns the cutting into words and their places. Words are lower-case ASCII letters and digits, so accents,
case, punctuation and line ends make no difference. Leaves what words mean to `registers` and `echo`.
Carries the linear bound: one pass of C code over the text, and another only where something was found.
"""

from itertools import accumulate, compress
from typing import Final

_TO_WORDS: Final = bytes(code if bytes([code]).isalnum() else 0x20 for code in bytes(range(256)).lower())
"""Letters become small, digits stay, and everything else is a space."""


def words_of(data: bytes) -> list[bytes]:
    """Return the words of `data`, a folded text, in order."""
    return data.translate(_TO_WORDS).split()


def starts_of(data: bytes) -> list[int]:
    """Return at which byte of `data`, a folded text, each of its words begins."""
    parts = data.translate(_TO_WORDS).split(b" ")
    starts = accumulate(map((1).__add__, map(len, parts)), initial=0)
    return list(compress(starts, parts))
