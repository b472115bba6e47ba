# SPDX-License-Identifier: Apache-2.0
"""Beneath: read text files and list folders strictly beneath one granted root.

Owns what may be read: regular files with a single name, of bounded size, that are text. Leaves path
spelling to `paths`, opening to `openers`, and whether a root is granted at all to the policy. Invariant
P2: no path, link, hard link or race yields content from outside the root. Links in the root's configured
path are the operator's choice: they are followed once, when the profile is opened. From then on the root is
its resolved path, opened from the top of the file system through no link, and the very folder that stood
there (device and inode). A folder that existed then keeps its own inode, so none can take that place.

A second name (hard link) is refused because a file outside the grant could be read through it.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from runner.capability.tools.listing import (
    Entry,
    Folder,
    Kind,
    Limits,
    Tally,
    Walk,
    entry_of,
    folder_of,
    kind_of,
    stamp_of,
)
from runner.capability.tools.names import is_bin
from runner.capability.tools.openers import CAN_CONFINE, FOLDER, PASS, Opener, best_opener, open_from_top
from runner.kernel.errors import ToolError
from runner.kernel.ports import Identity, Root

_READ: Final = getattr(os, "O_RDONLY", 0)
_LINKED: Final = (errno.ELOOP, errno.EXDEV, errno.ENOTDIR, errno.EMLINK)
_REPLACED: Final = "the granted folder was replaced since the profile was opened: open the profile again"
_CONTROLS: Final = re.compile(r"[\x01-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """The text of a file and the `encoding` it was read with: `utf-8`, or `cp1252` when it was not that."""

    text: str = field(repr=False)
    encoding: str


class NotThere(ToolError):
    """Nothing stands at a path."""


class Beneath:
    """What can be read beneath `root`, which is a folder or a single file.

    `opener` is one of `runner.capability.tools.openers`. Raises `ToolError` where the system cannot
    confine. Every method opens the root anew and raises `ToolError`, whose text holds no path.
    """

    def __init__(self, root: Root, *, limits: Limits | None = None, opener: Opener | None = None) -> None:
        if not CAN_CONFINE:
            raise ToolError("this system cannot confine file reads to a folder: read tools are off here")
        self._root = root
        self._limits = limits or Limits()
        self._open = opener or best_opener()

    def kind(self, parts: Sequence[str]) -> Kind:
        """Return what stands at `parts`; a link is refused with `ToolError`, not reported."""
        with self.opened(parts, _READ) as handle:
            return kind_of(os.fstat(handle).st_mode)

    def check_single(self, parts: Sequence[str], *, present: bool = True) -> None:
        """Raise `ToolError` for a link, a path through one, a file with a second name.

        Also for what is not there, if it has to be `present`.
        """
        try:
            with self._entered(parts, _READ) as (root, handle):
                self._check_only_name(root, handle, parts)
        except NotThere:
            if present:
                raise

    def identity(self) -> Identity:
        """Return which folder or file the root is now; raise `ToolError` if it is neither."""
        with self.opened((), _READ) as handle:
            about = os.fstat(handle)
            if kind_of(about.st_mode) not in (Kind.FILE, Kind.FOLDER):
                raise ToolError("a granted path is a folder or a regular file")
            return about.st_dev, about.st_ino

    def read(self, parts: Sequence[str]) -> str:
        """Return the text of the file at `parts`; raise `ToolError`."""
        return self.load(parts).text

    def load(self, parts: Sequence[str]) -> FileText:
        """Return the text of the file at `parts` and its encoding; raise `ToolError`."""
        return decode(self.data(parts))

    def data(self, parts: Sequence[str]) -> bytes:
        """Return the bytes of the file at `parts`; raise `ToolError`."""
        with self._entered(parts, _READ) as (root, handle):
            data = self.contents(handle)
            self._check_only_name(root, handle, parts)
            return data

    def beginning(self, parts: Sequence[str], size: int) -> bytes:
        """Return the first `size` bytes of the file at `parts`, however large it is; raise `ToolError`."""
        with self._entered(parts, _READ) as (root, handle):
            _refuse_irregular(os.fstat(handle))
            data = os.read(handle, size)
            self._check_only_name(root, handle, parts)
            return data

    def _check_only_name(self, root: int, handle: int, parts: Sequence[str]) -> None:
        """Raise `ToolError` unless the file of `handle` has one name now, which is that at `parts` of `root`.

        A second name may lose the first one between opening and looking, and would then count as one. Looking
        by the name tells both at once: which file it is, and how many names that file has.
        """
        about = opened = os.fstat(handle)
        if parts:
            with ExitStack() as stack:
                folder = root
                if inner := parts[:-1]:
                    folder = self._open(root, inner, PASS)
                    stack.callback(os.close, folder)
                about = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        if (about.st_dev, about.st_ino) != (opened.st_dev, opened.st_ino):
            raise ToolError("that file was exchanged by somebody else while it was read: read it again")
        refuse_second_name(about)

    def entries(self, parts: Sequence[str]) -> Folder:
        """Return what the folder at `parts` holds, sorted by name; raise `ToolError`."""
        with self.opened(parts, FOLDER) as handle, os.scandir(handle) as scan:
            found: list[Entry] = []
            vanished = 0
            for entry in scan:
                if len(found) >= self._limits.names:
                    return folder_of(found, vanished, cut=True)
                try:
                    found += [] if is_bin(entry.name) else [entry_of(entry)]
                except FileNotFoundError:
                    vanished += 1
            return folder_of(found, vanished, cut=False)

    def walk(self, start: Sequence[str] = ()) -> Walk:
        """Return the files at or beneath `start`, depth first, sorted by name; raise `ToolError`.

        A folder's own files come before those of its folders. Links, pipes, devices and folders that
        cannot be listed are skipped and counted.
        """
        with self.opened(start, _READ) as handle:
            about = os.fstat(handle)
        if kind_of(about.st_mode) is Kind.FILE:
            return Walk(files=(tuple(start),), skipped=0, cut=False, stamps=(stamp_of(about),))
        tally = Tally(limits=self._limits, base=len(start))
        tally.add(tuple(start), self.entries(start))
        while tally.pending and not tally.full:
            here = tally.pending.pop()
            try:
                tally.add(here, self.entries(here))
            except ToolError:
                tally.skipped += 1
        return Walk(
            files=tuple(tally.files),
            skipped=tally.skipped,
            cut=tally.cut or bool(tally.pending),
            stamps=tuple(tally.stamps),
        )

    @contextmanager
    def opened(self, parts: Sequence[str], flags: int) -> Iterator[int]:
        """Yield a handle of what stands at `parts`, opened with `flags` of open(2); raise `ToolError`.

        The bin is not there for any tool.
        """
        with self._entered(parts, flags) as (_, handle):
            yield handle

    @contextmanager
    def _entered(self, parts: Sequence[str], flags: int) -> Iterator[tuple[int, int]]:
        """Yield a handle of the root, and one of what stands at `parts`. See `opened`."""
        check_parts(parts)
        if any(map(is_bin, parts)):
            raise NotThere(reason(FileNotFoundError(errno.ENOENT, "")))
        with in_words(), ExitStack() as stack:
            root = handle = self.enter()
            stack.callback(os.close, root)
            if parts:
                handle = self._open(root, parts, flags)
                stack.callback(os.close, handle)
            yield root, handle

    def enter(self) -> int:
        """Return a new handle of the root itself: no link on the way, and the one that was granted.

        Raises `ToolError`.
        """
        try:
            root = open_from_top(self._root.path, _READ, self._open)
            about = os.fstat(root)
        except OSError as problem:
            if problem.errno in _LINKED:
                raise ToolError(_REPLACED) from None
            raise ToolError(f"the granted folder itself: {reason(problem)}") from None
        if self._root.identity not in (None, (about.st_dev, about.st_ino)):
            os.close(root)
            raise ToolError(_REPLACED)
        return root

    def contents(self, handle: int) -> bytes:
        """Return the bytes of the regular file that `handle` is of, if it has one name; raise `ToolError`."""
        _refuse_irregular(os.fstat(handle))
        with os.fdopen(handle, "rb", closefd=False) as stream:
            data = stream.read(self._limits.file_bytes + 1)
        if len(data) > self._limits.file_bytes:
            raise ToolError(f"that file is larger than {self._limits.file_bytes:,} bytes and is not read")
        return data


def identity_of(path: str) -> Identity:
    """Return which folder or regular file stands at `path`, resolved and so free of links.

    Raises `ToolError` when there is none, it cannot be opened, or this system cannot confine reads to it.
    """
    return Beneath(Root(alias="", path=path)).identity()


def check_parts(parts: Sequence[str]) -> None:
    """Raise `ToolError` unless each part is one plain name: not empty, `.` or `..`, no separator, no NUL."""
    for part in parts:
        if part in ("", ".", "..") or any(character in part for character in "/\\\0"):
            raise ToolError("a path has only plain names between slashes: no '..', '//', backslash or NUL")
        try:
            os.fsencode(part)
        except UnicodeEncodeError:
            raise ToolError("a path holds a character no file name can hold") from None


def decode(data: bytes) -> FileText:
    """Return `data` as text: UTF-8 with or without a mark, else Windows-1252; raise `ToolError`."""
    encodings = () if b"\0" in data else ("utf-8-sig", "cp1252")
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding == "utf-8-sig" or not _CONTROLS.search(text):
            return FileText(text=text, encoding=encoding.removesuffix("-sig"))
    raise ToolError("that file is not text (neither UTF-8 nor Windows-1252) and is not read")


def refuse_second_name(about: os.stat_result) -> None:
    """Raise `ToolError` for a file that may stand elsewhere too."""
    if stat.S_ISREG(about.st_mode) and about.st_nlink > 1:
        raise ToolError("that file has a second name (hard link) and is left alone: ask for a plain copy")


def _refuse_irregular(about: os.stat_result) -> None:
    """Raise `ToolError` for what is no regular file, or one that may stand elsewhere too."""
    if not stat.S_ISREG(about.st_mode):
        raise ToolError("that is not a regular file: list_dir shows what a folder holds")
    refuse_second_name(about)


@contextmanager
def in_words(others: Mapping[int, str] = MappingProxyType({})) -> Iterator[None]:
    """Translate what the system says; raise `ToolError`, and `NotThere` where nothing is.

    `others` has sentences, by error number, that go before those of `reason`.
    """
    try:
        yield
    except FileNotFoundError as problem:
        raise NotThere(reason(problem)) from None
    except OSError as problem:
        raise ToolError(others.get(problem.errno or 0) or reason(problem)) from None


def reason(problem: OSError) -> str:
    """Return in our words why something beneath a root cannot be opened."""
    if problem.errno == errno.ENOENT:
        return "there is no such file or folder: list_dir shows the names there are"
    if problem.errno in _LINKED:
        return (
            "the path goes through a link or through something that is not a folder: links are not followed"
        )
    if problem.errno in (errno.EACCES, errno.EPERM):
        return "the system does not allow reading it"
    return "it cannot be opened"
