# SPDX-License-Identifier: Apache-2.0
"""Canaries: questions whose one right answer nothing but the tried mechanism can bring about.

Owns what a canary is and what is heard in answer. Leaves making and judging them to the perimeter, and their
place in a protocol to codecs. Every word of a canary is the runner's own: it holds no content (C0).
"""

from dataclasses import dataclass, field
from typing import Final

from runner.kernel.capabilities import Mechanism, Thinking
from runner.kernel.inference import InferenceRequest, WrittenCall
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, Json, JsonObject, Message, Role, ToolSpec

_BLOCK: Final = "probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """One question about `mechanism`.

    `words` are said to the model and push elsewhere, or ask for a call. `schema` accepts `answer` alone. With
    `called`, the answer is one call of that tool with `answer` as its arguments, else it is JSON text.
    `choice` names the tool that the request itself demands. `max_tokens` bounds the reply.
    """

    mechanism: Mechanism
    words: str
    schema: JsonObject
    answer: Json
    max_tokens: int
    tools: tuple[ToolSpec, ...] = ()
    called: str = ""
    choice: str = ""

    def request(self, *, held: bool) -> InferenceRequest:
        """Return the question as a codec encodes one: with its tools, or `held` to its schema, or neither."""
        block = Block(id=_BLOCK, kind=BlockKind.INSTRUCTION, text=self.words, label=Label())
        return InferenceRequest(
            messages=(Message(role=Role.USER, blocks=(block,)),),
            schema=self.schema if held else None,
            tools=self.tools,
            max_tokens=self.max_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a runtime answered to a canary. `truncated`: it reached its token limit.

    `thinking` is where reasoning was seen in this one answer; `tokens` what the runtime says it generated.
    """

    text: str = field(repr=False)
    calls: tuple[WrittenCall, ...] = field(default=(), repr=False)
    truncated: bool = False
    thinking: Thinking = Thinking.ABSENT
    tokens: int = 0
