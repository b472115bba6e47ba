# SPDX-License-Identifier: Apache-2.0
"""The composition root: a profile in, a wired runtime out.

Owns which capability stands behind which port, and nothing else: it judges no content and holds no rule.
The only module that imports capabilities and perimeter together. Carries I6: the topologies differ in
the profile only.
"""

import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self, assert_never
from urllib.parse import urlsplit

from runner.agent.loop import AgentLoop
from runner.agent.prompts import own_texts
from runner.agent.steps import Budget, Event
from runner.capability.backends.anthropic import AnthropicBackend
from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.backends.embeddings import OllamaEmbedder, OpenAIEmbedder
from runner.capability.backends.listings import LlamaServerCheck, OllamaCheck, VllmCheck
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.backends.ollama import OllamaBackend
from runner.capability.backends.openai import OpenAIBackend
from runner.capability.backends.vllm import VllmBackend
from runner.capability.credentials import BEARER, credential_file, read_credential
from runner.capability.home import akaion_home, make_home
from runner.capability.models import Catalogue, models_dir
from runner.capability.profile import ProfileSource, read_profile
from runner.capability.registers import read_register
from runner.capability.sandbox.bubblewrap import Bubblewrap, why_not
from runner.capability.sandbox.unconfined import Unconfined
from runner.capability.textcalls import TextCallReader
from runner.capability.tools.beneath import identity_of
from runner.capability.tools.commandrules import command_rules
from runner.capability.tools.filesystem import ListDir, ReadFile, SearchText
from runner.capability.tools.shell import NAME as SHELL
from runner.capability.tools.shell import Shell
from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.findings import FileFindings
from runner.capability.transport.http import HttpTransport
from runner.capability.transport.inprocess import EngineTransport
from runner.capability.transport.keys import FileCustody, export_pin
from runner.capability.transport.locality import LoopbackCheck
from runner.capability.transport.logstore import FolderLogStore, read_boot_id
from runner.capability.transport.osring import KeyringCustody
from runner.capability.transport.salts import FileSaltStore
from runner.capability.transport.signer import ProcessCustody
from runner.kernel.capabilities import Capabilities
from runner.kernel.config import Config, LocalInference, RemoteInference, parse_config
from runner.kernel.errors import (
    ConfigError,
    LoopError,
    Mistake,
    ModelError,
    SealError,
    TraceError,
    TraceUnavailable,
)
from runner.kernel.inference import Address
from runner.kernel.labels import DataClass
from runner.kernel.ports import (
    Approver,
    Backend,
    Credential,
    Custody,
    Effect,
    Embedder,
    Endpoint,
    Locality,
    Probeable,
    SaltStore,
    SecondOpinion,
    ServerCheck,
    Signer,
    Tool,
)
from runner.kernel.registers import Listed
from runner.kernel.tiers import Tier
from runner.kernel.version import __version__
from runner.perimeter.classify import FRAGMENTS, Classifier, EchoIndex, Registers, compile_registers
from runner.perimeter.client import Registration, SealedClient
from runner.perimeter.gate import Perimeter
from runner.perimeter.grants import Blame, compile_policy, pin_policy, policy_document
from runner.perimeter.opinions import Adviser, Opinions, PluggedIn
from runner.perimeter.policy import Policy
from runner.perimeter.probing import Probe
from runner.perimeter.release import BackendTerms, Rules
from runner.perimeter.second_model import LocalModel
from runner.perimeter.toolbox import SealedTools
from runner.perimeter.trace.commit import config_digest, policy_digest, prompts_digest
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.note import device_key_name, parse_vkey, vkey
from runner.perimeter.trace.records import RULES_ONLY
from runner.perimeter.trace.records import HostTool as HostToolRecord
from runner.perimeter.trace.recover import named_successor

LOCAL: Final = "local"
REMOTE: Final = "remote"
"""The names of the two backends a profile configures, as in the trace."""
OPINION: Final = "opinion"
"""The name of the model that is asked for a second opinion, and for nothing else."""
KEY_FILE: Final = "device.key"
"""The file of a device key, in whatever folder; the next one is beside it, with `.next` behind its name."""
FINDINGS: Final = "backend-caps.json"
"""The file in the home directory that keeps what backends were seen to do."""
EMBEDDINGS: Final = "embeddings"
"""What the name of a backend's embedding model ends in: `local-embeddings` is another backend on record."""
_ENDPOINT: Final = re.compile(r"[A-Za-z]+://[^\x00-\x20\x7f/?#@\\]+(/|/v1/?)?")
_HOST: Final = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?|[0-9a-f]*:[0-9a-f:.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a runtime keeps its own files: `trace` is the book, the others lie outside it.

    `signer` is the socket of a signer process, and then `key` is not used.
    """

    trace: Path
    key: Path
    pin: Path
    salts: Path
    signer: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedBook:
    """A book whose key was replaced: its `folder`, and the file `pin` of the key that it is verified by."""

    folder: Path
    pin: Path


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
    **overrides: Any,  # noqa: ANN401 - sections of a profile, judged by parse_config
) -> "Runtime":
    """Return the runtime of a right profile whether its weights are here or not. See `open_profile`.

    One that is only `to_read` looks for no credential and cannot be entered: it says what a profile permits
    where nothing is run, as on the machine of whoever signs it.
    """
    source = read_profile(named, overrides)
    config = parse_config(source.data, file=source.file, locate=source.line)
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
        self._tools = _by_name((ListDir(), ReadFile(), SearchText(), _shell(config), *tools), _blame(source))
        self._host_tools = frozenset(tool.spec.name for tool in tools)
        self._policy = self._compile_policy()
        self._rules = _rules(config, source, own_texts(tool.spec for tool in self._tools.values()))
        self._resources = ExitStack()
        self._engines = engines_of(config, source)
        self._backends = _replaced(backends_of(config, source), codecs, _blame(source))
        self._adviser = _opinion_backend(config, _blame(source))
        self._opinions = _opinions(self._adviser, second_opinions, _blame(source))
        self._embedders = embedders_of(config, self._backends, source)
        remote = config.inference.remote
        self._credential = None if remote is None or to_read else _credential(remote, source, self._places)
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
    def trace_path(self) -> Path:
        """The folder of the record: what an auditor gets."""
        return self._places.trace

    def missing_weights(self) -> Sequence[str]:
        """Return a sentence, with its fix, for each embedded model whose weights are not here."""
        named = (self.config.inference.local, self.config.opinion)
        said = (None if model is None else _missing_weights(model, self._source) for model in named)
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
        if self._to_read:
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
                    credential=self._credential,
                ),
                approver=self._approver,
                opinions=self._opinions,
                findings=FileFindings(akaion_home() / FINDINGS),
                reader=TextCallReader(),
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

    def _compile_policy(self) -> Policy:
        home = akaion_home()
        untouchable = [*own_folders(self._places)]
        remote = self.config.inference.remote
        credential = None if remote is None else _credential_file(remote, self._source, self._places)
        untouchable += [] if credential is None else [credential]
        untouchable += [] if self._places.signer is None else [self._places.signer]
        registers = _register_paths(self.config, self._source, self._places).values()
        unwritable = (*untouchable, self._places.trace, home, self._source.path, *registers)
        return compile_policy(
            self.config.policy.grants,
            self._tools,
            host_tools=self._host_tools,
            resolve=lambda path, where: str(self._source.resolve(path, where)),
            unwritable=[os.path.realpath(path) for path in unwritable if path is not None],
            untouchable=[os.path.realpath(path) for path in untouchable],
            blame=_blame(self._source),
        )

    def _pinned_policy(self) -> Policy:
        """Return the policy with each root held to the folder that is there now; raise `ConfigError`."""
        grants, blame = self.config.policy.grants, _blame(self._source)
        return pin_policy(self._policy, grants, identify=identity_of, blame=blame)

    def missing_sandbox(self) -> Mistake | None:
        """Return why a granted tool cannot have the sandbox it needs, with the fix; None if it can."""
        needing = (
            index
            for index, grant in enumerate(self.config.policy.grants)
            if self._policy.grants[grant.tool].effect is Effect.RUN
        )
        index = next(needing, None)
        if index is None or (found := why_not()) is None:
            return None
        problem, _, fix = found.partition(". Fix: ")
        where = ("policy", "grants", index)
        fix = f"{fix or 'use such a machine'}, or remove this grant"
        return _blame(self._source)(where, f"no sandbox can be built here: {problem}", fix)

    def _check_sandbox(self) -> None:
        """Raise `ConfigError` where a program would run without the sandbox that the profile wants (P3)."""
        if (mistake := self.missing_sandbox()) is not None:
            raise ConfigError([mistake])

    def _effects(self) -> frozenset[Effect]:
        return frozenset(grant.effect for grant in self._policy.grants.values())

    def _open_trace(self, salts: SaltStore, *, successor: str | None = None) -> Trace:
        signer = self._keys.signer()
        store = FolderLogStore(self._places.trace, self._places.pin)
        if named_successor(store) is not None:
            raise TraceError("this book ended with its device key. Fix: finish it with `akaion keys rotate`")
        return Trace.open(
            store=store,
            signer=signer,
            salts=salts,
            clock=SystemClock(),
            entropy=SystemEntropy(),
            facts=replace(self._header_facts(signer.public_key), successor=successor),
        )

    def _header_facts(self, device: bytes) -> HeaderFacts:
        host_tools = tuple(
            HostToolRecord(name=grant.tool, trusted=grant.trusted)
            for grant in self.config.policy.grants
            if self._policy.grants[grant.tool].effect is Effect.HOST
        )
        untrusted = not all(tool.trusted for tool in host_tools)
        return HeaderFacts(
            book=book_name(device),
            host=platform.node(),
            boot_id=read_boot_id() or SystemEntropy().token(16).hex(),
            profile=self.config.profile,
            policy_digest=policy_digest(policy_document(self._policy)),
            config_digest=config_digest(self.config.model_dump(mode="json")),
            prompts=prompts_digest(own_texts(tool.spec for tool in self._tools.values())),
            backends=(*self._all_backends(), *(each.name for each in self._embedders.values())),
            host_tools=host_tools,
            max_egress_class=self.config.perimeter.max_egress_class,
            classifier=RULES_ONLY if self._opinions is None else self._opinions.name,
            enforcement=self.config.perimeter.enforcement,
            sandbox="bubblewrap" if Effect.RUN in self._effects() else "none",
            unverifiable_because=(
                *(("host-tool-untrusted",) if untrusted else ()),
                *(("tool-unrestricted",) if Effect.RUN_FREE in self._effects() else ()),
            ),
            writer=f"akaion-runner/{__version__}",
            seal_every=self.config.trace.seal_every,
        )


def registrations_of(
    config: Config,
    backends: Mapping[str, Backend],
    *,
    embedders: Mapping[str, Embedder] = MappingProxyType({}),
    engines: Mapping[str, EngineTransport] = MappingProxyType({}),
    credential: Credential | None = None,
) -> dict[str, Registration]:
    """Return each of `backends` with the terms that `config` sets for its name, and its only way out.

    Those of `embedders`, by the backend each belongs to, have its terms under a name of their own. `engines`
    are the embedded ones by the name of their backend, `credential` is what the remote one gets. Raises
    `LoopError` for a backend in this process without an engine.
    """
    timeout = float(config.inference.timeout_s)
    remote, ceiling = config.inference.remote, config.perimeter.ceiling
    registrations = {}
    for side, endpoint in (*backends.items(), *embedders.items()):
        transport = engines.get(side) if endpoint.address.scheme == "inproc" else HttpTransport(timeout)
        if transport is None:
            raise LoopError("the embedded engine was not made")
        own = remote.max_class if side == REMOTE and remote is not None else None
        model = config.opinion if side == OPINION else config.inference.local
        terms = BackendTerms(
            name=endpoint.name,
            local=side != REMOTE,
            address=endpoint.address,
            ceiling=ceiling if own is None or ceiling is None else min(ceiling, DataClass.parse(own)),
        )
        registrations[endpoint.name] = Registration(
            terms=terms,
            transport=transport,
            locality=LoopbackCheck(),
            server=None if side == REMOTE else _server_check(model, endpoint),
            codec=endpoint if isinstance(endpoint, Probeable) else None,
            credential=credential if side == REMOTE else None,
            timeout_s=timeout,
            first=_first_tier(remote if side == REMOTE else model),
        )
    return registrations


def _first_tier(endpoint: LocalInference | RemoteInference | None) -> Tier | None:
    """Return the tier in which the profile says that a model is asked for calls first; None for `auto`."""
    return None if endpoint is None or endpoint.tier == "auto" else Tier(endpoint.tier)


def custody_of(config: Config, places: Places) -> Custody:
    """Return who keeps the device key of this profile. Nothing is made, asked or read yet."""
    if places.signer is not None:
        return ProcessCustody(places.signer)
    if config.trace.custody == "keyring":
        name = sha256(os.fsencode(places.key)).hexdigest()[:16]  # another key for another folder of keys
        return KeyringCustody(name, entropy=SystemEntropy())
    return FileCustody(places.key, book=places.trace, entropy=SystemEntropy())


def device_vkey(signer: Signer) -> str:
    """Return the verifier key of the device key of `signer`, as a pin file holds it."""
    return vkey(device_key_name(book_name(signer.public_key)), signer.public_key)


def book_name(device: bytes) -> str:
    """Return the name of the book that the device key `device` (32 bytes, public) certifies."""
    return f"akaion/{sha256(device).hexdigest()[:16]}"


def places_of(config: Config, source: ProfileSource) -> Places:
    """Return where the runtime of this profile keeps its files: as it says, else in the home directory."""
    home = akaion_home()
    named = config.trace
    trace = source.resolve(named.path, ("trace", "path")) if named.path else home / "trace"
    keys = source.resolve(named.keys, ("trace", "keys")) if named.keys else home / "keys"
    book = sha256(str(trace).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Places(
        trace=trace,
        key=keys / KEY_FILE,
        signer=source.resolve(named.signer, ("trace", "custody")) if named.signer else None,
        pin=home / "state" / f"{book}.pin",
        salts=home / "vault" / "salts",
    )


def own_folders(places: Places) -> tuple[Path, ...]:
    """Return the folders of keys, maps and pins, without links: those of `places` and those of the home.

    No grant reaches them, and nothing that a profile names is read from them (I5). The keys of the home count
    where the profile keeps its own elsewhere too: they are another profile's.
    """
    folders = (places.key.parent, akaion_home() / "keys", places.salts.parent, places.pin.parent)
    return tuple(dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders))


def _read_from(path: str, where: tuple[str, ...], source: ProfileSource, places: Places) -> Path:
    """Return the file `path`, named at `where`, which the runner reads for what is in it.

    Raises `ConfigError` for one of the perimeter's own: a credential leaves, and a key must not (I5).
    """
    found = source.resolve(path, where)
    own = any(found.is_relative_to(folder) for folder in own_folders(places))
    if own or found.name in (KEY_FILE, f"{KEY_FILE}.next"):
        problem, fix = "the perimeter's keys lie here", "name a file of your own, in a folder without them"
        raise ConfigError([_blame(source)(where, problem, fix)])
    return found


def _by_name(tools: Sequence[Tool], blame: Blame) -> dict[str, Tool]:
    """Return `tools` by name; raise `ConfigError` when two have one name, since a grant would mean either."""
    found: dict[str, Tool] = {}
    mistakes: list[Mistake] = []
    for tool in tools:
        if not hasattr(tool, "spec"):
            problem, fix = f"a {type(tool).__name__} is no tool", "wrap a function: HostTool(function)"
            mistakes.append(blame(("tools",), problem, fix))
            continue
        if tool.spec.name in found:
            problem = f"two tools are named {tool.spec.name!a}"
            mistakes.append(blame(("tools",), problem, "give the tool you pass another name"))
        found[tool.spec.name] = tool
    if mistakes:
        raise ConfigError(mistakes)
    return found


def _shell(config: Config) -> Shell:
    """Return the tool that starts the programs `config` names, confined unless it says otherwise."""
    grant = next((each for each in config.policy.grants if each.tool == SHELL), None)
    named = () if grant is None else grant.commands or ()
    binaries = {name: rules for name, rules in command_rules().items() if name in named}
    if grant is not None and grant.sandbox == "unrestricted":
        return Shell(binaries, Unconfined(), effect=Effect.RUN_FREE)
    return Shell(binaries, Bubblewrap())


def _blame(source: ProfileSource) -> Blame:
    def blame(where: tuple[str | int, ...], problem: str, fix: str) -> Mistake:
        dotted = ".".join(str(part) for part in where)
        return Mistake(file=source.file, line=source.line(where), where=dotted, problem=problem, fix=fix)

    return blame


def classifier_of(config: Config, source: ProfileSource) -> Classifier:
    """Return the profile's classifier with its registers; raise `ConfigError` for one that cannot be used."""
    return Classifier(registers=_registers(config, source, SystemEntropy().token(32)))


def _rules(config: Config, source: ProfileSource, ours: Sequence[str]) -> Rules:
    """Return how the profile judges; raise `ConfigError` for a register that cannot be used.

    `ours` is what the runner says itself, which is an echo of nothing.
    """
    key = SystemEntropy().token(32)
    return rules_of(config, _registers(config, source, key), key=key, ours=ours)


def rules_of(config: Config, registers: Registers, *, key: bytes, ours: Sequence[str]) -> Rules:
    """Return how the profile judges with `registers`; `key` (32 secret bytes) is of this runtime.

    `ours` is what the runner says itself, which is an echo of nothing.
    """
    return Rules(
        classifier=Classifier(registers=registers),
        fault_as_c3=config.perimeter.classifier_fault == "as_c3",
        locality_c2=Locality(config.perimeter.locality_required.c2),
        locality_c3=Locality(config.perimeter.locality_required.c3),
        redaction=config.perimeter.redaction == "on",
        declassification=config.perimeter.declassification == "ask",
        echo=EchoIndex(key, registers=registers, ours=ours),
        fragments=Classifier(FRAGMENTS, registers),
    )


def register_lines(config: Config, source: ProfileSource) -> dict[str, tuple[Listed, ...]]:
    """Return the lines of the registers the profile names; raise `ConfigError` for one of wrong shape."""
    paths = _register_paths(config, source, places_of(config, source))
    return {name: read_register(path) for name, path in paths.items()}


def _registers(config: Config, source: ProfileSource, key: bytes) -> Registers:
    lines = register_lines(config, source)
    return compile_registers(
        clients=lines.get("clients", ()),
        own=lines.get("own_identity", ()),
        public=lines.get("public", ()),
        key=key,
    )


def _register_paths(config: Config, source: ProfileSource, places: Places) -> dict[str, Path]:
    """Return where the registers that the profile names lie, by name; raise `ConfigError`."""
    named = config.perimeter.registers
    paths = {"clients": named.clients, "own_identity": named.own_identity, "public": named.public}
    where = ("perimeter", "registers")
    return {
        name: _read_from(path, (*where, name), source, places)
        for name, path in paths.items()
        if path is not None
    }


def engines_of(config: Config, source: ProfileSource) -> dict[str, EngineTransport]:
    """Return the embedded engines by the name of their backend, not yet loaded: one where two share a model.

    Raises `ConfigError` for a model that the catalogue does not have. Weights need not be here yet.
    """
    local, opinion = config.inference.local, config.opinion
    engine = _engine(local, ("inference", "local", "model"), source)
    second = engine if opinion is local else _engine(opinion, ("perimeter", "classifier"), source)
    named = {LOCAL: engine, OPINION: second if opinion is not None else None}
    return {name: each for name, each in named.items() if each is not None}


def _engine(
    local: LocalInference | None, where: tuple[str, ...], source: ProfileSource
) -> EngineTransport | None:
    """Return the embedded engine, not yet loaded; `where` names the model."""
    path = None if local is None else _weights(local, where, source)
    return None if local is None or path is None else EngineTransport(path, local.context, local.threads)


def _weights(local: LocalInference, where: tuple[str, ...], source: ProfileSource) -> Path | None:
    """Return where the weights of an embedded model are or will be; None for a model on a server.

    Raises `ConfigError` for a model that the catalogue does not have: no fetching helps there.
    """
    if local.runtime != "embedded":
        return None
    if local.weights:
        return source.resolve(local.weights, ("inference", "local", "weights"))
    entries = Catalogue.bundled().entries
    if local.model not in entries:
        fix = f"name one of: {', '.join(sorted(entries))}; or a file, with inference.local.weights"
        raise ConfigError([_blame(source)(where, "the catalogue has no such model", fix)])
    return models_dir() / entries[local.model].file


def _missing_weights(local: LocalInference, source: ProfileSource) -> str | None:
    """Return what to do about weights that are not here, None for nothing."""
    path = _weights(local, ("inference", "local", "model"), source)
    if path is None or path.is_file():
        return None
    fix = "correct inference.local.weights" if local.weights else f"akaion models fetch {local.model}"
    return f"the weights of {local.model} are missing. Fix: {fix}"


def backends_of(config: Config, source: ProfileSource) -> dict[str, Backend]:
    """Return the codecs of the backends that `config` configures; raise `ConfigError` for a bad endpoint."""
    found: dict[str, Backend] = {}
    local, remote, blame = config.inference.local, config.inference.remote, _blame(source)
    if local is not None:
        found[LOCAL] = _local_backend(LOCAL, local, blame)
    if remote is not None:
        address = _address(remote.endpoint, ("inference", "remote", "endpoint"), blame)
        match remote.backend:
            case "llamacpp":
                found[REMOTE] = LlamaCppBackend(name=REMOTE, model=remote.model, address=address, context=0)
            case "anthropic":
                found[REMOTE] = AnthropicBackend(name=REMOTE, model=remote.model, address=address)
            case "openai" | "akaion":
                found[REMOTE] = OpenAIBackend(name=REMOTE, model=remote.model, address=address)
            case _:
                assert_never(remote.backend)
    return found


def _replaced(configured: dict[str, Backend], codecs: Sequence[Backend], blame: Blame) -> dict[str, Backend]:
    """Return `configured` with each of `codecs` in the place of its name.

    Raises `ConfigError` for one that the profile does not configure exactly: terms are the profile's to say.
    """
    mistakes: list[Mistake] = []
    for codec in codecs:
        where, known = ("inference", codec.name), configured.get(codec.name)
        if known is None:
            fix = f"add inference.{codec.name} to the profile, or give the codec another name"
            mistakes.append(blame(where, "a codec was passed for a backend that is not configured", fix))
        elif codec.address != known.address:
            fix = f"write {codec.address}, or make the codec with the address of the profile"
            mistakes.append(blame((*where, "endpoint"), "the codec passed for it has another address", fix))
        elif codec.model != known.model:
            fix = "write the model of the codec, or make the codec with the model of the profile"
            mistakes.append(blame((*where, "model"), "the codec passed for it asks for another model", fix))
    if mistakes:
        raise ConfigError(mistakes)
    return configured | {codec.name: codec for codec in codecs}


def _opinion_backend(config: Config, blame: Blame) -> Backend | None:
    """Return the codec of the model that is asked for a second opinion, always the runner's own."""
    return None if config.opinion is None else _local_backend(OPINION, config.opinion, blame)


def _opinions(model: Backend | None, others: Sequence[SecondOpinion], blame: Blame) -> Opinions | None:
    """Return who is asked beside the rules; raise `ConfigError` for one that is none, or cannot be named."""
    advisers: list[Adviser] = [] if model is None else [LocalModel(model)]
    try:
        advisers += [PluggedIn(other) for other in others]
        return Opinions(advisers) if advisers else None
    except AttributeError:
        problem, fix = "what was passed is no second opinion", "give it a name, a version and opinion(text)"
        raise ConfigError([blame(("perimeter", "classifier"), problem, fix)]) from None
    except ValueError as problem:
        fix = "give each second opinion that you pass another name"
        raise ConfigError([blame(("perimeter", "classifier"), str(problem), fix)]) from None


def _local_backend(name: str, local: LocalInference, blame: Blame) -> Backend:
    model, context = local.model, local.context
    if local.endpoint is None:
        return EmbeddedBackend(name=name, model=model, context=context)
    address = _address(local.endpoint, ("inference", "local", "endpoint"), blame)
    match local.runtime:
        case "ollama":
            return OllamaBackend(name=name, model=model, address=address, context=context)
        case "vllm":
            return VllmBackend(name=name, model=model, address=address, context=context)
        case "llamacpp" | "embedded":  # embedded has no endpoint, as `LocalInference` checks
            return LlamaCppBackend(name=name, model=model, address=address, context=context)
        case _:
            assert_never(local.runtime)


def embedders_of(
    config: Config, backends: Mapping[str, Backend], source: ProfileSource
) -> dict[str, Embedder]:
    """Return the codec of each embedding model that `config` names, by the backend it belongs to.

    Raises `ConfigError` for a bad endpoint.
    """
    found: dict[str, Embedder] = {}
    local, remote = config.inference.local, config.inference.remote
    if local is not None and local.embeddings is not None:
        where, address = ("inference", "local", "embeddings_endpoint"), backends[LOCAL].address
        if local.embeddings_endpoint is not None:
            address = _address(local.embeddings_endpoint, where, _blame(source))
        codec = OllamaEmbedder if local.runtime == "ollama" else OpenAIEmbedder
        found[LOCAL] = codec(name=f"{LOCAL}-{EMBEDDINGS}", model=local.embeddings, address=address)
    if remote is not None and remote.embeddings is not None:
        found[REMOTE] = OpenAIEmbedder(
            name=f"{REMOTE}-{EMBEDDINGS}", model=remote.embeddings, address=backends[REMOTE].address
        )
    return found


def _server_check(local: LocalInference | None, endpoint: Endpoint) -> ServerCheck | None:
    """Return what asks the local server at `endpoint` about itself; None for the engine in this process."""
    if local is None:
        return None
    model, address = endpoint.model, endpoint.address
    match local.runtime:
        case "llamacpp":
            return LlamaServerCheck(model=model, address=address)
        case "ollama":
            return OllamaCheck(model=model, address=address)
        case "vllm":
            return VllmCheck(model=model, address=address)
        case "embedded":
            return None
        case _:
            assert_never(local.runtime)


def _credential(remote: RemoteInference, source: ProfileSource, places: Places) -> Credential | None:
    """Return the credential of a remote backend, in the header its protocol wants it in."""
    if remote.credential is None:
        return None
    header = "x-api-key" if remote.backend == "anthropic" else BEARER
    return read_credential(remote.credential, resolve=_finder(source, places), header=header)


def _credential_file(remote: RemoteInference, source: ProfileSource, places: Places) -> Path | None:
    """Return the file that holds the credential of a remote backend, if one does; raise `ConfigError`."""
    return None if remote.credential is None else credential_file(remote.credential, _finder(source, places))


def _finder(source: ProfileSource, places: Places) -> Callable[[str], Path]:
    return lambda path: _read_from(path, ("inference", "remote", "credential"), source, places)


def _address(endpoint: str, where: tuple[str, ...], blame: Blame) -> Address:
    """Return the address of an `http(s)://host[:port]` endpoint; raise `ConfigError` for anything more."""
    try:
        parts = urlsplit(endpoint)
        usual = {"http": 80, "https": 443}[parts.scheme]
        port, host = usual if parts.port is None else parts.port, parts.hostname or ""
        whole = endpoint.isascii() and _ENDPOINT.fullmatch(endpoint)
        if port and whole and _HOST.fullmatch(host):
            return Address(scheme=parts.scheme, host=host, port=port)
    except (ValueError, KeyError):
        pass
    fix = "write scheme, host and port only, such as http://127.0.0.1:8080"
    raise ConfigError([blame(where, "this is not an endpoint", fix)])
