# SPDX-License-Identifier: Apache-2.0
"""Contacts that are nobody's secret: the practice's own letterhead, courts, public offices.

Owns where entries of those registers stand in a text, and whether something found is one of them. Leaves
finding to the rules, and what may be excused at all to `engine`: never a client, a credential or a subject.
Carries the utility of the gate: without it every letter with a letterhead is personal data. Entries count
word for word, so that a neighbour of an entry is never excused with it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from runner.kernel.registers import Listed
from runner.perimeter.classify.views import Reading, fold
from runner.perimeter.classify.words import Starts, words_of

Words = tuple[bytes, ...]


class Known:
    """Contacts that are nobody's secret: the practice's own, or a public office's. Immutable.

    A name or an address counts where it is written word for word; a number or an address of mail in any
    grouping; an entry that starts with `@` stands for every address of that domain.
    """

    __slots__ = ("_domains", "_first", "_starts", "_values")

    def __init__(self, register: Sequence[Listed]) -> None:
        names = [name for listed in register for name in listed.names]
        self._domains = tuple(name.strip().lower() for name in names if name.strip().startswith("@"))
        self._values = frozenset(_value(name) for name in names)
        self._starts: dict[bytes, set[Words]] = {}
        for words in filter(None, (tuple(words_of(fold(name).data)) for name in names)):
            for size in range(1, len(words)):
                self._starts.setdefault(words[0], set()).add(words[:size])
            self._starts.setdefault(words[0], set()).add((*words, b""))
        self._first = frozenset(self._starts)

    def __bool__(self) -> bool:
        """Say whether there is any entry."""
        return bool(self._values)

    def ranges(self, data: bytes, words: Sequence[bytes]) -> "Ranges":
        """Return where entries of the register stand in `data`, a folded text, whose words are `words`."""
        if not self._may_stand_in(words):
            return Ranges()
        starts = Starts(data, words)
        entries = self._entries(words)
        return Ranges([(starts[first], starts[last] + len(words[last])) for first, last in entries])

    def without(self, reading: Reading) -> Iterable[list[bytes]]:
        """Return the words of `reading`, part by part, without those that stand in an entry."""
        if not any(map(self._may_stand_in, reading.words_in_parts() if self._first else ())):
            return reading.words_in_parts()
        words = reading.words
        left, position = [], 0
        for first, last in self._entries(words):
            left += words[position:first]
            position = max(position, last + 1)
        return (left + words[position:],)

    def _entries(self, words: Sequence[bytes]) -> Iterator[tuple[int, int]]:
        """Yield the first and last word of each entry among `words`, the longest at each word."""
        for at, word in enumerate(words):
            if word in self._first and (size := self._longest(words, at)):
                yield at, at + size - 1

    def _may_stand_in(self, words: Sequence[bytes]) -> bool:
        """Say whether one of `words` begins an entry: in C, since most texts hold none."""
        return bool(self._first) and not self._first.isdisjoint(words)

    def _longest(self, words: Sequence[bytes], at: int) -> int:
        """Return how many words the longest entry that starts at word `at` has; 0 for none."""
        starts, longest, size = self._starts[words[at]], 0, 1
        while at + size <= len(words):
            seen = tuple(words[at : at + size])
            longest = size if (*seen, b"") in starts else longest
            if seen not in starts:
                break
            size += 1
        return longest

    def holds(self, text: str) -> bool:
        """Say whether `text`, something that was found, is an entry in another grouping, or of its domain."""
        value = _value(text)
        return value in self._values or text.strip().lower().endswith(self._domains)


class Ranges:
    """Half-open ranges of one text, to be asked whether another lies inside one of them."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, found: Sequence[tuple[int, int]] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(found):
            if not self._ends or end > self._ends[-1]:
                self._starts.append(start)
                self._ends.append(end)

    def cover(self, start: int, end: int) -> bool:
        """Say whether some range holds all of `start` to `end`."""
        index = bisect_right(self._starts, start) - 1
        return index >= 0 and end <= self._ends[index]


def _value(text: str) -> bytes:
    """Return the letters and digits of `text` in lower case; a telephone without the country's prefix."""
    plain = b"".join(words_of(fold(text).data))
    return plain.removeprefix(b"0039").removeprefix(b"39") if plain.isdigit() else plain
