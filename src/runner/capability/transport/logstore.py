# SPDX-License-Identifier: Apache-2.0
"""A book on disk: a folder of logs, and a head pin in another folder.

Owns files, modes and syncs. Knows nothing of records. Carries I9: what `sync` or `create` or `write_pin`
returned from is on the disk, on macOS through its write cache (`F_FULLFSYNC`). Carries I4 on this side:
logs only grow, one process writes, and the newest head pin is never written to. The writer's lock is on the
folder itself: no file in it, when it is removed, lets a second writer in.
"""

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from runner.capability.transport.slots import SLOT, encode_slot, newest, offset_of
from runner.kernel.errors import TraceError, TraceUnavailable

_SUFFIX: Final = ".jsonl"
_NEW: Final = "new-log.tmp"
_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_WRITE: Final = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Nothing here follows a link, or waits for who might read from a pipe."""


@contextmanager
def opening(what: str) -> Iterator[None]:
    """Translate an `OSError` while `what` is opened or made into `TraceUnavailable`."""
    try:
        yield
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "input/output error")
        raise TraceUnavailable(
            f"the {what} cannot be opened: {reason}. Fix: check its path and mode"
        ) from None


def make_private_folder(folder: Path) -> None:
    """Make `folder` and what leads to it, mode 0700, durably; raise `OSError`.

    An existing folder keeps its mode. Its name is on the disk either way: what is synced in a folder must not
    vanish with it, and who made it may have died before this.
    """
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    with suppress(PermissionError):  # a folder that may be entered and not read cannot be synced
        sync_folder(folder.parent)


def refuse_inside(path: Path, book: Path, what: str) -> None:
    """Raise `TraceError` if `path` lies in the folder `book`: who alters the logs must not reach it."""
    if path.resolve().is_relative_to(book.resolve()):
        raise TraceError(f"the {what} lies inside the trace folder. Fix: keep it in another folder")


def sync_file(handle: int) -> None:
    """Return when the file or folder `handle` is on the disk; raise `OSError`."""
    if sys.platform == "darwin":
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    else:
        os.fsync(handle)


def sync_data(handle: int) -> None:
    """Return when what the file `handle` holds is on the disk, whatever of its times is; raise `OSError`."""
    if sys.platform == "linux":
        os.fdatasync(handle)
    else:
        sync_file(handle)


def sync_folder(folder: Path) -> None:
    """Return when the names in `folder` are on the disk; raise `OSError`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_file(handle)
    finally:
        os.close(handle)


def close_synced(handle: int) -> None:
    """Close `handle`, if it is one, which is never tried again: its number may be another file's by then.

    What counts of it was synced, and an error here says nothing about that.
    """
    if handle >= 0:
        with suppress(OSError):
            os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write the whole of `data`; raise `OSError`."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def read_regular(path: Path, flags: int = 0, *, synced: bool = False, most: int = -1) -> bytes:
    """Return the bytes of a regular file, which are on the disk then if `synced`; raise `OSError`.

    Raises it for anything else too. Nothing waits here: a pipe in the place of a file would hold the runner
    until somebody writes to it. No more than `most` bytes are read, if that is not negative.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file")
    with os.fdopen(handle, "rb") as file:
        if synced:
            sync_file(handle)
        return file.read(most)


def replace_file(target: Path, temporary: Path, data: bytes) -> None:
    """Make `target` hold `data`, atomically and durably, by way of `temporary` beside it; raise `OSError`.

    What stands at `temporary`, left by a crash or put there, is removed and never written to.
    """
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, _WRITE | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    try:
        write_all(handle, data)
        sync_file(handle)
    finally:
        os.close(handle)
    temporary.rename(target)
    sync_folder(target.parent)


class FolderLog:
    """One open log file, for appending."""

    __slots__ = ("_handle", "_size")

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, _WRITE | os.O_APPEND)
        self._size = os.fstat(self._handle).st_size

    def append(self, data: bytes) -> None:
        """Write `data` at the end; raise `OSError`.

        Raises `TraceUnavailable` when somebody else cut, lengthened or removed the file: a record is not
        written behind a gap, nor into a file that has no name any more.
        """
        state = os.fstat(self._handle)
        if state.st_size != self._size or state.st_nlink == 0:
            raise TraceUnavailable("somebody else changed or removed the log. Fix: verify the book")
        write_all(self._handle, data)
        self._size += len(data)

    def sync(self) -> None:
        """Return when everything appended is on the disk; raise `OSError`."""
        sync_data(self._handle)

    def close(self) -> None:
        """Close the handle; nothing is synced here."""
        handle, self._handle = self._handle, -1
        close_synced(handle)


class FolderLogStore:
    """The book in the folder `book`, its head pin in the file `pin` of another folder.

    Makes both folders. Raises `TraceError` when the pin lies inside the book or a folder cannot be made.
    """

    __slots__ = ("_book", "_lock", "_pin")

    def __init__(self, book: Path, pin: Path) -> None:
        refuse_inside(pin, book, "head pin")
        self._book, self._pin = book, pin
        self._lock = -1
        with opening("trace folder"):
            make_private_folder(book)
            make_private_folder(pin.parent)

    def acquire(self) -> None:
        """Take the one-writer lock for life; raise `TraceUnavailable` if it is taken, else `OSError`.

        Where a folder cannot be locked, as on some network file systems, no book is written (I7).
        """
        handle = os.open(self._book, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._refuse_moved(handle)
            sync_file(handle)  # a log that is found here, left by who died, is not to vanish again
        except BaseException as error:
            os.close(handle)
            if isinstance(error, BlockingIOError):
                raise TraceUnavailable(
                    "another process writes this book. Fix: end it, or use a second book: name other folders "
                    "under trace.path and trace.keys of the profile"
                ) from None
            raise
        self._lock = handle

    def release(self) -> None:
        """Give the lock back, if it is held."""
        handle, self._lock = self._lock, -1
        close_synced(handle)  # not LOCK_UN: in a forked child that would take the parent's lock away

    def names(self) -> Sequence[str]:
        """Return the names of the logs by number, and any other name that ends like one."""
        found = [entry.name for entry in self._book.iterdir() if entry.name.endswith(_SUFFIX)]
        return sorted(found, key=lambda name: (len(name.partition("-")[0]), name))

    def read(self, name: str) -> bytes:
        """Return the bytes of the log `name`, on the disk by now; raise `OSError`, for a link too.

        The next log names what was read. It may have been written by who died before syncing it.
        """
        return read_regular(self._book / name, os.O_NOFOLLOW, synced=True)

    def create(self, name: str, head: bytes) -> FolderLog:
        """Make the log `name` with `head` in it, whole and durable, and return it open.

        Raises `TraceError` without the lock, `FileExistsError` if it exists, and `OSError`.
        """
        if self._lock < 0:
            raise TraceError("a log is created under the writer's lock only. Fix: take it first")
        target = self._book / name
        if os.path.lexists(target):
            raise FileExistsError(name)
        replace_file(target, self._book / _NEW, head)
        return FolderLog(target)

    def read_pin(self) -> bytes | None:
        """Return the head pin, on the disk by now, or None when there is none yet; raise `OSError`.

        A file without a whole slot is returned as it is: it is of an earlier version, or damaged.
        """
        try:
            data = read_regular(self._pin, synced=True)
            sync_folder(self._pin.parent)  # its name too: who made it may have died before that
        except FileNotFoundError:
            return None
        found = newest(data)
        return data if found is None else found[1]

    def write_pin(self, pin: bytes) -> None:
        """Put `pin` in the place of the head pin before the last one, durably; raise `OSError`.

        That last one stays whole, so that a write which breaks off leaves it. Raises `TraceUnavailable` when
        the book's folder was moved or replaced since it was locked: another process may write the one that
        stands there now, and the pin is for that one.
        """
        if self._lock >= 0:
            self._refuse_moved(self._lock)
        found = newest(read_regular(self._pin)) if os.path.lexists(self._pin) else None
        if found is None:
            both = encode_slot(0, pin) + bytes(SLOT)  # the second one too: its block is there from now on
            replace_file(self._pin, self._pin.with_name(self._pin.name + ".tmp"), both)
            return
        number = found[0] + 1
        handle = os.open(self._pin, _WRITE)
        try:
            os.lseek(handle, offset_of(number), os.SEEK_SET)
            write_all(handle, encode_slot(number, pin))
            sync_data(handle)
        finally:
            os.close(handle)

    def retire(self) -> Path:
        """Move the book aside as a whole, its head pin first, and return where its folder lies now.

        Raises `TraceError` without the lock or when it cannot be moved.
        """
        if self._lock < 0:
            raise TraceError("a book is moved under the writer's lock only. Fix: take it first")
        with opening("trace folder"):
            suffix = next(each for each in map(".ended-{}".format, count(1)) if self._is_free(each))
            if self._pin.exists():
                self._pin.rename(_beside(self._pin, suffix))
                sync_folder(self._pin.parent)
            self._book.rename(_beside(self._book, suffix))
            sync_folder(self._book.parent)
        return _beside(self._book, suffix)

    def _is_free(self, suffix: str) -> bool:
        return not os.path.lexists(_beside(self._book, suffix))

    def _refuse_moved(self, handle: int) -> None:
        """Raise `TraceUnavailable` unless the open folder `handle` is the one that the book's path names."""
        try:
            if os.path.samestat(os.fstat(handle), self._book.stat()):
                return
        except FileNotFoundError:
            pass  # as below
        raise TraceUnavailable("the trace folder was moved or replaced. Fix: put it back, then start again")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def read_boot_id() -> str | None:
    """Return 32 hex digits that change with every start of the system; None where the system has none."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        return None
    return text.strip().replace("-", "").lower()
