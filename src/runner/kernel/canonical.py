# SPDX-License-Identifier: Apache-2.0
"""Canonical bytes: the one encoding of a value that is hashed, signed or committed.

RFC 8785 restricted to what `akaion-trace/1` allows: objects with `[a-z][a-z0-9_]*` names, arrays,
strings without lone surrogates, booleans, null, integers up to 2^53-1. Floats are refused: decimals
are strings. Within this profile the standard library's encoder is canonical.
"""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from runner.kernel.messages import Json

MAX_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 8
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_PLAIN: Final = frozenset({str, bool, type(None)})
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_bytes(value: Json) -> bytes:
    """Return the canonical UTF-8 encoding of `value`.

    Raises `ValueError` for a value outside the profile; the message never quotes it.
    """
    _check(value, MAX_DEPTH)
    text = _ENCODER.encode(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a string holds a lone surrogate") from None


def _check(value: Json, room: int) -> None:
    """Raise unless `value` is in the profile and nests at most `room` containers."""
    if isinstance(value, dict):
        if not all(map(_is_name, value)):
            raise ValueError("a member name is not [a-z][a-z0-9_]{0,63}")
        items: Iterable[Json] = value.values()
    elif isinstance(value, list | tuple):
        items = value
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise ValueError("an integer is beyond 2^53-1")
        return
    elif value is None or isinstance(value, str):
        return
    else:
        raise ValueError(f"a {type(value).__name__} has no canonical encoding")
    if room == 0:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    for item in items:
        if type(item) not in _PLAIN:  # what most items are needs no call
            _check(item, room - 1)


@lru_cache(maxsize=1024)
def _is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.match(name) is not None
