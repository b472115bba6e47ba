# SPDX-License-Identifier: Apache-2.0
"""I1, I5: the policy kernel is total and default-deny; grants cannot reach the perimeter's own files."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.commands import CommandRules
from runner.kernel.config import Grant
from runner.kernel.decisions import Allow, Deny
from runner.kernel.errors import ConfigError, Mistake, ToolError
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, ToolCall
from runner.kernel.ports import Effect, Root, Tool
from runner.perimeter.grants import compile_policy, pin_policy, policy_document
from runner.perimeter.policy import Policy, ToolGrant, decide, narrow, reach
from runner.perimeter.trace.commit import policy_digest
from runner.testing import FakeTool

TOOL = FakeTool(name="read_file", veils=True)
INDEX = FakeTool(name="index")
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


def test_i6_the_digest_of_a_policy_names_the_programs_and_their_rules() -> None:
    """A rule that was widened is another policy, though the profile is the same word for word."""
    grant = POLICY.grants["read_file"]
    ls = CommandRules(name="ls", digest="1" * 64)
    policies = [
        POLICY,
        *(
            Policy(grants={"read_file": replace(grant, binaries=binaries)})
            for binaries in ({}, {"ls": ls}, {"ls": replace(ls, digest="2" * 64)})
        ),
    ]
    digests = {policy_digest(policy_document(policy)) for policy in policies}
    assert len(digests) == len(policies)


def blame(where: tuple[str | int, ...], problem: str, fix: str) -> Mistake:
    return Mistake(file="p.yaml", line=1, where=".".join(map(str, where)), problem=problem, fix=fix)


def compiled(*grants: dict[str, Any], tool: Tool = TOOL, host: frozenset[str] = frozenset()) -> Policy:
    return compile_policy(
        [Grant.model_validate(grant) for grant in grants],
        {tool.spec.name: tool, "list_dir": FakeTool(name="list_dir", veils=True), "index": INDEX},
        host_tools=host,
        resolve=lambda path, _: path,
        unwritable=lambda: ["/users/u/.akaion", "/users/u/profile.yaml", "/srv/trace"],
        untouchable={"/users/u/.akaion/keys": "keys lie here"},
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


@pytest.mark.parametrize("name", ["release", "other"])
def test_i1_no_tool_has_a_name_that_the_record_uses_for_something_else(name: str) -> None:
    """A yes to a call of such a tool would read as a yes to letting content go."""
    with pytest.raises(ConfigError, match="give the tool another name"):
        compiled({"tool": name, "paths": ["/g/a"]}, tool=FakeTool(name=name))


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


def test_i8_a_folder_is_redactable_only_if_every_grant_over_it_says_so() -> None:
    open_, closed = {"path": "/s", "redactable": True}, {"path": "/s/x"}
    both = compiled({"tool": "read_file", "paths": [open_]}, {"tool": "list_dir", "paths": [closed]})
    assert [both.grants[tool].roots[0].redactable for tool in ("read_file", "list_dir")] == [False, False]
    alone = compiled({"tool": "read_file", "paths": [open_]}, {"tool": "list_dir", "paths": ["/t"]})
    assert [alone.grants[tool].roots[0].redactable for tool in ("read_file", "list_dir")] == [True, False]


@pytest.mark.parametrize(
    ("tool", "host"),
    [
        (FakeTool(name="mine"), frozenset()),
        (FakeTool(name="mine", veils=True), frozenset({"mine"})),
        (FakeTool(name="mine", veils=True, effect=Effect.RUN), frozenset()),
    ],
    ids=["no veil", "the program's own", "run"],
)
def test_p1_only_a_tool_that_veils_may_be_called_redactable(tool: FakeTool, host: frozenset[str]) -> None:
    """What another says of a value, in a count or three letters at a time, is nothing that is detected."""
    with pytest.raises(ConfigError, match="cannot answer from redacted text") as caught:
        compiled({"tool": "mine", "paths": ["/t", {"path": "/s", "redactable": True}]}, tool=tool, host=host)
    (mistake,) = caught.value.mistakes
    assert mistake.where == "policy.grants.0.paths.1.redactable"
    assert mistake.fix.startswith("remove this key")


def test_a_tool_that_cannot_veil_leaves_a_folder_redactable_for_those_that_can() -> None:
    """It could not say so, and what it returns stays here: then the folder is not lost to the others."""
    files = {"tool": "read_file", "paths": [{"path": "/s", "redactable": True}]}
    policy = compiled(files, {"tool": "index", "paths": ["/s"]})
    assert [policy.grants[tool].roots[0].redactable for tool in ("read_file", "index")] == [True, False]
    assert [policy.grants[tool].veils for tool in ("read_file", "index")] == [True, False]


def test_the_policy_document_says_what_is_redactable() -> None:
    one = policy_document(compiled({"tool": "read_file", "paths": ["/s"]}))
    other = policy_document(compiled({"tool": "read_file", "paths": [{"path": "/s", "redactable": True}]}))
    assert one != other


def test_i1_one_alias_is_one_folder_in_every_tool() -> None:
    """What one tool calls `cases/a.txt` is that file in another, whatever the order of their folders."""
    policy = compiled(
        {"tool": "read_file", "paths": ["/x/cases", "/y/cases", "/z"]},
        {"tool": "list_dir", "paths": ["/z", "/y/cases", "/w/cases", "/x/cases"]},
    )
    named = {tool: {root.alias: root.path for root in grant.roots} for tool, grant in policy.grants.items()}
    assert named["read_file"] == {"cases": "/x/cases", "cases-2": "/y/cases", "z": "/z"}
    assert named["list_dir"] == {
        "z": "/z",
        "cases-2": "/y/cases",
        "cases-3": "/w/cases",
        "cases": "/x/cases",
    }


@given(paths=st.lists(st.sampled_from(["/a/c", "/b/c", "/b/c-2", "/c", "/c-2", "/c-3", "/d"]), max_size=14))
def test_i1_aliases_and_folders_are_one_to_one(paths: list[str]) -> None:
    first, second = list(dict.fromkeys(paths[:7])), list(dict.fromkeys(paths[7:]))
    policy = compiled({"tool": "read_file", "paths": first}, {"tool": "list_dir", "paths": second})
    pairs = {(root.alias, root.path) for grant in policy.grants.values() for root in grant.roots}
    assert len({alias for alias, _ in pairs}) == len({path for _, path in pairs}) == len(pairs)


def test_one_place_named_twice_in_a_grant_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="same place twice") as caught:
        compiled({"tool": "read_file", "paths": ["/s", {"path": "/s", "class": "C0"}]})
    assert caught.value.mistakes[0].where == "policy.grants.0.paths.1"


def test_a_path_that_cannot_be_resolved_is_a_mistake_among_all() -> None:
    def resolve(path: str, where: tuple[str | int, ...]) -> str:
        if path == "/bad":
            raise ConfigError([blame(where, "this is not a path", "write another")])
        return path

    with pytest.raises(ConfigError) as caught:
        compile_policy(
            [Grant.model_validate({"tool": "read_file", "paths": ["/bad", "/keys", "/bad"]})],
            {"read_file": TOOL},
            host_tools=frozenset(),
            resolve=resolve,
            unwritable=list,
            untouchable={"/keys": "keys lie here"},
            blame=blame,
        )
    assert [mistake.where[-1] for mistake in caught.value.mistakes] == ["0", "1", "2"]


TWO_PATHS = FakeTool(
    name="compare",
    parameters={
        "type": "object",
        "properties": {"one": {"type": "string"}, "other": {"type": "string"}},
        "additionalProperties": False,
    },
    path_arguments=frozenset({"one", "other"}),
)


@pytest.mark.parametrize(
    ("arguments", "aliases"),
    [
        ({"one": "a/x", "other": "b/y"}, ["a", "b"]),
        ({"one": "b/y", "other": "a/x"}, ["a", "b"]),
        ({"one": "a/x", "other": "a/y"}, ["a"]),
        ({"one": "a/x"}, ["a", "b", "c"]),
        ({"one": ".", "other": "c"}, ["a", "b", "c"]),
    ],
)
def test_i4_a_call_with_two_paths_reaches_the_roots_of_both(
    arguments: dict[str, str], aliases: list[str]
) -> None:
    policy = compiled({"tool": "compare", "paths": ["/g/a", "/g/b", "/g/c"]}, tool=TWO_PATHS)
    granted = narrow(policy, call("compare", arguments))
    assert [root.alias for root in granted.roots] == aliases
    assert reach(policy, call("compare", arguments)) == granted.roots


@pytest.mark.parametrize("claimed", list(Effect))
def test_p3_a_tool_that_a_program_passed_is_a_host_tool_whatever_it_claims(claimed: Effect) -> None:
    """And it reaches every root of its grant, since nothing holds it to the path it was called with."""
    tool = FakeTool(name="mine", effect=claimed)
    policy = compiled({"tool": "mine", "paths": ["/g/a", "/g/b"]}, tool=tool, host=frozenset({"mine"}))
    assert policy.grants["mine"].effect is Effect.HOST
    asked = call("mine", {"path": "a/x"})
    assert [root.alias for root in narrow(policy, asked).roots] == ["a"]
    assert [root.alias for root in reach(policy, asked)] == ["a", "b"]
    sink = {"to": "network", "max_class": "C1"}
    shipped = compiled({"tool": "mine", "paths": ["/g/a"], "sink": sink}, tool=tool)
    assert shipped.grants["mine"].effect is claimed


def test_i5_a_host_tools_claim_to_write_is_believed() -> None:
    tool = FakeTool(name="mine", effect=Effect.WRITE)
    with pytest.raises(ConfigError, match="may write"):
        compiled({"tool": "mine", "paths": ["/srv/trace"]}, tool=tool, host=frozenset({"mine"}))


def test_p2_pinning_holds_each_root_to_what_stands_there_and_finds_every_missing_one() -> None:
    raw = [
        {"tool": "read_file", "paths": ["/g/a", "/g/gone"]},
        {"tool": "list_dir", "paths": ["/g/gone", "/g/b", "/g/lost"]},
    ]
    grants = [Grant.model_validate(grant) for grant in raw]
    there = {"/g/a": (1, 2), "/g/b": (1, 3)}

    def identify(path: str) -> tuple[int, int]:
        if path not in there:
            raise ToolError("not there")
        return there[path]

    with pytest.raises(ConfigError) as caught:
        pin_policy(compiled(*raw), grants, identify=identify, blame=blame)
    places = [mistake.where for mistake in caught.value.mistakes]
    assert places == ["policy.grants.0.paths.1", "policy.grants.1.paths.2"]
    assert "/g/gone" in str(caught.value)
    there |= {"/g/gone": (1, 4), "/g/lost": (1, 5)}
    pinned = pin_policy(compiled(*raw), grants, identify=identify, blame=blame)
    identities = [[root.identity for root in grant.roots] for grant in pinned.grants.values()]
    assert identities == [[(1, 2), (1, 4)], [(1, 4), (1, 3), (1, 5)]]
