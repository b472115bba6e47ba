# SPDX-License-Identifier: Apache-2.0
"""I4: a line is the canonical JSON of what its record says, whatever is in the record, or there is no line.

The writer puts a line together member by member. Here it is made a second time, from one object, by the
encoder that knows nothing of records.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from runner.kernel.canonical import MAX_INTEGER, canonical_bytes
from runner.kernel.errors import TraceError
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.ports import Locality
from runner.perimeter.trace import records as r
from runner.perimeter.trace.chain import MAX_LINE, Chain
from runner.perimeter.trace.merkle import CHAIN_START, leaf_hash
from runner.perimeter.trace.shape import Shape

KINDS = sorted(r.Record.__subclasses__(), key=lambda kind: kind.__name__)
RENAMED = {"data_class": "class", "from_class": "from", "to_class": "to"}
TASK = "a" * 32
FOREIGN: list[Any] = ["\ud800", MAX_INTEGER + 1, -MAX_INTEGER - 1, 0.5, b"", object()]

texts = st.text(max_size=8)  # of any character: quotes, controls, what is outside the vocabulary
plain = texts | st.integers(-MAX_INTEGER, MAX_INTEGER) | st.booleans()
names = st.from_regex(r"[a-z][a-z0-9_]{0,4}", fullmatch=True)
words = plain | st.sampled_from([*DataClass, *Integrity, *Locality])
parts = st.tuples(words, words | st.none()).map(lambda values: filled(r.Parts, values))
fitting = (
    words | st.none() | st.lists(words | parts, max_size=3).map(tuple) | parts | st.dictionaries(names, plain)
)
foreign = st.sampled_from(FOREIGN)
deep = st.integers(4, 7).map(lambda levels: json.loads("[" * levels + "1" + "]" * levels))
strange = (
    st.dictionaries(names, deep, min_size=1)
    | st.dictionaries(texts, plain, min_size=1)
    | st.dictionaries(names, foreign, min_size=1)
    | foreign
)


def filled(kind: type[Any], values: tuple[object, ...]) -> Any:
    """Make one of `kind` that was never checked, with `values` in its fields, over and over."""
    made = object.__new__(kind)
    for number, each in enumerate(fields(kind)):
        object.__setattr__(made, each.name, values[number % len(values)])
    return made


def said(value: object) -> Any:
    """Return what `value` says, as one who reads the line has it."""
    match value:
        case Shape():
            members = {each.name: getattr(value, each.name) for each in fields(value)}  # type: ignore[arg-type]
            return {RENAMED.get(name, name): said(v) for name, v in members.items() if v is not None}
        case DataClass() | Integrity():
            return value.name if isinstance(value, DataClass) else value.name.lower()
        case tuple():
            return [said(item) for item in value]
        case Mapping():
            return dict(value)
        case _:
            return value


def entered(*values: object) -> bytes:
    """Return the line of a record with `values` in its fields; raise as `Chain.entry`."""
    chain = Chain(origin="any/" + TASK, secret=bytearray(b"k" * 32))
    try:
        return chain.entry(filled(r.StepVerdict, values), now_us=1, task=TASK)
    except TraceError:
        assert (chain.size, chain.entries, chain.unsealed, chain.take_leaves()) == (0, 0, 0, ())
        raise


@pytest.mark.parametrize("number", range(len(FOREIGN)))
def test_i4_what_got_into_a_record_past_its_check_and_is_not_canonical_is_refused(number: int) -> None:
    for value in (FOREIGN[number], (FOREIGN[number],), {"a": FOREIGN[number]}, {"a": [FOREIGN[number]]}):
        with pytest.raises(TraceError):
            entered(value)
    for mapping in ({"A": 1}, {"a": json.loads("[" * 6 + "]" * 6)}):
        with pytest.raises(TraceError):
            entered(mapping)


def test_i4_a_line_is_as_long_as_the_format_allows_and_no_longer() -> None:
    room = MAX_LINE - len(entered("", 1, 1).removesuffix(b"\n"))
    assert len(entered("x" * room, 1, 1)) == MAX_LINE + len(b"\n")
    with pytest.raises(TraceError, match="split it"):
        entered("x" * (room + 1), 1, 1)


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    values=st.lists(fitting, min_size=1, max_size=12),
    odd=st.none() | st.tuples(st.integers(0, 11), strange),
    task=st.sampled_from([None, TASK, 'a"b']),
    now=st.sampled_from([0, 1, MAX_INTEGER, MAX_INTEGER + 1, 1.5]),
)
def test_i4_a_line_is_the_canonical_json_of_what_its_record_says(
    kind: type[r.Record], values: list[object], odd: tuple[int, object] | None, task: str | None, now: Any
) -> None:
    if odd is not None:
        values[odd[0] % len(values)] = odd[1]
    record = filled(kind, tuple(values))
    chain = Chain(origin="any/" + TASK, secret=bytearray(b"k" * 32))
    whole = {"body": said(record), "kind": kind.kind, "prev": CHAIN_START, "seq": 0, "ts": now}
    try:
        expected = canonical_bytes(whole if task is None else whole | {"task": task})
    except ValueError:
        expected = b""
    event("a line" if expected else "none")
    try:
        line = chain.entry(record, now_us=now, task=task)
    except TraceError:
        assert not expected
        assert (chain.size, chain.entries, chain.unsealed, chain.take_leaves()) == (0, 0, 0, ())
    else:
        assert line == expected + b"\n"
        assert chain.take_leaves() == (leaf_hash(expected),)
