# SPDX-License-Identifier: Apache-2.0
"""Answering from what was read, with a quote the model cannot make up.

Owns the answer's form: the model picks one of the very lines that were read (the schema lists them), then
says what it means. Leaves the check of the quote to `evidence` and its worth to `judge`.
"""

from dataclasses import dataclass, field
from itertools import groupby

from runner.agent import prompts
from runner.agent.evidence import find_quote
from runner.agent.session import Session
from runner.agent.steps import Evidence
from runner.kernel.messages import Block
from runner.kernel.ports import Excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An answer nobody has judged yet. `evidence` is None when there was nothing to quote from."""

    block: Block
    text: str = field(repr=False)
    evidence: Evidence | None


async def draft_answer(session: Session) -> Draft:
    """Return the model's answer from everything the run has read so far."""
    session.think("answering")
    excerpts = session.quotable()
    if not excerpts:
        return await _free_answer(session)
    shown = session.task.derive(_page(excerpts), [block for block, lines in session.read if lines])
    reply = await session.ask(
        prompts.ANSWER,
        shown,
        session.task.goal,
        schema=prompts.answer_schema([excerpt.text.strip() for excerpt in excerpts]),
        max_tokens=256,
    )
    return Draft(
        block=reply.block,
        text=reply.value["answer"],
        evidence=find_quote(reply.value["quote"], excerpts),
    )


async def _free_answer(session: Session) -> Draft:
    outputs = [block for block, _ in session.read]
    reply = await session.ask(
        prompts.FREE_ANSWER, session.task.goal, *outputs, schema=prompts.FREE_SCHEMA, max_tokens=256
    )
    return Draft(block=reply.block, text=reply.value["answer"], evidence=None)


def _page(excerpts: list[Excerpt]) -> str:
    """Return the lines as the model reads them, under the name of their file."""
    parts: list[str] = []
    for file, lines in groupby(excerpts, key=lambda excerpt: excerpt.file):
        parts.append(f"# {file}")
        parts.extend(excerpt.text.strip() for excerpt in lines)
    return "\n".join(parts)
