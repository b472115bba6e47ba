# SPDX-License-Identifier: Apache-2.0
"""Time and randomness from the operating system.

Owns the only calls to a real clock and a real random source, so that everything above can be given
`FrozenClock` and `FixedEntropy` of `runner.testing` instead. Carries no invariant of its own.
"""

import secrets
import time


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
        """Return `size` random bytes fit for keys, salts and ids. Raises `ValueError` for a negative size."""
        return secrets.token_bytes(size)
