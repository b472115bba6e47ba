# SPDX-License-Identifier: Apache-2.0
"""The device key in a keyring: an object with the public methods of a `keyring` backend stands for one."""

import sys
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from runner.capability.transport.osring import SERVICE, KeyringCustody, KeyringSigner, find_keyring
from runner.kernel.errors import TraceError, TraceUnavailable
from runner.testing import FixedEntropy, broken


class Vault:
    """A backend in memory, as `keyring.backend.KeyringBackend` is called."""

    priority = 5

    def __init__(self) -> None:
        self.secrets: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.secrets.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.secrets[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.secrets[service, username]


def custody(vault: object, seed: bytes = b"") -> KeyringCustody:
    return KeyringCustody("book", entropy=FixedEntropy(seed), find=lambda: vault)  # type: ignore[arg-type,return-value]  # any stands in


def test_the_key_is_made_once_and_kept_as_one_secret() -> None:
    vault = Vault()
    keys = custody(vault)
    assert not keys.exists()
    first = keys.signer()
    assert keys.exists()
    assert list(vault.secrets) == [(SERVICE, "book")]
    assert custody(vault, b"other").signer().public_key == first.public_key
    assert (first.custody, keys.place) == ("keyring", "akaion-runner/book")
    Ed25519PublicKey.from_public_bytes(first.public_key).verify(first.sign(b"text"), b"text")


def test_i5_no_repr_shows_the_key() -> None:
    vault = Vault()
    signer = custody(vault).signer()
    assert repr(signer) == "<KeyringSigner custody=keyring>"


def test_the_next_key_takes_the_place_of_the_other() -> None:
    vault = Vault()
    keys = custody(vault)
    old, new = keys.signer().public_key, keys.successor().public_key
    assert keys.successor().public_key == new != old
    assert keys.signer().public_key == old
    keys.promote()
    assert keys.signer().public_key == new
    assert list(vault.secrets) == [(SERVICE, "book")]
    keys.promote()  # nothing is next: nothing happens
    assert keys.signer().public_key == new


@pytest.mark.parametrize("text", ["", "zz", "ab" * 31, "AB" * 32])
def test_i7_a_secret_that_is_no_key_is_refused(text: str) -> None:
    vault = Vault()
    vault.set_password(SERVICE, "book", text)
    with pytest.raises(TraceError, match="holds no device key"):
        custody(vault).signer()


@pytest.mark.parametrize("method", ["get_password", "set_password"])
def test_i12_a_keyring_that_fails_is_not_quoted(method: str) -> None:
    fault = RuntimeError("locked: said too much")
    gets = method == "get_password"
    locked = broken(Vault(), get_password=fault) if gets else broken(Vault(), set_password=fault)
    with pytest.raises(TraceUnavailable, match=r"RuntimeError\. Fix: unlock it") as told:
        KeyringSigner(locked, "book", entropy=FixedEntropy())
    assert "too much" not in str(told.value)


def test_i7_a_keyring_that_forgets_at_once_is_refused() -> None:
    forgetful = broken(Vault(), get_password=None)
    with pytest.raises(TraceError, match="holds no device key"):
        KeyringSigner(forgetful, "book", entropy=FixedEntropy())


def test_the_keyring_of_the_session_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    vault = Vault()
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_keyring=lambda: vault))
    assert find_keyring() is vault


@pytest.mark.parametrize("priority", [0, -1, 0.5], ids=["fail", "null", "plaintext"])
def test_a_session_without_a_keyring_that_keeps_secrets_says_so(
    priority: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below 1 the package counts backends that hold nothing, fail, or write a file in clear text."""
    poor = SimpleNamespace(priority=priority)
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_keyring=lambda: poor))
    with pytest.raises(TraceUnavailable, match=r"no keyring that keeps a secret\. Fix: .*custody to file"):
        find_keyring()


def test_without_the_package_the_fix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(TraceUnavailable, match=r"pip install 'akaion-runner\[keyring\]'"):
        find_keyring()
