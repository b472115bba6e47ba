# SPDX-License-Identifier: Apache-2.0
"""What is right in a profile and yet not what anybody means: grants that are too wide, or never work.

Owns the findings, each with its field and fix. Pure: paths arrive resolved, and nothing is opened. Leaves
what is wrong to `runner.kernel.config` and `grants`, which refuse it. Serves I1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from runner.kernel.config import Config, Grant, GrantedPath
from runner.kernel.labels import DataClass
from runner.kernel.ports import Effect, Root
from runner.perimeter.hosts import is_shared
from runner.perimeter.policy import Policy, ToolGrant, class_of

_TOP: Final = 2
"""A path of at most this many parts, the root included, holds much that nobody thinks of."""


_BROWSE: Final = frozenset({"list_dir", "read_document"})
_SEARCH: Final = frozenset({"search_documents", "search_text"})
"""Tools by which a model looks for a file, and those that find it from the words of a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at: `where` its field is, as a path of keys, what it `means`, and the `fix`."""

    where: tuple[str | int, ...]
    means: str
    fix: str


def lint(config: Config, policy: Policy, *, homes: Sequence[str]) -> tuple[Finding, ...]:
    """Return what a careful reader would ask about a right profile.

    `policy` is compiled of the grants of `config`; `homes` are the home folders of people on this machine, as
    absolute paths: a grant of a whole one is too wide.
    """
    grants = list(enumerate(config.policy.grants))
    ceiling = config.perimeter.ceiling
    found = [each for index, grant in grants for each in _grant(index, grant, policy, homes, ceiling)]
    return (*found, *_unsearched(config), *_whole(config, policy))


def _grant(
    index: int, grant: Grant, policy: Policy, homes: Sequence[str], ceiling: DataClass | None
) -> Iterator[Finding]:
    where, compiled = ("policy", "grants", index), policy.grants[grant.tool]
    if compiled.path_arguments and not compiled.roots:
        yield Finding(
            where=where,
            means=f"{grant.tool} works on files and is granted no folder: every call is denied",
            fix="name the folders under paths, or remove the grant",
        )
    if compiled.effect is Effect.HOST and not grant.trusted:
        yield Finding(
            where=where,
            means=f"{grant.tool} is the program's own and nobody vouches for it: each record is UNVERIFIABLE",
            fix="set trusted: true if the practice vouches for it, or remove the grant",
        )
    if compiled.effect is Effect.RUN_FREE:
        yield Finding(
            where=(*where, "sandbox"),
            means=f"nothing confines the programs that {grant.tool} starts: each record is UNVERIFIABLE",
            fix="remove the line: then they run in a sandbox, or not at all",
        )
    if compiled.binaries is not None and not compiled.binaries:
        yield Finding(
            where=where,
            means=f"{grant.tool} starts programs and is granted none: every call is denied",
            fix="name the programs under commands, or remove the grant",
        )
    if compiled.effect is Effect.HOST and grant.reads is None and grant.sink is None:
        yield Finding(
            where=(*where, "sink"),
            means=f"nothing says where {grant.tool} carries what it is given: no argument of it is judged",
            fix="add sink, or reads if it only returns things",
        )
    if compiled.effect is Effect.HOST and grant.network is False:
        yield Finding(
            where=(*where, "network"),
            means="network: false is not enforced for a program's own tool: it runs in this process",
            fix="remove the line, and trust the tool only if it opens no connection",
        )
    yield from _pages((*where, "hosts"), compiled)
    yield from _unasked((*where, "hosts"), compiled, ceiling)
    for number, root in enumerate(compiled.roots):
        place = (*where, "paths", number)
        yield from _wide(place, compiled, root, homes)
        yield from _twice(place, compiled, root, policy)
        if compiled.effect is Effect.WRITE:
            yield from _below_its_class(place, grant.paths[number], root)


def _unsearched(config: Config) -> Iterator[Finding]:
    """Yield a finding at the first grant by which a model looks for files, where no tool searches them."""
    tools = [grant.tool for grant in config.policy.grants]
    first = next((index for index, tool in enumerate(tools) if tool in _BROWSE), None)
    if first is not None and _SEARCH.isdisjoint(tools):
        yield Finding(
            where=("policy", "grants", first),
            means=f"{tools[first]} is granted and no tool that searches: a small model guesses at names",
            fix="grant search_documents on the same folders",
        )


def _pages(where: tuple[str | int, ...], grant: ToolGrant) -> Iterator[Finding]:
    """Yield what is too wide in where `grant` lets pages be asked for."""
    if grant.url_argument is not None and not grant.places:
        yield Finding(
            where=where,
            means=f"{grant.tool} asks for pages and is granted no host: every call is denied",
            fix="name the hosts under hosts, or remove the grant",
        )
    for number, place in enumerate(grant.places):
        if place.is_open and is_shared(place.host[2:]):
            yield Finding(
                where=(*where, number, "host"),
                means=f"anybody may have a name below {place.host[2:]}, and read what is asked there",
                fix="name the hosts that are meant, or the ending that one organisation owns",
            )
        if place.plain:
            yield Finding(
                where=(*where, number, "unsafe_plain_http"),
                means=f"anybody on the way to {place.host} can read what is asked, and change what is said",
                fix="remove the line, if the host answers by https",
            )


def _unasked(where: tuple[str | int, ...], grant: ToolGrant, ceiling: DataClass | None) -> Iterator[Finding]:
    """Yield a finding where `grant` names hosts and no address of a task's is below what may leave."""
    sink = grant.flow.sink
    if not grant.places or sink is None:
        return
    limit = None if ceiling is None else min(ceiling, sink.ceiling)
    if limit is None or limit < DataClass.C1:
        most = "nothing may leave" if limit is None else f"at most {limit.name} may leave"
        yield Finding(
            where=where,
            means=f"{most}, and what a person types counts as C1: every page of {grant.tool} is denied",
            fix="set perimeter.max_egress_class and max_class of the sink to C1, or remove the grant",
        )


def _twice(where: tuple[str | int, ...], grant: ToolGrant, root: Root, policy: Policy) -> Iterator[Finding]:
    """Yield a finding where what lies under `root`, of `grant`, has two names."""
    others = [each for tool, each in policy.grants.items() if tool != grant.tool]
    writers = (each for each in others if each.effect is Effect.WRITE)
    if _holds(grant, root) and not any(_names(each, root) for each in writers):
        yield Finding(
            where=where,
            means=f"{root.path} lies inside another folder of the same grant, which reaches it already",
            fix="remove it, unless it is there to raise the class of what is in it",
        )
    if any(_holds(each, root) and not _names(each, root) for each in others):
        writes = grant.effect is Effect.WRITE
        yield Finding(
            where=where,
            means=f"{root.path} lies inside a folder of another tool: one file has two names, and what "
            "one tool finds the other cannot read back",
            fix="grant this folder to the others too" if writes else "grant the same folder to all",
        )


def _holds(grant: ToolGrant, root: Root) -> bool:
    """Return whether `grant` names a folder that `root` lies in."""
    return any(
        other.path != root.path and PurePath(root.path).is_relative_to(other.path) for other in grant.roots
    )


def _names(grant: ToolGrant, root: Root) -> bool:
    """Return whether `grant` names the folder of `root` itself."""
    return any(other.path == root.path for other in grant.roots)


def _wide(
    where: tuple[str | int, ...], grant: ToolGrant, root: Root, homes: Sequence[str]
) -> Iterator[Finding]:
    path = PurePath(root.path)
    if len(path.parts) <= _TOP or any(PurePath(home).is_relative_to(path) for home in homes):
        means = f"{path} holds far more than one kind of work: keys, mail, other people's files"
        if grant.effect is Effect.WRITE:
            means = f"a tool may write anywhere in {path}, which holds far more than one kind of work"
        yield Finding(where=where, means=means, fix="grant the folders that hold the work")


def _below_its_class(where: tuple[str | int, ...], said: GrantedPath, root: Root) -> Iterator[Finding]:
    """Yield a finding where what may be written to a folder is above the class that is `said` of it."""
    if said.data_class is not None and DataClass.parse(said.data_class) < class_of(root):
        highest = class_of(root).name
        yield Finding(
            where=(*where, "class"),
            means=f"{root.path} is {said.data_class} here and shares files with a folder of {highest}: "
            f"what is of {highest} may be written there",
            fix=f"write class: {highest}, or grant a folder beside it",
        )


def _whole(config: Config, policy: Policy) -> Iterator[Finding]:
    perimeter, roots = config.perimeter, [root for grant in policy.grants.values() for root in grant.roots]
    if not policy.grants:
        yield Finding(
            where=("policy", "grants"), means="no tool is granted: every call is denied", fix="grant one"
        )
    if any(root.redactable for root in roots) and perimeter.redaction == "off":
        yield Finding(
            where=("perimeter", "redaction"),
            means="a path is redactable, but redaction is off: it changes nothing",
            fix="set redaction: on, or remove redactable",
        )
    if config.inference.remote is not None and perimeter.registers.clients is None:
        yield Finding(
            where=("perimeter", "registers", "clients"),
            means="there is a remote model and no register of clients: their names are found by form only",
            fix="write the register, or read what detection misses without one",
        )
