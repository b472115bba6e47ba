# SPDX-License-Identifier: Apache-2.0
"""What a model is told about tools: everything it needs, and nothing that it may take for its own words."""

import json

from runner.agent.prompts import FORM, in_text
from runner.capability.textcalls import parse_calls
from runner.kernel.messages import ToolSpec

DAYS = ToolSpec(
    name="days_between",
    description="Giorni tra due date, metà compresa.",
    parameters={"type": "object", "properties": {"first": {"type": "string"}}},
)


def test_tools_are_described_as_they_are_each_on_a_line() -> None:
    line = in_text([DAYS]).split("<tools>\n")[1].split("\n</tools>")[0]
    assert json.loads(line) == {
        "name": DAYS.name,
        "description": DAYS.description,
        "parameters": DAYS.parameters,
    }
    assert "metà" in line


def test_a_schema_is_never_called_arguments() -> None:
    """A small model gives it back as the arguments: the word stands in the example only, beside values."""
    told = in_text([DAYS])
    assert told.count('"arguments"') == 1
    assert '"arguments": {"date": "2026-03-01", "days": 30}' in told


def test_the_example_is_read_as_a_call_and_its_tool_is_not_offered() -> None:
    """P2: a model that repeats the example calls nothing."""
    schema = {"type": "object", "properties": {"date": {"type": "string"}, "days": {"type": "integer"}}}
    assert parse_calls(FORM, {"add_days": schema}).calls[0].arguments == {"date": "2026-03-01", "days": 30}
    assert parse_calls(FORM, {DAYS.name: dict(DAYS.parameters)}).reason == "wrong_tool"
