# SPDX-License-Identifier: Apache-2.0
"""Configuration (I6): every key can be overridden, in a file and by a caller, and no way out is inherited."""

import types
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from typing import Any, TypeAlias, get_args, get_origin

import pytest
from pydantic import BaseModel
from ruamel.yaml import YAML

from runner.capability.profile import read_profile
from runner.kernel.config import Config, parse_config
from runner.kernel.errors import ConfigError, Mistake

Judged: TypeAlias = Callable[..., Config]
Mistakes: TypeAlias = Callable[..., list[Mistake]]

REMOTE = """inference:
  remote:
    backend: openai
    endpoint: https://models.example
    model: large
"""


def leaves(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The dotted place of every key a profile may hold, lists counted as one key."""
    for name, info in model.model_fields.items():
        here = (*path, info.alias or name)
        section = next((kind for kind in _kinds(info.annotation) if _is_section(kind)), None)
        if section is None:
            yield here
        else:
            yield from leaves(section, here)


def _kinds(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is types.UnionType else (annotation,)


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


LEAVES = sorted(leaves(Config))

# Another value than the attached profile's, for every key, over LOCAL_HTTP and REMOTE.
ANOTHER: dict[tuple[str, ...], Any] = {
    ("profile",): "appliance",
    ("perimeter", "max_egress_class"): "C0",
    ("perimeter", "classifier_fault"): "as_c3",
    ("perimeter", "redaction"): "on",
    ("perimeter", "declassification"): "ask",
    ("perimeter", "registers", "clients"): "clients.yaml",
    ("perimeter", "registers", "own_identity"): "own.yaml",
    ("perimeter", "registers", "public"): "public.csv",
    ("perimeter", "locality_required", "C2"): "L1",
    ("perimeter", "locality_required", "C3"): "L1",
    ("perimeter", "public_texts"): "~/statutes",
    ("policy", "grants"): [{"tool": "read_file", "paths": ["~/Documents"], "approval": "ask"}],
    ("inference", "prefer"): "remote",
    ("inference", "timeout_s"): 60,
    ("inference", "local", "runtime"): "embedded",
    ("inference", "local", "model"): "another",
    ("inference", "local", "weights"): "~/models/a.gguf",
    ("inference", "local", "endpoint"): "http://127.0.0.1:9999",
    ("inference", "local", "context"): 512,
    ("inference", "local", "threads"): 2,
    ("inference", "local", "tier"): "text",
    ("inference", "local", "embeddings"): "bge-m3",
    ("inference", "local", "embeddings_endpoint"): "http://127.0.0.1:9998",
    ("inference", "remote", "backend"): "akaion",
    ("inference", "remote", "endpoint"): "https://other.example",
    ("inference", "remote", "model"): "small",
    ("inference", "remote", "max_class"): "C0",
    ("inference", "remote", "credential"): "file:~/token",
    ("inference", "remote", "tier"): "native",
    ("inference", "remote", "embeddings"): "small-vectors",
    ("budget", "steps"): 3,
    ("budget", "tokens"): 1000,
    ("budget", "seconds"): 30,
    ("trace", "path"): "~/trace",
    ("trace", "keys"): "~/keys",
    ("trace", "custody"): "process:/run/signer/socket",
    ("trace", "seal_every"): 1,
}
ONLY_ONE_VALUE = {
    ("perimeter", "fail_closed"),
    ("perimeter", "classifier"),
    ("perimeter", "enforcement"),
    ("policy", "default"),
    ("trace", "sign"),
}


def overlay(data: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Put `value` at `path` of `data`, making sections on the way."""
    section = data
    for part in path[:-1]:
        section = section.setdefault(part, {})
    section[path[-1]] = value
    return data


def at(config: Config, path: tuple[str, ...]) -> Any:
    value: Any = config.model_dump(by_alias=True, mode="json")
    for part in path:
        value = value[part]
    return value


def base() -> dict[str, Any]:
    """A practice's own file, with a remote backend, and a local one reached by HTTP."""
    remote = {"backend": "openai", "endpoint": "https://models.example", "model": "large"}
    local = {"runtime": "llamacpp", "endpoint": "http://127.0.0.1:8080", "embeddings": "e5"}
    return {
        "profile": "attached",
        "perimeter": {"max_egress_class": "C1"},
        "inference": {"local": local, "remote": remote},
    }


def yaml(data: Mapping[str, Any]) -> str:
    text = StringIO()
    YAML(typ="safe", pure=True).dump(data, text)
    return text.getvalue()


def test_every_key_of_the_configuration_is_tried() -> None:
    assert set(LEAVES) == ANOTHER.keys() | ONLY_ONE_VALUE


@pytest.mark.parametrize("path", LEAVES, ids=".".join)
def test_i12_no_mistake_about_a_key_quotes_its_value(path: tuple[str, ...]) -> None:
    secret = "sk-0123456789"
    with pytest.raises(ConfigError) as wrong:
        parse_config(overlay(base(), path, {"x": secret}), file="p", locate=lambda _: 0)
    assert secret not in f"{wrong.value}{wrong.value!r}{wrong.value.mistakes!r}"
    assert wrong.value.__cause__ is None


@pytest.mark.parametrize("path", ANOTHER, ids=".".join)
def test_every_key_can_be_overridden_in_a_file_and_by_a_caller(judged: Judged, path: tuple[str, ...]) -> None:
    value = ANOTHER[path]
    mine = overlay(base(), path, value)
    if path == ("inference", "local", "runtime"):
        mine["inference"]["local"] |= {"endpoint": None, "embeddings": None}
    config = judged(yaml(mine))
    assert at(config, path) != at(judged(yaml(base())), path)
    expected = Config.model_validate(config.model_dump(by_alias=True))
    assert config == expected
    if path == ("policy", "grants"):
        [grant] = config.policy.grants
        assert (grant.tool, grant.approval, grant.paths[0].path) == ("read_file", "ask", "~/Documents")
    else:
        assert at(config, path) == value
    if path[:2] != ("inference", "remote") and path not in {("profile",), ("inference", "local", "runtime")}:
        assert judged(yaml(base()), **overlay({}, path, value)) == config


def test_a_section_keeps_what_a_file_does_not_mention(judged: Judged) -> None:
    config = judged("profile: detached\nbudget:\n  steps: 3\n")
    shipped = read_profile("detached", {}).data["budget"]
    assert config.budget.steps == 3
    assert (config.budget.tokens, config.budget.seconds) == (shipped["tokens"], shipped["seconds"])


def test_a_list_replaces_a_list(judged: Judged) -> None:
    """Grants are not added to the shipped ones: what a file grants is all it grants (I1)."""
    config = judged("profile: detached\npolicy:\n  grants: []\n")
    assert config.policy.grants == ()


def test_a_remote_backend_is_never_inherited(judged: Judged) -> None:
    assert "remote" in read_profile("attached", {}).data["inference"]
    assert judged("profile: attached\n").inference.remote is None


def test_a_remote_backend_is_never_pieced_together_with_the_shipped_one(mistakes: Mistakes) -> None:
    """Neither endpoint nor credential of the shipped profile completes a practice's own section."""
    found = mistakes("profile: attached\ninference:\n  remote:\n    backend: openai\n")
    assert {mistake.where for mistake in found} == {"inference.remote.endpoint", "inference.remote.model"}


def test_a_remote_backend_is_never_pieced_together_with_a_callers(mistakes: Mistakes) -> None:
    found = mistakes(f"profile: attached\n{REMOTE}", inference={"remote": {"model": "small"}})
    assert {mistake.where for mistake in found} == {"inference.remote.backend", "inference.remote.endpoint"}
