# SPDX-License-Identifier: Apache-2.0
"""A pack of evidence: gathered from a verified book, written as files and read again.

Owns what goes into a pack, and its files; leaves checking to `checking.py`. A pack holds a proof of each
line, so that the standalone verifier alone can check it elsewhere; everything else in it is derived from
those lines or named as said by its maker. The same book gives the same bytes: no time, no path and no chance
is in a pack. Carries I4, and I12: no content, unless it is given and matches a commitment.
"""

import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from runner.adapters.ledger.book import Entry, Ledger, ReadLog
from runner.adapters.ledger.lines import read_file
from runner.adapters.ledger.material import (
    LOOSE,
    PIN,
    Given,
    Selection,
    derive,
    kept_of,
    policy_logs,
    policy_name,
)
from runner.adapters.ledger.proofs import Prover, proof_name
from runner.adapters.ledger.run import Run, runs_of
from runner.adapters.ledger.statements import Ref, ref
from runner.kernel.errors import TraceError

SUMS: Final = "SHA256SUMS"
WITNESSED: Final = ".witness"
"""What a file beside a log is called in which witnesses speak of it: as the log, but for the end."""
MAX_LINES: Final = 20_000
"""Lines that a pack holds at most: a page of more is read by nobody."""
MAX_PACK: Final = 512 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")
_SUM: Final = re.compile(rf"^([0-9a-f]{{64}})  ({_NAME.pattern})$", re.MULTILINE)
_DATE: Final = (1980, 1, 1, 0, 0, 0)
_UNIX: Final = 3
_PACKED: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})

Files = dict[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The lines of a pack, the proof of each, what was left out, and whole logs by name."""

    lines: tuple[Entry, ...]
    proofs: Mapping[Ref, bytes]
    unproved: tuple[Ref, ...]
    logs: Mapping[str, bytes]


def gather(ledger: Ledger, selection: Selection, *, whole: bool) -> Gathered:
    """Return the lines of a verified book that `selection` means, each with its proof.

    `whole` adds the logs they stand in, entire. Raises `TraceError` when the book does not verify, holds no
    such run, or too many lines.
    """
    if not ledger.verdict.holds:
        reasons = "; ".join(map(str, ledger.verdict.reasons))
        raise TraceError(
            f"the book is {ledger.verdict.word} ({reasons}): nothing in it is evidence. Fix: run "
            "akaion-verify to see what broke, and use a copy that verifies"
        )
    lines: list[Entry] = []
    proofs: dict[Ref, bytes] = {}
    unproved: list[Ref] = []
    logs: Files = {}
    for log in ledger.newest_first():
        prover = Prover(log)
        for entry in chosen(log, selection):
            proof = prover.prove(entry.seq) if entry.verified else None
            if proof is None:
                unproved.append(ref(entry))
                continue
            lines.append(entry)
            proofs[ref(entry)] = proof
            if whole:
                logs |= _whole(log, ledger.folder)
        if len(lines) > MAX_LINES:
            raise TraceError(f"that are more than {MAX_LINES} lines. Fix: name a shorter time, or tasks")
    if not lines:
        raise TraceError("no run is like that. Fix: see `akaion runs`")
    return Gathered(
        lines=tuple(sorted(lines, key=ref)), proofs=proofs, unproved=tuple(sorted(unproved)), logs=logs
    )


def _whole(log: ReadLog, folder: Path) -> Files:
    """Return a log by its name, with the torn rest that a recovery speaks of, and what witnesses said."""
    name = f"{log.number:06d}-{log.header.word('log_id')}.jsonl"
    said = folder / name.replace(".jsonl", WITNESSED)
    data = b"".join(each.line + b"\n" for each in log.entries)
    rest = read_file(folder / name)[len(data) :] if log.torn else b""
    files = {name: data + rest}
    return files | ({said.name: said.read_bytes()} if said.is_file() else {})


def chosen(log: ReadLog, selection: Selection) -> list[Entry]:
    """Return the header of a log, the entries that are meant, and the records of the backends they ask.

    None where nothing of the log is meant.
    """
    meant = [entry for run in runs_of(log) if _is_meant(run, selection) for entry in run.entries]
    if not selection.tasks:
        meant += [
            entry
            for entry in log.entries
            if entry.kind in LOOSE and not entry.task and _in_time(entry.ts, selection)
        ]
    if not meant:
        return []
    asked = {entry.word("backend") for entry in meant if entry.kind == "egress"}
    backends = [entry for entry in log.entries if entry.kind == "backend" and entry.word("name") in asked]
    return sorted((log.header, *backends, *meant), key=ref)


def _is_meant(run: Run, selection: Selection) -> bool:
    return run.task in selection.tasks if selection.tasks else _in_time(run.start_us, selection)


def _in_time(time_us: int, selection: Selection) -> bool:
    since, until = selection.since_us, selection.until_us
    return (since is None or time_us >= since) and (until is None or time_us < until)


def build(gathered: Gathered, given: Given, pin: bytes) -> Files:
    """Return the files of a pack by name, sums included. A policy that was never in force is left out."""
    headers = [entry for entry in gathered.lines if entry.kind == "header"]
    given = replace(
        given,
        policies=tuple(each for each in given.policies if policy_logs(each, headers)[1]),
        verdict=kept_of(given.verdict),
        unproved=gathered.unproved,
        logs=tuple(sorted(gathered.logs)),
    )
    files = derive(gathered.lines, given)
    files |= {proof_name(place): proof for place, proof in gathered.proofs.items()}
    files |= {f"logs/{name}": data for name, data in gathered.logs.items()}
    files |= {each.file: each.payload for each in given.disclosed}
    files |= {PIN: pin} | {policy_name(each): each for each in given.policies}
    return {**files, SUMS: sums_of(files)}


def sums_of(files: Mapping[str, bytes]) -> bytes:
    """Return the file of sums over the others, as `sha256sum` prints it."""
    lines = (f"{sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return "".join(lines).encode("ascii")


def unlike_sums(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return each file of a pack that is not as its sums say: `missing`, `not listed` or `altered`.

    Of a pack without sums, and where it is the text of the sums that is not as `sums_of` writes it, that
    file alone is named.
    """
    if SUMS not in files:
        return {SUMS: "missing"}
    rest = {name: data for name, data in files.items() if name != SUMS}
    sums = _SUM.finditer(files[SUMS].decode("ascii", "replace"))
    listed = {found[2]: found[1] for found in sums if found[2] != SUMS}
    here = {name: sha256(data).hexdigest() for name, data in rest.items()}
    unlike = dict.fromkeys(listed.keys() - here, "missing")
    unlike |= dict.fromkeys(here.keys() - listed, "not listed")
    unlike |= {name: "altered" for name in here.keys() & listed if here[name] != listed[name]}
    whole = {} if files[SUMS] == sums_of(rest) else {SUMS: "altered"}
    return dict(sorted(unlike.items())) or whole


def fingerprint(files: Mapping[str, bytes]) -> str:
    """Return what two people compare to know that they hold the same pack: the SHA-256 of its sums."""
    return sha256(files[SUMS]).hexdigest()


# --- files ---------------------------------------------------------------------------------------


def write_pack(files: Mapping[str, bytes], target: Path) -> None:
    """Write a pack as one file if `target` ends in .zip, else as a folder; for its owner's eyes only.

    Raises `TraceError` when something is there already, or it cannot be written.
    """
    try:
        if target.suffix == ".zip":
            _write_zip(files, target)
        else:
            _write_folder(files, target)
    except FileExistsError:
        raise TraceError(f"{target} is there already. Fix: name another with --output") from None
    except OSError as error:
        raise TraceError(
            f"{target} cannot be written ({error.strerror}). Fix: name another with --output"
        ) from None


def _write_zip(files: Mapping[str, bytes], target: Path) -> None:
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system, entry.external_attr = _UNIX, 0o600 << 16
            archive.writestr(entry, files[name])


def _write_folder(files: Mapping[str, bytes], target: Path) -> None:
    target.mkdir(mode=0o700)
    for name, data in files.items():
        path = target / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)


def read_pack(source: Path) -> Files:
    """Return the files of a pack, a folder or a .zip, by name; raise `TraceError`."""
    try:
        files = dict(_read_folder(source) if source.is_dir() else _read_zip(source))
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise TraceError(f"{source} is no pack that can be read. Fix: get it again, whole") from None
    if not all(_NAME.fullmatch(name) for name in files):
        raise TraceError(
            f"{source} holds a file with a name that no pack has. Fix: take out what is not of it"
        )
    return files


def _read_folder(source: Path) -> Iterator[tuple[str, bytes]]:
    paths = sorted(path for path in source.rglob("*") if not path.is_dir())
    if sum(path.lstat().st_size for path in paths) > MAX_PACK or any(path.is_symlink() for path in paths):
        raise OSError
    yield from ((path.relative_to(source).as_posix(), read_file(path)) for path in paths)


def _read_zip(source: Path) -> Iterator[tuple[str, bytes]]:
    if not source.is_file():
        raise OSError
    with zipfile.ZipFile(source) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        if sum(entry.file_size for entry in entries) > MAX_PACK or len(set(names)) != len(names):
            raise OSError
        if not all(entry.compress_type in _PACKED for entry in entries):
            raise OSError
        yield from ((entry.filename, archive.read(entry)) for entry in entries)
