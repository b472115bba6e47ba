# SPDX-License-Identifier: Apache-2.0
"""Locality is checked, never read off a URL (I10); clocks and randomness come from the system."""

import socket

import anyio
import pytest

from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.locality import LoopbackCheck
from runner.kernel.inference import Address
from runner.kernel.ports import Locality

pytestmark = pytest.mark.anyio


def pretend(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name resolve to `addresses`, or to nothing."""

    async def resolver(_: object, port: int, **__: object) -> list[object]:
        if not addresses:
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in addresses]

    monkeypatch.setattr(anyio, "getaddrinfo", resolver)


@pytest.mark.parametrize(
    ("scheme", "host", "grade"),
    [
        ("inproc", "", Locality.L2),
        ("http", "127.0.0.1", Locality.L0),
        ("http", "127.8.8.8", Locality.L0),
        ("https", "::1", Locality.L0),
        ("http", "0.0.0.0", Locality.REMOTE),  # noqa: S104 - an address to refuse
        ("http", "192.168.1.4", Locality.REMOTE),
        ("http", "::", Locality.REMOTE),
        ("http", "", Locality.REMOTE),
        ("http", "127.1", Locality.REMOTE),
        ("http", "LOCALHOST.example", Locality.REMOTE),
        ("ftp", "127.0.0.1", Locality.REMOTE),
    ],
)
async def test_grades_i10(monkeypatch: pytest.MonkeyPatch, scheme: str, host: str, grade: Locality) -> None:
    pretend(monkeypatch, "127.0.0.1")
    assert await LoopbackCheck().grade(Address(scheme=scheme, host=host, port=8080)) is grade


@pytest.mark.parametrize(
    ("addresses", "grade"),
    [
        (["127.0.0.1"], Locality.L0),
        (["::1", "127.0.0.1"], Locality.L0),
        (["127.0.0.1", "192.0.2.1"], Locality.REMOTE),
        ([], Locality.REMOTE),
    ],
)
async def test_localhost_is_believed_only_as_far_as_it_resolves_i10(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str], grade: Locality
) -> None:
    pretend(monkeypatch, *addresses)
    assert await LoopbackCheck().grade(Address(scheme="http", host="localhost", port=8080)) is grade


async def test_the_grade_is_checked_each_time_i10(monkeypatch: pytest.MonkeyPatch) -> None:
    check, address = LoopbackCheck(), Address(scheme="http", host="localhost", port=8080)
    pretend(monkeypatch, "127.0.0.1")
    assert await check.grade(address) is Locality.L0
    pretend(monkeypatch, "192.0.2.1")
    assert await check.grade(address) is Locality.REMOTE


def test_the_system_has_a_clock_and_randomness() -> None:
    clock = SystemClock()
    assert clock.now_us() > 1_700_000_000_000_000
    assert clock.monotonic() <= clock.monotonic()
    assert len(SystemEntropy().token(32)) == 32
    assert SystemEntropy().token(32) != SystemEntropy().token(32)
    one, two = bytearray(32), bytearray(32)
    SystemEntropy().fill(one)
    SystemEntropy().fill(two)
    assert len({bytes(one), bytes(two), bytes(32)}) == 3
    assert len(one) == len(two) == 32
