# SPDX-License-Identifier: Apache-2.0
"""What a program of this system needs to be started: its loader and its libraries.

Owns finding them: the file (ELF, `PT_INTERP`) names its loader, and that loader is asked for the
rest, which starts nothing of the program. Leaves showing them to a sandbox to `bubblewrap`. Carries P2: a
program sees these files and no other part of the system. Source: elf(5), ld.so(8) `--list`.
"""

import functools
import os
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from runner.capability.sandbox.running import asked
from runner.kernel.errors import SandboxUnavailable

PLACES: Final = ("/usr/bin", "/bin")
"""Where a program is looked for: the system's own, whatever PATH says."""
_MAGIC: Final = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_HEADER: Final = struct.Struct("<32xQ14xHH")  # offset, size and number of the program headers
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_INTERPRETER: Final = 3
_LIBRARY: Final = re.compile(r"^\t(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_CACHE: Final = "/etc/ld.so.cache"
_LONGEST_NAME: Final = 4096


def find_program(name: str) -> Path | None:
    """Return where the system has the program `name`; None when it has none."""
    candidates = (Path(place, name) for place in PLACES)
    return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)


def needs_of(program: Path) -> tuple[str, ...]:
    """Return the files that `program` cannot start without, itself first; raise `SandboxUnavailable`.

    Remembered for the file as it is now.
    """
    try:
        about = program.stat()
        return _needs(str(program), (about.st_dev, about.st_ino, about.st_mtime_ns))
    except OSError:
        raise SandboxUnavailable(
            "the program is not installed here, or cannot be read. Fix: install it"
        ) from None


def libraries_of(program: Path, module: Path) -> Sequence[str]:
    """Return the libraries of `module`, which `program` loads; raise `SandboxUnavailable`."""
    loader = _loader_of(str(program))
    return () if loader is None else _listed(loader, str(module))


def _listed(loader: str, file: str) -> Sequence[str]:
    listed = asked([loader, "--list", file])
    if listed is None:
        raise SandboxUnavailable(
            "the libraries of the program cannot be listed here. Fix: install the program again"
        )
    return _LIBRARY.findall(listed.decode("utf-8", "replace"))


@functools.lru_cache(maxsize=128)
def _needs(program: str, _: tuple[int, ...]) -> tuple[str, ...]:
    loader = _loader_of(program)
    if loader is None:
        return (program,)
    libraries = _listed(loader, program)
    cache = [_CACHE] if Path(_CACHE).is_file() else []
    return tuple(dict.fromkeys((program, loader, *libraries, *cache)))


def _loader_of(program: str) -> str | None:
    """Return the loader that the file `program` names; None for one that is whole by itself.

    Raises `SandboxUnavailable` for what is no program of this kind of machine, such as a script.
    """
    with Path(program).open("rb") as file:
        head = file.read(64)
        if not head.startswith(_MAGIC) or len(head) < _HEADER.size:
            raise SandboxUnavailable(
                "what is installed under this name is no plain program. Fix: grant one that is no script"
            )
        offset, size, count = _HEADER.unpack_from(head)
        file.seek(offset)
        table = file.read(size * count)
        for number in range(len(table) // size if size >= _SEGMENT.size else 0):
            kind, _, start, _, _, length, _, _ = _SEGMENT.unpack_from(table, number * size)
            if kind == _INTERPRETER and length <= _LONGEST_NAME:
                file.seek(start)
                return os.fsdecode(file.read(length).rstrip(b"\0"))
    return None
