# SPDX-License-Identifier: Apache-2.0
"""What the record costs: writing, syncing, verifying, memory, beside raw loops and beside peers, in one run.

Run: python benchmarks/trace.py [--records N] [--rounds N] [--folder PLACE] [--peer-python PYTHON]
     [--book-mb N]

Each figure is a ratio of two loops that take turns, the median of the rounds: machines are shared and noisy.
What waits for a disk is measured in time, the rest in processor time. The raw loops do the least that can be
said to do the same: one JSON text and one SHA-256; one write and one fdatasync; the hashes and signatures of
a book without reading what it says. `--folder` is where syncs are measured (a RAM disk would tell nothing).
`--book-mb` also verifies a book of that size and says what memory that took.

Peers run in an interpreter of their own, named by --peer-python or TRACE_PEER_PYTHON. To have one:
  python -m venv PLACE && PLACE/bin/pip install witness-log tamperlog aat-verify orjson
The faster verifier is measured in that interpreter too, which has orjson.
"""

import argparse
import base64
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from _trace_peer import ATTACKS, LIE, PEERS
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.keys import FileSigner
from runner.capability.transport.logstore import FolderLogStore
from runner.capability.transport.salts import FileSaltStore
from runner.kernel.labels import DataClass, Integrity
from runner.perimeter.trace import records as r
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.merkle import Tree, leaf_hash
from runner.perimeter.trace.note import device_key_name, parse_vkey, vkey
from runner.testing import FrozenClock, MemoryLogStore, MemorySaltStore, MemorySigner, header_words

VERIFY: Final = Path(__file__).resolve().parents[1] / "verify"
COMMIT: Final = "3" * 64


def record(number: int) -> r.Classify:
    """Return a record of the most frequent kind, 350 bytes as a line."""
    parts = r.Parts(default=DataClass.C0, detected=DataClass.C1)
    return r.Classify(
        block=f"b{number}",
        data_class=DataClass.C1,
        parts=parts,
        integrity=Integrity.USER,
        classifier="rules-only",
        version="1",
        inputs=(),
        commit=COMMIT,
    )


def in_memory(**facts: Any) -> Trace:  # noqa: ANN401 - facts of a header
    """Open a log that keeps its lines in memory."""
    return Trace.open(
        store=MemoryLogStore(),
        signer=MemorySigner(),
        salts=MemorySaltStore(),
        clock=FrozenClock(),
        entropy=SystemEntropy(),
        facts=HeaderFacts(**header_words(book="studio/desk", **facts)),
    )


def on_disk(home: Path, **facts: Any) -> Trace:  # noqa: ANN401 - as above
    """Open the next log of the book under `home`, and leave the auditor's pin there."""
    entropy, book = SystemEntropy(), home / "book"
    signer = FileSigner(home / "keys" / "device", book=book, entropy=entropy)
    name = device_key_name("studio/desk")
    (home / "pin").write_text(vkey(name, signer.public_key) + "\n", encoding="ascii")
    return Trace.open(
        store=FolderLogStore(book, home / "heads" / "pin"),
        signer=signer,
        salts=FileSaltStore(home / "vault" / "salts", book=book),
        clock=SystemClock(),
        entropy=entropy,
        facts=HeaderFacts(**header_words(book="studio/desk", **facts)),
    )


def seconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def processor(work: Callable[[], object]) -> float:
    """Return how much processor time `work` takes, in seconds."""
    started = time.process_time()
    work()
    return time.process_time() - started


def turns(rounds: int, *works: Callable[[], float]) -> list[list[float]]:
    """Return the seconds of each of `works`, which take turns."""
    return [list(column) for column in zip(*([work() for work in works] for _ in range(rounds)), strict=True)]


def ratio(ours: Sequence[float], raw: Sequence[float]) -> float:
    """Return the median, over the rounds, of how fast ours is where raw is 1."""
    return statistics.median(other / own for own, other in zip(ours, raw, strict=True))


def told(what: str, figure: float, goal: float | None, each_us: float, *, unit: str = "") -> None:
    """Print one figure, its goal if it has one, and what one record costs."""
    against = "" if goal is None else f"goal {goal:g}" + ("" if figure >= goal else ", missed")
    print(f"{what:58} {figure:8.2f}{unit:2} {against:18} {each_us:10.1f} us each")


# --- writing ------------------------------------------------------------------------------------------


def appending(count: int, rounds: int) -> None:
    """Print what a record costs without a disk, beside one JSON text and one hash."""
    made = [record(number) for number in range(count)]
    bodies = [
        {
            "body": json.loads(each.text()),
            "kind": each.kind,
            "prev": COMMIT,
            "seq": number,
            "task": "4" * 32,
            "ts": number,
        }
        for number, each in enumerate(made)
    ]

    def ours() -> float:
        trace = in_memory()
        return processor(lambda: [trace.append(each) for each in made])

    def in_a_task() -> float:
        trace = in_memory()
        task = trace.mint_id()
        trace.append(r.TaskStart(goal_commit=COMMIT, data_class=DataClass.C1), task=task)
        return processor(lambda: [trace.append(each, task=task) for each in made])

    def building() -> float:
        return processor(lambda: [record(number) for number in range(count)])

    def raw() -> float:
        return processor(
            lambda: [
                hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).digest()
                for body in bodies
            ]
        )

    own, tasked, build, base = turns(rounds, ours, in_a_task, building, raw)
    each = 1e6 / count
    told("append without sync, of JSON and SHA-256", ratio(own, base), 0.7, statistics.median(own) * each)
    told("  in a task", ratio(tasked, base), None, statistics.median(tasked) * each)
    for what, times in (("one JSON text and one SHA-256", base), ("making the record, its checks", build)):
        print(f"{'  ' + what:58} {'':29} {statistics.median(times) * each:10.1f} us each")


def raw_syncs(folder: Path, count: int, *, pin: bool, synced: bool) -> float:
    """Return the seconds of `count` lines, each written and synced; `pin`: and a small file renamed."""
    line, handle = b"x" * 450 + b"\n", os.open(folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def once() -> bool:
        os.write(handle, line)
        os.fdatasync(handle)
        if pin:
            small = os.open(folder / "pin.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.write(small, line[:200])
            if synced:
                os.fdatasync(small)
            os.close(small)
            os.rename(folder / "pin.tmp", folder / "pin.raw")  # noqa: PTH104 - the call itself is measured
        return pin

    taken = seconds(lambda: [once() for _ in range(count)])
    os.close(handle)
    return taken


def durable(folder: Path, count: int, rounds: int) -> None:
    """Print what a record costs that is sealed and on the disk before the next, alone and by 64 at once."""
    places = iter(range(10_000))

    def single() -> float:
        with on_disk(folder / str(next(places))) as trace:

            def all_of_them() -> None:
                for number in range(count):
                    trace.barrier(trace.append(record(number)))

            return seconds(all_of_them)

    def grouped(callers: int = 64) -> float:
        home, each = folder / str(next(places)), max(1, count // 8)
        with on_disk(home) as trace:

            def call() -> None:
                for _ in range(each):
                    trace.barrier(trace.append(record(int(trace.mint_block()[1:]))))

            threads = [threading.Thread(target=call) for _ in range(callers)]

            def all_of_them() -> None:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()

            return seconds(all_of_them) * count / (callers * each)

    works = (
        single,
        grouped,
        lambda: raw_syncs(folder, count, pin=False, synced=False),
        lambda: raw_syncs(folder, count, pin=True, synced=False),
        lambda: raw_syncs(folder, count, pin=True, synced=True),
    )
    own, group, one, renamed, both = turns(rounds, *works)
    each = 1e6 / count
    told(
        "durable alone, of fdatasync and a pin renamed",
        ratio(own, renamed),
        0.5,
        statistics.median(own) * each,
    )
    told("  of fdatasync alone", ratio(own, one), None, statistics.median(one) * each)
    told(
        "  of fdatasync, and a pin synced and renamed", ratio(own, both), None, statistics.median(both) * each
    )
    told("64 callers, of one alone", ratio(group, own), 10, statistics.median(group) * each, unit="x")


# --- verifying ----------------------------------------------------------------------------------------


def book(home: Path, count: int, seal_every: int) -> list[bytes]:
    """Write a book of one log with a seal for each `seal_every` records, and return its lines."""
    with on_disk(home, seal_every=seal_every, seal_ms=60_000) as trace:
        for number in range(count):
            trace.append(record(number))
    (log,) = (home / "book").glob("*.jsonl")
    return log.read_bytes().split(b"\n")[:-1]


def limit(lines: Sequence[bytes]) -> float:
    """Return the seconds of hashing the lines into a tree and checking the seals' signatures by OpenSSL."""
    notes = [json.loads(line)["note"] for line in lines if b'"kind":"seal"' in line[:40]]
    public = Ed25519PublicKey.from_public_bytes(parse_vkey(json.loads(lines[0])["body"]["vkey"])[1])
    signed = [
        (base64.b64decode(rest.split("\n")[0].rpartition(" ")[2])[4:], f"{text}\n".encode())
        for text, _, rest in (note.partition("\n\n") for note in notes)
    ]

    def work() -> None:
        tree = Tree()
        for line in lines:
            tree.add(leaf_hash(line))
        for signature, text in signed:
            public.verify(signature, text)

    return processor(work)


TIMED: Final = """
import sys, time
sys.path.insert(0, sys.argv[1])
import akaion_verify as verifier
from pathlib import Path
if sys.argv[4] == "fast":
    import akaion_verify_fast
    akaion_verify_fast.install(verifier)
    if verifier.parse_line.__module__ != "akaion_verify_fast":
        sys.exit("without orjson")
started = time.process_time()
report = verifier.verify(Path(sys.argv[2]), Path(sys.argv[3]))
print(time.process_time() - started, report["verdict"])
"""


READ: Final = """
import json, sys, time
from pathlib import Path
lines = Path(sys.argv[1]).read_bytes().split(b"\\n")[:-1]
read = json.loads
if sys.argv[2] != "json.loads":
    import orjson
    read = orjson.loads
if sys.argv[2] == "orjson.loads and dumps, compared":
    read = lambda line: orjson.dumps(orjson.loads(line), option=orjson.OPT_SORT_KEYS) == line
started = time.process_time()
for line in lines:
    read(line)
print(time.process_time() - started)
"""
READERS: Final = ("json.loads", "orjson.loads", "orjson.loads and dumps, compared")


def reading(python: str, home: Path, how: str) -> float:
    """Return the seconds that only parsing takes, in an interpreter of its own; NaN where it cannot."""
    (log,) = (home / "book").glob("*.jsonl")
    done = subprocess.run([python, "-c", READ, str(log), how], capture_output=True, text=True, check=False)
    return float("nan") if done.returncode else float(done.stdout)


def verified(python: str, home: Path, how: str) -> float:
    """Return the seconds that the verifier takes in an interpreter of its own; NaN where it cannot run."""
    command = [python, "-c", TIMED, str(VERIFY), str(home / "book"), str(home / "pin"), how]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return float("nan")
    taken, verdict = done.stdout.split()
    if verdict != "PASS":
        raise AssertionError(f"the book of this benchmark got {verdict}")
    return float(taken)


def verifying(folder: Path, count: int, rounds: int, peer: str) -> None:
    """Print what verifying a record costs, beside the hashes and signatures alone."""
    for seal_every in (64, 4):
        home = folder / f"sealed-{seal_every}"
        lines = book(home, count, seal_every)
        works = (
            partial(verified, peer, home, "fast"),
            partial(verified, sys.executable, home, "plain"),
            partial(limit, lines),
            *(partial(reading, peer, home, how) for how in READERS),
        )
        fast, plain, base, *reads = turns(rounds, *works)
        goal = 0.6 if seal_every == 64 else None
        what = f"verify, a seal for {seal_every} records"
        told(
            f"{what}, fast, of hashes and signatures",
            ratio(fast, base),
            goal,
            statistics.median(fast) * 1e6 / count,
        )
        told("  standard library alone", ratio(plain, base), None, statistics.median(plain) * 1e6 / count)
        for how, read in zip(READERS, reads, strict=True):
            least = [taken + more for taken, more in zip(base, read, strict=True)]
            what = f"  the limit and {how}, nothing else"
            told(what, ratio(least, base), None, statistics.median(least) * 1e6 / count)
        told("  the limit itself", 1.0, None, statistics.median(base) * 1e6 / count)


def memory(folder: Path, megabytes: int) -> None:
    """Print what verifying a book of `megabytes` takes in memory."""
    home, steps = folder / "large", tuple(r.PlanStep(id=number, tool="read_file") for number in range(400))
    plan = r.Plan(by="plane", steps=steps)
    size, number = 0, 0
    while size < megabytes << 20:
        with on_disk(home, seal_every=256, seal_ms=60_000) as trace:
            for _ in range(min(4000, 1 + ((megabytes << 20) - size) // 14_000)):
                task = trace.mint_id()
                trace.append(r.TaskStart(goal_commit=COMMIT, data_class=DataClass.C1), task=task)
                trace.append(plan, task=task)
                trace.append(record(number), task=task)
                trace.append(r.TaskEnd(outcome="done"), task=task)
                number += 1
        size = sum(path.stat().st_size for path in (home / "book").iterdir())
    program = (
        "import sys; from pathlib import Path\n"
        "sys.path.insert(0, sys.argv[1]); import akaion_verify as v\n"
        "peak = lambda: Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]\n"
        "bare = peak()\n"
        "verdict = v.verify(Path(sys.argv[2]), Path(sys.argv[3]))['verdict']\n"
        "print(verdict, bare, peak())"
    )
    command = [sys.executable, "-I", "-S", "-c", program, str(VERIFY), str(home / "book"), str(home / "pin")]
    taken = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    verdict, bare, peak = done.stdout.split()
    print(
        f"{f'verify a book of {size / 1e6:.0f} MB ({4 * number} records), peak memory':58} "
        f"{int(peak) / 1024:8.1f} MiB, goal 40; {verdict}, of which Python and the program "
        f"{int(bare) / 1024:.1f}, {time.perf_counter() - taken:.0f} s"
    )


# --- beside peers -------------------------------------------------------------------------------------


def peers(python: str, count: int) -> None:
    """Print what the peers do in a second, and which attacks they refuse."""
    found: dict[str, dict[str, Any]] = {}
    for name in PEERS:
        program = str(Path(__file__).with_name("_trace_peer.py"))
        done = subprocess.run(
            [python, program, name, str(count)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"{name} does not run under {python}: left out; see the beginning of this file")
        else:
            found[name] = json.loads(done.stdout)
    for name, each in found.items():
        speeds = ", ".join(f"{what} {rate:,.0f}" for what, rate in each["speed"].items())
        print(f"{name + ' ' + each['version']:24} records a second: {speeds}")
    print("\nRefused, alone / with what was kept elsewhere (a checkpoint, a head); ours is in verify/tests:")
    names = [*(name for name in ATTACKS), "written anew by another key", "written anew by the same key", LIE]
    for attack in names:
        cells = ", ".join(
            f"{name} {' / '.join('yes' if refused else 'no' for refused in each['attacks'][attack])}"
            for name, each in found.items()
        )
        print(f"  {attack:38} {cells}")


def main() -> None:
    """Print the tables that the arguments ask for."""
    parser = argparse.ArgumentParser(description="What the record costs, beside raw loops and peers.")
    parser.add_argument("--records", type=int, default=6000)
    parser.add_argument("--syncs", type=int, default=60, help="records of a durable round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--folder", type=Path, default=None, help="where to write; default: a temporary folder"
    )
    parser.add_argument("--book-mb", type=int, default=0, help="also verify a book of so many MB")
    parser.add_argument("--peer-python", default=os.environ.get("TRACE_PEER_PYTHON", sys.executable))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        appending(options.records, options.rounds)
        durable(folder, options.syncs, options.rounds)
        verifying(folder, options.records, options.rounds, options.peer_python)
        if options.book_mb:
            memory(folder, options.book_mb)
        peers(options.peer_python, options.records // 2)


if __name__ == "__main__":
    main()
