# SPDX-License-Identifier: Apache-2.0
"""The device key in a file, the auditor's pin, and which book a key is of.

Owns the custody `file`: a 32-byte Ed25519 seed in hex, readable by its owner alone, never in the trace
folder. Better ones stand behind the same ports, in `osring` and `signer`. Whoever reads this file can sign
new logs in this device's name; the header says so with `custody`, and the verdict repeats it.
"""

import fcntl
import os
import re
import stat
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from runner.capability.transport.logstore import (
    close_synced,
    make_private_folder,
    opening,
    read_regular,
    refuse_inside,
    replace_file,
    sync_file,
    sync_folder,
    write_all,
)
from runner.kernel.errors import TraceError
from runner.kernel.ports import Entropy

_SEED_BYTES: Final = 32
_SEED: Final = re.compile(rb"[0-9a-f]{64}\n")


class FileSigner:
    """The device key in the file `path`, made on first use from `entropy`. Implements `Signer`.

    Making one raises `TraceError` when the file lies in the trace folder `book` (None: there is none on this
    side), others can read it, it holds no key, or it cannot be read or made.
    """

    __slots__ = ("_key",)

    def __init__(self, path: Path, *, book: Path | None, entropy: Entropy) -> None:
        if book is not None:
            refuse_inside(path, book, "device key")
        with opening("device key"):
            make_private_folder(path.parent)
            if not os.path.lexists(path):
                _create(path, entropy.token(_SEED_BYTES).hex().encode("ascii") + b"\n")
            sync_folder(
                path.parent
            )  # also for who made it and died: no log is signed by a key that may vanish
            self._key = Ed25519PrivateKey.from_private_bytes(_read_seed(path))

    def __repr__(self) -> str:
        """Return the custody, never the key."""
        return "<FileSigner custody=file>"

    @property
    def custody(self) -> str:
        """Where the key lives: `file`."""
        return "file"

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the Ed25519 public key."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes, *, header: bytes = b"") -> bytes:  # noqa: ARG002 - the runtime is trusted
        """Return the 64-byte Ed25519 signature of `message`."""
        return self._key.sign(message)


class FileCustody:
    """The device key in the file `path`, the next one beside it. Implements `Custody`."""

    __slots__ = ("_book", "_entropy", "_next", "_path")

    def __init__(self, path: Path, *, book: Path, entropy: Entropy) -> None:
        self._path, self._book, self._entropy = path, book, entropy
        self._next = path.with_name(path.name + ".next")

    @property
    def place(self) -> str:
        """The path of the file."""
        return str(self._path)

    def exists(self) -> bool:
        """Return whether the file, or anything else, is there."""
        return os.path.lexists(self._path)

    def signer(self) -> FileSigner:
        """Return the signer of the device key, made on first use; raise `TraceError`."""
        return FileSigner(self._path, book=self._book, entropy=self._entropy)

    def successor(self) -> FileSigner:
        """Return the signer of the next device key; raise `TraceError`."""
        return FileSigner(self._next, book=self._book, entropy=self._entropy)

    def promote(self) -> None:
        """Put the next key in the place of the other, atomically; raise `TraceUnavailable`.

        The old file loses its name. Its bytes may stay on the disk until something else is written there.
        """
        with opening("device key"):
            if os.path.lexists(self._next):
                self._next.rename(self._path)
                sync_folder(self._path.parent)


def claim_key(note: Path, book: Path) -> None:
    """Keep in the file `note`, beside a device key, that the key is that of `book`; durably, once for all.

    A key is one book's, which bears its name: of two, each could be shown for the other, and both would pass.
    Raises `TraceError` when the key is of another book, or the note cannot be read or made.
    """
    place = os.fsencode(book.resolve())
    with opening("note of the device key"):
        make_private_folder(note.parent)
        folder = os.open(note.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # of two books that open at once, one comes first
            if not os.path.lexists(note):
                replace_file(note, note.with_name(f"{note.name}.tmp"), place)
            claimed = read_regular(note)
        finally:
            close_synced(folder)
    if claimed != place:
        raise TraceError(
            f"the device key is that of another record, in {os.fsdecode(claimed)!a}. Fix: name another "
            f"folder in trace.keys, for a key of its own; if that record lies here now, remove {note}"
        )


def export_pin(verifier_key: str, target: Path, *, book: Path) -> None:
    """Write the auditor's pin file: one line, the device's verifier key as `trace.note.vkey` gives it.

    Raises `TraceError` when `target` lies in the trace folder `book`, where a pin proves nothing, holds
    anything but this key, which may be the only copy of another pin, or cannot be written.
    """
    refuse_inside(target, book, "auditor's pin")
    line = verifier_key.encode("ascii")
    with opening("auditor's pin"):
        if os.path.lexists(target) and read_regular(target).strip() not in {b"", line}:
            raise TraceError(
                f"{target.name!a} holds another key, or no key. Fix: name another file, or move that one away"
            )
        replace_file(target, target.with_name(target.name + ".tmp"), line + b"\n")


def _create(path: Path, seed: bytes) -> None:
    """Make `path` with the key in it, whole or not at all, and never over another file."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)  # of a process of this number that died: in a container all have one
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        write_all(handle, seed)
        sync_file(handle)
        os.link(temporary, path)
    except FileExistsError:
        pass  # another process made the key first: use that one
    finally:
        close_synced(handle)
        temporary.unlink(missing_ok=True)


def _read_seed(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode) or state.st_mode & 0o077 or state.st_uid != os.getuid():
            raise TraceError(f"the device key {path.name} is open to others. Fix: own it, and chmod 600 it")
        data = file.read(len("00") * _SEED_BYTES + 2)
    if _SEED.fullmatch(data) is None:
        raise TraceError(f"the device key {path.name} holds no key. Fix: restore it, or start a new book")
    return bytes.fromhex(data.decode("ascii"))
