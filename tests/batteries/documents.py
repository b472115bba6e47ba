# SPDX-License-Identifier: Apache-2.0
"""Everything that a document may do to its reader: hostile files, and good ones with random changes.

Run: python tests/batteries/documents.py [--mutants N] [--seed N] [--all] [--json]   (`make test-documents`)

Files are made by a process of their own and read from a folder, so that the reader's own memory stays small.
"""

import argparse
import json
import multiprocessing
import os
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from runner.capability.documents.port import DocumentReader
from runner.capability.documents.reader import LIMITS, WALL_S, Documents
from runner.capability.documents.words import Reason, why
from runner.capability.sandbox.bubblewrap import Bubblewrap, why_not
from runner.kernel.errors import ToolError

SLACK_S = 5.0
ERRORS = frozenset(map(why, Reason))


@dataclass(kw_only=True)
class Findings:
    """What came of the files: how each ended, which ended wrongly, and what it cost."""

    ended: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0
    slowest_file: str = ""


def make(folder: str, mutants: int, seed: int, *, everything: bool) -> None:
    """Write the files into `folder`, each with what is expected of it beside."""
    from hostile_papers import hostile  # noqa: PLC0415 - by the process that makes them
    from papers import good  # noqa: PLC0415

    place = Path(folder)
    for at, trap in enumerate(trap for trap in hostile() if everything or not trap.slow):
        said = None if trap.reason is None else why(trap.reason)
        _write(place, f"{at:05d}", trap.data, {"name": trap.name, "error": said, "notes": list(trap.notes)})
    chance, papers = random.Random(seed), good()  # noqa: S311 - chance here is not for secrets
    for at in range(mutants):
        paper = papers[at % len(papers)]
        _write(
            place, f"m{at:05d}", mutated(paper.data, chance), {"name": f"{paper.name} changed, {seed}/{at}"}
        )


def _write(place: Path, name: str, data: bytes, expected: dict[str, object]) -> None:
    (place / f"{name}.bin").write_bytes(data)
    (place / f"{name}.json").write_text(json.dumps(expected), encoding="utf-8")


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return `data` with a few changes: bytes, cuts, repeats, and numbers that grow."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(out) or 1)
        end = min(len(out), at + chance.randint(1, 64))
        match chance.randrange(5):
            case 0:
                out[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del out[at:end]
            case 2:
                out[at:at] = out[at:end] * chance.randint(1, 50)
            case 3:
                out[at:end] = chance.randbytes(end - at)
            case _:
                out[at:end] = bytes(out[at:end]).translate(bytes.maketrans(b"012345678", b"9" * 9))
    return bytes(out)


class Watch(threading.Thread):
    """Looks every few milliseconds at the most memory that each process below this one ever had (KiB)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.peak = 0

    def run(self) -> None:
        """Look until it is over."""
        while not self.over.wait(0.02):
            self._look(os.getpid())

    def _look(self, pid: int) -> None:
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):
                for child in file.read_text().split():
                    said = Path(f"/proc/{child}/status").read_text()
                    if found := re.search(r"^Name:\tpython.*^VmHWM:\s+(\d+)", said, re.MULTILINE | re.DOTALL):
                        self.peak = max(self.peak, int(found[1]))
                    self._look(int(child))


def read_all(folder: Path) -> Findings:
    """Read the files in `folder` and say what came of them."""
    found = Findings()
    with ExitStack() as stack:
        reader = stack.enter_context(Documents(Bubblewrap()).many())
        for file in sorted(folder.glob("*.bin")):
            expected = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
            started = time.monotonic()
            error, notes = _read(reader, file.read_bytes())
            took = time.monotonic() - started
            if took > found.slowest:
                found.slowest, found.slowest_file = took, expected["name"]
            found.ended[error or "read"] += 1
            same = "error" not in expected or (error, notes) == (expected["error"], expected["notes"])
            if not same or took > WALL_S + SLACK_S or (error is not None and error not in ERRORS):
                found.wrong.append(f"{expected['name']}: {error} {notes} after {took:.1f} s")
    return found


def _read(reader: DocumentReader, data: bytes) -> tuple[str | None, list[str]]:
    try:
        return None, list(reader.read(data, name="").notes)
    except ToolError as error:
        return str(error), []


def main() -> int:
    """Run the battery; return 1 when anything ended wrongly."""
    words = argparse.ArgumentParser(description="everything that a document may do to its reader")
    words.add_argument("--mutants", type=int, default=20_000)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--all", action="store_true", help="the slow files too")
    words.add_argument("--json", action="store_true")
    asked = words.parse_args()
    if (reason := why_not()) is not None:
        print(f"no sandbox can be built here: {reason}", file=sys.stderr)
        return 2
    spawning = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, spawning.Pool(1, maxtasksperchild=1) as apart:
        apart.apply(make, (folder, asked.mutants, asked.seed), {"everything": asked.all})
        found, peak = apart.apply(_measured, (folder,))
    said = {
        "files": sum(found.ended.values()),
        "ended": dict(found.ended.most_common()),
        "wrong": found.wrong,
        "slowest_s": round(found.slowest, 2),
        "slowest": found.slowest_file,
        "memory_mib": round(peak / 1024, 1),
        "memory_limit_mib": LIMITS.memory_bytes >> 20,
    }
    print(json.dumps(said) if asked.json else json.dumps(said, indent=2))
    return int(bool(found.wrong) or peak > LIMITS.memory_bytes >> 10)


def _measured(folder: str) -> tuple[Findings, int]:
    """Return what came of the files in `folder`, and the most memory of any program that read them (KiB)."""
    watch = Watch()
    watch.start()
    found = read_all(Path(folder))
    watch.over.set()
    watch.join()
    return found, watch.peak


if __name__ == "__main__":
    sys.exit(main())
