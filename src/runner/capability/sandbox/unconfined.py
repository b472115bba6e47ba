# SPDX-License-Identifier: Apache-2.0
"""A program that nothing confines, for a profile that says `sandbox: unrestricted`.

Owns starting it with the fixed environment, without a terminal, in a session of its own, and ending that; and
that Git looks for a repository in the granted folder and not above it.
Leaves saying so to the record: its header names `tool-unrestricted`, and no verdict on it is clean (P3). What
a program may be told is the policy's here too; what it does is nobody's.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from runner.capability.sandbox.port import ENVIRONMENT, GRANTED, Job, Ran, Talk
from runner.capability.sandbox.running import Heard, Started, started
from runner.kernel.errors import SandboxUnavailable


class Unconfined:
    """The launcher that does not confine. It keeps the limits of time and talk, and no other."""

    def run(self, job: Job) -> Ran:
        """Run `job` to its end; raise `SandboxUnavailable` when its program cannot be started."""
        with _started(job) as process:
            end, limits = process.kill_session, job.limits
            heard = process.hear_out(end=end, wall_s=limits.wall_s, most=limits.output_bytes)
            return _ran(process, heard)

    @contextmanager
    def talk(self, job: Job) -> Iterator[Talk]:
        """Start `job` and end it with the block; raise `SandboxUnavailable` when that cannot be done."""
        with _started(job, talks=True) as process:
            yield _Talk(process, job.limits.output_bytes)


class _Talk:
    """A program that is asked one thing after another."""

    def __init__(self, process: Started, most: int) -> None:
        self._process = process
        self._most = most

    def ask(self, question: bytes, *, wall_s: float) -> bytes | Ran:
        """Return its answer, or how it ended."""
        process = self._process
        heard = process.ask(question, end=process.kill_session, wall_s=wall_s, most=self._most)
        return bytes(heard.output) if heard.whole else _ran(process, heard)


@contextmanager
def _started(job: Job, *, talks: bool = False) -> Iterator[Started]:
    """Yield `job`, started in a folder of its own where the granted ones stand under their aliases."""
    command = [str(job.program), *job.arguments]
    with tempfile.TemporaryDirectory() as top, ExitStack() as stack:
        for granted in job.granted:
            place = Path(top, granted.alias)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(granted.path)
        where = top + job.folder.removeprefix(GRANTED)
        env = {**ENVIRONMENT, "HOME": top, **_ceiling(job, top)}
        try:
            start = started(command, env=env, cwd=where, own_session=True, talks=talks)
            process = stack.enter_context(start)
        except OSError:
            raise SandboxUnavailable(
                "the program could not be started. Fix: install it again, or take it out of the grant"
            ) from None
        yield process


def _ran(process: Started, heard: Heard) -> Ran:
    return Ran(status=process.status, output=bytes(heard.output), late=heard.late, cut=heard.cut)


def _ceiling(job: Job, top: str) -> dict[str, str]:
    """Return the variables by which Git stays in the granted folder that `job` starts in.

    A list of ceilings cannot hold a path with a colon: then there is no repository. Source: git(1).
    """
    alias = job.folder.removeprefix(GRANTED).strip("/").partition("/")[0]
    above = str(Path(top, alias).resolve().parent)
    return {"GIT_DIR": os.devnull} if os.pathsep in above else {"GIT_CEILING_DIRECTORIES": above}
