# SPDX-License-Identifier: Apache-2.0
"""The Python that runs this, as a program for a sandbox.

Owns which file that is, and what of the system it needs: its standard library, and the libraries of the
compiled modules in it. Leaves other packages out of sight. Carries P2: code in a sandbox can import the
standard library and what its job shows it, and nothing that happens to be installed.
"""

import functools
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runner.capability.sandbox.loading import libraries_of

_LINKED: Final = ("zlib", "pyexpat")
"""Compiled modules that may need libraries which the interpreter itself does not."""
_INSTALLED: Final = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A `program`, the `data` it needs beside its own libraries, and folders in that to be `hidden`."""

    program: Path
    data: tuple[Path, ...]
    hidden: tuple[Path, ...]


@functools.cache
def interpreter() -> Interpreter:
    """Return the Python that runs this, without its virtual environment; raise `SandboxUnavailable`."""
    program = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    if not program.is_file():
        program = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    installed = tuple(library / name for name in _INSTALLED if (library / name).is_dir())
    return Interpreter(
        program=program, data=(library, *_libraries(program, library / "lib-dynload")), hidden=installed
    )


def _libraries(program: Path, folder: Path) -> Sequence[Path]:
    """Return the libraries that compiled modules in `folder` need."""
    modules = (path for name in _LINKED for path in sorted(folder.glob(f"{name}.*.so")))
    return tuple(dict.fromkeys(Path(each) for module in modules for each in libraries_of(program, module)))
