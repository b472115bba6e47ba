# SPDX-License-Identifier: Apache-2.0
"""Reading a book before writing on: what is the last log, is it whole, does it agree with the head pin.

Owns the checks of `contracts/trace/v1` §8 on the writer's side and the format of the pin. Judges chain,
roots, signatures and the pin, not the meaning of records: that is the verifier's. Carries I4 and I7: a book
that lost synced lines, or whose lines changed, is refused. Nothing here writes.
"""

import json
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from runner.kernel.canonical import canonical_bytes
from runner.kernel.errors import TraceError
from runner.kernel.messages import Json
from runner.kernel.ports import LogStore
from runner.perimeter.trace.chain import Head
from runner.perimeter.trace.merkle import CHAIN_START, Tree, leaf_hash
from runner.perimeter.trace.note import check_note, checkpoint, device_key_name, parse_vkey
from runner.perimeter.trace.records import SUCCESSION, PrevLog, Recovery

_RESTORE: Final = "Fix: restore the logs and the head pin from one copy, or start a new book"
_NAME: Final = re.compile(r"([0-9]{6}|[1-9][0-9]{6,})-([0-9a-f]{32})\.jsonl")
_FRESH: Final = ["header", "seal"]
_FRESH_AFTER_A_BREAK: Final = ["header", "seal", "recovery", "seal"]
"""The lines a log is created with; the second, if the one before it broke off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The head pin: the last head that was synced, kept outside the book."""

    log_no: int
    head: Head


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLog:
    """A log as it was found: its lines checked, `torn` what follows the last newline.

    `fresh` is whether it is as it was created.
    """

    log_no: int
    log_id: str
    head: Head
    complete: bool
    fresh: bool
    unsealed: int
    torn: bytes = field(repr=False)
    leaves: tuple[bytes, ...] = field(repr=False)

    def as_prev(self) -> PrevLog:
        """Return what the next header says of this log."""
        return PrevLog(id=self.log_id, size=self.head.size, root=self.head.root.hex())

    def as_recovery(self) -> Recovery:
        """Return what the next log says of this one if it was interrupted."""
        return Recovery(
            log_no=self.log_no,
            size=self.head.size,
            root=self.head.root.hex(),
            torn_bytes=len(self.torn),
            torn_sha256=sha256(self.torn).hexdigest(),
            unsealed_kept=self.unsealed,
        )

    def root_at(self, size: int) -> bytes:
        """Return the root over the first `size` lines."""
        tree = Tree()
        for leaf in self.leaves[:size]:
            tree.add(leaf)
        return tree.root()


def log_name(log_no: int, log_id: str) -> str:
    """Return the file name of a log."""
    return f"{log_no:06d}-{log_id}.jsonl"


def encode_pin(log_no: int, head: Head, boot_id: str) -> bytes:
    """Return the bytes of a head pin."""
    pin: dict[str, Json] = {"boot_id": boot_id, "log_no": log_no, "root": head.root.hex(), "size": head.size}
    return canonical_bytes(pin) + b"\n"


def parse_pin(data: bytes) -> Pin:
    """Return the pin in `data`; raise `TraceError` when it is not one."""
    try:
        value = json.loads(data)
        head = Head(size=int(value["size"]), root=bytes.fromhex(value["root"]))
        pin = Pin(log_no=int(value["log_no"]), head=head)
        if encode_pin(pin.log_no, head, str(value["boot_id"])) == data:
            return pin
    except (ValueError, TypeError, LookupError, RecursionError):
        pass  # as below
    raise TraceError("the head pin is damaged. Fix: restore it, or start a new book")


def read_last(store: LogStore, *, book: str, device: bytes) -> ReadLog | None:
    """Return the last log of the book, checked; None for an empty book without a pin.

    `device` is the 32-byte public device key. Raises `TraceError` when a log is altered, shorter than its
    pin, of another book or device, or missing; and `OSError` when the store fails.
    """
    names = store.names()
    raw = store.read_pin()
    pin = None if raw is None else parse_pin(raw)
    if not names:
        if pin is not None:
            raise TraceError(f"the book is empty but a head pin exists: its logs were removed. {_RESTORE}")
        return None
    last = _read(store, names[-1], book, device)
    if pin is not None and pin.log_no == last.log_no:
        check_head(last, pin.head)
        return last
    _check_unpinned(last, pin)
    if pin is not None:
        before = _read(store, names[-2], book, device) if len(names) > 1 else None
        if before is None or before.log_no != pin.log_no:
            raise TraceError(f"log {pin.log_no} is missing from the book. {_RESTORE}")
        check_head(before, pin.head)
    return last


def named_successor(store: LogStore) -> str | None:
    """Return the verifier key of the device key that the last log names as the next one, if it does.

    A look at the first line of a log, no check of it: `read_last` is that. Raises `OSError`.
    """
    names = store.names()
    try:
        header = json.loads(store.read(names[-1]).partition(b"\n")[0]) if names else {}
        return str(header["body"][SUCCESSION])
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _check_unpinned(last: ReadLog, pin: Pin | None) -> None:
    """Check that `last` may be unknown to the pin: just created, for it grows only after its first pin."""
    expected = 0 if pin is None else pin.log_no + 1
    if last.log_no != expected or not last.fresh:
        raise TraceError(f"log {last.log_no} and the head pin disagree. {_RESTORE}")


def check_head(log: ReadLog, pinned: Head) -> None:
    """Raise `TraceError` unless `log` begins with the lines that were `pinned`."""
    if log.head.size < pinned.size:
        lines = f"log {log.log_no} has {log.head.size} lines, but {pinned.size} were synced (I4)"
        raise TraceError(f"{lines}. {_RESTORE}")
    if log.root_at(pinned.size) != pinned.root:
        raise TraceError(f"log {log.log_no} differs from what was synced (I4). {_RESTORE}")


def _read(store: LogStore, name: str, book: str, device: bytes) -> ReadLog:
    matched = _NAME.fullmatch(name)
    if matched is None:
        raise TraceError("a file of the book is not named like a log. Fix: move it out of the folder")
    try:
        return parse_log(
            store.read(name), log_no=int(matched[1]), log_id=matched[2], book=book, device=device
        )
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        detail = error.args[0] if isinstance(error, _Altered) else "a record is not one of this format"
        raise TraceError(
            f"log {int(matched[1])}: {detail}. Fix: verify the book, then start a new one"
        ) from None


class _Altered(ValueError):
    """A line that this writer did not leave; the message is ours and names the line."""


def parse_log(data: bytes, *, log_no: int, log_id: str, book: str, device: bytes) -> ReadLog:
    """Check the lines of a log and return what it is; raise `ValueError` and its kin when it is altered."""
    *lines, torn = data.split(b"\n")
    origin = f"{book}/{log_id}"
    tree, prev = Tree(), CHAIN_START
    kinds: list[str] = []
    leaves: list[bytes] = []
    keys: list[tuple[str, bytes]] = []
    for seq, line in enumerate(lines):
        record = _parse_line(line, seq, prev)
        if seq == 0:
            keys = [(origin, _header_key(record, log_no, log_id, origin)), (device_key_name(book), device)]
        elif record["kind"] == "seal":
            check_note(record["note"], checkpoint(origin, seq, tree.root()), keys)
            keys = keys[:1]
        kinds.append(record["kind"])
        leaves.append(leaf_hash(line))
        tree.add(leaves[-1])
        prev = leaves[-1].hex()
    complete = kinds[-2:] == ["close", "seal"]
    if kinds[:2] != _FRESH or (complete and torn):
        raise _Altered("it does not start with header and seal, or goes on after its end")
    return ReadLog(
        log_no=log_no,
        log_id=log_id,
        head=Head(size=tree.size, root=tree.root()),
        complete=complete,
        fresh=kinds in (_FRESH, _FRESH_AFTER_A_BREAK) and not torn,
        unsealed=kinds[::-1].index("seal"),
        torn=torn,
        leaves=tuple(leaves),
    )


def _parse_line(line: bytes, seq: int, prev: str) -> dict[str, Any]:
    record = json.loads(line)
    if canonical_bytes(record) != line or record["seq"] != seq or record["prev"] != prev:
        raise _Altered(f"line {seq + 1} is altered or out of place")
    return dict(record)


def _header_key(record: dict[str, Any], log_no: int, log_id: str, origin: str) -> bytes:
    """Return the 32-byte key in the header; raise `ValueError` unless it is the header of `origin`."""
    body = record["body"]
    name, public_key = parse_vkey(body["vkey"])
    if record["kind"] != "header" or (body["log_no"], body["log_id"]) != (log_no, log_id):
        raise _Altered("its header belongs to another file")
    if body["origin"] != origin or name != origin:
        raise _Altered("it belongs to another book")
    return public_key
