# SPDX-License-Identifier: Apache-2.0
"""What is in the bin of a granted folder, and putting it back: for a person, never for a tool.

Owns finding and restoring. Leaves making entries to `bin` and `writing`. Invariant P2: as there, through no
link, and nothing is lost: what stands at the path changes places with what comes back.
"""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from runner.capability.tools.beneath import Beneath
from runner.capability.tools.names import BIN
from runner.capability.tools.openers import FOLDER
from runner.capability.tools.paths import virtual
from runner.capability.tools.renames import exchange, move
from runner.kernel.errors import ToolError
from runner.kernel.ports import Root


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file in the bin: the `entry` it lies in, the `path` it had as a model names it, `size` in bytes."""

    entry: str
    path: str = field(repr=False)
    size: int


def kept_in(root: Root) -> tuple[Kept, ...]:
    """Return what the bin of `root` holds, oldest first; raise `ToolError`."""
    return tuple(
        Kept(entry=entry, path=virtual(root, inner), size=size) for entry, inner, size in _files(root)
    )


def restore(root: Root, entry: str) -> str:
    """Put the file of `entry` back to where it stood, and return that path as a model names it.

    A file that stands there now takes its place in the bin. Raises `ToolError`.
    """
    found = [inner for each, inner, _ in _files(root) if each == entry]
    if len(found) != 1:
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


def _files(root: Root) -> list[tuple[str, tuple[str, ...], int]]:
    """Return entry, path beneath the root and size of each file in its bin."""
    if not Path(root.path, BIN).is_dir():
        return []
    walk = Beneath(_bin_of(root)).walk()
    return [
        (parts[0], parts[1:], stamp[0]) for parts, stamp in zip(walk, walk.stamps, strict=True) if parts[1:]
    ]


def _bin_of(root: Root) -> Root:
    return Root(alias=root.alias, path=f"{root.path}/{BIN}")
