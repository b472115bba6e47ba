# SPDX-License-Identifier: Apache-2.0
"""Where known values stand in a text: the half of redaction that no detector does.

Owns the search for values that were recognised once, wherever they stand again, whole or cut off. Leaves
recognising them to the classifier and replacing them to `redact.py`.
Carries I6: a value that was restored into a reply does not leave in the next request because a model glued it
to a word, or wrapped it: any white space between its words is one space. Time is linear in the text: it is
looked up at each character, whatever the number of values.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from runner.kernel.labels import DataClass

_HEAD: Final = 4
"""Characters by which a value is looked up before it is compared."""
_PIECE: Final = 4
"""The shortest piece of a value, in characters, that is taken for one cut off at the edge of a text."""
_EDGE: Final = 1024
"""The longest such piece that is looked for: only an encoded run is longer, and its rest still decodes."""


_RUN: Final = re.compile(r"\s+(?:(?<=\n)>[\s>]*)?")
"""White space, with the marks of a quotation that begin a line."""


def level(text: str) -> str:
    """Return `text` with one space for each run of white space: two values that are one so are one."""
    return _RUN.sub(" ", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known about a value: its kind and class."""

    kind: str
    data_class: DataClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Code points `start` to `end` of a text, found as `kind` and judged `data_class`."""

    start: int
    end: int
    kind: str
    data_class: DataClass

    def join(self, other: "Stretch") -> "Stretch":
        """Return the stretch over both, named after the more sensitive, then the longer."""
        chief = max(self, other, key=lambda each: (each.data_class, each.end - each.start))
        return replace(chief, start=min(self.start, other.start), end=max(self.end, other.end))


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return `stretches` in order, those that overlap made one."""
    apart: list[Stretch] = []
    for each in sorted(stretches, key=lambda stretch: (stretch.start, -stretch.end)):
        if apart and each.start < apart[-1].end:
            apart[-1] = apart[-1].join(each)
        else:
            apart.append(each)
    return apart


class _Levelled:
    """A text with one space for each run of white space, and the way back."""

    __slots__ = ("_behind", "_lost", "text")

    def __init__(self, text: str) -> None:
        self.text = level(text)
        self._behind: list[int] = []
        """Where in the levelled text each run that is longer than a space ends."""
        self._lost = [0]
        """How many characters are gone up to there."""
        for run in _RUN.finditer(text) if len(self.text) < len(text) else ():
            if len(run[0]) > 1:
                self._behind.append(run.start() + 1 - self._lost[-1])
                self._lost.append(self._lost[-1] + len(run[0]) - 1)

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return where `start` to `end` of the levelled text, not empty, lie in the text itself."""
        first, last = bisect_right(self._behind, start), bisect_right(self._behind, end - 1)
        return start + self._lost[first], end + self._lost[last]


class Values:
    """Known values, made ready to be looked for. Immutable."""

    __slots__ = ("_ends", "_exact", "_folded", "_lengths", "_longest", "_sizes", "_starts")

    def __init__(self, known: Mapping[str, Known]) -> None:
        self._exact: dict[str, Known] = {}
        self._folded: dict[str, Known] = {}
        lengths: dict[str, set[int]] = {}
        for value, each in sorted(known.items(), key=lambda item: item[1].data_class):
            self._exact[level(value)] = each
            folded = _fold(level(value))
            if folded not in self._folded or self._folded[folded].data_class < each.data_class:
                self._folded[folded] = each
            lengths.setdefault(folded[:_HEAD], set()).add(len(folded))
        self._lengths = {head: tuple(sizes) for head, sizes in lengths.items()}
        self._longest = min(_EDGE, max(map(len, known), default=0))
        self._sizes = sorted({len(head) for head in lengths})
        self._starts = (sorted(self._exact), sorted(self._folded))
        self._ends = tuple(sorted(value[::-1] for value in values) for values in self._starts)

    def find(self, text: str) -> Iterator[Stretch]:
        """Yield where a value stands in `text`, in any order.

        As it is, it is found anywhere, inside a word too; in another case, as words of its own; either way
        with other white space between its words. So is a piece of it, at either end of `text`: half of an
        identifier says enough.
        """
        levelled = _Levelled(text)
        for each in self._find(levelled.text):
            start, end = levelled.original(each.start, each.end)
            yield replace(each, start=start, end=end)

    def _find(self, text: str) -> Iterator[Stretch]:
        """Yield where a value stands in `text`, which was levelled."""
        folded = _fold(text)
        for size in self._sizes:
            for start in range(len(text) - size + 1):
                for length in self._lengths.get(folded[start : start + size], ()):
                    end = start + length
                    if end <= len(text) and self._stands(text, folded, start, end):
                        yield _stretch(start, end, self._folded[folded[start:end]])
        for size in range(min(self._longest, len(text)), _PIECE - 1, -1):
            start = len(text) - size
            if known := self._piece(self._starts, text[start:], folded[start:], own=_is_edge(text, start)):
                yield _stretch(start, len(text), known)
                break
        for size in range(min(self._longest, len(text)), _PIECE - 1, -1):
            head, lowered = text[:size][::-1], folded[:size][::-1]
            if known := self._piece(self._ends, head, lowered, own=_is_edge(text, size)):
                yield _stretch(0, size, known)
                break

    def _stands(self, text: str, folded: str, start: int, end: int) -> bool:
        if folded[start:end] not in self._folded:
            return False
        return text[start:end] in self._exact or (_is_edge(text, start) and _is_edge(text, end))

    def _piece(
        self, values: tuple[Sequence[str], ...], piece: str, folded: str, *, own: bool
    ) -> Known | None:
        """Return the value that begins with `piece`, or, if it is a word of its own, with `folded`."""
        exact, lowered = values
        backward = values is self._ends
        if value := _beginning_with(piece, exact):
            return self._exact[value[::-1] if backward else value]
        if own and (value := _beginning_with(folded, lowered)):
            return self._folded[value[::-1] if backward else value]
        return None


def _stretch(start: int, end: int, known: Known) -> Stretch:
    return Stretch(start=start, end=end, kind=known.kind, data_class=known.data_class)


def _beginning_with(piece: str, values: Sequence[str]) -> str | None:
    """Return one of the sorted `values` that begins with `piece`; None if there is none."""
    at = bisect_left(values, piece)
    return values[at] if at < len(values) and values[at].startswith(piece) else None


def _is_edge(text: str, position: int) -> bool:
    """Return whether no word runs across `position`."""
    return not (0 < position < len(text) and text[position - 1].isalnum() and text[position].isalnum())


def _fold(text: str) -> str:
    """Return `text` in lower case, one character for one, whatever stands beside it."""
    return text.lower() if text.isascii() else "".join(map(_fold_one, text))


@lru_cache(maxsize=4096)
def _fold_one(character: str) -> str:
    lowered = character.lower()
    return lowered if len(lowered) == 1 else character
