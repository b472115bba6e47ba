# SPDX-License-Identifier: Apache-2.0
"""One trial: open a task, plant, send, look at what arrived, and compare it with the record.

Owns the outcome of a trial. Each has a perimeter of its own that has seen nothing, so that what one trial
read or sent cannot decide another; the record, the receiver and the codec are shared. No outcome depends on
the time: the clock of the perimeter stands still.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Final

from runner.adapters.leakbench.carriers import carry
from runner.adapters.leakbench.hands import ASKED, Hands, LocalModel, local_model, read_file
from runner.adapters.leakbench.house import House
from runner.adapters.leakbench.judge import found
from runner.adapters.leakbench.kinds import Family
from runner.adapters.leakbench.ledger import Ledger, Matching, Sent
from runner.adapters.leakbench.plan import Carrier, Defence, Plant, Split, Trial
from runner.adapters.leakbench.receiver import Receiver
from runner.kernel.errors import EgressDenied
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Message, Role
from runner.kernel.ports import Backend
from runner.perimeter.client import SealedClient
from runner.perimeter.gate import Perimeter
from runner.perimeter.trace.log import Trace

_TYPED_AS_GOAL: Final = frozenset({Carrier.INPUT, Carrier.STRUCTURED, Carrier.STREAM})

_SAID_LOCALLY: Final = '{"answer": "va bene"}'


class Outcome(Enum):
    """What came of a trial."""

    LEAKED = "leaked"
    """It arrived, and is of a class that the profile keeps in."""
    PERMITTED = "permitted"
    """It arrived, and is of a class that the profile lets leave: no leak."""
    DENIED = "denied"
    REDACTED = "redacted"
    """It was sent, and what it hid had been replaced."""
    DROPPED = "dropped"
    """It was sent, and the codec has no place for what should have carried the secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a trial, and how record and requests agree."""

    outcome: Outcome
    matching: Matching


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A profile, a receiver and a record: what trials of one process share."""

    house: House
    receiver: Receiver
    ledger: Ledger
    trace: Trace

    async def run(self, trial: Trial) -> Result:
        """Return what came of `trial`. Raises whatever is no denial: a fault of the bench or the runner."""
        denied = await self._send(trial, local_model(trial.texts), self.house.codec)
        received = self.receiver.take()
        sent, matching = self.ledger.take(self.house.remotes, received)
        return Result(outcome=self._outcome(trial, received, sent, denied), matching=matching)

    async def run_locally(self, trial: Trial) -> int:
        """Do `trial` with the local model in place of the remote one; return how many requests left."""
        local = local_model((_SAID_LOCALLY,) * len(trial.texts))
        await self._send(trial, local, local)
        received = self.receiver.take()
        self.ledger.take(self.house.remotes, received)
        return len(received)

    async def _send(self, trial: Trial, local: LocalModel, asked: Backend) -> int:
        """Plant and send; return how often the gate refused."""
        perimeter = self.house.perimeter(trial.defence, self.trace, local, level=trial.level)
        if trial.kind.family is Family.PASSAGE and not trial.plant.labelled:
            await _read_before(perimeter, trial)
        async with self._hands(trial, perimeter, local, asked) as hands:
            if trial.plant.labelled:
                hands.read = await read_file(perimeter, hands.task, _file_of(trial))
            await carry(hands)
        return hands.denied

    def _outcome(self, trial: Trial, received: Sequence[bytes], sent: Sequence[Sent], denied: int) -> Outcome:
        if found(trial.planted, received):
            return Outcome.LEAKED if trial.is_secret(self.house.ceiling) else Outcome.PERMITTED
        if denied:
            return Outcome.DENIED
        if any(each.decision == "redacted" for each in sent):
            return Outcome.REDACTED
        return Outcome.DROPPED

    def forget(self) -> None:
        """Forget what is left of a trial that broke off."""
        self.ledger.take(self.house.remotes, self.receiver.take())

    async def ask(self, text: str, defence: Defence) -> Result:
        """Return what came of typing `text`, in which nothing is planted, and asking the remote model."""
        perimeter = self.house.perimeter(defence, self.trace, local_model(()), level=2)
        client = perimeter.seal(self.house.codec)
        outcome = Outcome.DROPPED
        with perimeter.task(text, data_class=None if defence.labels else DataClass.C0) as task:
            message = Message(role=Role.USER, blocks=(task.goal,))
            try:
                await client.infer(InferenceRequest(messages=(message,)), task=task)
            except EgressDenied:
                outcome = Outcome.DENIED
        sent, matching = self.ledger.take(self.house.remotes, self.receiver.take())
        redacted = any(each.decision == "redacted" for each in sent)
        return Result(outcome=Outcome.REDACTED if redacted else outcome, matching=matching)

    def _sealed(self, perimeter: Perimeter, asked: Backend) -> SealedClient:
        """Return the sealed client of `asked`, which embeds if it is the remote one."""
        return perimeter.seal(asked, embedder=self.house.embedder if asked is self.house.codec else None)

    @asynccontextmanager
    async def _hands(
        self, trial: Trial, perimeter: Perimeter, local: Backend, asked: Backend
    ) -> AsyncIterator[Hands]:
        is_goal = (
            trial.plant is Plant.TYPED and trial.split is Split.WHOLE and trial.carrier in _TYPED_AS_GOAL
        )
        goal = trial.texts[0] if is_goal else ASKED
        with perimeter.task(goal, data_class=None if trial.defence.labels else DataClass.C0) as task:
            yield Hands(
                trial=trial,
                task=task,
                local=perimeter.seal(local),
                remote=self._sealed(perimeter, asked),
            )


async def _read_before(perimeter: Perimeter, trial: Trial) -> None:
    """Let an earlier task read the document that the secret is a passage of."""
    with perimeter.task(ASKED) as task:
        await read_file(perimeter, task, trial.secret.core)


def _file_of(trial: Trial) -> str:
    """Return what the labelled file holds: the planted form, or the plain one where a model says it."""
    if trial.plant is Plant.SAID:
        return trial.secret.before + trial.secret.core + trial.secret.after
    return "".join(trial.texts)
