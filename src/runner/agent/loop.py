# SPDX-License-Identifier: Apache-2.0
"""The agent loop: plan, act, answer, check, until there is an answer or a reason to stop.

Owns the order of a run. It holds a sealed client and sealed tools and nothing else that reaches the world:
what it may send and what it may call is decided, each time, by the perimeter that sealed them.
"""

from collections.abc import Callable
from dataclasses import replace

import anyio

from runner.agent.answerer import Draft, answer_freely, answer_from_lines
from runner.agent.judge import judged
from runner.agent.planner import is_question_over_files, next_step, search
from runner.agent.session import Session
from runner.agent.steps import Budget, Event, Evidence, RunResult, Stop, StopReason, ToolStep
from runner.kernel.errors import ClassifierFault, LoopError, raises_bare, raises_bare_here
from runner.kernel.labels import DataClass
from runner.perimeter.client import SealedClient
from runner.perimeter.task import Outcome
from runner.perimeter.toolbox import SealedTools


class AgentLoop:
    """Runs tasks over one model and a set of tools, both sealed by the same perimeter.

    Arguments: `budget` bounds each run; `on_event` is called with what happens, for a progress display.
    Raises `LoopError` for a client and tools of two perimeters, and for one that is not sealed.
    """

    def __init__(
        self,
        *,
        client: SealedClient,
        tools: SealedTools,
        budget: Budget | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        given: tuple[object, object] = (client, tools)
        if not isinstance(given[0], SealedClient) or not isinstance(given[1], SealedTools):
            raise LoopError("a loop takes sealed objects only: client=runtime.client, tools=runtime.tools")
        if client.perimeter is not tools.perimeter:
            raise LoopError("client and tools were sealed by two perimeters: take both from one runtime")
        self._client = client
        self._tools = tools
        self._budget = budget or Budget()
        self._on_event = on_event

    @raises_bare_here
    def run(self, goal: str, *, data_class: DataClass | None = None, matter: str | None = None) -> RunResult:
        """Do what `goal` asks and return what came of it; blocks. See `arun`.

        Raises `LoopError` inside a running event loop: await `arun` there.
        """
        if _inside_event_loop():
            raise LoopError("run() was called inside a running event loop: use `await loop.arun(...)`")
        return anyio.run(lambda: self.arun(goal, data_class=data_class, matter=matter))

    @raises_bare
    async def arun(
        self, goal: str, *, data_class: DataClass | None = None, matter: str | None = None
    ) -> RunResult:
        """Do what `goal` asks and return what came of it.

        `data_class` says how sensitive `goal` itself is: C3 for a privileged text. None counts as C1, and
        what detectors find in it counts on top. `matter` is the client matter that the task is for: it sees
        the folders of that matter and those of none.

        A denial, a spent budget and a failing backend are results with a stop reason. Raises `TraceError`
        when the run could not be recorded, `SealError` when blocks were tampered with, `ClassifierFault`
        when `goal` itself could not be classified, and `PerimeterError` for a matter that no grant names.
        What is raised shows no frame of the run, since these hold what was read (I12).
        """
        async with self._client.task(goal, data_class=data_class, matter=matter) as task:
            session = Session(
                client=self._client,
                tools=self._tools,
                task=task,
                budget=self._budget,
                on_event=self._on_event,
            )
            try:
                with anyio.fail_after(self._budget.seconds):
                    draft = await _work(session)
            except TimeoutError:
                result = _result(session, None, StopReason.TIME)
            except Stop as stop:
                result = _result(session, None, stop.reason, stop.detail)
            except ClassifierFault as fault:
                result = _result(session, None, StopReason.FAILED, str(fault))
            else:
                reason = StopReason.NOT_FOUND if draft is None else StopReason.ANSWERED
                result = _result(session, draft, reason)
            task.outcome = _OUTCOMES.get(result.stop, "stopped")
            return result


async def _work(session: Session) -> Draft | None:
    """Return an answer, or None when the files do not hold one. Raises `Stop`."""
    if not is_question_over_files(session):
        await _call_until_done(session)
        return await answer_freely(session)
    await search(session)
    draft = await answer_from_lines(session)
    return None if draft is None else await judged(session, draft)


async def _call_until_done(session: Session) -> None:
    """Let the model call tools until it chooses to answer, or asks for the same call again.

    A call that comes again ends the calls, not the run, once a tool has returned something. Raises `Stop`.
    """
    try:
        while await next_step(session):
            pass
    except Stop as stop:
        useful = any(isinstance(step, ToolStep) and step.status == "ok" for step in session.steps)
        if stop.reason is not StopReason.NO_PROGRESS or not useful:
            raise


_OUTCOMES: dict[StopReason, Outcome] = {
    StopReason.ANSWERED: "done",
    StopReason.NOT_FOUND: "done",
    StopReason.DENIED: "failed",
    StopReason.FAILED: "failed",
}


def _result(session: Session, draft: Draft | None, stop: StopReason, detail: str = "") -> RunResult:
    evidence = () if draft is None or draft.evidence is None else (_for_the_user(session, draft.evidence),)
    return RunResult(
        answer="" if draft is None else draft.text,
        stop=stop,
        evidence=evidence,
        steps=tuple(session.steps),
        data_class=session.task.mark.data_class,
        tokens=session.tokens,
        task=session.task.id,
        detail=detail,
        confirmed=draft is not None and draft.confirmed,
        unread=session.unread,
        not_whole=session.not_whole,
    )


def _for_the_user(session: Session, evidence: Evidence) -> Evidence:
    """Return `evidence` with what stands behind its tokens: it is the user's own."""
    reveal = session.task.reveal
    return replace(evidence, file=reveal(evidence.file), quote=reveal(evidence.quote))


def _inside_event_loop() -> bool:
    try:
        anyio.get_current_task()
    except RuntimeError:
        return False
    return True
