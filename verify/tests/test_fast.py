# SPDX-License-Identifier: Apache-2.0
"""The shortcuts of `akaion_verify_fast.py` give the answers of `akaion_verify.py`, on every input (I4).

Skipped, each, where its package is not installed: then there is no shortcut, and nothing to compare.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable

import akaion_verify as av
import bookbuilder as bb
import pytest
import test_bytes
import test_rules
import test_signatures
from bookbuilder import LogBuilder, Story
from cryptography.hazmat.primitives.asymmetric import ed25519
from hypothesis import given
from hypothesis import strategies as st

FAST = Path(av.__file__).with_name("akaion_verify_fast.py")
needs_orjson = pytest.mark.skipif(
    importlib.util.find_spec("orjson") is None, reason="orjson is not installed"
)


@pytest.fixture(scope="module")
def fast() -> ModuleType:
    """A second copy of the verifier, with the shortcuts in it."""
    loaded = []
    for name, path in (("second_copy", Path(av.__file__)), ("akaion_verify_fast", FAST)):
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        loaded.append(module)
    copy, shortcuts = loaded
    shortcuts.install(copy)
    return copy


def outcome(parse: Callable[[bytes], object], line: bytes) -> tuple[str, object]:
    try:
        return "value", parse(line)
    except Exception as fault:  # noqa: BLE001 - the two have two classes of this name
        return "fault", getattr(fault, "code", type(fault).__name__)


def test_i4_signatures_of_the_public_vectors_and_of_small_order_are_judged_alike(fast: ModuleType) -> None:
    cases = [(bytes(32), b"", bytes(64)), (bytes(32), b"", b"")]
    if test_signatures.VECTORS.is_dir():
        text = (test_signatures.VECTORS / "wycheproof_ed25519.json").read_text(encoding="utf-8")
        for group in json.loads(text)["testGroups"]:
            key = bytes.fromhex(group["publicKey"]["pk"])
            cases += [(key, bytes.fromhex(t["msg"]), bytes.fromhex(t["sig"])) for t in group["tests"]]
    real = bb.secret("a key")
    right = real.sign(b"message")
    for spelling in test_signatures.small_order_encodings():
        cases += [(spelling, b"message", right), (bb.public(real), b"message", spelling + right[32:])]
        cases += [(spelling, b"message", spelling + bytes(32))]
    seed = hashlib.sha256(b"a key").digest()  # an R that is no point but the neutral one solves the equation
    scalar = int.from_bytes(hashlib.sha512(seed).digest()[:32], "little") & (1 << 254) - 8 | 1 << 254
    neutral = (1).to_bytes(32, "little")
    factor = int.from_bytes(hashlib.sha512(neutral + bb.public(real) + b"message").digest(), "little")
    solved = neutral + (factor * scalar % av.L).to_bytes(32, "little")
    ed25519.Ed25519PublicKey.from_public_bytes(bb.public(real)).verify(solved, b"message")
    cases += [(bb.public(real), b"message", solved)]
    beyond = int.from_bytes(right[32:], "little") + av.L
    cases += [(bb.public(real), b"message", right), (bb.public(real), b"other", right)]
    cases += [(bb.public(real), b"message", right[:32] + beyond.to_bytes(32, "little"))]
    assert fast.signature_ok.__module__ == "akaion_verify_fast"
    assert [case for case in cases if fast.signature_ok(*case) != av.signature_ok(*case)] == []
    assert fast.signature_ok(bb.public(real), b"message", right)


HARD = [
    b'{"a\\"b":1}',
    b'{"a":"\\"A\\":1.5"}',
    b'{"a":["b",1.5]}',
    b'{"a":[1.5]}',
    b'{"a":[-1.5]}',
    b'{"a":1e5}',
    b'{"a":-0}',
    b'{"a":-0.0}',
    b'{"a":9007199254740991}',
    b'{"a":9007199254740992}',
    b'{"a":-9007199254740992}',
    b'{"a":99999999999999999999}',
    b'{"B":1}',
    b'{"a":{"B":1}}',
    b'{"a":"B\\":"}',
    b'{"a":"\\\\","B":1}',
    b'{"a":"\x7f"}',
    b'{"a":"\\u001f"}',
    b'{"a":"\\u001F"}',
    b'{"a":"\\/"}',
    b'{"a":"\xe2\x80\xa8"}',
    b'{"a":null}',
    b'{"b":1,"a":1}',
    b'{"a":1,"a":2}',
    b'{"a": 1}',
    b'{"a":[[[[[[[]]]]]]]}',
    b'{"a":[[[[[[[[]]]]]]]]}',
    b'{"a":[[],[],[],[],[],[],[],[],[],[]]}',
    b'"a"',
    b"1.5",
    b"[1.5]",
    b"\xef\xbb\xbf{}",
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\\ud800"}',
]


@needs_orjson
@pytest.mark.parametrize("line", HARD, ids=repr)
def test_i4_hard_lines_are_judged_alike(fast: ModuleType, line: bytes) -> None:
    assert fast.parse_line.__module__ == "akaion_verify_fast"
    assert outcome(fast.parse_line, line) == outcome(av.parse_line, line)


@needs_orjson
@given(
    line=st.one_of(test_bytes.VALUES.map(bb.encode), st.binary(max_size=40)),
    at=st.integers(0, 99),
    byte=st.binary(max_size=1),
)
def test_i4_any_line_and_any_line_altered_are_judged_alike(
    fast: ModuleType, line: bytes, at: int, byte: bytes
) -> None:
    for each in (line, line[:at] + byte + line[at + 1 :]):
        assert outcome(fast.parse_line, each) == outcome(av.parse_line, each)


@pytest.mark.parametrize("name", ["", *sorted(test_rules.CASES)])
def test_i4_the_reports_on_a_book_are_the_same(fast: ModuleType, folder: Path, pin: Path, name: str) -> None:
    story = Story()
    test_rules.CASES.get(name, lambda _: None)(story)
    LogBuilder().open().play(story).write(folder)
    assert fast.verify(folder, pin) == av.verify(folder, pin)


def test_the_command_takes_the_same_options(folder: Path, pin: Path) -> None:
    LogBuilder().open().play(bb.story()).write(folder)
    reports: list[Any] = []
    for program in (Path(av.__file__), FAST):
        command = [sys.executable, program, folder, "--pin", pin, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        reports.append((done.returncode, json.loads(done.stdout)))
    assert reports[0] == reports[1]
    assert reports[0][0] == 0
