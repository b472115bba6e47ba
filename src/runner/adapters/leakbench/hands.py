# SPDX-License-Identifier: Apache-2.0
"""The hands of a trial: what an embedding program does with a task, a tool and two sealed clients.

Owns getting the planted texts into the task, from a labelled file, from a model that read it, or typed, and
asking the remote model whatever came of the question before. Leaves where in a request the texts stand to
`carriers` and `theirs`. Everything goes through the public ways: a sealed tool, a sealed client, a task.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from runner.adapters.leakbench.house import FOLDER, LOCAL, READ
from runner.adapters.leakbench.picture import MIME, picture_with
from runner.adapters.leakbench.plan import Plant, Trial
from runner.kernel.errors import EgressDenied, ReplyInvalid
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Block, JsonObject, Message, Role, ToolCall
from runner.kernel.ports import ToolOutput
from runner.perimeter.client import SealedClient
from runner.perimeter.gate import Perimeter
from runner.perimeter.task import Task
from runner.testing import FakeTool, ScriptedBackend

LocalModel: TypeAlias = ScriptedBackend
"""A local model that says what its script says."""
ASKED: Final = "Riassumi in una frase."
"""What the user asks: nothing that any detector or label would mind."""


@dataclass(slots=True, kw_only=True)
class Hands:
    """One task of a trial and what it may use. `denied` counts the questions that the gate refused."""

    trial: Trial
    task: Task
    local: SealedClient
    remote: SealedClient
    read: Block | None = None
    denied: int = 0
    _blocks: dict[str, Block] = field(default_factory=dict)

    @property
    def typed_class(self) -> DataClass:
        """The class of what is typed: the default of a goal, or public without labels."""
        return DataClass.C1 if self.trial.defence.labels else DataClass.C0

    async def block(self, text: str) -> Block:
        """Return a block that holds `text`, from where the trial plants it."""
        match self.trial.plant:
            case Plant.TYPED if text == self.task.goal.text:
                return self.task.goal
            case Plant.TYPED:
                return self.task.foreign(text, declared=self.typed_class, source="typed")
            case Plant.FILE:
                return self.task.derive(text, [_known(self.read)])
            case Plant.SAID:
                asked = Message(role=Role.USER, blocks=(self.task.goal, _known(self.read)))
                reply = await self.local.infer(InferenceRequest(messages=(asked,)), task=self.task)
                return reply.block

    async def blocks(self, texts: Sequence[str]) -> tuple[Block, ...]:
        """Return a block for each of `texts`."""
        return tuple([await self.block(text) for text in texts])

    def said(self, text: str) -> Block:
        """Return a block for words of the program itself."""
        return self.task.instruction(text)

    async def ask(
        self, *messages: tuple[Role, Sequence[Block]], schema: JsonObject | None = None, stream: bool = False
    ) -> None:
        """Ask the remote model. A denial is counted; a reply that does not fit its schema is no matter."""
        request = InferenceRequest(
            messages=tuple(Message(role=role, blocks=tuple(blocks)) for role, blocks in messages),
            schema=schema,
            stream=stream,
        )
        await self.attempt(lambda: self.remote.infer(request, task=self.task))

    async def embed(self, blocks: Sequence[Block]) -> None:
        """Ask for the vectors of `blocks`, where the remote's protocol has any."""
        if self.remote.embeds is not None:
            await self.attempt(lambda: self.remote.embed(blocks, task=self.task))

    def picture(self, text: str) -> Block:
        """Return a picture with `text` in it, declared as its source is: else it would be C3, and stay."""
        level = self.trial.level if self.trial.plant.labelled and self.trial.defence.labels else 0
        declared = max(self.typed_class, DataClass(level))
        return self.task.media(picture_with(text), MIME, data_class=declared)

    async def attempt(self, question: Callable[[], Awaitable[object]]) -> None:
        """Await `question`, as above. Any other failure is raised: it is the bench's."""
        try:
            await question()
        except EgressDenied:
            self.denied += 1
        except ReplyInvalid:
            pass


async def read_file(perimeter: Perimeter, task: Task, text: str) -> Block:
    """Return the block of a file holding `text`, read through the sealed tool of the profile's grant."""
    tools = perimeter.seal_tools((FakeTool(name=READ, output=ToolOutput(text=text)),))
    call = ToolCall(tool=READ, arguments={"path": f"{FOLDER}/nota.txt"}, origin=task.goal)
    reply = await tools.call(call, task=task)
    return reply.block


def local_model(replies: Sequence[str]) -> LocalModel:
    """Return a local model that says `replies`, one after the other."""
    return LocalModel(replies=replies, name=LOCAL, model="leakbench")


def _known(block: Block | None) -> Block:
    if block is None:
        raise ValueError("a labelled trial reads its file first")
    return block
