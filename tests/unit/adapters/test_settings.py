# SPDX-License-Identifier: Apache-2.0
"""I6: every key of a profile can be overridden from the command line, and a bad override is refused."""

import pytest
import typer

from runner.adapters.cli.profiles import parse_settings


def test_settings_become_nested_sections_with_yaml_values() -> None:
    settings = ["budget.seconds=120", "inference.local.model=m", "inference.local.context=512", "a.b=[1, x]"]
    assert parse_settings(settings) == {
        "budget": {"seconds": 120},
        "inference": {"local": {"model": "m", "context": 512}},
        "a": {"b": [1, "x"]},
    }


@pytest.mark.parametrize("setting", ["budget", "budget=1", "=1", "a.=1", ".a=1", "a.b", "a.b={", "a.b.c=1"])
def test_a_setting_that_is_not_a_dotted_key_and_a_value_is_refused(setting: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_settings(["a.b=1", setting] if setting == "a.b.c=1" else [setting])
