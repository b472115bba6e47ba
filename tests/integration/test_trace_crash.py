# SPDX-License-Identifier: Apache-2.0
"""I4, I9: a writer killed at any disk operation leaves a book that verifies, and every effect is on record.

A child process writes a book and is killed at its n-th write or sync, a write leaving half of its bytes.
Then the verifier, which shares no code with the writer, must not say FAIL; every effect the child reported
must be recorded under a seal; and after reopening and closing the book must PASS. This needs no tracer and
starts the writer as a process of its own; `tests/batteries/faults.py` takes every system call and fault.
"""

import errno
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import akaion_verify
import pytest

from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.keys import FileSigner, export_pin
from runner.capability.transport.logstore import FolderLogStore
from runner.capability.transport.salts import FileSaltStore
from runner.kernel.errors import TraceError
from runner.kernel.labels import DataClass
from runner.perimeter.trace import records as r
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.note import vkey
from runner.testing import header_words

ROOT = Path(__file__).resolve().parents[2]
EFFECTS = 2
OPERATIONS = 38
"""Writes and syncs of one run of the child: making, two barriers, the end."""


def open_book(home: Path) -> Trace:
    """Open the book under `home`, and export the auditor's pin the first time."""
    book, entropy = home / "book", SystemEntropy()
    signer = FileSigner(home / "keys" / "device", book=book, entropy=entropy)
    if not (home / "pin").exists():
        export_pin(vkey("studio/device", signer.public_key), home / "pin", book=book)
    facts = HeaderFacts(**header_words())
    store = FolderLogStore(book, home / "heads" / "studio")
    salts = FileSaltStore(home / "keys" / "salts", book=book)
    return Trace.open(
        store=store, signer=signer, salts=salts, clock=SystemClock(), entropy=entropy, facts=facts
    )


def write_book(home: Path, effects: int) -> None:
    """Write one log with `effects` tool calls; say each on stdout when its barrier has returned."""
    with open_book(home) as trace:
        task = trace.mint_id()
        start = r.TaskStart(goal_commit=trace.commit(b"goal"), data_class=DataClass.C1)
        trace.append(start, task=task)
        for number in range(effects):
            call, args = trace.mint_id(), trace.commit(b"args")
            decision = r.PolicyDecision(
                call_id=call,
                tool="read_file",
                decision="allow",
                rule="grant",
                args_commit=args,
                data_class=DataClass.C1,
            )
            trace.append(decision, task=task)
            trace.append(r.ToolCall(call_id=call, tool="read_file", args_commit=args, net=False), task=task)
            trace.barrier()
            os.write(1, f"effect {number}\n".encode())
            done = r.ToolResult(
                call_id=call, status="ok", result_commit=trace.commit(b"r"), bytes=1, block=None
            )
            trace.append(done, task=task)
        trace.append(r.TaskEnd(outcome="done"), task=task)


def die_at(fatal: int) -> Iterator[int]:
    """Make this process kill itself at its disk operation `fatal`; return the counter of operations."""
    operations, write, patch = itertools.count(), os.write, pytest.MonkeyPatch()

    def write_or_die(handle: int, data: bytes) -> int:
        if handle > 2 and next(operations) == fatal:
            write(handle, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(handle, data)

    def or_die(sync: Callable[[int], None]) -> Callable[[int], None]:
        def sync_or_die(handle: int) -> None:
            if next(operations) == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            sync(handle)

        return sync_or_die

    patch.setattr(os, "write", write_or_die)
    for name in {"fsync", "fdatasync"} & set(dir(os)):
        patch.setattr(os, name, or_die(getattr(os, name)))
    return operations


def child(home: Path, fatal: int, effects: int = EFFECTS) -> "subprocess.Popen[str]":
    """Start a writer that dies at operation `fatal` (never, if negative)."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "verify")])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, __file__, str(home), str(fatal), str(effects)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def verdict(home: Path) -> str:
    return str(akaion_verify.verify(home / "book", home / "pin")["verdict"])


def test_i9_a_whole_run_makes_the_operations_that_are_killed_below(tmp_path: Path) -> None:
    open_book(tmp_path).close()
    with child(tmp_path, fatal=-1) as process:
        said = process.communicate(timeout=600)[0].split("\n")
    assert (process.returncode, said[EFFECTS]) == (0, f"operations {OPERATIONS}")
    assert verdict(tmp_path) == "PASS"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts the operations of Linux")
@pytest.mark.parametrize("fatal", range(0, OPERATIONS, 3))
def test_i9_a_writer_killed_at_any_operation_leaves_a_book_that_verifies(tmp_path: Path, fatal: int) -> None:
    open_book(tmp_path).close()
    with child(tmp_path, fatal) as process:
        said = process.communicate(timeout=600)[0]
    assert process.returncode == -signal.SIGKILL
    check_after_kill(tmp_path, said)


@pytest.mark.parametrize("effects", [1, 3, 8])
def test_i9_a_writer_killed_from_outside_leaves_a_book_that_verifies(tmp_path: Path, effects: int) -> None:
    open_book(tmp_path).close()
    with child(tmp_path, fatal=-1, effects=10_000) as process:
        assert process.stdout is not None
        said = "".join(process.stdout.readline() for _ in range(effects))
        process.kill()
        said += process.stdout.read()
    check_after_kill(tmp_path, said)


def check_after_kill(home: Path, said: str) -> None:
    assert verdict(home) in {"PASS", "INCOMPLETE"}
    assert said.count("effect") <= sealed_calls(home)
    open_book(home).close()
    assert verdict(home) == "PASS"


def sealed_calls(home: Path) -> int:
    """How many tool calls stand before a seal in the last log."""
    *_, last = sorted((home / "book").glob("*.jsonl"))
    kinds = [json.loads(line)["kind"] for line in last.read_bytes().split(b"\n")[:-1]]
    return kinds[: len(kinds) - kinds[::-1].index("seal")].count("tool_call")


def test_i9_a_disk_error_fails_the_step_and_the_book_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = open_book(tmp_path)
    task = trace.mint_id()
    trace.append(r.TaskStart(goal_commit=trace.commit(b"goal"), data_class=DataClass.C1), task=task)

    def full(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, f"{handle} {len(data)}")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(TraceError, match="ENOSPC"):
            trace.barrier()
    with pytest.raises(TraceError, match="takes no more"):
        trace.barrier()
    trace.close()
    assert verdict(tmp_path) == "INCOMPLETE"
    open_book(tmp_path).close()
    assert verdict(tmp_path) == "PASS"


if __name__ == "__main__":
    counter = die_at(int(sys.argv[2]))
    write_book(Path(sys.argv[1]), int(sys.argv[3]))
    os.write(1, f"operations {next(counter)}\n".encode())
