# SPDX-License-Identifier: Apache-2.0
"""What the tests of the configuration share: a practice's file read and judged as assembly does it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.capability.profile import read_profile
from runner.kernel.config import Config, parse_config
from runner.kernel.errors import ConfigError, Mistake


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., Config]:
    """Return the configuration in a practice's file that holds a text, with a caller's overrides on top."""

    def judge(text: str, **overrides: Any) -> Config:
        file = tmp_path / "mine.yaml"
        file.write_text(text, encoding="utf-8")
        source = read_profile(file, overrides)
        return parse_config(source.data, file="mine.yaml", locate=source.line)

    return judge


@pytest.fixture
def mistakes(judged: Callable[..., Config]) -> Callable[..., list[Mistake]]:
    """Return the mistakes in a practice's file that holds a text."""

    def refuse(text: str, **overrides: Any) -> list[Mistake]:
        with pytest.raises(ConfigError) as wrong:
            judged(text, **overrides)
        return list(wrong.value.mistakes)

    return refuse
