# SPDX-License-Identifier: Apache-2.0
"""Characters written as escapes: percent, quoted-printable, of programs, and the references of HTML.

Owns finding them and what each stands for. Leaves runs that encode a whole text to `decode`, and judging to
the engine, which asks for corroboration.
Carries I6: an escape hides no identifier, and takes nothing of what stands behind it: what follows
four digits is text.
"""

import re
from collections.abc import Iterator
from html.entities import html5
from typing import Final

from runner.perimeter.classify import pattern as patterns
from runner.perimeter.classify.model import View
from runner.perimeter.classify.views import Draft, Reading, fold, is_invisible


def _is_read(character: str) -> bool:
    """Say whether `character` is one that hides something or reads as ASCII: what rules can look for."""
    return len(character) == 1 and (is_invisible(character) or fold(character).data != b"?")


_ENTITIES: Final = {name: text for name, text in html5.items() if name.endswith(";") and _is_read(text)}
"""The named references of HTML 5 that matter here, each with its semicolon. Without one they are not read:
`&copy=` and `&lt=` stand in addresses."""

ESCAPE: Final = (
    r"(?:%[0-9A-Fa-f]{2})+|(?:\\x[0-9A-Fa-f]{2})+|(?:=[0-9A-F]{2})+|[0-9A-Za-z]=\r?\n"
    r"|\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}"
    r"|\\u[0-9A-Fa-f]{4}|\\u\{0*[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8}"
    rf"|&#0*[0-9]{{1,7}};?|&#[xX]0*[0-9A-Fa-f]{{1,6}};?|&(?:{'|'.join(map(re.escape, sorted(_ENTITIES)))})"
)
"""Percent and quoted-printable bytes, soft line ends, escapes of programs, HTML character references."""
_ESCAPE: Final = patterns.compile_pattern(ESCAPE)
_ALIKE: Final = re.compile("(?s)[\t\n\r -~]+|.")
"""Characters in a row that are one byte each and can be seen, or any one."""


def _bytes_escaped(escape: str) -> Iterator[tuple[str, int]]:
    """Yield what a run of escaped bytes stands for, with the length of the escapes of each character.

    The bytes are UTF-8; a byte that is not is taken for Latin-1.
    """
    sign = "\\x" if escape[0] == "\\" else escape[0]
    width, data = len(sign) + 2, bytes.fromhex(escape.replace(sign, ""))
    for part in _ALIKE.findall(data.decode("utf-8", "surrogateescape")):
        size = len(part.encode("utf-8", "surrogateescape")) // len(part)
        yield chr(ord(part) - 0xDC00) if "\udc80" <= part <= "\udcff" else part, size * width


def _unescape_one(escape: str) -> str:
    """Return the character that an escape of a whole character stands for."""
    if escape.startswith("&#"):
        body = escape[2:].rstrip(";")
        code = int(body[1:], 16) if body[0] in "xX" else int(body.lstrip("0") or "0")
    elif escape.startswith("&"):
        return _ENTITIES[escape[1:]]
    elif escape.count("\\") > 1:
        high, low = (int(half, 16) for half in escape[2:].split("\\u"))
        code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
    else:
        code = int(escape[2:].strip("{}"), 16)
    return chr(code) if code <= 0x10FFFF else "?"  # noqa: PLR2004 - the last code point


def _unescaped(escape: str) -> Iterator[tuple[str, int]]:
    """Yield what `escape` stands for, with the length of the escape of each character."""
    if escape[-1] == "\n":
        yield escape[0], len(escape)
    elif escape[0] in "%=" or escape.startswith("\\x"):
        yield from _bytes_escaped(escape)
    else:
        yield _unescape_one(escape), len(escape)


def unescape(reading: Reading) -> Reading:
    """Return `reading` with character escapes replaced by the characters they stand for."""
    source = reading.data.decode("latin-1")
    draft, position = Draft(source), 0
    for match in _ESCAPE.finditer(reading.data):
        start, end = match[0]
        draft.literal(position, start)
        for characters, step in _unescaped(source[start:end]):
            if len(characters) > 1 or not is_invisible(characters):
                draft.each(characters, start, step)
            start += step * len(characters)
        position = end
    draft.literal(position, len(source))
    return draft.reading(View.UNESCAPED, reading)
