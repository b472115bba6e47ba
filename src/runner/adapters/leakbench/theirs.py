# SPDX-License-Identifier: Apache-2.0
"""The carriers by way of datapizza: the same parts of a request, through `SealedDatapizzaClient`.

Owns the use of datapizza's words for them. Texts reach that client as plain strings, as they do in a program
that uses datapizza: what label they have is the class declared at the bridge, and the mark of the task.
"""

from collections.abc import Sequence

from datapizza.memory import Memory
from datapizza.tools import Tool
from datapizza.type import ROLE, FunctionCallResultBlock, TextBlock

from runner.adapters.datapizza import SealedDatapizzaClient
from runner.adapters.leakbench.hands import ASKED, Hands
from runner.adapters.leakbench.plan import Carrier


async def carry_theirs(hands: Hands, carrier: Carrier, texts: Sequence[str]) -> None:
    """Ask the remote model through datapizza, with `texts` in the part that `carrier` names."""
    client = SealedDatapizzaClient(hands.remote, task=hands.task, data_class=hands.typed_class)
    match carrier:
        case Carrier.DP_INPUT:
            await hands.attempt(lambda: client.a_invoke(_blocks(texts)))
        case Carrier.DP_SYSTEM:
            await hands.attempt(lambda: client.a_invoke(ASKED, system_prompt="\n\n".join(texts)))
        case Carrier.DP_MEMORY:
            await hands.attempt(lambda: client.a_invoke(ASKED, memory=_said(texts)))
        case Carrier.DP_TOOL_RESULT:
            await hands.attempt(lambda: client.a_invoke(ASKED, memory=_returned(texts)))
        case Carrier.DP_TOOL_DEFAULT:
            properties = {f"a{at}": {"type": "string", "default": text} for at, text in enumerate(texts)}
            tool = Tool(name="lookup", description="Looks something up.", properties=properties)
            await hands.attempt(lambda: client.a_invoke(ASKED, tools=[tool]))
        case Carrier.DP_TOOL_NAME:
            tool = Tool(name=texts[0], description=texts[-1], properties={})
            await hands.attempt(lambda: client.a_invoke(ASKED, tools=[tool]))
        case Carrier.DP_STRUCTURED:
            await hands.attempt(lambda: client.a_structured_response(_blocks(texts), output_cls=dict))
        case Carrier.DP_STREAM:
            await hands.attempt(lambda: _streamed(client, texts))
        case _:
            raise ValueError(f"{carrier} is no carrier of datapizza's")


async def _streamed(client: SealedDatapizzaClient, texts: Sequence[str]) -> None:
    async for _ in client.a_stream_invoke(_blocks(texts)):
        pass


def _blocks(texts: Sequence[str]) -> list[TextBlock]:
    return [TextBlock(content=text) for text in texts]


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
