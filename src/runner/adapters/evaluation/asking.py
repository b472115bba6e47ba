# SPDX-License-Identifier: Apache-2.0
"""A model of the catalogue, asked for calls by the code that a run uses.

Owns the runtime of a measurement: a detached profile with the model in this process, no grant, and the record
in a temporary folder. Each question is a task of its own. What is measured is `runner.agent.calling.propose`,
and nothing of a tier is known here. Carries P1 (every question passes the gate and is on record) and P2: the
tools of an item have nothing behind them, and no grant, so that no call could run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, assert_never

import anyio

from runner.adapters.evaluation.dataset import Item
from runner.adapters.evaluation.score import Proposal
from runner.agent.calling import Answer, Calls, propose
from runner.agent.session import Session
from runner.agent.steps import Budget, FailedStep, Stop, StopReason
from runner.assembly import open_profile
from runner.kernel.tiers import CallFailure, Tier
from runner.perimeter.client import SealedClient
from runner.perimeter.toolbox import SealedTools

CONTEXT: Final = 4096
"""Tokens of the model's context: the longest question of the leaderboard, its tools and a reply fit."""


class Asking:
    """A sealed client, asked for the calls of items. Implements `run.Proposer`.

    `tools` are sealed by the same perimeter, and are not offered.
    """

    def __init__(self, model: str, client: SealedClient, tools: SealedTools) -> None:
        self.model: Final = model
        self._client = client
        self._tools = tools

    def propose(self, item: Item, tier: Tier) -> Proposal:
        """Return what the model proposes for `item` in `tier`; blocks.

        Raises `TraceError` when the exchange could not be recorded.
        """
        return anyio.run(self._propose, item, tier)

    async def _propose(self, item: Item, tier: Tier) -> Proposal:
        async with self._client.task(item.question) as task:
            session = Session(
                client=self._client, tools=self._tools, task=task, budget=Budget(), on_event=None
            )
            session.tools = {tool.name: tool for tool in item.tools}
            try:
                proposed = await propose(session, tier)
            except Stop as stop:
                denied = stop.reason is StopReason.DENIED
                proposed = FailedStep(failure=CallFailure.REFUSED, tier=tier)
                return _told(session, proposed, "denied" if denied else None)
            return _told(session, proposed)


def _told(session: Session, proposed: Calls | Answer | FailedStep, failure: str | None = None) -> Proposal:
    """Return what was proposed, with what it took."""
    failed = tuple(step.failure.value for step in session.steps if isinstance(step, FailedStep))
    match proposed:
        case Calls():
            calls = tuple((asked.call.tool, asked.call.arguments) for asked in proposed.calls)
            return Proposal(calls=calls, failed=failed, tokens=session.tokens)
        case Answer():
            return Proposal(failed=failed, tokens=session.tokens)
        case FailedStep():
            said = failure or proposed.failure.value
            return Proposal(failure=said, failed=failed, tokens=session.tokens)
        case _:
            assert_never(proposed)


@contextmanager
def open_model(model: str, threads: int = 0) -> Iterator[Asking]:
    """Yield the model of the catalogue that is named `model`, loaded; 0 `threads` leaves them to the engine.

    Raises `ConfigError` for a model that the catalogue does not have, and `ModelError` for missing weights.
    """
    local = {"runtime": "embedded", "model": model, "context": CONTEXT, "threads": threads}
    with TemporaryDirectory(prefix="akaion-") as folder:
        book = {"path": str(Path(folder) / "trace"), "keys": str(Path(folder) / "keys")}
        inference = {"prefer": "local", "local": local}
        with open_profile("detached", policy={"grants": []}, trace=book, inference=inference) as runtime:
            runtime.load()
            yield Asking(model, runtime.client, runtime.tools)
