# SPDX-License-Identifier: Apache-2.0
"""The judge: a second reading before an answer is given.

Owns one question per draft: read as a whole, does its file say the same? Lines out of context mislead a small
model, and asked whether it is right it says yes; two readings that agree are the better sign. (The standalone
proof of the record is the verifier, a different thing.)
"""

from runner.agent.answerer import Draft, answer_from_lines
from runner.agent.planner import read_file
from runner.agent.session import Session
from runner.kernel.language import content_words


async def confirms(session: Session, draft: Draft) -> bool:
    """Return whether the file of the draft's evidence, read whole, gives the same answer or the same line.

    Where files may be searched and not read, the draft stands as it is.
    """
    if draft.evidence is None or not await read_file(session, draft.evidence.file):
        return True
    second = await answer_from_lines(session)
    if second is None or second.evidence is None:
        return False
    same_line = second.evidence.line == draft.evidence.line
    return same_line or content_words(second.said) == content_words(draft.said)
