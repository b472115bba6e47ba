# SPDX-License-Identifier: Apache-2.0
"""The device key in a process of its own, as the runtime sees it: a socket, and what is asked through it.

Owns the custody `process` on the runtime's side. One request, one connection: the request as JSON, the end
of it, the answer, the end of that. What the signer judges is in `perimeter.trace.certify`, how it listens in
`signerd`. Carries I9 in its part: a head that the signer has not kept is an error, never a warning. The key
is never here.
"""

import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from runner.kernel.errors import TraceError, TraceUnavailable
from runner.kernel.ports import HeldHead, SignerRefusal

MAX_MESSAGE: Final = 4 << 20
"""Bytes of a request or an answer."""
WAIT_S: Final = 10.0
"""Seconds that either side waits for the other."""
_LEAVES_AT_ONCE: Final = 10_000
_PEER: Final = struct.Struct("3i")
_FIXES: Final[Mapping[SignerRefusal, str]] = {
    SignerRefusal.NOT_A_REQUEST: "it does not know this request. Fix: run the same release on both sides",
    SignerRefusal.NOT_A_HEADER: "what it was shown begins no log. Fix: run the same release on both sides",
    SignerRefusal.OTHER_BOOK: "the log is of another book than its key. Fix: correct trace.custody",
    SignerRefusal.OTHER_CUSTODY: "the log says another custody than its own. Fix: correct trace.custody",
    SignerRefusal.OTHER_SUCCESSOR: "nobody told it of this next key. Fix: its operator starts it with --next",
    SignerRefusal.NOT_NEXT: "it knows no log before this one. Fix: restore its state, or start a new book",
    SignerRefusal.ROLLED_BACK: "the book is older than the head it holds. Fix: restore the newest copy",
    SignerRefusal.FORKED: "the book is not the one whose head it holds. Fix: restore the right copy",
    SignerRefusal.TOO_LONG: "the log holds all the lines it may. Fix: end the tasks that are open in it",
    SignerRefusal.NOT_KEPT: "it cannot write its state. Fix: check its folder, and the room on its disk",
}


class ProcessSigner:
    """The device key behind the socket `path`. Implements `HeadKeeper`.

    Raises `TraceUnavailable` when nobody answers there, and `TraceError` for an answer that is none.
    """

    __slots__ = ("_custody", "_path", "_public_key")

    def __init__(self, path: Path) -> None:
        self._path = path
        answer = self._ask({"ask": "key"})
        self._custody, self._public_key = _parse_text(answer, "custody"), _parse_hex(answer, "public_key", 32)

    def __repr__(self) -> str:
        """Return the custody."""
        return f"<ProcessSigner custody={self._custody}>"

    @property
    def custody(self) -> str:
        """Where the key lives: `process`, or `file` when the signer runs where this account could read it."""
        return self._custody

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the Ed25519 public key."""
        return self._public_key

    def sign(self, message: bytes, *, header: bytes = b"") -> bytes:  # noqa: ARG002 - the signer makes it itself
        """Return the signer's 64-byte signature of what it makes of `header`; raise `TraceError`."""
        return _parse_hex(self._ask({"ask": "sign", "header": header.hex()}), "signature", 64)

    def head(self) -> HeldHead | None:
        """Return the head that the signer holds; raise `TraceError`."""
        head = self._ask({"ask": "head"}).get("head")
        if head is None:
            return None
        if not isinstance(head, dict):
            raise _nonsense()
        return HeldHead(
            log_no=_parse_count(head, "log_no"),
            size=_parse_count(head, "size"),
            root=_parse_hex(head, "root", 32),
        )

    def grow(self, log_no: int, size: int, leaves: Sequence[bytes]) -> None:
        """Tell the signer of more lines of log `log_no`; raise `TraceError` unless it keeps them."""
        for at in range(0, len(leaves), _LEAVES_AT_ONCE):
            some = b"".join(leaves[at : at + _LEAVES_AT_ONCE]).hex()
            self._ask({"ask": "grow", "log_no": log_no, "size": size + at, "leaves": some})

    def _ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
                peer.settimeout(WAIT_S)
                peer.connect(str(self._path))
                answer = exchange(peer, json.dumps(request).encode())
        except OSError:  # errno is no help to the reader: none for a path that is too long, or for a timeout
            raise TraceUnavailable(
                "the signer does not answer at its socket. Fix: start `akaion keys serve` for this account, "
                "or correct trace.custody (a socket's path has at most 107 bytes)"
            ) from None
        return _parse_answer(answer)


class ProcessCustody:
    """The device key in the signer process at the socket `path`. Implements `Custody`."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def place(self) -> str:
        """The path of the socket."""
        return str(self._path)

    def exists(self) -> bool:
        """Return True: a signer that answers has a key."""
        return True

    def signer(self) -> ProcessSigner:
        """Return the signer at the socket; raise `TraceError`."""
        return ProcessSigner(self._path)

    def successor(self) -> ProcessSigner:
        """Raise `TraceError`: a runtime that could replace the key would not need it."""
        raise TraceError(
            "the device key is the signer's to replace. Fix: start a second signer with a key of its own, "
            "export its pin, start the first one anew with --next, and name the pin's file with --to"
        )

    def promote(self) -> None:
        """Raise `TraceError`, as `successor` does."""
        self.successor()


def exchange(peer: socket.socket, message: bytes) -> bytes:
    """Send the whole of `message`, and return all that comes back; raise `OSError`."""
    peer.sendall(message)
    peer.shutdown(socket.SHUT_WR)
    return receive(peer)


def receive(peer: socket.socket) -> bytes:
    """Return everything up to the end of what `peer` sends; raise `OSError`, for more than a message too."""
    received = bytearray()
    while piece := peer.recv(1 << 16):
        received += piece
        if len(received) > MAX_MESSAGE:
            raise OSError("more than a message")
    return bytes(received)


def peer_account(peer: socket.socket) -> int:
    """Return the user id of the process that `peer` is connected to, as the kernel says; raise `OSError`.

    SO_PEERCRED is of Linux. Elsewhere there is no signer process.
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        raise OSError("this system does not say who is connected")
    _, account, _ = _PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, option, _PEER.size))
    return int(account)


def custody_between(signer: int, runtime: int) -> str:
    """Return what keeps the account `runtime` (a user id) from a key of the account `signer`.

    The runtime's own account, or root, reads the file whatever process has it open: that is custody `file`.
    """
    return "file" if runtime in {0, signer} else "process"


def own_account() -> int:
    """Return the user id that this process runs under."""
    return os.geteuid()


def _parse_answer(answer: bytes) -> dict[str, Any]:
    try:
        value = json.loads(answer)
        if isinstance(value, dict) and "refused" in value:
            raise TraceError(f"the signer refuses: {_FIXES[SignerRefusal(value['refused'])]}")
        if isinstance(value, dict):
            return value
    except (ValueError, RecursionError):
        pass  # as below
    raise _nonsense()


def _parse_hex(answer: Mapping[str, Any], name: str, size: int) -> bytes:
    try:
        value = bytes.fromhex(_parse_text(answer, name))
    except ValueError:
        raise _nonsense() from None
    if len(value) != size:
        raise _nonsense()
    return value


def _parse_text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise _nonsense()
    return value


def _parse_count(answer: Mapping[str, Any], name: str) -> int:
    value = answer.get(name)
    if type(value) is not int or value < 0:
        raise _nonsense()
    return value


def _nonsense() -> TraceError:
    return TraceError("what answers at the signer's socket is no signer. Fix: correct trace.custody")
