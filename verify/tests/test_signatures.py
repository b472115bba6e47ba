# SPDX-License-Identifier: Apache-2.0
"""Strict Ed25519: public vectors, and the cases that common suites miss (I4: a seal cannot be forged)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import akaion_verify as av
import bookbuilder as bb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

VECTORS = Path(__file__).resolve().parents[2].parent / "shared" / "vectors" / "ed25519"
IDENTITY = (1).to_bytes(32, "little")


def small_order_encodings() -> list[bytes]:
    """The eight points of small order, canonical, and every other 32-byte spelling of them."""
    order_eight = 0
    for y in range(2, 200):
        point = av.point_decode(y.to_bytes(32, "little"))
        if point is None:
            continue
        torsion = av.IDENTITY
        for bit in f"{av.L:b}":  # L times a point leaves only its part of small order
            torsion = av.point_add(torsion, torsion)
            if bit == "1":
                torsion = av.point_add(torsion, point)
        fourfold = av.point_add(av.point_add(torsion, torsion), av.point_add(torsion, torsion))
        if av.point_encode(fourfold) != IDENTITY:
            order_eight = torsion
            break
    points, total = [], av.IDENTITY
    for _ in range(8):
        points.append(av.point_encode(total))
        total = av.point_add(total, order_eight)
    assert len(set(points)) == 8
    spellings = set(points)
    for data in points:
        y = int.from_bytes(data, "little") & (1 << 255) - 1
        for second in (y, y + av.P):
            if second < 1 << 255:
                spellings |= {(second | sign << 255).to_bytes(32, "little") for sign in (0, 1)}
    return sorted(spellings)


def test_public_vectors_all_agree() -> None:
    if not VECTORS.is_dir():
        pytest.skip("public vectors are not beside this checkout")
    groups = json.loads((VECTORS / "wycheproof_ed25519.json").read_text(encoding="utf-8"))["testGroups"]
    answers = [
        av.signature_ok(
            bytes.fromhex(group["publicKey"]["pk"]), bytes.fromhex(test["msg"]), bytes.fromhex(test["sig"])
        )
        == (test["result"] == "valid")
        for group in groups
        for test in group["tests"]
    ]
    assert (len(answers), answers.count(True)) == (151, 151)


@pytest.mark.parametrize("key", small_order_encodings(), ids=bytes.hex)
def test_a_key_of_small_order_verifies_nothing(key: bytes) -> None:
    """With the identity as key and R = S*B, an unstrict verifier accepts this for any message."""
    s = 5
    r = av.point_encode(av.comb_times(av.base_comb(), s))
    assert not av.signature_ok(key, b"any message", r + s.to_bytes(32, "little"))
    assert av.point_decode(key) is None


@pytest.mark.parametrize("r", small_order_encodings(), ids=bytes.hex)
def test_an_r_of_small_order_is_refused(r: bytes) -> None:
    """The signer can make R the identity: S = k*a. The equation then holds, and is refused all the same."""
    digest = hashlib.sha512(hashlib.sha256(b"device").digest()).digest()
    a = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    key = bb.public(bb.DEVICE)
    k = int.from_bytes(hashlib.sha512(r + key + b"m").digest(), "little") % av.L
    s = k * a % av.L
    if r == IDENTITY:
        base, negated = av.base_comb(), av.negated_key_comb(key)
        assert negated is not None
        left = av.point_add(av.comb_times(base, s), av.comb_times(negated, k))
        assert av.point_encode(left) == r, "the equation itself holds"
    assert not av.signature_ok(key, b"m", r + s.to_bytes(32, "little"))


def test_s_plus_the_group_order_is_refused() -> None:
    key, signature = bb.public(bb.DEVICE), bb.DEVICE.sign(b"m")
    s = int.from_bytes(signature[32:], "little")
    assert av.signature_ok(key, b"m", signature)
    assert not av.signature_ok(key, b"m", signature[:32] + (s + av.L).to_bytes(32, "little"))


@pytest.mark.parametrize(
    "number", [av.P, av.P + 1, av.P + 3, 2**255 - 1, 1 | 1 << 255, (av.P - 1) | 1 << 255]
)
def test_second_spellings_of_a_point_are_refused(number: int) -> None:
    assert av.point_decode(number.to_bytes(32, "little")) is None


@given(st.binary(max_size=80), st.binary(max_size=200), st.binary(max_size=80))
@settings(max_examples=60, deadline=None)
def test_any_bytes_give_an_answer(key: bytes, message: bytes, signature: bytes) -> None:
    assert av.signature_ok(key, message, signature) is False


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200))
@settings(max_examples=20, deadline=None)
def test_agrees_with_another_implementation(seed: bytes, message: bytes) -> None:
    key = bb.secret(seed.hex())
    signature = key.sign(message)
    assert av.signature_ok(bb.public(key), message, signature)
    assert not av.signature_ok(bb.public(key), message + b"!", signature)
