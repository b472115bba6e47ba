# SPDX-License-Identifier: Apache-2.0
"""The check of a pack of evidence: whether all of it rests on lines that the verifier finds included.

Owns what is compared: sums, proofs, what must be shown beside a line, what the end of a task counts, enclosed
logs, and each file that is derived. Leaves reading files to `pack.py`, and what a pack says by itself to
`said.py`. Carries I4.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from runner.adapters.ledger.book import Entry, ReadLog, parse_record, to_entry
from runner.adapters.ledger.content import Disclosure, commitments
from runner.adapters.ledger.material import (
    PIN,
    SUMMARY,
    Given,
    cover,
    derive,
    material_of,
    policy_logs,
    policy_name,
)
from runner.adapters.ledger.pack import SUMS, Files, chosen, unlike_sums
from runner.adapters.ledger.proofs import proof_name
from runner.adapters.ledger.run import Run
from runner.adapters.ledger.said import parse_given
from runner.adapters.ledger.statements import ref
from runner.adapters.ledger.verdict import check_each, verify

_DOUBT: Final = {1: "FAIL", 3: "UNTRUSTED", 4: "UNVERIFIABLE"}
_END: Final = ["close", "seal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What came of checking a pack: every problem in words, how many lines, and the verifier's doubts.

    Where files are not those that the sums list, the problems name these, and what the verifier has against
    the proofs: that the rest does not follow from the lines would say nothing more.

    The doubt `INCOMPLETE` is of an enclosed log that has no end, of a task whose end is not shown, and of
    lines that are called unproved. The `verdict` on the whole book, None where none is said, and how many
    `anchors` it has, are its maker's word: no pack shows that, nor that nothing else belongs into it.
    """

    problems: tuple[str, ...]
    lines: int
    doubts: tuple[str, ...]
    verdict: str | None = None
    anchors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """What is wrong beyond sums and proofs, whether an end is not shown, and what the maker says."""

    problems: list[str]
    is_open: bool = False
    given: Given | None = None


def check_pack(files: Files, pin: Path, on_proof: Callable[[], None] = lambda: None) -> Checked:
    """Check a pack: its sums, each proof by the verifier under `pin`, and all that is derived from the lines.

    `on_proof` is called after each proof. Raises `TraceError` when the verifier cannot be run.
    """
    rest = {name: data for name, data in files.items() if name != SUMS}
    unlike = unlike_sums(files)
    problems = [f"{name}: {how}" for name, how in unlike.items()]
    proofs = {name: files[name] for name in sorted(files) if name.startswith("proofs/")}
    codes = _check_proofs(proofs, pin, on_proof)
    problems += [f"{name}: {_DOUBT.get(code, 'FAIL')}" for name, code in codes.items() if code not in {0, 4}]
    doubts = {_DOUBT[code] for code in codes.values() if code in _DOUBT}
    if PIN in rest and PIN not in unlike and rest[PIN].strip() != pin.read_bytes().strip():
        problems.append(f"{PIN}: it is not the pin that you have")
    try:
        found = _check_contents(rest, pin)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        why = "it is not what a pack holds" if SUMMARY in rest else "missing"
        found = _Contents(problems=[f"{SUMMARY}: {why}"])
    doubts |= {"INCOMPLETE"} if found.is_open else set()
    return Checked(
        problems=(*problems, *(() if unlike else found.problems)),
        lines=len(proofs),
        doubts=tuple(sorted(doubts)),
        verdict=None if found.given is None else str(found.given.verdict["verdict"]),
        anchors=0 if found.given is None else len(found.given.verdict["anchors"]),
    )


def _check_proofs(proofs: Files, pin: Path, on_proof: Callable[[], None]) -> dict[str, int]:
    """Return the verifier's exit code for each proof."""
    codes = {}
    with TemporaryDirectory(prefix="akaion-pack-") as scratch:
        paths = [Path(scratch) / name.replace("/", "-") for name in proofs]
        for path, data in zip(paths, proofs.values(), strict=True):
            path.write_bytes(data)
        for name, code in zip(proofs, check_each(paths, pin), strict=True):
            codes[name] = code
            on_proof()
    return codes


def _check_contents(files: Files, pin: Path) -> _Contents:
    """Return what came of it; raise whatever comes of a file that is not of a pack."""
    shown = _shown(files)
    lines = tuple(line for line, _ in shown)
    given = parse_given(files, [line for line in lines if line.kind == "header"])
    logs = [_read_log(data) for name, data in files.items() if _is_log(name)]
    ended = {log.number: [entry.kind for entry in log.entries[-2:]] == _END and not log.torn for log in logs}
    open_logs = [number for number, is_ended in ended.items() if not is_ended]
    runs = material_of(lines).runs
    problems = [
        *_check_places(shown),
        *_check_runs(runs, given),
        *_check_unproved(lines, given),
        *_check_verdict(files, lines, given, pin),
        *_check_logs(logs, lines, given),
        *_check_ends(open_logs, given),
        *_check_derived(files, lines, given),
    ]
    is_open = bool(open_logs or given.unproved) or any(run.end_us is None for run in runs)
    return _Contents(problems=problems, is_open=is_open, given=given)


def _shown(files: Files) -> list[tuple[Entry, bytes]]:
    """Return the lines that the proofs of a pack show, in order, each with the header its proof is under."""
    proofs = [json.loads(data) for name, data in files.items() if name.startswith("proofs/")]
    under = [(each["line"].encode("utf-8"), each["header"].encode("utf-8")) for each in proofs]
    found = [(to_entry(_number(header), line), header) for line, header in under]
    return sorted(found, key=lambda each: ref(each[0]))


def _number(header: bytes) -> int:
    number: int = parse_record(header)["body"]["log_no"]
    return number


def _check_places(shown: Sequence[tuple[Entry, bytes]]) -> Iterator[str]:
    """Yield what must be shown beside the lines and is not: the header of each log, the backends it asks."""
    lines = [line for line, _ in shown]
    headers = {line.log: line.line for line in lines if line.seq == 0}
    for line, header in shown:
        if headers.get(line.log) != header:
            yield f"{proof_name(ref(line))}: the header of its log is not shown"
        if line.kind == "egress" and line.word("backend") and not any(_probes(each, line) for each in lines):
            yield f"{proof_name(ref(line))}: the record of the backend that it asks is not shown"


def _check_runs(runs: Sequence[Run], given: Given) -> Iterator[str]:
    """Yield of which kinds more or fewer lines are shown of a task than its end counts, and what is missing.

    Each line of a task stands before its end: whoever proves that can prove them all, and none is excused.
    """
    for run in runs:
        if run.end_us is None:
            continue
        stated, here = run.entries[-1].body["counts"], Counter(entry.kind for entry in run.entries[:-1])
        for kind in sorted({*stated, *here}):
            if stated.get(kind, 0) != here[kind]:
                counted = f"its end counts {stated.get(kind, 0)} {kind}, and {here[kind]} are shown"
                yield f"task {run.task}: {counted}"
    shown = {run.task for run in runs}
    for task in given.selection.tasks:
        if not given.unproved and task not in shown:
            yield f"task {task}: it is named, and nothing of it is shown"


def _check_unproved(lines: Sequence[Entry], given: Given) -> Iterator[str]:
    """Yield which lines are called unproved and are not: a later line of their log is proved (S1)."""
    last = {line.log: line.seq for line in lines}
    for log, seq in given.unproved:
        if seq < last.get(log, 0):
            yield f"{SUMMARY}: log {log}, seq {seq} is called unproved, and a later line of it is proved"


def _probes(entry: Entry, sent: Entry) -> bool:
    """Return whether `entry` says what the backend was that `sent` went to."""
    is_before = entry.kind == "backend" and entry.log == sent.log and entry.seq < sent.seq
    return is_before and entry.word("name") == sent.word("backend")


# --- enclosed logs -----------------------------------------------------------------------------------


def _is_log(name: str) -> bool:
    return name.startswith("logs/") and name.endswith(".jsonl")


def _read_log(data: bytes) -> ReadLog:
    *lines, rest = data.split(b"\n")
    number = _number(lines[0])
    return ReadLog(number=number, entries=tuple(to_entry(number, line) for line in lines), torn=bool(rest))


def _check_verdict(files: Files, lines: Sequence[Entry], given: Given, pin: Path) -> list[str]:
    """Return what the verifier has against the whole logs that are enclosed, if any are."""
    logs = {name: data for name, data in files.items() if name.startswith("logs/")}
    if not logs:
        return []
    headers = [line for line in lines if line.kind == "header"]
    with TemporaryDirectory(prefix="akaion-pack-") as scratch:
        for name, data in logs.items():
            (Path(scratch) / name.removeprefix("logs/")).write_bytes(data)
        policies = []
        for number, data in enumerate(given.policies if cover(given.policies, headers) else ()):
            policies.append(Path(scratch) / f"{number}.json")
            policies[-1].write_bytes(data)
        verdict = verify(Path(scratch), pin, policies=policies)
    return [] if verdict.holds else [f"logs: {each}" for each in verdict.reasons]


def _check_logs(logs: Sequence[ReadLog], lines: Sequence[Entry], given: Given) -> Iterator[str]:
    """Yield which enclosed logs are missing, or hold other lines of what is meant than are shown."""
    apart = {line.log for line in lines} ^ {log.number for log in logs} if given.logs else set()
    yield from (f"logs: log {number} is not enclosed, or nothing of it is shown" for number in sorted(apart))
    for log in logs:
        left_out = {place for place in given.unproved if place[0] == log.number}
        meant = {ref(entry): entry.line for entry in chosen(log, given.selection)}
        seals = [entry.seq for entry in log.entries if entry.kind == "seal"]
        wanted = {place: line for place, line in meant.items() if place not in left_out}
        if wanted != {ref(line): line.line for line in lines if line.log == log.number}:
            yield f"logs: log {log.number} does not hold the lines that are shown, or more of that kind"
        if any(seq < max(seals, default=0) for _, seq in left_out):
            yield f"logs: log {log.number} has a seal over lines that are called unproved"


def _check_ends(open_logs: Sequence[int], given: Given) -> Iterator[str]:
    """Yield which enclosed logs have no end, and no word of their maker's why: it goes on, or broke off."""
    known = given.verdict["interrupted"]
    if given.verdict["verdict"] != "INCOMPLETE":
        yield from (f"logs: log {number} has no end" for number in open_logs if number not in known)


# --- what is derived ---------------------------------------------------------------------------------


def _check_derived(files: Files, lines: Sequence[Entry], given: Given) -> list[str]:
    """Return which files are not what follows from the lines that the proofs show."""
    headers = [line for line in lines if line.kind == "header"]
    wanted: Mapping[str, bytes] = derive(lines, given)
    wanted = {**wanted, **{each.file: each.payload for each in given.disclosed}}
    named = {*wanted, *(proof_name(ref(line)) for line in lines), *(f"logs/{name}" for name in given.logs)}
    named |= {PIN, *map(policy_name, given.policies)}
    apart = [name for name in wanted if name in files and files[name] != wanted[name]]
    problems = [f"{name}: it does not follow from the lines" for name in apart]
    problems += [f"{name}: it is not what was committed" for name in _untrue(given.disclosed, lines)]
    unused = [policy_name(each) for each in given.policies if not policy_logs(each, headers)[1]]
    problems += [f"{name}: it was in force in none of the logs" for name in unused]
    problems += [f"{name}: missing" for name in sorted(named - set(files))]
    return problems + [f"{name}: it does not belong to the pack" for name in sorted(set(files) - named)]


def _untrue(disclosed: Sequence[Disclosure], lines: Sequence[Entry]) -> list[str]:
    """Return the files of content that the lines do not commit to."""
    said = {(*ref(line), *each) for line in lines for each in commitments(line)}
    return [
        each.file
        for each in disclosed
        if not each.holds or (each.log, each.seq, each.member, each.commit) not in said
    ]
