# SPDX-License-Identifier: Apache-2.0
"""What a witness answers to a request: C2SP `tlog-witness`, add-checkpoint.

Owns the checks, their order and the statuses. Leaves files to a `Memory`, the key to a `Signer`, and HTTP to
`server`. Carries I4 for others: a checkpoint is cosigned only when it continues the last one cosigned under
its name, and that is on the disk before the answer is given. So two histories of one book never get a
cosignature both, nor does a shorter one after a longer.
"""

import threading
from dataclasses import dataclass, field
from typing import Final, Protocol

from runner.kernel.errors import RunnerError
from runner.kernel.ports import Clock, Signer
from runner.perimeter.trace.cosign import (
    COSIGNATURE,
    AddCheckpoint,
    Checkpoint,
    Key,
    cosignature_line,
    cosigned_text,
    parse_request,
)
from runner.perimeter.trace.merkle import is_consistent

TEXT: Final = "text/plain; charset=utf-8"
SIZE: Final = "text/x.tlog.size"
MAX_REQUEST: Final = 1 << 16
"""The longest request in bytes: a proof of 63 hashes and a note with room for signatures of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was last cosigned for a book: `size` lines with the 32-byte `root`; 0 and nothing at first."""

    size: int = 0
    root: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusted:
    """A book that the witness answers for: the key that signs its checkpoints, and what was last seen."""

    key: Key
    seen: Seen


class Memory(Protocol):
    """Where a witness keeps what it saw."""

    def recall(self, origin: str) -> Trusted | None:
        """Return what is known of `origin`; None if nobody said to trust it. Raises `RunnerError`."""

    def keep(self, trusted: Trusted) -> None:
        """Return when this is on the disk. Raises `RunnerError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer as in HTTP. Its `body` quotes nothing of the request."""

    status: int
    body: bytes = field(repr=False)
    media: str = TEXT


class Witness:
    """The witness `name` with the key of `signer`. Safe to ask from several threads."""

    def __init__(self, *, name: str, signer: Signer, memory: Memory, clock: Clock) -> None:
        self.key = Key(name=name, public=signer.public_key, kind=COSIGNATURE)
        self._signer, self._memory, self._clock = signer, memory, clock
        self._lock = threading.Lock()  # what was seen is compared and replaced in one step

    def add_checkpoint(self, body: bytes) -> Reply:
        """Return the answer to the request `body`. Total: any bytes get one.

        200 with the cosignature; 400 not a request, or an old size above the checkpoint's; 403 no signature
        of the trusted key; 404 unknown origin; 409 another old size than was last cosigned, which is the
        body, or another root of that size; 422 the proof does not hold; 500 the state could not be kept.
        """
        try:
            request = parse_request(body)
        except ValueError:
            return Reply(status=400, body=b"not a request to add a checkpoint\n")
        try:
            with self._lock:
                return self._judge(request)
        except RunnerError:
            return Reply(status=500, body=b"the witness cannot keep what it saw\n")

    def _judge(self, request: AddCheckpoint) -> Reply:
        head = request.note.checkpoint
        trusted = self._memory.recall(head.origin)
        if trusted is None:
            return Reply(status=404, body=b"this origin is not trusted here\n")
        if not request.note.is_signed_by(trusted.key):
            return Reply(status=403, body=b"the trusted key of this origin did not sign\n")
        if request.old > head.size:
            return Reply(status=400, body=b"the old size is above the checkpoint's\n")
        seen = trusted.seen
        if request.old != seen.size or (head.size == seen.size and seen.size and head.root != seen.root):
            return Reply(status=409, body=f"{seen.size}\n".encode(), media=SIZE)
        first = seen.size == 0 and head.size > 0 and not request.path  # any book continues none
        if not first and not is_consistent(seen.size, seen.root, head.size, head.root, request.path):
            return Reply(status=422, body=b"the proof does not lead from what was seen\n")
        self._memory.keep(Trusted(key=trusted.key, seen=Seen(size=head.size, root=head.root)))
        return Reply(status=200, body=f"{self._cosign(head)}\n".encode())

    def _cosign(self, head: Checkpoint) -> str:
        now = self._clock.now_us() // 1_000_000
        return cosignature_line(self.key, now, self._signer.sign(cosigned_text(head, now).encode()))
