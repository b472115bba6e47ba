# SPDX-License-Identifier: Apache-2.0
"""Choosing what to do next: the opening plan, and one step at a time after it.

Owns the choice of a tool and the filling of its arguments, each under a schema, in two passes, since
small models fail when they do both at once. Whether a call may run is the perimeter's to say.
"""

from collections.abc import Sequence
from typing import Final

from runner.agent import prompts
from runner.agent.session import Session
from runner.agent.steps import Stop, StopReason
from runner.kernel.messages import Block, Json, JsonObject
from runner.perimeter.toolbox import DENIED

SEARCH: Final = "search_text"
READ: Final = "read_file"
FILE_TOOLS: Final = frozenset({"list_dir", READ, SEARCH})
FINISH: Final = "answer"
"""What the model chooses when it needs no further call."""


def is_question_over_files(session: Session) -> bool:
    """Return whether the granted tools are those for files: then the opening is always a search."""
    return SEARCH in session.tools and FILE_TOOLS.issuperset(session.tools)


async def search(session: Session) -> None:
    """Open with a search for the question in both languages, so that it finds what the other one says.

    Raises `Stop` when the search was denied: there is nothing to answer from.
    """
    session.think("wording the search")
    reply = await session.ask(
        prompts.TRANSLATE, session.task.goal, schema=prompts.TRANSLATE_SCHEMA, max_tokens=128
    )
    session.query = "\n".join([session.task.as_seen(session.task.goal.text), *reply.said.values()])
    found = await session.call(SEARCH, {"query": session.query[: prompts.QUERY_LENGTH]}, origin=reply.block)
    if found.status == "denied":
        raise Stop(StopReason.DENIED, found.block.text.removeprefix(DENIED))


async def read_file(session: Session, file: str) -> bool:
    """Read a file that a tool named, as it named it, from its first line. Return False when that fails."""
    if READ not in session.tools:
        return False
    source, _ = session.newest()
    reply = await session.call(READ, {"path": file}, origin=source)
    return reply.status == "ok"


async def next_call(session: Session) -> bool:
    """Let the model choose one call and fill it; run it. Return False when it chose to answer instead."""
    session.think("choosing the next step")
    context = context_blocks(session)
    options: Sequence[Json] = [*session.tools, FINISH]
    choice = await session.ask(
        prompts.choose(session.tools.values()),
        session.task.goal,
        *context,
        prompts.CHOOSE,
        schema=_one_of("tool", options),
        max_tokens=32,
    )
    tool = choice.said["tool"]
    if tool == FINISH:
        return False
    spec = session.tools[tool]
    filled = await session.ask(
        prompts.choose(session.tools.values()),
        session.task.goal,
        *context,
        prompts.fill(spec),
        schema=spec.parameters,
        max_tokens=256,
    )
    await session.call(tool, filled.value, origin=filled.block, said=filled.said)
    return True


def context_blocks(session: Session) -> list[Block]:
    """Return what the tools returned so far, newest last, cut to what a small context holds."""
    kept: list[Block] = []
    room = prompts.CONTEXT_LENGTH
    for block, _ in reversed(session.read):
        if len(block.text) > room:
            if not kept:
                kept.append(session.task.derive(block.text[:room], [block]))
            break
        room -= len(block.text)
        kept.append(block)
    return kept[::-1]


def _one_of(name: str, options: Sequence[Json]) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: {"enum": options}},
        "required": [name],
        "additionalProperties": False,
    }
