# SPDX-License-Identifier: Apache-2.0
"""The system calls that a program in the sandbox does without, as a seccomp filter.

Owns the list and its assembly into classic BPF, in a few lines: no library is needed. Leaves loading it to
bubblewrap, which does so last, before the program starts. Carries P2: with no socket there is no network, no
Unix socket and no DNS, whatever the namespace would offer; with no second process there is nothing to leave
behind. Each call that is refused answers EPERM; one that this list is too old to know answers ENOSYS, as an
older kernel would. Sources: seccomp(2), bpf(4), and the kernel's tables of system calls.
"""

import platform
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_NOT_LESS: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000
_EPERM: Final = 1
_ENOSYS: Final = 38
_NUMBER_AT: Final = 0
_ARCH_AT: Final = 4
_FIRST_ARGUMENT_AT: Final = 16  # its low half, on a little-endian machine
_SECOND_ARGUMENT_AT: Final = 24
_CLONE_THREAD: Final = 0x00010000
_TIOCSTI: Final = 0x5412
_TIOCLINUX: Final = 0x541C
_NEWEST: Final = 463
"""The first number that this list knows nothing about (Linux 6.13). A second numbering of a machine, such as
x32, begins far above."""

_Instruction: TypeAlias = tuple[int, int, int, int]

_SAME_EVERYWHERE: Final[dict[str, int]] = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "process_mrelease": 448,
}
"""Calls that have one number on every machine."""
_X86_64: Final[dict[str, int]] = {
    "shmget": 29,
    "shmat": 30,
    "shmctl": 31,
    "socket": 41,
    "connect": 42,
    "accept": 43,
    "sendto": 44,
    "recvfrom": 45,
    "sendmsg": 46,
    "recvmsg": 47,
    "bind": 49,
    "listen": 50,
    "socketpair": 53,
    "fork": 57,
    "vfork": 58,
    "semget": 64,
    "msgget": 68,
    "ptrace": 101,
    "syslog": 103,
    "personality": 135,
    "ustat": 136,
    "modify_ldt": 154,
    "pivot_root": 155,
    "adjtimex": 159,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "create_module": 174,
    "init_module": 175,
    "delete_module": 176,
    "get_kernel_syms": 177,
    "query_module": 178,
    "quotactl": 179,
    "nfsservctl": 180,
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "mbind": 237,
    "set_mempolicy": 238,
    "mq_open": 240,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "migrate_pages": 256,
    "unshare": 272,
    "move_pages": 279,
    "accept4": 288,
    "perf_event_open": 298,
    "recvmmsg": 299,
    "fanotify_init": 300,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "sendmmsg": 307,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "memfd_create": 319,
    "kexec_file_load": 320,
    "bpf": 321,
    "execveat": 322,
    "userfaultfd": 323,
}
_AARCH64: Final[dict[str, int]] = {
    "lookup_dcookie": 18,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "nfsservctl": 42,
    "chroot": 51,
    "quotactl": 60,
    "acct": 89,
    "personality": 92,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "sethostname": 161,
    "setdomainname": 162,
    "settimeofday": 170,
    "adjtimex": 171,
    "mq_open": 180,
    "msgget": 186,
    "semget": 190,
    "shmget": 194,
    "shmctl": 195,
    "shmat": 196,
    "socket": 198,
    "socketpair": 199,
    "bind": 200,
    "listen": 201,
    "accept": 202,
    "connect": 203,
    "sendto": 206,
    "recvfrom": 207,
    "sendmsg": 211,
    "recvmsg": 212,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "swapon": 224,
    "swapoff": 225,
    "mbind": 235,
    "set_mempolicy": 237,
    "migrate_pages": 238,
    "move_pages": 239,
    "perf_event_open": 241,
    "accept4": 242,
    "recvmmsg": 243,
    "fanotify_init": 262,
    "name_to_handle_at": 264,
    "open_by_handle_at": 265,
    "clock_adjtime": 266,
    "setns": 268,
    "sendmmsg": 269,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "memfd_create": 279,
    "bpf": 280,
    "execveat": 281,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """How a kind of machine numbers its calls."""

    arch: int
    clone: int
    clone3: int
    ioctl: int
    refused: dict[str, int] = field(repr=False)


MACHINES: Final[dict[str, Machine]] = {
    "x86_64": Machine(
        arch=0xC000003E,
        clone=56,
        clone3=435,
        ioctl=16,
        refused=_X86_64 | _SAME_EVERYWHERE,
    ),
    "aarch64": Machine(
        arch=0xC00000B7,
        clone=220,
        clone3=435,
        ioctl=29,
        refused=_AARCH64 | _SAME_EVERYWHERE,
    ),
}
"""The machines there is a filter for; on another one no sandbox is built."""


def filter_here() -> bytes | None:
    """Return the filter for the machine this runs on; None when there is none for it."""
    machine = MACHINES.get(platform.machine())
    return None if machine is None else assemble(machine)


def assemble(machine: Machine) -> bytes:
    """Return the filter for `machine`, as an array of `struct sock_filter`.

    A call from another architecture ends the process. A new process is refused (a thread is not: `clone` with
    CLONE_THREAD), and `clone3`, whose flags a filter cannot see, is said not to be there. `ioctl` may not
    type into a terminal.
    """
    code: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, machine.arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        *_refuse_if(_NOT_LESS, _NEWEST, _ENOSYS),
        *_refuse_if(_EQUAL, machine.clone3, _ENOSYS),
        *_refuse_each(sorted(machine.refused.values())),
        *_only_with(machine.clone, _FIRST_ARGUMENT_AT, _CLONE_THREAD),
        *_never_with(machine.ioctl, _SECOND_ARGUMENT_AT, (_TIOCSTI, _TIOCLINUX)),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def _refuse_if(test: int, value: int, errno: int) -> list[_Instruction]:
    return [(test, 0, 1, value), (_RETURN, 0, 0, _ERRNO | errno)]


def _refuse_each(numbers: Iterable[int]) -> list[_Instruction]:
    return [each for number in numbers for each in _refuse_if(_EQUAL, number, _EPERM)]


def _only_with(number: int, argument: int, flag: int) -> list[_Instruction]:
    """Return what refuses the call `number` unless its `argument` has `flag`."""
    return [
        (_EQUAL, 0, 4, number),
        (_LOAD, 0, 0, argument),
        (_ANY_BIT, 1, 0, flag),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _never_with(number: int, argument: int, values: Sequence[int]) -> list[_Instruction]:
    """Return what refuses the call `number` when its `argument` is one of `values`."""
    tests = [each for value in values for each in _refuse_if(_EQUAL, value, _EPERM)]
    return [(_EQUAL, 0, len(tests) + 2, number), (_LOAD, 0, 0, argument), *tests, (_RETURN, 0, 0, _ALLOW)]
