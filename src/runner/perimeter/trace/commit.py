# SPDX-License-Identifier: Apache-2.0
"""Commitments and digests: how the trace speaks of content without holding it.

A commitment is salted, since payloads are guessable and a bare hash would tell (I12). Digests are for
values that hide nothing: the policy, the configuration, capabilities, the text an approver was shown.
Each has its own prefix, so none can be taken for another. Where salts are kept is a port's business.
"""

import hmac
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from runner.kernel.canonical import canonical_bytes
from runner.kernel.messages import Json

SALT_BYTES: Final = 32


def commitment(salt: bytes, payload: bytes) -> str:
    """Return the 64 hex digits of HMAC-SHA-256 under `salt` of "akaion-commit/1", 0x00, `payload`."""
    return hmac.new(salt, b"akaion-commit/1\0" + payload, sha256).hexdigest()


def policy_digest(policy: Json) -> str:
    """Return the digest of a policy for the header; raise `ValueError` if it has no canonical form."""
    return sha256(b"akaion-policy/1\0" + canonical_bytes(policy)).hexdigest()


def config_digest(config: Json) -> str:
    """Return the digest of a configuration for the header; raise `ValueError` as above."""
    return sha256(b"akaion-config/1\0" + canonical_bytes(config)).hexdigest()


def caps_digest(capabilities: Json) -> str:
    """Return the digest of a backend's capabilities; raise `ValueError` as above."""
    return sha256(canonical_bytes(capabilities)).hexdigest()


def prompts_digest(texts: Sequence[str]) -> str:
    """Return the digest of what the runner says to a model, `texts` in their order: its prompts' version."""
    return sha256(b"akaion-prompts/1\0" + canonical_bytes(list(texts))).hexdigest()


def rendering_digest(rendering: str) -> str:
    """Return the digest of the exact text that an approver saw."""
    return sha256(rendering.encode("utf-8", "surrogatepass")).hexdigest()
