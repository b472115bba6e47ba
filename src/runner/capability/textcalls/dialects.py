# SPDX-License-Identifier: Apache-2.0
"""The envelopes in which models write calls, one reader each, in one table.

Owns the markers of every known format and what stands between them. Each reader is given a cursor behind
its opening marker, returns the calls it read, and stands behind its closing marker: whether that was there is
part of the answer. Values are read by `values.py`; a marker inside a string closes nothing.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from runner.capability.textcalls.cursor import Ambiguous, Cursor, Truncated, Unreadable
from runner.capability.textcalls.shapes import Written, add_calls, calls_in
from runner.capability.textcalls.values import NAME, read_python_calls, read_value, skip_space

Tools = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What one envelope held. `closed`: its own end marker was there, so that nothing of it is missing."""

    calls: list[Written] = field(repr=False)
    closed: bool


Reader = Callable[[Cursor, Tools], Envelope]

_PYTHONIC: Final = re.compile(r"\[?\s*[A-Za-z_][A-Za-z0-9_.]{0,127}\(")
_FUNCTION: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.\-]{0,127})>")
_PARAMETER: Final = re.compile(r"<parameter=([A-Za-z_][A-Za-z0-9_.\-]{0,127})>")
_INVOKE_NAME: Final = re.compile(r'name="([^"<>]{1,128})"\s*>')
_ATTRIBUTE: Final = re.compile(r'name="([^"<>]{1,128})"(?:\s+string="(true|false)")?\s*>')
_RECIPIENT: Final = re.compile(r"to=(?:functions\.)?([A-Za-z_][A-Za-z0-9_.\-]{0,127})")
_INDEXED: Final = re.compile(r"\s*(?:functions\.)?([A-Za-z_][A-Za-z0-9_.\-]{0,127})(?::[0-9]{1,4})?\s*")
_NAME_LENGTH: Final = 160
"""The longest name of a tool and what a template puts around it, in characters."""
_ROLE_LENGTH: Final = 256
"""How far before a channel its recipient may stand, in characters."""
_STRAY: Final = ("}", "]")
_DSML: Final = "\uff5cDSML\uff5c"
_SEP: Final = "<\uff5ctool\u2581sep\uff5c>"
_DEEPSEEK_END: Final = "<\uff5ctool\u2581call\u2581end\uff5c>"


# --- values: JSON, Python, or one of the forms below, between two markers --------------------------------


def values_between(*ends: str) -> Reader:
    """Return the reader of values, separated or not, up to one of `ends` or the end of the text."""

    def read(cursor: Cursor, tools: Tools) -> Envelope:
        calls = _one(cursor, tools, ends)
        while True:
            _pass_stray(cursor, ends)
            if cursor.take(*ends):
                return Envelope(calls=calls, closed=True)
            if cursor.ended or cursor.sees(*MARKERS):
                cursor.repair("missing_end_marker")
                return Envelope(calls=calls, closed=False)
            add_calls(calls, _one(cursor, tools, ends))

    return read


def _one(cursor: Cursor, tools: Tools, ends: tuple[str, ...]) -> list[Written]:
    skip_space(cursor)
    if cursor.ended:
        raise Truncated("truncated")
    if _PYTHONIC.match(cursor.text, cursor.at):
        return list(read_python_calls(cursor, ends))
    if cursor.next in "{[":
        return calls_in(read_value(cursor, ends), tools)
    if cursor.take("<function="):
        return [_function(cursor)]
    return [_named(cursor, ends)]


def _pass_stray(cursor: Cursor, ends: tuple[str, ...]) -> None:
    """Pass over closers that nothing opened and over separators, if an end, a marker or a value follows."""
    _skip_stray(cursor)
    if not cursor.sees(*ends) and cursor.take(";", ","):
        skip_space(cursor)
    if (
        not cursor.ended
        and not cursor.sees("{", "[", "<", *ends)
        and not _PYTHONIC.match(cursor.text, cursor.at)
    ):
        raise Ambiguous("text_after_call")


def _named(cursor: Cursor, ends: tuple[str, ...]) -> Written:
    """Read a name, then its arguments as an object or as pairs of `<arg_key>` and `<arg_value>`."""
    name = cursor.match(NAME)
    if name is None:
        raise Unreadable("malformed_call")
    skip_space(cursor)
    if not cursor.ended and cursor.next == "{":
        return name.group(), read_value(cursor, ends)
    arguments: dict[str, Any] = {}
    while cursor.take("<arg_key>"):
        key = _tagged(cursor, "</arg_key>").strip()
        skip_space(cursor)
        if not cursor.take("<arg_value>"):
            raise Truncated("truncated") if cursor.ended else Unreadable("malformed_call")
        _put(arguments, key, _trimmed(_tagged(cursor, "</arg_value>")))
        skip_space(cursor)
    if not cursor.sees(*ends):
        raise Truncated("truncated") if cursor.ended else Unreadable("malformed_call")
    return name.group(), arguments


# --- tags -------------------------------------------------------------------------------------------------


def _lone_function(cursor: Cursor, tools: Tools) -> Envelope:  # noqa: ARG001 - a reader
    """Read a function that no envelope opened; some models close one all the same."""
    call = _function(cursor)
    cursor.skip_space()
    cursor.take("</tool_call>")
    return Envelope(calls=[call], closed=True)


def _function(cursor: Cursor) -> Written:
    """Read a name, then an object or `<parameter=KEY>` tags, up to `</function>`."""
    opened = cursor.match(_FUNCTION)
    if opened is None:
        raise Truncated("truncated") if cursor.text.find(">", cursor.at) < 0 else Unreadable("malformed_call")
    skip_space(cursor)
    if not cursor.ended and cursor.next == "{":
        arguments = read_value(cursor, ("</function>",))
        skip_space(cursor)
    else:
        arguments = _parameters(cursor)
    if not cursor.take("</function>"):
        if not cursor.sees("</tool_call>"):
            raise Truncated("truncated") if cursor.ended else Ambiguous("text_after_call")
        cursor.repair("missing_end_marker")
    return opened.group(1), arguments


def _parameters(cursor: Cursor) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    while (opened := cursor.match(_PARAMETER)) is not None:
        _put(arguments, opened.group(1), _trimmed(_tagged(cursor, "</parameter>")))
        cursor.skip_space()
        while cursor.sees("</parameter>"):
            cursor.repair("stray_closer")
            cursor.take("</parameter>")
            cursor.skip_space()
    if cursor.sees("<parameter="):
        raise Truncated("truncated") if cursor.text.find(">", cursor.at) < 0 else Unreadable("malformed_call")
    return arguments


def _invoke(prefix: str) -> Reader:
    """Return the reader of `<invoke name="...">` with `<parameter name="...">` tags, all with `prefix`."""

    def read(cursor: Cursor, tools: Tools) -> Envelope:  # noqa: ARG001 - a reader
        opened = cursor.match(_INVOKE_NAME)
        if opened is None:
            raise (
                Truncated("truncated")
                if cursor.text.find(">", cursor.at) < 0
                else Unreadable("malformed_call")
            )
        arguments: dict[str, Any] = {}
        cursor.skip_space()
        while cursor.take(f"<{prefix}parameter "):
            named = cursor.match(_ATTRIBUTE)
            if named is None:
                raise Unreadable("malformed_call")
            _put(arguments, named.group(1), _trimmed(_tagged(cursor, f"</{prefix}parameter>")))
            cursor.skip_space()
        if not cursor.take(f"</{prefix}invoke>"):
            raise Truncated("truncated") if cursor.ended else Ambiguous("text_after_call")
        return Envelope(calls=[(opened.group(1), arguments)], closed=True)

    return read


def _tagged(cursor: Cursor, end: str) -> str:
    """Return the text up to the tag `end`, and stand behind it; raise `Ambiguous` if more text follows it.

    What follows a value can only be a tag. If it is text, the tag was part of the value.
    """
    inside = cursor.upto(end)
    if inside is None:
        raise Truncated("truncated")
    cursor.take(end)
    rest = cursor.at
    cursor.skip_space()
    if not cursor.ended and cursor.next != "<":
        raise Ambiguous("tag_in_value")
    cursor.at = rest
    return inside


def _trimmed(text: str) -> str:
    """Return `text` without the one line end that the format puts on either side of a value."""
    return text.removeprefix("\n").removesuffix("\n")


def _put(arguments: dict[str, Any], name: str, value: str) -> None:
    if name in arguments:
        raise Ambiguous("repeated_member")
    arguments[name] = value


# --- a name, a separator, an object ------------------------------------------------------------------------


def _mistral(cursor: Cursor, tools: Tools) -> Envelope:
    """Read what follows `[TOOL_CALLS]`: a list of calls, or a name, `[ARGS]` and an object."""
    cursor.skip_space()
    while cursor.take("[TOOL_CALLS]"):
        cursor.repair("repeated_marker")
        cursor.skip_space()
    name = cursor.match(NAME)
    if name is None:
        return values_between("</s>")(cursor, tools)
    if cursor.take("[CALL_ID]") and cursor.upto("[ARGS]") is None:
        raise Truncated("truncated")
    if not cursor.take("[ARGS]") and not cursor.sees("{"):
        raise Truncated("truncated") if cursor.ended else Unreadable("malformed_call")
    arguments = read_value(cursor, ("[TOOL_CALLS]", "</s>"))
    return Envelope(calls=[(name.group(), arguments)], closed=_over(cursor, "</s>", "[TOOL_CALLS]"))


def _over(cursor: Cursor, end: str, *others: str) -> bool:
    """Return whether `end`, or one of `others` at which it stops, follows; raise `Ambiguous` for text."""
    _skip_stray(cursor)
    if cursor.take(end) or cursor.sees(*others):
        return True
    if not cursor.ended and not cursor.sees(*MARKERS):
        raise Ambiguous("text_after_call")
    return False


def _skip_stray(cursor: Cursor) -> None:
    skip_space(cursor)
    while cursor.sees(*_STRAY):
        cursor.repair("stray_closer")
        cursor.at += 1
        skip_space(cursor)


def _kimi(cursor: Cursor, tools: Tools) -> Envelope:  # noqa: ARG001 - a reader
    """Read `functions.NAME:0<|tool_call_argument_begin|>{...}<|tool_call_end|>`."""
    name = cursor.match(_INDEXED)
    if name is None or not cursor.take("<|tool_call_argument_begin|>"):
        raise _half_of(cursor, "<|tool_call_argument_begin|>")
    arguments = read_value(cursor, ("<|tool_call_end|>",))
    closed = _over(cursor, "<|tool_call_end|>")
    return Envelope(calls=[(name.group(1), arguments)], closed=closed)


def _deepseek(cursor: Cursor, tools: Tools) -> Envelope:  # noqa: ARG001 - a reader
    """Read `NAME<sep>{...}<end>`, or `function<sep>NAME`, a fence with the object, and `<end>`."""
    first = cursor.upto(_SEP)
    if first is None:
        raise _half_of(cursor, _SEP)
    cursor.take(_SEP)
    name = first.strip()
    if name == "function":
        second = cursor.match(NAME)
        if second is None:
            raise Truncated("truncated") if cursor.ended else Unreadable("malformed_call")
        name = second.group()
        cursor.skip_space()
        cursor.take("```json")
    arguments = read_value(cursor, ("```", _DEEPSEEK_END))
    cursor.skip_space()
    cursor.take("```")
    return Envelope(calls=[(name, arguments)], closed=_over(cursor, _DEEPSEEK_END))


def _gemma(*ends: str) -> Reader:
    """Return the reader of `call:NAME{...}` up to one of `ends`."""

    def read(cursor: Cursor, tools: Tools) -> Envelope:  # noqa: ARG001 - a reader
        cursor.skip_space()
        name = cursor.match(NAME) if cursor.take("call:") else None
        if name is None:
            raise _half_of(cursor, "call:")
        arguments = read_value(cursor, ends)
        return Envelope(calls=[(name.group(), arguments)], closed=_over(cursor, *ends))

    return read


def _harmony(cursor: Cursor, tools: Tools) -> Envelope:  # noqa: ARG001 - a reader
    """Read a message of a channel: a call if it is addressed to a function, else nothing."""
    opened = cursor.at
    header = cursor.upto("<|message|>")
    if header is None:
        raise Truncated("truncated")
    cursor.take("<|message|>")
    role = cursor.text[max(0, opened - _ROLE_LENGTH) : opened].rpartition("<|start|>")[2]
    recipient = _RECIPIENT.search(header) or _RECIPIENT.search(role)
    if recipient is None:
        if cursor.upto("<|end|>", "<|return|>", "<|start|>", "<|channel|>") is None:
            cursor.at = len(cursor.text)
        cursor.take("<|end|>", "<|return|>")
        return Envelope(calls=[], closed=True)
    arguments = read_value(cursor, ("<|call|>", "<|end|>"))
    return Envelope(calls=[(recipient.group(1), arguments)], closed=_over(cursor, "<|call|>", "<|end|>"))


def _half_of(cursor: Cursor, marker: str) -> Unreadable:
    """Return what is wrong where a name and `marker` were due: too little text is left, or it is another."""
    rest = len(cursor.text) - cursor.at
    return Truncated("truncated") if rest < len(marker) + _NAME_LENGTH else Unreadable("malformed_call")


MARKERS: Final[Mapping[str, Reader]] = {
    "<tool_call>": values_between("</tool_call>"),
    "<tool_calls>": values_between("</tool_calls>"),
    "<TOOLCALL>": values_between("</TOOLCALL>"),
    "<function_call>": values_between("</function_call>"),
    "<|tool_call|>": values_between("<|/tool_call|>", "</|tool_call|>", "<|end_of_text|>"),
    "<|tool_call_start|>": values_between("<|tool_call_end|>"),
    "<|python_tag|>": values_between("<|eom_id|>", "<|eot_id|>"),
    "<|action_start|><|plugin|>": values_between("<|action_end|>"),
    "<|START_ACTION|>": values_between("<|END_ACTION|>"),
    "[TOOL_CALLS]": _mistral,
    "<function=": _lone_function,
    "<invoke ": _invoke(""),
    f"<{_DSML}invoke ": _invoke(_DSML),
    "<|tool_call_begin|>": _kimi,
    "<\uff5ctool\u2581call\u2581begin\uff5c>": _deepseek,
    "<start_function_call>": _gemma("<end_function_call>"),
    "<|tool_call>": _gemma("<tool_call|>"),
    "<|channel|>": _harmony,
}
"""Every marker that opens a call, and who reads on from there."""
