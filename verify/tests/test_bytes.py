# SPDX-License-Identifier: Apache-2.0
"""Bytes, hashes and keys: every byte of a line counts, and everything has one spelling (I4)."""

from __future__ import annotations

import hashlib
import json

import akaion_verify as av
import bookbuilder as bb
import pytest
from hypothesis import given
from hypothesis import strategies as st

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
LEAVES = st.one_of(
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.booleans(),
    st.none(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def refusal(line: bytes) -> str:
    with pytest.raises(av.Fault) as caught:
        av.parse_line(line)
    return caught.value.code


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"\xef\xbb\xbf{}",
        b'{"a":1.0}',
        b'{"a":1e3}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":9007199254740992}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":1,"a":1}',
        b'{"A":1}',
        b'{"":1}',
        b'{"a-b":1}',
        b'{"1a":1}',
        b'{"a' + b"a" * 64 + b'":1}',
        b'{"a":"\\ud800"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\xff"}',
        b'{"a":"\t"}',
        b'{"a":' * 8 + b"{}" + b"}" * 8,
        b"[" * 9 + b"]" * 9,
        b"[" * 100_000,
        b"{}{}",
    ],
)
def test_what_is_outside_the_profile_is_bad_json(line: bytes) -> None:
    assert refusal(line) == "bad-json"


@pytest.mark.parametrize(
    "line",
    [
        b" {}",
        b"{} ",
        b"{}\r",
        b'{"a": 1}',
        b'{"b":1,"a":1}',
        b'{"a":-0}',
        b'{"a":"\\u0041"}',
        b'{"a":"\\/"}',
        b'{"a":"\\u001F"}',
        b'{"a":"\\u00e8"}',
    ],
)
def test_a_second_spelling_is_not_canonical(line: bytes) -> None:
    assert refusal(line) == "not-canonical"


def test_a_line_may_be_one_mebibyte_and_no_more() -> None:
    longest = b'"' + b"a" * (av.MAX_LINE - 2) + b'"'
    assert av.parse_line(longest) == "a" * (av.MAX_LINE - 2)
    assert refusal(longest[:-1] + b'a"') == "line-too-long"


def test_depth_eight_is_allowed() -> None:
    assert av.parse_line(b"[" * 8 + b"]" * 8) == [[[[[[[[]]]]]]]]


@given(VALUES)
def test_the_canonical_encoding_of_a_value_parses_to_it(value: object) -> None:
    line = bb.encode(value)
    assert json.dumps(av.parse_line(line), sort_keys=True) == json.dumps(value, sort_keys=True)


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused(line: bytes) -> None:
    try:
        answer = bb.encode(av.parse_line(line))
    except av.Fault as fault:
        answer = fault.code
    assert answer in {line, "bad-json", "not-canonical"}


@pytest.mark.parametrize("size", range(20))
def test_the_growing_tree_has_the_roots_of_the_definition(size: int) -> None:
    leaves = [hashlib.sha256(bytes([number])).digest() for number in range(size)]
    tree = av.Tree()
    for item in leaves:
        tree.append(item)
    assert tree.root() == bb.merkle_root(leaves)
    assert tree.size == size


def test_the_link_before_the_first_line_is_the_stated_constant() -> None:
    assert av.FIRST_PREV == "87cfa3c2b0a5f0d3ba2e5be78db95d6ae50ba66067f008aac4a2be1221f51084"


def test_a_verifier_key_parses() -> None:
    key = av.parse_vkey(bb.DEVICE_VKEY)
    assert key == av.Key(
        bb.DEVICE_NAME, bb.key_id(bb.DEVICE_NAME, bb.public(bb.DEVICE)), bb.public(bb.DEVICE)
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name",
        bb.DEVICE_VKEY.replace("device+", "other+"),
        bb.DEVICE_VKEY.rstrip("=") + " ",
        bb.DEVICE_VKEY + "\n",
        bb.DEVICE_VKEY[:-1],
        bb.vkey("weak", (1).to_bytes(32, "little")),
        bb.vkey("spelled-twice", (2**255 - 19 + 3).to_bytes(32, "little")),
        bb.vkey("short", b"\x07" * 31),
    ],
)
def test_a_malformed_or_weak_verifier_key_is_refused(text: str) -> None:
    assert av.parse_vkey(text) is None


def test_base64_has_one_spelling() -> None:
    assert av.parse_base64("AA==") == b"\x00"
    assert [av.parse_base64(text) for text in ("AB==", "AA", "AA=", "A A==", "AA==\n", "-_==", "\xe8")] == [
        None
    ] * 7
