# SPDX-License-Identifier: Apache-2.0
"""Tiers: the three ways in which a model is asked for calls, and the ways in which it fails to make one.

Owns both closed sets and the order in which tiers are tried when nothing was measured. Leaves asking to the
agent, reading to the perimeter, and what a backend can do to whoever probed it. Carries I7: a reply without a
call that can be run has a `CallFailure`, and nothing of it runs.
"""

from enum import StrEnum
from typing import Final


class Tier(StrEnum):
    """How calls are asked for."""

    NATIVE = "native"
    """Tools are offered in the runtime's own protocol, and calls come back in it."""
    CONSTRAINED = "constrained"
    """In two passes under a schema: which tool, then its arguments."""
    TEXT = "text"
    """Tools are described in words, and calls are read, strictly, in the text of the reply."""


class CallFailure(StrEnum):
    """Why a reply holds no call that can be run. One class for each reply, the first that was met."""

    NO_CALL = "no_call"
    """There is nothing to be read as a call where there should be."""
    WRONG_TOOL = "wrong_tool"
    """It names a tool that was not offered."""
    MALFORMED_JSON = "malformed_json"
    """It cannot be read in the form of a call, or its arguments are no JSON object."""
    SCHEMA_VIOLATION = "schema_violation"
    """The arguments do not fit the schema of the tool."""
    MISSING_REQUIRED = "missing_required"
    """A member that the tool needs is not there."""
    HALLUCINATED_ARGUMENT = "hallucinated_argument"
    """A member is there that the tool does not have."""
    TRUNCATED = "truncated"
    """It reached its token limit before it was complete."""
    AMBIGUOUS = "ambiguous"
    """It can be read in more than one way."""
    TOO_MANY_CALLS = "too_many_calls"
    """It holds more than `MAX_CALLS` calls: a model that repeats itself."""
    REFUSED = "refused"
    """The runtime refused the request, failed, or did not answer in its protocol."""


MAX_CALLS: Final = 64
"""The most calls that are taken from one reply."""

WITHOUT_NATIVE: Final = (Tier.CONSTRAINED, Tier.TEXT)
"""For a runtime of which nothing was measured: native tools are used only where real calls came back (I7)."""


def tiers_from(first: Tier) -> tuple[Tier, ...]:
    """Return the tiers to try when a profile says which comes `first`: that one, then those after it."""
    tiers = tuple(Tier)
    return tiers[tiers.index(first) :]
