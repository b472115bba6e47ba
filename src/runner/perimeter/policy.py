# SPDX-License-Identifier: Apache-2.0
"""The policy kernel: whether a tool call may run.

Owns the decision, as a pure function of grants, call, and what the task knows. Opens no file: a path that
passes here is opened beneath its root by the tool, which is where links are refused. Carries I1: what no
grant names is denied, and an empty allow-list allows nothing. A task that belongs to a matter sees that
matter's folders and those of none; whatever else it names, a person is asked first. What goes to a sink, and
to whom, is the user's choice or the profile's, never that of something that was read. Carries I8: nothing is
written into a folder of a lower class, where a later task would read it as such.
"""

import json
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from runner.kernel.commands import CommandRules, Refused, parse_command
from runner.kernel.decisions import Allow, Ask, Deny, ToolVerdict
from runner.kernel.labels import DataClass
from runner.kernel.language import how_many
from runner.kernel.messages import JsonObject, ToolCall
from runner.kernel.ports import Effect, GrantedCall, Root
from runner.kernel.web import Place, parse_url
from runner.perimeter.flow import keeps_limits, unvouched
from runner.perimeter.flows import FREE, Flow
from runner.perimeter.known import NOTHING_KNOWN, Known
from runner.perimeter.named import spelling_of
from runner.perimeter.task import FILE_DEFAULT
from runner.perimeter.validate import fits, plain

MATTERS_MEET: Final = "matters-meet"
"""The rule of a call that would bring the content of one matter to that of another."""
NOT_NAMED: Final = "critical-not-named"
"""The rule of a call to a sink with a critical argument that nobody but the model is responsible for."""
MOST_QUESTIONS: Final = 24
"""Questions about calls in one task. Whoever is asked more often has stopped reading."""
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
    url_argument: str | None = None
    """The argument that is the address of a page; None for a tool that asks for none."""
    binaries: Mapping[str, CommandRules] | None = None
    """The programs that may be started, by name; None for a tool that starts none of them."""
    confined: bool = False
    """Whether it does its work in a sandbox, without which it does none (P3)."""
    veils: bool = False
    """Whether it answers from what a model elsewhere may see, where it is given a veil."""
    flow: Flow = FREE
    """What it says of the values of a call: where they may come from, and where they go."""

    @property
    def rule(self) -> str:
        """The name of this grant in decisions and in the record."""
        return f"grant.{self.tool}"

    @property
    def places(self) -> tuple[Place, ...]:
        """Where pages may be asked for."""
        limits = self.flow.limits.get(self.url_argument or "")
        return () if limits is None else limits.places or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All grants of a profile, by tool name. Nothing else is allowed."""

    grants: Mapping[str, ToolGrant]

    @property
    def matters(self) -> frozenset[str]:
        """Every matter that a grant names."""
        return matters_of(root for grant in self.grants.values() for root in grant.roots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """What a decision rests on beside the grant, each as far as it got: None is what was not looked at.

    `fits`: the arguments fit the schema; `within`: they keep the limits of the grant; `command`: a command
    fits the rules of a granted program; `inside`: each path lies in a granted root; `reached`: how many roots
    the call may bring content of; `into`: the lowest class of those it may write to; `meets`: it would bring
    matters together; `vouched`: user or profile is responsible for each critical argument of a sink.
    """

    fits: bool | None = None
    within: bool | None = None
    command: bool | None = None
    inside: bool | None = None
    reached: int | None = None
    into: DataClass | None = None
    meets: bool | None = None
    vouched: bool | None = None

    def stated(self) -> dict[str, bool | int | str]:
        """Return those that were looked at, by name: what repeating the decision needs (S10)."""
        names = ("fits", "within", "command", "inside", "reached", "into", "meets", "vouched")
        stated = {name: getattr(self, name) for name in names}
        return {
            name: value.name if isinstance(value, DataClass) else value
            for name, value in stated.items()
            if value is not None
        }


def decide(
    policy: Policy,
    call: ToolCall,
    matters: AbstractSet[str] = NO_MATTER,
    known: Known = NOTHING_KNOWN,
) -> ToolVerdict:
    """Return the verdict on `call` in a task of `matters` that knows `known`. Total: any call gets one.

    Only a fitting grant gives `Allow`: 1. the tool has a grant; 2. its arguments fit its schema, unknown ones
    included, and keep the limits of the grant; 3. a command fits the rules of a granted program; 4. each path
    stays in a granted root; 5. what the task has seen is not above the class of the sink; 6. there are calls
    left; 7. nor is it above the class of the folder it is written to; 8. it brings no second matter; 9. each
    critical argument of a sink is vouched for; 10. the grant asks for no approval. Nobody is asked twice
    about a call they did not say yes to, nor more than `MOST_QUESTIONS` times.
    """
    grant = policy.grants.get(call.tool)
    if grant is None:
        return Deny(
            rule="tool-not-granted", hint=f"granted tools: {', '.join(sorted(policy.grants)) or 'none'}"
        )
    found = premises(policy, call, matters, known)
    for denial in (
        _of_arguments(grant, call, matters, found),
        _of_sink(grant, call, known),
        _of_folders(grant, call, known, found),
    ):
        if denial is not None:
            return denial
    if found.meets:
        return _question(MATTERS_MEET, call, known)
    if found.vouched is False:
        return _question(NOT_NAMED, call, known)
    return _question(grant.rule, call, known) if grant.ask else Allow(rule=grant.rule)


def needs_a_person(policy: Policy, call: ToolCall, known: Known = NOTHING_KNOWN) -> tuple[str, ...]:
    """Return the names of the critical arguments of `call` that neither user nor profile vouch for, sorted.

    Raises `KeyError` for a tool without a grant.
    """
    grant = policy.grants[call.tool]
    sink = grant.flow.sink
    return () if sink is None else unvouched(sink, carried(grant, call.arguments, known.said), known)


def carried(grant: ToolGrant, arguments: JsonObject, said: str) -> JsonObject:
    """Return those of `arguments` that a tool of `grant` carries away: for a page, its address alone.

    The address is spelled as the user did, if the user named that page.
    """
    if grant.url_argument is None:
        return arguments
    text = arguments.get(grant.url_argument)
    url = parse_url(text) if isinstance(text, str) else None
    spelled = None if url is None else spelling_of(url, said)
    return {grant.url_argument: spelled or text}


def call_key(call: ToolCall) -> str:
    """Return what `call` is remembered by once a person said no: a digest of its tool and arguments."""
    return sha256(normalised(call)).hexdigest()


def normalised(call: ToolCall) -> bytes:
    """Return the one form of `call` that decision, approval and run commit to: its tool and arguments."""
    text = json.dumps([call.tool, plain(call.arguments)], sort_keys=True, separators=(",", ":"))
    return text.encode("ascii")


def _of_arguments(
    grant: ToolGrant, call: ToolCall, matters: AbstractSet[str], found: Premises
) -> Deny | None:
    """Return why the arguments of `call` are not granted; None when they are."""
    if not found.fits:
        return Deny(rule="arguments-invalid", hint=f"the arguments of {grant.tool} must fit its schema")
    if found.within is False:
        hint = f"{grant.tool} is granted within limits on: {', '.join(sorted(grant.flow.limits))}"
        return Deny(rule="argument-outside-grant", hint=hint)
    if grant.path_arguments and not grant.roots:
        return Deny(rule="no-path-granted", hint=f"{grant.tool} is granted on no folder")
    if grant.binaries is not None and isinstance(
        refused := parse_command(call.arguments, grant.binaries), Refused
    ):
        return Deny(rule="command-not-granted", hint=refused.hint)
    return outside(grant, matters) if found.inside is False else None


def outside(grant: ToolGrant, matters: AbstractSet[str]) -> Deny:
    """Return the denial of a path that lies in no folder of `grant`, to a task of `matters`."""
    folders = ", ".join(f"{root.alias}/" for root in seen_from(grant, matters))
    hint = f"a path starts with a granted folder. Put one before it: {folders or 'none'}"
    return Deny(rule="path-outside-grant", hint=hint)


def _of_sink(grant: ToolGrant, call: ToolCall, known: Known) -> Deny | None:
    """Return a denial where the task has seen content above the class of the sink, or has no call left."""
    sink, calls = grant.flow.sink, grant.flow.calls
    if sink is not None and _seen(call, known) > sink.ceiling:
        hint = f"{grant.tool} carries content up to {sink.ceiling.name} only; this task has seen more"
        return Deny(rule="above-sink", hint=hint)
    if calls is not None and known.calls.get(grant.tool, 0) >= calls:
        return Deny(rule="no-call-left", hint=f"{grant.tool} is granted {how_many(calls, 'time')} in a task")
    return None


def _of_folders(grant: ToolGrant, call: ToolCall, known: Known, found: Premises) -> Deny | None:
    """Return a denial where the task sees no folder of the grant, or has seen too much to write there."""
    if grant.roots and not found.reached:
        return Deny(rule="no-path-granted", hint=f"{grant.tool} is granted on no folder of this matter")
    if found.into is not None and _seen(call, known) > found.into:
        hint = f"that folder holds content up to {found.into.name} only; this task has seen more"
        return Deny(rule="above-folder", hint=hint)
    return None


def _seen(call: ToolCall, known: Known) -> DataClass:
    """Return the class of all that the task has seen, `call` included."""
    return call.origin.label.join(known.mark).data_class


def _question(rule: str, call: ToolCall, known: Known) -> Ask | Deny:
    """Return that a person is asked under `rule`, or a denial where nobody is asked any more."""
    if call_key(call) in known.refused:
        return Deny(rule="refused-before", hint="nobody is asked twice about one call")
    if known.questions >= MOST_QUESTIONS:
        return Deny(rule="too-many-questions", hint="nobody is asked anything more in this task")
    return Ask(rule=rule)


def premises(
    policy: Policy,
    call: ToolCall,
    matters: AbstractSet[str] = NO_MATTER,
    known: Known = NOTHING_KNOWN,
) -> Premises:
    """Return what the verdict on `call` rests on, in the order in which it is looked at. Total."""
    grant = policy.grants.get(call.tool)
    if grant is None:
        return Premises()
    if not fits(call.arguments, grant.parameters):
        return Premises(fits=False)
    limits = grant.flow.limits
    within = keeps_limits(call.arguments, limits, known.said) if limits else None
    if within is False or (grant.path_arguments and not grant.roots):
        return Premises(fits=True, within=within)
    command = None if grant.binaries is None else _is_granted_command(call, grant.binaries)
    if command is False:
        return Premises(fits=True, within=within, command=False)
    if not all(isinstance(path, str) and _roots_of(path, grant.roots) for path in _paths_of(grant, call)):
        return Premises(fits=True, within=within, command=command, inside=False)
    reached = reach(policy, call, matters)
    return Premises(
        fits=True,
        within=within,
        command=command,
        inside=True,
        reached=len(reached),
        into=min(map(class_of, reached)) if grant.effect is Effect.WRITE and reached else None,
        meets=_bring_together(grant, matters, reached),
        vouched=None if grant.flow.sink is None else not needs_a_person(policy, call, known),
    )


def _is_granted_command(call: ToolCall, binaries: Mapping[str, CommandRules]) -> bool:
    return not isinstance(parse_command(call.arguments, binaries), Refused)


def narrow(policy: Policy, call: ToolCall, matters: AbstractSet[str] = NO_MATTER) -> GrantedCall:
    """Return `call` with the roots that any of its paths names; call it after `decide` did not deny.

    A path that names no root means those that a task of `matters` sees: all, while it has none. Raises
    `KeyError` for a tool without a grant.
    """
    grant = policy.grants[call.tool]
    seen = seen_from(grant, matters)
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


def class_of(root: Root) -> DataClass:
    """Return the class that what lies under `root` has at least, and what is written there at most."""
    return FILE_DEFAULT if root.declared is None else root.declared


def matters_of(roots: Iterable[Root]) -> frozenset[str]:
    """Return the matters that `roots` belong to."""
    return frozenset(root.matter for root in roots if root.matter is not None)


def _paths_of(grant: ToolGrant, call: ToolCall) -> tuple[object, ...]:
    """Return every path that `call` names: of a command those among its operands, else where it starts."""
    if grant.binaries is not None:
        parsed = parse_command(call.arguments, grant.binaries)
        return () if isinstance(parsed, Refused) else parsed.paths
    return tuple(call.arguments.get(name, ".") for name in sorted(grant.path_arguments))


def seen_from(grant: ToolGrant, matters: AbstractSet[str]) -> tuple[Root, ...]:
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
