# SPDX-License-Identifier: Apache-2.0
"""A model is asked by the runner's own code: on record, held to what was offered, and nothing runs."""

import json
from typing import Any

import pytest

from runner.adapters.evaluation.asking import Asking
from runner.adapters.evaluation.dataset import Item
from runner.adapters.evaluation.score import score
from runner.kernel.messages import ToolSpec
from runner.kernel.tiers import Tier
from runner.testing import Truncated

ADD = ToolSpec(
    name="add",
    description="Add.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    },
)
OTHER = ToolSpec(name="other", description="Else.", parameters=ADD.parameters)
ITEM = Item(id="i", category="c", question="Add 5.", tools=(ADD, OTHER), right=(("add", {"a": [5]}),))
CHOSEN, FILLED = json.dumps({"tool": "add"}), json.dumps({"a": 5})


def asked(make_world: Any, *replies: Any, **options: Any) -> tuple[Any, Any]:
    world = make_world(replies=replies, **options)
    asking = Asking("m", world.client, world.perimeter.seal_tools(()))
    return asking.propose(ITEM, Tier.CONSTRAINED), world


def test_a_proposal_is_what_the_runner_would_run_and_nothing_runs(make_world: Any) -> None:
    """P2: a call that is proposed leaves no decision and no call on record, only the two sends."""
    proposal, world = asked(make_world, CHOSEN, FILLED)
    assert proposal.calls == (("add", {"a": 5}),)
    assert (proposal.failure, proposal.failed) == (None, ())
    assert score(ITEM, Tier.CONSTRAINED, proposal) == "right"
    assert len(world.records("egress")) == 2
    assert world.records("policy_decision") == world.records("tool_call") == []


def test_the_model_is_offered_the_tools_of_the_item_and_no_others(make_world: Any) -> None:
    _, world = asked(make_world, CHOSEN, FILLED)
    choice, filling = world.backend.requests
    assert choice.schema["properties"]["tool"]["enum"] == ["add", "other", "answer"]
    assert filling.schema == ADD.parameters
    said = [block.text for message in choice.messages for block in message.blocks]
    assert "Add 5." in said
    assert "- add: Add." in said[0]


def test_replies_that_cannot_be_used_are_counted_and_asked_for_once_more(make_world: Any) -> None:
    proposal, _ = asked(make_world, CHOSEN, Truncated(text='{"a'), FILLED)
    assert proposal.calls == (("add", {"a": 5}),)
    assert proposal.failed == ("truncated",)


def test_a_model_that_stays_wrong_has_the_class_of_its_last_failure(make_world: Any) -> None:
    proposal, _ = asked(make_world, CHOSEN, Truncated(text='{"a'), '{"a":"five"}')
    assert score(ITEM, Tier.CONSTRAINED, proposal) == "schema_violation"
    assert proposal.failed == ("truncated", "schema_violation")


def test_a_choice_to_answer_is_no_call(make_world: Any) -> None:
    proposal, _ = asked(make_world, json.dumps({"tool": "answer"}))
    assert score(ITEM, Tier.CONSTRAINED, proposal) == "declined"


def test_a_question_that_may_not_leave_is_denied_and_is_no_fault_of_the_model(make_world: Any) -> None:
    """P1: the question passes the gate like any other."""
    proposal, world = asked(make_world, CHOSEN, FILLED, local=False, ceiling=None)
    assert score(ITEM, Tier.CONSTRAINED, proposal) == "denied"
    assert world.backend.transport.sent == []


@pytest.mark.parametrize("error", [pytest.param(OSError(), id="broken")])
def test_a_backend_that_fails_is_no_fault_of_the_model(make_world: Any, error: Exception) -> None:
    proposal, _ = asked(make_world, error)
    assert score(ITEM, Tier.CONSTRAINED, proposal) == "refused"
