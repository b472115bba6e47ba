# SPDX-License-Identifier: Apache-2.0
"""The hashes of `akaion-trace/1` and the Merkle tree over the lines of a log.

Owns leaf, node and root hashes (RFC 6962 §2.1, RFC 9162 §2.1.1). Knows nothing of records. Carries I4:
a root fixes every line under it, and the hash of a line is also the chain link of the next one.
"""

from hashlib import sha256
from typing import Final

CHAIN_START: Final = sha256(b"akaion-trace/1\n").hexdigest()
"""`prev` of the first record of every log."""


def leaf_hash(line: bytes) -> bytes:
    """Return the 32-byte leaf hash of `line`, given without its newline."""
    return sha256(b"\x00" + line).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the 32-byte hash of the node over two 32-byte hashes."""
    return sha256(b"\x01" + left + right).digest()


class Tree:
    """A growing Merkle tree that keeps only its peaks: one hash for each bit set in `size`.

    `size` counts the leaves. Adding a leaf costs O(log n) hashes, and so does the root.
    """

    __slots__ = ("_peaks", "size")

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Add the 32-byte leaf hash `leaf` at the end."""
        self._peaks.append(leaf)
        carry = self.size
        while carry & 1:
            right, left = self._peaks.pop(), self._peaks.pop()
            self._peaks.append(node_hash(left, right))
            carry >>= 1
        self.size += 1

    def root(self) -> bytes:
        """Return the 32-byte root over all leaves; SHA-256 of nothing when there are none."""
        if not self._peaks:
            return sha256(b"").digest()
        root, *rest = reversed(self._peaks)
        for peak in rest:
            root = node_hash(peak, root)
        return root
