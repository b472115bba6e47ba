# SPDX-License-Identifier: Apache-2.0
"""What a signer process answers when it is asked to certify a log, after what it knows of the book.

Owns the judgement of a device key that does not trust the runtime, as a pure machine: requests in, answers
out, one small value kept in between. Leaves the socket, the files and the key to whoever runs it. Carries I4
against a compromised runtime: of a log it signs the first seal only, from the header itself; the head of the
book grows line by line and never goes back; no log is certified whose predecessor is not that head; and none
that hands the device's identity to another key, unless this signer's own operator named that key.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from runner.kernel.canonical import canonical_bytes
from runner.kernel.errors import TraceError
from runner.kernel.messages import Json
from runner.kernel.ports import Signer, SignerRefusal
from runner.perimeter.trace.merkle import CHAIN_START, Tree, leaf_hash
from runner.perimeter.trace.note import checkpoint, parse_vkey
from runner.perimeter.trace.records import FORMAT, SUCCESSION
from runner.perimeter.trace.shape import IS_ID

MAX_LINES: Final = 100_000
_HASH_BYTES: Final = 32
_PrevLog = Mapping[str, Json]


class Refused(TraceError):
    """The signer does not do that; `why` says which rule."""

    def __init__(self, why: SignerRefusal) -> None:
        self.why = why
        super().__init__(why.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The newest log that was certified, and how far it has grown: the tree over its `size` lines.

    `before` is what its header says of its predecessor, as in `prev_log`; None for log 0.
    """

    log_no: int
    log_id: str
    size: int
    peaks: tuple[bytes, ...]
    before: _PrevLog | None

    @property
    def root(self) -> bytes:
        """The 32-byte root over the lines."""
        return Tree(self.size, self.peaks).root()

    def as_prev(self) -> _PrevLog:
        """Return what the next header has to say of this log."""
        return {"id": self.log_id, "root": self.root.hex(), "size": self.size}


def encode_held(held: Held) -> bytes:
    """Return the bytes that `parse_held` reads."""
    fields: dict[str, Json] = {
        "log_no": held.log_no,
        "log_id": held.log_id,
        "size": held.size,
        "peaks": [peak.hex() for peak in held.peaks],
        "before": None if held.before is None else dict(held.before),
    }
    return canonical_bytes(fields) + b"\n"


def parse_held(data: bytes) -> Held:
    """Return what was kept; raise `TraceError` for anything that `encode_held` does not write."""
    try:
        held = Held(**{**json.loads(data), "peaks": tuple(map(bytes.fromhex, json.loads(data)["peaks"]))})
        if held.root and encode_held(held) == data:
            return held
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        pass  # as below
    raise TraceError("the signer's head is damaged. Fix: restore it, or give the device a new key")


def certify(
    held: Held | None, header: bytes, *, book: str, device: bytes, custody: str, successor: str | None
) -> tuple[bytes, Held]:
    """Return the text to sign for the log that begins with the line `header`, and what is held from then on.

    Arguments: `book` is the name of this device's book, `device` its 32-byte public key, `custody` the word
    that the header has to say of it, `successor` the one verifier key that it may name as the next (None: it
    may name none). Raises `Refused`.
    """
    body = _parse_header(header)
    log_no, log_id, origin = body["log_no"], body["log_id"], f"{book}/{body['log_id']}"
    if body["origin"] != origin or body["vkey"][0] != origin or body["vkey"][1] == device:
        raise Refused(SignerRefusal.OTHER_BOOK)
    if body["custody"] != custody:
        raise Refused(SignerRefusal.OTHER_CUSTODY)
    if body["successor"] is not None and body["successor"] != successor:
        raise Refused(SignerRefusal.OTHER_SUCCESSOR)
    before = _predecessor(held, log_no)
    _check_prev(body["prev_log"], before)
    tree = Tree()
    tree.add(leaf_hash(header))
    begun = Held(log_no=log_no, log_id=log_id, size=tree.size, peaks=tree.peaks, before=before)
    return checkpoint(origin, tree.size, tree.root()).encode(), begun


def grow(held: Held | None, log_no: int, size: int, leaves: Sequence[bytes]) -> Held:
    """Return what is held once log `log_no`, of `size` lines, has grown by `leaves`; raise `Refused`."""
    if held is None or (log_no, size) != (held.log_no, held.size):
        raise Refused(SignerRefusal.NOT_NEXT)
    if size + len(leaves) > MAX_LINES:
        raise Refused(SignerRefusal.TOO_LONG)
    tree = Tree(held.size, held.peaks)
    for leaf in leaves:
        tree.add(leaf)
    return replace(held, size=tree.size, peaks=tree.peaks)


def _predecessor(held: Held | None, log_no: int) -> _PrevLog | None:
    """Return what the header of log `log_no` has to say of the log before it; raise `Refused`.

    A log that was certified and never grew may be certified anew: the runner died before it was on the disk,
    and its key with it.
    """
    if held is None:
        if log_no:
            raise Refused(SignerRefusal.NOT_NEXT)
        return None
    if log_no == held.log_no + 1:
        return held.as_prev()
    if log_no == held.log_no and held.size == 1:
        return held.before
    raise Refused(SignerRefusal.ROLLED_BACK if log_no <= held.log_no else SignerRefusal.NOT_NEXT)


def _check_prev(stated: _PrevLog | None, before: _PrevLog | None) -> None:
    if stated == before:
        return
    if stated is not None and before is not None:
        size, least = stated.get("size"), before["size"]
        if isinstance(size, int) and isinstance(least, int) and size < least:
            raise Refused(SignerRefusal.ROLLED_BACK)
    raise Refused(SignerRefusal.FORKED)


def _parse_header(line: bytes) -> dict[str, Any]:
    """Return the members of a header that matter here, `vkey` taken apart; raise `Refused`."""
    try:
        record = json.loads(line)
        body = record["body"]
        wanted = (record["kind"], record["prev"], record["seq"], body["format"])
        if canonical_bytes(record) != line or wanted != ("header", CHAIN_START, 0, FORMAT):
            raise Refused(SignerRefusal.NOT_A_HEADER)
        found = {name: body[name] for name in ("log_no", "log_id", "origin", "custody")}
        if type(found["log_no"]) is not int or found["log_no"] < 0 or not IS_ID(found["log_id"]):
            raise Refused(SignerRefusal.NOT_A_HEADER)
        more = {"prev_log": body.get("prev_log"), "successor": body.get(SUCCESSION)}
        return {**found, **more, "vkey": parse_vkey(body["vkey"])}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise Refused(SignerRefusal.NOT_A_HEADER) from None


class Certifier:
    """Answers the requests of one runtime, one at a time.

    Arguments: `signer` has the device key, `book` is the name of its book, `custody` what the header has to
    say, `kept` what `keep` was last given (None at first). `keep` returns when it is on the disk, and raises
    `OSError` otherwise; then nothing is answered that rests on it. `successor` is the verifier key that the
    signer's operator named as the next, the only one that a header may name; no request can set it.
    """

    def __init__(
        self,
        *,
        signer: Signer,
        book: str,
        custody: str,
        kept: bytes | None,
        keep: Callable[[bytes], None],
        successor: str | None = None,
    ) -> None:
        self._successor = successor
        self._signer, self._book, self._custody, self._keep = signer, book, custody, keep
        self._held = None if kept is None else parse_held(kept)

    def answer(self, request: bytes) -> bytes:
        """Return the answer to the bytes of a request. Total: what is not one is refused."""
        try:
            reply = self._answer(request)
        except Refused as refused:
            reply = {"refused": refused.why.value}
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            reply = {"refused": SignerRefusal.NOT_A_REQUEST.value}
        except OSError:
            reply = {"refused": SignerRefusal.NOT_KEPT.value}
        return canonical_bytes(reply)

    def _answer(self, request: bytes) -> dict[str, Json]:
        asked = json.loads(request)
        match asked["ask"]:
            case "key":
                return {"custody": self._custody, "public_key": self._signer.public_key.hex()}
            case "head":
                return {"head": self._head()}
            case "sign":
                return {"signature": self._sign(bytes.fromhex(asked["header"])).hex()}
            case "grow":
                leaves = _parse_leaves(asked["leaves"])
                self._hold(grow(self._held, asked["log_no"], asked["size"], leaves))
                return {}
            case _:
                raise Refused(SignerRefusal.NOT_A_REQUEST)

    def _head(self) -> dict[str, Json] | None:
        held = self._held
        return None if held is None else {"log_no": held.log_no, "root": held.root.hex(), "size": held.size}

    def _sign(self, header: bytes) -> bytes:
        text, begun = certify(
            self._held,
            header,
            book=self._book,
            device=self._signer.public_key,
            custody=self._custody,
            successor=self._successor,
        )
        self._hold(begun)
        return self._signer.sign(text, header=header)

    def _hold(self, held: Held) -> None:
        """Keep `held` before anything is answered: a signature that was forgotten would be given twice."""
        self._keep(encode_held(held))
        self._held = held


def _parse_leaves(text: str) -> list[bytes]:
    data = bytes.fromhex(text)
    if len(data) % _HASH_BYTES:
        raise Refused(SignerRefusal.NOT_A_REQUEST)
    return [data[at : at + _HASH_BYTES] for at in range(0, len(data), _HASH_BYTES)]
