# SPDX-License-Identifier: Apache-2.0
"""A bare function offered as a tool is a mistake that says what to do."""

from typing import Any

import pytest

from runner import ConfigError, open_profile


def double(number: int) -> str:
    """Double a number."""
    return str(2 * number)


def test_a_bare_function_is_refused_with_the_fix(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=r"a function is no tool.*HostTool\(function\)"):
        open_profile("detached", tools=[double])  # type: ignore[list-item]  # that is the point
