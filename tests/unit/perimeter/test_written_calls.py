# SPDX-License-Identifier: Apache-2.0
"""Whatever a model writes, what comes of it are calls that fit offered tools, or one class of failure. P2."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.errors import ReplyInvalid
from runner.kernel.inference import InferenceReply, InferenceRequest, WrittenCall
from runner.kernel.messages import ToolSpec
from runner.kernel.tiers import MAX_CALLS, CallFailure
from runner.perimeter.replies import Asked, hear, understood
from runner.perimeter.validate import fits

OPEN: dict[str, Any] = {"type": "object"}
CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0}, "text": {"type": "string", "maxLength": 9}},
    "required": ["n"],
    "additionalProperties": False,
}
OFFERED = {"note": CLOSED, "anything": OPEN, "odd": {"type": "object", "required": "n", "properties": []}}
TOOLS = tuple(ToolSpec(name=name, description="", parameters=schema) for name, schema in OFFERED.items())
NAMES = st.sampled_from([*["note"] * 9, *OFFERED, "", "NOTE", "note "])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)
FITTING = st.fixed_dictionaries({"n": st.integers(0, 9)}, optional={"text": st.text(max_size=9)})
OBJECTS = FITTING | st.dictionaries(
    st.sampled_from(["n", "text", "x"]) | st.text(max_size=4), VALUES, max_size=4
)
TEXTS = OBJECTS.map(lambda value: json.dumps(value, default=str)) | st.text() | st.just("[" * 100_000)
CALLS = st.builds(WrittenCall, name=NAMES, arguments=TEXTS | OBJECTS)
REPLIES = st.builds(
    InferenceReply,
    text=st.text(),
    finish=st.sampled_from(["stop", "length", "tool_calls", ""]),
    calls=st.lists(CALLS, max_size=4).map(tuple) | CALLS.map(lambda call: (call,) * (MAX_CALLS + 1)),
)
NATIVE = Asked(request=InferenceRequest(messages=(), tools=TOOLS))


def outcome(reply: InferenceReply) -> tuple[WrittenCall, ...] | CallFailure:
    """What comes of `reply` to an offer of `TOOLS`; any other exception is a failure of the test."""
    try:
        return understood(hear(reply, NATIVE, None), NATIVE).calls
    except ReplyInvalid as invalid:
        return CallFailure(invalid.failure or "a reply of no use has a class")


@given(REPLIES)
def test_p2_whatever_calls_are_written_all_fit_offered_tools_or_none_is_made(reply: InferenceReply) -> None:
    found = outcome(reply)
    if isinstance(found, CallFailure):
        return
    assert [call.name for call in found] == [call.name for call in reply.calls]
    assert len(found) <= MAX_CALLS
    assert reply.finish != "length"
    for call in found:
        assert isinstance(call.arguments, dict), "read, never text"
        assert fits(call.arguments, OFFERED[call.name])


@given(st.lists(FITTING, min_size=1, max_size=4), CALLS, st.integers(0, 4))
def test_p2_one_bad_call_anywhere_takes_all_others_with_it(
    good: list[dict[str, Any]], other: WrittenCall, place: int
) -> None:
    calls = [WrittenCall(name="note", arguments=value) for value in good]
    calls.insert(place, other)
    alone = outcome(InferenceReply(text="", finish="stop", calls=(other,)))
    together = outcome(InferenceReply(text="", finish="stop", calls=tuple(calls)))
    assert isinstance(together, CallFailure) == isinstance(alone, CallFailure)
    if isinstance(alone, CallFailure):
        assert together is alone


@given(CALLS)
def test_a_thousand_calls_in_one_reply_are_counted_and_none_of_them_is_read(call: WrittenCall) -> None:
    """The bound comes before any work that grows with the calls."""
    reply = InferenceReply(text="", finish="stop", calls=(call,) * 1000)
    assert outcome(reply) is CallFailure.TOO_MANY_CALLS
