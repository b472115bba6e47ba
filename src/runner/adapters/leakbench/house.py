# SPDX-License-Identifier: Apache-2.0
"""The profile under test: its perimeter, put together again with the receiver as its remote backend.

Owns what is kept of a profile (ceilings, registers, classifier, fault mode, redaction, the remote's
protocol) and what is put in its place: the record, the clock and the local model are fakes, and so is the
address. Owns, too, the only way to take detectors away: a classifier that finds nothing, which no profile
and no setting can name. Leaves what is sent to `carriers`. The product is neither imported differently nor
switched: see the ADR.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from runner.adapters.leakbench.ledger import Ledger
from runner.adapters.leakbench.people import CLIENT_FIRMS, CLIENT_PERSONS
from runner.adapters.leakbench.plan import Defence
from runner.assembly import (
    REMOTE,
    backends_of,
    embedders_of,
    register_lines,
    registrations_of,
    rules_of,
)
from runner.capability.profile import ProfileSource, read_profile
from runner.kernel.config import Config, InferenceConfig, RemoteInference, parse_config
from runner.kernel.decisions import Ask
from runner.kernel.labels import BOTTOM, DataClass
from runner.kernel.messages import Block, BlockKind, JsonObject, ToolCall
from runner.kernel.ports import Backend, Effect, Embedder, Locality, Root
from runner.kernel.registers import Listed
from runner.perimeter.classify import EchoIndex, Registers, compile_registers
from runner.perimeter.client import Registration
from runner.perimeter.gate import Perimeter
from runner.perimeter.policy import Policy, ToolGrant, decide
from runner.perimeter.release import BackendTerms, Rules
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.testing import (
    IN_PROCESS,
    FakeFinding,
    FixedEntropy,
    FixedLocality,
    FrozenClock,
    MemorySigner,
    ScriptedBackend,
    header_words,
)

LOCAL: Final = "local"
READ: Final = "read_file"
FOLDER: Final = "pratica"
_KEY: Final = b"the bench has no secrets of its own"[:32]
_PATH: Final[JsonObject] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
_LIFTED: Final = DataClass.C1


class Blind:
    """Finds nothing, and never fails. Implements `Classifier`, for the bench alone."""

    version: Final = "blind/1"

    def classify(self, text: str, *, source: str | None = None) -> FakeFinding:  # noqa: ARG002 - the port
        """Return C0."""
        return FakeFinding(data_class=DataClass.C0)


class Deaf(EchoIndex):
    """Remembers nothing, so that nothing is an echo."""

    __slots__ = ()

    def remember(self, text: str, data_class: DataClass) -> None:
        """Forget it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A profile made ready for trials. Made by `open_house`, one per process.

    `ceiling` is the highest class that may leave to the remote, -1 for none; then the run without defences
    lifts it, for else nothing could show that the bench finds a leak.
    """

    config: Config
    codec: Backend
    embedder: Embedder | None
    ceiling: int
    rules: Rules
    registers: Registers
    remote: Mapping[str, Registration]

    def perimeter(self, defence: Defence, trace: Trace, local: ScriptedBackend, *, level: int) -> Perimeter:
        """Return a perimeter of this profile with the given `defence`, which has seen nothing yet.

        `local` answers as the local model; files are granted as class `level`, or C0 without labels.
        """
        declared = DataClass(level) if defence.labels else DataClass.C0
        grant = ToolGrant(
            tool=READ,
            effect=Effect.READ,
            parameters=_PATH,
            path_arguments=frozenset({"path"}),
            roots=(Root(alias=FOLDER, path=f"/{FOLDER}", declared=declared),),
        )
        own = Registration(
            terms=BackendTerms(name=LOCAL, local=True, address=IN_PROCESS, ceiling=None),
            transport=local.transport,
            locality=FixedLocality(locality=Locality.L2),
        )
        return Perimeter(
            rules=self._rules(defence),
            policy=Policy(grants={READ: grant}),
            trace=trace,
            clock=FrozenClock(),
            registrations={LOCAL: own, **self._remote(defence)},
        )

    def asks(self) -> tuple[bool, ...]:
        """Return for each grant of the profile whether the policy asks a person about a call under it."""
        return tuple(_asks(grant.tool, ask=grant.approval == "ask") for grant in self.config.policy.grants)

    def _rules(self, defence: Defence) -> Rules:
        if defence.detectors:
            return replace(self.rules, echo=EchoIndex(_KEY, registers=self.registers))
        return replace(self.rules, classifier=Blind(), fragments=None, echo=Deaf(_KEY))

    @property
    def remotes(self) -> Collection[str]:
        """The names on record of what listens at the receiver: the model, and the one for embeddings."""
        return self.remote.keys()

    def _remote(self, defence: Defence) -> Mapping[str, Registration]:
        if self.ceiling >= 0 or defence is not Defence.NONE:
            return self.remote
        return {
            name: replace(each, terms=replace(each.terms, ceiling=_LIFTED))
            for name, each in self.remote.items()
        }

    def trace(self, store: Ledger, seed: str) -> Trace:
        """Return an open record in `store`, whose ids follow from `seed`."""
        facts = HeaderFacts(
            **header_words(
                book="akaion/leakbench",
                profile=self.config.profile,
                backends=(LOCAL, *self.remotes),
                max_egress_class=self.config.perimeter.max_egress_class,
            )
        )
        return Trace.open(
            store=store,
            signer=MemorySigner(),
            salts=store,
            clock=FrozenClock(),
            entropy=FixedEntropy(seed.encode()),
            facts=facts,
        )


def _asks(tool: str, *, ask: bool) -> bool:
    """Say whether the policy kernel asks about a fitting call of `tool`, granted with or without `ask`."""
    grant = ToolGrant(tool=tool, effect=Effect.READ, parameters={"type": "object"}, ask=ask)
    nobody = Block(id="b0", kind=BlockKind.GOAL, text="", label=BOTTOM)
    verdict = decide(Policy(grants={tool: grant}), ToolCall(tool=tool, arguments={}, origin=nobody))
    return isinstance(verdict, Ask)


def open_house(named: str, url: str, *, own: Sequence[str] = (), public: Sequence[str] = ()) -> House:
    """Return the profile `named` (shipped, or a file) with the receiver at `url` as its remote backend.

    `own` and `public` are added to the registers of these names, as the bench's clients are to the client
    register. Raises `ConfigError` with every mistake of the profile.
    """
    source = read_profile(named, {})
    config = parse_config(source.data, file=source.file, locate=source.line)
    config = config.model_copy(update={"inference": _inference(config, url)})
    codecs = backends_of(config, source)
    embedders = embedders_of(config, codecs, source)
    registers = _registers(config, source, own, public)
    return House(
        config=config,
        codec=codecs[REMOTE],
        embedder=embedders.get(REMOTE),
        ceiling=ceiling_of(config),
        rules=rules_of(config, registers, key=_KEY, ours=()),
        registers=registers,
        remote=registrations_of(config, codecs, embedders=embedders),
    )


def ceiling_of(config: Config) -> int:
    """Return the highest class that a profile lets leave to its remote backend, 0 to 3; -1 for none."""
    remote, ceiling = config.inference.remote, config.perimeter.ceiling
    if ceiling is None:
        return -1
    own = None if remote is None else remote.max_class
    return int(ceiling if own is None else min(ceiling, DataClass.parse(own)))


def registered(config: Config, source: ProfileSource) -> dict[str, int]:
    """Return how many entries each register has that the profile names; raise `ConfigError` for a bad one."""
    return {name: len(lines) for name, lines in register_lines(config, source).items()}


def _inference(config: Config, url: str) -> InferenceConfig:
    """Return the profile's remote backend at `url` without its credential, OpenAI-shaped if it has none."""
    known = config.inference.remote
    protocol = "openai" if known is None else known.backend
    remote = RemoteInference(
        backend=protocol,
        embeddings=None if protocol == "anthropic" else "leakbench",
        endpoint=url,
        model="leakbench",
        max_class=None if known is None else known.max_class,
    )
    return InferenceConfig(remote=remote, prefer=REMOTE, timeout_s=config.inference.timeout_s)


def _registers(config: Config, source: ProfileSource, own: Sequence[str], public: Sequence[str]) -> Registers:
    lines = register_lines(config, source)
    return compile_registers(
        clients=(*lines.get("clients", ()), *_listed((*CLIENT_PERSONS, *CLIENT_FIRMS))),
        own=(*lines.get("own_identity", ()), *_listed(own)),
        public=(*lines.get("public", ()), *_listed(public)),
        key=_KEY,
    )


def _listed(names: Sequence[str]) -> tuple[Listed, ...]:
    return tuple(
        Listed(file="leakbench", line=line, names=(name,)) for line, name in enumerate(names, start=1)
    )
