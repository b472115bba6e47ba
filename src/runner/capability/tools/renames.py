# SPDX-License-Identifier: Apache-2.0
"""Renames in one step, by folder handle: exchange two names, or move one to where nothing stands.

Owns the two calls that the standard library lacks. Leaves to `writing` what is renamed and why. Invariant P2:
a rename follows no link in the names it is given, and each is a single name in a folder that is open. A file
system that cannot do it in one step refuses (`EINVAL`), and then nothing was done. Source: renameat2(2), and
renameatx_np(2) of macOS.
"""

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Callable
from typing import Final

_EXCHANGE: Final = 2
"""RENAME_EXCHANGE, and RENAME_SWAP of macOS."""
_ONLY_NEW: Final = 4 if sys.platform == "darwin" else 1
"""RENAME_NOREPLACE, and RENAME_EXCL of macOS."""


def exchange(one: int, other: int, name: str) -> None:
    """Let `name` in the folder `one` and `name` in the folder `other` change places; raise `OSError`."""
    _rename(one, other, name, _EXCHANGE)


def move(one: int, other: int, name: str) -> None:
    """Move `name` from the folder `one` to `other`, where no such name may be; raise `OSError`."""
    _rename(one, other, name, _ONLY_NEW)


def _rename(one: int, other: int, name: str, flag: int) -> None:
    raw = os.fsencode(name)
    if _call()(one, raw, other, raw, flag) != 0:
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem))


@functools.cache
def _call() -> Callable[..., int]:
    """Return the system's call; one that says it is not there, where it is not."""
    library = ctypes.CDLL(None, use_errno=True)
    named = "renameatx_np" if sys.platform == "darwin" else "renameat2"
    function = getattr(library, named, None)
    if function is None:
        return _not_there
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call: Callable[..., int] = function
    return call


def _not_there(*_: object) -> int:
    ctypes.set_errno(errno.ENOSYS)
    return -1
