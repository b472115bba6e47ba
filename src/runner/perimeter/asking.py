# SPDX-License-Identifier: Apache-2.0
"""Asking a person: one question about one decision, and the answer on record.

Owns the order: ask, record, seal to disk. Leaves the words of a question to `question.py` and what a yes is
for to whoever asked. Carries I4, I9, and I1: without an approver the answer is no.
"""

from typing import Protocol

import anyio
import anyio.to_thread

from runner.kernel.ports import ApprovalRequest, Approver
from runner.perimeter.trace import records
from runner.perimeter.trace.commit import rendering_digest
from runner.perimeter.trace.log import Trace


class Desk(Protocol):
    """The part of the perimeter that a question passes."""

    @property
    def trace(self) -> Trace:
        """The record."""

    @property
    def approver(self) -> Approver | None:
        """Who answers; None means nobody, and that is a no."""


async def ask_person(
    desk: Desk, decision: records.PolicyDecision, request: ApprovalRequest, *, task: str, lasts_us: int
) -> records.Approval | None:
    """Put `request`, which is about `decision`, to the approver; return the yes, or None for anything else.

    The answer is on record and on disk when this returns. A yes counts for `lasts_us` microseconds, by the
    time of the record: what judges the record goes by that too. So whoever asked appends what the yes is for
    `before` it expires, and not later. Raises `TraceError`.
    """
    approver = desk.approver
    granted = approver is not None and await _says_yes(approver, request, lasts_us / 1_000_000)
    record = records.Approval(
        call_id=decision.call_id,
        by="none" if approver is None else "user",
        args_commit=decision.args_commit,
        rendering_digest=rendering_digest(request.rendering),
        expires=desk.trace.now_us() + lasts_us,
        granted=granted,
    )
    desk.trace.append(record, task=task)
    await anyio.to_thread.run_sync(desk.trace.barrier)
    return record if granted else None


async def _says_yes(approver: Approver, request: ApprovalRequest, seconds: float) -> bool:
    """Return whether `approver` says True itself, within `seconds`: all else is no."""
    try:
        with anyio.fail_after(seconds):
            return await approver.approve(request) is True
    except Exception:  # noqa: BLE001 - I7: only a yes is a yes
        return False
