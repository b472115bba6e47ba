# SPDX-License-Identifier: Apache-2.0
"""What this machine can do, as facts: each is tried, not looked up.

Owns the probes of `akaion doctor`. Judges nothing: what a profile needs of these is `needs`'. A probe sends
no bytes: the one that asks about an endpoint opens a connection on loopback and closes it.
"""

import ctypes
import os
import sys
from importlib import metadata
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import anyio

from runner.capability.sandbox.bubblewrap import why_not
from runner.capability.tools.openers import best_opener, open_by_openat2

_CONNECT_TIMEOUT_S: Final = 3.0
_SYS_LANDLOCK_CREATE_RULESET: Final = 444
_LANDLOCK_VERSION: Final = 1
_SECCOMP: Final = Path("/proc/sys/kernel/seccomp/actions_avail")
_MEMINFO: Final = Path("/proc/meminfo")


def engine_version() -> str | None:
    """Return name and version of the embedded engine; None when there is none.

    The second engine is not imported: that is for its child process.
    """
    try:
        import xllamacpp  # noqa: PLC0415 - optional: importing it is the probe

        name = xllamacpp.__name__
    except ImportError:
        name = "llama-cpp-python"
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return None


def memory_bytes() -> tuple[int, int]:
    """Return memory in bytes: (available now, in all). Both are the same where the system says one only."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        available = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        available = total
    return min(available, total), total


def no_sandbox() -> str | None:
    """Return why no program can be confined here, with the fix; None when one was, as a trial."""
    return why_not()


def landlock_abi() -> int:
    """Return the Landlock ABI of the kernel, 0 when it has none. Source: landlock_create_ruleset(2)."""
    if sys.platform != "linux":
        return 0
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    call.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32]
    return max(int(call(_SYS_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)), 0)


def has_seccomp() -> bool:
    """Return whether the kernel offers seccomp filters."""
    return _SECCOMP.is_file()


def has_openat2() -> bool:
    """Return whether granted files are opened by openat2 here, rather than by a walk of folder handles."""
    return best_opener() is open_by_openat2


def is_loopback(host: str) -> bool:
    """Return whether `host` is a loopback address, or the name `localhost`."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def listens(host: str, port: int) -> bool:
    """Return whether something accepts a connection at `host`, which is on loopback; nothing is sent."""

    async def connect() -> bool:
        try:
            with anyio.fail_after(_CONNECT_TIMEOUT_S):
                stream = await anyio.connect_tcp(host.strip("[]"), port)
        except (OSError, TimeoutError):
            return False
        await stream.aclose()
        return True

    return anyio.run(connect)
