# SPDX-License-Identifier: Apache-2.0
"""The tree of a whole book: the lines of all its logs, in order, under one root.

Owns reading a book for anchoring: which lines count, and that they are what their logs' keys sealed. Leaves
verdicts to the verifier. Carries I4: a book that only grows has trees that continue each other, and one whose
logs were written anew has not, whoever holds the keys.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from runner.kernel.errors import TraceError
from runner.perimeter.trace.merkle import leaf_hash, root_of
from runner.perimeter.trace.note import check_note, checkpoint, parse_vkey


@dataclass(frozen=True, slots=True, kw_only=True)
class BookLeaves:
    """A book as far as it can be anchored: the leaves of its lines, and where each log of it ends.

    `logs` are file names with the number of leaves up to their end.
    """

    book: str
    leaves: tuple[bytes, ...] = field(repr=False)
    logs: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """The number of lines."""
        return len(self.leaves)

    def root(self, size: int) -> bytes:
        """Return the root over the first `size` lines."""
        return root_of(self.leaves[:size])

    def log_at(self, size: int) -> str:
        """Return the name of the log in which the first `size` lines end."""
        return next(name for name, end in self.logs if size <= end)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    origin: str
    leaves: list[bytes]
    sealed: int  # lines up to the last seal, that one included
    closing: str  # what the last seal signs, if it ends the log


def read_book_leaves(files: Iterable[tuple[str, bytes]]) -> BookLeaves:
    """Return the tree of the book whose logs are these, by name and content, from log 0 on.

    Of a log that another one follows all whole lines count, for the follower has stated them; of the last one
    those up to its last seal. Raises `TraceError` when there is none, one is altered, or they do not follow
    each other.
    """
    leaves: list[bytes] = []
    ends: list[tuple[str, int]] = []
    last = None
    for name, last in _logs(files):
        leaves += last.leaves
        ends.append((name, len(leaves)))
    if last is None:
        raise TraceError("the book holds no log. Fix: run a task first")
    size = len(leaves) - len(last.leaves) + last.sealed
    book = last.origin.rpartition("/")[0]
    return BookLeaves(book=book, leaves=tuple(leaves[:size]), logs=(*ends[:-1], (ends[-1][0], size)))


def read_closing_texts(files: Iterable[tuple[str, bytes]]) -> list[tuple[str, str]]:
    """Return name and signed text of the last seal of each log that has ended: what fixes all its lines.

    Raises `TraceError` as above.
    """
    return [(name, log.closing) for name, log in _logs(files) if log.closing]


def _logs(files: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, _Log]]:
    last: _Log | None = None
    for name, data in files:
        try:
            last = _read(data, None if last is None else (last.origin.rpartition("/")[2], last.leaves))
        except (ValueError, TypeError, LookupError, RecursionError):
            raise TraceError(f"{name} is altered or out of place. Fix: verify the book") from None
        yield name, last


def _read(data: bytes, before: tuple[str, list[bytes]] | None) -> _Log:
    """Return the log in `data` that follows `before`, an id and leaves; raise `ValueError` and its kin.

    Checked are the link to the log before, and the last seal by the log's key: its root fixes every line
    under it.
    """
    lines = data.split(b"\n")[:-1]
    leaves, sealed, note, last, ended = list[bytes](), 0, "", "", False
    header = json.loads(lines[0])["body"]
    for seq, line in enumerate(lines):
        record = json.loads(line)
        if record["kind"] == "seal":
            sealed, note, ended = seq + 1, record["note"], last == "close"
        last = record["kind"]
        leaves.append(leaf_hash(line))
    follows = None
    if before is not None:
        follows = {"id": before[0], "size": len(before[1]), "root": root_of(before[1]).hex()}
    if header.get("prev_log") != follows:
        raise ValueError("it does not follow the log before it")
    name, public = parse_vkey(header["vkey"])
    text = checkpoint(name, sealed - 1, root_of(leaves[: sealed - 1]))
    head, _, signatures = note.partition("\n\n")
    own = "\n\n".join([head, signatures.partition("\n")[0] + "\n"])  # the first seal is the device's too
    check_note(own, text, [(header["origin"], public)])
    return _Log(origin=name, leaves=leaves, sealed=sealed, closing=text if ended else "")
