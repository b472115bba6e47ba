# SPDX-License-Identifier: Apache-2.0
"""The judge: a second reading before an answer is given.

Owns one question per draft: read as a whole, does its file say the same? Lines out of context mislead a small
model, and asked whether it is right it says yes; two readings that agree are the better sign. (The standalone
proof of the record is the verifier, a different thing.)
"""

from dataclasses import replace

from runner.agent.answerer import Draft, answer_from_lines
from runner.agent.planner import read_again
from runner.agent.session import Session
from runner.kernel.language import content_words


async def judged(session: Session, draft: Draft) -> Draft | None:
    """Return the draft as confirmed if the file of its evidence, read whole, gives the same answer or line.

    None when it says something else. Where there is no second reading, since files may be searched and not
    read, or this one could not be, the draft stands as it is: not confirmed, which the result says.
    """
    if draft.evidence is None or not await read_again(session, draft.evidence):
        return draft
    second = await answer_from_lines(session)
    if second is None or second.evidence is None:
        return None
    there, here = second.evidence, draft.evidence
    same_line = (there.page, there.line) == (here.page, here.line)
    same = same_line or content_words(second.said) == content_words(draft.said)
    return replace(draft, confirmed=True) if same else None
