# SPDX-License-Identifier: Apache-2.0
"""A whole perimeter over public fakes: what the tests of this room share."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from runner.capability.textcalls import TextCallReader
from runner.kernel.labels import DataClass
from runner.kernel.ports import Approver, Classifier, Effect, Locality, Root, ServerCheck, Tool, Transport
from runner.kernel.tiers import WITHOUT_NATIVE, Tier
from runner.perimeter.classify import EchoIndex
from runner.perimeter.client import Registration, SealedClient
from runner.perimeter.fetching import Outlet
from runner.perimeter.gate import Perimeter
from runner.perimeter.opinions import Opinions
from runner.perimeter.policy import Policy, ToolGrant
from runner.perimeter.release import BackendTerms, Rules
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.testing import (
    FakeClassifier,
    FixedEntropy,
    FixedLocality,
    FrozenClock,
    MemoryLogStore,
    MemorySaltStore,
    MemorySigner,
    ScriptedBackend,
    ScriptedEmbedder,
    header_words,
)

ROOT = Root(alias="files", path="/granted/files", declared=DataClass.C1)


@dataclass(frozen=True, kw_only=True)
class World:
    """A perimeter and the fakes around it."""

    perimeter: Perimeter
    client: SealedClient
    backend: ScriptedBackend
    embedder: ScriptedEmbedder
    store: MemoryLogStore
    clock: FrozenClock
    adviser: ScriptedBackend | None = None

    def records(self, kind: str | None = None) -> list[dict[str, object]]:
        """Return the bodies of the durable records, of one kind or all, each with its kind and seq."""
        lines = [line for log in self.store.files.values() for line in log.durable.splitlines()]
        entries = [json.loads(line) for line in lines]
        return [
            {**entry["body"], "kind": entry["kind"], "seq": entry["seq"]}
            for entry in entries
            if entry["kind"] != "seal" and kind in {None, entry["kind"]}
        ]

    def order(self) -> list[str]:
        """Return the kinds of all durable lines, seals included, in order."""
        lines = [line for log in self.store.files.values() for line in log.durable.splitlines()]
        return [json.loads(line)["kind"] for line in lines]


def _grant(tool: Tool, *, roots: Sequence[Root] = (ROOT,), ask: bool = False) -> ToolGrant:
    return ToolGrant(
        tool=tool.spec.name,
        effect=tool.effect,
        parameters=tool.spec.parameters,
        path_arguments=tool.path_arguments,
        roots=tuple(roots),
        ask=ask,
        veils=tool.effect is Effect.READ and getattr(tool, "veils", False) is True,
    )


@pytest.fixture
def grant() -> Callable[..., ToolGrant]:
    """Return a maker of grants: `grant(tool, roots=(...), ask=True)`."""
    return _grant


@pytest.fixture
def make_world() -> Callable[..., World]:
    """Return a maker of worlds: `make_world(replies=[...], local=False, ceiling=DataClass.C1, ...)`."""

    def make(
        *,
        replies: Sequence[object] = (),
        local: bool = True,
        ceiling: DataClass | None = None,
        locality: Locality = Locality.L2,
        server: ServerCheck | None = None,
        classifier: Classifier | None = None,
        fault_as_c3: bool = False,
        redaction: bool = False,
        declassification: bool = False,
        grants: Mapping[str, ToolGrant] | None = None,
        approver: Approver | None = None,
        opinions: Opinions | None = None,
        adviser: ScriptedBackend | None = None,
        adviser_locality: Locality = Locality.L2,
        adviser_transport: Transport | None = None,
        vectors: Sequence[object] = (),
        transport: Transport | None = None,
        echo: EchoIndex | None = None,
        fragments: Classifier | None = None,
        tiers: tuple[Tier, ...] = WITHOUT_NATIVE,
        outlet: Outlet | None = None,
        clock: FrozenClock | None = None,
    ) -> World:
        embedder = ScriptedEmbedder(replies=vectors)  # type: ignore[arg-type]  # any scripted reply
        backend = ScriptedBackend(replies=replies)  # type: ignore[arg-type]  # any scripted reply
        store, clock = MemoryLogStore(), clock or FrozenClock()
        facts = HeaderFacts(
            **header_words(
                book="test/book",
                profile="attached",
                backends=("scripted", "scripted-embeddings", *([] if adviser is None else [adviser.name])),
                max_egress_class="none" if ceiling is None else ceiling.name,
                classifier="rules-only" if opinions is None else opinions.name,
            )
        )
        trace = Trace.open(
            store=store,
            signer=MemorySigner(),
            salts=MemorySaltStore(),
            clock=clock,
            entropy=FixedEntropy(),
            facts=facts,
        )
        terms = BackendTerms(name="scripted", local=local, address=backend.address, ceiling=ceiling)
        registrations = {
            "scripted": Registration(
                terms=terms,
                transport=transport or backend.transport,
                locality=FixedLocality(locality=locality),
                server=server,
                tiers=tiers,
            ),
            embedder.name: Registration(
                terms=replace(terms, name=embedder.name, address=embedder.address),
                transport=embedder.transport,
                locality=FixedLocality(locality=locality),
            ),
        }
        if adviser is not None:
            registrations[adviser.name] = Registration(
                terms=BackendTerms(name=adviser.name, local=True, address=adviser.address, ceiling=ceiling),
                transport=adviser_transport or adviser.transport,
                locality=FixedLocality(locality=adviser_locality),
                timeout_s=60.0 if adviser_transport is None else 0.01,
            )
        perimeter = Perimeter(
            rules=Rules(
                classifier=classifier or FakeClassifier(),
                fault_as_c3=fault_as_c3,
                locality_c2=Locality.L0,
                locality_c3=Locality.L2,
                redaction=redaction,
                declassification=declassification,
                echo=EchoIndex(b"") if echo is None else echo,
                fragments=fragments,
            ),
            policy=Policy(grants=dict(grants or {})),
            trace=trace,
            clock=clock,
            registrations=registrations,
            approver=approver,
            opinions=opinions,
            reader=TextCallReader(),
            outlet=outlet,
        )
        client = perimeter.seal(backend, embedder=embedder)
        return World(
            perimeter=perimeter,
            client=client,
            backend=backend,
            embedder=embedder,
            store=store,
            clock=clock,
            adviser=adviser,
        )

    return make
