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


_FEW: Final = 8


class Starts:
    """Where words of one folded text begin, made out when it is asked for.

    The first few are found by cutting the text up to them, which is fast where only a name or two stand in
    it; then all are made out, so that a text full of names takes no time but that.
    """

    __slots__ = ("_all", "_asked", "_behind", "_data", "_first")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._all: list[int] = []
        self._asked = 0
        self._first = 0
        self._behind = data.translate(_TO_WORDS).lstrip()
        """What is left of the text from word `_first` on."""

    def __getitem__(self, index: int) -> int:
        """Return at which byte word `index` begins; there is such a word."""
        self._asked += 1
        if self._asked > _FEW:
            self._all = self._all or starts_of(self._data)
            return self._all[index]
        if index < self._first:
            self._first, self._behind = 0, self._data.translate(_TO_WORDS).lstrip()
        if index > self._first:
            self._behind = self._behind.split(None, index - self._first)[-1]
            self._first = index
        return len(self._data) - len(self._behind)
