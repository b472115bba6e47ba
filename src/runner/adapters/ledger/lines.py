# SPDX-License-Identifier: Apache-2.0
"""A log's file and its lines, read without belief.

Owns what every reader for display needs: the bytes of a file that may be no file, and the object on a line
that may be no record. It proves nothing (I4): that is the verifier's, which shares no code with this.
"""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from runner.kernel.errors import TraceError

_DEPTH: Final = 8
"""How deep a record may be nested (`contracts/trace/v1` §2)."""


def read_file(path: Path) -> bytes:
    """Return the bytes of the file at `path`; raise `TraceError` for a link or what is no file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise TraceError(f"{path.name} is not a file. Fix: restore it")
            return file.read()
    except OSError:
        raise TraceError(
            f"{path.name} cannot be read. Fix: restore it, or own it: a link is not followed"
        ) from None


def parse_line(line: bytes) -> Mapping[str, Any] | None:
    """Return the object on a line; None if there is none that could be a record. Total."""
    try:
        record = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and _is_shallow(record, _DEPTH) else None


def _refuse(constant: str) -> None:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError(constant)


def _is_shallow(value: object, depth: int) -> bool:
    match value:
        case dict():
            return depth > 0 and all(_is_shallow(item, depth - 1) for item in value.values())
        case list():
            return depth > 0 and all(_is_shallow(item, depth - 1) for item in value)
        case _:
            return True
