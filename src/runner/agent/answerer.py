# SPDX-License-Identifier: Apache-2.0
"""Answering from what was read.

Owns the page a model reads and the question it is asked. Where lines of files were read, an answer is given
only with a line that bears it out (`evidence`); a model that says they do not hold the answer is believed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from runner.agent import prompts
from runner.agent.evidence import find_evidence, page_of
from runner.agent.session import Session
from runner.agent.steps import Evidence
from runner.kernel.language import fold
from runner.kernel.ports import Excerpt

_SPACES: Final = re.compile(r"\s{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An answer; `evidence` is None when there were no lines to quote from.

    `said` is `text` as the model wrote it, its tokens not restored; `evidence` is as the model saw it, too.
    `confirmed` says whether a second reading gave the same.
    """

    text: str = field(repr=False)
    said: str = field(repr=False)
    evidence: Evidence | None
    confirmed: bool = False


async def answer_from_lines(session: Session) -> Draft | None:
    """Return what the newest tool output answers, with the line that says so; None when no line does."""
    source, excerpts = session.newest()
    lines = _fitting(excerpts)
    if not lines:
        return None
    session.think("answering")
    page = session.task.derive(_page(lines), [source])
    question = session.task.derive(f"Question: {session.task.goal.text}", [session.task.goal])
    reply = await session.ask(prompts.READ, page, question, schema=prompts.READ_SCHEMA, max_tokens=96)
    said = str(reply.said["answer"]).strip()
    if fold(said).strip(" .\"'").startswith(prompts.NOT_FOUND):
        return None
    return _borne_out(session, str(reply.value["answer"]).strip(), said, lines)


async def answer_freely(session: Session) -> Draft | None:
    """Return the model's answer from all tool outputs of a run that is not a question over files.

    If the run read lines of files, one of them must bear the answer out, or None is returned.
    """
    session.think("answering")
    outputs = [block for block, _ in session.read]
    reply = await session.ask(
        prompts.FREE_ANSWER, session.task.goal, *outputs, schema=prompts.FREE_SCHEMA, max_tokens=256
    )
    answer, said = str(reply.value["answer"]), str(reply.said["answer"])
    lines = [excerpt for _, excerpts in session.read for excerpt in excerpts]
    draft = _borne_out(session, answer, said, lines)
    return draft if lines else Draft(text=answer, said=said, evidence=None)


def _borne_out(session: Session, answer: str, said: str, lines: Sequence[Excerpt]) -> Draft | None:
    """Return the draft with the line that bears it out; None when no line does.

    A model elsewhere is held to what it saw, in its own words: a name that it guessed bears nothing out, so
    that what follows does not tell it that it was right.
    """
    evidence = find_evidence(said, session.query, lines)
    return None if evidence is None else Draft(text=answer, said=said, evidence=evidence)


def _fitting(excerpts: tuple[Excerpt, ...]) -> list[Excerpt]:
    """Return the lines that say something, in order, as many as a page holds."""
    kept: list[Excerpt] = []
    room = prompts.PAGE_LENGTH
    for excerpt in excerpts:
        if len(excerpt.text.strip()) >= prompts.MEANINGFUL:
            room -= len(excerpt.text) + 1
            if room < 0:
                break
            kept.append(excerpt)
    return kept


def _page(lines: list[Excerpt]) -> str:
    """Return the lines as the model reads them: under the name of their file and page, gaps shown."""
    parts = [_heading(lines[0]), _tidy(lines[0])]
    for before, line in pairwise(lines):
        if page_of(line) != page_of(before):
            parts.append(_heading(line))
        elif line.line > before.line + prompts.GAP:
            parts.append("...")
        parts.append(_tidy(line))
    return "\n".join(parts)


def _heading(excerpt: Excerpt) -> str:
    return f"# {excerpt.file}" if excerpt.page is None else f"# {excerpt.file} (page {excerpt.page})"


def _tidy(excerpt: Excerpt) -> str:
    return _SPACES.sub("  ", excerpt.text.strip())
