# SPDX-License-Identifier: Apache-2.0
"""The fault battery: whatever befalls a writer at whichever system call, the book is honest and goes on (I9).

Run: python tests/batteries/faults.py [--part NAME] [--way WORDS] [--every N] [--json]
(Linux on x86-64; `make test-trace-faults` for all of it)

A writer lives through each of `SCENES` once for each of its system calls and each of `WAYS` that fits the
call: killed there, the power cut there, the call failing there once or for good. Then four things must hold:
the verifier never says FAIL, every call that the writer was told is sealed stands under a seal, the next
writer opens the book, and the book then passes. After that every cut of a log is tried: one below the head
pin is refused at reopening and never passes, one above it is an interruption and goes on.
Leaves to others: the calls themselves (`syscalls.py`) and the lives (`books.py`).
"""

import argparse
import contextlib
import errno
import itertools
import json
import os
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeAlias

from rich.console import Console
from rich.progress import Progress

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(ROOT / "src"), str(ROOT / "verify")]

import akaion_verify as av  # noqa: E402 - one file, in no package
import books  # noqa: E402 - as above
from cryptography.exceptions import InvalidSignature  # noqa: E402 - as above
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: E402 - as above
from syscalls import CHANGING, SIZED, Act, Call, Disk, Fail, Half, Kill, run_traced  # noqa: E402 - as above

from runner.kernel.errors import TraceError  # noqa: E402 - as above

Life: TypeAlias = Callable[[Path, books.Say], None]
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a folder in memory, where there is one


@dataclass(frozen=True, slots=True)
class Way:
    """What befalls a call, once or (`stays`) from there on; and whether the power goes then."""

    name: str
    act: Act
    only: frozenset[str] | None = None
    stays: bool = False
    cut: str = ""  # "", "now", "half", or "later": after another writer has gone on


WAYS: Final = (
    Way("killed", Kill()),
    Way("killed half way", Half(kill=True), SIZED),
    Way("power cut", Kill(), cut="now"),
    Way("power cut, half of what was not synced is there", Kill(), cut="half"),
    Way("killed, and the power cut later", Kill(), cut="later"),
    Way("EIO", Fail(errno.EIO)),
    Way("EIO though it was done", Fail(errno.EIO, done=True)),
    Way("ENOSPC", Fail(errno.ENOSPC)),
    Way("EROFS", Fail(errno.EROFS)),
    Way("EINTR", Fail(errno.EINTR)),
    Way("short", Half(), SIZED),
    Way("ENOSPC for good", Fail(errno.ENOSPC), CHANGING, stays=True),
    Way("EROFS for good", Fail(errno.EROFS), CHANGING, stays=True),
    Way("EIO for good", Fail(errno.EIO), CHANGING | {"fsync", "fdatasync"}, stays=True),
)


@dataclass
class Tally:
    """What came of it. The lists hold (scene, call or line, way) and stay empty."""

    calls: dict[str, int] = field(default_factory=dict)
    ways: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    sealed: int = 0
    failed: list[tuple[str, ...]] = field(default_factory=list)
    lost: list[tuple[str, ...]] = field(default_factory=list)
    stuck: list[tuple[str, ...]] = field(default_factory=list)
    untold: list[tuple[str, ...]] = field(default_factory=list)
    cuts: Counter[str] = field(default_factory=Counter)
    wrong_cuts: list[tuple[str, int, str]] = field(default_factory=list)

    def wrong(self) -> int:
        """Return how many faults were found."""
        return sum(len(found) for found in (self.failed, self.lost, self.stuck, self.untold)) + len(
            self.wrong_cuts
        )

    def figures(self) -> dict[str, Any]:
        """Return it as JSON."""
        total = self.ways.total()
        return {
            "system_calls": self.calls,
            "injected": total,
            "by_way": dict(self.ways),
            "verdicts_at_once": dict(self.verdicts),
            "verdict_never_fail": f"{total - len(self.failed)}/{total}",
            "sealed_calls_kept": f"{self.sealed - len(self.lost)}/{self.sealed}",
            "next_writer_goes_on_and_passes": f"{total - len(self.stuck)}/{total}",
            "errors_that_are_trace_errors": f"{total - len(self.untold)}/{total}",
            "cuts_below_the_pin_refused": f"{self.cuts['below, refused']}/{self.cuts['below']}",
            "cuts_above_the_pin_continued": f"{self.cuts['above, continued']}/{self.cuts['above']}",
            "wrong": {
                "failed": self.failed[:20],
                "lost": self.lost[:20],
                "stuck": self.stuck[:20],
                "untold": self.untold[:20],
                "cuts": self.wrong_cuts[:20],
            },
        }


class Studio:
    """A place in which one book after another is started from a scene's beginning."""

    def __init__(self, place: Path) -> None:
        self.home, self.pin, self.before = place / "home", place / "pin", place / "before"
        self.before.mkdir(parents=True)

    def again(self) -> Path:
        """Return the home as it was when the scene began."""
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self.before, self.home)
        return self.home

    def verdict(self) -> str:
        """Return what the verifier says of the book."""
        if not books.write_pin(self.home, self.pin) and not any((self.home / "book").glob("*")):
            return "INCOMPLETE"  # no key yet, and no book: there is nothing to vouch for
        return str(av.verify(self.home / "book", self.pin)["verdict"])


def nothing(_: Studio) -> None:
    """Begin with an empty disk."""


def a_day(studio: Studio) -> None:
    """Begin with a book of one complete log."""
    books.day(studio.before, lambda _: None)


def a_broken_day(studio: Studio) -> None:
    """Begin with a book whose log broke off in the middle of a line, after its second barrier."""
    home = studio.before

    def decide(_: int, call: Call) -> Act:
        if call.name != "write" or not call.path.endswith(".jsonl"):
            return None
        return Half(kill=True) if next(writes) == BREAKS_AT else None

    writes = itertools.count()
    run_traced(lambda: books.day(home, lambda _: None), home, decide)
    (log,) = (home / "book").glob("*.jsonl")
    if log.read_bytes().endswith(b"\n"):
        raise AssertionError("the log is torn")


BREAKS_AT: Final = 2
"""The write of the log, from 0, that is cut short."""

SCENES: Final[dict[str, tuple[Callable[[Studio], None], Life]]] = {
    "first log": (nothing, books.day),
    "next log": (a_day, books.day),
    "recovery": (a_broken_day, books.day),
    "rotation": (a_day, books.two_days),
}


def live(life: Life, home: Path, heard: int, *, again: bool) -> None:
    """Live in a child: say on the handle `heard` what was sealed, and how it ended, and live once more."""

    def say(text: str) -> None:
        os.write(heard, f"{text}\n".encode())

    def attempt(life: Life) -> bool:
        try:
            life(home, say)
        except TraceError:
            return False
        except Exception as error:  # noqa: BLE001 - what it is, is the finding
            say(f"untold {type(error).__name__}")
            return False
        return True

    if not attempt(life) and again and not attempt(books.day):
        say("stuck")


@dataclass(frozen=True, slots=True)
class Case:
    """What befalls whom, and where."""

    studio: Studio
    scene: str
    life: Life
    number: int
    way: Way

    def name(self) -> tuple[str, ...]:
        """Return it in words."""
        return self.scene, str(self.number), self.way.name


def inject(case: Case, tally: Tally) -> None:
    """Let the way befall a call of the life, and judge what is left."""
    home, way = case.studio.again(), case.way
    disk = Disk(home)
    hearing, heard = os.pipe()
    run_traced(
        lambda: live(case.life, home, heard, again=not way.stays), home, _befall(way, case.number), disk.done
    )
    judge(case, disk, hear(hearing, heard), tally)


def hear(hearing: int, heard: int) -> list[str]:
    """Return the lines that a child, which has ended or will, said on the pipe."""
    os.close(heard)
    with os.fdopen(hearing, encoding="ascii") as pipe:
        return pipe.read().split("\n")[:-1]


def _befall(way: Way, number: int) -> Callable[[int, Call], Act]:
    def decide(at: int, call: Call) -> Act:
        if at < number or (at > number and not way.stays) or (way.only and call.name not in way.only):
            return None
        if call.name == "close" and isinstance(way.act, Fail):
            return Fail(way.act.error, done=True)  # a handle is gone whatever close answers
        return way.act

    return decide


def judge(case: Case, disk: Disk, said: list[str], tally: Tally) -> None:
    """See what the verifier says now, whether the next writer goes on, and what it says then."""
    home, cut = case.studio.home, case.way.cut
    if cut in {"now", "half"}:
        disk.cut(half=cut == "half")
    verdicts = [case.studio.verdict()]
    tally.verdicts[verdicts[0]] += 1
    sealed = {call for call in said if " " not in call and call != "stuck"}
    try:
        if cut == "later":
            run_traced(lambda: books.day(home, lambda _: None), home, lambda *_: None, disk.done)
            disk.cut(half=False)
            verdicts.append(case.studio.verdict())
        books.day(home, sealed.add)
    except TraceError as error:
        tally.stuck.append((*case.name(), str(error)))
    verdicts.append(case.studio.verdict())
    if not set(verdicts) <= {"PASS", "INCOMPLETE"}:
        tally.failed.append((*case.name(), *verdicts))
    elif verdicts[-1] != "PASS" or "stuck" in said:
        tally.stuck.append((*case.name(), *verdicts))
    tally.untold += [(*case.name(), text) for text in said if text.startswith("untold")]
    tally.sealed += len(sealed)
    tally.lost += [(*case.name(), call) for call in sealed - books.sealed_calls(home)]
    tally.ways[case.way.name] += 1


def calls_of(studio: Studio, life: Life) -> list[Call]:
    """Return the system calls that `life` makes when nothing befalls it."""
    calls, home = list[Call](), studio.again()
    run_traced(lambda: life(home, lambda _: None), home, lambda _, call: calls.append(call))
    return calls


def run_faults(place: Path, every: int, tally: Tally, words: str = "") -> Iterator[tuple[int, int]]:
    """Inject every `every`-th fault of the ways named with `words`; yield how many of how many are done."""
    plan = list[Case]()
    for scene, (begin, life) in SCENES.items():
        studio = Studio(place / scene)
        begin(studio)
        calls = calls_of(studio, life)
        tally.calls[scene] = len(calls)
        plan += [
            Case(studio, scene, life, number, way)
            for number, call in enumerate(calls)
            for way in WAYS
            if words in way.name and (way.only is None or call.name in way.only)
        ]
    plan = plan[::every]
    for done, case in enumerate(plan, start=1):
        inject(case, tally)
        yield done, len(plan)


# --- interrupts ------------------------------------------------------------------------------------------

CTRL_C: Final = Way("Ctrl-C", None)


def interrupted_at(place: int, life: Life) -> Life:
    """Return `life` with Ctrl-C pressed at the `place`-th place where Python looks (never, if negative).

    Those are the starts of functions and the returns from what is built in. Says how many there were.
    """

    def live_on(home: Path, say: books.Say) -> None:
        places = itertools.count()

        def watch(frame: FrameType, event: str, _: object) -> None:
            here = frame.f_code.co_filename.startswith(OURS)
            if here and event in {"call", "c_return"} and next(places) == place:
                raise KeyboardInterrupt

        sys.setprofile(watch)
        try:
            life(home, say)
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
            say(f"places {next(places)}")

    return live_on


OURS: Final = (str(ROOT / "src" / "runner"), contextlib.__file__, threading.__file__)
"""Where Ctrl-C is pressed: in our code, and in the context managers and threads it is built with."""


def run_interrupts(place: Path, every: int, tally: Tally) -> Iterator[tuple[int, int]]:
    """Press Ctrl-C at every `every`-th place of two lives; yield how many of how many are done."""
    plan = list[Case]()
    for scene in ("recovery", "rotation"):
        begin, life = SCENES[scene]
        studio = Studio(place / f"{scene}, interrupted")
        begin(studio)
        said = in_child(interrupted_at(-1, life), studio.again())
        places = int(said[-1].partition(" ")[2])
        tally.calls[f"{scene}, places of an interrupt"] = places
        plan += [Case(studio, f"{scene}, interrupt", life, number, CTRL_C) for number in range(places)]
    plan = plan[::every]
    for done, case in enumerate(plan, start=1):
        home = case.studio.again()
        said = in_child(interrupted_at(case.number, case.life), home)
        judge(case, Disk(home), said, tally)
        yield done, len(plan)


def in_child(life: Life, home: Path) -> list[str]:
    """Live in a child that ends without tidying up; return what it said."""
    hearing, heard = os.pipe()
    pid = os.fork()
    if pid == 0:
        sys.unraisablehook = lambda _: None  # an interrupt in what is being cleared away
        try:
            live(life, home, heard, again=False)
        finally:
            os._exit(0)
    said = hear(hearing, heard)
    os.waitpid(pid, 0)
    return said


# --- cuts ------------------------------------------------------------------------------------------------


def run_cuts(place: Path, every: int, tally: Tally) -> Iterator[tuple[int, int]]:
    """Cut a closed and a broken-off log at every `every`-th byte; yield how many of how many are done."""
    plan = list[tuple[Studio, str, bytes, int]]()
    for scene, begin in (("closed", a_day), ("broken off", a_broken_day)):
        studio = Studio(place / f"{scene}, cut")
        begin(studio)
        studio.again()
        (log,) = (studio.home / "book").glob("*.jsonl")
        data = log.read_bytes()
        plan += [(studio, log.name, data, size) for size in range(len(data) + 1)]
    plan = plan[::every]
    for done, (studio, name, data, size) in enumerate(plan, start=1):
        _cut(studio, name, data, size, tally)
        yield done, len(plan)


def _cut(studio: Studio, name: str, data: bytes, size: int, tally: Tally) -> None:
    home = studio.again()
    durable = sum(len(line) + 1 for line in data.split(b"\n")[: books.pinned_lines(home)])
    (home / "book" / name).write_bytes(data[:size])
    first = studio.verdict()
    try:
        with books.Ports(home).open():
            pass
    except TraceError:
        came = "refused"
    else:
        came = "continued"
    where, wanted = ("below", "refused") if size < durable else ("above", "continued")
    tally.cuts[where] += 1
    tally.cuts[f"{where}, {came}"] += 1
    passed = first == "PASS" and size < len(data)
    if came != wanted or passed or (came == "continued" and studio.verdict() != "PASS"):
        tally.wrong_cuts.append((name, size, came))


def quick_signature_ok(key: bytes, message: bytes, signature: bytes) -> bool:
    """Judge an honest signature as the verifier does, which is strict and slow, and tested elsewhere."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def main() -> int:
    """Run the battery; return 1 if it found a fault."""
    parser = argparse.ArgumentParser(description="Let everything befall a writer, at every system call.")
    parser.add_argument("--every", type=int, default=1, help="take only every so-manieth fault")
    parser.add_argument("--part", choices=["faults", "interrupts", "cuts"], help="only this part")
    parser.add_argument("--way", default="", help="only faults whose name has these words, such as: power")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    chosen = parser.parse_args()
    av.signature_ok = quick_signature_ok
    tally, console = Tally(), Console(stderr=True)
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place,
        Progress(console=console, disable=not console.is_terminal) as bar,
    ):
        here, every = Path(place).resolve(), chosen.every
        parts = {
            "faults": run_faults(here, every, tally, chosen.way),
            "interrupts": run_interrupts(here, every, tally),
            "cuts": run_cuts(here, every, tally),
        }
        for part in [chosen.part] if chosen.part else parts:
            task = bar.add_task(part, total=None)
            for done, total in parts[part]:
                bar.update(task, completed=done, total=total)
    figures = tally.figures()
    if chosen.json:
        sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    else:
        Console().print(figures)
    return 1 if tally.wrong() else 0


if __name__ == "__main__":
    sys.exit(main())
