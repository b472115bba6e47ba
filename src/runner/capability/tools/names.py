# SPDX-License-Identifier: Apache-2.0
"""Names that a tool may write, and the one of the bin, which no tool sees.

Owns what a written path may look like beyond being plain. Leaves spelling to `paths` and opening to
`openers`. Invariant P2: no name that begins with a dot is written, for settings that programs obey stand
there (hooks, start files), and so does the bin. Two file systems may call two spellings one name, so names
are compared without case and compatibility forms, and a new name is one that every system takes.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from runner.kernel.errors import ToolError
from runner.kernel.shown import is_seen

BIN: Final = ".akaion-bin"
"""The folder, at the top of a granted one, that keeps what tools replaced or took away."""
_NOT_EVERYWHERE: Final = frozenset('<>:"|?*')
"""Characters that some system gives another meaning in a name."""


def is_bin(name: str) -> bool:
    """Return whether `name` may be that of the bin on some file system."""
    return fold(name) == BIN


def fold(name: str) -> str:
    """Return `name` as the least distinguishing file system knows it: no case, no compatibility forms."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded)


def check_written(parts: Sequence[str]) -> None:
    """Raise `ToolError` unless `parts` name a file that a tool may write: nothing hidden, nothing unseen."""
    if not parts:
        raise ToolError("name a file in the folder: folder/name.txt")
    for part in parts:
        if fold(part).startswith("."):
            raise ToolError("a name that begins with a dot is not written: programs keep settings there")
        if not all(map(is_seen, part)):
            raise ToolError("a written name has only characters that can be seen")


def check_new(name: str) -> None:
    """Raise `ToolError` unless `name` is one that every system takes and gives back as it is."""
    if name != name.strip(" ") or name.endswith("."):
        raise ToolError("a new name begins and ends without a space, and ends without a dot")
    if _NOT_EVERYWHERE & set(name):
        raise ToolError(f"a new name has none of these: {' '.join(sorted(_NOT_EVERYWHERE))}")
    if unicodedata.normalize("NFC", name) != name:
        raise ToolError("a new name is written with composed accents (NFC)")


def check_no_twin(name: str, others: Iterable[str]) -> None:
    """Raise `ToolError` where one of `others` differs from `name` in case or form only."""
    folded = fold(name)
    if any(other != name and fold(other) == folded for other in others):
        raise ToolError("a name there differs from this one in capitals or accents only: see list_dir")
