# SPDX-License-Identifier: Apache-2.0
"""I7: a decision is matched, never tested, so that no `if decision:` can turn a denial into a permission."""

from typing import get_args

import pytest

from runner.kernel.decisions import (
    Allow,
    Allowed,
    Ask,
    Decision,
    Denied,
    Deny,
    Redacted,
    Release,
    Span,
    ToolVerdict,
)
from runner.kernel.inference import Address, WireRequest
from runner.kernel.labels import BOTTOM, DataClass

WIRE = WireRequest(
    method="POST",
    address=Address(scheme="http", host="127.0.0.1", port=8080),
    path="/v1/chat/completions",
    headers=(),
    body=b"Egregio Avvocato",
)
DECISIONS: list[Decision] = [
    Allowed(wire=WIRE, label=BOTTOM),
    Redacted(wire=WIRE, label=BOTTOM, spans=(Span(pointer="/messages/0", start=0, end=7, kind="person"),)),
    Denied(reason="class-above-ceiling", data_class=DataClass.C3),
    Allow(rule="grant:read_file"),
    Ask(rule="grant:write_file"),
    Deny(rule="no-grant", hint="read_file may read under Studio"),
]
named = pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: type(decision).__name__)


@named
def test_i7_a_decision_has_no_truth_value(decision: Decision) -> None:
    with pytest.raises(TypeError, match="use match and handle every case"):
        bool(decision)
    with pytest.raises(TypeError):
        _ = not decision


@named
def test_a_decision_cannot_be_changed_after_it_was_made(decision: Decision) -> None:
    with pytest.raises((AttributeError, TypeError)):
        decision.rule = "another"  # type: ignore[attr-defined] # the attempt is the test


@named
def test_i12_the_repr_of_a_decision_shows_no_content(decision: Decision) -> None:
    assert "Egregio" not in repr(decision)


def test_i7_both_choices_are_closed_and_every_case_was_tried() -> None:
    assert get_args(Release) == (Allowed, Redacted, Denied)
    assert get_args(ToolVerdict) == (Allow, Ask, Deny)
    known = {kind.__name__ for kind in (*get_args(Release), *get_args(ToolVerdict))}
    assert {kind.__name__ for kind in Decision.__subclasses__()} == known
    assert {type(decision).__name__ for decision in DECISIONS} == known
