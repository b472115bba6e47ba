# SPDX-License-Identifier: Apache-2.0
"""The judge: a second reading before an answer is given.

Owns one question per draft: does the file it came from answer the question when it is read as a whole? Lines
out of context mislead a small model, and asked whether it is right it says yes; a second reading that ends in
"not found" is the better sign. (The standalone proof of the record is the verifier, a different thing.)
"""

from runner.agent.answerer import Draft, answer_from_lines
from runner.agent.planner import read_file
from runner.agent.session import Session


async def confirms(session: Session, draft: Draft) -> bool:
    """Return whether the file of the draft's evidence, read whole, holds an answer too.

    Where files may be searched and not read, the draft stands as it is.
    """
    if draft.evidence is None or not await read_file(session, draft.evidence.file):
        return True
    return await answer_from_lines(session) is not None
