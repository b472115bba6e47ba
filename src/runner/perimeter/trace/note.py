# SPDX-License-Identifier: Apache-2.0
"""Signed notes: the text of a seal, and keys in the form auditors keep.

Owns the C2SP formats `tlog-checkpoint` and `signed-note`, key ids and verifier keys (vkeys). Holds no
private key: whoever signs hands in a signature. Carries I4 with `merkle`.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ED25519: Final = b"\x01"
"""The kind of a key that signs notes."""
_PUBLIC_BYTES: Final = 32
_KEY_ID_BYTES: Final = 4


def device_key_name(book: str) -> str:
    """Return the name of the device key in the notes of `book`."""
    return f"{book}/device"


def key_id(name: str, public_key: bytes, kind: bytes = ED25519) -> bytes:
    """Return the 4-byte id of a key: the start of SHA-256(name || 0x0A || `kind` || 32-byte key)."""
    return sha256(name.encode() + b"\n" + kind + public_key).digest()[:_KEY_ID_BYTES]


def vkey(name: str, public_key: bytes, kind: bytes = ED25519) -> str:
    """Return the verifier key `name+id+base64` of a 32-byte Ed25519 public key."""
    encoded = b64encode(kind + public_key).decode("ascii")
    return f"{name}+{key_id(name, public_key, kind).hex()}+{encoded}"


def parse_vkey(line: str, kind: bytes = ED25519) -> tuple[str, bytes]:
    """Return the name and the 32-byte public key of a vkey; raise `ValueError` if it is not exactly one."""
    name, _, rest = line.partition("+")
    raw = decoded(rest.partition("+")[2])
    if len(raw) != 1 + _PUBLIC_BYTES or vkey(name, raw[1:], kind) != line:
        raise ValueError("not a verifier key")
    return name, raw[1:]


def checkpoint(origin: str, size: int, root: bytes) -> str:
    """Return the signed text of a seal: origin, number of leaves, base64 of the root, a line each."""
    return f"{origin}\n{size}\n{b64encode(root).decode('ascii')}\n"


def signature_line(name: str, public_key: bytes, signature: bytes) -> str:
    """Return the line of a note that holds the 64-byte `signature` of the key `name`."""
    encoded = b64encode(key_id(name, public_key) + signature).decode("ascii")
    return f"\N{EM DASH} {name} {encoded}\n"


def join_note(text: str, signature_lines: Sequence[str]) -> str:
    """Return the note: `text`, an empty line, the signatures."""
    return text + "\n" + "".join(signature_lines)


def check_note(note: str, text: str, keys: Sequence[tuple[str, bytes]]) -> None:
    """Check that `note` is `text` signed by exactly `keys` (name, public key), in that order.

    Raises `ValueError` otherwise.
    """
    head = text + "\n"
    *lines, rest = note[len(head) :].split("\n")
    if not note.startswith(head) or rest or len(lines) != len(keys):
        raise ValueError("not a note over this text")
    for line, (name, public_key) in zip(lines, keys, strict=True):
        signature = decoded(line.rpartition(" ")[2])[_KEY_ID_BYTES:]
        if line + "\n" != signature_line(name, public_key, signature):
            raise ValueError("not a signature line of this key")
        try:
            Ed25519PublicKey.from_public_bytes(public_key).verify(signature, text.encode())
        except InvalidSignature:
            raise ValueError("a signature does not verify") from None


def decoded(text: str) -> bytes:
    """Return the bytes of standard base64 in its one spelling; raise `ValueError`."""
    try:
        data = b64decode(text, validate=True)
    except (Base64Error, ValueError):
        raise ValueError("not base64") from None
    if b64encode(data).decode("ascii") != text:
        raise ValueError("not base64")
    return data
