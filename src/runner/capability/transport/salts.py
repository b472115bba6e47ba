# SPDX-License-Identifier: Apache-2.0
"""The salts of commitments, in a file that only grows.

Owns one file: a line `<commitment> <salt>` in hex for each. With a salt and the retained payload anyone can
check what was committed; without the salt the commitment says nothing (I12). So the file is as secret as
what it opens: mode 0600, outside the trace. Erasing is done by whoever owns the retention of the vault.
"""

import os
import re
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Final

from runner.capability.transport.logstore import (
    close_synced,
    make_private_folder,
    opening,
    refuse_inside,
    sync_file,
    sync_folder,
    write_all,
)

_MODE: Final = 0o600
_HEX_DIGITS: Final = 64
"""Of a salt; fewer are a line that broke off."""
_LINE: Final = re.compile(rb"([0-9a-f]{64}) ([0-9a-f]{64})\n?")


class FileSaltStore:
    """The salt file `path`, which must not lie in the trace folder `book`. Safe to use from several threads.

    Making one raises `TraceError` for a path inside the book, or a file that cannot be opened.
    """

    __slots__ = ("_handle", "_kept", "_lock", "_path")

    def __init__(self, path: Path, *, book: Path) -> None:
        refuse_inside(path, book, "salt file")
        self._path = path
        self._lock = threading.Lock()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with opening("salt file"):
            make_private_folder(path.parent)
            self._handle = os.open(path, flags, _MODE)
            try:
                sync_folder(path.parent)
                self._kept = bytearray(self._line_break())
            except BaseException:
                os.close(self._handle)
                raise

    def _line_break(self) -> bytes:
        """Return what ends a line that a crash left torn."""
        size = os.fstat(self._handle).st_size
        return b"\n" if size and os.pread(self._handle, 1, size - 1) != b"\n" else b""

    def keep(self, commit: str, salt: bytes) -> None:
        """Remember the 32-byte `salt` of `commit` (64 hex digits); it is on the disk after `sync`."""
        with self._lock:
            self._kept += f"{commit} {salt.hex()}\n".encode("ascii")

    def sync(self) -> None:
        """Return when every kept salt is on the disk; raise `OSError`."""
        with self._lock:
            if self._kept:
                try:
                    write_all(self._handle, bytes(self._kept))
                    sync_file(self._handle)
                except OSError:
                    self._kept[:0] = b"\n"  # a line that broke off ends before they are written again
                    raise
                self._kept.clear()

    def find(self, commit: str) -> bytes | None:
        """Return the synced salt of `commit`; None if there is none. Reads the file once; raise `OSError`."""
        wanted = commit.encode("ascii")
        with self._path.open("rb") as file:
            for line in file:
                name, _, salt = line.rstrip(b"\n").partition(b" ")
                if name == wanted and len(salt) == _HEX_DIGITS:
                    return bytes.fromhex(salt.decode("ascii"))
        return None

    def close(self) -> None:
        """Close the file; salts that were kept and not synced are dropped."""
        handle, self._handle = self._handle, -1
        close_synced(handle)


def read_salts(path: Path, wanted: Collection[str]) -> dict[str, bytes]:
    """Return the salts of the commitments `wanted` that the file `path` still holds; none where it is absent.

    Reads the file once and changes nothing. Raises `TraceError` when it cannot be read.
    """
    found: dict[str, bytes] = {}
    with opening("salt file"):
        if not path.exists():
            return found
        with path.open("rb") as file:
            for match in filter(None, map(_LINE.fullmatch, file)):
                name = match[1].decode("ascii")
                if name in wanted:
                    found[name] = bytes.fromhex(match[2].decode("ascii"))
    return found
