# SPDX-License-Identifier: Apache-2.0
"""I4: a seal is a C2SP note, and only the exact note of the exact key is taken."""

from base64 import b64decode, b64encode
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from runner.perimeter.trace.note import (
    check_note,
    checkpoint,
    device_key_name,
    join_note,
    key_id,
    parse_vkey,
    signature_line,
    vkey,
)

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PUBLIC = KEY.public_key().public_bytes_raw()
ORIGIN = "studio/" + "0" * 32
TEXT = checkpoint(ORIGIN, 7, b"r" * 32)
NOTE = join_note(TEXT, [signature_line(ORIGIN, PUBLIC, KEY.sign(TEXT.encode()))])


def test_i4_the_checkpoint_has_three_lines() -> None:
    assert f"{ORIGIN}\n7\n{b64encode(b'r' * 32).decode()}\n" == TEXT


def test_i4_the_key_id_covers_name_algorithm_and_key() -> None:
    assert key_id("a", PUBLIC) == sha256(b"a\n\x01" + PUBLIC).digest()[:4]
    assert key_id("a", PUBLIC) != key_id("b", PUBLIC)


def test_i4_a_vkey_names_the_key_and_reads_back() -> None:
    line = vkey(device_key_name("studio"), PUBLIC)
    name, number, encoded = line.split("+", 2)
    assert (name, number) == ("studio/device", key_id("studio/device", PUBLIC).hex())
    assert b64decode(encoded) == b"\x01" + PUBLIC
    assert parse_vkey(line) == ("studio/device", PUBLIC)


def test_i4_a_vkey_has_one_spelling_only() -> None:
    line = vkey("studio/device", PUBLIC)
    for position in range(len(line)):
        for other in "A+ =":
            changed = line[:position] + other + line[position + 1 :]
            if changed != line:
                with pytest.raises(ValueError, match=r"verifier key|base64"):
                    parse_vkey(changed)


def test_i4_a_note_verifies_under_its_key() -> None:
    check_note(NOTE, TEXT, [(ORIGIN, PUBLIC)])
    assert NOTE.splitlines()[4].startswith(f"\u2014 {ORIGIN} ")


def test_i4_no_changed_note_is_taken() -> None:
    refused = 0
    for position, found in enumerate(NOTE):
        changed = NOTE[:position] + ("A" if found != "A" else "B") + NOTE[position + 1 :]
        with pytest.raises(ValueError, match=r"note|signature|base64"):
            check_note(changed, TEXT, [(ORIGIN, PUBLIC)])
        refused += 1
    assert refused == len(NOTE)


@pytest.mark.parametrize("note", ["", TEXT, TEXT + "\n", NOTE + "\n", NOTE + NOTE, NOTE[:-1]])
def test_i4_a_note_with_other_lines_is_not_taken(note: str) -> None:
    with pytest.raises(ValueError, match=r"note|signature|base64"):
        check_note(note, TEXT, [(ORIGIN, PUBLIC)])


def test_i4_every_signature_that_is_expected_must_be_there() -> None:
    device = Ed25519PrivateKey.from_private_bytes(b"d" * 32)
    keys = [(ORIGIN, PUBLIC), ("studio/device", device.public_key().public_bytes_raw())]
    with pytest.raises(ValueError, match="not a note"):
        check_note(NOTE, TEXT, keys)
    check_note(NOTE + signature_line(*keys[1], device.sign(TEXT.encode())), TEXT, keys)
