# SPDX-License-Identifier: Apache-2.0
"""The bytes of one log: numbers, links and seals its lines.

Owns sequence, time order, chain, tree and the log's own key, which exists in memory only. Leaves storage,
locks and tasks to `log`. Carries I4: each line names the hash of the one before, each seal signs the root.
"""

from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from runner.kernel.canonical import integer_text, string_text, utf_8
from runner.kernel.errors import TraceError, TraceUnavailable
from runner.kernel.ports import Signer
from runner.perimeter.trace.merkle import CHAIN_START, Tree, leaf_hash
from runner.perimeter.trace.note import check_note, checkpoint, join_note, signature_line, vkey
from runner.perimeter.trace.records import Record

MAX_LINE: Final = 1_048_576


class Refused(TraceError):
    """A record is not to be written, and nothing was changed for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where a log stands: `size` lines, and the 32-byte `root` over them."""

    size: int
    root: bytes


class Chain:
    """The growing log `origin`, signed by the key made from 32 secret bytes, which are overwritten here.

    Not thread-safe: `Trace` calls it under its lock. A refused record leaves it as it was.
    """

    __slots__ = ("_key", "_leaves", "_prev", "_tree", "_ts", "entries", "origin", "public_key", "unsealed")

    def __init__(self, *, origin: str, secret: bytearray) -> None:
        self.origin = origin
        self.entries = 0
        self.unsealed = 0
        self._key: Ed25519PrivateKey | None = Ed25519PrivateKey.from_private_bytes(secret)
        secret[:] = bytes(len(secret))
        self.public_key = self._key.public_key().public_bytes_raw()
        self._tree = Tree()
        self._leaves: list[bytes] = []
        self._prev = CHAIN_START
        self._ts = 0

    @property
    def vkey(self) -> str:
        """The verifier key of this log."""
        return vkey(self.origin, self.public_key)

    @property
    def size(self) -> int:
        """The number of lines so far, seals included: the `seq` of the next one."""
        return self._tree.size

    def head(self) -> Head:
        """Return size and root over all lines so far."""
        return Head(size=self._tree.size, root=self._tree.root())

    def take_leaves(self) -> tuple[bytes, ...]:
        """Return the leaf hashes of the lines since the last call, in order."""
        taken, self._leaves = tuple(self._leaves), []
        return taken

    def time(self, now_us: int) -> int:
        """Return the time of the next line when the clock says `now_us`: time never goes back in a log."""
        return max(now_us, self._ts)

    def entry(self, record: Record, *, now_us: int, task: str | None) -> bytes:
        """Return the line of `record`, its newline included, at `time(now_us)`.

        Raises `Refused` when the record has no canonical line within the limit.
        """
        ts, kind = self.time(now_us), record.kind
        of_task = "" if task is None else f',"task":{string_text(task)}'
        try:
            line = self._link(
                kind,
                f'{{"body":{record.text()},"kind":{string_text(kind)},"prev":"{self._prev}",'
                f'"seq":{self._tree.size}{of_task},"ts":{integer_text(ts)}}}',
            )
        except ValueError as error:
            raise Refused(f"a {kind} record has no canonical form: {error}") from None
        self._ts = ts
        self.entries += 1
        self.unsealed += 1
        return line

    def seal(self, *, device: tuple[str, Signer] | None = None, header: bytes = b"") -> bytes:
        """Return a seal over every line so far, its newline included.

        `device`, name and signer, signs the first seal of a log too, over the one line `header`. Raises
        `TraceError` after `destroy`, and `TraceUnavailable` when the device's signature does not verify:
        nobody could believe that log.
        """
        if self._key is None:
            raise TraceError(f"log {self.origin} is closed: its key is gone")
        text = checkpoint(self.origin, self._tree.size, self._tree.root())
        lines = [signature_line(self.origin, self.public_key, self._key.sign(text.encode()))]
        if device is not None:
            name, signer = device
            signature = signer.sign(text.encode(), header=header)
            lines.append(signature_line(name, signer.public_key, signature))
            _check_device(
                join_note(text, lines), text, (self.origin, self.public_key), (name, signer.public_key)
            )
        note = string_text(join_note(text, lines))
        line = self._link(
            "seal", f'{{"kind":"seal","note":{note},"prev":"{self._prev}","seq":{self._tree.size}}}'
        )
        self.unsealed = 0
        return line

    def destroy(self) -> None:
        """Drop the log's key: from here on nobody can seal this log.

        The library overwrites its memory when it lets a key go, and nothing else holds one.
        `tests/integration/test_seed_in_memory.py` looks for it.
        """
        self._key = None

    def _link(self, kind: str, text: str) -> bytes:
        """Return the line of `text`, its newline included; the chain goes on from it.

        The members of `text` stand in the order of their names, as canonical JSON has them. Raises
        `Refused` for a line that is too long, and `ValueError` for a lone surrogate.
        """
        line = utf_8(text)
        if len(line) > MAX_LINE:
            raise Refused(f"a {kind} record is longer than {MAX_LINE} bytes: split it")
        leaf = leaf_hash(line)
        self._tree.add(leaf)
        self._leaves.append(leaf)
        self._prev = leaf.hex()
        return line + b"\n"


def _check_device(note: str, text: str, *keys: tuple[str, bytes]) -> None:
    try:
        check_note(note, text, keys)
    except ValueError:
        raise TraceUnavailable("the device key does not sign as its public half says") from None
