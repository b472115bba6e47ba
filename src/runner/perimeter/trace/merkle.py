# SPDX-License-Identifier: Apache-2.0
"""The hashes of `akaion-trace/1` and the Merkle tree over the lines of a log.

Owns leaf, node and root hashes (RFC 6962 §2.1, RFC 9162 §2.1.1) and consistency proofs. Knows nothing of
records. Carries I4: a root fixes every line under it, and a line's hash is the chain link of the next one.
"""

from collections.abc import Sequence
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

    def __init__(self, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        """Return the tree of `size` leaves with these `peaks`; raise `ValueError` when they do not fit."""
        if size.bit_count() != len(peaks):
            raise ValueError("a tree has one peak for each bit of its size")
        self.size = size
        self._peaks = list(peaks)

    @property
    def peaks(self) -> tuple[bytes, ...]:
        """The 32-byte peaks: with `size`, all there is to know to grow the tree."""
        return tuple(self._peaks)

    def add(self, leaf: bytes) -> None:
        """Add the 32-byte leaf hash `leaf` at the end."""
        peak, carry = leaf, self.size
        while carry & 1:
            peak = node_hash(self._peaks.pop(), peak)
            carry >>= 1
        self._peaks.append(peak)
        self.size += 1

    def root(self) -> bytes:
        """Return the 32-byte root over all leaves; SHA-256 of nothing when there are none."""
        if not self._peaks:
            return sha256(b"").digest()
        root, *rest = reversed(self._peaks)
        for peak in rest:
            root = node_hash(peak, root)
        return root


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the 32-byte root over `leaves`."""
    tree = Tree()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root()


def consistency_path(leaves: Sequence[bytes], old: int) -> list[bytes]:
    """Return the proof that the tree over `leaves` continues that over its first `old` (RFC 6962 §2.1.2).

    `old` is from 0, whose proof is empty, to the number of leaves.
    """
    return _subproof(leaves, old, known=True) if old else []


def _subproof(leaves: Sequence[bytes], old: int, *, known: bool) -> list[bytes]:
    """Return SUBPROOF(old, leaves, known) of RFC 6962: `known` when the old root is that of these leaves."""
    if old == len(leaves):
        return [] if known else [root_of(leaves)]
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if old <= half:
        return [*_subproof(leaves[:half], old, known=known), root_of(leaves[half:])]
    return [*_subproof(leaves[half:], old - half, known=False), root_of(leaves[:half])]


def is_consistent(old: int, old_root: bytes, size: int, root: bytes, path: Sequence[bytes]) -> bool:
    """Return whether `path` shows that the tree of `size` continues the one of `old` (RFC 9162 §2.1.4.2).

    Total. A tree without leaves is continued by any, which is no proof: then the answer is no.
    """
    if old == size:
        return size > 0 and not path and old_root == root
    if not 0 < old < size or not path:
        return False
    first, *rest = [old_root, *path] if old & (old - 1) == 0 else path
    index, last = old - 1, size - 1
    while index & 1:
        index, last = index >> 1, last >> 1
    before = after = first
    for sibling in rest:
        if last == 0:
            return False
        if index & 1 or index == last:
            before, after = node_hash(sibling, before), node_hash(sibling, after)
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            after = node_hash(after, sibling)
        index, last = index >> 1, last >> 1
    return last == 0 and (before, after) == (old_root, root)
