# SPDX-License-Identifier: Apache-2.0
"""What a witness is asked, and what it answers: C2SP `tlog-witness` and `tlog-cosignature`, Ed25519.

Owns the forms of both sides: the body of add-checkpoint, a checkpoint's text, a cosignature with its time.
Leaves judging to the witness, and transport to whoever carries it, by HTTP or by hand. Carries I4: by a
cosignature, a book of this name had these first lines at this time, and the witness never saw it have others.
Nothing of a record travels: a request holds a name, sizes, hashes and signatures (I12).
"""

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from runner.perimeter.trace.note import ED25519, checkpoint, decoded, join_note, key_id

COSIGNATURE: Final = b"\x04"
"""The kind of a key that cosigns checkpoints."""
MAX_PATH: Final = 63
"""The longest consistency proof of a request."""
_HASH_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_TIME_BYTES: Final = 8
_KEY_ID_BYTES: Final = 4
_NUMBER: Final = r"0|[1-9][0-9]{0,15}"
_NOTE: Final = re.compile(
    rf"(?<![^\n])(([^\n]+)\n({_NUMBER})\n([^\n]+)\n(?:[^\n]+\n){{0,64}})\n((?:\u2014 [^\n]+\n)+)"
)
"""Tried from the start of a line only, with 64 extension lines at most: else a search would be quadratic."""
_OLD: Final = re.compile(rf"old ({_NUMBER})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A tree of `size` lines with the 32-byte `root`; `text` is what is signed, extension lines included."""

    origin: str
    size: int
    root: bytes
    text: str = field(repr=False)

    @classmethod
    def of(cls, origin: str, size: int, root: bytes) -> Self:
        """Return the checkpoint without extension lines."""
        return cls(origin=origin, size=size, root=root, text=checkpoint(origin, size, root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A named public key; `kind` says what it signs: `ED25519` notes, `COSIGNATURE` checkpoints."""

    name: str
    public: bytes
    kind: bytes = ED25519


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedNote:
    """A checkpoint and the signature lines below it, without their newlines; nobody has checked them."""

    checkpoint: Checkpoint
    lines: tuple[str, ...]

    def encode(self) -> str:
        """Return the note."""
        return join_note(self.checkpoint.text, [f"{line}\n" for line in self.lines])

    def signatures(self, key: Key) -> list[bytes]:
        """Return what stands in the lines of this name and key id, id left out; other lines are ignored."""
        start, wanted = f"\N{EM DASH} {key.name} ", key_id(key.name, key.public, key.kind)
        found = [_blob(line.removeprefix(start)) for line in self.lines if line.startswith(start)]
        return [blob[_KEY_ID_BYTES:] for blob in found if blob[:_KEY_ID_BYTES] == wanted]

    def is_signed_by(self, key: Key) -> bool:
        """Return whether the `ED25519` key signed the checkpoint."""
        return any(_holds(key, each, self.checkpoint.text) for each in self.signatures(key))

    def cosigned_at(self, witness: Key) -> int | None:
        """Return the latest time, in seconds since 1970, at which `witness` cosigned; None if it did not."""
        times = []
        for each in self.signatures(witness):
            time_s = int.from_bytes(each[:_TIME_BYTES], "big")
            if _holds(witness, each[_TIME_BYTES:], cosigned_text(self.checkpoint, time_s)):
                times.append(time_s)
        return max(times, default=None)


def parse_note(text: str) -> SignedNote:
    """Return the checkpoint and signature lines of a note; raise `ValueError`, which quotes nothing."""
    matched = _NOTE.fullmatch(text)
    root = decoded(matched[4]) if matched else b""
    if matched is None or len(root) != _HASH_BYTES:
        raise ValueError("not a signed checkpoint")
    head = Checkpoint(origin=matched[2], size=int(matched[3]), root=root, text=matched[1])
    return SignedNote(checkpoint=head, lines=tuple(matched[5].splitlines()))


def parse_notes(text: str) -> list[SignedNote]:
    """Return the notes that a sidecar holds one after the other; what is none between them is left out."""
    found = []
    for matched in _NOTE.finditer(text):
        try:
            found.append(parse_note(matched[0]))
        except ValueError:
            continue
    return found


def cosigned_text(head: Checkpoint, time_s: int) -> str:
    """Return what a witness signs to say that it saw `head` at `time_s`, in seconds since 1970."""
    return f"cosignature/v1\ntime {time_s}\n{head.text}"


def cosignature_line(witness: Key, time_s: int, signature: bytes) -> str:
    """Return the signature line, without its newline, of the 64-byte `signature` made at `time_s`."""
    blob = (
        key_id(witness.name, witness.public, witness.kind) + time_s.to_bytes(_TIME_BYTES, "big") + signature
    )
    return f"\N{EM DASH} {witness.name} {b64encode(blob).decode('ascii')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddCheckpoint:
    """The request: `note` continues the tree of `old` lines that the witness saw last, as `path` proves."""

    old: int
    path: tuple[bytes, ...]
    note: SignedNote

    def encode(self) -> bytes:
        """Return the body of the request."""
        path = "".join(f"{b64encode(each).decode('ascii')}\n" for each in self.path)
        return f"old {self.old}\n{path}\n{self.note.encode()}".encode()


def parse_request(body: bytes) -> AddCheckpoint:
    """Return the request in `body`; raise `ValueError` for anything else, which quotes nothing."""
    head, _, note = body.decode("utf-8").partition("\n\n")
    first, *rest = head.split("\n")
    matched = _OLD.fullmatch(first)
    path = tuple(decoded(line) for line in rest)
    if matched is None or len(path) > MAX_PATH or any(len(each) != _HASH_BYTES for each in path):
        raise ValueError("not a request to add a checkpoint")
    return AddCheckpoint(old=int(matched[1]), path=path, note=parse_note(note))


def parse_answer(head: Checkpoint, body: bytes) -> SignedNote:
    """Return `head` with the signature lines that a witness answered; raise `ValueError`."""
    return parse_note(join_note(head.text, [body.decode("utf-8")]))


def _blob(text: str) -> bytes:
    try:
        return decoded(text)
    except ValueError:
        return b""


def _holds(key: Key, signature: bytes, text: str) -> bool:
    if len(signature) != _SIGNATURE_BYTES:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(signature, text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def signed_note(head: Checkpoint, lines: Sequence[str]) -> SignedNote:
    """Return `head` with `lines`, each as `signature_line` or `cosignature_line` gives it."""
    return SignedNote(checkpoint=head, lines=tuple(line.rstrip("\n") for line in lines))
