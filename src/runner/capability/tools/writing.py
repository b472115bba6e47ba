# SPDX-License-Identifier: Apache-2.0
"""Writing: make, change and take away single files strictly beneath one granted root, losing nothing.

Owns the steps, and what may be written: a regular file with one name that its owner may write, in a folder
that is there. Leaves opening to `beneath` and `openers`, the bin to `bin`, names to `names`. Invariant P2: as
for reads, no path, link, hard link or race changes anything outside the root.

A new version is made whole in the bin, brought to the disk, and then changes places with the old one in one
step. So whenever the process ends, the old or the new version stands at the path, whole, and what is not
there is in the bin. What was exchanged is compared with what was read: if somebody else wrote meanwhile, the
two change places again.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from runner.capability.tools.beneath import Beneath, in_words, refuse_second_name
from runner.capability.tools.bin import EntryName, entry, entry_name
from runner.capability.tools.listing import Limits
from runner.capability.tools.names import check_new, check_no_twin, check_written
from runner.capability.tools.openers import FOLDER, STILL, Opener, best_opener
from runner.capability.tools.renames import exchange, move
from runner.kernel.errors import ToolError
from runner.kernel.ports import Root

PRIVATE: Final = 0o600
"""The mode of a new file."""
PERMISSIONS: Final = 0o777
"""What a new version takes over of the old one's mode."""
_READ: Final = getattr(os, "O_RDONLY", 0)
_MAKE: Final = getattr(os, "O_WRONLY", 0) | getattr(os, "O_CREAT", 0) | getattr(os, "O_EXCL", 0)
_CHANGED: Final = "that file was changed by somebody else just now: read it again"
_REASONS: Final = {
    errno.EEXIST: "something of this name is there already: with replace, a file is written anew",
    errno.EXDEV: "that folder is on another disk than the granted one: nothing is written there",
    errno.ENOSPC: "the disk is full: nothing was changed",
    errno.EDQUOT: "the disk is full: nothing was changed",
    errno.EFBIG: "the system allows no file of that size: nothing was changed",
    errno.EROFS: "the disk cannot be written to",
    errno.EACCES: "the system does not allow writing there",
    errno.EPERM: "the system does not allow writing there",
    errno.ENAMETOOLONG: "that name is too long",
    errno.EINVAL: "the disk there cannot put one file in the place of another in one step",
    errno.ENOSYS: "this system cannot put one file in the place of another in one step",
    errno.EIO: "the disk failed: see what stands there, and in the bin",
}
"""What is said of a failure here; of another, what `reason` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a file of this `name` stands or will: handles of its `folder`, `inner` names below the `root`."""

    root: int
    folder: int
    name: str
    inner: Sequence[str]


class Writer:
    """What can be written beneath `root`, a folder. Each method raises `ToolError`, whose text has no path.

    `opener` is one of `runner.capability.tools.openers`; `name_entry` names what is made in the bin.
    `change` and `discard` return that name.
    """

    def __init__(
        self,
        root: Root,
        *,
        limits: Limits | None = None,
        opener: Opener | None = None,
        name_entry: EntryName = entry_name,
    ) -> None:
        self._limits = limits or Limits()
        self._open = opener or best_opener()
        self._beneath = Beneath(root, limits=self._limits, opener=self._open)
        self._name_entry = name_entry

    def create(self, parts: Sequence[str], data: bytes) -> None:
        """Make the file at `parts`, where nothing may stand, with `data` in it. Its mode is 0600."""
        with self._place(parts) as place:
            check_new(place.name)
            check_no_twin(place.name, _names_in(place.folder))
            with (
                entry(place.root, self._name_entry(), place.inner) as kept,
                _made(kept, place.name, self._bounded(data)),
            ):
                move(kept, place.folder, place.name)
            os.fsync(place.folder)

    def change(self, parts: Sequence[str], make: Callable[[bytes], bytes]) -> str:
        """Put what `make` makes of the bytes of the file at `parts` in their place; they go to the bin.

        Raises what `make` raises, and `NotThere`. Mode and owner stay, and where the owner cannot, nothing is
        changed.
        """
        with self._place(parts) as place, self._handle(place) as handle:
            about = _writable(handle)
            data = self._bounded(make(self._beneath.contents(handle)))
            name = self._name_entry()
            with (
                entry(place.root, name, place.inner) as kept,
                _made(kept, place.name, data, like=about),
            ):
                exchange(kept, place.folder, place.name)
                if not _is_still(kept, place.name, about):
                    exchange(kept, place.folder, place.name)
                    raise ToolError(_CHANGED)
            os.fsync(place.folder)
            return name

    def discard(self, parts: Sequence[str]) -> str:
        """Move the file at `parts`, whatever is in it, to the bin."""
        with self._place(parts) as place, self._handle(place) as handle:
            about = _writable(handle)
            refuse_second_name(about)
            name = self._name_entry()
            with entry(place.root, name, place.inner) as kept:
                move(place.folder, kept, place.name)
                if not _is_still(kept, place.name, about):
                    move(kept, place.folder, place.name)
                    raise ToolError(_CHANGED)
            os.fsync(place.folder)
            return name

    @contextmanager
    def _place(self, parts: Sequence[str]) -> Iterator[_Place]:
        """Yield where the file at `parts` stands, every handle opened through no link."""
        check_written(parts)
        *inner, name = parts
        opened = self._beneath.opened
        with opened((), FOLDER) as root, opened(inner, FOLDER) as folder, in_words(_REASONS):
            if not stat.S_ISDIR(os.fstat(root).st_mode):
                raise ToolError("a tool writes beneath a granted folder, and a single file is granted here")
            yield _Place(root=root, folder=folder, name=name, inner=inner)

    @contextmanager
    def _handle(self, place: _Place) -> Iterator[int]:
        handle = self._open(place.folder, (place.name,), _READ)
        try:
            yield handle
        finally:
            os.close(handle)

    def _bounded(self, data: bytes) -> bytes:
        if len(data) > self._limits.file_bytes:
            raise ToolError(f"a file of more than {self._limits.file_bytes:,} bytes is not written")
        return data


def _names_in(folder: int) -> Sequence[str]:
    with os.scandir(folder) as scan:
        return [each.name for each in scan]


def _writable(handle: int) -> os.stat_result:
    """Return what is known of the regular file behind `handle`, which its owner may write to."""
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        raise ToolError("that is not a regular file: only files are written or moved")
    if not about.st_mode & stat.S_IWUSR:
        raise ToolError("that file is set to be read only")
    return about


@contextmanager
def _made(folder: int, name: str, data: bytes, *, like: os.stat_result | None = None) -> Iterator[None]:
    """Have `data` on the disk as the new file `name` in `folder`, gone afterwards if it still stands there.

    It has the owner, group and permissions of `like`.
    """
    handle = os.open(name, _MAKE | STILL, PRIVATE, dir_fd=folder)
    made = os.fstat(handle)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            if like is not None:
                _take_after(handle, made, like)
            os.fsync(handle)
        yield
    finally:
        with suppress(OSError):
            there = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if (there.st_dev, there.st_ino) == (made.st_dev, made.st_ino):
                os.unlink(name, dir_fd=folder)


def _take_after(handle: int, made: os.stat_result, like: os.stat_result) -> None:
    if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
        os.fchown(handle, like.st_uid, like.st_gid)
    os.fchmod(handle, like.st_mode & PERMISSIONS)


def _is_still(folder: int, name: str, about: os.stat_result) -> bool:
    """Return whether `name` in `folder` is the file that `about` was said of, as it was then."""
    now = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return all(
        getattr(now, each) == getattr(about, each)
        for each in ("st_dev", "st_ino", "st_mode", "st_nlink", "st_size", "st_mtime_ns")
    )
