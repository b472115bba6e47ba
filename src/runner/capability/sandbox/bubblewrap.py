# SPDX-License-Identifier: Apache-2.0
"""The sandbox: a program in namespaces of its own, with nothing in them but what its job names.

Owns the command line of bubblewrap, the limits, and the trial that says whether it works here. Leaves the
refused system calls to `seccomp`, a program's libraries to `loading`, its output to `running`. Carries P2 and
I5: no network, no other process to see, no file but the program, its libraries and the granted folders, all
read-only, a fixed environment, no descriptor but the three; and P3: where that cannot be had, nothing runs.

A granted folder is bound by its open handle, so that what is shown is the folder that was granted. Limits are
put on the first process inside while it waits, before the program starts. Source: bwrap(1).
"""

import functools
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Final

from runner.capability.sandbox.loading import find_program, needs_of
from runner.capability.sandbox.port import ENVIRONMENT, GRANTED, Job, Limits, Ran, Talk
from runner.capability.sandbox.running import Heard, Started, asked, pipe, started
from runner.capability.sandbox.seccomp import filter_here
from runner.kernel.errors import SandboxUnavailable

KILLED: Final = 137
"""The status of a program that was ended from outside: 128 and SIGKILL."""
_NOBODY: Final = "65534"
_PIECE: Final = 4096
_NOTHING: Final = "4096"
"""Bytes of a folder that is shown empty: the least that one can have."""
_TRIAL_S: Final = 10.0
_LOCALE: Final = Path("/usr/lib/locale/C.utf8")
_WALLS: Final = (
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    *("--cap-drop", "ALL"),
    *("--uid", _NOBODY, "--gid", _NOBODY),
    *("--hostname", "sandbox"),
)
_NO_BWRAP: Final = "bubblewrap (bwrap) is not installed. Fix: install the package bubblewrap"
_OLD_BWRAP: Final = (
    "this bubblewrap cannot bind a folder by its handle (--ro-bind-fd). Fix: install bubblewrap 0.10 or"
    " later, or a distribution's 0.8 or 0.9 with its security updates"
)
_NO_FILTER: Final = (
    "programs are confined on Linux on x86_64 or aarch64 only. Fix: grant no tool that starts one"
)
_NO_NAMESPACES: Final = (
    "bubblewrap is here and cannot build a sandbox. Fix: allow user namespaces for it, such as by"
    " sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, or an AppArmor profile for bwrap"
)


class Bubblewrap:
    """The launcher that confines. Made once, used from any thread."""

    def run(self, job: Job) -> Ran:
        """Run `job` to its end, within its limits; raise `SandboxUnavailable`, and then nothing ran."""
        limits = job.limits
        with _started(job) as (process, told):
            heard = process.hear_out(end=process.kill, wall_s=limits.wall_s, most=limits.output_bytes)
            return _ran(heard, told)

    @contextmanager
    def talk(self, job: Job) -> Iterator[Talk]:
        """Start `job` and end it with the block; raise `SandboxUnavailable`, and then nothing ran."""
        with _started(job, talks=True) as (process, told):
            yield _Talk(process, told, job.limits.output_bytes)


class _Talk:
    """A program in a sandbox that is asked one thing after another."""

    def __init__(self, process: Started, told: FileIO, most: int) -> None:
        self._process = process
        self._told = told
        self._most = most

    def ask(self, question: bytes, *, wall_s: float) -> bytes | Ran:
        """Return its answer, or how it ended; raise `SandboxUnavailable`, and then nothing ran."""
        heard = self._process.ask(question, end=self._process.kill, wall_s=wall_s, most=self._most)
        return bytes(heard.output) if heard.whole else _ran(heard, self._told)


@contextmanager
def _started(job: Job, *, talks: bool = False) -> Iterator[tuple[Started, FileIO]]:
    """Yield `job`, started within its limits, and what bubblewrap tells of it; end it after that.

    Raises `SandboxUnavailable`, and then nothing ran.
    """
    bwrap, rules = _bwrap(), filter_here()
    if rules is None:
        raise SandboxUnavailable(_NO_FILTER)
    with pipe() as (told, telling), pipe() as (waiting, release), pipe() as (calls, listing):
        listing.write(rules)
        listing.close()
        ours = (telling.fileno(), waiting.fileno(), calls.fileno())
        handles = (*ours, *(granted.handle for granted in job.granted))
        command = [bwrap, *_arguments(job, ours)]
        with started(command, env=ENVIRONMENT, cwd="/", handles=handles, talks=talks) as process:
            telling.close()
            _limit(_member(_first_line(told), "child-pid"), job.limits)
            release.write(b"\n")
            yield process, told


def _ran(heard: Heard, told: FileIO) -> Ran:
    """Return how a program ended, by what bubblewrap `told`; raise `SandboxUnavailable` if none ran."""
    status = _member(told.readall(), "exit-code")
    if status is None and not heard.late and not heard.cut:
        raise SandboxUnavailable(_NO_NAMESPACES)
    ended = KILLED if status is None else status
    return Ran(status=ended, output=bytes(heard.output), late=heard.late, cut=heard.cut)


def why_not() -> str | None:
    """Return why no sandbox can be built here, with the fix; None when one was built and held a program."""
    try:
        _bwrap()
        trial = find_program("true")
        if trial is None:
            return "this system has no program `true` to try a sandbox with"
        limits = Limits(wall_s=_TRIAL_S)
        ran = Bubblewrap().run(Job(program=trial, arguments=(), limits=limits))
    except SandboxUnavailable as problem:
        return str(problem)
    return None if ran.status == 0 else _NO_NAMESPACES


def _arguments(job: Job, ours: tuple[int, int, int]) -> Iterator[str]:
    """Yield the arguments of bubblewrap: walls, then what stands inside, then the program."""
    telling, waiting, rules = ours
    yield from _WALLS
    yield from ("--json-status-fd", str(telling), "--block-fd", str(waiting), "--seccomp", str(rules))
    yield from ("--size", str(job.limits.scratch_bytes), "--tmpfs", ENVIRONMENT["HOME"])
    for path in (*needs_of(job.program), *_there(_LOCALE, *job.data)):
        yield from ("--ro-bind", os.path.realpath(path), path)
    yield from ("--dev-bind", "/dev/null", "/dev/null")
    yield from ("--dir", GRANTED)
    for granted in job.granted:
        yield from ("--ro-bind-fd", str(granted.handle), f"{GRANTED}/{granted.alias}")
    for folder in job.hidden:
        yield from ("--size", _NOTHING, "--tmpfs", str(folder), "--remount-ro", str(folder))
    yield from ("--remount-ro", "/", "--chdir", job.folder, "--", str(job.program), *job.arguments)


def _there(*paths: Path) -> list[str]:
    return [str(path) for path in paths if path.exists()]


@functools.cache
def _bwrap() -> str:
    """Return the bubblewrap of this system; raise `SandboxUnavailable`, which is asked again next time."""
    program = find_program("bwrap")
    if program is None:
        raise SandboxUnavailable(_NO_BWRAP)
    if b"--ro-bind-fd" not in (asked([str(program), "--help"]) or b""):
        raise SandboxUnavailable(_OLD_BWRAP)
    return str(program)


def _first_line(told: FileIO) -> bytes:
    """Return what bubblewrap tells first, which it may write in pieces; less than a line when it ended."""
    line = b""
    while not line.endswith(b"\n") and (piece := told.read(_PIECE)):
        line += piece
    return line


def _member(documents: bytes, name: str) -> int | None:
    """Return the number `name` of what bubblewrap told, one JSON document a line; None without one."""
    for line in documents.splitlines():
        try:
            value = json.loads(line).get(name)
        except (ValueError, AttributeError):
            continue
        if isinstance(value, int):
            return value
    return None


def _limit(process: int | None, limits: Limits) -> None:
    """Put `limits` on the first process inside; raise `SandboxUnavailable` without one, or if they fail."""
    bounds = {
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_NPROC: limits.threads,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CORE: 0,
    }
    if process is None:
        raise SandboxUnavailable(_NO_NAMESPACES)
    try:
        for which, most in bounds.items():
            resource.prlimit(process, which, (most, most))
    except (OSError, ValueError):
        raise SandboxUnavailable(
            "the limits of a program in the sandbox cannot be set here. Fix: raise the hard ones"
        ) from None
