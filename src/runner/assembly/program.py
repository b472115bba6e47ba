# SPDX-License-Identifier: Apache-2.0
"""Where the program that runs here stands: what its next start executes.

Owns the list: the Python that runs this, what is installed for it, and each file that it has loaded or would
look for. Leaves to `policy` that no tool writes there: what it wrote would judge the next task (I5, P2).
"""

import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_RUNNER: Final = Path(__file__).parents[1]
_LOOKED_FOR: Final = ("sitecustomize.py", "usercustomize.py", "runner")
"""What the next start takes from the first folder of `sys.path` that has it."""


def program_paths() -> tuple[Path, ...]:
    """Return folders and files, without links. What lies beneath the folders is the program's too.

    A folder of `sys.path` is not there as a whole: a program of the practice may keep its documents beneath
    itself. What it has loaded from it is, and what would be loaded before anything else.
    """
    trees = _real([_RUNNER, *_installed()])
    files = _real([*_loaded(), *(Path(folder, name) for folder in sys.path for name in _LOOKED_FOR)])
    return (*trees, *(file for file in files if not any(map(file.is_relative_to, trees))))


def _installed() -> Iterator[str | None]:
    """Yield the folders that belong to this Python and to nothing else."""
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, sys.pycache_prefix)
    yield from (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    yield from (site.getuserbase(), site.getusersitepackages())


def _loaded() -> Iterator[str | None]:
    """Yield the files of the modules that run now, and Python itself."""
    yield sys.executable
    known = (getattr(module, "__dict__", {}).get("__file__") for module in tuple(sys.modules.values()))
    yield from (file for file in known if isinstance(file, str))


def _real(paths: Iterable[str | Path | None]) -> tuple[Path, ...]:
    """Return `paths` without links, each once; a Python that has no folder of its own has no root either."""
    found = dict.fromkeys(Path(os.path.realpath(path)) for path in dict.fromkeys(paths) if path)
    return tuple(path for path in found if path != path.parent)
