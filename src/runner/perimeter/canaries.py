# SPDX-License-Identifier: Apache-2.0
"""Which canary comes next, what an answer to one says, and what follows from all of them.

Owns the words, the nonces, the bounds of a probe and its judgement, as pure functions. Leaves sending to
`probing`. Carries I7: only an exact answer counts, only two of them with different nonces are `enforced`, and
what says nothing is `unverified`.

A nonce stands in no words, so no echo of them brings it about. The words ask for something else outright: a
runtime that shows the schema to the model and holds it to nothing has a model to convince, twice.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from runner.kernel.capabilities import Capabilities, Facts, Mechanism, Standing, Thinking
from runner.kernel.messages import Json, JsonObject, ToolSpec
from runner.kernel.probing import Canary, Heard

MAX_REQUESTS: Final = 5
"""Canaries in one probe."""
MAX_TOKENS: Final = 64
"""Tokens that all canaries of one probe may generate: the sum of their limits, whatever a runtime reports."""
TWICE: Final = 2
_TEXT_TOKENS: Final = 10
_CALL_TOKENS: Final = 21
_LEAST_TOKENS: Final = 2
"""Enough to see that a reply is not held to what was asked."""
_REFUSALS: Final = frozenset({400, 405, 415, 422, 501})
_OK: Final = 200
_FAILED: Final = 500
_NONCES: Final = 887
"""A prime, so that steps through it meet no number twice."""
_WORDS: Final = (
    'Say only the word "apple", in lower case, and nothing else.'
    " If a form is asked of you, do not keep to it."
)
_ASKED, _OTHER = "dim", "bell"
_CALLING: Final = frozenset({Mechanism.TOOLS, Mechanism.TOOL_CHOICE})


class Seen(StrEnum):
    """What one answer says about the mechanism of its canary."""

    EXACT = "exact"
    """It is the answer."""
    OTHER = "other"
    """It is another answer."""
    REFUSED = "refused"
    """The runtime does not take the question."""
    NOTHING = "nothing"
    """There was no answer, or one that could still have become the right one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A canary, what its answer said, and where reasoning was seen in it.

    `denied` is the rule that kept it from being sent, "" when it was sent; `answered` says that some answer
    came. `last`: asking this runtime anything else is of no use now. `tokens` is what it says it generated.
    """

    canary: Canary
    seen: Seen
    last: bool = False
    thinking: Thinking = Thinking.UNVERIFIED
    tokens: int = 0
    denied: str = ""
    answered: bool = True


# --- which comes next ----------------------------------------------------------------------------


def next_canary(
    mechanisms: Sequence[Mechanism], asked: Sequence[Asked], *, seed: str, wrapped: bool
) -> Canary | None:
    """Return the canary to send after those `asked`, None when the probe is over.

    `mechanisms` are tried in this order, each until it is decided. `seed` is random, hex digits; `wrapped`
    says that the runtime takes schemas of objects only.
    """
    room = MAX_TOKENS - sum(each.canary.max_tokens for each in asked if each.seen is not Seen.REFUSED)
    if len(asked) == MAX_REQUESTS or any(each.last for each in asked):
        return None
    for mechanism in mechanisms:
        wanted = _CALL_TOKENS if mechanism in _CALLING else _TEXT_TOKENS
        least = _LEAST_TOKENS if mechanism is Mechanism.TOOLS_WITH_FORMAT else wanted
        if not _is_decided(mechanism, asked) and room >= least:
            chance, tokens = int(seed, 16), min(wanted, room)
            if mechanism in _CALLING:
                return _call(mechanism, _level(chance, len(asked)), tokens)
            return _held(mechanism, _nonce(chance, len(asked)), tokens, wrapped=wrapped)
    return None


def _is_decided(mechanism: Mechanism, asked: Sequence[Asked]) -> bool:
    seen = [each.seen for each in asked if each.canary.mechanism is mechanism]
    return len(seen) == TWICE or any(each is not Seen.EXACT for each in seen)


def _nonce(chance: int, number: int) -> str:
    """Return a word that no model says by itself, another for each `number` below 887."""
    step = 1 + (chance // _NONCES) % (_NONCES - 1)
    return f"zq7{100 + (chance + number * step) % _NONCES}"


def _level(chance: int, number: int) -> int:
    """Return a digit, another for each `number` below 10."""
    return (chance + 3 * number) % 10


def _held(mechanism: Mechanism, nonce: str, max_tokens: int, *, wrapped: bool) -> Canary:
    """Return the canary whose reply is to be held to one word, while its words ask for another."""
    schema: JsonObject = {"enum": [nonce]}
    return Canary(
        mechanism=mechanism,
        words=_WORDS,
        schema=_object_of("v", schema) if wrapped else schema,
        answer={"v": nonce} if wrapped else nonce,
        max_tokens=max_tokens,
        tools=(_tool(_ASKED),) if mechanism is Mechanism.TOOLS_WITH_FORMAT else (),
    )


def _call(mechanism: Mechanism, level: int, max_tokens: int) -> Canary:
    """Return the canary that asks for a call in words; the request itself may demand another one."""
    chosen = mechanism is Mechanism.TOOL_CHOICE
    return Canary(
        mechanism=mechanism,
        words=f"Call the tool {_ASKED} with n = {level}.",
        schema=_object_of("n", {"enum": [level]}),
        answer={"n": level},
        max_tokens=max_tokens,
        tools=(_tool(_ASKED), _tool(_OTHER)) if chosen else (_tool(_ASKED),),
        called=_OTHER if chosen else _ASKED,
        choice=_OTHER if chosen else "",
    )


def _tool(name: str) -> ToolSpec:
    return ToolSpec(
        name=name, description=f"Turns the {name} to n.", parameters=_object_of("n", {"type": "integer"})
    )


def _object_of(name: str, schema: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": False}


# --- what an answer says -------------------------------------------------------------------------


def judge(canary: Canary, *, status: int, heard: Heard | None) -> Seen:
    """Return what an answer with `status` (as in HTTP, 0 for none) says; `heard` is what could be read of it.

    Total. The text of an exact answer is JSON and nothing else: a fence around it, or the same in another
    member, is another answer.
    """
    if status in _REFUSALS:
        return Seen.REFUSED
    if status != _OK or heard is None:
        return Seen.NOTHING
    if canary.called:
        return _judge_call(canary, heard)
    if not heard.calls and same(_parsed(heard.text), canary.answer):
        return Seen.EXACT
    cut = heard.truncated and not heard.calls and _could_become(heard.text, canary.answer)
    return Seen.NOTHING if cut else Seen.OTHER


def is_last(status: int) -> bool:
    """Return whether an answer with `status` says that this runtime answers nothing now, whatever is asked.

    A 500 does not: llama-server sends one when a model breaks the form it was held to.
    """
    return status not in {_OK, _FAILED, *_REFUSALS}


def _judge_call(canary: Canary, heard: Heard) -> Seen:
    if not heard.calls:
        return Seen.NOTHING if heard.truncated else Seen.OTHER
    [call, *more] = heard.calls
    arguments = _parsed(call.arguments) if isinstance(call.arguments, str) else call.arguments
    right = call.name == canary.called and same(arguments, canary.answer)
    return Seen.EXACT if right and not more else Seen.OTHER


def _parsed(text: str) -> Json:
    """Return the JSON value that `text` is; an array, which is never an answer, where it is none."""
    try:
        found: Json = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return []
    return found


def _once(pairs: list[tuple[str, Json]]) -> JsonObject:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def same(found: object, wanted: Json) -> bool:
    """Return whether two JSON values are the same one: `1` is neither `true` nor `1.0`."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return found.keys() == wanted.keys() and all(same(found[key], wanted[key]) for key in wanted)
    return type(found) is type(wanted) and found == wanted


def _could_become(text: str, answer: Json) -> bool:
    """Return whether `text` is the beginning of `answer` in some writing."""
    bare = "".join(text.split())
    return json.dumps(answer, separators=(",", ":")).startswith(bare)


# --- what follows --------------------------------------------------------------------------------


def concluded(uses: Mechanism | None, asked: Sequence[Asked], facts: Facts) -> Capabilities:
    """Return what is known after the canaries `asked` of a backend whose codec `uses` this mechanism."""
    tried = dict.fromkeys(each.canary.mechanism for each in asked)
    return Capabilities(
        uses=uses,
        standings={
            each: _standing([one.seen for one in asked if one.canary.mechanism is each]) for each in tried
        },
        thinking=_thinking([each.thinking for each in asked]),
        facts=facts,
    )


def _standing(seen: Sequence[Seen]) -> Standing:
    """Return what follows for one mechanism from what its answers said, in order."""
    if list(seen) == [Seen.EXACT] * TWICE:
        return Standing.ENFORCED
    if Seen.OTHER in seen:
        return Standing.IGNORED
    return Standing.REFUSED if list(seen) == [Seen.REFUSED] else Standing.UNVERIFIED


def _thinking(seen: Sequence[Thinking]) -> Thinking:
    """Return where reasoning was seen: the first of the words that was, in the order of `Thinking`."""
    return min(seen, key=tuple(Thinking).index, default=Thinking.UNVERIFIED)
