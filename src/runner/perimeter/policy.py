# SPDX-License-Identifier: Apache-2.0
"""The policy kernel: whether a tool call may run.

Owns the decision, as a pure function of grants and call. Opens no file: a path that passes here is
opened beneath its root by the tool, which is where links are refused. Carries I1: what no grant
names is denied, and an empty allow-list allows nothing. A task that belongs to a matter sees that matter's
folders and those of none; whatever else it names, a person is asked first.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from runner.kernel.commands import CommandRules, Refused, parse_command
from runner.kernel.decisions import Allow, Ask, Deny, ToolVerdict
from runner.kernel.messages import JsonObject, ToolCall
from runner.kernel.ports import Effect, GrantedCall, Root
from runner.perimeter.validate import fits

MATTERS_MEET: Final = "matters-meet"
"""The rule of a call that would bring the content of one matter to that of another."""
NO_MATTER: Final[frozenset[str]] = frozenset()
"""The matters of a task that has none yet."""


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
    binaries: Mapping[str, CommandRules] | None = None
    """The programs that may be started, by name; None for a tool that starts none."""

    @property
    def rule(self) -> str:
        """The name of this grant in decisions and in the record."""
        return f"grant.{self.tool}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All grants of a profile, by tool name. Nothing else is allowed."""

    grants: Mapping[str, ToolGrant]

    @property
    def matters(self) -> frozenset[str]:
        """Every matter that a grant names."""
        return matters_of(root for grant in self.grants.values() for root in grant.roots)


def decide(policy: Policy, call: ToolCall, matters: AbstractSet[str] = NO_MATTER) -> ToolVerdict:
    """Return the verdict on `call` in a task of `matters`. Total: any call gets one.

    Only a fitting grant gives `Allow`: 1. the tool has a grant; 2. its arguments fit its schema, unknown ones
    included; 3. a command fits the rules of a granted program; 4. each path stays in a granted root; 5. it
    brings no second matter; 6. the grant asks for no approval.
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
    if grant.binaries is not None and isinstance(
        refused := parse_command(call.arguments, grant.binaries), Refused
    ):
        return Deny(rule="command-not-granted", hint=refused.hint)
    for path in _paths_of(grant, call):
        if not isinstance(path, str) or _roots_of(path, grant.roots) == ():
            aliases = ", ".join(root.alias for root in _seen_from(grant, matters))
            return Deny(rule="path-outside-grant", hint=f"a path starts with one of: {aliases or 'none'}")
    return _of_reached(grant, matters, reach(policy, call, matters))


def _of_reached(grant: ToolGrant, matters: AbstractSet[str], reached: tuple[Root, ...]) -> ToolVerdict:
    if grant.roots and not reached:
        return Deny(rule="no-path-granted", hint=f"{grant.tool} is granted on no folder of this matter")
    if _bring_together(grant, matters, reached):
        return Ask(rule=MATTERS_MEET)
    return Ask(rule=grant.rule) if grant.ask else Allow(rule=grant.rule)


def narrow(policy: Policy, call: ToolCall, matters: AbstractSet[str] = NO_MATTER) -> GrantedCall:
    """Return `call` with the roots that any of its paths names; call it after `decide` did not deny.

    A path that names no root means those that a task of `matters` sees: all, while it has none. Raises
    `KeyError` for a tool without a grant.
    """
    grant = policy.grants[call.tool]
    seen = _seen_from(grant, matters)
    paths = [str(path) for path in _paths_of(grant, call)]
    named = {root for path in paths for root in (seen if path in _ALL else _roots_of(path, grant.roots))}
    roots = tuple(root for root in grant.roots if root in named) if paths else seen
    return GrantedCall(arguments=call.arguments, roots=roots)


def reach(policy: Policy, call: ToolCall, matters: AbstractSet[str] = NO_MATTER) -> tuple[Root, ...]:
    """Return every root whose content `call` may bring back: nothing holds a host tool to the ones it names.

    Raises `KeyError` for a tool without a grant.
    """
    grant = policy.grants[call.tool]
    return grant.roots if grant.effect is Effect.HOST else narrow(policy, call, matters).roots


def matters_of(roots: Iterable[Root]) -> frozenset[str]:
    """Return the matters that `roots` belong to."""
    return frozenset(root.matter for root in roots if root.matter is not None)


def _paths_of(grant: ToolGrant, call: ToolCall) -> tuple[object, ...]:
    """Return every path that `call` names: of a command those among its operands, else where it starts."""
    if grant.binaries is not None:
        parsed = parse_command(call.arguments, grant.binaries)
        return () if isinstance(parsed, Refused) else parsed.paths
    return tuple(call.arguments.get(name, ".") for name in sorted(grant.path_arguments))


def _seen_from(grant: ToolGrant, matters: AbstractSet[str]) -> tuple[Root, ...]:
    """Return the roots that a task of `matters` sees without naming one: its own and those of no matter."""
    return tuple(root for root in grant.roots if not matters or root.matter is None or root.matter in matters)


def _bring_together(grant: ToolGrant, matters: AbstractSet[str], reached: tuple[Root, ...]) -> bool:
    """Return whether content of two matters would meet: in the task, or in a folder that is written to."""
    own = matters_of(reached)
    writes_out = grant.effect is Effect.WRITE and any(root.matter is None for root in reached)
    return len(matters | own) > max(1, len(matters)) or (writes_out and bool(matters))


_ALL: Final = frozenset({"", "."})
"""The paths that name no root: all of them."""


def _roots_of(path: str, roots: tuple[Root, ...]) -> tuple[Root, ...]:
    """Return the roots `path` addresses: all for "" and ".", one for `alias/...`, none if it is bad."""
    if path in _ALL:
        return roots
    parts = path.removesuffix("/").split("/")
    if any(part in {"", ".", ".."} or "\0" in part or "\\" in part for part in parts):
        return ()
    return tuple(root for root in roots if root.alias == parts[0])
