# SPDX-License-Identifier: Apache-2.0
"""Choosing what to do next: the opening plan, and one step at a time after it.

Owns the order of calls: a search first where files are asked about, then what the model asks for, one call
after the other. Leaves asking to `calling.py`; whether a call may run is the perimeter's to say.
"""

import json
from collections.abc import Sequence
from typing import Final, assert_never

from runner.agent import prompts
from runner.agent.calling import Answer, Calls, next_calls
from runner.agent.session import Session
from runner.agent.steps import Evidence, Stop, StopReason
from runner.kernel.messages import JsonObject
from runner.perimeter.client import AskedCall
from runner.perimeter.telling import DENIED

SEARCHES: Final = ("search_documents", "search_text")
"""Tools that open a question over files, the better one first: it has an index."""
READ: Final = "read_file"
READ_DOCUMENT: Final = "read_document"
FILE_TOOLS: Final = frozenset({"list_dir", READ, READ_DOCUMENT, *SEARCHES})


def is_question_over_files(session: Session) -> bool:
    """Return whether the granted tools are those for files: then the opening is always a search."""
    return any(tool in session.tools for tool in SEARCHES) and FILE_TOOLS.issuperset(session.tools)


async def search(session: Session) -> None:
    """Open with a search for the question in both languages, so that it finds what the other one says.

    Raises `Stop` when the search was denied or failed: there is nothing to answer from, and "not found" would
    say that somebody looked.
    """
    session.think("wording the search")
    reply = await session.ask(
        prompts.TRANSLATE, session.task.goal, schema=prompts.TRANSLATE_SCHEMA, max_tokens=128
    )
    session.query = "\n".join([session.task.as_seen(session.task.goal.text), *reply.said.values()])
    tool = next(tool for tool in SEARCHES if tool in session.tools)
    found = await session.call(tool, {"query": session.query[: prompts.QUERY_LENGTH]}, origin=reply.block)
    if found.status == "denied":
        why = found.block.text.removeprefix(DENIED)
        raise Stop(StopReason.DENIED, f"{found.rule}: {why}" if found.rule else why)
    if found.status == "error":
        raise Stop(StopReason.FAILED, f"{tool}: {found.block.text}")


async def read_again(session: Session, evidence: Evidence) -> bool:
    """Read the file of `evidence` from its first line, or its page of a document. Return False if that fails.

    It is named as a tool named it.
    """
    tool = READ if evidence.page is None else READ_DOCUMENT
    if tool not in session.tools:
        return False
    page: JsonObject = {} if evidence.page is None else {"page": evidence.page}
    source, _ = session.newest()
    reply = await session.call(tool, {"path": evidence.file, **page}, origin=source)
    return reply.status == "ok"


async def next_step(session: Session) -> bool:
    """Let the model ask for calls and run them, in order. Return False when it chose to answer instead.

    A call that stands twice in one reply is made once. Raises `Stop`.
    """
    session.think("choosing the next step")
    proposal = await next_calls(session)
    match proposal:
        case Answer():
            return False
        case Calls():
            for asked in _distinct(proposal.calls):
                call = asked.call
                await session.call(call.tool, call.arguments, origin=call.origin, said=asked.said)
            return True
        case _:
            assert_never(proposal)


def _distinct(calls: Sequence[AskedCall]) -> Sequence[AskedCall]:
    """Return `calls` in order, each only where it was said first."""
    found: dict[str, AskedCall] = {}
    for asked in calls:
        found.setdefault(json.dumps([asked.call.tool, asked.said], sort_keys=True), asked)
    return tuple(found.values())
