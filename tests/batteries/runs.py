# SPDX-License-Identifier: Apache-2.0
"""Honest runs, drawn at random: the verifier must never cry out over one (I4).

Run: python tests/batteries/runs.py [--runs N] [--seed N] [--json]        (`make test-honest-runs`: 10,000)

A run is a book on disk that is written in several lives: by one thread or by several, with steps of the
clock, a disk that is full for a while, and ends of every kind: closed, killed, told to end, interrupted, or
just gone. After each life an auditor may look, with the state kept since the last look; at the end the book
is closed and must PASS. The seed fixes what is drawn; when a signal comes, and which thread goes first, is
chance.
"""

import argparse
import errno
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Final

from rich.console import Console
from rich.progress import track

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(ROOT / "src"), str(ROOT / "verify")]

import akaion_verify as av  # noqa: E402 - one file, in no package
from actor import BACKEND, Actor  # noqa: E402 - as above
from faults import MEMORY, quick_signature_ok  # noqa: E402 - as above

from runner.capability.transport.clock import SystemEntropy  # noqa: E402 - as above
from runner.capability.transport.logstore import FolderLogStore  # noqa: E402 - as above
from runner.capability.transport.salts import FileSaltStore  # noqa: E402 - as above
from runner.kernel.errors import TraceError  # noqa: E402 - as above
from runner.perimeter.trace import log as log_module  # noqa: E402 - as above
from runner.perimeter.trace.log import HeaderFacts, Trace  # noqa: E402 - as above
from runner.perimeter.trace.note import vkey  # noqa: E402 - as above
from runner.testing import FrozenClock, MemorySigner, header_words  # noqa: E402 - as above

FACTS: Final = HeaderFacts(
    **header_words(book="any", profile="attached", backends=(BACKEND,), max_egress_class="C1")
)
MOVES: Final = ("start", "end", "classify", "call", "call", "send", "send", "ask", "answer", "answer")
ENDS: Final = ("close", "close", "gone", "full disk", "full disk", "SIGKILL", "SIGTERM", "SIGINT")
THREADS: Final = (1, 1, 2, 4)


@dataclass
class Tally:
    """What came of the runs."""

    runs: int = 0
    lives: Counter[str] = field(default_factory=Counter)
    threads: Counter[int] = field(default_factory=Counter)
    clock_steps_back: int = 0
    refused: int = 0
    full_logs: int = 0
    logs: int = 0
    records: int = 0
    looks: Counter[str] = field(default_factory=Counter)
    interrupted_logs: int = 0
    alarms: list[tuple[int, str, str]] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "honest_runs": f"{self.runs - len({seed for seed, *_ in self.alarms})}/{self.runs}",
            "false_alarms": self.alarms[:20],
            "lives_by_end": dict(self.lives),
            "lives_by_threads": dict(self.threads),
            "clock_steps_back": self.clock_steps_back,
            "lives_that_the_disk_ended": self.refused,
            "moves_refused_by_a_full_log": self.full_logs,
            "logs": self.logs,
            "interrupted_logs": self.interrupted_logs,
            "records": self.records,
            "looks_of_an_auditor": dict(self.looks),
        }


class Run:
    """One book, and what was drawn for it."""

    def __init__(self, seed: int, place: Path, tally: Tally) -> None:
        self.seed, self.random, self.tally = seed, Random(seed), tally  # noqa: S311 - not for secrets
        self.home, self.pin, self.state = place / "home", place / "pin", place / "state"
        self.clock, self.signer = FrozenClock(), MemorySigner()
        self.facts = replace(
            FACTS, seal_every=self.random.choice((1, 2, 5, 256)), seal_ms=self.random.choice((1, 50, 1000))
        )
        self.most = self.random.choice((60, 200, 100_000))
        self.pin.write_text(vkey("any/device", self.signer.public_key), encoding="ascii")

    def live(self) -> None:
        """Write the book in some lives, look at it now and then, and close it."""
        for _ in range(self.random.randrange(1, 5)):
            end = self.random.choice(ENDS)
            self.tally.lives[end] += 1
            if end.startswith("SIG"):
                self.in_child(signal.Signals[end])
            else:
                self.in_here(end)
            if self.random.random() < 0.4:
                self.look({"PASS", "INCOMPLETE"})
        with self.opened():
            pass
        report = self.look({"PASS"})
        self.tally.logs += report["logs"]
        self.tally.records += report["entries"]
        self.tally.interrupted_logs += len(report["interrupted"])

    @contextmanager
    def opened(self, *, gone: bool = False) -> Iterator[Trace]:
        """Open the next log, and close it, unless the writer is `gone` before that."""
        book = self.home / "book"
        salts = FileSaltStore(self.home / "keys" / "salts", book=book)
        store = FolderLogStore(book, self.home / "heads" / "any")
        try:
            trace = Trace.open(
                store=store,
                signer=self.signer,
                salts=salts,
                clock=self.clock,
                entropy=SystemEntropy(),
                facts=self.facts,
            )
            with nothing() if gone else trace:
                yield trace
        finally:
            store.release()
            salts.close()

    def in_here(self, end: str) -> None:
        """Live in this process, to an end that it survives."""
        moves, threads = self.drawn(), self.random.choice(THREADS)
        disk = full_disk(self.random) if end == "full disk" else nothing()
        try:
            with self.opened(gone=end == "gone") as trace, disk:
                self.act(trace, moves, threads)
        except TraceError:
            if end != "full disk":
                raise
            self.tally.refused += 1

    def in_child(self, end: signal.Signals) -> None:
        """Live in a child, and send it `end` at any moment."""
        moves, threads, delay = self.drawn(), self.random.choice(THREADS), self.random.random() * 0.02
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until the child is ready for it
        pid = os.fork()
        if pid == 0:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
                with self.opened() as trace:
                    self.act(trace, moves * 20, threads)
            except BaseException:  # noqa: BLE001 - it was told to end
                os._exit(1)
            os._exit(0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        time.sleep(delay)
        os.kill(pid, end)
        os.waitpid(pid, 0)

    def drawn(self) -> list[tuple[str, int, float]]:
        """Draw moves: what, after which number, and by how many seconds the clock steps before it."""
        moves = list[tuple[str, int, float]]()
        for _ in range(self.random.randrange(1, 25)):
            step = self.random.choice((0, 0, 0, 0.001, 5, -3, 100_000))
            self.tally.clock_steps_back += step < 0
            moves.append((self.random.choice(MOVES), self.random.randrange(13), step))
        return moves

    def act(self, trace: Trace, moves: list[tuple[str, int, float]], threads: int) -> None:
        """Make the moves, in so many threads; raise the first error of any."""
        self.tally.threads[threads] += 1
        actors = [Actor(trace) for _ in range(threads)]
        actors[0].announce()
        failed = list[BaseException]()

        def play(actor: Actor, moves: list[tuple[str, int, float]]) -> None:
            try:
                for move in moves:
                    self.move(actor, *move)
            except BaseException as error:  # noqa: BLE001 - raised below
                failed.append(error)

        others = [threading.Thread(target=play, args=(actor, moves[at:])) for at, actor in enumerate(actors)]
        for thread in others[1:]:
            thread.start()
        play(actors[0], moves)
        for thread in others[1:]:
            thread.join()
        if failed:
            raise failed[0]

    def move(self, actor: Actor, name: str, number: int, step: float) -> None:
        """Step the clock, and make one move. Where the log is full, end what is open in it."""
        if step < 0:
            self.clock._start_us += int(step * 1_000_000)  # the wall's alone
        else:
            self.clock.advance(step)
        move: Callable[[int], None] = getattr(actor, name)
        try:
            move(number)
        except TraceError as error:
            if "open in it" not in str(error):
                raise
            self.tally.full_logs += 1
            while actor.tasks:
                actor.end(0)

    def look(self, honest: set[str]) -> dict[str, Any]:
        """Verify the book as an auditor with a state does, and keep the state."""
        report: dict[str, Any] = av.verify(self.home / "book", self.pin, (), self.state)
        av.write_state(self.state, report)
        self.tally.looks[report["verdict"]] += 1
        if report["verdict"] not in honest:
            codes = ", ".join(f"{each['code']} {each['log']}:{each['seq']}" for each in report["reasons"])
            self.tally.alarms.append((self.seed, report["verdict"], codes))
        return report


@contextmanager
def nothing() -> Iterator[None]:
    """Let nothing happen."""
    yield


@contextmanager
def full_disk(random: Random) -> Iterator[None]:
    """Let the disk be full, read-only or broken from some write or sync on, for some of them."""
    write, syncs = os.write, {name: getattr(os, name) for name in {"fsync", "fdatasync"} & set(dir(os))}
    left, lasts = random.randrange(30), random.randrange(1, 6)
    error = random.choice((errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT))

    def refuse() -> None:
        nonlocal left
        left -= 1
        if -lasts <= left < 0:
            raise OSError(error, "the disk")

    def write_or_fail(handle: int, data: bytes) -> int:
        refuse()
        return write(handle, data)

    def or_fail(sync: Callable[[int], None]) -> Callable[[int], None]:
        def sync_or_fail(handle: int) -> None:
            refuse()
            sync(handle)

        return sync_or_fail

    os.write = write_or_fail  # type: ignore[assignment]
    for name, sync in syncs.items():
        setattr(os, name, or_fail(sync))
    try:
        yield
    finally:
        os.write = write
        for name, sync in syncs.items():
            setattr(os, name, sync)


def run_all(count: int, seed: int, tally: Tally) -> Iterator[int]:
    """Make `count` runs; yield after each."""
    most = log_module.MAX_RECORDS
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        for number in range(seed, seed + count):
            here = Path(place) / str(number)
            here.mkdir()
            run = Run(number, here, tally)
            try:
                log_module.MAX_RECORDS = run.most  # type: ignore[misc]  # logs of few records, which rotate
                run.live()
            except TraceError as error:
                tally.alarms.append((number, "TraceError", str(error)))
            finally:
                log_module.MAX_RECORDS = most  # type: ignore[misc]  # as it was
            tally.runs += 1
            yield number


def main() -> int:
    """Make the runs; return 1 if the verifier cried out over one."""
    parser = argparse.ArgumentParser(description="Write honest books, and see that none fails.")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    chosen = parser.parse_args()
    av.signature_ok = quick_signature_ok
    tally, console = Tally(), Console(stderr=True)
    runs = run_all(chosen.runs, chosen.seed, tally)
    for _ in track(runs, total=chosen.runs, console=console, disable=not console.is_terminal):
        pass
    if chosen.json:
        sys.stdout.write(json.dumps(tally.figures(), indent=2) + "\n")
    else:
        Console().print(tally.figures())
    return 1 if tally.alarms else 0


if __name__ == "__main__":
    sys.exit(main())
