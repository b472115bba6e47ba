# SPDX-License-Identifier: Apache-2.0
"""From a profile's grants to the policy kernel's, with every mistake found at once.

Owns what a grant may not say: a tool nobody has, write access to the perimeter's own files, any access
to its keys. Leaves deciding to `policy.py`. Carries I1 and I5. Pure: paths arrive resolved.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TypeAlias

from runner.kernel.config import Grant
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.labels import DataClass
from runner.kernel.messages import JsonObject
from runner.kernel.ports import Effect, Root, Tool
from runner.perimeter.policy import Policy, ToolGrant
from runner.perimeter.task import FILE_DEFAULT
from runner.perimeter.validate import plain

Blame: TypeAlias = Callable[[tuple[str | int, ...], str, str], Mistake]
"""Makes a `Mistake` of (field location, problem, fix)."""


def compile_policy(
    grants: Sequence[Grant],
    tools: Mapping[str, Tool],
    *,
    resolve: Callable[[str], str],
    unwritable: Sequence[str],
    untouchable: Sequence[str],
    blame: Blame,
) -> Policy:
    """Return the policy of `grants` over `tools` (by name).

    `resolve` turns a configured path into an absolute one without links. No grant may write to a path
    that overlaps `unwritable`, and none may touch one that overlaps `untouchable` at all. Raises
    `ConfigError` with every mistake.
    """
    mistakes: list[Mistake] = []
    compiled: dict[str, ToolGrant] = {}
    for index, grant in enumerate(grants):
        where: tuple[str | int, ...] = ("policy", "grants", index)
        tool = tools.get(grant.tool)
        if tool is None:
            known = ", ".join(sorted(tools))
            mistakes.append(blame((*where, "tool"), "no such tool", f"use one of: {known}"))
            continue
        roots = tuple(_roots(grant, resolve))
        writes = grant.access == "write" or tool.effect is Effect.WRITE
        for number, root in enumerate(roots):
            if any(_overlap(root.path, path) for path in untouchable):
                problem, fix = "the perimeter's keys lie here", "grant a folder that does not hold them"
                mistakes.append(blame((*where, "paths", number), problem, fix))
            elif writes and any(_overlap(root.path, path) for path in unwritable):
                problem = "the perimeter's own files lie here and this grant may write"
                fix = "grant a folder that holds neither profile, trace nor home"
                mistakes.append(blame((*where, "paths", number), problem, fix))
        compiled[grant.tool] = ToolGrant(
            tool=grant.tool,
            effect=tool.effect,
            parameters=tool.spec.parameters,
            path_arguments=tool.path_arguments,
            roots=roots,
            ask=grant.approval == "ask",
        )
    if mistakes:
        raise ConfigError(mistakes)
    return Policy(grants=_with_highest_classes(compiled))


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
        }
        for root in grant.roots
    ]
    return {
        "tool": grant.tool,
        "effect": grant.effect.value,
        "ask": grant.ask,
        "arguments": sorted(str(name) for name in plain(grant.parameters).get("properties", {})),
        "path_arguments": sorted(grant.path_arguments),
        "roots": roots,
    }


def _roots(grant: Grant, resolve: Callable[[str], str]) -> Iterator[Root]:
    """Yield the roots of a grant, each with an alias of its own: its folder's name, numbered if need be."""
    used: set[str] = set()
    for entry in grant.paths:
        path = resolve(entry.path)
        name = alias = PurePath(path).name or "root"
        number = 1
        while alias in used:
            number += 1
            alias = f"{name}-{number}"
        used.add(alias)
        declared = None if entry.data_class is None else DataClass.parse(entry.data_class)
        yield Root(alias=alias, path=path, declared=declared, matter=entry.matter)


def _overlap(one: str, other: str) -> bool:
    first, second = PurePath(one), PurePath(other)
    return first.is_relative_to(second) or second.is_relative_to(first)


def _with_highest_classes(grants: Mapping[str, ToolGrant]) -> dict[str, ToolGrant]:
    """Return `grants` with each root at the highest class that any root overlapping it has."""
    every = [root for grant in grants.values() for root in grant.roots]
    return {
        tool: replace(grant, roots=tuple(_raised(root, every) for root in grant.roots))
        for tool, grant in grants.items()
    }


def _raised(root: Root, every: Sequence[Root]) -> Root:
    beside = [other.declared for other in every if _overlap(root.path, other.path)]
    if all(declared is None for declared in beside):
        return root
    return replace(root, declared=max(FILE_DEFAULT if item is None else item for item in beside))
