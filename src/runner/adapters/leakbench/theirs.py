# SPDX-License-Identifier: Apache-2.0
"""The carriers by way of datapizza: the same parts of a request, through `SealedDatapizzaClient`.

Owns the use of datapizza's words for them. Texts reach that client as plain strings, as they do in a program
that uses datapizza: what label they have is the class declared at the bridge, and the mark of the task.
"""

from collections.abc import Sequence

from datapizza.memory import Memory
from datapizza.tools import Tool
from datapizza.type import ROLE, FunctionCallResultBlock, Media, MediaBlock, TextBlock
from pydantic import BaseModel

from runner.adapters.datapizza import SealedDatapizzaClient
from runner.adapters.leakbench.hands import ASKED, Hands
from runner.adapters.leakbench.picture import picture_with
from runner.adapters.leakbench.plan import Carrier


class _Answer(BaseModel):
    """The form of a structured reply."""

    answer: str


async def carry_theirs(hands: Hands, carrier: Carrier, texts: Sequence[str]) -> None:
    """Ask the remote model through datapizza, with `texts` in the part that `carrier` names."""
    typed = hands.typed_class
    client = SealedDatapizzaClient(hands.remote, task=hands.task, data_class=typed, media_class=typed)
    if carrier is not Carrier.DP_EMBEDDING or hands.remote.embeds is not None:
        await hands.attempt(lambda: _asked(client, carrier, texts))


async def _asked(client: SealedDatapizzaClient, carrier: Carrier, texts: Sequence[str]) -> None:
    match carrier:
        case Carrier.DP_INPUT:
            await client.a_invoke(_blocks(texts))
        case Carrier.DP_SYSTEM:
            await client.a_invoke(ASKED, system_prompt="\n\n".join(texts))
        case Carrier.DP_MEMORY:
            await client.a_invoke(ASKED, memory=_said(texts))
        case Carrier.DP_TOOL_RESULT:
            await client.a_invoke(ASKED, memory=_returned(texts))
        case Carrier.DP_TOOL_DEFAULT | Carrier.DP_TOOL_NAME:
            await client.a_invoke(ASKED, tools=[_tool(carrier, texts)])
        case Carrier.DP_STRUCTURED:
            await client.a_structured_response(_blocks(texts), output_cls=_Answer)
        case Carrier.DP_STREAM:
            await _streamed(client, texts)
        case Carrier.DP_MEDIA:
            await client.a_invoke([TextBlock(content=ASKED), *map(_picture, texts)])
        case Carrier.DP_EMBEDDING:
            await client.a_embed(list(texts))
        case _:
            raise ValueError(f"{carrier} is no carrier of datapizza's")


def _tool(carrier: Carrier, texts: Sequence[str]) -> Tool:
    """Return a tool with `texts` as its name and description, or as defaults of its arguments."""
    if carrier is Carrier.DP_TOOL_NAME:
        return Tool(name=texts[0], description=texts[-1], properties={})
    properties = {f"a{at}": {"type": "string", "default": text} for at, text in enumerate(texts)}
    return Tool(name="lookup", description="Looks something up.", properties=properties)


async def _streamed(client: SealedDatapizzaClient, texts: Sequence[str]) -> None:
    async for _ in client.a_stream_invoke(_blocks(texts)):
        pass


def _blocks(texts: Sequence[str]) -> list[TextBlock]:
    return [TextBlock(content=text) for text in texts]


def _picture(text: str) -> MediaBlock:
    media = Media(extension="png", media_type="image", source_type="raw", source=picture_with(text))
    return MediaBlock(media=media)


def _said(texts: Sequence[str]) -> Memory:
    memory = Memory()
    memory.add_turn([TextBlock(content=ASKED)], role=ROLE.USER)
    memory.add_turn(_blocks(texts), role=ROLE.ASSISTANT)
    return memory


def _returned(texts: Sequence[str]) -> Memory:
    memory = Memory()
    for at, text in enumerate(texts):
        result = FunctionCallResultBlock(id=str(at), tool=Tool(name="lookup"), result=text)
        memory.add_turn(result, role=ROLE.TOOL)
    return memory
