# SPDX-License-Identifier: Apache-2.0
"""What is in the bin of a granted folder, and putting it back: for a person, never for a tool.

Owns finding and restoring. Leaves making entries to `bin` and `writing`. Invariant P2: as there, through no
link, and nothing is lost: what stands at the path changes places with what comes back.
"""

import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from runner.capability.tools.beneath import Beneath, NotThere
from runner.capability.tools.listing import Limits, Walk
from runner.capability.tools.names import BIN
from runner.capability.tools.openers import FOLDER
from runner.capability.tools.paths import virtual
from runner.capability.tools.renames import exchange, move
from runner.kernel.errors import ToolError
from runner.kernel.ports import Root

_UNLIMITED: Final = Limits(files=sys.maxsize, folders=sys.maxsize, depth=sys.maxsize, names=sys.maxsize)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file in the bin: the `entry` it lies in, the `path` it had as a model names it, `size` in bytes."""

    entry: str
    path: str = field(repr=False)
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a bin holds, oldest first, and of how many names in it nothing can be said."""

    kept: tuple[Kept, ...]
    unlisted: int


def held_in(root: Root) -> Held:
    """Return what the bin of `root` holds, however much that is; raise `ToolError`."""
    walk = _walk(root)
    kept = (
        Kept(entry=parts[0], path=virtual(root, parts[1:]), size=stamp[0])
        for parts, stamp in zip(walk, walk.stamps, strict=True)
        if parts[1:]
    )
    return Held(kept=tuple(kept), unlisted=walk.skipped)


def holds(root: Root, entry: str) -> bool:
    """Return whether the bin of `root` has a file in `entry`; raise `ToolError`."""
    return bool(_walk(root, entry).files)


def restore(root: Root, entry: str) -> str:
    """Put the file of `entry` back to where it stood, and return that path as a model names it.

    A file that stands there now takes its place in the bin. Raises `ToolError`.
    """
    found = [parts[1:] for parts in _walk(root, entry)]
    if len(found) != 1 or not found[0]:
        raise ToolError("no one file lies there in the bin: see what does, and move it by hand")
    *inner, name = found[0]
    opened = Beneath(_bin_of(root)).opened
    with opened((entry, *inner), FOLDER) as kept, Beneath(root).opened(inner, FOLDER) as folder:
        try:
            move(kept, folder, name)
        except FileExistsError:
            if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise ToolError("something that is no file stands there now: move it away first") from None
            exchange(kept, folder, name)
        os.fsync(folder)
        os.fsync(kept)
    return virtual(root, found[0])


def _walk(root: Root, *entry: str) -> Walk:
    """Return the files in the bin of `root`, or in one `entry` of it. Who takes from a bin sees all of it."""
    with suppress(NotThere):
        if Path(root.path, BIN).is_dir():
            return Beneath(_bin_of(root), limits=_UNLIMITED).walk(entry)
    return Walk(files=(), skipped=0, cut=False)


def _bin_of(root: Root) -> Root:
    return Root(alias=root.alias, path=f"{root.path}/{BIN}")
