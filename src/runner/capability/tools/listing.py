# SPDX-License-Identifier: Apache-2.0
"""What a folder holds, and a walk of one: names with their kinds, sorted, bounded, what is left out counted.

Owns the shapes of a listing and the tally of a walk. Opens nothing: `beneath` does, and gives what the system
said of each name.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

Parts: TypeAlias = tuple[str, ...]
"""The names of a relative path, outermost first; empty for the root itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is read at once: bytes of a file; files, folders and levels of a walk; names of a folder."""

    file_bytes: int = 4 * 1024 * 1024
    files: int = 2000
    folders: int = 2000
    depth: int = 32
    names: int = 10_000


class Kind(StrEnum):
    """What a name in a folder stands for, the name itself looked at, never what it links to."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"


Stamp: TypeAlias = tuple[int, int, int, int]
"""What changes when a file does: size in bytes, mtime and ctime in nanoseconds, inode, as in stat(2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a folder, raw as the system gives it; `size` in bytes."""

    name: str = field(repr=False)
    kind: Kind
    size: int
    stamp: Stamp = field(default=(0, 0, 0, 0), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The entries of a folder by name, how many `vanished` meanwhile, and whether names were `cut`.

    Which names are left out of a folder with too many is the file system's choice.
    """

    entries: tuple[Entry, ...]
    vanished: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The regular files beneath a folder, how many names were `skipped`, and whether it was `cut`.

    `stamps` says of each of the files, in their order, how it was when its folder was read.
    """

    files: tuple[Parts, ...] = field(repr=False)
    skipped: int
    cut: bool
    stamps: tuple[Stamp, ...] = field(default=(), repr=False)

    def __iter__(self) -> Iterator[Parts]:
        return iter(self.files)


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a walk has seen so far; `base` is the depth it started at."""

    limits: Limits
    base: int
    files: list[Parts] = field(default_factory=list, repr=False)
    stamps: list[Stamp] = field(default_factory=list, repr=False)
    pending: list[Parts] = field(default_factory=list, repr=False)
    folders: int = 0
    skipped: int = 0
    cut: bool = False

    @property
    def full(self) -> bool:
        """Whether the walk may read no further folder."""
        return len(self.files) >= self.limits.files or self.folders >= self.limits.folders

    def add(self, here: Parts, folder: Folder) -> None:
        """Take in the `folder` at `here`."""
        self.folders += 1
        self.skipped += folder.vanished + sum(e.kind in (Kind.LINK, Kind.OTHER) for e in folder.entries)
        files = [entry for entry in folder.entries if entry.kind is Kind.FILE]
        inner = [(*here, entry.name) for entry in folder.entries if entry.kind is Kind.FOLDER]
        room = self.limits.files - len(self.files)
        deep = len(here) - self.base >= self.limits.depth
        self.cut = self.cut or folder.cut or len(files) > room or (deep and bool(inner))
        self.files += [(*here, entry.name) for entry in files[:room]]
        self.stamps += [entry.stamp for entry in files[:room]]
        self.pending += [] if deep else reversed(inner)


def folder_of(found: list[Entry], vanished: int, *, cut: bool) -> Folder:
    """Return a folder of what was `found`, sorted by name."""
    found.sort(key=lambda entry: entry.name)
    return Folder(entries=tuple(found), vanished=vanished, cut=cut)


def entry_of(entry: "os.DirEntry[str]") -> Entry:
    """Return one name of a folder; raise `OSError`, such as for one that is gone."""
    about = entry.stat(follow_symlinks=False)
    return Entry(name=entry.name, kind=kind_of(about.st_mode), size=about.st_size, stamp=stamp_of(about))


def stamp_of(about: os.stat_result) -> Stamp:
    """Return what changes when the file does."""
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino


def kind_of(mode: int) -> Kind:
    """Return what stands at a name, by its mode as in stat(2)."""
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISDIR(mode):
        return Kind.FOLDER
    return Kind.LINK if stat.S_ISLNK(mode) else Kind.OTHER
