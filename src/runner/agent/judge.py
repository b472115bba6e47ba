# SPDX-License-Identifier: Apache-2.0
"""The judge: a second, cheap look at whether a quote answers the question.

Owns one yes or no per draft, so that a confident wrong answer becomes an honest "not found". (The standalone
proof of the record is the verifier, a different thing.)
"""

from runner.agent import prompts
from runner.agent.answerer import Draft
from runner.agent.session import Session


async def supports(session: Session, draft: Draft) -> bool:
    """Return whether the model, asked afresh, says that the draft's quote answers the question."""
    if draft.evidence is None:
        return False
    session.think("checking the quote")
    line = session.task.derive(f"File: {draft.evidence.file}\nLine: {draft.evidence.quote}", [draft.block])
    reply = await session.ask(
        prompts.JUDGE, line, session.task.goal, schema=prompts.JUDGE_SCHEMA, max_tokens=16
    )
    return reply.value["answers"] is True
