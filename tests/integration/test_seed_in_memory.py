# SPDX-License-Identifier: Apache-2.0
"""Forward security: once a log is closed its key is nowhere, neither in the process nor on the disk.

A child process writes a book as the runner does. Its parent reads every range of the child's memory that can
be read, and looks for the seed of the log's key, for what Ed25519 expands it to, and for both as text. The
search is proven first: while the log is open it finds the seed. The child never holds a second copy that the
search would find: it hands the seed over with every bit turned.
"""

import base64
import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
SEED_BYTES: Final = 32

CHILD: Final = """
import os, sys
from pathlib import Path
from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.keys import FileSigner
from runner.capability.transport.logstore import FolderLogStore
from runner.capability.transport.salts import FileSaltStore
from runner.kernel.labels import DataClass
from runner.perimeter.trace import records as r
from runner.perimeter.trace import log as log_module
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.testing import header_words

class Telling(SystemEntropy):
    def fill(self, secret):
        super().fill(secret)
        turned = bytearray(len(secret))
        for at in range(len(secret)):
            turned[at] = secret[at] ^ 0xFF
        os.write(1, bytes(turned))

def wait():
    os.read(0, 1)

def task(trace):
    name = trace.mint_id()
    goal = trace.commit(b"goal")
    trace.append(r.TaskStart(goal_commit=goal, data_class=DataClass.C1), task=name)
    for _ in range(5):
        trace.barrier()
    trace.append(r.TaskEnd(outcome="done"), task=name)

home = Path(sys.argv[1])
entropy = Telling()
facts = HeaderFacts(**header_words())
trace = Trace.open(
    store=FolderLogStore(home / "book", home / "heads" / "studio"),
    signer=FileSigner(home / "keys" / "device", book=home / "book", entropy=SystemEntropy()),
    salts=FileSaltStore(home / "keys" / "salts", book=home / "book"),
    clock=SystemClock(), entropy=entropy, facts=facts,
)
task(trace)
os.write(1, b"!"); wait()
if sys.argv[2] == "rotate":
    log_module.ROTATE_AFTER_S = 0.0
    task(trace)  # the old log closes, the next one opens under another key
else:
    trace.close()
os.write(1, b"!"); wait()
"""


def forms(seed: bytes) -> dict[str, bytes]:
    """What of the seed would let somebody sign: itself, a half of it, what it expands to, and as text."""
    expanded = hashlib.sha512(seed).digest()
    scalar = bytearray(expanded[:32])
    scalar[0] &= 248
    scalar[31] = (scalar[31] & 127) | 64
    return {
        "seed": seed,
        "first half": seed[:16],
        "second half": seed[16:],
        "hex": seed.hex().encode(),
        "HEX": seed.hex().upper().encode(),
        "base64": base64.b64encode(seed)[:42],
        "base64url": base64.urlsafe_b64encode(seed)[:42],
        "scalar": bytes(scalar),
        "digest": expanded[:32],
        "prefix": expanded[32:],
    }


def readable(pid: int) -> Iterator[tuple[int, int]]:
    """The ranges of the memory of `pid` that it can read itself, but for those the kernel answers for."""
    for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
        ends, mode, *rest = line.split()
        if mode.startswith("r") and not rest[-1].startswith(("[vvar", "[vsyscall")):
            start, end = (int(each, 16) for each in ends.split("-"))
            yield start, end


def found_in(pid: int, wanted: dict[str, bytes]) -> dict[str, int]:
    """How often each of `wanted` stands in the memory of `pid`. Raises `OSError` for what cannot be read."""
    counts = dict.fromkeys(wanted, 0)
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for start, end in readable(pid):
            held = bytearray()
            memory.seek(start)
            while start + len(held) < end:
                piece = memory.read(end - start - len(held))
                assert piece, f"nothing was read at {start + len(held):x}"
                held += piece
            for name, value in wanted.items():
                counts[name] += held.count(value)
    return {name: count for name, count in counts.items() if count}


class Writer:
    """The child at work; `seeds` are those of its logs so far."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self.seeds: list[bytes] = []

    def until_ready(self) -> None:
        """Wait until the child waits, and take the seeds it told meanwhile."""
        while (first := self._pipe(self._child.stdout).read(1)) != b"!":
            turned = first + self._pipe(self._child.stdout).read(SEED_BYTES - 1)
            assert len(turned) == SEED_BYTES, "the writer failed"
            self.seeds.append(bytes(byte ^ 0xFF for byte in turned))

    def go_on(self) -> None:
        self._pipe(self._child.stdin).write(b"!")
        self._pipe(self._child.stdin).flush()

    def found(self, seed: bytes) -> dict[str, int]:
        return found_in(self._child.pid, forms(seed))

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe


@contextmanager
def writing(home: Path, then: str) -> Iterator[Writer]:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(home), then],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    ) as child:
        try:
            yield Writer(child)
        finally:
            child.kill()


@pytest.mark.skipif(platform.system() != "Linux", reason="reads /proc/PID/mem")
@pytest.mark.parametrize("then", ["close", "rotate"])
def test_the_seed_of_a_closed_log_is_neither_in_memory_nor_on_the_disk(tmp_path: Path, then: str) -> None:
    """Found while the log is open, whole and in one place; not found after, in no form, nowhere."""
    with writing(tmp_path, then) as writer:
        writer.until_ready()
        (seed,) = writer.seeds
        live = writer.found(seed)
        assert live == {"seed": 1, "first half": 1, "second half": 1}, "one copy, which the library owns"
        writer.go_on()
        writer.until_ready()
        assert writer.found(seed) == {}
        if then == "rotate":
            assert writer.found(writer.seeds[1])["seed"] == 1  # and the search still finds one that lives
    kept = b"".join(file.read_bytes() for file in sorted(tmp_path.rglob("*")) if file.is_file())
    assert b'"kind":"close"' in kept
    assert [name for name, value in forms(seed).items() if value in kept] == []
