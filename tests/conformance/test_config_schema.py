# SPDX-License-Identifier: Apache-2.0
"""The published schema of a profile is the one the code has, and both judge the same data alike (I6)."""

import copy
import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from runner.kernel.config import parse_config
from runner.kernel.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "contracts" / "config.schema.json"
PROFILES = sorted((ROOT / "profiles").glob("*.yaml"))


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def loaded(profile: Path) -> Any:
    """A shipped profile as plain YAML 1.2 data."""
    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 2)
    return yaml.load(profile.read_text(encoding="utf-8"))


def tuples(value: Any) -> Any:
    """The data as `parse_config` takes it: lists as tuples."""
    match value:
        case dict():
            return {key: tuples(item) for key, item in value.items()}
        case list():
            return tuple(tuples(item) for item in value)
        case _:
            return value


def accepts(data: Any) -> bool:
    try:
        parse_config(tuples(data), file="p", locate=lambda _: 0)
    except ConfigError:
        return False
    return True


def changed(path: tuple[str | int, ...], value: Any) -> Any:
    data = copy.deepcopy(loaded(ROOT / "profiles" / "attached.yaml"))
    section = data
    for part in path[:-1]:
        section = section[part]
    section[path[-1]] = value
    return data


def test_the_schema_is_the_generated_one() -> None:
    """Regenerate with `python scripts/config_schema.py`."""
    schema_text = runpy.run_path(str(ROOT / "scripts" / "config_schema.py"))["schema_text"]
    assert SCHEMA.read_text(encoding="utf-8") == schema_text()


def test_there_are_three_profiles() -> None:
    assert [path.stem for path in PROFILES] == ["appliance", "attached", "detached"]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda path: path.stem)
def test_the_shipped_profiles_validate(validator: Draft202012Validator, profile: Path) -> None:
    assert list(validator.iter_errors(loaded(profile))) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("profile",), "cloud"),
        (("perimeter", "max_egress_class"), "C2"),
        (("perimeter", "fail_closed"), False),
        (("perimeter", "classifier_fault"), "allow"),
        (("perimeter", "locality_required", "C3"), "L9"),
        (("policy", "default"), "allow"),
        (("policy", "grants", 0, "tool"), "Read File"),
        (("policy", "grants", 0, "paths"), "~/Studio"),
        (("policy", "grants", 0, "network"), True),
        (("policy", "grants", 0, "paths"), [{"class": "C1"}]),
        (("policy", "grants", 0, "paths"), [""]),
        (("inference", "local", "context"), 1),
        (("inference", "remote", "credential"), "a literal secret"),
        (("policy", "grants", 0, "hosts"), [{"host": "a.example", "credential": "a literal secret"}]),
        (("policy", "grants", 0, "hosts"), [""]),
        (("inference", "remote", "max_class"), "C3"),
        (("budget", "steps"), "8"),
        (("trace",), {"sign": False}),
        (("unheard_of",), 1),
        (("budget", "unheard_of"), 1),
    ],
)
def test_what_the_code_refuses_the_schema_refuses(
    validator: Draft202012Validator, path: tuple[str | int, ...], value: Any
) -> None:
    data = changed(path, value)
    assert not accepts(data)
    assert not validator.is_valid(data)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("perimeter", "max_egress_class"), "C0"),
        (("perimeter", "classifier_fault"), "as_c3"),
        (("policy", "grants"), []),
        (("policy", "grants", 0, "paths"), ["~/A", {"path": "~/B", "class": "C3", "matter": "rossi"}]),
        (
            ("policy", "grants", 0, "hosts"),
            ["a.example.org", {"host": "b.example.org", "credential": "env:TOKEN", "header": "X-Api-Key"}],
        ),
        (("inference", "remote", "max_class"), None),
        (("inference", "remote"), None),
        (("trace",), {"path": "~/trace", "seal_every": 1}),
    ],
)
def test_what_the_code_accepts_the_schema_accepts(
    validator: Draft202012Validator, path: tuple[str | int, ...], value: Any
) -> None:
    data = changed(path, value)
    assert accepts(data)
    assert list(validator.iter_errors(data)) == []
