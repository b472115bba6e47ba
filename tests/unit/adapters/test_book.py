# SPDX-License-Identifier: Apache-2.0
"""The timeline: every line of a log has a row, whatever its bytes are; nothing is claimed to be proved."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.adapters.cli.book import log_names, parse_log, read_book
from runner.adapters.cli.trace import moment
from runner.kernel.errors import TraceError

NAME = "000007-" + "0" * 32 + ".jsonl"


def line(kind: str, **body: object) -> bytes:
    record = {"body": body, "kind": kind, "prev": "0" * 64, "seq": 0, "ts": 1_767_225_600_000_000}
    return json.dumps({**record, "task": "a" * 32}).encode() + b"\n"


def seal() -> bytes:
    return json.dumps({"kind": "seal", "note": "x", "seq": 1}).encode() + b"\n"


def test_a_row_says_when_what_and_how_it_was_decided() -> None:
    denied = line("egress", backend="remote", decision="denied", reason="above-ceiling", **{"class": "C2"})
    log = parse_log(NAME, denied)
    row = log.rows[0]
    assert (log.number, row.kind, row.decision, row.data_class, row.who) == (
        *(7, "egress", "denied", "C2", "remote"),
    )
    assert (row.note, row.task, row.time_us) == ("reason above-ceiling", "a" * 32, 1_767_225_600_000_000)


@pytest.mark.parametrize(("granted", "word"), [(True, "granted"), (False, "refused")])
def test_an_approval_says_what_the_person_answered(word: str, *, granted: bool) -> None:
    assert parse_log(NAME, line("approval", by="user", granted=granted)).rows[0].decision == word


def test_i8_a_lowering_says_from_what_to_what_and_which_sends_rest_on_it() -> None:
    by_yes = line(
        "declassify", id="1" * 32, approval="c" * 32, backend="remote", **{"from": "C2", "to": "C1"}
    )
    by_rule = line("declassify", id="2" * 32, rule="redaction", **{"from": "C2", "to": "C0"})
    resting = line("egress", decision="allowed", declassify="1" * 32, **{"class": "C1"})
    other = line("egress", decision="allowed", **{"class": "C1"})
    rows = parse_log(NAME, by_yes + resting + by_rule + other + resting).rows
    assert [row.note for row in rows] == [
        "C2 counts as C1, by the yes to call cccccccc, sends that rest on it: 1, 4",
        "rests on record 0",
        "C2 counts as C0, rule redaction, sends that rest on it: none",
        "",
        "rests on record 0",
    ]


def test_a_log_is_closed_by_its_close_record_and_a_seal_only() -> None:
    whole = line("close", reason="done") + seal()
    assert parse_log(NAME, whole).closed
    assert not parse_log(NAME, line("close", reason="done")).closed
    assert not parse_log(NAME, whole + seal()).closed
    assert not parse_log(NAME, whole + b"x").closed


@pytest.mark.parametrize("bad", [b"", b"x", b"[]", b"1", b"NaN", b'{"a":NaN}', b"[" * 100_000, b"\xff"])
def test_a_line_that_is_no_record_is_a_row_that_says_so(bad: bytes) -> None:
    rows = parse_log(NAME, bad + b"\n" + seal()).rows
    assert [row.kind for row in rows] == ["unreadable line", "seal"]


def test_bytes_after_the_last_line_are_torn() -> None:
    assert parse_log(NAME, seal() + b'{"kind"').rows[-1].kind == "torn line"


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "body", "ts", "class", "decision", "granted", "id", "declassify"]), inner
        )
    ),
)


@given(st.lists(st.binary(max_size=40) | json_like.map(lambda value: json.dumps(value).encode())))
def test_any_bytes_have_one_row_per_line(lines: list[bytes]) -> None:
    data = b"\n".join(lines)
    rows = parse_log(NAME, data).rows
    assert len(rows) == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    assert [row.seq for row in rows] == list(range(len(rows)))


def test_a_book_is_its_logs_in_order_and_nothing_else(tmp_path: Path) -> None:
    names = [f"{number:06d}-{'0' * 32}.jsonl" for number in (0, 2, 10, 1_000_000)]
    for name in [*names, "writer.lock", "note.jsonl"]:
        (tmp_path / name).write_bytes(seal())
    assert log_names(tmp_path) == names
    assert [log.number for log in read_book(tmp_path, 10)] == [10]
    with pytest.raises(TraceError, match="no log 3"):
        read_book(tmp_path, 3)
    with pytest.raises(TraceError, match="there is no record"):
        read_book(tmp_path / "elsewhere")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "secret").write_bytes(seal())
    (tmp_path / "book" / NAME).symlink_to(tmp_path / "secret")
    with pytest.raises(TraceError, match="cannot be read"):
        read_book(tmp_path / "book")


def test_times_are_utc_to_the_second() -> None:
    assert moment(1_767_225_600_000_000) == "2026-01-01 00:00:00"
    assert (moment(None), moment(10**30), moment(-(10**30))) == ("", "no time", "no time")
