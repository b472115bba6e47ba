# SPDX-License-Identifier: Apache-2.0
"""A program that nothing confines, for a profile that says `sandbox: unrestricted`.

Owns starting it with the fixed environment, without a terminal, in a session of its own, and ending that; and
that Git looks for a repository in the granted folder and not above it.
Leaves saying so to the record: its header names `tool-unrestricted`, and no verdict on it is clean (P3). What
a program may be told is the policy's here too; what it does is nobody's.
"""

import os
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

from runner.capability.sandbox.port import ENVIRONMENT, GRANTED, Job, Ran
from runner.capability.sandbox.running import started
from runner.kernel.errors import SandboxUnavailable


class Unconfined:
    """The launcher that does not confine. It keeps the limits of time and talk, and no other."""

    def run(self, job: Job) -> Ran:
        """Run `job` to its end; raise `SandboxUnavailable` when its program cannot be started."""
        with tempfile.TemporaryDirectory() as top:
            for granted in job.granted:
                Path(top, granted.alias).symlink_to(granted.path)
            try:
                return _run(job, top)
            except OSError:
                raise SandboxUnavailable("the program could not be started") from None


def _run(job: Job, top: str) -> Ran:
    """Run `job` in the folder `top`, where the granted folders stand under their aliases."""
    command = [str(job.program), *job.arguments]
    where = top + job.folder.removeprefix(GRANTED)
    env = {**ENVIRONMENT, "HOME": top, **_ceiling(job, top)}
    with started(command, env=env, cwd=where, own_session=True) as process:

        def end() -> None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

        heard = process.hear_out(end=end, wall_s=job.limits.wall_s, most=job.limits.output_bytes)
        return Ran(status=process.status, output=bytes(heard.output), late=heard.late, cut=heard.cut)


def _ceiling(job: Job, top: str) -> dict[str, str]:
    """Return the variables by which Git stays in the granted folder that `job` starts in.

    A list of ceilings cannot hold a path with a colon: then there is no repository. Source: git(1).
    """
    alias = job.folder.removeprefix(GRANTED).strip("/").partition("/")[0]
    above = str(Path(top, alias).resolve().parent)
    return {"GIT_DIR": os.devnull} if os.pathsep in above else {"GIT_CEILING_DIRECTORIES": above}
