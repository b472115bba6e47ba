# SPDX-License-Identifier: Apache-2.0
"""Starting a program and hearing it out: so much output, so long, and then nothing of it is left.

Owns the one place where this room starts processes, and their end: their own, or by their time or talk.
Leaves the walls around them to a launcher. Carries I5: a program gets the environment and the descriptors it
is given and no others; what is said beyond the bounds of a job is neither read nor kept.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import FileIO
from typing import Final

_PIECE: Final = 1 << 16
_ASKING_S: Final = 10.0
_ENDING_S: Final = 2.0
"""How long a program may take to end once it has nothing more to say."""
_LENGTH: Final = 8
"""Bytes of the length before a question and an answer, most significant first."""


@dataclass(slots=True, kw_only=True)
class Heard:
    """What was read of a program's output, and whether it was ended for its time or its talk.

    `whole` says of an answer that all of it came.
    """

    output: bytearray = field(default_factory=bytearray, repr=False)
    late: bool = False
    cut: bool = False
    whole: bool = False


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

    def kill_session(self) -> None:
        """End this process and all that it started, which has to be in a session of its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def hear_out(self, *, end: Callable[[], None], wall_s: float, most: int) -> Heard:
        """Return what it says until every holder of its output is gone, and wait for it.

        `end` ends it with all it started; it is called after `wall_s` seconds, and when more than `most`
        bytes come.
        """
        heard = Heard()
        with _timed(heard, end, wall_s):
            self._read(heard, end, most)
            self._process.wait()
        return heard

    def ask(self, question: bytes, *, end: Callable[[], None], wall_s: float, most: int) -> Heard:
        """Return what it answers to `question`; the length of each goes before it.

        `end` ends it; it is called after `wall_s` seconds, when the answer has more than `most` bytes, and
        when it answers no more and does not end by itself.
        """
        heard = Heard()
        with _timed(heard, end, wall_s), suppress(BrokenPipeError):
            self._tell(len(question).to_bytes(_LENGTH, "big"))
            self._tell(question)
            length = self._exactly(_LENGTH)
            size = int.from_bytes(length, "big")
            if size > most:
                heard.cut = True
                end()
            elif len(length) == _LENGTH:
                heard.output = self._exactly(size)
                heard.whole = len(heard.output) == size and not heard.late
        if not heard.whole:
            self._see_off(end)
        return heard

    def _see_off(self, end: Callable[[], None]) -> None:
        try:
            self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            end()

    def _tell(self, data: bytes) -> None:
        rest, pipe = memoryview(data), self._process.stdin
        while rest and pipe is not None:
            rest = rest[os.write(pipe.fileno(), rest[:_PIECE]) :]

    def _exactly(self, size: int) -> bytearray:
        """Return the next `size` bytes of its output; fewer when it has ended."""
        found, pipe = bytearray(), self._process.stdout
        while pipe is not None and (piece := os.read(pipe.fileno(), min(_PIECE, size - len(found)))):
            found += piece
        return found

    def _read(self, heard: Heard, end: Callable[[], None], most: int) -> None:
        pipe = self._process.stdout
        while pipe is not None and (piece := os.read(pipe.fileno(), _PIECE)):
            room = most - len(heard.output)
            heard.output += piece[:room]
            if len(piece) > room and not heard.cut:
                heard.cut = True
                end()


@contextmanager
def _timed(heard: Heard, end: Callable[[], None], wall_s: float) -> Iterator[None]:
    """Call `end` if the block takes more than `wall_s` seconds, and note it in `heard`."""

    def too_late() -> None:
        heard.late = True
        end()

    timer = threading.Timer(wall_s, too_late)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def started(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    handles: Sequence[int] = (),
    own_session: bool = False,
    talks: bool = False,
) -> Iterator[Started]:
    """Yield `command`, started with `env` in `cwd` and the open `handles` and no others; end it after that.

    It reads nothing, and both its outputs are one; if it `talks`, it reads what is asked, and only its
    answers are heard. Raises `OSError`.
    """
    process = subprocess.Popen(  # noqa: S603 - a launcher's own words around a program the policy allowed
        command,
        bufsize=0,
        stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if talks else subprocess.STDOUT,
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
