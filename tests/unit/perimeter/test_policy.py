# SPDX-License-Identifier: Apache-2.0
"""I1, I5: the policy kernel is total and default-deny; grants cannot reach the perimeter's own files."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.config import Grant
from runner.kernel.decisions import Allow, Deny
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, ToolCall
from runner.kernel.ports import Root
from runner.perimeter.grants import compile_policy, policy_document
from runner.perimeter.policy import Policy, ToolGrant, decide, narrow
from runner.testing import FakeTool

TOOL = FakeTool(name="read_file")
ROOTS = (Root(alias="a", path="/g/a"), Root(alias="b", path="/g/b"))
POLICY = Policy(
    grants={
        "read_file": ToolGrant(
            tool="read_file",
            effect=TOOL.effect,
            parameters=TOOL.spec.parameters,
            path_arguments=TOOL.path_arguments,
            roots=ROOTS,
        )
    }
)
ORIGIN = Block(id="b0", kind=BlockKind.GOAL, text="", label=Label())
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def call(tool: str, arguments: Any) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments, origin=ORIGIN)


@given(
    tool=st.sampled_from(["read_file", "other", "shell", ""]),
    arguments=st.dictionaries(st.text(max_size=6), json_values, max_size=3),
)
def test_i1_decide_is_total_and_allows_only_what_the_grant_says(tool: str, arguments: dict[str, Any]) -> None:
    verdict = decide(POLICY, call(tool, arguments))
    assert isinstance(verdict, Allow | Deny)
    if isinstance(verdict, Allow):
        assert tool == "read_file"
        assert set(arguments) == {"path"}
        granted = narrow(POLICY, call(tool, arguments))
        assert granted.roots


@given(path=st.text(alphabet="ab./\\\0x ", max_size=12))
def test_i1_an_allowed_path_stays_under_a_root_by_its_spelling(path: str) -> None:
    verdict = decide(POLICY, call("read_file", {"path": path}))
    if isinstance(verdict, Allow) and path not in {"", "."}:
        first, *rest = path.removesuffix("/").split("/")
        assert first in {"a", "b"}
        assert all(part not in {"", ".", ".."} and "\0" not in part and "\\" not in part for part in rest)


def blame(where: tuple[str | int, ...], problem: str, fix: str) -> Mistake:
    return Mistake(file="p.yaml", line=1, where=".".join(map(str, where)), problem=problem, fix=fix)


def compiled(*grants: dict[str, Any], tool: FakeTool = TOOL) -> Policy:
    return compile_policy(
        [Grant.model_validate(grant) for grant in grants],
        {tool.spec.name: tool, "list_dir": FakeTool(name="list_dir")},
        resolve=lambda path: path,
        unwritable=["/users/u/.akaion", "/users/u/profile.yaml", "/srv/trace"],
        untouchable=["/users/u/.akaion/keys"],
        blame=blame,
    )


@pytest.mark.parametrize(
    "path", ["/users/u/.akaion/keys", "/users/u/.akaion/keys/device.key", "/users/u/.akaion", "/users/u", "/"]
)
@pytest.mark.parametrize("access", ["read", "write"])
def test_i5_no_grant_reaches_the_keys(path: str, access: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compiled({"tool": "read_file", "access": access, "paths": [path]})
    assert caught.value.mistakes[0].where == "policy.grants.0.paths.0"


@pytest.mark.parametrize(
    "path", ["/users/u/profile.yaml", "/srv/trace", "/srv", "/srv/trace/x", "/users/u/.akaion/m"]
)
def test_i5_no_grant_writes_where_profile_trace_or_home_lie(path: str) -> None:
    with pytest.raises(ConfigError, match="may write"):
        compiled({"tool": "read_file", "access": "write", "paths": [path]})
    assert compiled({"tool": "read_file", "access": "read", "paths": ["/srv"]}).grants["read_file"].roots


def test_i1_a_grant_of_an_unknown_tool_is_a_mistake_and_all_are_found_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        compiled(
            {"tool": "shell"}, {"tool": "read_file", "paths": ["/users/u/.akaion/keys"]}, {"tool": "browser"}
        )
    assert [mistake.where for mistake in caught.value.mistakes] == [
        "policy.grants.0.tool",
        "policy.grants.1.paths.0",
        "policy.grants.2.tool",
    ]


def test_overlapping_grants_take_the_highest_class() -> None:
    policy = compiled(
        {"tool": "read_file", "paths": [{"path": "/s", "class": "C1"}]},
        {"tool": "list_dir", "paths": [{"path": "/s/cases", "class": "C3"}, "/elsewhere"]},
    )
    assert policy.grants["read_file"].roots[0].declared is DataClass.C3
    assert [root.declared for root in policy.grants["list_dir"].roots] == [DataClass.C3, None]


def test_a_folder_nobody_classified_keeps_its_neighbour_at_least_at_the_default() -> None:
    policy = compiled(
        {"tool": "read_file", "paths": [{"path": "/s", "class": "C0"}]},
        {"tool": "list_dir", "paths": ["/s/x"]},
    )
    assert policy.grants["read_file"].roots[0].declared is DataClass.C2


def test_roots_of_one_name_get_aliases_of_their_own() -> None:
    policy = compiled({"tool": "read_file", "paths": ["/x/cases", "/y/cases"]})
    assert [root.alias for root in policy.grants["read_file"].roots] == ["cases", "cases-2"]


def test_the_policy_document_changes_with_every_grant() -> None:
    one = policy_document(compiled({"tool": "read_file", "paths": ["/s"]}))
    other = policy_document(compiled({"tool": "read_file", "paths": ["/s"], "approval": "ask"}))
    assert one != other
