# SPDX-License-Identifier: Apache-2.0
"""Second opinions: whom to ask about a text once the rules have let it pass, and what comes of it.

Owns which texts are asked about (what the program wrote itself is not), the deadline, the memory of answers,
and that a fault closes. Leaves the moment to `client.py` (before a send that would leave this machine) and a
model's question to `second_model.py`. Carries I7, and I8: an answer becomes a block of at least the class of
the block it is about, so it can raise a task and never lower it. Nobody in here asks the sealed client: an
opinion cannot lead to an opinion.
"""

import re
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Final, Protocol

import anyio
import anyio.to_thread

from runner.kernel.errors import ClassifierFault, RunnerError, TraceError
from runner.kernel.inference import InferenceRequest
from runner.kernel.messages import Block, BlockKind
from runner.kernel.opinions import Opinion
from runner.kernel.ports import SecondOpinion
from runner.perimeter.judged import Remembered, digest_text
from runner.perimeter.second_model import Gate
from runner.perimeter.task import Task

ANSWER_WITHIN_S: Final = 60.0
"""How long code of the embedding program may take over one text."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,99}")
_LONGEST: Final = 128
"""Characters of a word in the record."""


class Adviser(Protocol):
    """One who is asked: a model behind the gate, or code of the embedding program."""

    @property
    def name(self) -> str:
        """What it is called in the record."""

    @property
    def version(self) -> str:
        """What its answers are remembered under."""

    async def ask(self, block: Block, task: Task, gate: Gate) -> Opinion:
        """Return what it says of the text of `block`; any exception is a fault."""


class PluggedIn:
    """Code of the embedding program, asked in a worker thread. Implements `Adviser`."""

    def __init__(self, opinion: SecondOpinion, *, answer_within_s: float = ANSWER_WITHIN_S) -> None:
        self.name = opinion.name
        self.version = opinion.version
        self._opinion = opinion
        self._answer_within_s = answer_within_s

    async def ask(self, block: Block, task: Task, gate: Gate) -> Opinion:  # noqa: ARG002 - the port
        """Return its answer. Raises what it raises, `TimeoutError`, and `ValueError` for another word.

        One that hangs keeps its thread: nothing can stop it, and its answer counts no more.
        """
        asking = partial(self._opinion.opinion, block.text)
        with anyio.fail_after(self._answer_within_s):
            return Opinion(await anyio.to_thread.run_sync(asking, abandon_on_cancel=True))


class Opinions:
    """The second opinions of a profile, at least one, and what they said. One per runtime.

    Raises `ValueError` for a name or version that cannot stand in the record, or a name that comes twice.
    """

    def __init__(self, advisers: Sequence[Adviser]) -> None:
        names = [adviser.name for adviser in advisers]
        if not names or len(set(names)) != len(names) or not all(map(_NAME.fullmatch, names)):
            raise ValueError("each second opinion needs a name of its own: letters, digits and _.:@/-")
        self.name = "+".join(["rules", *names])
        if len(self.name) > _LONGEST:
            raise ValueError("the names of the second opinions are too long together")
        versions = "\n".join(adviser.version for adviser in advisers)
        self.version = f"opinion-1+{sha256(versions.encode()).hexdigest()[:12]}"
        self._advisers = tuple(advisers)
        self._memory: Remembered[Opinion] = Remembered()

    async def give(self, request: InferenceRequest, task: Task, gate: Gate) -> bool:
        """Ask about every text of `request` that nobody was asked about in this task; say whether one was.

        Media are no text: nobody is asked about them, and their class is what was declared, or C3.

        What was said is on record, and has raised the task. Raises `ClassifierFault` for an answer that
        could not be had, unless the profile counts that as C3, and `TraceError`.
        """
        asked = False
        for block in dict.fromkeys(block for message in request.messages for block in message.blocks):
            asked_about = block.kind is not BlockKind.INSTRUCTION and block.media is None
            if asked_about and not task.has_opinion(block):
                await self.about(block, task, gate)
                asked = True
        return asked

    async def about(self, block: Block, task: Task, gate: Gate) -> Opinion | None:
        """Ask about `block`, put what was said on record, and return it: None for a fault that counts as C3.

        Raises as `give` does.
        """
        opinion = await self._of(block, task, gate)
        task.opined(block, opinion, by=self.name, version=self.version)
        return None if isinstance(opinion, ClassifierFault) else opinion

    async def _of(self, block: Block, task: Task, gate: Gate) -> Opinion | ClassifierFault:
        """Return the highest opinion on `block`, or the fault of whoever gave none."""
        found = Opinion.NONE
        for adviser in self._advisers:
            key = (adviser.name, adviser.version, digest_text(block.text))
            opinion = self._memory.recall(key)
            if opinion is None:
                try:
                    opinion = await adviser.ask(block, task, gate)
                except TraceError:
                    raise
                except Exception as fault:  # noqa: BLE001 - any fault of anybody closes (I7)
                    why = str(fault) if isinstance(fault, RunnerError) else type(fault).__name__
                    return ClassifierFault(f"no second opinion of {adviser.name!r}: {why}")
                self._memory.keep(key, opinion)
            found = max(found, opinion, key=lambda each: each.data_class)
        return found
