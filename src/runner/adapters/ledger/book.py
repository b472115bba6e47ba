# SPDX-License-Identifier: Apache-2.0
"""Reading a book together with the verdict on it: each entry says whether it was verified.

Owns the bond between the two. The verifier is another process and the book may grow, or be changed, between
its reading and ours. So the lines read here are hashed again, from the last seal that held back to the first
first log: each header names the root of the log before it. A line counts as verified only if it hangs on that
chain and a seal of its own log covers it: whoever can write to the folder can add lines to an interrupted
log, and the next header states them too. Carries I4. Leaves what the entries mean to `run.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from runner.adapters.ledger.lines import parse_line, read_file
from runner.adapters.ledger.verdict import Seen, Verdict, verify
from runner.kernel.errors import TraceError
from runner.perimeter.trace.merkle import Tree, leaf_hash

_NAME: Final = re.compile(r"([0-9]{6,15})-([0-9a-f]{32})\.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a log: `seq` is its place, `line` its bytes without the newline, `body` what could be read.

    Getters are total: a line that was not verified may hold anything.
    """

    log: int
    seq: int
    line: bytes = field(repr=False)
    kind: str
    task: str = ""
    ts: int = 0
    body: Mapping[str, Any] = field(repr=False)
    verified: bool

    def word(self, name: str) -> str:
        """Return the member `name` of the body if it is a text, else an empty one."""
        value = self.body.get(name)
        return value if isinstance(value, str) else ""

    def count(self, name: str) -> int | None:
        """Return the member `name` of the body if it is a whole number."""
        value = self.body.get(name)
        return value if type(value) is int else None

    def is_set(self, name: str) -> bool:
        """Return whether the member `name` of the body is true."""
        return self.body.get(name) is True

    def words(self, name: str) -> tuple[str, ...]:
        """Return the texts in the member `name` of the body."""
        value = self.body.get(name)
        return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLog:
    """The lines of one log, seals included. `torn`: bytes follow the last whole line."""

    number: int
    entries: tuple[Entry, ...]
    torn: bool

    @property
    def header(self) -> Entry:
        """The first line, which is the header of a log that was verified."""
        return self.entries[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A book with the verdict on it. `pin`: the bytes of the pin it was given under; empty without one."""

    folder: Path
    verdict: Verdict
    pin: bytes = b""

    def newest_first(self) -> Iterator[ReadLog]:
        """Yield the logs from the last to the first, only those with a line; one is in memory at a time.

        Raises `TraceError` when a file cannot be read, or holds other lines than were verified.
        """
        names = _names(self.folder)
        bound = self.verdict.seen if self.verdict.holds else None
        for number in sorted(names, reverse=True):
            at = bound if bound is not None and bound.log == number else None
            log = _read_log(number, self.folder / names[number], at)
            if log.entries:
                yield log
            if at is not None:
                bound = _before(log)


def open_ledger(folder: Path, pin: Path | None, witnesses: Sequence[Path] = ()) -> Ledger:
    """Have the book in `folder` verified under `pin` and return it with its verdict; raise `TraceError`.

    `witnesses` are files with the keys of witnesses whose cosignatures beside the logs count.
    """
    given = b"" if pin is None or not pin.is_file() else pin.read_bytes()
    return Ledger(folder=folder, verdict=verify(folder, pin, witnesses=witnesses), pin=given)


def _names(folder: Path) -> dict[int, str]:
    try:
        found = sorted(path.name for path in folder.iterdir())
    except OSError:
        raise TraceError(
            f"there is no record at {folder}. Fix: run a task first, or name its folder or profile: "
            "--folder or --profile"
        ) from None
    return {int(match[1]): name for name in found if (match := _NAME.fullmatch(name))}


def _before(log: ReadLog) -> Seen | None:
    """Return what the header of a verified log says of the log before it; None for the first of a book."""
    before = log.header.body.get("prev_log")
    if not isinstance(before, dict):
        return None
    return Seen(log=log.number - 1, size=before["size"], root=before["root"])


def _read_log(number: int, path: Path, bound: Seen | None) -> ReadLog:
    """Return the lines of a log; those up to its last seal are verified, if `bound` says what they are."""
    lines = read_file(path).split(b"\n")
    torn = lines.pop()
    size = 0 if bound is None else bound.size
    if bound is not None and _root(lines[:size]) != (size, bound.root):
        raise TraceError(
            f"{path.name} is not what was verified a moment ago: it was changed meanwhile. Fix: ask again"
        )
    seals = (seq for seq in reversed(range(size)) if parse_record(lines[seq]).get("kind") == "seal")
    last = next(seals, -1)
    entries = (_entry(number, seq, line, verified=seq <= last) for seq, line in enumerate(lines))
    return ReadLog(number=number, entries=tuple(entries), torn=bool(torn))


def _root(lines: list[bytes]) -> tuple[int, str]:
    tree = Tree()
    for line in lines:
        tree.add(leaf_hash(line))
    return tree.size, tree.root().hex()


def _entry(log: int, seq: int, line: bytes, *, verified: bool) -> Entry:
    record = parse_record(line)
    body, task, ts, kind = (record.get(name) for name in ("body", "task", "ts", "kind"))
    return Entry(
        log=log,
        seq=seq,
        line=line,
        kind=kind if isinstance(kind, str) else "unreadable line",
        task=task if isinstance(task, str) else "",
        ts=ts if type(ts) is int else 0,
        body=body if isinstance(body, dict) else {},
        verified=verified,
    )


def to_entry(log: int, line: bytes) -> Entry:
    """Return a line that stands by itself, as verified: whoever calls this has its proof checked.

    Raises `ValueError` for one without a place.
    """
    seq = parse_record(line).get("seq")
    if type(log) is not int or type(seq) is not int:
        raise ValueError("a line without a place")
    return _entry(log, seq, line, verified=True)


def parse_record(line: bytes) -> Mapping[str, Any]:
    """Return the object on a line; an empty one if there is none that could be a record. Total."""
    return parse_line(line) or {}
