# SPDX-License-Identifier: Apache-2.0
"""Tiers: the order they are tried in, and what a request may not ask for at once."""

import pytest

from runner.kernel.errors import BackendError
from runner.kernel.inference import InferenceReply, InferenceRequest, WrittenCall
from runner.kernel.messages import ToolSpec
from runner.kernel.tiers import Tier, tiers_from

TOOL = ToolSpec(name="look_up", description="Look something up.", parameters={"type": "object"})


@pytest.mark.parametrize(
    ("first", "tried"),
    [
        (Tier.NATIVE, ["native", "constrained", "text"]),
        (Tier.CONSTRAINED, ["constrained", "text"]),
        (Tier.TEXT, ["text"]),
    ],
)
def test_a_profile_says_where_to_begin_and_never_goes_back_up(first: Tier, tried: list[str]) -> None:
    assert tiers_from(first) == tuple(tried)


def test_tools_are_never_offered_together_with_a_schema() -> None:
    InferenceRequest(messages=(), tools=(TOOL,))
    InferenceRequest(messages=(), schema={"type": "object"})
    with pytest.raises(BackendError, match="offers tools and holds its reply to a schema"):
        InferenceRequest(messages=(), tools=(TOOL,), schema={"type": "object"})


def test_what_a_model_wrote_shows_in_no_repr() -> None:
    """I12."""
    call = WrittenCall(name="canary_name", arguments='{"canary": 1}')
    assert "canary" not in repr(InferenceReply(text="canary", finish="stop", calls=(call,))) + repr(call)
