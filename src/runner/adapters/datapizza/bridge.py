# SPDX-License-Identifier: Apache-2.0
"""From datapizza's blocks to the runner's messages.

Owns the one place where datapizza's text enters a task: as foreign content of the declared class, whatever
role it claims. A system prompt of theirs is no instruction of the runner's. Labels cannot travel through
their blocks, so what comes back from their memory takes the declared class again, and the task's mark keeps
what is above it (I8). Refuses what is not text: media would be read after the gate.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias

from datapizza.memory import Memory
from datapizza.type import (
    ROLE,
    FunctionCallBlock,
    FunctionCallResultBlock,
    StructuredBlock,
    TextBlock,
    ThoughtBlock,
)
from pydantic import BaseModel

from runner.kernel.errors import SealError
from runner.kernel.labels import DataClass
from runner.kernel.messages import Block, Message, Role
from runner.perimeter.task import Task

SOURCE: Final = "datapizza"
_ROLES: Final = {
    ROLE.SYSTEM: Role.SYSTEM,
    ROLE.USER: Role.USER,
    ROLE.ASSISTANT: Role.ASSISTANT,
    ROLE.TOOL: Role.USER,
}
_Said: TypeAlias = tuple[Role, Block]


class Bridge:
    """Brings datapizza's texts into `task` as content of at least `data_class`, each text once."""

    def __init__(self, task: Task, data_class: DataClass) -> None:
        self._task = task
        self._data_class = data_class
        self._known: dict[str, Block] = {}

    def block(self, text: str) -> Block:
        """Return the block for `text`."""
        if text not in self._known:
            self._known[text] = self._task.foreign(text, declared=self._data_class, source=SOURCE)
        return self._known[text]

    def messages(
        self, system: Sequence[Block], memory: Memory | None, asked: str | Sequence[Any]
    ) -> tuple[Message, ...]:
        """Return `system`, the turns of `memory` and what is `asked` now as messages.

        Turns of one role in a row become one message: a result of a tool is told by the user. Raises
        `SealError` for a block that is not text, and for nothing at all.
        """
        turns = [(turn.role, list(turn)) for turn in memory or ()]
        said: list[_Said] = [(Role.SYSTEM, block) for block in system]
        said += [(_ROLES[role], self.block(text)) for role, turn in turns for text in _texts(turn)]
        now = _texts(asked) if not isinstance(asked, str) else [asked] if asked else []
        said += [(Role.USER, self.block(text)) for text in now]
        if not said:
            raise SealError("there is nothing to ask: input, memory and system prompt are empty")
        return tuple(_merged(said))


def _merged(said: Iterable[_Said]) -> Iterator[Message]:
    """Yield one message for each run of one role; what the system says stands first, as protocols want it."""
    first = sorted(said, key=lambda each: each[0] is not Role.SYSTEM)
    for role, run in groupby(first, key=itemgetter(0)):
        yield Message(role=role, blocks=tuple(block for _, block in run))


def _texts(blocks: Iterable[Any]) -> Iterator[str]:
    """Yield the text of each of datapizza's `blocks`, what a model thought left out; raise `SealError`."""
    for block in blocks:
        match block:
            case TextBlock():
                yield str(block.content)
            case StructuredBlock():
                yield _json(block.content)
            case FunctionCallBlock():
                yield _json({"tool": block.name, "arguments": block.arguments})
            case FunctionCallResultBlock():
                yield f"Result of {block.tool.name}:\n{block.result}"
            case ThoughtBlock():
                pass
            case _:
                raise SealError(f"a sealed client takes text, and this is a {type(block).__name__}")


def _json(value: Any) -> str:  # noqa: ANN401 - whatever their block holds
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise SealError("a datapizza block holds what is not JSON") from None
