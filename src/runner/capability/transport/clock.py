# SPDX-License-Identifier: Apache-2.0
"""Time and randomness from the operating system.

Owns the only calls to a real clock and a real random source, so that everything above can be given
`FrozenClock` and `FixedEntropy` of `runner.testing` instead. Carries no invariant of its own.
"""

import errno
import os
import secrets
import time
from typing import Final

_SOURCE: Final = "/dev/urandom"


class SystemClock:
    """The clocks of this machine. Implements `Clock`."""

    def now_us(self) -> int:
        """Return the wall clock in microseconds since the Unix epoch, UTC."""
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        """Return a clock in seconds that never goes back."""
        return time.monotonic()


class SystemEntropy:
    """The random source of the operating system. Implements `Entropy`."""

    def token(self, size: int) -> bytes:
        """Return `size` random bytes fit for salts and ids. Raises `ValueError` for a negative size."""
        return secrets.token_bytes(size)

    def fill(self, secret: bytearray) -> None:
        """Overwrite every byte of `secret` with random bytes fit for a key; raise `OSError`.

        The system writes into `secret` itself: no object of ours ever holds a copy that nobody can overwrite.
        """
        handle = os.open(_SOURCE, os.O_RDONLY | os.O_CLOEXEC)
        try:
            rest = memoryview(secret)
            while rest:
                if not (read := os.readv(handle, [rest])):
                    raise OSError(errno.EIO, "the system's random source ended")
                rest = rest[read:]
        finally:
            os.close(handle)
