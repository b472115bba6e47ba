# SPDX-License-Identifier: Apache-2.0
"""I4: the root and the chain are those of RFC 6962."""

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from runner.perimeter.trace.merkle import (
    CHAIN_START,
    Tree,
    consistency_path,
    is_consistent,
    leaf_hash,
    node_hash,
    root_of,
)

VECTORS = Path(__file__).resolve().parents[5] / "shared" / "vectors" / "merkle" / "rfc6962_proofs.json"


def naive_root(leaves: list[bytes]) -> bytes:
    """The root by the recursion of RFC 6962 §2.1."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return node_hash(naive_root(leaves[:split]), naive_root(leaves[split:]))


def test_i4_hashes_have_the_prefixes_of_the_format() -> None:
    assert leaf_hash(b"line") == sha256(b"\0line").digest()
    assert node_hash(b"l" * 32, b"r" * 32) == sha256(b"\1" + b"l" * 32 + b"r" * 32).digest()
    assert sha256(b"akaion-trace/1\n").hexdigest() == CHAIN_START


def test_i4_the_growing_root_is_the_recursive_root_at_every_size() -> None:
    tree, leaves = Tree(), list[bytes]()
    assert tree.root() == naive_root([])
    for number in range(70):
        leaves.append(leaf_hash(str(number).encode()))
        tree.add(leaves[-1])
        assert (tree.size, tree.root()) == (number + 1, naive_root(leaves))


def test_i4_the_tree_keeps_one_hash_for_each_bit_of_its_size() -> None:
    tree = Tree()
    for number in range(1000):
        tree.add(leaf_hash(str(number).encode()))
        assert len(tree._peaks) == tree.size.bit_count()


def test_i4_public_inclusion_proofs_lead_to_their_root_with_our_node_hash() -> None:
    if not VECTORS.exists():
        pytest.skip("shared vectors are absent")
    cases = json.loads(VECTORS.read_text()).values()
    proofs = [case for case in cases if "treeSize" in case and not case["wantErr"]]
    assert len(proofs) == 6
    for case in proofs:
        assert _root_by_proof(case) == base64.b64decode(case["root"])


def _root_by_proof(case: dict[str, Any]) -> bytes:
    """Climb from a leaf to the root (RFC 9162 §2.1.3.2)."""
    index, last = case["leafIdx"], case["treeSize"] - 1
    found = base64.b64decode(case["leafHash"])
    for encoded in case["proof"] or []:
        sibling = base64.b64decode(encoded)
        if index & 1 or index == last:
            found = node_hash(sibling, found)
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        index, last = index >> 1, last >> 1
    return found


def test_i4_public_consistency_proofs_are_judged_as_they_say() -> None:
    if not VECTORS.exists():
        pytest.skip("shared vectors are absent")
    cases = {name: case for name, case in json.loads(VECTORS.read_text()).items() if "size1" in case}
    wrong = [name for name, case in cases.items() if _is_consistent(case) == case["wantErr"]]
    assert (len(cases) > 50, wrong) == (True, [])


def _is_consistent(case: dict[str, Any]) -> bool:
    old_root, root = (base64.b64decode(case[name] or "") for name in ("root1", "root2"))
    path = [base64.b64decode(each) for each in case["proof"] or []]
    return is_consistent(case["size1"], old_root, case["size2"], root, path)


def test_i4_every_tree_continues_each_of_its_beginnings_and_no_other() -> None:
    leaves = [leaf_hash(str(number).encode()) for number in range(33)]
    for size in range(len(leaves) + 1):
        for old in range(1, size + 1):
            path = consistency_path(leaves[:size], old)
            ends = (root_of(leaves[:old]), size, root_of(leaves[:size]))
            assert is_consistent(old, *ends, path)
            assert not is_consistent(old, *ends, [*path, leaves[0]])
            forked = root_of([leaf_hash(b"another"), *leaves[1:old]])
            assert not is_consistent(old, forked, *ends[1:], path)
            if path:
                assert not is_consistent(old, *ends, path[:-1])
