# SPDX-License-Identifier: Apache-2.0
"""Readings of a text: folded, joined, unescaped, decoded, each with its way back to the original.

Owns the folding of every text to one byte per code point, so that RE2 offsets are code point
offsets and lone surrogates cannot raise. Leaves what to look for to the rules.
Carries I6: look-alike letters, invisible characters and encodings do not hide an identifier; and
the bound behind "linear time": each view is at most as long as its source, up to a constant.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runner.perimeter.classify import pattern as patterns
from runner.perimeter.classify.model import View

_BEFORE: Final = 80
_AFTER: Final = 40
"""Characters before and after a candidate in which a corroborating word may stand."""

_MANY: Final = 24
"""Above so many distinct wide characters one pass with a table beats one pass for each."""

_CONFUSABLES: Final = dict(
    zip(
        "АВЕЅІЈКМНОРСТУХҮаеоѕіјрсухһԁӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧοιαν‐‑‒–—―−’‘‛ʼ′“”„‟",
        "ABESIJKMHOPCTYXYaeosijpcyxhdlABEZHIKMNOPTYXoiav-------'''''\"\"\"\"",
        strict=True,
    )
)
"""Cyrillic and Greek letters drawn like Latin ones, and the typographic dashes and quotes."""

_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Characters that Unicode counts as letters or symbols and that draw nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One view: `data` has one ASCII byte per character of the view.

    `origin` gives, for each byte, the half-open range of the original it stands for; None means
    that byte i is code point i. `around` holds, for a decoded run, the words beside the run.
    """

    view: View
    data: bytes
    origin: Sequence[tuple[int, int]] | None = None
    around: bytes = b""

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return where bytes `start` to `end` (a range that is not empty) lie in the original."""
        if self.origin is None:
            return start, end
        return self.origin[start][0], self.origin[end - 1][1]

    def surroundings(self, start: int, end: int) -> tuple[bytes, bytes]:
        """Return the bytes before and after bytes `start` to `end` in which corroboration is looked for."""
        return self.data[max(0, start - _BEFORE) : start], self.data[end : end + _AFTER]


def fold(text: str) -> Reading:
    """Return the text itself, folded one for one: accents dropped, look-alikes and digits mapped.

    What has no ASCII counterpart, lone surrogates included, becomes `?`.
    """
    if text.isascii():
        return Reading(view=View.TEXT, data=text.encode("ascii"))
    try:
        data = text.encode("latin-1")
    except UnicodeEncodeError:
        data = _fold_wide(text).encode("latin-1", "replace")
    return Reading(view=View.TEXT, data=data.translate(_LATIN_TO_ASCII))


def _fold_wide(text: str) -> str:
    wide = [character for character in set(text) if character > "\xff"]
    if len(wide) > _MANY:
        return text.translate({ord(character): _fold_one(character) for character in wide})
    for character in wide:
        text = text.replace(character, _fold_one(character))
    return text


def _fold_one(character: str) -> str:
    """Return the one Latin character that `character` reads as, or `character`."""
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    plain = unicodedata.normalize("NFKC", character)
    plain = _CONFUSABLES.get(plain, plain)
    if len(plain) == 1 and plain <= "\xff":
        return plain
    base = unicodedata.normalize("NFKD", character)[0]
    return base if base.isascii() else character


def _latin_to_ascii() -> bytes:
    table = bytearray(range(256))
    for code in range(0x80, 0x100):
        folded = unicodedata.normalize("NFKD", chr(code)).lstrip(" ")[:1] or " "
        table[code] = ord(folded) if folded.isascii() else ord("?")
    table[0xB0] = ord("o")  # "n°" is "no"
    table[0xB7] = ord(".")  # the middle dot stands between groups of digits
    return bytes(table)


_LATIN_TO_ASCII: Final = _latin_to_ascii()
_INVISIBLE_LATIN: Final = bytes(set(range(0x20)) - {0x09, 0x0A, 0x0D} | set(range(0x7F, 0xA0)) | {0xAD})


def _is_invisible(character: str) -> bool:
    if character in "\t\n\r":
        return False
    return character in _BLANK_LETTERS or unicodedata.category(character) in {"Cf", "Cc", "Mn", "Me"}


def _expand(character: str) -> str:
    """Return what `character` contributes to the joined view: nothing, itself, or its expansion."""
    if _is_invisible(character):
        return ""
    plain = unicodedata.normalize("NFKC", character)
    return plain if len(plain) > 1 and plain.isascii() else character


def join(text: str) -> Reading | None:
    """Return the text without invisible characters and with ligatures spelled out; None if it has none."""
    if text.isascii() and not _has_invisible(text.encode("ascii")):
        return None
    expansions = {character: _expand(character) for character in set(text)}
    changed = {character for character, expanded in expansions.items() if expanded != character}
    if not changed:
        return None
    kept: list[str] = []
    origin: list[tuple[int, int]] = []
    for index, character in enumerate(text):
        expanded = expansions[character]
        kept.append(expanded)
        origin.extend([(index, index + 1)] * len(expanded))
    return Reading(view=View.JOINED, data=fold("".join(kept)).data, origin=origin)


def _has_invisible(data: bytes) -> bool:
    return len(data.translate(None, _INVISIBLE_LATIN)) != len(data)


ESCAPE: Final = (
    r"%[0-9A-Fa-f]{2}|\\u\{?[0-9A-Fa-f]{4,6}\}?|\\x[0-9A-Fa-f]{2}"
    r"|&#[0-9]{1,7};?|&#[xX][0-9A-Fa-f]{1,6};?|&(?:amp|commat|period|nbsp|shy|colon|equals);"
)
_ESCAPE: Final = patterns.compile_pattern(ESCAPE)
_ENTITIES: Final = {
    "amp": "&",
    "commat": "@",
    "period": ".",
    "nbsp": " ",
    "shy": "",
    "colon": ":",
    "equals": "=",
}


def _unescape_one(escape: str) -> str:
    if escape.startswith("&#"):
        body = escape[2:].rstrip(";")
        code = int(body[1:], 16) if body[0] in "xX" else int(body)
    elif escape.startswith("&"):
        return _ENTITIES[escape[1:-1]]
    else:
        code = int(escape.lstrip("%\\ux{").rstrip("}") or "0", 16)
    return chr(code) if code <= 0x10FFFF else "?"  # noqa: PLR2004 - the last code point


def unescape(reading: Reading) -> Reading:
    """Return `reading` with character escapes replaced by the characters they stand for."""
    data = reading.data
    kept: list[str] = []
    origin: list[tuple[int, int]] = []
    position = 0
    for match in _ESCAPE.finditer(data):
        start, end = match.span()
        kept.append(data[position:start].decode("latin-1"))
        origin.extend(reading.original_span(index, index + 1) for index in range(position, start))
        character = _unescape_one(data[start:end].decode("latin-1"))
        if character and not _is_invisible(character):
            kept.append(character)
            origin.append(reading.original_span(start, end))
        position = end
    kept.append(data[position:].decode("latin-1"))
    origin.extend(reading.original_span(index, index + 1) for index in range(position, len(data)))
    return Reading(view=View.UNESCAPED, data=fold("".join(kept)).data, origin=origin, around=reading.around)
