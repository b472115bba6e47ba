# SPDX-License-Identifier: Apache-2.0
"""Slips of the pen: which of the words that there are was meant by one that is none of them.

Owns the distance of two words. Pure. Leaves what to do about a slip to whoever judges a profile.
"""

from collections.abc import Iterable
from typing import Final

_LONGEST: Final = 64
"""Characters of a word that are compared."""


def most_like(word: str, known: Iterable[str], *, slips: int) -> str | None:
    """Return that of `known` which is `word` but for the fewest slips, at most `slips`; None for none."""
    near = {each: _slips(word[:_LONGEST], each) for each in known}
    found = min(near, key=lambda each: near[each], default=None)
    return None if found is None or near[found] > slips else found


def _slips(word: str, other: str) -> int:
    """Return how many slips lead from one word to the other.

    A slip is a character too many, too few or wrong, or two in the wrong order, none touched twice: the
    restricted distance of Damerau (1964), by the algorithm of Wagner and Fischer (1974).
    """
    older: list[int] = []
    before = list(range(len(other) + 1))
    for number, char in enumerate(word, start=1):
        row = [number]
        for index, each in enumerate(other):
            row.append(min(before[index] + (char != each), before[index + 1] + 1, row[index] + 1))
            if number > 1 and index and (word[number - 2], char) == (each, other[index - 1]):
                row[-1] = min(row[-1], older[index - 1] + 1)
        older, before = before, row
    return before[-1]
