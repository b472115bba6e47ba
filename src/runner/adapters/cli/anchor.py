# SPDX-License-Identifier: Apache-2.0
"""`akaion trace anchor`: have a witness say how long the record is, and keep what it said beside the logs.

Owns the exchange on the side of the record: the request, by HTTP or as a file, and the sidecar
`<log>.witness`. Leaves judging to the witness and proving to the verifier. This is an operator's command: no
run does it. What leaves is a name, sizes, hashes and signatures, never content (I12), to the address that the
operator writes. Carries I4: only a cosignature that verifies is kept.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from runner.adapters.cli.outward import Place, address, post
from runner.adapters.cli.profiles import DEFAULT, Inspected, JsonOption, ProfileOption, inspect
from runner.adapters.cli.screen import output, print_facts, print_json, print_line
from runner.capability.transport.anchors import book_files, read_text, write_beside, write_sidecar
from runner.capability.transport.clock import SystemEntropy
from runner.capability.transport.keys import FileSigner
from runner.kernel.errors import TraceError
from runner.kernel.language import how_many
from runner.perimeter.trace.booktree import BookLeaves, read_book_leaves
from runner.perimeter.trace.cosign import (
    COSIGNATURE,
    AddCheckpoint,
    Checkpoint,
    Key,
    SignedNote,
    parse_answer,
    parse_note,
    parse_notes,
    signed_note,
)
from runner.perimeter.trace.merkle import consistency_path
from runner.perimeter.trace.note import parse_vkey, signature_line, vkey

SUFFIX: Final = ".witness"
_MEDIA: Final = "text/plain; charset=utf-8"
_HTTP_OK: Final = 200
_HTTP_CONFLICT: Final = 409


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The record, and the key that vouches to a witness that a request comes from its keeper."""

    folder: Path
    leaves: BookLeaves
    signer: FileSigner

    def request(self, old: int) -> AddCheckpoint:
        """Return the request to cosign the whole book for a witness that saw `old` lines of it.

        Raises `TraceError` when the book has fewer.
        """
        leaves = self.leaves
        if old > leaves.size:
            raise TraceError(
                f"the witness saw {how_many(old, 'line')} of this book, and it has {leaves.size}: some are "
                "gone (I4). Fix: verify the book, and ask where the rest is"
            )
        head = Checkpoint.of(leaves.book, leaves.size, leaves.root(leaves.size))
        public = self.signer.public_key
        line = signature_line(leaves.book, public, self.signer.sign(head.text.encode()))
        path = tuple(consistency_path(leaves.leaves, old))
        return AddCheckpoint(old=old, path=path, note=signed_note(head, [line]))

    def last_size(self, witness: Key) -> int:
        """Return the most lines that the sidecars say `witness` cosigned; 0 without any."""
        notes = (note for name, _ in self.leaves.logs for note in self._kept(name))
        return max(
            (note.checkpoint.size for note in notes if note.cosigned_at(witness) is not None), default=0
        )

    def keep(self, note: SignedNote, witness: Key) -> tuple[Path, int]:
        """Put `note` into the sidecar of its log, in place of `witness`'s older one; return file and time.

        Raises `TraceError` when `witness` did not cosign it, or it is not of this book as it is.
        """
        head, leaves = note.checkpoint, self.leaves
        time_s = note.cosigned_at(witness)
        if time_s is None:
            raise TraceError("the answer holds no cosignature of this witness. Fix: check --witness-key")
        if head.text != Checkpoint.of(leaves.book, head.size, head.root).text or not (
            0 < head.size <= leaves.size and leaves.root(head.size) == head.root
        ):
            raise TraceError(
                "the answer is about another book, or this one was altered (I4). Fix: verify the book, and "
                "ask with a request of its own"
            )
        log = leaves.log_at(head.size)
        kept = [each for each in self._kept(log) if each.cosigned_at(witness) is None]
        text = "".join(each.encode() for each in [*kept, note])
        return write_sidecar(self.folder, log, SUFFIX, text.encode()), time_s

    def _kept(self, log: str) -> list[SignedNote]:
        return parse_notes(read_text(self.folder / log.replace(".jsonl", SUFFIX)))


def anchor(
    folder: Annotated[Path | None, typer.Argument(help="A trace folder; without it, the profile's.")] = None,
    *,
    profile: ProfileOption = DEFAULT,
    witness: Annotated[
        str | None, typer.Option("--witness", metavar="URL", help="Ask the witness at this address.")
    ] = None,
    witness_key: Annotated[
        Path | None, typer.Option("--witness-key", help="The file with the witness's verifier key.")
    ] = None,
    to_file: Annotated[
        Path | None, typer.Option("--to-file", help="Write the request here, to be carried to the witness.")
    ] = None,
    from_file: Annotated[
        Path | None, typer.Option("--from-file", help="Keep the answer that was carried back.")
    ] = None,
    old: Annotated[
        int | None, typer.Option("--old", min=0, help="With --to-file: how many lines the witness saw last.")
    ] = None,
    key: Annotated[
        bool, typer.Option("--key", help="Only print the key that the witness is to trust.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Have a witness cosign the record as it is now, and keep that beside the logs.

    What leaves is the book's name, its length, hashes and a signature: no content. The witness refuses a
    record that was shortened or written anew since it last saw it. Auditors check the answer with
    `akaion-verify --witness KEY`.
    """
    read = inspect(profile)
    desk = _desk(read, read.places.trace if folder is None else folder)
    chosen = [given for given in (witness, to_file, from_file, key or None) if given is not None]
    if len(chosen) != 1:
        raise typer.BadParameter("choose one of --witness, --to-file, --from-file and --key")
    if key:
        _print_key(desk, as_json=as_json)
        return
    seer = None if witness_key is None else _witness_key(witness_key)
    if to_file is not None:
        known = old if old is not None else 0 if seer is None else desk.last_size(seer)
        request = desk.request(known)
        write_beside(to_file, request.encode())
        _report({"request": str(to_file), "old": known, "size": desk.leaves.size}, as_json=as_json)
        return
    if seer is None:
        raise typer.BadParameter("name the file with the witness's verifier key", param_hint="--witness-key")
    if witness is not None:
        note = _ask(desk, address(witness, read.config.profile, "--witness", end="/add-checkpoint"), seer)
    else:
        note = _carried(Path(str(from_file)))
    sidecar, time_s = desk.keep(note, seer)
    moment = datetime.fromtimestamp(time_s, tz=UTC).isoformat().replace("+00:00", "Z")
    facts = {"witness": seer.name, "size": note.checkpoint.size, "time": moment, "sidecar": str(sidecar)}
    _report({"book": desk.leaves.book, **facts}, as_json=as_json)


def _desk(read: Inspected, folder: Path) -> Desk:
    leaves = read_book_leaves(book_files(folder))
    path = read.places.key.with_name("anchor.key")
    return Desk(folder=folder, leaves=leaves, signer=FileSigner(path, book=folder, entropy=SystemEntropy()))


def _print_key(desk: Desk, *, as_json: bool) -> None:
    line = vkey(desk.leaves.book, desk.signer.public_key)
    if as_json:
        print_json({"vkey": line})
    else:
        print_line(output(), line)


def _witness_key(file: Path) -> Key:
    _require(file, "--witness-key")
    try:
        name, public = parse_vkey(read_text(file).removesuffix("\n"), COSIGNATURE)
    except ValueError:
        said = "this file holds no key of a witness, as `akaion-witness show` prints it"
        raise typer.BadParameter(said, param_hint="--witness-key") from None
    return Key(name=name, public=public, kind=COSIGNATURE)


def _require(file: Path, option: str) -> None:
    """Raise `typer.BadParameter` for a file that is not there: that says nothing of what it would hold."""
    if not file.exists():
        raise typer.BadParameter(f"there is no file {file}", param_hint=option)


def _carried(file: Path) -> SignedNote:
    _require(file, "--from-file")
    try:
        return parse_note(read_text(file))
    except ValueError:
        raise typer.BadParameter("this is no answer of a witness", param_hint="--from-file") from None


def _ask(desk: Desk, at: Place, seer: Key) -> SignedNote:
    """Return the book's checkpoint with the witness's lines; raise `TraceError` when it refuses.

    A witness that saw another length than the sidecars tell says so, and is asked once more.
    """
    request = desk.request(desk.last_size(seer))
    status, body = post(at, request.encode(), _MEDIA)
    if status == _HTTP_CONFLICT and (size := _size(body)) not in (None, request.old):
        request = desk.request(size or 0)
        status, body = post(at, request.encode(), _MEDIA)
    if status != _HTTP_OK:
        raise TraceError(
            _REFUSALS.get(
                status, f"the witness answered {status}. Fix: check its address, or ask who runs it"
            )
        )
    try:
        return parse_answer(request.note.checkpoint, body)
    except ValueError:
        raise TraceError(
            "the witness's answer is no cosignature. Fix: check that a witness is at this address"
        ) from None


_REFUSALS: Final[Mapping[int, str]] = {
    403: "the witness trusts another key for this book (403). Fix: `akaion-witness trust` there",
    404: "the witness does not know this book (404). Fix: `akaion-witness trust` there",
    409: "the witness saw this book with other lines (409, I4). Fix: verify the book",
    422: "the witness saw this book with other lines (422, I4). Fix: verify the book",
}


def _size(body: bytes) -> int | None:
    matched = re.fullmatch(rb"(0|[1-9][0-9]{0,15})\n", body)
    return int(matched[1]) if matched else None


def _report(facts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(facts)
    else:
        print_facts(output(), [(name.capitalize(), str(value)) for name, value in facts.items()])
