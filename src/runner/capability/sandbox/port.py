# SPDX-License-Identifier: Apache-2.0
"""The port of a launcher: what a program is given, and what came of it.

Owns the words. Leaves building a sandbox to `bubblewrap`, and which program may run with which arguments to
the perimeter. Carries I5 in its shape: a job has no environment, no network and no place to write.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

GRANTED: Final = "/granted"
"""Where the granted folders stand for a program, each under its alias."""
ENVIRONMENT: Final = {
    "GIT_CEILING_DIRECTORIES": GRANTED,
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": "/tmp",  # noqa: S108 - inside the sandbox, where it is private
    "LANG": "C.UTF-8",
    "PAGER": "cat",
    "PATH": "/usr/bin",
    "TZ": "UTC",
}
"""All that a program learns of its surroundings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one program may use: seconds on the clock and of processor, bytes, threads, open files.

    `output_bytes` bounds what it says, and it is ended when it says more. `scratch_bytes` is the size of its
    private `/tmp`, gone with it; `file_bytes` that of one file there.
    """

    wall_s: float = 20.0
    cpu_s: int = 10
    memory_bytes: int = 2 << 30
    threads: int = 32
    open_files: int = 256
    file_bytes: int = 16 << 20
    scratch_bytes: int = 16 << 20
    output_bytes: int = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A folder or file that a program may read: an open `handle` of it, shown as `GRANTED/alias`.

    What is shown is what the handle was opened on, whatever stands at its `path` by then.
    """

    alias: str
    path: str = field(repr=False)
    handle: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A `program` of this system (absolute path), its arguments, the folder it starts in, what it may read.

    `folder` is beneath `GRANTED`. `data` are files of the system that the program needs beside its libraries;
    one that is not there is left out. `hidden` are folders in those, or beneath `GRANTED`, which it finds
    empty in a sandbox.
    """

    program: Path
    arguments: Sequence[str] = field(repr=False)
    granted: Sequence[Granted] = ()
    folder: str = field(default=GRANTED, repr=False)
    data: Sequence[Path] = ()
    hidden: Sequence[Path] = ()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a program said on both its outputs, in order, and how it ended.

    `status` is its exit status, 128 and the signal for one that a signal ended; `late` and `cut` say that it
    was ended for its time, or for saying too much.
    """

    status: int
    output: bytes = field(repr=False)
    late: bool = False
    cut: bool = False


class Launcher(Protocol):
    """Starts programs."""

    def run(self, job: Job) -> Ran:
        """Run `job` to its end, within its limits; raise `SandboxUnavailable`, and then nothing ran."""


class Talk(Protocol):
    """A program that runs and is asked one thing after another."""

    def ask(self, question: bytes, *, wall_s: float) -> bytes | Ran:
        """Return its answer to `question`, or how it ended without one within `wall_s` seconds.

        Each is told as its length (8 bytes, big-endian) and so many bytes. Once it ended, nothing more can be
        asked. Raises `SandboxUnavailable`, and then nothing ran.
        """


class Talker(Protocol):
    """Starts programs that are talked to."""

    def talk(self, job: Job) -> AbstractContextManager[Talk]:
        """Start `job` and end it with the block. Its answers and its talk are bounded by `job.limits`.

        What it says on its error output is dropped. Raises `SandboxUnavailable`, and then nothing ran.
        """
