# SPDX-License-Identifier: Apache-2.0
"""From a profile's grants to the policy kernel's, with every mistake found at once.

Owns what a grant may not say: a tool nobody has, write access to the perimeter's own files, any access to its
keys. Leaves deciding to `policy.py`. Carries I1, I5 and P3: one alias is one folder in every tool, and a host
tool is one whatever it claims. Carries I8: a folder that a tool may write to is known as such in every grant.
Pure: paths arrive resolved.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from itertools import chain, count
from pathlib import PurePath
from typing import Final, TypeAlias

from runner.kernel.commands import CommandRules
from runner.kernel.config import Grant, GrantedPath
from runner.kernel.errors import ConfigError, Mistake, ToolError
from runner.kernel.labels import DataClass
from runner.kernel.messages import Json, JsonObject
from runner.kernel.ports import RELEASE, Effect, Identity, Root, Tool
from runner.kernel.spelling import most_like
from runner.perimeter.flows import FREE
from runner.perimeter.policy import Policy, ToolGrant, class_of
from runner.perimeter.sinks import Offer, Remark, flow_document, flow_of, remarks_on
from runner.perimeter.trace.records import OTHER
from runner.perimeter.validate import plain

RESERVED: Final = frozenset({RELEASE, OTHER})
"""What no tool may be called: the record says something else by these words."""
Where: TypeAlias = tuple[str | int, ...]
"""The location of a field."""
Blame: TypeAlias = Callable[[Where, str, str], Mistake]
"""Makes a `Mistake` of (field location, problem, fix)."""


def compile_policy(
    grants: Sequence[Grant],
    tools: Mapping[str, Tool],
    *,
    host_tools: AbstractSet[str],
    resolve: Callable[[str, Where], str],
    unwritable: Callable[[], Sequence[str]],
    untouchable: Mapping[str, str],
    blame: Blame,
) -> Policy:
    """Return the policy of `grants` over `tools` (by name).

    `host_tools` names those the program passed in: they are host tools, whatever effect they claim; only a
    claim to write is believed. `resolve` turns a configured path (and its location) into an absolute one
    without links, or raises `ConfigError`. No grant may write to a path that overlaps `unwritable`, which is
    asked for where one writes, and none may touch one that overlaps `untouchable` at all, which says
    of each path what is wrong then.

    Raises `ConfigError` with every mistake.
    """
    mistakes: list[Mistake] = []
    aliases = _Aliases()
    unwritable = cache(unwritable)
    compiled: dict[str, ToolGrant] = {}
    for index, grant in enumerate(grants):
        where: Where = ("policy", "grants", index)
        tool = tools.get(grant.tool)
        if tool is None:
            known, meant = ", ".join(sorted(tools)), most_like(grant.tool, tools, slips=1)
            fix = f"use one of: {known}. A program's own tool is handed to open_profile(tools=[...])"
            fix = fix if meant is None else f"did you mean {meant}? If not, {fix}"
            mistakes.append(blame((*where, "tool"), "no tool of this name is here", fix))
            continue
        if grant.tool in RESERVED:
            problem = "the record uses this name for something else"
            mistakes.append(blame((*where, "tool"), problem, "give the tool another name"))
        roots: list[Root] = []
        writes = grant.access == "write" or tool.effect is Effect.WRITE
        effect = Effect.HOST if grant.tool in host_tools else tool.effect
        veils = effect is Effect.READ and getattr(tool, "veils", False) is True
        for number, entry in enumerate(grant.paths):
            place: Where = (*where, "paths", number)
            try:
                path = resolve(entry.path, place)
            except ConfigError as error:
                mistakes += error.mistakes
                continue
            closed = unwritable() if writes else None
            remarks = _of_path(entry, path, roots, untouchable, closed, veils=veils)
            mistakes += [blame((*place, *key), problem, fix) for key, problem, fix in remarks]
            roots.append(_root(entry, path, aliases.of(path), written=writes))
        offer = Offer(grant=grant, tool=tool, is_host=grant.tool in host_tools)
        of_flow = list(remarks_on(offer, grants))
        mistakes += [blame((*where, *key), problem, fix) for key, problem, fix in of_flow]
        compiled[grant.tool] = ToolGrant(
            tool=grant.tool,
            effect=effect,
            parameters=tool.spec.parameters,
            path_arguments=frozenset(tool.path_arguments),
            roots=tuple(roots),
            ask=grant.approval == "ask",
            url_argument=offer.url_argument,
            binaries=getattr(tool, "binaries", None),
            confined=tool.effect is Effect.RUN or getattr(tool, "confined", False) is True,
            veils=veils,
            flow=FREE if of_flow else flow_of(offer),
        )
        mistakes += _program_mistakes(grant, tool, where, blame)
    mistakes += _matters_that_overlap(grants, compiled, blame)
    if mistakes:
        raise ConfigError(mistakes)
    return Policy(grants=_with_highest_classes(compiled))


def _of_path(
    entry: GrantedPath,
    path: str,
    roots: Sequence[Root],
    untouchable: Mapping[str, str],
    unwritable: Sequence[str] | None,
    *,
    veils: bool,
) -> Iterator[Remark]:
    """Yield what is wrong with a path beside `roots`; `unwritable` is None where no tool writes to it.

    Only a tool that `veils` keeps from a model elsewhere what it may not see, so only its results may leave.
    """
    if any(root.path == path for root in roots):
        yield (), "this grant names the same place twice", "keep one of the two"
    elif held := {what: None for other, what in untouchable.items() if _overlap(path, other)}:
        yield (), " and ".join(held), "grant a folder that does not hold them"
    elif unwritable is not None and any(_overlap(path, other) for other in unwritable):
        fix = "grant a folder that holds neither profile, trace nor home, nor the program and its Python"
        yield (), "the perimeter's own files lie here and this grant may write", fix
    elif unwritable is not None and entry.redactable:
        problem = "what a tool writes here would count as C1 once nothing is found in it"
        yield ("redactable",), problem, "remove this key"
    elif entry.redactable and not veils:
        problem = "this tool cannot answer from redacted text, so what it returns never leaves as C1"
        fix = "remove this key: other tools on this folder may keep it, and what this one returns stays here"
        yield ("redactable",), problem, fix


def _program_mistakes(grant: Grant, tool: Tool, where: Where, blame: Blame) -> Iterator[Mistake]:
    """Yield what the grant of a tool that starts programs may not say, or that of one that starts none."""
    binaries: Mapping[str, CommandRules] | None = getattr(tool, "binaries", None)
    if binaries is None:
        starts_own = hasattr(tool, "confined")
        for key, value in (("commands", grant.commands), ("sandbox", None if starts_own else grant.sandbox)):
            if value is not None:
                yield blame((*where, key), "this tool starts no program", "remove this key")
        return
    for number, name in enumerate(grant.commands or ()):
        if name not in binaries:
            fix = "use one of the programs that docs/reference/profile.md lists"
            yield blame((*where, "commands", number), "there are no rules for this program", fix)


def _matters_that_overlap(
    grants: Sequence[Grant], compiled: Mapping[str, ToolGrant], blame: Blame
) -> Iterator[Mistake]:
    """Yield a mistake for each path of no or another matter that shares files with a path of a matter."""
    seen: list[Root] = []
    for index, grant in enumerate(grants):
        roots = compiled[grant.tool].roots if grant.tool in compiled else ()
        for number, root in enumerate(roots):
            if any(other.matter != root.matter and _overlap(other.path, root.path) for other in seen):
                place: Where = ("policy", "grants", index, "paths", number)
                problem = "this path shares files with a path of another matter, or of none"
                fix = "give both the same matter, or grant folders that lie side by side"
                yield blame(place, problem, fix)
            seen.append(root)


def pin_policy(
    policy: Policy, grants: Sequence[Grant], *, identify: Callable[[str], Identity], blame: Blame
) -> Policy:
    """Return `policy`, compiled of `grants`, with each root held to the folder that stands there now.

    `identify` says which one that is, or raises `ToolError`. Raises `ConfigError` with every path where none
    is, each once.
    """
    mistakes: list[Mistake] = []
    found: dict[str, Identity | None] = {}
    for index, grant in enumerate(grants):
        for number, root in enumerate(policy.grants[grant.tool].roots):
            if root.path in found:
                continue
            try:
                found[root.path] = identify(root.path)
            except ToolError:
                found[root.path] = None
                problem = f"no folder or file that can be read is at {root.path!a}"
                place: Where = ("policy", "grants", index, "paths", number)
                mistakes.append(blame(place, problem, "make it, or correct the path in the profile"))
    if mistakes:
        raise ConfigError(mistakes)
    return Policy(
        grants={
            tool: replace(
                grant, roots=tuple(replace(root, identity=found[root.path]) for root in grant.roots)
            )
            for tool, grant in policy.grants.items()
        }
    )


def policy_document(policy: Policy) -> JsonObject:
    """Return the policy as the canonical document whose digest the record names."""
    return {"grants": [_grant_document(policy.grants[tool]) for tool in sorted(policy.grants)]}


def _grant_document(grant: ToolGrant) -> JsonObject:
    roots = [
        {
            "alias": root.alias,
            "path": root.path,
            "declared": None if root.declared is None else root.declared.name,
            "matter": root.matter,
            "redactable": root.redactable,
            **({"written": True} if root.written else {}),
        }
        for root in grant.roots
    ]
    document: dict[str, Json] = {
        "tool": grant.tool,
        "effect": grant.effect.value,
        "ask": grant.ask,
        "arguments": sorted(str(name) for name in plain(grant.parameters).get("properties", {})),
        "path_arguments": sorted(grant.path_arguments),
        "roots": roots,
        **flow_document(grant.flow),
    }
    if grant.binaries is not None:
        document["binaries"] = {name: rules.digest for name, rules in sorted(grant.binaries.items())}
    return document


def _root(entry: GrantedPath, path: str, alias: str, *, written: bool) -> Root:
    return Root(
        alias=alias,
        path=path,
        declared=None if entry.data_class is None else DataClass.parse(entry.data_class),
        matter=entry.matter,
        redactable=entry.redactable,
        written=written,
    )


class _Aliases:
    """The alias of each path of a profile: its last name, numbered in the order of the grants if need be.

    One alias is one folder in every tool, so that what one tool calls `cases/a.txt` is that file in another.
    """

    def __init__(self) -> None:
        self._by_path: dict[str, str] = {}

    def of(self, path: str) -> str:
        """Return the alias of the resolved `path`."""
        if path not in self._by_path:
            name = PurePath(path).name or "root"
            names = chain([name], (f"{name}-{number}" for number in count(2)))
            taken = set(self._by_path.values())
            self._by_path[path] = next(each for each in names if each not in taken)
        return self._by_path[path]


def _overlap(one: str, other: str) -> bool:
    first, second = PurePath(one), PurePath(other)
    return first.is_relative_to(second) or second.is_relative_to(first)


def _with_highest_classes(grants: Mapping[str, ToolGrant]) -> dict[str, ToolGrant]:
    """Return `grants` with each root at the highest class that any root overlapping it has.

    A root is redactable only if every root that overlaps it is, but for those of tools that could not say so,
    whose results stay here; and written if one of them is.
    """
    every = [root for grant in grants.values() for root in grant.roots]
    saying = [root for grant in grants.values() for root in grant.roots if grant.veils or root.written]
    return {
        tool: replace(grant, roots=tuple(_raised(root, every, saying) for root in grant.roots))
        for tool, grant in grants.items()
    }


def _raised(root: Root, every: Sequence[Root], saying: Sequence[Root]) -> Root:
    overlapping = [other for other in every if _overlap(root.path, other.path)]
    root = replace(
        root,
        redactable=root.redactable
        and all(other.redactable for other in saying if _overlap(root.path, other.path)),
        written=any(other.written for other in overlapping),
    )
    if all(other.declared is None for other in overlapping):
        return root
    return replace(root, declared=max(map(class_of, overlapping)))
