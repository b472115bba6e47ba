# SPDX-License-Identifier: Apache-2.0
"""The one place of this room that touches google-re2: compiled patterns and the prefilter over all of them.

Owns the options (one byte per character, no logging of patterns or text) and the guard around the
set automaton. Leaves what the patterns mean to the rules.
Carries the bound behind I6: RE2 has no backtracking, so hostile text cannot stall the gate; and it
fails closed: an automaton that ran out of memory counts as "every pattern may match".
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import re2

_SET_MEMORY: Final = 64 << 20
"""Bytes the set automaton may use before it starts over with an empty cache."""


Span = tuple[int, int]
"""A half-open range of bytes; (-1, -1) for a group that took no part."""


class Pattern:
    """A compiled pattern over bytes: what is used of google-re2, without its objects for each match."""

    __slots__ = ("_anchor", "_compiled", "groups")

    def __init__(self, pattern: str) -> None:
        """Compile `pattern`; raise `ValueError` when RE2 refuses it."""
        try:
            whole = re2.compile(pattern.encode("ascii"), _options())
        except re2.error as error:
            raise ValueError(
                "a classifier pattern is not RE2 syntax: no look-around, no back-reference"
            ) from error
        self.groups: int = whole.groups
        self._compiled = whole._regexp  # noqa: SLF001 - the wrapper's objects cost more than the search itself
        self._anchor = re2._Anchor.UNANCHORED  # noqa: SLF001 - as above

    def search(self, data: bytes, start: int = 0) -> list[Span] | None:
        """Return the leftmost match from `start` on: the range of each group, the whole first."""
        spans: list[Span] = self._compiled.Match(self._anchor, data, start, len(data))
        return None if spans[0] == _NOWHERE else spans

    def finditer(self, data: bytes) -> Iterator[list[Span]]:
        """Yield the matches that do not overlap, from the left."""
        position = 0
        while spans := self.search(data, position):
            yield spans
            position = max(spans[0][1], position + 1)


_NOWHERE: Final = (-1, -1)


def _options(max_mem: int | None = None) -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    if max_mem is not None:
        options.max_mem = max_mem
    return options


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Pattern:
    """Compile `pattern` (ASCII, RE2 syntax) for folded text; who searches for the same shares one automaton.

    Raises `ValueError` when RE2 refuses it: look-around and back-references are not linear.
    """
    return Pattern(pattern)


class Prefilter:
    """One automaton over many patterns: a single pass says which of them can match at all."""

    __slots__ = ("_all", "_count", "_same", "_set")

    def __init__(self, patterns: Sequence[str]) -> None:
        """Compile `patterns`; raise `ValueError` when RE2 refuses one of them. Equal ones are one in it."""
        places: dict[str, list[int]] = {}
        for index, pattern in enumerate(patterns):
            places.setdefault(pattern, []).append(index)
        self._all = frozenset(range(len(patterns)))
        self._same = [frozenset(same) for same in places.values()]
        self._count = len(places)
        self._set = re2.Set.SearchSet(_options(_SET_MEMORY))
        try:
            for each in places:
                self._set.Add(each.encode("ascii"))
            self._set.Add(b"")
        except re2.error as error:
            raise ValueError("a classifier pattern is not RE2 syntax") from error
        self._set.Compile()

    def hits(self, data: bytes) -> frozenset[int]:
        """Return the indices of the patterns that may match in `data`.

        The set's own answer to running out of memory is "nothing matched". The empty pattern, the
        last one, matches everything: its absence tells the two apart, and then all may match.
        """
        found = self._set.Match(data)
        if self._count not in found:
            return self._all
        return frozenset().union(*(self._same[index] for index in found if index != self._count))
