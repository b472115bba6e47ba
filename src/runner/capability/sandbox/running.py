# SPDX-License-Identifier: Apache-2.0
"""Hearing a started program out: so much output, so long, and then nothing of it is left.

Owns the end of a program: its own, or by its time or its talk. Leaves starting it to a launcher. Carries the
bounds of a job: what is said beyond them is neither read nor kept.
"""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO
from typing import Final

_PIECE: Final = 1 << 16


@dataclass(slots=True, kw_only=True)
class Heard:
    """What was read of a program's output, and whether it was ended for its time or its talk."""

    output: bytearray = field(default_factory=bytearray, repr=False)
    late: bool = False
    cut: bool = False


def hear_out(process: "subprocess.Popen[bytes]", *, end: Callable[[], None], wall_s: float, most: int) -> Heard:
    """Return what `process` says until every holder of its output is gone, and wait for it.

    `end` ends it with all it started; it is called after `wall_s` seconds, and when more than `most` bytes
    come.
    """
    heard = Heard()

    def too_late() -> None:
        heard.late = True
        end()

    timer = threading.Timer(wall_s, too_late)
    timer.daemon = True
    timer.start()
    try:
        _read(process, heard, end, most)
        process.wait()
    finally:
        timer.cancel()
        end()
        process.wait()
    return heard


def _read(process: "subprocess.Popen[bytes]", heard: Heard, end: Callable[[], None], most: int) -> None:
    if process.stdout is None:
        return
    with process.stdout as pipe:
        while piece := os.read(pipe.fileno(), _PIECE):
            room = most - len(heard.output)
            heard.output += piece[: max(room, 0)]
            if len(piece) > room and not heard.cut:
                heard.cut = True
                end()


@contextmanager
def pipe() -> Iterator[tuple[FileIO, FileIO]]:
    """Yield the reading and the writing end of a pipe, and close both. A child does not inherit them."""
    source, sink = os.pipe()
    with FileIO(source, "r") as reader, FileIO(sink, "w") as writer:
        yield reader, writer
