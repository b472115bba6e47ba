# SPDX-License-Identifier: Apache-2.0
"""The words of a folded text: what registers and echoes compare.

Owns the cutting into words and their places. Words are lower-case ASCII letters and digits, so accents,
case, punctuation and line ends make no difference. Leaves what words mean to `registers` and `echo`.
Carries the linear bound: one pass of C code over the text, and another only where something was found. Those
of a long text can be cut part by part, in no more room than a cache has.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, compress
from typing import Final

_TO_WORDS: Final = bytes(code if bytes([code]).isalnum() else 0x20 for code in bytes(range(256)).lower())
"""Letters become small, digits stay, and everything else is a space."""


def words_of(data: bytes) -> list[bytes]:
    """Return the words of `data`, a folded text, in order."""
    return data.translate(_TO_WORDS).split()


PART: Final = 1 << 15
"""Bytes of a text whose words are cut at a time."""
_BETWEEN: Final = re.compile(rb"[^0-9A-Za-z]")


def parts_of(data: bytes) -> Iterator[bytes]:
    """Yield `data`, a folded text, in parts of `PART` bytes, each up to where a word ends."""
    start = 0
    while start < len(data):
        between = _BETWEEN.search(data, start + PART)
        end = len(data) if between is None else between.start()
        yield data[start:end]
        start = end


def starts_of(data: bytes) -> list[int]:
    """Return at which byte of `data`, a folded text, each of its words begins."""
    parts = data.translate(_TO_WORDS).split(b" ")
    starts = accumulate(map((1).__add__, map(len, parts)), initial=0)
    return list(compress(starts, parts))


_FEW: Final = 32


class Starts:
    """Where words of one folded text begin, made out when it is asked for.

    The first few are looked for, each from the one before, which is fast where only some names stand in it.
    Then all are made out, so that a text full of names takes no time but that.
    """

    __slots__ = ("_all", "_data", "_found", "_index", "_plain", "_words")

    def __init__(self, data: bytes, words: Sequence[bytes]) -> None:
        """Take a folded text, and its words."""
        self._data = data
        self._words = words
        self._plain = b" %b " % data.translate(_TO_WORDS)
        self._all: list[int] = []
        self._found: dict[int, int] = {}
        self._index = -1
        """The word that was looked for last."""

    def __getitem__(self, index: int) -> int:
        """Return at which byte word `index` begins; there is such a word."""
        if index not in self._found:
            if len(self._found) >= _FEW:
                self._all = self._all or starts_of(self._data)
                return self._all[index]
            self._found[index] = self._look_for(index)
            self._index = index
        return self._found[index]

    def _look_for(self, index: int) -> int:
        """Return where word `index` begins, from the word looked for last on, or from the first."""
        before = self._index if self._index < index else -1
        start, word = self._found.get(before, -1), self._words[index]
        for _ in range(self._words[before + 1 : index + 1].count(word)):
            start = self._plain.find(b" %b " % word, start + 1)
        return start
