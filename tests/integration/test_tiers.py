# SPDX-License-Identifier: Apache-2.0
"""The tiers with the smallest real model: form, not intelligence. No call runs that does not fit (P2)."""

import json
from pathlib import Path

import pytest

from runner import Budget, HostTool, open_profile
from runner.agent.loop import AgentLoop
from runner.agent.steps import FailedStep, ToolStep
from runner.capability.home import akaion_home

WEIGHTS = akaion_home() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(not WEIGHTS.is_file(), reason="no weights: make models"),
]
xllamacpp = pytest.importorskip("xllamacpp")


@pytest.mark.parametrize("tier", ["native", "constrained", "text"])
def test_p2_whatever_a_real_model_writes_only_calls_that_fit_are_run(
    tier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    ran: list[object] = []

    def days_until(year: int, month: int) -> str:
        """Count the days until a month of a year."""
        ran.append((year, month))
        return "80"

    local = {
        "runtime": "embedded",
        "model": "smollm2-135m-instruct",
        "weights": str(WEIGHTS),
        "context": 2048,
        "threads": 1,
        "tier": tier,
    }
    grants = [{"tool": "days_until", "trusted": True}]
    with open_profile(
        "detached", tools=[HostTool(days_until)], policy={"grants": grants}, inference={"local": local}
    ) as rt:
        result = AgentLoop(client=rt.client, tools=rt.tools, budget=Budget(steps=2, tokens=2500)).run(
            "How many days until April 2026?"
        )
        lines = [line for log in rt.trace_path.glob("*.jsonl") for line in log.read_text("utf-8").split("\n")]
    assert all(type(value) is int for call in ran for value in call)  # type: ignore[attr-defined]  # pairs
    calls = [step for step in result.steps if isinstance(step, ToolStep)]
    assert len(ran) == sum(step.status == "ok" for step in calls)
    ends = [json.loads(line)["body"] for line in lines if '"kind":"egress_result"' in line]
    asked = [each["tier"] for each in ends if "tier" in each]
    assert asked[0] == tier
    failed = [step.failure.value for step in result.steps if isinstance(step, FailedStep)]
    assert [each["failure"] for each in ends if "failure" in each] == failed
