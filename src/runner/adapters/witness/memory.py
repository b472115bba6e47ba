# SPDX-License-Identifier: Apache-2.0
"""What a witness remembers, on disk: one file for each book, with the key it trusts and what it saw.

Owns the folder, its lock and the form of a file. A book without a file is unknown, so that a lost file makes
the witness refuse and never start over. Carries I4 with `judge`: `keep` returns when the file is on the disk.
"""

import fcntl
import os
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from runner.adapters.witness.judge import Seen, Trusted
from runner.capability.transport.logstore import make_private_folder, read_regular, replace_file
from runner.kernel.errors import TraceError
from runner.perimeter.trace.cosign import Key
from runner.perimeter.trace.note import decoded, parse_vkey, vkey

_SUFFIX: Final = ".book"


class FolderMemory:
    """The memory in `folder`, which is made. As a context manager it holds the folder for one process.

    Raises `TraceError` when another process holds it, and where the disk fails.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handle = -1

    def __enter__(self) -> Self:
        with _disk():
            make_private_folder(self._folder)
            handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise TraceError("another process is this witness. Fix: end it, or use its folder") from None
        self._handle = handle
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def recall(self, origin: str) -> Trusted | None:
        """Return what is known of `origin`, None if nothing; raise `TraceError` for a damaged file."""
        path = self._path(origin)
        with _disk():
            return _parse(read_regular(path), origin) if os.path.lexists(path) else None

    def keep(self, trusted: Trusted) -> None:
        """Return when `trusted` is on the disk; raise `TraceError`."""
        path = self._path(trusted.key.name)
        root = b64encode(trusted.seen.root).decode("ascii")
        lines = (vkey(trusted.key.name, trusted.key.public), str(trusted.seen.size), root)
        with _disk():
            replace_file(path, path.with_suffix(".tmp"), "".join(f"{line}\n" for line in lines).encode())

    def all(self) -> Iterator[Trusted]:
        """Yield every book that is known; raise `TraceError` for a damaged file."""
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            with _disk():
                yield _parse(read_regular(path), None)

    def _path(self, origin: str) -> Path:
        return self._folder / (sha256(origin.encode("utf-8", "surrogatepass")).hexdigest()[:32] + _SUFFIX)


def _parse(data: bytes, origin: str | None) -> Trusted:
    try:
        key, size, root, rest = data.decode("utf-8").split("\n")
        name, public = parse_vkey(key)
        seen = Seen(size=int(size), root=decoded(root))
    except ValueError:
        raise TraceError("what the witness remembers of a book is damaged. Fix: restore it") from None
    if rest or (origin is not None and name != origin):
        raise TraceError("what the witness remembers of a book is damaged. Fix: restore it")
    return Trusted(key=Key(name=name, public=public), seen=seen)


@contextmanager
def _disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TraceError(
            f"the witness's folder fails: {error.strerror}. Fix: own it, and look at its disk"
        ) from None
