# SPDX-License-Identifier: Apache-2.0
"""I12: nothing but the vocabulary enters a record, and no error quotes what was refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from runner.kernel.errors import TraceError
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.ports import Locality
from runner.perimeter.trace import records as r

ID, COMMIT = "a" * 32, "b" * 64
SECRET = "Rossi Mario, nato a Genova"
CLASSIFY: dict[str, Any] = {
    "block": "b0",
    "data_class": DataClass.C2,
    "parts": r.Parts(declared=DataClass.C2, default=DataClass.C1),
    "integrity": Integrity.PRACTICE,
    "classifier": "rules-only",
    "version": "rules/1",
    "commit": COMMIT,
}
DECISION: dict[str, Any] = {
    "call_id": ID,
    "tool": "read_file",
    "decision": "allow",
    "rule": "grant",
    "args_commit": COMMIT,
    "data_class": DataClass.C1,
}
EGRESS: dict[str, Any] = {
    "call_id": ID,
    "send_id": ID,
    "channel": "inference",
    "backend": "local",
    "locality": Locality.L1,
    "data_class": DataClass.C1,
    "decision": "allowed",
    "payload_commit": COMMIT,
    "bytes": 3,
}
LOWER: dict[str, Any] = {
    "id": ID,
    "rule": "redact",
    "source": COMMIT,
    "from_class": DataClass.C2,
    "to_class": DataClass.C1,
    "backend": "akaion",
    "expires": 1,
    "commit": COMMIT,
}


def test_i12_a_body_holds_the_members_of_the_format_and_no_absent_one() -> None:
    assert json.loads(r.Classify(**CLASSIFY).text()) == {
        "block": "b0",
        "class": "C2",
        "parts": {"declared": "C2", "default": "C1"},
        "integrity": "practice",
        "classifier": "rules-only",
        "version": "rules/1",
        "inputs": [],
        "commit": COMMIT,
    }
    assert json.loads(r.Egress(**EGRESS).text()) == {
        "call_id": ID,
        "send_id": ID,
        "channel": "inference",
        "backend": "local",
        "locality": "L1",
        "class": "C1",
        "inputs": [],
        "decision": "allowed",
        "payload_commit": COMMIT,
        "bytes": 3,
    }
    lowered = json.loads(r.Declassify(**LOWER).text())
    assert (lowered["from"], lowered["to"]) == ("C2", "C1")


@pytest.mark.parametrize(
    ("make", "given", "field", "value"),
    [
        (r.Classify, CLASSIFY, "block", SECRET),
        (r.Classify, CLASSIFY, "block", "b01"),
        (r.Classify, CLASSIFY, "version", SECRET),
        (r.Classify, CLASSIFY, "version", ""),
        (r.Classify, CLASSIFY, "commit", COMMIT.upper()),
        (r.Classify, CLASSIFY, "commit", COMMIT + "\n"),
        (r.Classify, CLASSIFY, "inputs", (SECRET,)),
        (r.Classify, CLASSIFY, "inputs", ("b0", "b0")),
        (r.Classify, CLASSIFY, "inputs", ["b0"]),
        (r.Classify, CLASSIFY, "integrity", "practice"),
        (r.Classify, CLASSIFY, "data_class", 2),
        (r.PolicyDecision, DECISION, "tool", SECRET),
        (r.PolicyDecision, DECISION, "decision", "maybe"),
        (r.PolicyDecision, DECISION, "replay", {"path": SECRET}),
        (r.PolicyDecision, DECISION, "replay", {SECRET: 1}),
        (r.PolicyDecision, DECISION, "call_id", ID[1:]),
        (r.Classify, CLASSIFY, "classifier", "local:m"),
        (r.Classify, CLASSIFY, "classifier", "rules+local:m+"),
        (r.Classify, CLASSIFY, "classifier", "rules+" + "m" * 101),
        (r.Classify, CLASSIFY, "classifier", "rules+" + "m" * 61 + "+" + "n" * 61),
        (r.Classify, CLASSIFY, "opinion", SECRET),
        (r.Egress, EGRESS, "reason", SECRET),
        (r.Egress, EGRESS, "locality", "L1"),
        (r.Egress, EGRESS, "bytes", -1),
        (r.Egress, EGRESS, "bytes", 2**53),
        (r.Egress, EGRESS, "bytes", True),
        (r.Egress, EGRESS, "bytes", 1.5),
    ],
)
def test_i12_a_value_outside_the_vocabulary_is_refused_and_not_quoted(
    make: Callable[..., r.Record], given: dict[str, Any], field: str, value: object
) -> None:
    make(**given)
    with pytest.raises(TraceError, match=field) as caught:
        make(**{**given, field: value})
    assert "Rossi" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "given", "changes", "problem"),
    [
        (r.Classify, CLASSIFY, {"data_class": DataClass.C3}, "maximum"),
        (r.Classify, CLASSIFY, {"data_class": DataClass.C1}, "maximum"),
        (r.Classify, CLASSIFY, {"opinion": "none", "inputs": ("b1",)}, "an opinion stands"),
        (r.Classify, CLASSIFY, {"classifier": "rules+local:m", "inputs": ("b1",)}, "an opinion stands"),
        (r.Classify, CLASSIFY, {"classifier": "rules+local:m", "opinion": "none"}, "one block"),
        (r.PolicyDecision, DECISION, {"tool": "other"}, "I1"),
        (r.PolicyDecision, DECISION, {"tool": "other", "decision": "deny"}, "tool_commit"),
        (r.PolicyDecision, DECISION, {"tool_commit": COMMIT}, "tool_commit"),
        (r.PolicyDecision, DECISION, {"replay": {f"n{i}": i for i in range(33)}}, "replay"),
        (r.Egress, EGRESS, {"backend": None}, "channel"),
        (r.Egress, EGRESS, {"host_commit": COMMIT}, "channel"),
        (r.Egress, EGRESS, {"channel": "tool"}, "channel"),
        (r.Egress, EGRESS, {"channel": "tool", "backend": None, "host_commit": COMMIT}, "remote"),
        (r.Egress, EGRESS, {"decision": "denied"}, "reason"),
        (r.Declassify, LOWER, {"rule": None}, "exactly one"),
        (r.Declassify, LOWER, {"approval": ID}, "exactly one"),
        (r.Declassify, LOWER, {"to_class": DataClass.C2}, "not lowered"),
    ],
)
def test_fields_of_one_record_must_agree(
    make: Callable[..., r.Record], given: dict[str, Any], changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(TraceError, match=problem):
        make(**{**given, **changes})


def test_i1_an_unknown_tool_never_runs() -> None:
    for tool in ("other", "release"):
        with pytest.raises(TraceError, match="never runs"):
            r.ToolCall(call_id=ID, tool=tool, args_commit=COMMIT, net=False)


def test_i7_nobody_cannot_grant() -> None:
    with pytest.raises(TraceError, match="nobody"):
        r.Approval(
            call_id=ID, by="none", args_commit=COMMIT, rendering_digest=COMMIT, expires=1, granted=True
        )


def test_i10_a_backend_is_local_exactly_when_its_grade_says_so() -> None:
    for locality in Locality:
        given = {"name": "local", "model": "m", "caps_digest": COMMIT, "endpoint_commit": COMMIT}
        local = locality is not Locality.REMOTE
        backend = r.Backend(**given, locality=locality, is_local=local)
        assert json.loads(backend.text())["locality"] == str(locality)
        with pytest.raises(TraceError, match="is_local"):
            r.Backend(**given, locality=locality, is_local=not local)
