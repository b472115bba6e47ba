# SPDX-License-Identifier: Apache-2.0
"""P2: whatever befalls a tool that writes at whichever system call, the old or the new file is there, whole.

A child makes one call of a tool and is followed by a tracer. At each of its system calls about the folder, in
turn, it is killed, cut off from power, or refused by the disk. Nothing is ever neither old nor new, what is
not at the path is in the bin, no other file changes, and the next call works.
"""

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import syscalls
from syscalls import Act, Call, Disk, Fail, Half, Kill

from runner.capability.tools.names import BIN
from runner.capability.tools.openers import best_opener
from runner.capability.tools.writing import Writer
from runner.kernel.errors import ToolError
from runner.kernel.ports import Root

OLD: Final = b"the old version\n" * 8
NEW: Final = b"the new version\n" * 8
OTHER: Final = b"of somebody else\n"
REFUSED: Final = 3
"""How the child ends when the tool refuses."""
WAYS: Final[dict[str, tuple[Act, str]]] = {
    "killed": (Kill(), ""),
    "power cut": (Kill(), "now"),
    "power cut, half of what was not synced is there": (Kill(), "half"),
    "killed half way": (Half(kill=True), ""),
    "EIO": (Fail(errno.EIO), ""),
    "EIO though it was done": (Fail(errno.EIO, done=True), ""),
    "ENOSPC": (Fail(errno.ENOSPC), ""),
    "EROFS": (Fail(errno.EROFS), ""),
    "EACCES": (Fail(errno.EACCES), ""),
}
LOOKING: Final = frozenset({"stat", "fstat", "close", "read", "lseek", "ioctl", "fcntl", "getdents"})
"""Calls that change nothing: what befalls them always is enough."""
ALWAYS: Final = frozenset({"killed", "EIO"})


def create(writer: Writer) -> None:
    writer.create(("sub", "new.txt"), NEW)


def change(writer: Writer) -> None:
    writer.change(("sub", "old.txt"), lambda _: NEW)


def discard(writer: Writer) -> None:
    writer.discard(("sub", "old.txt"))


@pytest.fixture
def folder() -> Iterator[Path]:
    memory = Path("/dev/shm")  # noqa: S108 - a folder in memory, where there is one
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        yield Path(place).resolve()


def laid_out(folder: Path, number: int) -> Path:
    granted = folder / f"g{number}"
    (granted / "sub").mkdir(parents=True)
    (granted / "sub" / "old.txt").write_bytes(OLD)
    (granted / "sub" / "other.txt").write_bytes(OTHER)
    return granted


def child(granted: Path, act: Callable[[Writer], None]) -> Callable[[], None]:
    writer = Writer(Root(alias="g", path=str(granted)))

    def run() -> None:
        try:
            act(writer)
        except ToolError:
            os._exit(REFUSED)

    return run


def calls_of(granted: Path, act: Callable[[Writer], None]) -> list[Call]:
    """Return the system calls of a child to which nothing befalls."""
    met: list[Call] = []
    status = syscalls.run_traced(child(granted, act), granted, lambda _, call: met.append(call))
    assert (os.WIFEXITED(status), os.WEXITSTATUS(status)) == (True, 0)
    return met


def befall(granted: Path, act: Callable[[Writer], None], at: int | None, way: str) -> int:
    """Let what is called `way` befall the call number `at`; return how the child ended.

    Without a number the power is cut after the last one, if that is the way.
    """
    misfortune, cut = WAYS[way]
    disk = Disk(granted)
    decide = {} if at is None else {at: misfortune}
    ended = syscalls.run_traced(child(granted, act), granted, lambda number, _: decide.get(number), disk.done)
    if cut:
        disk.cut(half=cut == "half")
    return ended


def found(granted: Path) -> dict[str, list[bytes]]:
    """Return the versions of each file, what the bin holds behind what stands there."""
    versions: dict[str, list[bytes]] = {}
    for file in sorted(granted.rglob("*"), key=lambda path: BIN in path.parts):
        if file.is_file():
            parts = file.relative_to(granted).parts
            name = "/".join(("bin", *parts[2:]) if parts[0] == BIN else parts)
            versions.setdefault(name, []).append(file.read_bytes())
    return versions


def check(granted: Path, act: Callable[[Writer], None], ended: int, met: str) -> None:
    there = found(granted)
    assert there.pop("sub/other.txt") == [OTHER]
    binned = there.pop("bin/sub/old.txt", []) + there.pop("bin/sub/new.txt", [])
    if act is create:
        assert there.pop("sub/old.txt") == [OLD]
        (now,) = there.pop("sub/new.txt", [b""])
        assert now in (b"", NEW), met
        done = now == NEW
    else:
        (now,) = there.pop("sub/old.txt", [b""])
        assert now in ((OLD, NEW) if act is change else (OLD, b"")), met
        assert OLD in (now, *binned), f"the old version is lost: {met}"
        done = now != OLD
    assert there == {}, f"nothing is left anywhere but in the bin: {met}"
    if os.WIFEXITED(ended):
        assert os.WEXITSTATUS(ended) in (0, REFUSED), met
        assert done or os.WEXITSTATUS(ended) == REFUSED, f"it said that it was done: {met}"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not syscalls.AVAILABLE, reason="follows the system calls of Linux on x86-64")
@pytest.mark.parametrize("act", [create, change, discard], ids=lambda act: act.__name__)
def test_p2_old_or_new_is_there_whatever_befalls_at_any_system_call(
    act: Callable[[Writer], None], folder: Path
) -> None:
    best_opener()  # which asks the system once
    calls = calls_of(laid_out(folder, 0), act)
    assert {"mkdir", "fsync", "rename"} <= {call.name for call in calls}
    told = [
        (at, way)
        for at, call in enumerate(calls)
        for way in WAYS
        if way in ALWAYS or call.name not in LOOKING
    ]
    assert len(told) > 100
    for number, (at, way) in enumerate(told, start=1):
        granted = laid_out(folder, number)
        check(granted, act, befall(granted, act, at, way), f"{way} at {at}, {calls[at]}")
        Writer(Root(alias="g", path=str(granted))).create(("sub", "after.txt"), NEW)
    for way in ("power cut", "power cut, half of what was not synced is there"):
        granted = laid_out(folder, len(told) + len(way))
        ended = befall(granted, act, None, way)
        assert (os.WIFEXITED(ended), os.WEXITSTATUS(ended)) == (True, 0)
        check(granted, act, ended, "what the tool says is done is on the disk")
