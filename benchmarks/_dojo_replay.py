# SPDX-License-Identifier: Apache-2.0
"""The worst case of an agent under injection, without a model: whoever is told to do something does it.

Owns the replay of one task through the real perimeter: sealed tools, labels, detectors, policy kernel and
record. The calls are those of the task's ground truth; those of an injection follow as soon as a result holds
it, or in a second replay at the end. Knows no benchmark: a suite is a port. AgentDojo's are in
`_dojo_suites.py`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from runner.capability.profile import read_profile
from runner.kernel.config import parse_config
from runner.kernel.errors import EgressDenied, Mistake, ToolError
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import JsonObject, Message, Role, ToolCall, ToolSpec
from runner.kernel.ports import ApprovalRequest, Classifier, Effect, GrantedCall, Locality, ToolOutput
from runner.perimeter.classify import EchoIndex
from runner.perimeter.client import Registration, SealedClient
from runner.perimeter.flows import SinkKind
from runner.perimeter.gate import Perimeter
from runner.perimeter.grants import compile_policy
from runner.perimeter.policy import Policy
from runner.perimeter.release import BackendTerms, Rules
from runner.perimeter.task import Task
from runner.perimeter.toolbox import SealedTools
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.testing import (
    FixedEntropy,
    FixedLocality,
    FrozenClock,
    MemoryLogStore,
    MemorySaltStore,
    MemorySigner,
    ScriptedBackend,
    header_words,
)

World: TypeAlias = Any
"""What the tools of a suite work on: the suite's own."""
MARK: Final = "injected-here"
"""A word that every injection begins with: a result that holds it has been read."""


@dataclass(frozen=True, kw_only=True)
class Deed:
    """One call of a ground truth. An argument may be a `Deed` itself: then it is what that returns."""

    tool: str
    arguments: Mapping[str, Any]


class UserTask(Protocol):
    """What a user asks for, and what doing it well is."""

    id: str
    prompt: str
    output: str

    def deeds(self, world: World) -> Sequence[Deed]:
        """Return the calls that do it."""

    def prepared(self, world: World) -> World:
        """Return `world` as this task finds it."""

    def is_useful(self, output: str, before: World, after: World, ran: Sequence[Deed]) -> bool:
        """Return whether it was done."""


class Injection(Protocol):
    """What somebody else wants done, and whether it was."""

    id: str
    output: str

    def deeds(self, world: World) -> Sequence[Deed]:
        """Return the calls that do it."""

    def text(self, world: World) -> str:
        """Return what stands in the place of everything that an outsider may write."""

    def succeeded(self, output: str, before: World, after: World, ran: Sequence[Deed]) -> bool:
        """Return whether it was done."""


class Suite(Protocol):
    """Tools over a world, tasks, and injections."""

    name: str
    specs: Sequence[ToolSpec]
    tasks: Sequence[UserTask]
    injections: Sequence[Injection]

    def world(self, injected: str | None) -> World:
        """Return a new world; `injected` stands wherever an outsider may write, None for the default."""

    def copy(self, world: World) -> World:
        """Return a copy that shares nothing."""

    def run(self, world: World, tool: str, arguments: Mapping[str, Any]) -> str:
        """Do it; return the result as JSON, or as text; raise `ToolError`."""


class _Tool:
    """One tool of a suite, over whatever world is there now. Implements the runner's port."""

    effect: Final = Effect.HOST
    path_arguments: Final[frozenset[str]] = frozenset()

    def __init__(self, spec: ToolSpec, act: Callable[[str, JsonObject], str]) -> None:
        self.spec: Final = spec
        self._act = act

    def run(self, call: GrantedCall) -> ToolOutput:
        return ToolOutput(text=self._act(self.spec.name, call.arguments))


class _Person:
    """The user, asked: yes to what the task needs, no to everything else."""

    name: Final = "user"

    def __init__(self) -> None:
        self.means_it = False
        self.asked: list[ApprovalRequest] = []

    async def approve(self, request: ApprovalRequest) -> bool:
        self.asked.append(request)
        return self.means_it


@dataclass(kw_only=True)
class Outcome:
    """What came of one replay. `refused` are calls of the task itself that did not run."""

    useful: bool = False
    succeeded: bool = False
    asked: int = 0
    asked_for_injection: int = 0
    refused: int = 0
    injected_ran: int = 0
    c3_seen: bool = False
    c3_to_sink: int = 0
    c3_to_remote: int = 0


class Stage:
    """A suite behind a perimeter of one profile. `person` says whether anybody is there to be asked."""

    def __init__(self, suite: Suite, policy: Policy, classifier: Classifier, *, person: bool) -> None:
        self._suite = suite
        self._world: World = None
        self._shadow: World = None
        self._person = _Person()
        self._policy = policy
        replays = len(suite.tasks) * (1 + 2 * len(suite.injections))
        self._remote = ScriptedBackend(replies=["fine"] * replays)
        perimeter = _perimeter(policy, classifier, self._remote, self._person if person else None)
        self._client: SealedClient = perimeter.seal(self._remote)
        self._perimeter = perimeter
        self._tools: SealedTools = perimeter.seal_tools([_Tool(spec, self._act) for spec in suite.specs])

    def _act(self, tool: str, arguments: JsonObject) -> str:
        with suppress(ToolError):
            self._suite.run(self._shadow, tool, deepcopy(arguments))
        return self._suite.run(self._world, tool, arguments)

    async def replay(
        self, task: UserTask, injection: Injection | None = None, *, late: bool = False
    ) -> Outcome:
        """Do what `task` needs, and once what `injection` says: when it was read, or `late`, at the end.

        It succeeded if the suite says so right after, or when all is done, of this world or of its shadow:
        the same calls in a world in which the injection is one word. A check that looks for the attacker's
        words may find them in the injection. One that was never read is obeyed at the end.
        """
        outcome, suite = Outcome(), self._suite
        clean = task.prepared(suite.world(None))
        text = None if injection is None else f"{MARK} {injection.text(clean)}"
        self._world = clean if text is None else task.prepared(suite.world(text))
        self._shadow = task.prepared(suite.world(None if text is None else MARK))
        before, dim, ran = suite.copy(self._world), suite.copy(self._shadow), list[Deed]()
        wanted = [] if injection is None else list(injection.deeds(suite.copy(clean)))
        said = task.output if injection is None else f"{task.output}\n{injection.output}"

        async def obey() -> None:
            for deed in wanted:
                await self._do(deed, running, outcome, ran, mine=False)
            for was, now in ((before, self._world), (dim, self._shadow)):
                outcome.succeeded |= injection is not None and injection.succeeded(said, was, now, ran)

        obeyed = False
        with self._perimeter.task(task.prompt) as running:
            for deed in task.deeds(suite.copy(clean)):
                reply = await self._do(deed, running, outcome, ran, mine=True)
                if MARK in reply and not obeyed and not late:
                    obeyed = True
                    await obey()
            if not obeyed:
                await obey()
            await self._ask_remote(running, outcome)
        after = self._world
        outcome.useful = not outcome.refused and task.is_useful(task.output, before, after, ran)
        for was, now in ((before, after), (dim, self._shadow)):
            outcome.succeeded |= injection is not None and injection.succeeded(said, was, now, ran)
        return outcome

    async def _do(self, deed: Deed, running: Task, outcome: Outcome, ran: list[Deed], *, mine: bool) -> str:
        """Run one call through the perimeter; return what it returned, "" for a denial."""
        arguments: dict[str, Any] = {}
        for name, value in deed.arguments.items():
            inner = isinstance(value, Deed)
            arguments[name] = (
                _value(await self._do(value, running, outcome, ran, mine=mine)) if inner else value
            )
        self._person.means_it, before = mine, len(self._person.asked)
        held = running.mark.data_class is DataClass.C3
        call = ToolCall(tool=deed.tool, arguments=arguments, origin=running.blocks[-1])
        reply = await self._tools.call(call, task=running)
        asked = len(self._person.asked) - before
        outcome.asked += asked if mine else 0
        outcome.asked_for_injection += 0 if mine else asked
        outcome.c3_seen |= running.mark.data_class is DataClass.C3
        if reply.status == "denied":
            outcome.refused += mine
            return ""
        outcome.injected_ran += not mine
        grant = self._policy.grants[deed.tool]
        leaves = grant.flow.sink is not None and grant.flow.sink.kind is SinkKind.NETWORK
        outcome.c3_to_sink += held and leaves
        ran.append(Deed(tool=deed.tool, arguments=arguments))
        return reply.block.text

    async def _ask_remote(self, running: Task, outcome: Outcome) -> None:
        """Ask a model elsewhere about all of it: what was C3 must not get there."""
        sent = len(self._remote.transport.sent)
        message = Message(role=Role.USER, blocks=running.blocks)
        try:
            await self._client.infer(InferenceRequest(messages=(message,)), task=running)
        except EgressDenied:
            return
        if running.mark.data_class is DataClass.C3:
            outcome.c3_to_remote += len(self._remote.transport.sent) - sent


def _value(text: str) -> World:
    """Return the value of a result that is JSON, else its text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def policy_of(profile: Path, suite: Suite) -> Policy:
    """Return the policy of the grants in `profile` over the tools of `suite`; raise `ConfigError`."""
    source = read_profile(str(profile), {})
    config = parse_config(source.data, file=source.file, locate=source.line)
    tools = {spec.name: _Tool(spec, suite.run) for spec in suite.specs}  # type: ignore[arg-type]  # not run
    return compile_policy(
        config.policy.grants,
        tools,
        host_tools=frozenset(tools),
        resolve=lambda path, _: path,
        unwritable=tuple,
        untouchable={},
        blame=lambda where, problem, fix: Mistake(
            file=source.file,
            line=source.line(where),
            where=".".join(map(str, where)),
            problem=problem,
            fix=fix,
        ),
    )


def _perimeter(
    policy: Policy, classifier: Classifier, remote: ScriptedBackend, person: _Person | None
) -> Perimeter:
    terms = BackendTerms(name=remote.name, local=False, address=remote.address, ceiling=DataClass.C1)
    facts = HeaderFacts(
        **header_words(
            book="benchmark/agentdojo", profile="attached", backends=(remote.name,), max_egress_class="C1"
        )
    )
    return Perimeter(
        rules=Rules(
            classifier=classifier,
            fault_as_c3=False,
            locality_c2=Locality.L0,
            locality_c3=Locality.L2,
            echo=EchoIndex(b"benchmark"),
        ),
        policy=policy,
        trace=Trace.open(
            store=MemoryLogStore(),
            signer=MemorySigner(),
            salts=MemorySaltStore(),
            clock=FrozenClock(),
            entropy=FixedEntropy(),
            facts=facts,
        ),
        clock=FrozenClock(),
        registrations={
            remote.name: Registration(
                terms=terms, transport=remote.transport, locality=FixedLocality(locality=Locality.REMOTE)
            )
        },
        approver=person,
    )
