# SPDX-License-Identifier: Apache-2.0
"""The bin of a granted folder: where what a tool replaced or took away is kept, and found again by a person.

Owns the folder `.akaion-bin` at the top of a granted one. Each call of a tool makes one folder in it, named
after the moment, and in that the path as it was: `.akaion-bin/20260301T101500Z-3f9a2c71/letters/a.txt` stood
at `letters/a.txt`. So a person who knows nothing of this program can put it back by hand. Nothing here ever
empties the bin. Invariant P2: everything is made and opened by folder handle, through no link.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, TypeAlias

from runner.capability.tools.names import BIN
from runner.capability.tools.openers import FOLDER, STILL

PRIVATE: Final = 0o700
"""The mode of each folder of the bin: it holds what was taken out of others."""
EntryName: TypeAlias = Callable[[], str]
"""Returns a name that no folder of a bin has yet."""


def entry_name() -> str:
    """Return a name after the present moment (UTC), and eight hex digits that tell two of it apart."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(4).hex()}"


@contextmanager
def entry(root: int, name: str, inner: Sequence[str]) -> Iterator[int]:
    """Yield a handle of the new folder `name`/`inner` in the bin of the folder `root`.

    What is left empty is gone again afterwards; else all of it is on the disk. Raises `OSError`.
    """
    with ExitStack() as stack:
        handles = [_opened(stack, root, BIN, fresh=False)]
        try:
            for each in (name, *inner):
                handles.append(_opened(stack, handles[-1], each, fresh=True))
            yield handles[-1]
            for handle in (*reversed(handles), root):
                os.fsync(handle)
        finally:
            _remove_empty(handles, (name, *inner))


def _opened(stack: ExitStack, folder: int, name: str, *, fresh: bool) -> int:
    """Return a handle of the folder `name` in `folder`, made there; it may be there before unless `fresh`."""
    try:
        os.mkdir(name, PRIVATE, dir_fd=folder)
    except FileExistsError:
        if fresh:
            raise
    handle = os.open(name, FOLDER | STILL, dir_fd=folder)
    stack.callback(os.close, handle)
    return handle


def _remove_empty(handles: Sequence[int], made: Sequence[str]) -> None:
    """Remove the folders `made`, each in one of `handles`, innermost first, as far as they are empty."""
    with suppress(OSError):
        for folder, name in reversed(list(zip(handles, made, strict=False))):
            os.rmdir(name, dir_fd=folder)
