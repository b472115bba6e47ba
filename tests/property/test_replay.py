# SPDX-License-Identifier: Apache-2.0
"""S10: what the policy kernel decides is what the verifier replays from the premises on record."""

import akaion_verify
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.canonical import canonical_bytes
from runner.kernel.decisions import Allow, Ask
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, ToolCall
from runner.kernel.ports import Effect, Root
from runner.perimeter.grants import policy_document
from runner.perimeter.policy import Policy, ToolGrant, decide, premises

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
TOOLS = ("one", "two")
ROOTS = [
    Root(alias=alias, path=f"/{alias}", declared=None, matter=matter)
    for alias, matter in (("a", "x"), ("b", "y"), ("c", None))
]
grants = st.builds(
    ToolGrant,
    tool=st.sampled_from(TOOLS),
    effect=st.sampled_from(Effect),
    parameters=st.just(SCHEMA),
    path_arguments=st.sampled_from([frozenset[str](), frozenset({"path"})]),
    roots=st.lists(st.sampled_from(ROOTS), unique=True, max_size=3).map(tuple),
    ask=st.booleans(),
)
arguments = st.dictionaries(
    st.sampled_from(["path", "other"]),
    st.sampled_from(["", ".", "a/x", "b", "c/y", "../a", "d", 7]),
    max_size=2,
)


@given(
    st.lists(grants, max_size=2),
    st.sampled_from((*TOOLS, "three")),
    arguments,
    st.frozensets(st.sampled_from("xyz"), max_size=2),
    st.booleans(),
)
def test_s10_the_verifier_gives_the_kernels_answer(
    granted: list[ToolGrant], tool: str, said: dict[str, str | int], matters: frozenset[str], stated: bool
) -> None:
    policy = Policy(grants={grant.tool: grant for grant in granted})
    origin = Block(id="b0", kind=BlockKind.GOAL, text="", label=Label())
    call = ToolCall(tool=tool, arguments=dict(said), origin=origin)
    verdict = decide(policy, call, matters)
    word = "allow" if isinstance(verdict, Allow) else "ask" if isinstance(verdict, Ask) else "deny"
    known = akaion_verify.parse_policy(canonical_bytes(policy_document(policy))).grants or {}
    replay = premises(policy, call, matters).stated() if stated else {}
    body = {"tool": tool, "decision": word, "rule": verdict.rule, "replay": replay, "class": "C0"}
    assert akaion_verify.policy_answer(known, body) == (word, verdict.rule)
    if stated and tool in policy.grants:
        others = [(each, rule) for each in ("allow", "ask") for rule in (f"grant.{tool}", "matters-meet")]
        for other in others:
            lie = {**body, "decision": other[0], "rule": other[1]}
            assert (akaion_verify.policy_answer(known, lie) == other) == (other == (word, verdict.rule))
