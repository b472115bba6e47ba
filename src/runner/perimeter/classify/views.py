# SPDX-License-Identifier: Apache-2.0
"""Readings of a text: what one is, with its way back to the original; the text folded, and joined.

Owns the folding of every text to one byte per code point, so that RE2 offsets are code point
offsets and lone surrogates cannot raise. Leaves escapes and encodings to `escapes` and `decode`, and what to
look for to the rules.
Carries I6: look-alike letters and invisible characters do not hide an identifier; and
the bound behind "linear time": each view is at most as long as its source, up to a constant.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from runner.perimeter.classify.model import View
from runner.perimeter.classify.pattern import Pattern
from runner.perimeter.classify.pattern import Span as Range
from runner.perimeter.classify.words import PART, parts_of, words_of

BEFORE: Final = 80
AFTER: Final = 40
"""Characters before and after a candidate in which a corroborating word may stand."""

_REACH: Final = 1024
"""Bytes before and after something that no rule looks beyond, at it or around it."""

_MANY: Final = 24
"""Above so many distinct wide characters one pass with a table beats one pass for each."""

_CONFUSABLES: Final = dict(
    zip(
        "АВЕЅІЈКМНОРСТУХҮаеоѕіјрсухһԁӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧοιαν‐‑‒–—―−’‘‛ʼ′“”„‟ıłŁđĐħĦŧŦœŒ",
        "ABESIJKMHOPCTYXYaeosijpcyxhdlABEZHIKMNOPTYXoiav-------'''''\"\"\"\"ilLdDhHtToO",
        strict=True,
    )
)
"""Cyrillic and Greek letters drawn like Latin ones, the typographic dashes and quotes, and letters of names
with a stroke, without a dot, or joined, that no decomposition leads back to a Latin one."""

_LINE_ENDS: Final = {"\u2028": "\n", "\u2029": "\n"}
"""Signs that end a line and are neither a carriage return nor a line feed."""

_STROKED: Final = dict(zip("øØæÆßðÐþÞ", "oOaAsdDtT", strict=True))
"""The same among the letters of Latin-1."""

_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Characters that Unicode counts as letters or symbols and that draw nothing."""


class Piece(NamedTuple):
    """A part of a view: from byte `at` on, it stands for `start` to `end` of what the view was made from.

    Each of its bytes stands for `step` characters, one after the other: 1 for what is as it was, 3 for what
    was written `%41`. With 0 any part of it stands for its whole range. A text may have one for each
    character, so it is a tuple, which is made four times as fast.
    """

    at: int
    start: int
    end: int
    step: int


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One view: `data` has one ASCII byte per character of the view. No slots: `words` are kept once made.

    `pieces`, in order, say what each byte stands for in `parent`, the reading this one was made from
    (None: the text itself); without pieces byte i is code point i of the text. `around` holds, for a
    decoded run, the words beside the run. With `only_disguised`, a hit counts only where it takes in
    something that is not as it was.
    """

    view: View
    data: bytes = field(repr=False)
    pieces: Sequence[Piece] = ()
    parent: "Reading | None" = None
    around: bytes = field(default=b"", repr=False)
    only_disguised: bool = False

    @cached_property
    def words(self) -> list[bytes]:
        """The words of `data`: registers and echoes ask for the same."""
        return words_of(self.data)

    def words_in_parts(self) -> Iterable[list[bytes]]:
        """Return the words of `data`, those of a long text part by part, unless `words` were asked for."""
        is_cut = len(self.data) > PART and "words" not in vars(self)
        return map(words_of, parts_of(self.data)) if is_cut else (self.words,)

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return where bytes `start` to `end` (a range that is not empty) lie in the original text."""
        if not self.pieces:
            return start, end
        first, last = self.pieces[self._up_to(start) - 1], self.pieces[self._up_to(end - 1) - 1]
        begin = first.start + (start - first.at) * first.step
        finish = last.start + (end - last.at) * last.step if last.step else last.end
        return (begin, finish) if self.parent is None else self.parent.original_span(begin, finish)

    def _up_to(self, index: int) -> int:
        """Return how many pieces begin at byte `index` or before."""
        return bisect_left(self.pieces, (index + 1,))

    def counts(self, start: int, end: int) -> bool:
        """Say whether a hit at bytes `start` to `end` is this reading's to report."""
        if not self.only_disguised:
            return True
        first = self._up_to(start) - 1
        return any(piece.step != 1 for piece in self.pieces[first : self._up_to(end - 1)])

    def is_new(self, start: int, end: int) -> bool:
        """Say whether bytes `start` to `end`, with what a rule looks at around them, are not as in `parent`.

        What stands as it stood in what this reading was made from was found there. The original is new.
        """
        if not self.pieces:
            return True
        first = max(0, self._up_to(start - _REACH) - 1)
        return self._up_to(end + _REACH) - first > 1 or self.pieces[first].step != 1

    def new_matches(self, pattern: Pattern) -> Iterator[list[Range]]:
        """Yield the matches of `pattern` that are new here, as `is_new` says."""
        found = pattern.finditer(self.data)
        return (match for match in found if self.is_new(*match[0])) if self.pieces else found

    def surroundings(self, start: int, end: int) -> tuple[bytes, bytes]:
        """Return the bytes before and after bytes `start` to `end` in which corroboration is looked for."""
        return self.data[max(0, start - BEFORE) : start], self.data[end : end + AFTER]


class Draft:
    """A view in the making: literal stretches of a source, and characters put in place of others."""

    def __init__(self, source: str) -> None:
        """Begin a view of `source`, the text or the data of a reading as Latin-1."""
        self._source = source
        self._kept: list[str] = []
        self._pieces: list[Piece] = []
        self._size = 0

    def literal(self, start: int, end: int) -> None:
        """Take `start` to `end` of the source as they are."""
        self._add(self._source[start:end], start, end, 1)

    def instead(self, text: str, start: int, end: int) -> None:
        """Put `text` in place of `start` to `end` of the source."""
        self._add(text, start, end, 0)

    def each(self, text: str, start: int, step: int) -> None:
        """Put each character of `text` in place of `step` of the source, from `start` on."""
        self._add(text, start, start + step * len(text), step)

    def gap(self, start: int) -> None:
        """Leave out what follows byte `start`: two line ends, across which nothing is read together."""
        self._add("\n\n", start, start + 2, 1)

    def _add(self, text: str, start: int, end: int, step: int) -> None:
        if text:
            self._pieces.append(Piece(self._size, start, end, step))
            self._kept.append(text)
            self._size += len(text)

    def reading(self, view: View, parent: Reading | None, *, only_disguised: bool = False) -> Reading:
        """Return the view, made from `parent` (None: from the text itself)."""
        return Reading(
            view=view,
            data=fold("".join(self._kept)).data,
            pieces=[*self._before(), *self._pieces, *self._behind()],
            parent=parent,
            around=b"" if parent is None else parent.around,
            only_disguised=only_disguised,
        )

    def _before(self) -> Iterator[Piece]:
        """Yield what stands for what was left out before the first piece, if anything was."""
        if self._pieces and self._pieces[0].start > 0:
            yield Piece(0, 0, self._pieces[0].start, 0)

    def _behind(self) -> Iterator[Piece]:
        """Yield what stands for what was left out behind the last piece, if anything was."""
        if self._pieces and self._pieces[-1].end < len(self._source):
            yield Piece(self._size, self._pieces[-1].end, len(self._source), 0)


_STRANGE: Final = re.compile("[^\t\n\r\x20-\x7e\xa0-\xac\xae-\xff]")
_ORDINARY: Final = bytes({*b"\t\n\r", *range(0x20, 0x7F), *range(0xA0, 0x100)} - {0xAD})


def strange_in(text: str) -> frozenset[str]:
    """Return the characters of `text` that cannot be seen or are not Latin-1: most texts have few or none."""
    narrow = text.encode("latin-1", "ignore")
    if len(narrow) == len(text):
        return frozenset(narrow.translate(None, _ORDINARY).decode("latin-1"))
    if len(text) - len(narrow) > len(text) // 8:
        return frozenset(filter(_STRANGE.match, frozenset(text)))
    return frozenset(_STRANGE.findall(text))


def fold(text: str, strange: frozenset[str] | None = None) -> Reading:
    """Return the text itself, folded one for one: accents dropped, look-alikes and digits mapped.

    What has no ASCII counterpart, lone surrogates included, becomes `?`. `strange`, when given, is
    `strange_in(text)`, to spare the making of it.
    """
    if text.isascii():
        return Reading(view=View.TEXT, data=text.encode("ascii"))
    plain = _fold_wide(text, strange_in(text) if strange is None else strange)
    return Reading(view=View.TEXT, data=plain.encode("latin-1", "replace").translate(_LATIN_TO_ASCII))


def _fold_wide(text: str, strange: frozenset[str]) -> str:
    wide = [character for character in strange if character > "\xff"]
    if len(wide) > _MANY:
        return text.translate({ord(character): _fold_one(character) for character in wide})
    for character in wide:
        text = text.replace(character, _fold_one(character))
    return text


@lru_cache(maxsize=4096)
def _fold_one(character: str) -> str:
    """Return the one Latin character that `character` reads as, or `character`."""
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    plain = unicodedata.normalize("NFKC", character)
    plain = _LINE_ENDS.get(plain) or _CONFUSABLES.get(plain, plain)
    if len(plain) == 1 and plain <= "\xff":
        return plain
    base = unicodedata.normalize("NFKD", character)[0]
    return base if base.isascii() else character


def _latin_to_ascii() -> bytes:
    table = bytearray(range(256))
    for code in range(0x80, 0x100):
        folded = unicodedata.normalize("NFKD", chr(code)).lstrip(" ")[:1] or " "
        table[code] = ord(folded) if folded.isascii() else ord("?")
    for letter, plain in _STROKED.items():
        table[ord(letter)] = ord(plain)
    table[0x85] = ord("\n")  # the next line of EBCDIC
    table[0xB0] = ord("o")  # "n°" is "no"
    table[0xB7] = ord(".")  # the middle dot stands between groups of digits
    return bytes(table)


_LATIN_TO_ASCII: Final = _latin_to_ascii()


def is_invisible(character: str) -> bool:
    """Say whether `character` (one) draws nothing: a control, format or combining one, or a blank letter."""
    if character in "\t\n\r":
        return False
    return character in _BLANK_LETTERS or unicodedata.category(character) in {"Cf", "Cc", "Mn", "Me"}


@lru_cache(maxsize=4096)
def _expand(character: str) -> str:
    """Return what `character` contributes to the joined view: nothing, itself, or its expansion."""
    if is_invisible(character):
        return ""
    plain = unicodedata.normalize("NFKC", character)
    return plain if len(plain) > 1 and plain.isascii() else character


def join(text: str, strange: frozenset[str] | None = None) -> Reading | None:
    """Return the text without invisible characters and with ligatures spelled out; None if it has none.

    `strange` is as in `fold`.
    """
    strange = strange_in(text) if strange is None else strange
    expansions = {character: _expand(character) for character in strange}
    changed = [character for character, expanded in expansions.items() if expanded != character]
    if not changed:
        return None
    draft, position = Draft(text), 0
    for match in re.finditer(f"[{re.escape(''.join(changed))}]", text):
        index = match.start()
        draft.literal(position, index)
        draft.instead(expansions[text[index]], index, index + 1)
        position = index + 1
    draft.literal(position, len(text))
    return draft.reading(View.JOINED, None)
