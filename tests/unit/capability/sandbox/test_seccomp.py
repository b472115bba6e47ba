# SPDX-License-Identifier: Apache-2.0
"""P2: the filter says what its list says, on every machine it is for. Read by an interpreter of its own.

The kernel of the machine at hand is asked in `tests/adversarial/test_sandbox_escapes.py`; here the filters of
other machines are read too, instruction by instruction, as bpf(4) and seccomp(2) describe them.
"""

import re
import struct
from pathlib import Path

import pytest

from runner.capability.sandbox.seccomp import MACHINES, Machine, assemble

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
READ = {"x86_64": 0, "aarch64": 63}
EXECVE = {"x86_64": 59, "aarch64": 221}
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
machines = pytest.mark.parametrize("name", sorted(MACHINES))


def verdict(machine: Machine, number: int, *arguments: int, arch: int | None = None) -> int:
    """What the filter of `machine` answers for a call: the value that it returns."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, machine.arch if arch is None else arch, 0, *words)
    code = list(struct.iter_unpack("<HBBI", assemble(machine)))
    at, held = 0, 0
    while True:
        operation, yes, no, value = code[at]
        at += 1
        match operation:
            case 0x20:
                held = struct.unpack_from("<I", data, value)[0]
            case 0x15:
                at += yes if held == value else no
            case 0x35:
                at += yes if held >= value else no
            case 0x45:
                at += yes if held & value else no
            case 0x06:
                return int(value)
            case _:
                raise AssertionError("an instruction that is not used here")


@machines
def test_p2_what_programs_need_is_let_through(name: str) -> None:
    machine = MACHINES[name]
    for number in (READ[name], EXECVE[name]):
        assert verdict(machine, number) == ALLOW
    assert verdict(machine, machine.clone, 0x003D0F00) == ALLOW, "a thread, as the C library makes one"
    assert verdict(machine, machine.ioctl, 1, 0x5413) == ALLOW, "the size of a window"


@machines
def test_p2_every_call_of_the_list_is_refused_whatever_its_arguments(name: str) -> None:
    machine = MACHINES[name]
    for number in machine.refused.values():
        assert verdict(machine, number) == verdict(machine, number, *[2**64 - 1] * 6) == EPERM


@machines
def test_p2_a_new_process_is_refused_in_every_spelling(name: str) -> None:
    machine = MACHINES[name]
    for flags in (0, 17, 0x4111, 0x10000000, 0x7E020011, 17 | 0x10000 << 32):
        assert verdict(machine, machine.clone, flags) == EPERM
    assert verdict(machine, machine.clone3, 1, 88) == ENOSYS


@machines
def test_p2_typing_into_a_terminal_is_refused_with_any_bits_above(name: str) -> None:
    machine = MACHINES[name]
    for request in (0x5412, 0x541C, 0x5412 | 1 << 32, 0x541C | 0xFFFF << 32):
        assert verdict(machine, machine.ioctl, 0, request) == EPERM


@machines
def test_p2_another_architecture_ends_the_program_and_another_numbering_is_not_there(name: str) -> None:
    machine = MACHINES[name]
    for arch in {0xC000003E, 0xC00000B7, 0x40000003, 0x40000028, 0} - {machine.arch}:
        assert verdict(machine, READ[name], arch=arch) == KILL
    for number in (READ[name] | 1 << 30, 463, 500, 2**32 - 1, 2**31):
        assert verdict(machine, number) == ENOSYS


@machines
def test_the_numbers_are_those_of_the_kernels_own_tables(name: str) -> None:
    if not HEADERS[name].exists():
        pytest.skip("the kernel's headers are not installed here")
    text = HEADERS[name].read_text("ascii")
    table = {call: int(number) for call, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    refused = MACHINES[name].refused
    assert {call: table[call] for call in refused if call in table} == {
        call: number for call, number in refused.items() if call in table
    }
    assert len(refused.keys() & table.keys()) > len(refused) * 0.9


def test_p2_no_kind_of_socket_and_no_way_round_one_is_left_out() -> None:
    """Without `socket` and `socketpair` there is none; io_uring could make one without asking."""
    for machine in MACHINES.values():
        assert {"socket", "socketpair", "io_uring_setup", "pidfd_getfd", "recvmsg"} <= machine.refused.keys()
