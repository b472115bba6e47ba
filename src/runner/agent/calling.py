# SPDX-License-Identifier: Apache-2.0
"""Asking for calls: three tiers, and the fall from one to the next.

Owns how a model is asked in each tier, the second try, and when a tier is given up. Runs nothing: what comes
back are calls that fit the tools that were offered, or a reason why there are none. A reply of which one call
cannot be run has none (P2), and a denial never leads to another tier (I7). What a model wrote is never sent
back to it as a call, so that malformed arguments cannot spoil what follows: it sees results.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from runner.agent import prompts
from runner.agent.session import INVALID, Session, is_invalid
from runner.agent.steps import FailedStep, Stop, StopReason
from runner.kernel.messages import Block, Json, JsonObject, ToolCall, ToolSpec
from runner.kernel.tiers import Tier
from runner.perimeter.client import AskedCall, Reply

FINISH: Final = prompts.FINISH
CHOICE_TOKENS: Final = 32
CALL_TOKENS: Final = 256
"""The most tokens of a choice, and of one call or several."""
TEXT_TOKENS: Final = 1024
"""The most tokens where a tool takes a text of `LONG` characters or more, which a model then writes."""
LONG: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """What the model asks for, at least one call, in its order."""

    calls: tuple[AskedCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The model needs no call: it knows enough."""


Proposal: TypeAlias = Calls | Answer | FailedStep
"""What comes of asking: calls, the wish to answer, or the last failure, in a tier that is to be given up."""
_Parts: TypeAlias = tuple[str | Block, ...]


async def next_calls(session: Session) -> Calls | Answer:
    """Return what the model asks for, in the first tier that works; raise `Stop` when none does.

    A tier that was given up is not tried again in this run. Why stands among the steps, and on record. The
    first turn of a run settles the order, see `Session.find_tiers`. Raises `TraceError` as well.
    """
    await session.find_tiers()
    problem = INVALID
    for tier in session.tiers:
        proposal = await propose(session, tier)
        if not isinstance(proposal, FailedStep):
            return proposal
        problem = proposal.detail or INVALID
        session.tiers = session.tiers[1:] or (tier,)
    raise Stop(StopReason.FAILED, problem)


async def propose(session: Session, tier: Tier) -> Proposal:
    """Return what the model asks for when it is asked in `tier`, without running it; raise `Stop`.

    A reply that cannot be used is asked for once more; both are among the steps. A refusal is not.
    """
    match tier:
        case Tier.NATIVE:
            return await _natively(session)
        case Tier.CONSTRAINED:
            return await _in_two_passes(session)
        case Tier.TEXT:
            return await _as_text(session)
        case _:
            assert_never(tier)


async def _natively(session: Session) -> Proposal:
    """Offer the tools in the runtime's own protocol."""
    tools = tuple(session.tools.values())
    parts: _Parts = (prompts.NATIVE, *_situation(session), prompts.CALL)
    reply = await session.attempt(*parts, tools=tools, max_tokens=_room(tools))
    if is_invalid(reply):
        reply = await session.attempt(*parts, tools=tools, max_tokens=_room(tools), after=reply)
    return _proposal(reply)


async def _as_text(session: Session) -> Proposal:
    """Describe the tools in words, and read calls in the reply; say once what was wrong with one."""
    tools = tuple(session.tools.values())
    parts: _Parts = (prompts.in_text(tools), *_situation(session), prompts.CALL)
    reply = await session.attempt(*parts, in_text=tools, max_tokens=_room(tools))
    if is_invalid(reply):
        repair = prompts.repair(reply.failure, reply.where)
        reply = await session.attempt(*parts, repair, in_text=tools, max_tokens=_room(tools), after=reply)
    return _proposal(reply)


async def _in_two_passes(session: Session) -> Proposal:
    """Let the model choose a tool, then fill its arguments, each under a schema: both at once is too much."""
    situation: _Parts = (prompts.choose(session.tools.values()), *_situation(session))
    named = _one_of("tool", [*session.tools, FINISH])
    choice = await session.held(*situation, prompts.CHOOSE, schema=named, max_tokens=CHOICE_TOKENS)
    if isinstance(choice, FailedStep):
        return choice
    tool = choice.said["tool"]
    if tool == FINISH:
        return Answer()
    spec = session.tools[tool]
    filled = await session.held(
        *situation, prompts.fill(spec), schema=spec.parameters, max_tokens=_room([spec])
    )
    if isinstance(filled, FailedStep):
        return filled
    call = ToolCall(tool=tool, arguments=filled.value, origin=filled.block)
    return Calls(calls=(AskedCall(call=call, said=filled.said),))


def _room(tools: Iterable[ToolSpec]) -> int:
    """Return how many tokens a call of one of `tools` may take."""
    return TEXT_TOKENS if any(map(_takes_a_text, tools)) else CALL_TOKENS


def _takes_a_text(tool: ToolSpec) -> bool:
    arguments = tool.parameters.get("properties")
    named = arguments.values() if isinstance(arguments, Mapping) else ()
    longest = [each.get("maxLength") for each in named if isinstance(each, Mapping)]
    return any(isinstance(length, int) and length >= LONG for length in longest)


def _proposal(reply: Reply | FailedStep) -> Proposal:
    """Return what a reply to an offer of tools comes to: what is no call is the wish to answer."""
    if isinstance(reply, FailedStep):
        return reply
    return Calls(calls=reply.calls) if reply.calls else Answer()


def _situation(session: Session) -> tuple[Block, ...]:
    """Return what a choice is made from: the goal, and what the tools returned so far, as much as fits."""
    return (session.task.goal, *context_blocks(session))


def context_blocks(session: Session) -> list[Block]:
    """Return what the tools returned so far, newest last, cut to what a small context holds."""
    kept: list[Block] = []
    room = prompts.CONTEXT_LENGTH
    for block, _ in reversed(session.read):
        if len(block.text) > room:
            if not kept:
                kept.append(session.task.derive(block.text[:room], [block]))
            break
        room -= len(block.text)
        kept.append(block)
    return kept[::-1]


def _one_of(name: str, options: Sequence[Json]) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: {"enum": options}},
        "required": [name],
        "additionalProperties": False,
    }
