# SPDX-License-Identifier: Apache-2.0
"""The record in memory: a book with what would survive a crash, salts, and a key that anybody can make.

Owns the stores and the words of a header. Nothing is written to a disk.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from runner.kernel.errors import TraceError


@dataclass(slots=True, kw_only=True)
class MemoryLogFile:
    """A log in memory: `data` is all of it, `durable` what would survive a crash. Implements `LogFile`.

    `fault` is raised by the next `append` or `sync`, as a full disk would.
    """

    data: bytes = field(repr=False)
    durable: bytes = field(repr=False)
    fault: OSError | None = None
    closed: bool = False

    def append(self, data: bytes) -> None:
        """Add `data` at the end. Raises `fault`, or `ValueError` once closed."""
        self._check()
        self.data += data

    def sync(self) -> None:
        """Make everything appended durable. Raises `fault`, or `ValueError` once closed."""
        self._check()
        self.durable = self.data

    def close(self) -> None:
        """Close the handle; what was not synced stays out of `durable`."""
        self.closed = True

    def _check(self) -> None:
        if self.closed:
            raise ValueError("this log is closed")
        if self.fault is not None:
            raise self.fault


class MemoryLogStore:
    """A book and its pin in memory. Implements `LogStore`. `files` holds the logs by name."""

    def __init__(self) -> None:
        self.files: dict[str, MemoryLogFile] = {}
        self.pin: bytes | None = None
        self.held = False

    def acquire(self) -> None:
        """Take the lock. Raises `TraceError` when it is taken."""
        if self.held:
            raise TraceError("another writer has this book. Fix: close it first")
        self.held = True

    def release(self) -> None:
        """Give the lock back."""
        self.held = False

    def names(self) -> Sequence[str]:
        """Return the log names, sorted."""
        return sorted(self.files)

    def read(self, name: str) -> bytes:
        """Return the bytes of a log. Raises `FileNotFoundError`."""
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name].data

    def create(self, name: str, head: bytes) -> MemoryLogFile:
        """Make a log that starts with `head`, durably. Raises `FileExistsError`."""
        if name in self.files:
            raise FileExistsError(name)
        self.files[name] = MemoryLogFile(data=head, durable=head)
        return self.files[name]

    def read_pin(self) -> bytes | None:
        """Return the pin, None before the first."""
        return self.pin

    def write_pin(self, pin: bytes) -> None:
        """Replace the pin."""
        self.pin = pin


def header_words(**changed: Any) -> dict[str, Any]:  # noqa: ANN401 - the words of a header are of any type
    """Return what a test's log says of itself in its header, with the `changed` words in their place.

    They are the keywords of `HeaderFacts`; the digests are of nothing.
    """
    return {
        "book": "studio",
        "host": "host",
        "boot_id": "0" * 32,
        "profile": "detached",
        "policy_digest": "1" * 64,
        "config_digest": "2" * 64,
        "backends": ("local",),
        "max_egress_class": "none",
        "enforcement": "cooperative",
        "sandbox": "none",
        "writer": "akaion-runner/test",
        **changed,
    }


class MemorySaltStore:
    """Salts in memory. Implements `SaltStore`. `salts` holds all, `durable` those that were synced."""

    def __init__(self) -> None:
        self.salts: dict[str, bytes] = {}
        self.durable: dict[str, bytes] = {}

    def keep(self, commit: str, salt: bytes) -> None:
        """Remember the salt of `commit`."""
        self.salts[commit] = salt

    def sync(self) -> None:
        """Make every kept salt durable."""
        self.durable = dict(self.salts)


class MemorySigner:
    """An Ed25519 key made from a fixed 32-byte `seed`: the same signatures everywhere. Implements `Signer`.

    For tests and vectors only: anybody can make this key.
    """

    custody = "file"
    """The word of the format that is nearest: a key kept by no one in particular."""

    def __init__(self, seed: bytes = bytes(32)) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the public key."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes, *, header: bytes = b"") -> bytes:  # noqa: ARG002 - the port has it
        """Return the 64-byte signature of `message`."""
        return self._key.sign(message)
