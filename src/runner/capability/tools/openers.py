# SPDX-License-Identifier: Apache-2.0
"""Openers: turn a folder handle and names beneath it into a file handle, following no link.

Owns the two ways to do it: one `openat2` call where the Linux kernel has it, a walk of folder handles
elsewhere. Leaves to `beneath` what may be read once it is open. Invariant P2: nothing outside a granted
folder is opened, also while another process swaps folders for links. Source: openat2(2), the flags
RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS.
"""

import ctypes
import errno
import functools
import os
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

Opener: TypeAlias = Callable[[int, Sequence[str], int], int]
"""(folder handle, names beneath it, flags of open(2)) -> handle; raises `OSError`.

Names are single: none is empty, `.` or `..`, and none holds `/` or NUL.
"""

STILL: Final = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
)
"""Flags of every open beneath a root: follow no link, wait for no pipe, take no terminal."""
FOLDER: Final = getattr(os, "O_RDONLY", 0) | getattr(os, "O_DIRECTORY", 0)
"""Flags that open a folder to list it and to bring it to the disk."""
CAN_CONFINE: Final = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether this system can open a name relative to a folder handle without following a link."""

PASS: Final = getattr(os, "O_PATH", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
"""Flags of a folder on the way: gone through where the system can do that without the right to list it."""
_PATH_ONLY: Final = getattr(os, "O_PATH", 0)
_SYS_OPENAT2: Final = 437
_SAME_NUMBER_EVERYWHERE_BUT: Final = "alpha"
_NO_MAGICLINKS: Final = 0x02
_NO_SYMLINKS: Final = 0x04
_BENEATH: Final = 0x08
_TRIES: Final = 16


class _OpenHow(ctypes.Structure):
    """`struct open_how` of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@functools.cache
def _syscall() -> Callable[..., int]:
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    function.argtypes = [
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.POINTER(_OpenHow),
        ctypes.c_size_t,
    ]
    call: Callable[..., int] = function
    return call


def _still(flags: int) -> int:
    """Return `flags` with those of `STILL` that go with them: openat2 refuses some beside O_PATH."""
    return (flags | STILL) & (PASS | getattr(os, "O_NOFOLLOW", 0)) if flags & _PATH_ONLY else flags | STILL


def open_by_openat2(folder: int, names: Sequence[str], flags: int) -> int:
    """Open `names` beneath `folder` in one call that the kernel confines. See `Opener`."""
    how = _OpenHow(flags=_still(flags), mode=0, resolve=_BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    path = b"/".join(os.fsencode(name) for name in names) or b"."
    for _ in range(_TRIES):
        handle = _syscall()(_SYS_OPENAT2, folder, path, ctypes.byref(how), ctypes.sizeof(how))
        if handle >= 0:
            return handle
        problem = ctypes.get_errno()
        if problem not in (errno.EAGAIN, errno.EINTR):
            raise OSError(problem, os.strerror(problem))
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def open_by_steps(folder: int, names: Sequence[str], flags: int) -> int:
    """Open `names` one by one, each relative to the handle of the one before. See `Opener`."""
    handle = os.open(".", _still(PASS if names else flags), dir_fd=folder)
    for number, name in enumerate(names, start=1):
        try:
            inner = os.open(name, _still(flags if number == len(names) else PASS), dir_fd=handle)
        finally:
            os.close(handle)
        handle = inner
    return handle


def open_from_top(path: str, flags: int, opener: Opener) -> int:
    """Open the absolute `path` from the top of the file system with `opener`; raise `OSError`.

    A link anywhere in it is refused, and so is any spelling but plain names between slashes (EINVAL).
    """
    names = [name for name in path.split("/") if name]
    if not path.startswith("/") or "\0" in path or {".", ".."} & set(names):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    top = os.open("/", PASS)
    try:
        return opener(top, names, flags)
    finally:
        os.close(top)


@functools.cache
def best_opener() -> Opener:
    """Return `open_by_openat2` where it works here, else `open_by_steps`. Asked once a process.

    An old kernel (ENOSYS) and a filter that forbids the call (EPERM) both choose the walk.
    """
    if sys.platform != "linux" or platform.machine() == _SAME_NUMBER_EVERYWHERE_BUT:
        return open_by_steps
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(open_by_openat2(root, (), os.O_RDONLY | os.O_DIRECTORY))
    except OSError:
        return open_by_steps
    finally:
        os.close(root)
    return open_by_openat2
