# SPDX-License-Identifier: Apache-2.0
"""From a value to the calls it stands for: the shapes in which protocols and models write a call as JSON.

Owns which members name a tool and which hold its arguments. A member that belongs to no known shape is a sign
that this is something else: it is `Ambiguous`, and nobody guesses.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from runner.capability.textcalls.cursor import Ambiguous, Unreadable
from runner.kernel.tiers import MAX_CALLS

_NAMES: Final = ("name", "tool_name", "function_name", "tool", "action", "function")
_ARGUMENTS: Final = (
    "arguments",
    "parameters",
    "args",
    "input",
    "tool_input",
    "action_input",
    "params",
    "kwargs",
)
_BESIDE: Final = frozenset({"id", "index", "type", "call_id", "tool_call_id", "thought", "reason"})
"""Members that may stand beside a call and say nothing about it."""
_MESSAGE: Final = frozenset({"tool_calls", "role", "content"})

Written = tuple[str | None, Any]
"""The tool as it was named (None: the text holds arguments only), and its arguments as they were written."""


def calls_in(value: Any, tools: Mapping[str, Any]) -> list[Written]:  # noqa: ANN401 - parse step
    """Return the calls that `value` stands for, in order.

    Raises `Unreadable` for a value that is none, and `Ambiguous` for one that may be something else.
    """
    found: list[Written] = []
    add_calls(found, _calls(value, tools))
    return found


def add_calls(found: list[Written], more: Iterable[Written]) -> None:
    """Add `more` to `found`, the calls of the same reply so far; raise `Unreadable` if they are too many."""
    for call in more:
        if len(found) == MAX_CALLS:
            raise Unreadable("too_many_calls")
        found.append(call)


def _calls(value: Any, tools: Mapping[str, Any]) -> Iterator[Written]:  # noqa: ANN401 - parse step
    match value:
        case [*items] if items:
            for item in items:
                if not isinstance(item, dict):
                    raise Unreadable("no_call")
                yield _call(item, tools)
        case {"tool_calls": [*items]} if value.keys() <= _MESSAGE:
            yield from _calls(items, tools)
        case dict():
            yield _call(value, tools)
        case _:
            raise Unreadable("no_call")


def _call(members: dict[str, Any], tools: Mapping[str, Any]) -> Written:
    for wrapper in ("function", "function_call"):
        if isinstance(inner := members.get(wrapper), dict):
            _refuse_unknown(members.keys() - {wrapper})
            return _call(inner, tools)
    named = [name for name in _NAMES if isinstance(members.get(name), str)]
    filled = [name for name in _ARGUMENTS if name in members]
    if len(named) == 1 and len(filled) <= 1 and (filled or members[named[0]] in tools):
        _refuse_unknown(members.keys() - {named[0], *filled})
        return members[named[0]], members[filled[0]] if filled else {}
    return _bare(members, tools)


def _bare(members: dict[str, Any], tools: Mapping[str, Any]) -> Written:
    """Return a call that names its tool as a member, or none at all: the only tool that was offered."""
    if len(members) == 1:
        name, inner = next(iter(members.items()))
        if name in tools and isinstance(inner, dict):
            return name, inner
    if len(tools) == 1:
        return None, members
    raise Unreadable("no_call")


def _refuse_unknown(others: AbstractSet[str]) -> None:
    if not others <= _BESIDE:
        raise Ambiguous("unknown_member")
