# SPDX-License-Identifier: Apache-2.0
"""Starting a program and hearing it out: so much output, so long, and then nothing of it is left.

Owns the one place where this room starts processes, and their end: their own, or by their time or talk.
Leaves the walls around them to a launcher. Carries I5: a program gets the environment and the descriptors it
is given and no others; what is said beyond the bounds of a job is neither read nor kept.
"""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO
from typing import Final

_PIECE: Final = 1 << 16
_ASKING_S: Final = 10.0


@dataclass(slots=True, kw_only=True)
class Heard:
    """What was read of a program's output, and whether it was ended for its time or its talk."""

    output: bytearray = field(default_factory=bytearray, repr=False)
    late: bool = False
    cut: bool = False


class Started:
    """A program that runs: `pid` is its process, `status` its exit status once it was heard out."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def status(self) -> int:
        """The exit status, 128 and the signal for a program that a signal ended."""
        code = self._process.wait()
        return 128 - code if code < 0 else code

    def kill(self) -> None:
        """End this process, if it has not ended."""
        self._process.kill()

    def hear_out(self, *, end: Callable[[], None], wall_s: float, most: int) -> Heard:
        """Return what it says until every holder of its output is gone, and wait for it.

        `end` ends it with all it started; it is called after `wall_s` seconds, and when more than `most`
        bytes come.
        """
        heard = Heard()

        def too_late() -> None:
            heard.late = True
            end()

        timer = threading.Timer(wall_s, too_late)
        timer.daemon = True
        timer.start()
        try:
            self._read(heard, end, most)
            self._process.wait()
        finally:
            timer.cancel()
        return heard

    def _read(self, heard: Heard, end: Callable[[], None], most: int) -> None:
        pipe = self._process.stdout
        while pipe is not None and (piece := os.read(pipe.fileno(), _PIECE)):
            room = most - len(heard.output)
            heard.output += piece[:room]
            if len(piece) > room and not heard.cut:
                heard.cut = True
                end()


@contextmanager
def started(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    handles: Sequence[int] = (),
    own_session: bool = False,
) -> Iterator[Started]:
    """Yield `command`, started with `env` in `cwd` and the open `handles` and no others; end it after that.

    It reads nothing, and both its outputs are one. Raises `OSError`.
    """
    process = subprocess.Popen(  # noqa: S603 - a launcher's own words around a program the policy allowed
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=tuple(handles),
        env=env,
        cwd=cwd,
        start_new_session=own_session,
    )
    with process:
        try:
            yield Started(process)
        finally:
            process.kill()


def asked(command: Sequence[str]) -> bytes | None:
    """Return what `command`, which is ours word for word, says; None when it fails or takes too long."""
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, and paths of the system
            command,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASKING_S,
            env={},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout + done.stderr


@contextmanager
def pipe() -> Iterator[tuple[FileIO, FileIO]]:
    """Yield the reading and the writing end of a pipe, and close both. A child does not inherit them."""
    source, sink = os.pipe()
    with FileIO(source, "r") as reader, FileIO(sink, "w") as writer:
        yield reader, writer
