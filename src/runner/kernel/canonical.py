# SPDX-License-Identifier: Apache-2.0
"""Canonical bytes: the one encoding of a value that is hashed, signed or committed.

RFC 8785 restricted to what `akaion-trace/1` allows: objects with `[a-z][a-z0-9_]*` names, arrays,
strings without lone surrogates, booleans, null, integers up to 2^53-1. Floats are refused: decimals
are strings. Within this profile the standard library's encoder is canonical.

`canonical_bytes` takes any value. Whoever knows the members of its objects, as the writer of the trace does,
puts them together from the texts of their parts: `member_text`, `string_text`, `integer_text`, `utf_8`.
"""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Final

from runner.kernel.messages import Json

MAX_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 8
_TOO_LARGE: Final = "an integer is beyond 2^53-1"
_NO_NAME: Final = "a member name is not [a-z][a-z0-9_]{0,63}"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_PLAIN: Final = frozenset({str, bool, type(None)})
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)

string_text: Final = encode_basestring
"""Returns the canonical text of a string, by what the encoder uses; lone surrogates are left to `utf_8`."""


def canonical_bytes(value: Json) -> bytes:
    """Return the canonical UTF-8 encoding of `value`.

    Raises `ValueError` for a value outside the profile; the message never quotes it.
    """
    return utf_8(canonical_text(value))


def canonical_text(value: Json, room: int = MAX_DEPTH) -> str:
    """Return the text of those bytes, for `value` that nests at most `room` containers; raise as above.

    Lone surrogates are left to `utf_8`.
    """
    _check(value, room)
    return _ENCODER.encode(value)


def integer_text(value: object) -> str:
    """Return the canonical text of an integer of the profile; raise `ValueError` for anything else."""
    if isinstance(value, int) and abs(value) <= MAX_INTEGER:
        return int.__repr__(value)
    raise ValueError(_TOO_LARGE if isinstance(value, int) else _no_encoding(value))


def member_text(name: str) -> str:
    """Return the canonical beginning of a member, its name and the colon; raise `ValueError` for the name."""
    if not _is_name(name):
        raise ValueError(_NO_NAME)
    return string_text(name) + ":"


def utf_8(text: str) -> bytes:
    """Return the bytes of canonical text; raise `ValueError` for a lone surrogate."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a string holds a lone surrogate") from None


def _check(value: Json, room: int) -> None:
    """Raise unless `value` is in the profile and nests at most `room` containers."""
    if isinstance(value, dict):
        if not all(map(_is_name, value)):
            raise ValueError(_NO_NAME)
        items: Iterable[Json] = value.values()
    elif isinstance(value, list | tuple):
        items = value
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise ValueError(_TOO_LARGE)
        return
    elif value is None or isinstance(value, str):
        return
    else:
        raise ValueError(_no_encoding(value))
    if room == 0:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    for item in items:
        if type(item) not in _PLAIN:  # what most items are needs no call
            _check(item, room - 1)


def _no_encoding(value: object) -> str:
    return f"a {type(value).__name__} has no canonical encoding"


@lru_cache(maxsize=1024)
def _is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.match(name) is not None
