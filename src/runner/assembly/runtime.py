# SPDX-License-Identifier: Apache-2.0
"""A profile at work: everything wired, opened and closed in one place.

Owns the order in which a runtime is made and ended. Leaves to the modules beside it what each part is made
of, and judges nothing. Carries I6, and P3 where a sandbox is needed that cannot be built.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from runner.agent.loop import AgentLoop
from runner.agent.prompts import own_texts
from runner.agent.steps import Budget, Event
from runner.assembly.assumed import assumed_names, assumed_tools
from runner.assembly.backends import OPINION, backends_of, embedders_of, opinion_backend, replaced
from runner.assembly.blame import blame_of
from runner.assembly.credentials import Credentials, bare_logins, credentials_of
from runner.assembly.engines import engines_of, missing_weights
from runner.assembly.header import header_facts
from runner.assembly.opinions import opinions_of
from runner.assembly.places import book_name, custody_of, device_vkey, places_of
from runner.assembly.policy import missing_sandbox, policy_of
from runner.assembly.registrations import registrations_of
from runner.assembly.rules import rules_for
from runner.assembly.tools import by_name, outlet_of, shipped_tools
from runner.capability.home import akaion_home, make_home
from runner.capability.profile import ProfileSource, read_profile
from runner.capability.textcalls import TextCallReader
from runner.capability.tools.beneath import identity_of
from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.findings import FileFindings
from runner.capability.transport.keys import claim_key, export_pin
from runner.capability.transport.logstore import FolderLogStore
from runner.capability.transport.salts import FileSaltStore
from runner.kernel.capabilities import Capabilities
from runner.kernel.config import Config, parse_config
from runner.kernel.errors import (
    ConfigError,
    LoopError,
    Mistake,
    ModelError,
    SealError,
    TraceError,
    TraceUnavailable,
    raises_bare_here,
)
from runner.kernel.ports import Approver, Backend, SaltStore, SecondOpinion, Signer, Tool
from runner.perimeter.client import SealedClient
from runner.perimeter.gate import Perimeter
from runner.perimeter.grants import pin_policy
from runner.perimeter.policy import Policy
from runner.perimeter.probing import Probe
from runner.perimeter.toolbox import SealedTools
from runner.perimeter.trace.commit import prompts_digest
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.note import parse_vkey
from runner.perimeter.trace.records import RULES_ONLY
from runner.perimeter.trace.recover import named_successor

FINDINGS: Final = "backend-caps.json"
"""The file in the home directory that keeps what backends were seen to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedBook:
    """A book whose key was replaced: its `folder`, and the file `pin` of the key that it is verified by."""

    folder: Path
    pin: Path


@raises_bare_here
def open_profile(
    named: str | Path,
    *,
    tools: Sequence[Tool] = (),
    approver: Approver | None = None,
    codecs: Sequence[Backend] = (),
    second_opinions: Sequence[SecondOpinion] = (),
    **overrides: Any,  # noqa: ANN401 - sections of a profile, judged by parse_config
) -> "Runtime":
    """Return the runtime of a profile, judged but not yet started: use it as a context manager.

    Arguments: `named` is a shipped profile ("detached", "attached", "appliance") or a path to a YAML
    file; `tools` are host tools the profile may grant; `approver` answers calls whose grant says
    `approval: ask`; `codecs` stand in for the runner's own, each for the backend it is named after, with the
    address and model the profile gives it; `second_opinions` are asked, after the rules, about what would
    leave for a remote backend, and only raise; `overrides` replace sections of the profile, such as
    `policy={...}`.
    Raises `ConfigError` with the mistakes, and `ModelError` when a model's weights are missing.
    """
    runtime = construct(
        named, tools=tools, approver=approver, codecs=codecs, second_opinions=second_opinions, **overrides
    )
    if missing := runtime.missing_weights():
        raise ModelError(" ".join(missing))
    return runtime


def construct(
    named: str | Path,
    *,
    tools: Sequence[Tool] = (),
    approver: Approver | None = None,
    codecs: Sequence[Backend] = (),
    second_opinions: Sequence[SecondOpinion] = (),
    to_read: bool = False,
    assume: bool = False,
    **overrides: Any,  # noqa: ANN401 - sections of a profile, judged by parse_config
) -> "Runtime":
    """Return the runtime of a right profile whether its weights are here or not. See `open_profile`.

    One that is only `to_read` looks for no credential and cannot be entered: it says what a profile permits
    where nothing is run, as on the machine of whoever signs it. With `assume`, a tool that is not here is
    taken for the program's own, with any arguments (see `Runtime.assumed`); that cannot be entered either.
    """
    source = read_profile(named, overrides)
    config = parse_config(source.data, file=source.file, locate=source.line)
    if assume:
        there = {tool.spec.name for tool in (*shipped_tools(config, source), *tools)}
        tools = (*tools, *assumed_tools(config, there, blame_of(source)))
    return Runtime(
        config,
        source,
        tools=tools,
        approver=approver,
        codecs=codecs,
        second_opinions=second_opinions,
        to_read=to_read,
    )


class Runtime:
    """A profile at work. Enter it once: `with open_profile("detached") as rt: ...`."""

    def __init__(
        self,
        config: Config,
        source: ProfileSource,
        *,
        tools: Sequence[Tool],
        approver: Approver | None,
        codecs: Sequence[Backend],
        second_opinions: Sequence[SecondOpinion] = (),
        to_read: bool = False,
    ) -> None:
        self.config = config
        self._to_read = to_read
        self._source = source
        self._approver = approver
        self._places = places_of(config, source)
        self._keys = custody_of(config, self._places)
        self._tools = by_name((*shipped_tools(config, source), *tools), blame_of(source))
        self._policy = policy_of(
            config, source, self._places, self._tools, frozenset(tool.spec.name for tool in tools)
        )
        self._rules = rules_for(config, source, own_texts(tool.spec for tool in self._tools.values()))
        self._resources = ExitStack()
        self._engines = engines_of(config, source)
        self._backends = replaced(backends_of(config, source), codecs, blame_of(source))
        self._adviser = opinion_backend(config, blame_of(source))
        self._opinions = opinions_of(self._adviser, second_opinions, blame_of(source))
        self._embedders = embedders_of(config, self._backends, source)
        self._credentials = (
            Credentials() if to_read else credentials_of(config, self._policy, source, self._places)
        )
        self._opened: Perimeter | None = None

    # --- what callers use ------------------------------------------------------------------------

    @property
    def perimeter(self) -> Perimeter:
        """The perimeter of this runtime; raises `LoopError` outside its `with` block."""
        if self._opened is None:
            raise LoopError("this runtime is not open: write `with open_profile(...) as rt:`")
        return self._opened

    @property
    def client(self) -> SealedClient:
        """The sealed client of the preferred backend."""
        return self.client_for(self.config.inference.prefer)

    @property
    def tools(self) -> SealedTools:
        """The sealed tools that the profile grants."""
        return self.perimeter.seal_tools(tuple(self._tools.values()))

    @property
    def policy(self) -> Policy:
        """The compiled grants; once this runtime is open, held to the folders that were there then."""
        return self._policy

    @property
    def assumed(self) -> tuple[str, ...]:
        """The tools that were taken for a program's own, by name: their arguments are not known."""
        return assumed_names(tuple(self._tools.values()))

    @property
    def trace_path(self) -> Path:
        """The folder of the record: what an auditor gets."""
        return self._places.trace

    def missing_weights(self) -> Sequence[str]:
        """Return a sentence, with its fix, for each embedded model whose weights are not here."""
        named = (self.config.inference.local, self.config.opinion)
        said = (None if model is None else missing_weights(model, self._source) for model in named)
        return list(dict.fromkeys(filter(None, said)))

    def missing_paths(self) -> Sequence[Mistake]:
        """Return a mistake for each granted path where nothing can be read now: opening refuses them."""
        try:
            self._pinned_policy()
        except ConfigError as error:
            return error.mistakes
        return ()

    def export_pin(self, target: Path | str) -> None:
        """Write the auditor's pin, one line naming the device key, to `target` outside the record's folder.

        Raises `TraceError` for a target inside it, where a pin proves nothing, and `OSError`.
        """
        export_pin(device_vkey(self._keys.signer()), Path(target), book=self._places.trace)

    def rotate_key(self, successor: str | None = None) -> EndedBook:
        """End this book under its device key, which names the next one, and return where both lie now.

        A new key takes the place of the old one; or `successor` is named, the verifier key of a device key
        that the profile is to have from then on. What was broken off goes on where it was when this is called
        again. The old key's pin is kept first, beside the head pins: no key says it any more afterwards.
        Raises `TraceError`, also for a key that only its signer process can replace.
        """
        store, current = (
            FolderLogStore(self._places.trace, self._places.pin),
            device_vkey(self._keys.signer()),
        )
        if successor == current:
            raise TraceError("that is the key that signs already. Fix: name another one")
        named = named_successor(store)
        new = successor or (current if named == current else self._next_key())
        if named is None:
            self._end_book(new)
        store.acquire()
        try:
            if named_successor(store) != new:
                raise TraceUnavailable(
                    "this book ended for another key. Fix: name that one, or end what writes it"
                )
            pin = self._places.pin.with_suffix(f".before-{book_name(parse_vkey(new)[1])[-16:]}.vkey")
            if current != new:
                export_pin(current, pin, book=self._places.trace)
            if successor is None:
                self._keys.promote()
            return EndedBook(folder=store.retire(), pin=pin)
        finally:
            store.release()

    def _next_key(self) -> str:
        return device_vkey(self._keys.successor())

    def _end_book(self, successor: str) -> None:
        """Write the book's last log, which names `successor`."""
        make_home()
        with (
            closing(FileSaltStore(self._places.salts, book=self._places.trace)) as salts,
            self._open_trace(salts, successor=successor),
        ):
            pass

    def client_for(self, name: str) -> SealedClient:
        """Return the sealed client of the backend "local" or "remote"; raise `SealError` without one."""
        if name not in self._backends:
            raise SealError(f"the profile configures no {name} backend")
        return self.perimeter.seal(self._backends[name], embedder=self._embedders.get(name))

    async def capabilities(self, name: str) -> Capabilities:
        """Return what the backend "local" or "remote" was seen to do, asked at the first need.

        What was found at an earlier start stands as long as runtime, model and template are the same. Raises
        `SealError` without such a backend, and `TraceError`.
        """
        return await self.client_for(name).capabilities()

    async def probe(self, name: str, *, forms: bool = False) -> Probe:
        """Find out afresh what the backend "local" or "remote" does, and put it on record.

        With `forms`, the forms of its protocol that are never used are tried instead, for a person to read.
        Raises as `capabilities` does.
        """
        if name not in self._backends:
            raise SealError(f"the profile configures no {name} backend")
        return await self.perimeter.probe(self._backends[name], forms=forms, fresh=True)

    def loop(self, *, on_event: Callable[[Event], None] | None = None) -> AgentLoop:
        """Return an agent loop over this runtime's client and tools, within the profile's budget."""
        limits = self.config.budget
        budget = Budget(steps=limits.steps, tokens=limits.tokens, seconds=limits.seconds)
        return AgentLoop(client=self.client, tools=self.tools, budget=budget, on_event=on_event)

    def load(self, progress: Callable[[str], None] | None = None) -> None:
        """Read an embedded model's weights now instead of at the first question. Blocks for seconds."""
        for engine in dict.fromkeys(self._engines.values()):
            engine.load(progress)

    def __enter__(self) -> Self:
        """Open the record and wire the perimeter.

        Raises `TraceError` if the record cannot be opened, `ConfigError` if a granted path is missing or a
        sandbox is needed that cannot be built here, and `LoopError` for a runtime that is only to be read.
        """
        if self._to_read or self.assumed:
            raise LoopError("this runtime was made to be read: open the profile with open_profile")
        self._policy = self._pinned_policy()
        self._check_sandbox()
        make_home()
        with ExitStack() as opening:
            for engine in self._engines.values():
                opening.callback(engine.close)
            salts = FileSaltStore(self._places.salts, book=self._places.trace)
            opening.callback(salts.close)
            trace = opening.enter_context(self._open_trace(salts))
            self._opened = Perimeter(
                rules=self._rules,
                policy=self._policy,
                trace=trace,
                clock=SystemClock(),
                registrations=registrations_of(
                    self.config,
                    self._all_backends(),
                    embedders=self._embedders,
                    engines=self._engines,
                    credential=self._credentials.remote,
                ),
                approver=self._approver,
                opinions=self._opinions,
                findings=FileFindings(akaion_home() / FINDINGS),
                reader=TextCallReader(),
                outlet=outlet_of(self.config, self._policy, self._credentials.pages),
            )
            self._resources = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close the record, free the model."""
        self._opened = None
        self._resources.__exit__(kind, error, where)

    # --- wiring ----------------------------------------------------------------------------------

    def _all_backends(self) -> dict[str, Backend]:
        """Return the backends a client may be sealed for, and the one that is asked for a second opinion."""
        return self._backends if self._adviser is None else {**self._backends, OPINION: self._adviser}

    def _pinned_policy(self) -> Policy:
        """Return the policy with each root held to the folder that is there now; raise `ConfigError`."""
        grants, blame = self.config.policy.grants, blame_of(self._source)
        return pin_policy(self._policy, grants, identify=identity_of, blame=blame)

    def missing_sandbox(self) -> Mistake | None:
        """Return why a granted tool cannot have the sandbox it needs, with the fix; None if it can."""
        return missing_sandbox(self.config, self._source, self._policy)

    def bare_logins(self) -> Sequence[Mistake]:
        """Return a mistake for each credential of a page that is sent as no host is likely to take it."""
        return list(bare_logins(self.config, self._policy, self._credentials.pages, self._source))

    def _check_sandbox(self) -> None:
        """Raise `ConfigError` where a program would run without the sandbox that the profile wants (P3)."""
        if (mistake := self.missing_sandbox()) is not None:
            raise ConfigError([mistake])

    def _open_trace(self, salts: SaltStore, *, successor: str | None = None) -> Trace:
        signer = self._keys.signer()
        if self._places.signer is None:  # a signer process holds the head of its one book
            claim_key(self._places.claim, self._places.trace)
        return Trace.open(
            store=FolderLogStore(self._places.trace, self._places.pin),
            signer=signer,
            salts=salts,
            clock=SystemClock(),
            entropy=SystemEntropy(),
            facts=replace(self._header_facts(signer), successor=successor),
        )

    def _header_facts(self, signer: Signer) -> HeaderFacts:
        return header_facts(
            self.config,
            self._policy,
            book=book_name(signer.public_key),
            backends=(*self._all_backends(), *(each.name for each in self._embedders.values())),
            prompts=prompts_digest(own_texts(tool.spec for tool in self._tools.values())),
            classifier=RULES_ONLY if self._opinions is None else self._opinions.name,
        )
