# SPDX-License-Identifier: Apache-2.0
"""What a model is told of a call that did not run.

Owns the words. Pure. What a model is told names no matter that its task does not have, since their names are
names of clients; nor does it say that there is one. So a path into the folder of such a matter is answered as
one that leads nowhere, whatever rule denied it and whoever was asked. Leaves the rule, which stands on
record, to `policy.py`. Carries I1 and I8.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from runner.kernel.decisions import Ask, Deny
from runner.kernel.messages import ToolCall
from runner.perimeter.known import Known
from runner.perimeter.policy import (
    MATTERS_MEET,
    NOT_NAMED,
    Policy,
    narrow,
    outside,
    premises,
    seen_from,
)

DENIED: Final = "denied: "
"""How a denial begins that a model is told."""
EXPIRED: Final = Deny(
    rule="approval-expired", hint="the approval was over before the call began; a person may be asked anew"
)
"""A call that a person let run, at a time at which that counts no more."""
_BEFORE_PATHS: Final = frozenset({"origin-unknown", "tool-not-granted"})
"""Rules of a tool or of an origin: they deny a call whatever it names."""


def told(policy: Policy, call: ToolCall, refused: Deny | Ask, matters: AbstractSet[str], known: Known) -> str:
    """Return what is told of `call`, in a task of `matters` that knows `known`, after `refused`.

    An `Ask` is one that nobody said yes to.
    """
    if refused.rule not in _BEFORE_PATHS and _names_unseen(policy, call, matters, known):
        return DENIED + outside(policy.grants[call.tool], matters).hint
    return DENIED + (refused.hint if isinstance(refused, Deny) else _unapproved(refused))


def _names_unseen(policy: Policy, call: ToolCall, matters: AbstractSet[str], known: Known) -> bool:
    """Return whether a path of `call`, right in all else, names a folder that a task of `matters` sees not.

    Were that folder not there, the call would be denied as `outside`.
    """
    if not premises(policy, call, matters, known).inside:
        return False
    seen = seen_from(policy.grants[call.tool], matters)
    return any(root not in seen for root in narrow(policy, call, matters).roots)


def _unapproved(verdict: Ask) -> str:
    if verdict.rule == MATTERS_MEET:
        fix = "open the task for one matter (`--matter NAME`, in a program `matter=`), or name a path"
        return f"this would bring two matters together; {fix}"
    if verdict.rule == NOT_NAMED:
        return "the user did not name whom or what this is for, and nobody approved it"
    return "not approved"
