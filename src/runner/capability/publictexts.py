# SPDX-License-Identifier: Apache-2.0
"""Public texts: statutes and standard clauses, which anybody may quote.

Owns reading them, within bounds, from a file or from the text files of one folder. Leaves what follows from
it to the classifier. Carries I7: what cannot be read, or is too much, is refused at the start.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runner.capability.files import read_regular
from runner.kernel.errors import ConfigError

MOST_FILES: Final = 500
MOST_BYTES: Final = 2 << 20
"""Bytes of all files together: some 300,000 words, each of which takes some 100 bytes of memory."""
_ENDINGS: Final = (".txt", ".md")


def read_public_texts(path: Path, *, refuse: Callable[[str], ConfigError]) -> tuple[str, ...]:
    """Return the text of the file at `path`, or of each file in that folder that ends in .txt or .md.

    Links in a folder, and folders in it, are left out. Raises what `refuse` makes of the reason for one that
    is not UTF-8 or cannot be read, and for more than `MOST_FILES` or `MOST_BYTES`.
    """
    files = _files(path, refuse) if path.is_dir() else [path]
    if not 0 < len(files) <= MOST_FILES:
        raise refuse(f"holds {len(files)} files that end in .txt or .md: it may hold 1 to {MOST_FILES}")
    texts, left = [], MOST_BYTES
    for file in files:
        data = read_regular(file, most=left, refuse=refuse)
        left -= len(data)
        try:
            texts.append(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise refuse("holds a text that is not UTF-8") from None
    return tuple(texts)


def _files(folder: Path, refuse: Callable[[str], ConfigError]) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            there = [each for each in found if each.is_file(follow_symlinks=False)]
    except OSError as error:
        raise refuse(f"cannot be read ({error.strerror})") from None
    return sorted(folder / each.name for each in there if each.name.lower().endswith(_ENDINGS))
