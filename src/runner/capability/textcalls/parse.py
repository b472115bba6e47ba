# SPDX-License-Identifier: Apache-2.0
"""From the text of a reply to its calls: all of them, or none.

Owns the order in which a text is looked through: reasoning is passed over, then come explicit envelopes, then
a fence, then the Thought-Action form, then a bare value. Leaves each envelope to `dialects.py`, where a call
may stand to `places.py`, and the arguments to `fitting.py`. A reply of which one call cannot be read has
none: half a plan is never run (P2).

The Thought-Action form is that of Yao et al., "ReAct" (2022). The others are the chat templates of models.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from runner.capability.textcalls.cursor import Ambiguous, Cursor, Repair, Truncated, Unreadable
from runner.capability.textcalls.dialects import MARKERS, Envelope, values_between
from runner.capability.textcalls.fitting import fitted
from runner.capability.textcalls.places import (
    REASONING,
    check_begins,
    check_over,
    is_nothing,
    skip_open_reasoning,
    skip_reasoning,
)
from runner.capability.textcalls.shapes import Written, add_calls
from runner.capability.textcalls.values import read_value, skip_space

Status: TypeAlias = Literal["ok", "truncated", "ambiguous", "rejected"]

MAX_CHARACTERS: Final = 1 << 20
"""The longest text that is read."""
_OPENERS: Final = re.compile(
    "|".join([*map(re.escape, sorted(MARKERS, key=len, reverse=True)), REASONING.pattern])
)
_FENCE: Final = re.compile(r"```[ \t]*(?:json|tool_call|tool_code|python)?[ \t]*\r?\n")
_ACTION: Final = re.compile(r"^Action[ \t]*:[ \t]*([A-Za-z_][A-Za-z0-9_.\-]{0,127})[ \t]*\r?\n", re.MULTILINE)
_PLAIN: Final = re.compile(rf"{_FENCE.pattern}\s*[{{\[]|{_ACTION.pattern}", re.MULTILINE)
"""Where a call without a marker begins in mid-text: in a fence, or with an action."""
_THOUGHT: Final = re.compile(r"\s*(?:\Z|Thought[ \t]*:|Question[ \t]*:)")
"""How a reply in the Thought-Action form begins, before its first action."""
_INPUT: Final = re.compile(r"Action Input[ \t]*:[ \t]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCall:
    """A call that fits the schema of its tool.

    `name` is None where the text holds arguments only: they are for the one tool that was offered.
    """

    name: str | None = field(repr=False)
    arguments: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCalls:
    """What a reply asks for. `calls` is empty unless `status` is "ok".

    `reason` says why not: `no_call`, `wrong_tool`, `malformed_json`, `malformed_call`, `schema_violation`,
    `missing_required`, `hallucinated_argument`, `truncated`, or what made it ambiguous. `repairs` are what
    was set right on the way. `at` is the code point where reading stopped, or, where all was read, `number`
    the call (from 1) that is wrong.
    """

    calls: tuple[ParsedCall, ...]
    status: Status
    reason: str | None = None
    repairs: tuple[Repair, ...] = ()
    at: int | None = None
    number: int | None = None


def parse_calls(text: str, tools: Mapping[str, Mapping[str, Any]], *, finished: bool = True) -> ParsedCalls:
    """Return the calls in `text`, the reply of a model that was offered `tools`: name to JSON Schema.

    `finished` says that the model ended its reply by itself. If it was cut off, only a call whose envelope is
    closed counts. Total: any text gives an answer, in time linear in its length.
    """
    if len(text) > MAX_CHARACTERS:
        return ParsedCalls(calls=(), status="rejected", reason="too_long")
    cursor, number = Cursor(text), 0
    try:
        written, closed = _written(cursor, tools)
        if not closed and not finished:
            raise Truncated("truncated")
        calls: list[ParsedCall] = []
        for name, arguments in written:
            number += 1
            calls.append(_call(name, arguments, tools))
    except Unreadable as reason:
        return _refused(reason, cursor, number)
    except RecursionError:
        return _refused(Unreadable("too_deep"), cursor, number)
    return ParsedCalls(calls=tuple(calls), status="ok", repairs=tuple(cursor.repairs))


def _refused(reason: Unreadable, cursor: Cursor, number: int) -> ParsedCalls:
    match reason:
        case Truncated():
            status: Status = "truncated"
        case Ambiguous():
            status = "ambiguous"
        case _:
            status = "rejected"
    return ParsedCalls(
        calls=(),
        status=status,
        reason=reason.reason,
        repairs=tuple(cursor.repairs),
        at=None if number else cursor.at,
        number=number or None,
    )


def _call(name: str | None, arguments: Any, tools: Mapping[str, Mapping[str, Any]]) -> ParsedCall:  # noqa: ANN401
    """Return the call, if its tool was offered and its arguments fit."""
    if name is None:
        (schema,) = tools.values()
    elif (offered := _offered(name, tools)) is not None:
        name, schema = offered, tools[offered]
    else:
        raise Unreadable("wrong_tool")
    return ParsedCall(name=name, arguments=fitted(arguments, schema))


def _offered(name: str, tools: Mapping[str, Any]) -> str | None:
    """Return the tool that `name` means: itself, or without the name space some templates put in front."""
    bare = name.removeprefix("functions.")
    return name if name in tools else bare if bare in tools else None


# --- where calls stand in a text ------------------------------------------------------------------------


def _written(cursor: Cursor, tools: Mapping[str, Any]) -> tuple[list[Written], bool]:
    """Return the calls as they were written, and whether nothing can be missing after them.

    Reasoning whose opening stood in the prompt is passed over: at once, or, where the text begins with a call
    and its end may stand in a string, when something follows that call.
    """
    if not _begins_with_call(cursor.text):
        while skip_open_reasoning(cursor):
            pass
    try:
        found = _found(cursor, tools)
    except Ambiguous as reason:
        if reason.reason != "text_after_call" or not skip_open_reasoning(cursor):
            raise
        cursor.repairs.clear()
        found = _found(cursor, tools)
    return found.calls, found.closed


def _found(cursor: Cursor, tools: Mapping[str, Any]) -> Envelope:
    found = None if _is_plain(cursor) else _enveloped(cursor, tools)
    return found or _fenced(cursor, tools) or _acted(cursor) or _bare(cursor, tools)


def _is_plain(cursor: Cursor) -> bool:
    """Return whether a call without a marker begins first: a marker further on then stands in a string."""
    cursor.skip_space()
    opener = _OPENERS.search(cursor.text, cursor.at)
    begins = opener is not None and opener.start() == cursor.at
    if cursor.sees("{", "[") and not begins:
        return True
    plain = _PLAIN.search(cursor.text, cursor.at)
    return plain is not None and (opener is None or plain.start() < opener.start())


def _begins_with_call(text: str) -> bool:
    return text.lstrip().startswith(("{", "[", "```", *MARKERS))


def _enveloped(cursor: Cursor, tools: Mapping[str, Any]) -> Envelope | None:
    """Return the calls of all explicit envelopes; None if there is none. Stands behind the last reasoning."""
    calls: list[Written] = []
    closed, free = True, cursor.at
    while (opener := _OPENERS.search(cursor.text, cursor.at)) is not None:
        lead, read = cursor.text[free : opener.start()], MARKERS.get(opener.group())
        if calls and (read is None or not is_nothing(lead)):
            break
        cursor.at = opener.end()
        if read is None:
            skip_reasoning(cursor, opener.group())
            free = cursor.at
            continue
        if not calls:
            check_begins(lead)
        envelope = read(cursor, tools)
        if calls and not envelope.calls:
            break
        closed, free = closed and envelope.closed, cursor.at
        add_calls(calls, envelope.calls)
    cursor.at = free
    if not calls:
        return None
    check_over(cursor)
    return Envelope(calls=calls, closed=closed)


def _fenced(cursor: Cursor, tools: Mapping[str, Any]) -> Envelope | None:
    """Return the calls of the only fence, if the text ends with it: one in mid-text is a quotation."""
    start = cursor.at
    opened = _FENCE.search(cursor.text, start)
    if opened is None:
        return None
    cursor.at = opened.end()
    envelope = values_between("```")(cursor, tools)
    check_over(cursor)
    check_begins(cursor.text[start : opened.start()])
    return envelope


def _acted(cursor: Cursor) -> Envelope | None:
    """Return the first action of the Thought-Action form. What follows an observation was made up.

    So only there may text follow a call, and only if the whole reply has that form: in prose it is quoted.
    """
    start = cursor.at
    action = _ACTION.search(cursor.text, start)
    if action is None:
        return None
    cursor.at = action.end()
    if cursor.match(_INPUT) is None:
        raise Truncated("truncated") if cursor.ended else Unreadable("malformed_call")
    arguments = read_value(cursor, ("Observation",))
    skip_space(cursor)
    lead, observed = cursor.text[start : action.start()], cursor.sees("Observation")
    check_begins(lead)
    if not (observed and _THOUGHT.match(lead)):
        check_over(cursor)
    return Envelope(calls=[(action.group(1), arguments)], closed=observed)


def _bare(cursor: Cursor, tools: Mapping[str, Any]) -> Envelope:
    """Return the calls of a text that is, or ends with, one value or more."""
    cursor.skip_space()
    start = cursor.at
    places = [place for mark in "{[" if (place := cursor.text.find(mark, start)) >= 0]
    if not places:
        raise Unreadable("no_call")
    cursor.at = first = min(places)
    if first > start:
        cursor.repair("text_before_call")
    envelope = values_between("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "</s>")(cursor, tools)
    check_over(cursor)
    check_begins(cursor.text[start:first])
    return envelope
