# SPDX-License-Identifier: Apache-2.0
"""The mutation battery: many altered books, none of which may be accepted.

Run: python verify/tests/battery.py [--mutants N] [--page N] [--seed N]

`--mutants` are judged by `akaion_verify.py` in this process; `--page` of them by the second verifier too, the
script of `akaion_verify.html` under Node, and both must say the same. Prints how many were accepted (0), how
many a verifier failed on (0), how many single edits were placed within one line of where they are, and on how
many the two verifiers differ (0). Leaves to others: how a book is altered (`mutants.py`).
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]

import akaion_verify as av  # noqa: E402 - one file, in no package
from mutants import Book, Mutant, mutant, read_files  # noqa: E402 - as above

GOLDEN = ROOT / "contracts" / "trace" / "v1" / "golden"
BOOKS = ("quiet", "interrupted", "studio")
TURNS = (*("quiet",) * 8, "interrupted", "studio")
"""Which book has its turn: the small one often enough that every byte of it is met, in each way."""


def real_books() -> dict[str, tuple[Book, str]]:
    """Return the golden books that pass, which the writer made, each with its pin and lines of the others."""
    files = {name: read_files(GOLDEN / name) for name in BOOKS}
    return {
        name: (
            Book(held, [data for other in BOOKS if other != name for data in files[other].values()]),
            (GOLDEN / f"{name}.pin").read_text(encoding="ascii"),
        )
        for name, held in files.items()
    }


class Folder:
    """A folder that holds one altered book after another, and only rewrites what differs."""

    def __init__(self, place: Path, pin: str) -> None:
        """Keep the book in `place`, and the pin beside it."""
        self.folder = place / "book"
        self.pin = place / "pin"
        self.folder.mkdir(parents=True)
        self.pin.write_text(pin, encoding="ascii")
        self.held: dict[str, bytes] = {}

    def verify(self, files: dict[str, bytes]) -> dict[str, Any]:
        """Return the report on a book of these files."""
        for name, data in files.items():
            if self.held.get(name) != data:
                (self.folder / name).write_bytes(data)
        self.held = files
        return av.verify(self.folder, self.pin)


class Page:
    """The second verifier, under Node."""

    def __init__(self, node: str) -> None:
        """Start it with the program `node`."""
        self.process = subprocess.Popen(
            [node, str(HERE / "verdicts.js")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, job: dict[str, object]) -> Any:  # noqa: ANN401 - parsed JSON
        """Return its answer to one job (see `verdicts.js`)."""
        if self.process.stdin is None or self.process.stdout is None:
            raise AssertionError("both are pipes")
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def learn(self, books: dict[str, dict[str, bytes]]) -> None:
        """Have it hold these books, to which later jobs name edits."""
        data = {
            name: [[file, base64.b64encode(data).decode()] for file, data in files.items()]
            for name, files in books.items()
        }
        self.ask({"books": data})

    def verify(self, book: str, altered: Mutant, pin: str) -> dict[str, Any]:
        """Return its report on an altered book."""
        edits = [[*place, base64.b64encode(put).decode()] for *place, put in altered.edits]
        report: dict[str, Any] = self.ask({"book": book, "edits": edits, "pin": pin})
        return report

    def close(self) -> None:
        """End it."""
        self.process.communicate()


@dataclass
class Tally:
    """What came of the mutants."""

    mutants: Counter[str] = field(default_factory=Counter)
    accepted: list[tuple[str, int]] = field(default_factory=list)
    faults: list[tuple[str, int]] = field(default_factory=list)
    placed: int = 0
    places: int = 0
    compared: int = 0
    differing: list[tuple[str, int]] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)

    def take(self, which: tuple[str, int], altered: Mutant, report: dict[str, Any]) -> None:
        """Count one report."""
        self.mutants[altered.kind] += 1
        self.verdicts[report["verdict"]] += 1
        codes = [reason["code"] for reason in report["reasons"]]
        if report["verdict"] == "PASS":
            self.accepted.append(which)
        if "verifier-fault" in codes:
            self.faults.append(which)
        if altered.line is not None:
            self.places += 1
            log, seq = altered.line
            places = [(reason["log"], reason["seq"]) for reason in report["reasons"]]
            self.placed += any(at == log and near is not None and abs(near - seq) <= 1 for at, near in places)


@contextmanager
def remembered() -> Iterator[None]:
    """Have the verifier remember its answers on keys and signatures: the same few are met again and again."""
    decode, check = av.point_decode, av.signature_ok
    av.point_decode, av.signature_ok = map(lru_cache(maxsize=4096), (decode, check))
    try:
        yield
    finally:
        av.point_decode, av.signature_ok = decode, check


def run(count: int, compared: int, seed: int, node: str | None, place: Path) -> Iterator[Tally]:
    """Judge `count` mutants, and `compared` of them with both verifiers; yield the tally as it grows."""
    books, tally = real_books(), Tally()
    folders = {name: Folder(place / name, pin) for name, (_, pin) in books.items()}
    with remembered(), closing(Page(node)) if node and compared else nullcontext() as page:
        if page:
            page.learn({name: book.files for name, (book, _) in books.items()})
        for number in range(seed, seed + count):
            name = TURNS[number % len(TURNS)]
            book, pin = books[name]
            altered = mutant(book, number)
            report = folders[name].verify(altered.apply(book.files))
            tally.take((name, number), altered, report)
            if page and number - seed < compared:
                tally.compared += 1
                if page.verify(name, altered, pin) != report:
                    tally.differing.append((name, number))
            yield tally


def main() -> int:
    """Run the battery; return 1 if a mutant was accepted, a verifier failed, or the two differ."""
    parser = argparse.ArgumentParser(description="Alter books, and see that no verifier accepts one.")
    parser.add_argument("--mutants", type=int, default=1_000_000)
    parser.add_argument("--page", type=int, default=0, help="how many the second verifier judges too")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    node = shutil.which("node")
    if chosen.page and node is None:
        parser.error("--page needs Node (https://nodejs.org)")
    tally = Tally()
    memory = Path("/dev/shm")  # noqa: S108 - a folder in memory, where there is one
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        for tally in run(chosen.mutants, chosen.page, chosen.seed, node, Path(place)):
            done = tally.mutants.total()
            if done % 10_000 == 0 or done == chosen.mutants:
                print(f"\r{done:,} of {chosen.mutants:,}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    figures = {
        "mutants": tally.mutants.total(),
        "by_way": dict(tally.mutants.most_common()),
        "verdicts": dict(tally.verdicts.most_common()),
        "accepted": tally.accepted,
        "faults": tally.faults,
        "placed_within_one": [tally.placed, tally.places],
        "compared": tally.compared,
        "differing": tally.differing[:20],
    }
    print(json.dumps(figures, indent=2))
    return 1 if tally.accepted or tally.faults or tally.differing else 0


if __name__ == "__main__":
    sys.exit(main())
