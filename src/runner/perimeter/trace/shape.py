# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of the trace as types, and the check that nothing else enters a record.

Owns the field types of `contracts/trace/v1` §4 and `Shape`, the base of every record: it checks each
field against its annotation when it is built, and encodes itself. Carries I12: a value outside the
vocabulary is refused, and the error names the field, never the value.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from functools import cache, reduce
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from runner.kernel.canonical import (
    MAX_DEPTH,
    MAX_INTEGER,
    canonical_text,
    integer_text,
    member_text,
    string_text,
)
from runner.kernel.errors import TraceError
from runner.kernel.labels import DataClass, Integrity

Rule: TypeAlias = Callable[[object], bool]


def matching(pattern: str) -> Rule:
    """Return the rule "a string that matches `pattern` as a whole"."""
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _within(low: int, high: int) -> Rule:
    return lambda value: type(value) is int and low <= value <= high


def _no_repeats(value: object) -> bool:
    return isinstance(value, tuple) and len(set(value)) == len(value)


IS_ID: Final = matching(r"[0-9a-f]{32}")
Hex32 = Annotated[str, IS_ID]
"""An id: 128 random bits."""
Hex64 = Annotated[str, matching(r"[0-9a-f]{64}")]
"""A digest or a commitment."""
Name = Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9_.:@/+-]{0,127}")]
"""A word of the profile or of the format, never one that a model, a document or a page chose."""
Member = Annotated[str, matching(r"[a-z][a-z0-9_]{0,63}")]
"""The name of a member of an object."""
BlockId = Annotated[str, matching(r"b(0|[1-9][0-9]*)")]
Blocks = Annotated[tuple[BlockId, ...], _no_repeats]
Commits = Annotated[tuple[Hex64, ...], _no_repeats]
Names = Annotated[tuple[Name, ...], _no_repeats]
Count = Annotated[int, _within(0, MAX_INTEGER)]
TimeUs = Count
"""Microseconds since 1970-01-01 UTC."""
SealEvery = Annotated[int, _within(1, 256)]
SealMs = Annotated[int, _within(1, 60_000)]
Judges = Annotated[str, matching(r"rules-only|(?=.{1,128}$)rules(\+[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,99})+")]
"""Who classified: the rules alone, or the rules and the second opinions named after them."""
Book = Annotated[str, matching(r"[a-z0-9][a-z0-9._/-]{0,94}")]

_RENAMED: Final = {"data_class": "class", "from_class": "from", "to_class": "to"}
_ROOM: Final = MAX_DEPTH - 2
"""How deep a member may nest: a line and its body stand around it."""


class Shape:
    """Base of what may enter the trace. Subclasses are frozen keyword-only data classes.

    Building one raises `TraceError` when a field is outside its type or `_defect` finds one.
    """

    __slots__ = ()
    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """Let other records hold one of `cls`."""
        _TEXTS[cls] = cls.text

    def __post_init__(self) -> None:
        """Check every field; raise `TraceError` naming the first that is wrong."""
        for name, conforms in self._fields():
            if not conforms(getattr(self, name)):
                raise TraceError(f"{type(self).__name__}.{name} is not a word of the trace's vocabulary")
        if defect := self._defect():
            raise TraceError(f"{type(self).__name__}: {defect}")

    def text(self) -> str:
        """Return this record as canonical JSON; absent optional fields are left out.

        The members stand in the order of their names, and each value is written by its type. Raises
        `TraceError` or `ValueError` for one that got in past the check. Nothing of the vocabulary nests
        deeper than canonical JSON may.
        """
        members: list[str] = []
        for lead, name in self._members():
            value = getattr(self, name)
            if value is not None:
                members.append(lead + _TEXTS.get(type(value), _text)(value))
        return "{" + ",".join(members) + "}"

    @classmethod
    @cache
    def _members(cls) -> tuple[tuple[str, str], ...]:
        """Return the beginning of each member and the field it is of, in canonical order."""
        names = sorted((_RENAMED.get(name, name), name) for name, _ in cls._fields())
        return tuple((member_text(member), name) for member, name in names)

    @classmethod
    @cache
    def _fields(cls) -> tuple[tuple[str, Rule], ...]:
        """Return each field with the rule of its annotation."""
        hints = get_type_hints(cls, include_extras=True)
        own = fields(cls)  # type: ignore[arg-type]  # every subclass is a data class
        return tuple((each.name, _rule(hints[each.name])) for each in own)

    def _defect(self) -> str | None:
        """Say what is wrong between fields; None when nothing is."""
        return None


def _rule(hint: object) -> Rule:
    """Return the rule "of the annotation `hint`, its own rules included"."""
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is Annotated:
            return reduce(_both, arguments[1:], _rule(arguments[0]))
        case origin if origin is Literal:
            return lambda value: isinstance(value, str) and value in arguments
        case origin if origin is Union or origin is UnionType:
            return reduce(_either, map(_rule, arguments))
        case origin if origin is tuple:
            item = _rule(arguments[0])
            return lambda value: isinstance(value, tuple) and all(map(item, value))
        case origin if origin is Mapping:
            name, member = _rule(arguments[0]), _rule(arguments[1])
            return lambda value: (
                isinstance(value, Mapping) and all(map(name, value)) and all(map(member, value.values()))
            )
        case _:
            return lambda value: type(value) is hint or (isinstance(value, StrEnum) and hint is str)


def _both(one: Rule, other: Rule) -> Rule:
    return lambda value: one(value) and other(value)


def _either(one: Rule, other: Rule) -> Rule:
    return lambda value: one(value) or other(value)


def _array(value: tuple[object, ...]) -> str:
    return "[" + ",".join([_TEXTS.get(type(item), _text)(item) for item in value]) + "]"


_TEXTS: Final[dict[type, Callable[[Any], str]]] = {
    str: string_text,
    int: integer_text,
    bool: {False: "false", True: "true"}.__getitem__,
    tuple: _array,
    DataClass: {each: f'"{each.name}"' for each in DataClass}.__getitem__,
    Integrity: {each: f'"{each.name.lower()}"' for each in Integrity}.__getitem__,
}
"""How most values of a record are written, by their type; `_text` knows the others."""


def _text(value: object) -> str:
    """Return the canonical text of a value whose type is none of those; raise as `Shape.text`."""
    match value:
        case StrEnum():
            return string_text(value)
        case Mapping():  # may have been changed since it was checked
            return canonical_text(dict(value), _ROOM)
        case _:
            raise TraceError(f"a {type(value).__name__} has no place in the trace")
