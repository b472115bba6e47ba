# SPDX-License-Identifier: Apache-2.0
"""The tests of drift: known values, and that too few samples say nothing (I7)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.adapters.ledger.drift import ALPHA, ENOUGH, drift, fisher, mann_whitney
from runner.adapters.ledger.run import BackendFacts, Run, Send

MEASURES = 6


def send(*, latency_ms: int = 100, tokens: int = 40, failure: str = "", status: str = "ok") -> Send:
    return Send(
        seq=5,
        ts=0,
        channel="inference",
        backend="remote",
        locality="remote",
        data_class="C1",
        decision="allowed",
        reason="",
        bytes=500,
        status=status,
        latency_us=latency_ms * 1000,
        tier="constrained",
        failure=failure,
        bytes_back=80,
        tokens_out=tokens,
    )


def run(number: int, *sends: Send, model: str = "m", caps: str = "c", prompts: str = "p") -> Run:
    backend = BackendFacts(name="remote", model=model, locality="remote", caps_digest=caps, seq=3)
    return Run(
        task=f"{number:032x}",
        log=number,
        first=2,
        last=9,
        verified=True,
        start_us=number * 1_000_000,
        end_us=number * 1_000_000 + 5,
        outcome="done",
        goal_class="C1",
        mark="C1",
        matters=0,
        profile="attached",
        policy_digest="0",
        config_digest="0",
        prompts=prompts,
        writer="w",
        backends=(backend,),
        sends=sends,
        tools={},
        denied_tools={},
        denied_calls={},
        approvals={},
        lowered={},
        entries=(),
    )


def finding(runs: Sequence[Run], name: str) -> str:
    found = drift(runs, "remote")
    assert found is not None
    return next(each.finding for each in found.measures if each.name == name)


def test_mann_whitney_is_the_normal_approximation_of_the_textbook() -> None:
    """U = 0 of two times ten: z = 49.5 / sqrt(175) = 3.7418, so p = 0.000183."""
    assert mann_whitney(range(10), range(10, 20)) == pytest.approx(0.000183, abs=5e-7)
    assert mann_whitney([1.0] * 9, [1.0] * 9) == 1.0


def test_fisher_is_exact_for_the_tables_of_the_textbooks() -> None:
    """The lady and her tea, 3 of 4 against 1 of 4: 34/70. And 1 of 10 against 11 of 14."""
    assert fisher(3, 4, 1, 4) == pytest.approx(34 / 70)
    assert fisher(1, 10, 11, 14) == pytest.approx(0.002759456, abs=1e-9)
    assert fisher(0, 8, 0, 8) == 1.0


VALUES = st.lists(st.integers(0, 50).map(float), min_size=2, max_size=12)


@given(VALUES, VALUES)
def test_mann_whitney_is_a_probability_and_has_no_side(one: list[float], other: list[float]) -> None:
    p = mann_whitney(one, other)
    assert 0 <= p <= 1
    assert p == pytest.approx(mann_whitney(other, one))


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_fisher_is_a_probability_and_has_no_side(of: int, other_of: int, data: st.DataObject) -> None:
    met, other = data.draw(st.integers(0, of)), data.draw(st.integers(0, other_of))
    p = fisher(met, of, other, other_of)
    assert 0 < p <= 1
    assert p == pytest.approx(fisher(other, other_of, met, of))


def test_i7_one_run_too_few_on_a_side_and_nothing_is_said() -> None:
    before = [run(n, send(latency_ms=100 + n)) for n in range(ENOUGH)]
    after = [run(ENOUGH + n, send(latency_ms=900 + n)) for n in range(ENOUGH)]
    assert finding([*before, *after], "latency") == "changed"
    short = [*before[1:], *after[1:]]
    assert finding(short, "latency") == "too few"
    found = drift(short, "remote")
    assert found is not None
    assert found.finding == "too few"
    assert (found.measures[0].before_n, found.measures[0].after_n, found.measures[0].p) == (7, 7, None)


def test_a_run_is_one_sample_however_many_replies_it_has() -> None:
    before, after = [send(latency_ms=100 + n) for n in range(50)], [send(latency_ms=900)] * 50
    assert finding([run(0, *before), run(1, *after)], "latency") == "too few"


def test_what_did_not_change_is_not_called_changed() -> None:
    runs = [run(n, send(latency_ms=100 + n % 5, tokens=30 + n % 3)) for n in range(4 * ENOUGH)]
    found = drift(runs, "remote")
    assert found is not None
    assert found.finding == "no change seen"
    assert {each.finding for each in found.measures} == {"no change seen"}


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("runs with a reply of no use", send(failure="malformed_json")),
        ("runs with a send that failed", send(status="error")),
        ("tokens of a reply", send(tokens=400)),
    ],
    ids=["failure", "fault", "tokens"],
)
def test_a_backend_that_got_worse_is_found_and_by_that_figure_alone(name: str, bad: Send) -> None:
    runs = [run(n, send()) for n in range(12)] + [run(12 + n, bad) for n in range(12)]
    found = drift(runs, "remote")
    assert found is not None
    assert len(found.measures) == MEASURES
    assert [each.name for each in found.measures if each.finding == "changed"] == [name]
    assert all(each.p < ALPHA / MEASURES for each in found.measures if each.name == name and each.p)


def test_another_model_capabilities_or_prompts_are_named_with_the_run_that_met_them_first() -> None:
    runs = [run(0, send()), run(1, send(), model="n"), run(2, send(), model="n", caps="d", prompts="q")]
    found = drift(runs, "remote")
    assert found is not None
    changes = [(each.what, each.before, each.after, each.log) for each in found.changes]
    assert changes == [("model", "m", "n", 1), ("capabilities", "c", "d", 2), ("prompts", "p", "q", 2)]
    assert found.finding == "changed"


def test_what_a_log_learns_of_a_backend_is_no_change_of_it() -> None:
    """In each log it is first what was declared and then what was found: they alternate, nothing changes."""
    declared, known = run(0, send(), caps="declared"), run(0, send(), caps="found")
    later = [replace(each, log=1, start_us=9_000_000) for each in (declared, known)]
    found = drift([declared, known, *later], "remote")
    assert found is not None
    assert found.changes == ()


def test_a_backend_that_nobody_asked_has_no_drift() -> None:
    assert drift([run(0, send())], "local") is None
