# SPDX-License-Identifier: Apache-2.0
"""Reading a book for display: log files in, rows out.

Owns a tolerant reading: whatever the bytes are, there is a row for every line. It proves nothing, checks no
hash and no signature, and says so; proving is the verifier's, which shares no code with this. Every text in
a row is foreign: whoever prints it prints it inert.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from runner.adapters.ledger.lines import parse_line, read_file
from runner.adapters.ledger.run import answer_word
from runner.kernel.errors import TraceError
from runner.kernel.language import how_many

_NAME: Final = re.compile(r"([0-9]{6,15})-[0-9a-f]{32}\.jsonl")
_ID_SHOWN: Final = 8
_SHOWN: Final = ("profile", "outcome", "reason", "rule", "status", "locality", "integrity", "enforcement")
"""Members that say something to a person, in the order they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One record as far as it could be read. `seq` is its place in the file, `time_us` since 1970, UTC."""

    seq: int
    time_us: int | None = None
    task: str = ""
    kind: str
    decision: str = ""
    data_class: str = ""
    who: str = ""
    """The backend or the tool."""
    note: str = field(default="", repr=False)
    record: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One log file. `closed`: it ends with its `close` record and a seal."""

    number: int
    name: str
    rows: tuple[Row, ...]
    closed: bool


def log_names(folder: Path) -> list[str]:
    """Return the names of the logs in `folder`, in order; raise `TraceError` when there is no such folder."""
    try:
        names = [entry.name for entry in folder.iterdir() if _NAME.fullmatch(entry.name)]
    except OSError:
        raise TraceError(
            f"there is no record at {folder}. Fix: run a task first, or name its folder, or its --profile"
        ) from None
    return sorted(names, key=_number)


def read_book(folder: Path, number: int | None = None) -> list[Log]:
    """Return the logs of the book in `folder`, or only log `number`.

    Raises `TraceError` when the folder or the log is not there, or a file cannot be read.
    """
    names = [name for name in log_names(folder) if number is None or _number(name) == number]
    if number is not None and not names:
        raise TraceError(f"the book has no log {number}. Fix: leave --log out to see which there are")
    return [parse_log(name, read_file(folder / name)) for name in names]


def parse_log(name: str, data: bytes) -> Log:
    """Return the rows of a log's bytes. Total: a line that is no record becomes a row that says so."""
    lines = data.split(b"\n")
    torn = lines.pop()
    rows = [_parse_row(seq, line) for seq, line in enumerate(lines)]
    if torn:
        rows.append(Row(seq=len(lines), kind="torn line"))
    closed = [row.kind for row in rows[-2:]] == ["close", "seal"]
    return Log(number=_number(name), name=name, rows=tuple(_with_lowerings(rows)), closed=closed)


def _with_lowerings(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield `rows`, each lowering of a class with the sends that rest on it, and each of these with it."""
    bodies = [_body(row.record) for row in rows]
    lowered = {_word(each, "id"): at for at, each in enumerate(bodies) if rows[at].kind == "declassify"}
    resting: dict[int, list[int]] = {}
    for at, body in enumerate(bodies):
        on = lowered.get(_word(body, "declassify"))
        if on is not None and rows[at].kind == "egress":
            resting.setdefault(on, []).append(at)
    on_what = {at: on for on, those in resting.items() for at in those}
    for at, row in enumerate(rows):
        notes = [row.note, f"rests on record {on_what[at]}" if at in on_what else ""]
        if row.kind == "declassify":
            sends = ", ".join(map(str, resting.get(at, ()))) or "none"
            notes.append(f"sends that rest on it: {sends}")
        yield replace(row, note=", ".join(filter(None, notes)))


def _number(name: str) -> int:
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else -1


def _parse_row(seq: int, line: bytes) -> Row:
    record = parse_line(line)
    if record is None:
        return Row(seq=seq, kind="unreadable line")
    members = _body(record)
    moment = record.get("ts")
    return Row(
        seq=seq,
        time_us=moment if type(moment) is int else None,
        task=_word(record, "task"),
        kind=_word(record, "kind") or "no kind",
        decision=_decision(members),
        data_class=_word(members, "class"),
        who=_word(members, "backend") or _word(members, "tool") or _word(members, "name"),
        note=", ".join(_notes(members)),
        record=record,
    )


def _body(record: Mapping[str, Any]) -> Mapping[str, Any]:
    body = record.get("body")
    return body if isinstance(body, dict) else {}


def _word(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def _decision(members: Mapping[str, Any]) -> str:
    """Return what was decided: by the gate, by the policy, or by a person."""
    granted = members.get("granted")
    if isinstance(granted, bool):
        return answer_word(granted=granted, by=_word(members, "by"))
    return _word(members, "decision")


def _notes(members: Mapping[str, Any]) -> Iterator[str]:
    before, after = _word(members, "from"), _word(members, "to")
    if before and after:
        yield f"{before} counts as {after}"
    if approval := _word(members, "approval"):
        yield f"by the yes to call {approval[:_ID_SHOWN]}"
    for name in _SHOWN:
        if value := _word(members, name):
            yield f"{name} {value}"
    size = members.get("bytes")
    if type(size) is int:
        yield how_many(size, "byte")
