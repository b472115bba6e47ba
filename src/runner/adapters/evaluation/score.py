# SPDX-License-Identifier: Apache-2.0
"""What became of an item: right, or wrong in one class, and the family that the class belongs to.

Owns the classes and the score. A reply without a call that could run has the class the runner gave it; one
with calls is compared with what is right. One class for each item: the first thing that is wrong. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from runner.adapters.evaluation.answers import is_right
from runner.adapters.evaluation.dataset import Allowed, Item
from runner.kernel.messages import JsonObject
from runner.kernel.tiers import Tier

Call = tuple[str, JsonObject]
"""The tool, and its arguments: they fit its schema."""


class Family(StrEnum):
    """What went wrong, in the large."""

    RIGHT = "right"
    SILENCE = "no call"
    """Nothing in the reply is a call. Whether none was meant, or none could be written, cannot be told."""
    FORM = "form"
    """The reply could not be read as a call, or in more than one way."""
    SCHEMA = "schema"
    """It could, and the call does not fit what was offered."""
    INTENT = "intent"
    """The call fits, and is not the one that was asked for."""
    TRUNCATION = "truncation"
    """The reply reached its token limit before it was complete."""
    FAULT = "fault"
    """The runtime failed, or the perimeter refused: this says nothing of the model."""


RIGHT: Final = "right"
FAMILIES: Final[Mapping[str, Family]] = {
    RIGHT: Family.RIGHT,
    "no_call": Family.SILENCE,
    "malformed_json": Family.FORM,
    "ambiguous": Family.FORM,
    "too_many_calls": Family.FORM,
    "wrong_tool": Family.SCHEMA,
    "schema_violation": Family.SCHEMA,
    "missing_required": Family.SCHEMA,
    "hallucinated_argument": Family.SCHEMA,
    "declined": Family.INTENT,
    "other_tool": Family.INTENT,
    "wrong_count": Family.INTENT,
    "wrong_value": Family.INTENT,
    "truncated": Family.TRUNCATION,
    "refused": Family.FAULT,
    "denied": Family.FAULT,
}
"""Every class, and its family. `wrong_tool` was not offered; `other_tool` was, and is not the right one.

`declined` is a model that was held to choose, and chose to call nothing.
"""
MALFORMED: Final = (Family.FORM, Family.SCHEMA)
"""Calls that could not be run whatever was meant: the hypothesis is that small models fail here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a model proposed for an item: `calls` in order, or the class of its `failure`.

    `failed` are the classes of all replies that could not be used, in order: each is asked for once more.
    `tokens` are those of prompts and replies, of replies that could be used.
    """

    calls: tuple[Call, ...] = field(default=(), repr=False)
    failure: str | None = None
    failed: tuple[str, ...] = ()
    tokens: int = 0


def score(item: Item, tier: Tier, proposal: Proposal) -> str:
    """Return the class of `proposal`, made in `tier`: a key of `FAMILIES`."""
    if proposal.failure is not None:
        return proposal.failure
    calls, right = proposal.calls, item.right
    if not calls:
        return "declined" if tier is Tier.CONSTRAINED else "no_call"
    if len(calls) != len(right):
        return "wrong_count"
    if sorted(tool for tool, _ in calls) != sorted(tool for tool, _ in right):
        return "other_tool"
    return RIGHT if _all_paired(calls, right) else "wrong_value"


def _all_paired(calls: Sequence[Call], right: Sequence[tuple[str, Allowed]]) -> bool:
    """Return whether each call can be given a right one of its own: their order is free.

    Augmenting paths (Kuhn, 1955): a call that fits two right ones does not take the only one of another.
    """
    fits = [
        [at for at, (tool, allowed) in enumerate(right) if tool == name and is_right(arguments, allowed)]
        for name, arguments in calls
    ]
    taken: dict[int, int] = {}

    def place(call: int, tried: set[int]) -> bool:
        for at in fits[call]:
            if at not in tried:
                tried.add(at)
                if at not in taken or place(taken[at], tried):
                    taken[at] = call
                    return True
        return False

    return all(place(call, set()) for call in range(len(calls)))
