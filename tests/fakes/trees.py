# SPDX-License-Identifier: Apache-2.0
"""A granted folder with every way out planted in it, and the openers that tests of file tools go through."""

import os
from pathlib import Path
from typing import Final

from runner.capability.tools.openers import Opener, best_opener, open_by_openat2, open_by_steps
from runner.kernel.ports import Root

OPENERS: Final[tuple[Opener, ...]] = (
    (open_by_steps, open_by_openat2) if best_opener() is open_by_openat2 else (open_by_steps,)
)
"""Those that this kernel has."""
NAMES: Final = (
    "g",
    "sub",
    "a.txt",
    "b.txt",
    "file-link",
    "folder-link",
    "hard.txt",
    "self",
    "outside",
    "secret.txt",
)
"""What stands somewhere in `planted`, and its alias."""


def planted(base: Path, canary: str) -> Root:
    """Make `base`/granted, and beside it a folder outside with `canary` in a file; return the root `g`."""
    (base / "outside").mkdir()
    (base / "outside" / "secret.txt").write_text(canary)
    granted = base / "granted"
    (granted / "sub").mkdir(parents=True)
    for folder in (granted, granted / "sub"):
        (folder / "a.txt").write_text("first line\nsecond line\n")
        (folder / "file-link").symlink_to(base / "outside" / "secret.txt")
        (folder / "folder-link").symlink_to(base / "outside")
        (folder / "self").symlink_to(".")
        os.link(base / "outside" / "secret.txt", folder / "hard.txt")
    return Root(alias="g", path=str(granted))
