# SPDX-License-Identifier: Apache-2.0
"""Time and chance that are the same in every run."""

import hashlib
import threading


class FrozenClock:
    """Time that moves only when told. Implements `Clock`. Starts at 2026-01-01T00:00:00Z by default."""

    def __init__(self, now_us: int = 1_767_225_600_000_000) -> None:
        self._start_us = now_us
        self._passed_us = 0

    def now_us(self) -> int:
        """Return the frozen wall clock in microseconds since the Unix epoch."""
        return self._start_us + self._passed_us

    def monotonic(self) -> float:
        """Return the seconds this clock was advanced by."""
        return self._passed_us / 1_000_000

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Raises `ValueError` for a negative number."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self._passed_us += round(seconds * 1_000_000)


class FixedEntropy:
    """The stream SHA-256(seed, counter): the same bytes in every run. Implements `Entropy`."""

    def __init__(self, seed: bytes = b"") -> None:
        self._seed = seed
        self._counter = 0
        self._lock = threading.Lock()

    def token(self, size: int) -> bytes:
        """Return the next `size` bytes of the stream, from a fresh counter on."""
        blocks = b""
        with self._lock:
            while len(blocks) < size:
                blocks += hashlib.sha256(self._seed + self._counter.to_bytes(8, "big")).digest()
                self._counter += 1
        return blocks[:size]

    def fill(self, secret: bytearray) -> None:
        """Overwrite `secret` with the next bytes of the stream."""
        secret[:] = self.token(len(secret))
