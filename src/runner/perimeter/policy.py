# SPDX-License-Identifier: Apache-2.0
"""The policy kernel: whether a tool call may run.

Owns the decision, as a pure function of grants and call. Opens no file: a path that passes here is
opened beneath its root by the tool, which is where links are refused. Carries I1: what no grant
names is denied, and an empty allow-list allows nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.kernel.decisions import Allow, Ask, Deny, ToolVerdict
from runner.kernel.messages import JsonObject, ToolCall
from runner.kernel.ports import Effect, GrantedCall, Root
from runner.perimeter.validate import fits


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolGrant:
    """What the profile grants one tool: its argument schema, the roots of its paths, and the approval.

    `effect` is what the perimeter takes it for, which for a host tool is `HOST`, whatever the tool claims.
    """

    tool: str
    effect: Effect
    parameters: JsonObject = field(repr=False)
    path_arguments: frozenset[str] = frozenset()
    roots: tuple[Root, ...] = ()
    ask: bool = False

    @property
    def rule(self) -> str:
        """The name of this grant in decisions and in the record."""
        return f"grant.{self.tool}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All grants of a profile, by tool name. Nothing else is allowed."""

    grants: Mapping[str, ToolGrant]


def decide(policy: Policy, call: ToolCall) -> ToolVerdict:
    """Return the verdict on `call`. Total: any call gets one, and only a fitting grant gives `Allow`.

    1. the tool has a grant; 2. its arguments fit its schema, unknown ones included; 3. each path
    stays in a granted root; 4. the grant asks for no approval.
    """
    grant = policy.grants.get(call.tool)
    if grant is None:
        return Deny(
            rule="tool-not-granted", hint=f"granted tools: {', '.join(sorted(policy.grants)) or 'none'}"
        )
    if not fits(call.arguments, grant.parameters):
        return Deny(rule="arguments-invalid", hint=f"the arguments of {grant.tool} must fit its schema")
    if grant.path_arguments and not grant.roots:
        return Deny(rule="no-path-granted", hint=f"{grant.tool} is granted on no folder")
    for name in sorted(grant.path_arguments):
        path = call.arguments.get(name, ".")
        if not isinstance(path, str) or _roots_of(path, grant.roots) == ():
            aliases = ", ".join(root.alias for root in grant.roots)
            return Deny(rule="path-outside-grant", hint=f"a path starts with one of: {aliases}")
    return Ask(rule=grant.rule) if grant.ask else Allow(rule=grant.rule)


def narrow(policy: Policy, call: ToolCall) -> GrantedCall:
    """Return `call` with the roots that any of its paths names; call it after `decide` did not deny.

    Raises `KeyError` for a tool without a grant.
    """
    grant = policy.grants[call.tool]
    paths = [str(call.arguments.get(name, ".")) for name in grant.path_arguments]
    named = {root for path in paths for root in _roots_of(path, grant.roots)}
    roots = tuple(root for root in grant.roots if root in named) if paths else grant.roots
    return GrantedCall(arguments=call.arguments, roots=roots)


def reach(policy: Policy, call: ToolCall) -> tuple[Root, ...]:
    """Return every root whose content `call` may bring back: nothing holds a host tool to the ones it names.

    Raises `KeyError` for a tool without a grant.
    """
    grant = policy.grants[call.tool]
    return grant.roots if grant.effect is Effect.HOST else narrow(policy, call).roots


def _roots_of(path: str, roots: tuple[Root, ...]) -> tuple[Root, ...]:
    """Return the roots `path` addresses: all for "" and ".", one for `alias/...`, none if it is bad."""
    if path in {"", "."}:
        return roots
    parts = path.removesuffix("/").split("/")
    if any(part in {"", ".", ".."} or "\0" in part or "\\" in part for part in parts):
        return ()
    return tuple(root for root in roots if root.alias == parts[0])
