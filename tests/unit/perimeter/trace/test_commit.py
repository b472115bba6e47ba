# SPDX-License-Identifier: Apache-2.0
"""I12: commitments and digests are those of the format, each under its own prefix."""

import hmac
from hashlib import sha256

import pytest

from runner.kernel.messages import JsonObject
from runner.perimeter.trace.commit import (
    caps_digest,
    commitment,
    config_digest,
    policy_digest,
    rendering_digest,
)


def test_i12_a_commitment_is_a_mac_under_the_salt() -> None:
    expected = hmac.digest(b"s" * 32, b"akaion-commit/1\0payload", "sha256").hex()
    assert commitment(b"s" * 32, b"payload") == expected
    assert commitment(b"t" * 32, b"payload") != expected


def test_digests_are_canonical_and_prefixed() -> None:
    value: JsonObject = {"b": 1, "a": "à"}
    canonical = '{"a":"à","b":1}'.encode()
    assert policy_digest(value) == sha256(b"akaion-policy/1\0" + canonical).hexdigest()
    assert config_digest(value) == sha256(b"akaion-config/1\0" + canonical).hexdigest()
    assert caps_digest(value) == sha256(canonical).hexdigest()
    assert rendering_digest("à") == sha256("à".encode()).hexdigest()


def test_a_value_without_canonical_form_has_no_digest() -> None:
    with pytest.raises(ValueError, match="float"):
        policy_digest({"a": 0.5})


def test_i7_a_rendering_with_a_lone_surrogate_has_a_digest() -> None:
    assert rendering_digest("\ud800") != rendering_digest("\ud801")
