# SPDX-License-Identifier: Apache-2.0
"""P3: a program's own function becomes a tool only if the policy can judge every argument of it."""

from collections.abc import Callable
from typing import Any

import pytest

from runner.capability.tools.host import HostTool
from runner.kernel.errors import SealError
from runner.kernel.ports import GrantedCall


def double(number: int) -> str:
    """Return twice a number."""
    return str(2 * number)


def untyped(number) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001 - the point of the test
    return str(number)


def starred(*numbers: int) -> str:
    return str(numbers)


def named(**numbers: int) -> str:
    return str(numbers)


def positional(number: int, /) -> str:
    return str(number)


def strange(number: Callable[[], object]) -> str:
    return str(number)


def test_a_function_with_types_is_a_tool() -> None:
    tool = HostTool(double)
    assert (tool.spec.name, tool.spec.description) == ("double", "Return twice a number.")
    assert tool.spec.parameters["required"] == ["number"]
    assert tool.spec.parameters["additionalProperties"] is False
    assert tool.run(GrantedCall(arguments={"number": 4}, roots=())).text == "8"


@pytest.mark.parametrize("function", [untyped, starred, named, positional, strange])
def test_an_argument_that_nobody_can_judge_is_refused(function: Any) -> None:
    with pytest.raises(SealError, match=f"tool '{function.__name__}'.*Fix: "):
        HostTool(function)
