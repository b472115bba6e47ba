# SPDX-License-Identifier: Apache-2.0
"""The device key in the keyring of the operating system.

Owns the custody `keyring`: the seed as one secret of the user's keyring (Secret Service, KWallet, macOS
Keychain), reached through the optional package `keyring`. A keyring is open to every program of a user who is
logged in: it keeps the key from other accounts and from a copied disk, not from the runtime. Errors never
repeat what a keyring says (I12).
"""

import re
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from runner.kernel.errors import TraceError, TraceUnavailable
from runner.kernel.ports import Entropy

SERVICE: Final = "akaion-runner"
_SEED_BYTES: Final = 32
_SEED: Final = re.compile(r"[0-9a-f]{64}")
_RECOMMENDED: Final = 1
"""The least priority of a keyring that keeps a secret secret, as the package `keyring` counts it."""
T = TypeVar("T")


class Keyring(Protocol):
    """The part of `keyring.backend.KeyringBackend` that is used here."""

    @property
    def priority(self) -> float:
        """How good it is: from 1 on it is recommended; below are none at all, and files in clear text."""

    def get_password(self, service: str, username: str) -> str | None:
        """Return a secret; None for none."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a secret."""

    def delete_password(self, service: str, username: str) -> None:
        """Forget a secret."""


def find_keyring() -> Keyring:
    """Return the keyring of this session; raise `TraceUnavailable`, with the fix, when there is none."""
    try:
        import keyring  # noqa: PLC0415 - optional: imported when a profile asks for it
    except ImportError:
        raise TraceUnavailable(
            "the package that reaches the keyring is not installed. "
            "Fix: pip install 'akaion-runner[keyring]', or set trace.custody to file"
        ) from None
    found: Keyring = _asked(keyring.get_keyring)
    if _asked(lambda: float(found.priority)) < _RECOMMENDED:
        raise TraceUnavailable(
            "this session has no keyring that keeps a secret. "
            "Fix: log in where there is one (Secret Service, KWallet, Keychain), or set trace.custody to file"
        )
    return found


class KeyringSigner:
    """The device key kept as `name` in `keyring`, made on first use from `entropy`. Implements `Signer`.

    Raises `TraceUnavailable` when the keyring is locked or fails, and `TraceError` when that is no key.
    """

    __slots__ = ("_key",)

    def __init__(self, keyring: Keyring, name: str, *, entropy: Entropy) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(_seed(keyring, name, entropy))

    def __repr__(self) -> str:
        """Return the custody, never the key."""
        return "<KeyringSigner custody=keyring>"

    @property
    def custody(self) -> str:
        """Where the key lives: `keyring`."""
        return "keyring"

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the Ed25519 public key."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes, *, header: bytes = b"") -> bytes:  # noqa: ARG002 - the runtime is trusted
        """Return the 64-byte Ed25519 signature of `message`."""
        return self._key.sign(message)


class KeyringCustody:
    """The device key in this session's keyring as `name`, the next one beside it. Implements `Custody`."""

    __slots__ = ("_entropy", "_find", "_name", "_next")

    def __init__(self, name: str, *, entropy: Entropy, find: Callable[[], Keyring] = find_keyring) -> None:
        self._name, self._next, self._entropy, self._find = name, f"{name}.next", entropy, find

    @property
    def place(self) -> str:
        """What the secret is called in the keyring."""
        return f"{SERVICE}/{self._name}"

    def exists(self) -> bool:
        """Return whether the keyring has the key; raise `TraceUnavailable`."""
        keyring = self._find()
        return _asked(lambda: keyring.get_password(SERVICE, self._name)) is not None

    def signer(self) -> KeyringSigner:
        """Return the signer of the device key, made on first use; raise `TraceError`."""
        return KeyringSigner(self._find(), self._name, entropy=self._entropy)

    def successor(self) -> KeyringSigner:
        """Return the signer of the next device key; raise `TraceError`."""
        return KeyringSigner(self._find(), self._next, entropy=self._entropy)

    def promote(self) -> None:
        """Put the next key in the place of the other, and forget it as the next; raise `TraceUnavailable`."""
        keyring = self._find()
        seed = _asked(lambda: keyring.get_password(SERVICE, self._next))
        if seed is not None:
            _asked(lambda: keyring.set_password(SERVICE, self._name, seed))
            _asked(lambda: keyring.delete_password(SERVICE, self._next))


def _seed(keyring: Keyring, name: str, entropy: Entropy) -> bytes:
    text = _asked(lambda: keyring.get_password(SERVICE, name))
    if text is None:
        fresh = entropy.token(_SEED_BYTES).hex()
        _asked(lambda: keyring.set_password(SERVICE, name, fresh))
        text = _asked(lambda: keyring.get_password(SERVICE, name))
    if text is None or _SEED.fullmatch(text) is None:
        raise TraceError("the keyring holds no device key there. Fix: restore it, or start a new book")
    return bytes.fromhex(text)


def _asked(question: Callable[[], T]) -> T:
    try:
        return question()
    except Exception as error:  # noqa: BLE001 - a keyring raises what it likes, and none of it is repeated (I12)
        kind = type(error).__name__
        raise TraceUnavailable(
            f"the keyring does not answer: {kind}. Fix: unlock it, or set trace.custody to file"
        ) from None
