# SPDX-License-Identifier: Apache-2.0
"""The one place of this room that touches google-re2: compiled patterns and the prefilter over all of them.

Owns the options (one byte per character, no logging of patterns or text) and the guard around the
set automaton. Leaves what the patterns mean to the rules.
Carries the bound behind I6: RE2 has no backtracking, so hostile text cannot stall the gate; and it
fails closed: an automaton that ran out of memory counts as "every pattern may match".
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from re import _parser as parser  # type: ignore[attr-defined]  # it alone knows how long a match may be
from typing import Final

import re2

_SET_MEMORY: Final = 64 << 20
"""Bytes that a set automaton may use, or several in its place, before one starts over with an empty cache."""


Span = tuple[int, int]
"""A half-open range of bytes; (-1, -1) for a group that took no part."""
Stretches = Sequence[Span]
"""Parts of a text, in order and apart."""


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

    def search(self, data: bytes, start: int = 0, end: int | None = None) -> list[Span] | None:
        """Return the leftmost match from `start` on: the range of each group, the whole first.

        With `end` none that ends behind it is found; what stands there still says where words end.
        """
        spans: list[Span] = self._compiled.Match(self._anchor, data, start, len(data) if end is None else end)
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


@lru_cache(maxsize=1024)
def width_of(pattern: str) -> int | None:
    """Return how many bytes a match of `pattern` has at most; None for no bound, or where nobody knows."""
    try:
        width: int = parser.parse(pattern).getwidth()[1]
    except re.error:
        return None
    return width if width < _ENDLESS else None


_ENDLESS: Final = 1 << 20
BLOCK: Final = 2048
"""Bytes of a text in which a trigger is looked for at a time, so that a rule searches only near it."""
LOCAL: Final = 384
"""Bytes behind a block that are looked at with it. What holds a trigger is no longer than that."""


LONG: Final = 16 * BLOCK
"""Bytes of a text from which on several automata look for triggers, block by block."""
_APART: Final = 6
"""So many. One that looks for all triggers is three times as fast over what it knows. But it has a state for
each way in which they occur together, so that over what is new several are six times as fast."""


class _Automaton:
    """Patterns in one automaton: a single pass says which of them can match at all."""

    __slots__ = ("_count", "_everything", "_set")

    def __init__(self, patterns: Sequence[str], room: int) -> None:
        """Compile `patterns`, with so many bytes of `room`; raise `ValueError` when RE2 refuses one."""
        self._count = len(patterns)
        self._everything = list(range(self._count))
        self._set = re2.Set.SearchSet(_options(room))
        try:
            for each in patterns:
                self._set.Add(each.encode("ascii"))
            self._set.Add(rb"\A")
        except re2.error as error:
            raise ValueError("a classifier pattern is not RE2 syntax") from error
        self._set.Compile()

    def found(self, data: bytes) -> list[int]:
        """Return the indices of the patterns that may match in `data`, and of one more.

        The set's own answer to running out of memory is "nothing matched". The last pattern matches
        at the start of everything: its absence tells the two apart, and then all may match.
        """
        found: list[int] = self._set.Match(data)
        return found if self._count in found else self._everything


class Prefilter:
    """Automata over many patterns: they say which of those can match at all. No slots: most need but one."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Compile `patterns`; raise `ValueError` when RE2 refuses one of them. Equal ones are one in it."""
        places: dict[str, list[int]] = {}
        for index, pattern in enumerate(patterns):
            places.setdefault(pattern, []).append(index)
        self._same = [*map(frozenset, places.values()), frozenset()]
        self._patterns = list(places)
        self._together = _Automaton(self._patterns, _SET_MEMORY)

    @cached_property
    def _apart(self) -> Sequence[tuple[_Automaton, Sequence[int]]]:
        """Several automata over the same patterns, each with the index of its own among all."""
        everything, size = self._patterns, len(self._patterns)
        return [
            (_Automaton(everything[at::_APART], _SET_MEMORY // _APART), (*range(at, size, _APART), size))
            for at in range(_APART)
        ]

    def hits(self, data: bytes) -> frozenset[int]:
        """Return the indices of the patterns that may match in `data`."""
        return frozenset().union(*map(self._same.__getitem__, self._together.found(data)))

    def _found_apart(self, data: bytes) -> set[int]:
        return {indices[each] for automaton, indices in self._apart for each in automaton.found(data)}

    def places(self, data: bytes, wanted: Callable[[int, int], bool]) -> dict[int, Stretches]:
        """Return for each pattern that may match in `data` the stretches where a match may begin, in order.

        A match must be no longer than `LOCAL`: a long text is read block by block, those that are `wanted`.
        """
        if len(data) <= BLOCK + LOCAL:
            return dict.fromkeys(self.hits(data), ((0, len(data)),))
        found = self._together.found if len(data) < LONG else self._found_apart
        seen: dict[int, list[tuple[int, int]]] = {}
        for start in range(0, len(data), BLOCK):
            end = start + BLOCK + LOCAL
            for index in found(data[start:end]) if wanted(start, end) else ():
                stretches = seen.setdefault(index, [])
                first = stretches.pop()[0] if stretches and stretches[-1][1] == start else start
                stretches.append((first, start + BLOCK))
        return {index: stretches for pattern, stretches in seen.items() for index in self._same[pattern]}


@lru_cache(maxsize=16)
def _prefilter(patterns: tuple[str, ...]) -> Prefilter:
    return Prefilter(patterns)


def compile_prefilter(patterns: Sequence[str]) -> Prefilter:
    """Return a prefilter over `patterns`, one for all who ask for the same; raises as `Prefilter` does."""
    return _prefilter(tuple(patterns))
