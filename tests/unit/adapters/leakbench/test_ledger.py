# SPDX-License-Identifier: Apache-2.0
"""The ledger matches record and requests one to one (I4): what is on one side only is counted."""

import json

import pytest

from runner.adapters.leakbench.ledger import Ledger, Matching
from runner.perimeter.trace.commit import commitment

SALT = bytes(range(32))


def ledger_with(*bodies: bytes, decision: str = "allowed", backend: str = "remote") -> Ledger:
    ledger = Ledger()
    for number, body in enumerate(bodies):
        salt = bytes([number]) + SALT[1:]
        commit = commitment(salt, body)
        ledger.keep(commit, salt)
        fields = {"backend": backend, "decision": decision, "payload_commit": commit}
        ledger.append(json.dumps({"kind": "egress", "body": fields}, separators=(",", ":")).encode() + b"\n")
    return ledger


def matching(recorded: int, received: int, unrecorded: int, unseen: int) -> Matching:
    return Matching(recorded=recorded, received=received, unrecorded=unrecorded, unseen=unseen)


@pytest.mark.parametrize(
    ("sent", "received", "expected"),
    [
        pytest.param([b"a", b"b"], [b"b", b"a"], matching(2, 2, 0, 0), id="all"),
        pytest.param([b"a"], [b"a", b"a"], matching(1, 2, 1, 0), id="sent-twice-recorded-once"),
        pytest.param([b"a", b"a"], [b"a"], matching(2, 1, 0, 1), id="recorded-twice-sent-once"),
        pytest.param([], [b"x"], matching(0, 1, 1, 0), id="unrecorded"),
        pytest.param([b"a"], [], matching(1, 0, 0, 1), id="never-arrived"),
        pytest.param([b"a"], [b"A"], matching(1, 1, 1, 1), id="other-bytes"),
    ],
)
def test_every_request_has_one_record_and_the_reverse(
    sent: list[bytes], received: list[bytes], expected: Matching
) -> None:
    assert ledger_with(*sent).take({"remote"}, received)[1] == expected


def test_a_denied_send_that_arrives_is_on_no_record() -> None:
    """A record of a denial lets nothing leave."""
    _, found = ledger_with(b"a", decision="denied").take({"remote"}, [b"a"])
    assert found == matching(0, 1, 1, 0)


def test_the_record_of_another_backend_does_not_count() -> None:
    assert ledger_with(b"a", backend="local").take({"remote"}, [b"a"])[1].unrecorded == 1


def test_what_was_taken_is_forgotten() -> None:
    ledger = ledger_with(b"a")
    ledger.take({"remote"}, [b"a"])
    assert ledger.take({"remote"}, []) == ((), matching(0, 0, 0, 0))
