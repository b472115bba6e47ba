# SPDX-License-Identifier: Apache-2.0
"""P2: which replies hold calls that may run: those that their model ended, in the form they were asked in."""

from typing import Any

import pytest

from runner.capability.textcalls import TextCallReader
from runner.kernel.errors import ReplyInvalid
from runner.kernel.inference import InferenceReply, InferenceRequest, Usage, WrittenCall
from runner.kernel.messages import ToolSpec
from runner.kernel.tiers import CallFailure, Tier
from runner.perimeter.replies import Asked, hear, understood

LIST = ToolSpec(name="list", description="", parameters={"type": "object", "properties": {}})
CALL = WrittenCall(name="list", arguments="{}")
WRITTEN = '<tool_call>{"name": "list", "arguments": {}}</tool_call>'
FILTERED = ["length", "content_filter", "refusal", "pause_turn", "load", ""]
ASKED = {
    Tier.NATIVE: Asked(request=InferenceRequest(messages=(), tools=(LIST,))),
    Tier.TEXT: Asked(request=InferenceRequest(messages=()), in_text=(LIST,)),
    Tier.CONSTRAINED: Asked(request=InferenceRequest(messages=(), schema={"type": "object"})),
}
REPLIES: dict[Tier, dict[str, Any]] = {
    Tier.NATIVE: {"text": "", "calls": (CALL,)},
    Tier.TEXT: {"text": WRITTEN},
    Tier.CONSTRAINED: {"text": "{}"},
}


def outcome(tier: Tier, **reply: Any) -> CallFailure | int | None:
    """Return how many calls or values a reply comes to, or why to none."""
    asked = ASKED[tier]
    heard = hear(InferenceReply(**{"finish": "stop", **reply}), asked, TextCallReader())
    try:
        said = understood(heard, asked)
    except ReplyInvalid as invalid:
        return invalid.failure
    return len(said.calls) + (said.value is not None)


@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize("finish", ["stop", "tool_calls", "tool_use"])
def test_a_reply_that_its_model_ended_is_used(tier: Tier, finish: str) -> None:
    assert outcome(tier, finish=finish, **REPLIES[tier]) == 1


@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize("finish", FILTERED, ids=lambda word: word or "empty")
def test_p2_a_reply_that_its_model_did_not_end_is_not(tier: Tier, finish: str) -> None:
    assert outcome(tier, finish=finish, **REPLIES[tier]) is CallFailure.TRUNCATED


@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize("finish", ["stop", "tool_calls", "tool_use"])
def test_p2_a_reply_that_took_all_its_tokens_is_cut_off_whatever_its_word(tier: Tier, finish: str) -> None:
    """A server says `tool_calls` of what it could read of a reply that its limit cut."""
    most = ASKED[tier].request.max_tokens
    for tokens, comes_to in (
        (0, 1),
        (most - 1, 1),
        (most, CallFailure.TRUNCATED),
        (most + 1, CallFailure.TRUNCATED),
    ):
        usage = Usage(completion_tokens=tokens)
        assert outcome(tier, finish=finish, usage=usage, **REPLIES[tier]) == comes_to


@pytest.mark.parametrize("text", ["", "Done.", WRITTEN, f"{WRITTEN}{WRITTEN[:20]}"], ids=str)
def test_p2_calls_beside_a_text_that_should_hold_them_never_run(text: str) -> None:
    assert outcome(Tier.TEXT, text=text, calls=(CALL,)) is CallFailure.NO_CALL


def test_p2_of_calls_beside_a_text_and_others_in_it_none_runs() -> None:
    assert outcome(Tier.NATIVE, text=WRITTEN, calls=(CALL,)) is CallFailure.AMBIGUOUS
    assert outcome(Tier.NATIVE, text=WRITTEN) is CallFailure.NO_CALL
    assert outcome(Tier.NATIVE, text="I look.", calls=(CALL,)) == 1


def test_p2_arguments_that_never_came_are_not_an_empty_object() -> None:
    bare = WrittenCall(name="list", arguments="")
    assert outcome(Tier.NATIVE, text="", calls=(bare,)) is CallFailure.MALFORMED_JSON


def test_i8_all_that_a_reply_said_is_its_text() -> None:
    """What is refused is labelled too."""
    for tier in (Tier.NATIVE, Tier.TEXT):
        reply = InferenceReply(text=WRITTEN, finish="stop", calls=(CALL,))
        assert hear(reply, ASKED[tier], TextCallReader()).text == f"{WRITTEN}\nlist {{}}"
