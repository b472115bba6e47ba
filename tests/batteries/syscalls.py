# SPDX-License-Identifier: Apache-2.0
"""The system calls of a child that touch one folder, each seen and, if wanted, made to fail (Linux, x86-64).

Owns a tracer over ptrace(2): which calls there are, and what befalls one of them. It sees what the kernel is
asked, whichever function of Python asked it, so no call is missed because nobody thought of patching it.
Leaves to others: what the child does, and what should come of it (`faults.py`).
"""

import ctypes
import errno
import os
import platform
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, assert_never

AVAILABLE: Final = sys.platform == "linux" and platform.machine() == "x86_64"

_TRACEME, _CONT_SYSCALL, _GETREGS, _SETREGS, _SETOPTIONS = 0, 24, 12, 13, 0x4200
_SYSGOOD_EXITKILL: Final = 0x1 | 0x100000
_SYSCALL_STOP: Final = signal.SIGTRAP | 0x80

# number: (name, position of the path or of the handle among the arguments, is it a path)
_CALLS: Final[dict[int, tuple[str, int, bool]]] = {
    0: ("read", 0, False),
    1: ("write", 0, False),
    2: ("open", 0, True),
    3: ("close", 0, False),
    4: ("stat", 0, True),
    5: ("fstat", 0, False),
    6: ("lstat", 0, True),
    8: ("lseek", 0, False),
    16: ("ioctl", 0, False),
    17: ("pread", 0, False),
    18: ("pwrite", 0, False),
    72: ("fcntl", 0, False),
    73: ("flock", 0, False),
    74: ("fsync", 0, False),
    75: ("fdatasync", 0, False),
    77: ("ftruncate", 0, False),
    82: ("rename", 0, True),
    83: ("mkdir", 0, True),
    86: ("link", 0, True),
    87: ("unlink", 0, True),
    89: ("readlink", 0, True),
    90: ("chmod", 0, True),
    91: ("chmod", 0, False),
    93: ("chown", 0, False),
    217: ("getdents", 0, False),
    257: ("open", 1, True),
    258: ("mkdir", 1, True),
    262: ("stat", 1, True),
    263: ("unlink", 1, True),
    264: ("rename", 1, True),
    265: ("link", 1, True),
    267: ("readlink", 1, True),
    316: ("rename", 1, True),
    332: ("stat", 1, True),
    437: ("openat2", 1, True),
}
SIZED: Final = frozenset({"read", "write", "pread", "pwrite"})
"""Calls that may do less than they were asked to."""
CHANGING: Final = frozenset(
    {"write", "pwrite", "ftruncate", "rename", "mkdir", "link", "unlink", "chmod", "create"}
)
"""Calls that a full or read-only disk refuses; `create` is an `open` that may make a file."""


@dataclass(frozen=True, slots=True)
class Call:
    """One system call about `path`, which is relative to the folder watched."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Fail:
    """The call returns `error`. It has been carried out all the same if `done`."""

    error: int
    done: bool = False


@dataclass(frozen=True, slots=True)
class Half:
    """The call does half of what it was asked to; then the child is killed, if `kill`."""

    kill: bool = False


@dataclass(frozen=True, slots=True)
class Kill:
    """The child is killed at the moment of the call, which is not carried out."""


Act: TypeAlias = Fail | Half | Kill | None


_REGISTERS: Final = """
    r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss
    fs_base gs_base ds es fs gs
"""


class _Registers(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_ulonglong) for name in _REGISTERS.split())


_libc = ctypes.CDLL(None, use_errno=True)


def _ptrace(request: int, pid: int, address: int = 0, data: object = None) -> None:
    _libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    _libc.ptrace.restype = ctypes.c_long
    if _libc.ptrace(request, pid, address, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def run_traced(
    child: Callable[[], None],
    folder: Path,
    decide: Callable[[int, Call], Act],
    done: Callable[[Call, str], None] = lambda _call, _at: None,
) -> int:
    """Run `child` in a fork; return its wait status.

    `decide` is asked, before each call about `folder` or something in it, with its number from 0, what
    befalls it. `done` is told of each that succeeded, with the whole path it was about.
    """
    pid = os.fork()
    if pid == 0:
        _be_traced(child)
    os.waitpid(pid, 0)
    _ptrace(_SETOPTIONS, pid, 0, _SYSGOOD_EXITKILL)
    return _Tracer(pid, folder, decide, done).run()


def _be_traced(child: Callable[[], None]) -> None:
    code = 1
    try:
        _ptrace(_TRACEME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        child()
        code = 0
    finally:
        os._exit(code)


class _Tracer:
    def __init__(
        self,
        pid: int,
        folder: Path,
        decide: Callable[[int, Call], Act],
        done: Callable[[Call, str], None],
    ) -> None:
        self.pid, self.folder = pid, str(folder)
        self.decide, self.done = decide, done
        self.number = 0
        self.registers = _Registers()

    def run(self) -> int:
        pending = 0  # a signal to hand on
        while True:
            _ptrace(_CONT_SYSCALL, self.pid, 0, pending)
            _, status = os.waitpid(self.pid, 0)
            if not os.WIFSTOPPED(status):
                return status
            pending = 0
            if os.WSTOPSIG(status) != _SYSCALL_STOP:
                pending = os.WSTOPSIG(status)
            else:
                self._read()
                found = self._call()
                if found is not None and (ended := self._befall(*found)) is not None:
                    return ended

    def _befall(self, call: Call, at: str) -> int | None:
        """Let the call happen as decided; return the wait status if that was the end."""
        number, self.number = self.number, self.number + 1
        act = self.decide(number, call)
        match act:
            case None:
                pass
            case Kill():
                return self._kill()
            case Half():
                self.registers.rdx //= 2
                self._write()
            case Fail(done=False):
                self.registers.orig_rax = 2**64 - 1
                self._write()
            case Fail():
                pass
            case _:
                assert_never(act)
        return self._after(call, at, act)

    def _after(self, call: Call, at: str, act: Act) -> int | None:
        _ptrace(_CONT_SYSCALL, self.pid)
        _, status = os.waitpid(self.pid, 0)
        if not os.WIFSTOPPED(status):
            return status
        self._read()
        if self.registers.rax < 2**63 and not (isinstance(act, Fail) and not act.done):
            self.done(call, at)
        if isinstance(act, Fail):
            self.registers.rax = 2**64 - act.error
            self._write()
        if act == Half(kill=True):
            return self._kill()
        return None

    def _kill(self) -> int:
        os.kill(self.pid, signal.SIGKILL)
        return os.waitpid(self.pid, 0)[1]

    def _read(self) -> None:
        _ptrace(_GETREGS, self.pid, 0, ctypes.byref(self.registers))

    def _write(self) -> None:
        _ptrace(_SETREGS, self.pid, 0, ctypes.byref(self.registers))

    def _call(self) -> tuple[Call, str] | None:
        """Return the call the child is about to make, if it is about something in the folder."""
        known = _CALLS.get(self.registers.orig_rax)
        if known is None:
            return None
        name, position, is_path = known
        first, second, third = self.registers.rdi, self.registers.rsi, self.registers.rdx
        at = self._text((first, second)[position]) if is_path else ""
        if not at:
            at = self._path_of(first)
        elif position and not at.startswith("/"):  # below the handle of a folder
            at = f"{self._path_of(first)}/{at}"
        if at != self.folder and not at.startswith(f"{self.folder}/"):
            return None
        creating = name == "open" and (second, third)[position] & os.O_CREAT
        return Call("create" if creating else name, at.removeprefix(self.folder)[1:]), at

    def _text(self, address: int) -> str:
        with Path(f"/proc/{self.pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            try:
                data = memory.read(4096)
            except OSError:  # the end of a mapping: the text is short
                memory.seek(address)
                data = memory.read(4096 - address % 4096)
        return os.fsdecode(data.partition(b"\0")[0])

    def _path_of(self, handle: int) -> str:
        try:
            return str(Path(f"/proc/{self.pid}/fd/{ctypes.c_int(handle).value}").readlink())
        except OSError as error:
            if error.errno == errno.ENOENT:
                return ""
            raise


class Disk:
    """What a folder would hold after a power cut: only what was synced, by the strictest reading of POSIX.

    The bytes of a file are on the disk once it was synced; a name is, once its folder was. Both as of then.
    """

    def __init__(self, folder: Path) -> None:
        """Take what the folder holds now for synced."""
        self.folder = folder
        self.names: dict[int, dict[str, int]] = {}
        self.bytes: dict[int, bytes] = {}
        self.root = folder.stat().st_ino
        for path in (folder, *folder.rglob("*")):
            self._sync(path)

    def done(self, call: Call, at: str) -> None:
        """Take note of a call that succeeded."""
        path = Path(at)
        if call.name == "create" and path.stat().st_size == 0:
            self.bytes[path.stat().st_ino] = b""
        elif call.name in {"fsync", "fdatasync"} and path.exists():
            self._sync(path)
        elif call.name == "mkdir":
            self.names.setdefault(path.stat().st_ino, {})

    def _sync(self, path: Path) -> None:
        inode = path.stat().st_ino
        if path.is_dir():
            self.names[inode] = {each.name: each.stat().st_ino for each in path.iterdir()}
        else:
            self.bytes[inode] = path.read_bytes()

    def cut(self, *, half: bool) -> None:
        """Make the folder what the disk held; `half` of what a file had beyond that is there too."""
        files = [path for path in self.folder.rglob("*") if path.is_file()] if half else []
        late = {path.stat().st_ino: path.read_bytes() for path in files}
        for child in list(self.folder.iterdir()):
            _remove(child)
        self._restore(self.root, self.folder, late)

    def _restore(self, inode: int, place: Path, late: dict[int, bytes]) -> None:
        for name, held in self.names[inode].items():
            if held in self.names:
                (place / name).mkdir(mode=0o700)
                self._restore(held, place / name, late)
            else:
                data = self.bytes.get(held, b"")
                data = _half_way(data, late.get(held, data))
                (place / name).write_bytes(data)
                (place / name).chmod(0o600)


def _half_way(data: bytes, more: bytes) -> bytes:
    """Return `data` with half of what it lacks of `more`, which grew, or was written over in place."""
    if more.startswith(data):
        return more[: (len(data) + len(more)) // 2]
    if len(data) != len(more):
        return data
    apart = [at for at, (old, new) in enumerate(zip(data, more, strict=True)) if old != new]
    middle = apart[len(apart) // 2]
    return more[:middle] + data[middle:]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for child in path.iterdir():
            _remove(child)
        path.rmdir()
    else:
        path.unlink()
