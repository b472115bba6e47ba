# SPDX-License-Identifier: Apache-2.0
"""The socket of a signer process: who may ask, and one request after the other.

Owns listening (mode 0600, owned by the one account that may connect), the check of who connected,
becoming another account, its folder for one process, and the file of what it keeps there. Leaves every
judgement to the `answer` it is given (`perimeter.trace.certify`), and the key to `keys`. Carries I7:
whoever is not the one account is hung up on before a byte is read.
"""

import fcntl
import os
import pwd
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from runner.capability.transport.logstore import (
    close_synced,
    make_private_folder,
    opening,
    read_regular,
    replace_file,
)
from runner.capability.transport.signer import WAIT_S, own_account, peer_account, receive
from runner.kernel.errors import TraceError

_MODE: Final = 0o600
_BACKLOG: Final = 8


def account_named(name: str) -> pwd.struct_passwd:
    """Return the account `name`, or of that number; raise `TraceError` if there is none."""
    try:
        return pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except (KeyError, OverflowError):
        raise TraceError(f"there is no account {name!a} here. Fix: name one of this machine") from None


def listen(path: Path, client: int) -> socket.socket:
    """Return a socket that listens at `path`, which only the account `client` (a user id) may connect to.

    Giving the socket to another account takes root. Raises `TraceError`, also when somebody listens there.
    """
    with opening("signer's socket"):
        _remove_dead(path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            former = os.umask(0o777 & ~_MODE)  # from the first: no time between bind and chmod
            try:
                listening.bind(str(path))
            finally:
                os.umask(former)
            if client != own_account():
                _give(path, client)
            listening.listen(_BACKLOG)
        except BaseException:
            listening.close()
            raise
    return listening


def become(account: pwd.struct_passwd) -> None:
    """Go on as `account`, for good: its user, its group, no other; raise `TraceError`."""
    if own_account() == account.pw_uid:
        return
    try:
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    except PermissionError:
        raise TraceError("only root becomes another account. Fix: start the signer as root") from None


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Hold the signer's `folder`, which is made, for this process: two signers on one head fork a book (I4).

    Raises `TraceError` when another process holds it, or where a folder cannot be locked.
    """
    with opening("signer's folder"):
        make_private_folder(folder)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise TraceError(
                "a signer already serves this folder. Fix: use its socket, or name another folder"
            ) from None
    try:
        yield
    finally:
        close_synced(handle)


def serve_clients(listening: socket.socket, client: int, answer: Callable[[bytes], bytes]) -> None:
    """Answer the account `client` (a user id) until the process ends; raise `OSError` if nobody can ask."""
    while True:
        peer, _ = listening.accept()
        with peer:
            serve_one(peer, client, answer)


def serve_one(peer: socket.socket, client: int, answer: Callable[[bytes], bytes]) -> None:
    """Answer one connection. One that is slow, too long or broken off is dropped, and that is all."""
    try:
        peer.settimeout(WAIT_S)
        if peer_account(peer) == client:
            peer.sendall(answer(receive(peer)))
    except OSError:
        return


class KeptFile:
    """What the signer keeps from one answer to the next, in the file `path`."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> bytes | None:
        """Return what was kept, None for nothing yet; raise `TraceUnavailable`."""
        with opening("signer's head"):
            try:
                return read_regular(self._path, os.O_NOFOLLOW)
            except FileNotFoundError:
                return None

    def keep(self, data: bytes) -> None:
        """Keep `data`, on the disk when this returns; raise `OSError`."""
        replace_file(self._path, self._path.with_name(self._path.name + ".tmp"), data)


def _remove_dead(path: Path) -> None:
    """Remove the socket of a signer that ended; raise `TraceError` for one that answers, or is no socket."""
    try:
        state = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISSOCK(state.st_mode) and not _answers(path):
        path.unlink()
        return
    raise TraceError("something else is in the place of the signer's socket. Fix: end it, or move it away")


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(WAIT_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        return True


def _give(path: Path, client: int) -> None:
    try:
        os.chown(path, client, -1, follow_symlinks=False)
    except PermissionError:
        path.unlink()
        raise TraceError(
            "only root gives the socket to another account. Fix: start the signer as root, with --user"
        ) from None
