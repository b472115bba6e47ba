# SPDX-License-Identifier: Apache-2.0
"""One run's working state: the task, what was read, what was spent.

Owns asking the model and calling tools on behalf of planner, answerer and judge, and the budget that all
of them share. Holds only sealed objects, so every inference and every call passes the perimeter (P1, P2).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

from runner.agent.progress import ProgressGuard
from runner.agent.steps import (
    UNAPPROVED,
    Budget,
    Event,
    EventKind,
    FailedStep,
    Step,
    Stop,
    StopReason,
    ToolStep,
)
from runner.kernel.errors import BackendError, EgressDenied, ReplyInvalid, RequestRefused, TransportError
from runner.kernel.inference import InferenceRequest
from runner.kernel.language import how_many
from runner.kernel.messages import Block, Json, JsonObject, Message, Role, ToolCall, ToolSpec
from runner.kernel.ports import Excerpt
from runner.kernel.tiers import CallFailure, Tier
from runner.perimeter.client import Reply, SealedClient
from runner.perimeter.running import ToolReply
from runner.perimeter.task import Task
from runner.perimeter.toolbox import SealedTools

INVALID: Final = "the model's replies stayed invalid"
"""What is said of a run that ends since no reply could be used."""
SAYS_NO_TO_THE_FORM: Final = frozenset({400, 422, 500, 501})
"""Statuses with which a runtime refuses tools or a schema, or loses a reply that breaks its own format.

With any other it would refuse the next request as well.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draw:
    """How the tokens of a reply are drawn, and how many times the tokens asked for it may take."""

    seed: int = 0
    temperature: float = 0.0
    frequency_penalty: float = 0.0
    budgets: int = 1


FIRST: Final = _Draw()
SECOND: Final = _Draw(seed=1, temperature=0.4)
AFTER_A_CUT: Final = _Draw(seed=1, temperature=0.4, frequency_penalty=0.5, budgets=2)
"""After a reply that had no end: either it repeated itself, or it was long. No bound cuts it to fit.

A bound on what may be written would make a reply whole that its model did not end, and it would run. Under
the penalty a list or a text that repeats itself is left, and the model itself ends it.
"""


def is_invalid(reply: Reply | FailedStep) -> TypeGuard[FailedStep]:
    """Return whether `reply` failed in a way that a second try may mend: a refusal stays one."""
    return isinstance(reply, FailedStep) and reply.failure is not CallFailure.REFUSED


class Session:
    """The shared state of one run."""

    def __init__(
        self,
        *,
        client: SealedClient,
        tools: SealedTools,
        task: Task,
        budget: Budget,
        on_event: Callable[[Event], None] | None,
    ) -> None:
        self.tools = {spec.name: spec for spec in tools.specs}
        self.task = task
        self.steps: list[Step] = []
        self.tokens = 0
        self.query = task.as_seen(task.goal.text)
        """The question in every wording it was searched in."""
        self.read: list[tuple[Block, tuple[Excerpt, ...]]] = []
        """What tools returned: each block, and the lines of it that may be quoted."""
        self.tiers: tuple[Tier, ...] = ()
        """How calls are asked for, in order; see `find_tiers`. A run that fell from one does not go back."""
        self.unread = 0
        """How many files could not be read as text, in the call that met most of them."""
        self._searched_in_part = 0
        """How many documents were searched of which a part could not be read, counted likewise."""
        self._read_in_part: set[str] = set()
        """The documents that were read by name of which a part could not be, as they were named."""
        self._client = client
        self._sealed_tools = tools
        self._budget = budget
        self._on_event = on_event
        self._guard = ProgressGuard()
        self._denied: list[str] = []
        """The rule of each denied call."""

    async def ask(self, *parts: str | Block, schema: JsonObject, max_tokens: int) -> Reply:
        """Return the model's JSON reply to `parts`: text the runner wrote, and blocks of the task.

        The first part is the system message, the others one user message. Every reply is validated
        against `schema`; an invalid one is asked for once more, with another seed. Raises `Stop`.
        """
        reply = await self.held(*parts, schema=schema, max_tokens=max_tokens)
        if isinstance(reply, Reply):
            return reply
        raise Stop(StopReason.FAILED, reply.detail or INVALID)

    async def held(self, *parts: str | Block, schema: JsonObject, max_tokens: int) -> Reply | FailedStep:
        """Ask as `ask` does; return the last failure if the second reply cannot be used either."""
        reply = await self.attempt(*parts, schema=schema, max_tokens=max_tokens)
        if is_invalid(reply):
            reply = await self.attempt(*parts, schema=schema, max_tokens=max_tokens, after=reply)
        return reply

    async def attempt(
        self,
        *parts: str | Block,
        schema: JsonObject | None = None,
        tools: Sequence[ToolSpec] = (),
        in_text: Sequence[ToolSpec] = (),
        max_tokens: int,
        after: FailedStep | None = None,
    ) -> Reply | FailedStep:
        """Ask once, as `ask` does; return the reply, or how it failed, which is among the steps then.

        The reply is held to `schema`, to calls of `tools` in the runtime's protocol, or to calls of `in_text`
        in its text. `after` is how the first try failed, if this is the second: see `_Draw`. Raises `Stop`: a
        denial is a denial, in whatever way one asks.
        """
        draw = FIRST if after is None else AFTER_A_CUT if after.failure is CallFailure.TRUNCATED else SECOND
        blocks = [part if isinstance(part, Block) else self.task.instruction(part) for part in parts]
        request = InferenceRequest(
            messages=(
                Message(role=Role.SYSTEM, blocks=(blocks[0],)),
                Message(role=Role.USER, blocks=tuple(blocks[1:])),
            ),
            schema=schema,
            tools=tuple(tools),
            max_tokens=max_tokens * draw.budgets,
            seed=draw.seed,
            temperature=draw.temperature,
            frequency_penalty=draw.frequency_penalty,
            stream=self._on_event is not None,
        )
        tier = Tier.NATIVE if tools else Tier.TEXT if in_text else Tier.CONSTRAINED
        reply = await self._infer(request, in_text, tier)
        if isinstance(reply, FailedStep):
            self.steps.append(reply)
        return reply

    async def _infer(
        self, request: InferenceRequest, in_text: Sequence[ToolSpec], tier: Tier
    ) -> Reply | FailedStep:
        if self.tokens >= self._budget.tokens:
            raise Stop(StopReason.TOKENS)
        try:
            reply = await self._client.infer(
                request, task=self.task, on_text=self._on_text(), in_text=in_text
            )
        except EgressDenied as denied:
            raise Stop(StopReason.DENIED, str(denied)) from denied
        except ReplyInvalid as invalid:
            failure = invalid.failure or CallFailure.SCHEMA_VIOLATION
            return FailedStep(failure=failure, tier=tier, where=invalid.where)
        except BackendError as error:
            if isinstance(error, RequestRefused) and error.status not in SAYS_NO_TO_THE_FORM:
                raise Stop(StopReason.FAILED, str(error)) from error
            return FailedStep(failure=CallFailure.REFUSED, tier=tier, detail=str(error))
        except TransportError as error:
            raise Stop(StopReason.FAILED, str(error)) from error
        self.tokens += reply.usage.prompt_tokens + reply.usage.completion_tokens
        return reply

    async def call(
        self, tool: str, arguments: JsonObject, *, origin: Block, said: JsonObject | None = None
    ) -> ToolReply:
        """Run a tool through the perimeter and remember what it returned. Raises `Stop`.

        `origin` is the block the arguments were taken from, and `said` how the model wrote them there.
        """
        if sum(isinstance(step, ToolStep) for step in self.steps) >= self._budget.steps:
            raise Stop(StopReason.STEPS)
        if not self._guard.is_new(tool, arguments if said is None else said):
            raise Stop(StopReason.NO_PROGRESS, _no_progress(self._denied))
        shown = _shown(self.task, arguments)
        self._tell("call", f"{tool} {json.dumps(shown, ensure_ascii=False)}")
        reply = await self._sealed_tools.call(
            ToolCall(tool=tool, arguments=arguments, origin=origin), task=self.task
        )
        self.steps.append(ToolStep(tool=tool, arguments=shown, status=reply.status))
        if reply.status == "denied":
            self._denied.append(reply.rule or UNAPPROVED)
        self.unread = max(self.unread, reply.unread)
        self._count_in_part(arguments, reply)
        self.read.append((reply.block, reply.excerpts))
        unapproved = reply.status == "denied" and not reply.rule
        self._tell("result", UNAPPROVED if unapproved else reply.status)
        return reply

    @property
    def not_whole(self) -> int:
        """How many documents were searched or read of which a part could not be read: the larger count."""
        return max(self._searched_in_part, len(self._read_in_part))

    def newest(self) -> tuple[Block, tuple[Excerpt, ...]]:
        """Return what the last tool call returned. Raises `IndexError` before the first."""
        return self.read[-1]

    async def find_tiers(self) -> None:
        """Settle `tiers`, once per run: the order of the profile, or what the backend was seen to do.

        The backend is asked at the first need of a runtime. That is no part of the task: it has no content,
        and its tokens are not counted here. Raises `TraceError`.
        """
        if self.tiers:
            return
        if self._client.may_probe:
            self.think("probing the backend (first use of this model; kept afterwards)")
            await self._client.capabilities()
        self.tiers = self._client.tiers

    def think(self, about: str) -> None:
        """Say what the model is about to do."""
        self._tell("thinking", about)

    def _count_in_part(self, arguments: JsonObject, reply: ToolReply) -> None:
        """Count the documents of `reply` that are not whole; one that is named counts once."""
        named = arguments.get("path")
        if reply.not_whole and isinstance(named, str):
            self._read_in_part.add(named)
        else:
            self._searched_in_part = max(self._searched_in_part, reply.not_whole)

    def _on_text(self) -> Callable[[str], None] | None:
        if self._on_event is None:
            return None
        return lambda text: self._tell("text", text)

    def _tell(self, kind: EventKind, text: str) -> None:
        if self._on_event is not None:
            self._on_event(Event(kind=kind, text=text))


def _shown(task: Task, arguments: JsonObject) -> dict[str, Json]:
    """Return `arguments` for the user's own eyes: with what stands behind tokens."""
    return {
        name: task.reveal(value) if isinstance(value, str) else value for name, value in arguments.items()
    }


def _no_progress(denied: Sequence[str]) -> str:
    """Say why a run ended whose next call had been made before; `denied` are the rules of denied calls."""
    if not denied:
        return "the same call came again"
    return f"{how_many(len(denied), 'call')} denied: {', '.join(sorted(set(denied)))}"
