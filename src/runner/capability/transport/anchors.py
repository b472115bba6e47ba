# SPDX-License-Identifier: Apache-2.0
"""What stands beside a book's logs: anchors from elsewhere, each in a file of its own.

Owns reading the logs as they are and writing sidecars, whole and durable. Never writes to a log, and no name
it writes ends like one's. Carries I4 on this side: files only appear beside the record.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from runner.capability.transport.logstore import opening, read_regular, replace_file
from runner.kernel.errors import TraceError

_LOG: Final = ".jsonl"
_MAX_TEXT: Final = 1 << 20


def book_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each log in `folder`, in order; raise `TraceError` without the folder."""
    try:
        names = [entry.name for entry in folder.iterdir() if entry.name.endswith(_LOG)]
    except OSError:
        raise TraceError(
            f"there is no record at {folder}. Fix: run a task first, or name its folder"
        ) from None
    for name in sorted(names, key=lambda each: (len(each.partition("-")[0]), each)):
        with opening("record"):
            yield name, read_regular(folder / name, os.O_NOFOLLOW)


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a small file, none if it is not there; raise `TraceError` if it cannot be read."""
    if not os.path.lexists(path):
        return b""
    with opening("file"):
        data = read_regular(path, most=_MAX_TEXT + 1)
    if len(data) > _MAX_TEXT:
        raise TraceError(f"{path.name} is too large for what it should be. Fix: restore it, or move it away")
    return data


def read_text(path: Path) -> str:
    """Return the text of a small file, empty if it is not there; raise `TraceError` as above."""
    return read_bytes(path).decode("utf-8", "replace")


def write_sidecar(folder: Path, log: str, suffix: str, data: bytes) -> Path:
    """Put `data` beside the log named `log`, in a file of its name with `suffix`; return its path.

    Raises `TraceError` where it cannot be written.
    """
    target = folder / (log.removesuffix(_LOG) + suffix)
    write_beside(target, data)
    return target


def write_beside(target: Path, data: bytes) -> None:
    """Make the file `target` hold `data`, whole and durable; raise `TraceError` where that cannot be done."""
    with opening("file to write"):
        replace_file(target, target.with_name(target.name + ".tmp"), data)
