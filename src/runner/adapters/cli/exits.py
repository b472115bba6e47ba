# SPDX-License-Identifier: Apache-2.0
"""Exit statuses: what a script learns from how a command ended.

Owns the numbers and the sentence that documents them. Carries I7 on this side: only an answer is a success.
"""

from enum import IntEnum
from typing import Final, assert_never

from runner.agent.steps import StopReason


class Status(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    """Wrong arguments, or a profile that cannot be used."""
    NOT_FOUND = 3
    REFUSED = 4
    """The perimeter denied the request, or the budget was spent."""
    INTERRUPTED = 130


MEANING: Final = """\b
Exit status:
  0    answered
  1    failed: a backend, a model, the record
  2    wrong usage, or a profile that cannot be used
  3    not found: the files do not hold the answer
  4    denied by the perimeter, or the budget is spent
  130  interrupted"""


def status_of(stop: StopReason) -> Status:
    """Return the exit status of a run that ended for the reason `stop`."""
    match stop:
        case StopReason.ANSWERED:
            return Status.DONE
        case StopReason.NOT_FOUND:
            return Status.NOT_FOUND
        case StopReason.DENIED | StopReason.STEPS | StopReason.TOKENS | StopReason.TIME:
            return Status.REFUSED
        case StopReason.NO_PROGRESS | StopReason.FAILED:
            return Status.FAILED
        case _:
            assert_never(stop)
