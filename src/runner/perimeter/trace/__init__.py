# SPDX-License-Identifier: Apache-2.0
"""The tamper-evident record: chain, Merkle root, seals, commitments (I4, I9, I12)."""
