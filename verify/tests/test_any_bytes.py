# SPDX-License-Identifier: Apache-2.0
"""Any bytes give a verdict, and no changed byte of a closed book passes (I4)."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import akaion_verify as av
import bookbuilder as bb
import pytest
from bookbuilder import LogBuilder, Step
from hypothesis import given, settings
from hypothesis import strategies as st

NAME = LogBuilder().name
SMALL = LogBuilder().open().close().content()
WHOLE = LogBuilder().open().play(bb.story()).content()


@pytest.fixture(scope="module")
def desk() -> Path:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "book").mkdir()
        (Path(place) / "pin").write_text(bb.DEVICE_VKEY, encoding="ascii")
        yield Path(place)


def verdict(desk: Path, content: bytes) -> str:
    (desk / "book" / NAME).write_bytes(content)
    return str(av.verify(desk / "book", desk / "pin")["verdict"])


def test_the_unchanged_books_pass(desk: Path) -> None:
    assert (verdict(desk, SMALL), verdict(desk, WHOLE)) == ("PASS", "PASS")


@pytest.mark.parametrize("change", [0x01, 0x20, 0x80])
def test_no_substitution_of_one_byte_passes(change: int, desk: Path) -> None:
    """Every byte of a small closed book, replaced by its neighbour, its other case, and a non-ASCII byte."""
    accepted = [
        at
        for at in range(len(SMALL))
        if verdict(desk, SMALL[:at] + bytes([SMALL[at] ^ change]) + SMALL[at + 1 :]) == "PASS"
    ]
    assert accepted == []


@pytest.mark.slow
def test_no_removal_or_doubling_of_one_byte_passes(desk: Path) -> None:
    edits = [SMALL[:at] + SMALL[at + 1 :] for at in range(len(SMALL))]
    edits += [SMALL[:at] + SMALL[at : at + 1] + SMALL[at:] for at in range(len(SMALL))]
    assert [edit for edit in edits if verdict(desk, edit) == "PASS"] == []


def test_no_truncation_at_a_line_passes(desk: Path) -> None:
    lines = WHOLE.splitlines(keepends=True)
    verdicts = {verdict(desk, b"".join(lines[:count])) for count in range(len(lines))}
    assert verdicts == {"INCOMPLETE"}


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_file_gives_a_verdict(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / NAME).write_bytes(content)
        assert av.verify(Path(place))["verdict"] in {"FAIL", "UNTRUSTED"}


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 2**53 - 1),
        st.text(max_size=6),
        st.sampled_from(["C3", "b1", "other"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KINDS = sorted(av.BODIES)
RECORDS = [json.loads(line) for line in WHOLE.splitlines()]
BODIES = {record["kind"]: record["body"] for record in RECORDS if "body" in record}


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_chained_and_sealed_record_gives_a_verdict(data: st.DataObject) -> None:
    """An insider with the log's key writes what they like: still a verdict, never an exception."""
    kind = data.draw(st.sampled_from([*KINDS, "mystery"]))
    body = dict(BODIES.get(kind, {}))
    for name in data.draw(st.lists(st.sampled_from([*body, "extra", "x_a", "prev_log"]), max_size=2)):
        body[name] = data.draw(VALUES)
    log = LogBuilder(changes={"extensions": ["x_a"]}).open().play(bb.story()[: data.draw(st.integers(0, 38))])
    task = data.draw(st.sampled_from([None, bb.TASK]))
    try:
        log.play([Step("any", kind, body, task)]).seal()
    except UnicodeEncodeError:  # a lone surrogate has no bytes to write
        return
    with tempfile.TemporaryDirectory() as place:
        log.write(Path(place))
        report = av.verify(Path(place))
    assert report["verdict"] in {"FAIL", "UNTRUSTED"}
    assert {reason["code"] for reason in report["reasons"]} <= av.REASONS.keys()


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_any_header_gives_a_verdict(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*LogBuilder().header(), "prev_log", "extensions"]))
    value = data.draw(
        st.one_of(VALUES, st.from_regex(r"[a-z/+]{1,20}\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}", fullmatch=True))
    )
    try:
        log = LogBuilder(changes={name: value}).open().close()
    except UnicodeEncodeError:
        return
    with tempfile.TemporaryDirectory() as place:
        log.write(Path(place))
        assert av.verify(Path(place))["exit"] in {1, 3}
