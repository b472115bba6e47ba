# SPDX-License-Identifier: Apache-2.0
"""From what a profile says of a tool's arguments to what the policy kernel judges by, each mistake found.

Owns what such words may not say: an argument that the tool does not have, a pattern that nothing can judge in
bounded time, a source that is not granted. Leaves the rest of a grant to `grants.py`. Carries I1: a list that
anybody may write into vouches for nothing.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from runner.kernel.config import Grant, GrantedHost
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.messages import Json, JsonObject
from runner.kernel.ports import Effect, Tool, WebTool
from runner.kernel.sections import LimitsConfig, ReadsConfig, SinkConfig, VouchConfig
from runner.kernel.web import Login, Place
from runner.perimeter.flow import host_of, is_beneath
from runner.perimeter.flows import (
    Case,
    Flow,
    Limits,
    Listed,
    LookedUp,
    NamedSource,
    Reads,
    Sink,
    SinkKind,
    Unread,
    UpTo,
    Vouch,
)
from runner.perimeter.keywords import compiles
from runner.perimeter.validate import plain

Remark: TypeAlias = tuple[tuple[str | int, ...], str, str]
"""The place of a mistake within its grant, the problem, and the fix."""
_INTEGRITY: Final = {"untrusted": Integrity.UNTRUSTED, "practice": Integrity.PRACTICE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A granted tool: its `grant`, the `tool` itself, and whether the program passed it in."""

    grant: Grant
    tool: Tool
    is_host: bool

    @property
    def url_argument(self) -> str | None:
        """The argument that is the address of a page, for a tool that the perimeter asks pages for."""
        return self.tool.url_argument if isinstance(self.tool, WebTool) and not self.is_host else None


def flow_of(offer: Offer) -> Flow:
    """Return what a grant, in which `remarks_on` finds nothing, says of arguments, results and sinks.

    Of a tool that asks for pages, hosts limit the address, where none named allows none.
    """
    grant, url_argument = offer.grant, offer.url_argument
    reads = grant.reads
    limits = {name: _limits(limits) for name, limits in (grant.arguments or {}).items()}
    if url_argument is not None:
        places = tuple(map(_place, grant.hosts or ()))
        limits[url_argument] = replace(limits.get(url_argument, Limits()), places=places)
    return Flow(
        limits=limits,
        reads=None if reads is None else _reads(reads),
        sink=None if grant.sink is None else _sink(grant.sink),
        calls=grant.calls,
    )


def remarks_on(offer: Offer, grants: Sequence[Grant]) -> Iterator[Remark]:
    """Yield each mistake in what the grant of `offer`, one of `grants`, says of arguments and sinks."""
    grant, has = offer.grant, _arguments_of(offer.tool)
    for name, limits in (grant.arguments or {}).items():
        yield from _of_name(("arguments", name), name, has)
        for key, problem, fix in _of_limits(limits):
            yield ("arguments", name, key), problem, fix
    if grant.reads is not None and not offer.is_host and offer.url_argument is None:
        problem = "what a shipped tool returns is known: this is for a program's own"
        yield ("reads",), problem, "remove this key, and name classes under paths"
    if grant.sink is None and offer.tool.effect is Effect.NET and not offer.is_host:
        fix = "add sink: {to: network, max_class: C1}"
        if offer.url_argument is None:
            fix += ", and payload for what may be the model's own words"
        yield (), "this tool carries its arguments to the network, and no sink says up to which class", fix
    yield from _of_pages(offer)
    if grant.sink is not None:
        yield from _of_sink(grant.sink, has, {each.tool: each for each in grants})


def _of_pages(offer: Offer) -> Iterator[Remark]:
    """Yield what the grant of a tool that asks for pages may not say, or that of one that asks for none."""
    grant, argument = offer.grant, offer.url_argument
    if argument is None:
        if grant.hosts is not None:
            yield ("hosts",), "this tool asks for no page", "remove this key"
        return
    for key, said in (
        ("integrity", grant.reads is not None and grant.reads.integrity != "untrusted"),
        ("minted", grant.reads is not None and bool(grant.reads.minted)),
    ):
        if said:
            yield ("reads", key), "a page is anybody's, and vouches for nothing", "remove this line"
    yield from _of_logins(grant)
    if grant.sink is None:
        return
    if grant.sink.to != "network":
        yield ("sink", "to"), "this tool carries its arguments to the network", "write to: network"
    if grant.sink.max_class == "C3":
        problem = "a task that has seen what is privileged asks nobody outside"
        yield ("sink", "max_class"), problem, "write C1, or C2"
    if grant.sink.payload:
        problem = "whom a page is asked of is critical, and so is what the address says; nothing else leaves"
        yield ("sink", "payload"), problem, "remove this key; cases may say what else vouches for an address"


def _of_logins(grant: Grant) -> Iterator[Remark]:
    """Yield each credential of a host whose pages would count as public, since no class is said."""
    for number, host in enumerate(grant.hosts or ()):
        if host.credential is not None and grant.reads is None:
            problem = "what stands behind a login is not public, and nothing says which class it has"
            fix = "add reads: {class: C2} to this grant, or the class that these pages have"
            yield ("hosts", number, "credential"), problem, fix


def _arguments_of(tool: Tool) -> JsonObject:
    found: JsonObject = plain(tool.spec.parameters).get("properties", {})
    return found


def _of_name(where: tuple[str | int, ...], name: str, has: JsonObject) -> Iterator[Remark]:
    if name not in has:
        yield (
            where,
            "the tool has no argument of this name",
            f"those it has: {', '.join(sorted(has)) or 'none'}",
        )


def _of_limits(limits: LimitsConfig) -> Iterator[tuple[str, str, str]]:
    if limits.pattern is not None and not compiles(limits.pattern):
        yield "pattern", "RE2 has no such pattern", "write one that neither looks around nor refers back"
    if any(not is_beneath(path, path) for path in limits.beneath or ()):
        yield "beneath", "a path has no empty part, no dots and no \\ in it", "write it as the tool takes it"
    if any(host_of(host) != host for host in limits.hosts or ()):
        yield "hosts", "this is no host's name in lower case", "write names such as example.org, alone"
    if limits.minimum is not None and limits.maximum is not None and limits.minimum > limits.maximum:
        yield "minimum", "nothing lies between this and the maximum", "exchange them"


def _of_sink(sink: SinkConfig, has: JsonObject, grants: Mapping[str, Grant]) -> Iterator[Remark]:
    for number, name in enumerate(sink.payload):
        yield from _of_name(("sink", "payload", number), name, has)
    for number, case in enumerate(sink.cases):
        for name, vouches in case.items():
            where = ("sink", "cases", number, name)
            yield from _of_name(where, name, has)
            for place, vouch in enumerate(vouches):
                for problem, fix in _of_vouch(vouch, grants):
                    yield (*where, place), problem, fix


def _of_vouch(vouch: VouchConfig, grants: Mapping[str, Grant]) -> Iterator[tuple[str, str]]:
    tool = vouch.lookup or vouch.source
    if tool is None:
        return
    if tool not in grants:
        yield "no grant names the tool that this looks at", "grant it, or remove this"
    elif vouch.lookup is not None and vouch.key is None:
        reads = grants[tool].reads
        if reads is None or (reads.integrity != "practice" and vouch.field not in reads.minted):
            problem = (
                "anybody may write into what this tool returns, so what stands in it vouches for nothing"
            )
            fix = (
                "add a key that the user must name, or reads: {integrity: practice} to its grant, or name the"
            )
            yield problem, f"{fix} field under reads.minted if the system alone writes it"


def _reads(reads: ReadsConfig) -> Reads:
    return Reads(
        data_class=DataClass.parse(reads.data_class),
        integrity=_INTEGRITY[reads.integrity],
        minted=frozenset(reads.minted),
        most=None if reads.max_class is None else DataClass.parse(reads.max_class),
    )


def _limits(limits: LimitsConfig) -> Limits:
    return Limits(**dict(limits))


def _place(host: GrantedHost) -> Place:
    login = None if host.credential is None else Login(credential=host.credential, header=host.header)
    paths, plain = host.paths or ("/",), host.unsafe_plain_http
    return Place(host=host.host, paths=paths, port=host.port, plain=plain, login=login)


def _sink(sink: SinkConfig) -> Sink:
    return Sink(
        kind=SinkKind(sink.to),
        ceiling=DataClass.parse(sink.max_class),
        payload=frozenset(sink.payload),
        cases=tuple(
            {name: tuple(map(_vouch, vouches)) for name, vouches in case.items()} for case in sink.cases
        ),
    )


def _vouch(vouch: VouchConfig) -> Vouch:
    if vouch.values is not None:
        return Listed(values=vouch.values)
    if vouch.up_to is not None:
        return UpTo(most=vouch.up_to)
    if vouch.lookup is not None:
        return LookedUp(tool=vouch.lookup, field=vouch.field, key=vouch.key, where=vouch.where)
    if vouch.source is not None:
        return NamedSource(tool=vouch.source)
    if vouch.unread:
        return Unread()
    raise AssertionError("a vouch says one thing: its section was judged")


def flow_document(flow: Flow) -> JsonObject:
    """Return what `flow` says, as a part of the policy's document; {} for nothing.

    Limits and cases stand in it as JSON in a text: the canonical form has no fractions, no names that a
    program gave its arguments, and is not that deep.
    """
    document: dict[str, Json] = {}
    if flow.limits:
        document["limits"] = _text({name: _words(each) for name, each in flow.limits.items()})
    if flow.reads is not None:
        document["reads"] = _reads_document(flow.reads)
    if flow.calls is not None:
        document["calls"] = flow.calls
    if flow.sink is not None:
        document["sink"] = {
            "to": flow.sink.kind.value,
            "max_class": flow.sink.ceiling.name,
            "payload": sorted(flow.sink.payload),
            "cases": [_text(_case(case)) for case in flow.sink.cases],
        }
    return document


def _reads_document(reads: Reads) -> JsonObject:
    document: dict[str, Json] = {"class": reads.data_class.name, "integrity": reads.integrity.name}
    if reads.minted:
        document["minted"] = sorted(reads.minted)
    if reads.most is not None:
        document["max_class"] = reads.most.name
    return document


def _case(case: Case) -> dict[str, object]:
    return {name: [[type(each).__name__, _words(each)] for each in vouches] for name, vouches in case.items()}


def _words(value: Limits | Vouch | Place | Login) -> dict[str, object]:
    """Return the members of a frozen value that say something, in the types of JSON."""
    members = {name: getattr(value, name) for name in value.__slots__}
    return {name: each for name, each in members.items() if each is not None and each is not False}


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_words)
