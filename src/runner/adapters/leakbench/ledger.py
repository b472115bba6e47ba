# SPDX-License-Identifier: Apache-2.0
"""The ledger: the record of a run, kept in memory, and the comparison of it with what was seen outside.

Owns a store for the trace of the bench and its salts, of which it keeps what one trial needs, and the
matching: every request that arrived has exactly one egress record that allowed these very bytes, and every
such record one request. Reads the record as anybody would, from the lines that were written. Carries I4 and
I9 into the bench: an unmatched send is a failure of the run.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.perimeter.trace.commit import commitment


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One egress record: `backend` and `decision` as it says, and what it commits to."""

    backend: str
    decision: str
    commit: str

    @property
    def left(self) -> bool:
        """Whether bytes were to leave."""
        return self.decision != "denied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """How records and requests of a trial agree: those without their counterpart are counted."""

    recorded: int
    received: int
    unrecorded: int
    """Requests that arrived and are on no record."""
    unseen: int
    """Records of a send that never arrived."""


@dataclass(slots=True)
class Ledger:
    """A book in memory, and its salts. Implements `LogStore` and `SaltStore`; not thread-safe.

    Lines are read as they are written and only egress records are kept, until `take` hands them over.
    """

    _sent: list[Sent] = field(default_factory=list)
    _salts: dict[str, bytes] = field(default_factory=dict, repr=False)

    # --- what the trace calls ------------------------------------------------------------------------

    def acquire(self) -> None:
        """Nobody else has this book."""

    def release(self) -> None:
        """As above."""

    def names(self) -> Sequence[str]:
        """Return no log: each run begins its own book."""
        return ()

    def read(self, name: str) -> bytes:
        """Raise `FileNotFoundError`."""
        raise FileNotFoundError(name)

    def create(self, name: str, head: bytes) -> "Ledger":  # noqa: ARG002 - one book, whatever its logs
        """Return what takes the lines of the new log."""
        return self

    def read_pin(self) -> bytes | None:
        """Return None: there is no log before the first."""
        return None

    def write_pin(self, pin: bytes) -> None:
        """Forget it: the book ends with the run."""

    def append(self, data: bytes) -> None:
        """Read the lines of `data`; keep what was sent or denied."""
        for line in data.splitlines():
            if b'"kind":"egress"' in line:
                self._sent.append(_parse_egress(json.loads(line)))

    def sync(self) -> None:
        """Return: memory is all there is."""

    def close(self) -> None:
        """Keep nothing open."""

    def keep(self, commit: str, salt: bytes) -> None:
        """Remember the salt of `commit`."""
        self._salts[commit] = salt

    # --- what the bench asks -------------------------------------------------------------------------

    def take(self, backends: Collection[str], requests: Sequence[bytes]) -> tuple[tuple[Sent, ...], Matching]:
        """Return the records of `backends` since the last call, matched with the bodies it received.

        A record matches a body that its commitment opens to, under the salt that was kept for it.
        """
        sent = tuple(each for each in self._sent if each.backend in backends)
        open_records = [each.commit for each in sent if each.left]
        recorded, unrecorded = len(open_records), 0
        for body in requests:
            match = next((c for c in open_records if commitment(self._salts[c], body) == c), None)
            if match is None:
                unrecorded += 1
            else:
                open_records.remove(match)
        self._sent, self._salts = [], {}
        return sent, Matching(
            recorded=recorded, received=len(requests), unrecorded=unrecorded, unseen=len(open_records)
        )


def _parse_egress(line: Any) -> Sent:  # noqa: ANN401 - a line of our own record
    body = line["body"]
    return Sent(
        backend=str(body["backend"]), decision=str(body["decision"]), commit=str(body["payload_commit"])
    )
