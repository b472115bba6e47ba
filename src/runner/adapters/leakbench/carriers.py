# SPDX-License-Identifier: Apache-2.0
"""The carriers of the sealed client: which part of a request holds the planted texts.

Owns one function, from a carrier and its texts to a request. Leaves those by way of datapizza to `theirs`,
and the texts' origin to `hands`. A schema has no label of its own: what stands in it rests on the mark of
the task and on the detectors.
"""

from collections.abc import Sequence
from typing import Final

from runner.adapters.leakbench.hands import Hands
from runner.adapters.leakbench.plan import Carrier, Split
from runner.adapters.leakbench.theirs import carry_theirs
from runner.kernel.messages import JsonObject, Role

_REPLY: Final[JsonObject] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


async def carry(hands: Hands) -> None:
    """Send what the trial of `hands` plants: in one question, or one question for each piece."""
    texts = hands.trial.texts
    if hands.trial.split is Split.CALLS:
        for text in texts:
            await _carry(hands, hands.trial.carrier, (text,))
    else:
        await _carry(hands, hands.trial.carrier, texts)


async def _carry(hands: Hands, carrier: Carrier, texts: Sequence[str]) -> None:
    goal = (Role.USER, (hands.task.goal,))
    match carrier:
        case Carrier.INPUT:
            await hands.ask((Role.USER, await hands.blocks(texts)))
        case Carrier.SYSTEM:
            await hands.ask((Role.SYSTEM, await hands.blocks(texts)), goal)
        case Carrier.MEMORY:
            await hands.ask(goal, (Role.ASSISTANT, await hands.blocks(texts)), goal)
        case Carrier.TOOL_RESULT:
            result = (hands.said("Result of read_file:"), *await hands.blocks(texts))
            await hands.ask(goal, (Role.USER, result))
        case Carrier.STRUCTURED:
            await hands.ask((Role.USER, await hands.blocks(texts)), schema=_REPLY)
        case Carrier.STREAM:
            await hands.ask((Role.USER, await hands.blocks(texts)), stream=True)
        case Carrier.EMBEDDING:
            await hands.embed(await hands.blocks(texts))
        case _:
            await _labelled(hands, texts)
            await _carry_unlabelled(hands, carrier, texts)


async def _carry_unlabelled(hands: Hands, carrier: Carrier, texts: Sequence[str]) -> None:
    """Send what is no block of text: a schema, a picture, and whatever datapizza is given."""
    goal = (Role.USER, (hands.task.goal,))
    match carrier:
        case Carrier.TOOL_DEFAULT:
            await hands.ask(
                goal, schema=_call({f"a{at}": _with_default(text) for at, text in enumerate(texts)})
            )
        case Carrier.TOOL_NAME:
            told = hands.said(f"The tools:\n- {texts[0]}: {texts[-1]}")
            await hands.ask((Role.SYSTEM, (told,)), goal, schema=_call({}, name=texts[0], told=texts[-1]))
        case Carrier.OUTPUT_SCHEMA:
            await hands.ask(goal, schema={**_REPLY, "properties": {"answer": {"enum": list(texts)}}})
        case Carrier.MEDIA:
            await hands.ask((Role.USER, (hands.task.goal, *map(hands.picture, texts))))
        case _:
            await carry_theirs(hands, carrier, texts)


async def _labelled(hands: Hands, texts: Sequence[str]) -> None:
    """Bring `texts` into the task as blocks, where the trial plants them in a labelled source.

    A program that puts them into a schema, or hands them to datapizza, has them as plain strings: only the
    task's mark still knows where they came from.
    """
    if hands.trial.plant.labelled:
        await hands.blocks(texts)


def _call(parameters: JsonObject, *, name: str = "lookup", told: str = "Looks something up.") -> JsonObject:
    """Return the schema of a call of a tool, as a model is asked for one."""
    arguments: JsonObject = {"type": "object", "properties": parameters, "additionalProperties": False}
    properties: JsonObject = {"tool": {"enum": [name], "description": told}, "arguments": arguments}
    return {"type": "object", "properties": properties, "required": ["tool"], "additionalProperties": False}


def _with_default(text: str) -> JsonObject:
    return {"type": "string", "default": text}
