# SPDX-License-Identifier: Apache-2.0
"""A reader of values as models write them: JSON, Python literals, and their known slips.

Owns the grammar of one value. It is a strict reader with a short list of repairs, each of which has one
reading only. A string that goes on after its closing quote, a member written twice, an escape that is none:
those have two readings, and are `Ambiguous`. Depth and length of numbers are bounded; time is linear.
"""

import math
import re
from typing import Any, Final

from runner.capability.textcalls.cursor import Ambiguous, Cursor, Truncated, Unreadable

MAX_DEPTH: Final = 64
"""The deepest nesting of a value that is read."""
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?")
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}")
"""A name of a tool, an argument or a member that stands without quotes."""
_PLAIN: Final = re.compile(r"""[^"'\\\x00-\x1f]+""")
_WRITTEN_SPACE: Final = ("\\n", "\\t", "\\r")
"""Escapes of white space, written where only white space can stand."""
_FOREIGN_QUOTES: Final = ("<escape>", '<|"|>')
"""Tokens with which the gemma family puts a string between quotes that no string can hold."""
_LITERALS: Final = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES: Final = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'",
}  # fmt: skip
_HEX4: Final = re.compile(r"[0-9a-fA-F]{4}")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def read_value(cursor: Cursor, ends: tuple[str, ...] = (), depth: int = 0) -> Any:  # noqa: ANN401 - parse step
    """Return the value that begins at `cursor`, and stand behind it.

    `ends` are the markers that close what the value stands in: where one appears between two members, what is
    still open was forgotten, and is closed. Raises `Unreadable`, or one of its kinds.
    """
    if depth > MAX_DEPTH:
        raise Unreadable("too_deep")
    skip_space(cursor)
    first = cursor.next
    if first == "{":
        return _members(cursor, ends, depth)
    if first == "[":
        return _items(cursor, ends, depth)
    if first in "\"'" or cursor.sees('\\"', *_FOREIGN_QUOTES):
        return read_string(cursor)
    return _literal(cursor)


def read_whole(text: str) -> Any:  # noqa: ANN401 - parse step
    """Return the value that `text` is, from end to end; raise `Unreadable` if it is none or more than one."""
    cursor = Cursor(text + "\n")  # so that a number has an end
    value = read_value(cursor)
    skip_space(cursor)
    if not cursor.ended:
        raise Unreadable("malformed_json")
    return value


def read_python_calls(cursor: Cursor, ends: tuple[str, ...] = ()) -> list[tuple[str, dict[str, Any]]]:
    """Return name and arguments of each call in `[f(a=1), g()]`, or of one call without brackets."""
    listed = cursor.take("[")
    calls = [_python_call(cursor, ends)]
    skip_space(cursor)
    while listed and not cursor.take("]"):
        if cursor.next != ",":
            raise Unreadable("malformed_call")
        cursor.at += 1
        calls.append(_python_call(cursor, ends))
        skip_space(cursor)
    return calls


def _python_call(cursor: Cursor, ends: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    skip_space(cursor)
    name = cursor.match(NAME)
    if name is None or not cursor.take("("):
        raise Truncated("truncated") if cursor.ended else Unreadable("malformed_call")
    arguments: dict[str, Any] = {}
    skip_space(cursor)
    while not cursor.take(")"):
        key = cursor.match(NAME)
        skip_space(cursor)
        if key is None or cursor.next != "=":
            raise Ambiguous("positional_argument")
        cursor.at += 1
        if key.group() in arguments:
            raise Ambiguous("repeated_member")
        arguments[key.group()] = read_value(cursor, ends)
        skip_space(cursor)
        if cursor.next not in ",)":
            raise _open_string(cursor)
        cursor.take(",")
        skip_space(cursor)
    return name.group(), arguments


def skip_space(cursor: Cursor) -> None:
    """Pass over white space, also where it is written as an escape."""
    cursor.skip_space()
    while cursor.sees(*_WRITTEN_SPACE):
        cursor.repair("written_space")
        cursor.take(*_WRITTEN_SPACE)
        cursor.skip_space()


def _members(cursor: Cursor, ends: tuple[str, ...], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    cursor.at += 1
    while not _closed(cursor, "}", ends, started=bool(found)):
        name = _key(cursor)
        skip_space(cursor)
        if cursor.next != ":":
            raise _open_string(cursor)
        cursor.at += 1
        if name in found:
            raise Ambiguous("repeated_member")
        found[name] = read_value(cursor, ends, depth + 1)
    return found


def _items(cursor: Cursor, ends: tuple[str, ...], depth: int) -> list[Any]:
    found: list[Any] = []
    cursor.at += 1
    while not _closed(cursor, "]", ends, started=bool(found)):
        found.append(read_value(cursor, ends, depth + 1))
    return found


def _closed(cursor: Cursor, closer: str, ends: tuple[str, ...], *, started: bool) -> bool:
    """Return whether the container ends here; if not, stand at its next member or item."""
    skip_space(cursor)
    if cursor.take(closer):
        return True
    if not started:
        return False
    if ends and cursor.sees(*ends):
        cursor.repair("missing_closer")
        return True
    if cursor.next != ",":
        raise _open_string(cursor)
    cursor.at += 1
    skip_space(cursor)
    if cursor.next == closer:
        cursor.repair("trailing_comma")
        cursor.at += 1
        return True
    return False


def _open_string(cursor: Cursor) -> Unreadable:
    """Return what is wrong where a value is over and neither a comma nor a closer follows."""
    before = cursor.text[: cursor.at].rstrip()[-1:]
    return Ambiguous("quote_in_string") if before in {'"', "'"} else Unreadable("malformed_json")


def _key(cursor: Cursor) -> str:
    if cursor.next in "\"'" or cursor.sees('\\"'):
        return read_string(cursor)
    name = cursor.match(NAME)
    if name is None:
        raise Unreadable("malformed_json")
    cursor.repair("bare_name")
    return name.group()


def _literal(cursor: Cursor) -> Any:  # noqa: ANN401 - parse step
    name = cursor.match(NAME)
    if name is not None:
        if cursor.ended and any(word.startswith(name.group()) for word in _LITERALS):
            raise Truncated("truncated")
        if name.group() not in _LITERALS:
            raise Unreadable("malformed_json")
        if name.group()[0].isupper():
            cursor.repair("python_literal")
        return _LITERALS[name.group()]
    number = cursor.match(_NUMBER)
    if number is None:
        raise Truncated("truncated") if cursor.sees("-") else Unreadable("malformed_json")
    if cursor.ended:
        raise Truncated("truncated")  # there may be more digits
    if cursor.text[cursor.at] in ".eE+-_0123456789":
        raise Unreadable("malformed_json")
    return _number(number.group())


def _number(text: str) -> int | float:
    value = float(text)
    if not math.isfinite(value):
        raise Unreadable("malformed_json")
    return value if set(text) & set(".eE") else int(text)


def read_string(cursor: Cursor) -> str:
    """Return the string that begins at `cursor`: in double or single, escaped double or foreign quotes."""
    for foreign in _FOREIGN_QUOTES:
        if cursor.take(foreign):
            inside = cursor.upto(foreign)
            if inside is None:
                raise Truncated("truncated")
            cursor.take(foreign)
            return _joined([inside])
    if cursor.take('\\"'):
        cursor.repair("escaped_quotes")
        return _over_escaped(cursor)
    quote = cursor.next
    cursor.at += 1
    if quote == "'":
        cursor.repair("single_quotes")
    return _until(cursor, quote)


def _over_escaped(cursor: Cursor) -> str:
    """Return a string between escaped quotes. How often a further backslash in it counts, nobody knows."""
    inside = cursor.upto("\\", '"')
    if inside is None:
        raise Truncated("truncated")
    if not cursor.take('\\"'):
        raise Ambiguous("escapes")
    return inside


def _until(cursor: Cursor, quote: str) -> str:
    pieces: list[str] = []
    while True:
        plain = cursor.match(_PLAIN)
        if plain is not None:
            pieces.append(plain.group())
        character = cursor.next
        if character == quote:
            cursor.at += 1
            return _joined(pieces)
        if character == "\\":
            pieces.append(_escape(cursor))
            continue
        if character in "\n\t\r":
            cursor.repair("raw_control")
        elif character < " ":
            raise Unreadable("control_character")
        pieces.append(character)
        cursor.at += 1


def _escape(cursor: Cursor) -> str:
    cursor.at += 1
    letter = cursor.next
    cursor.at += 1
    if letter == "u":
        digits = cursor.match(_HEX4)
        if digits is None:
            raise Truncated("truncated") if len(cursor.text) - cursor.at < 4 else Unreadable("malformed_json")  # noqa: PLR2004 - four digits
        return chr(int(digits.group(), 16))
    if letter not in _ESCAPES:
        raise Ambiguous("escapes")
    if letter == "'":
        cursor.repair("escaped_apostrophe")
    return _ESCAPES[letter]


def _joined(pieces: list[str]) -> str:
    """Return the string of `pieces`, pairs of surrogates made whole; raise `Unreadable` for a lone one."""
    text = "".join(pieces)
    if _SURROGATE.search(text) is None:
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Unreadable("lone_surrogate") from None
