# SPDX-License-Identifier: Apache-2.0
"""Keywords of JSON Schema (draft 2020-12) that are judged in bounded time, whatever a model writes.

Owns what `jsonschema` leaves open: its patterns backtrack, its unique items are compared each with each, its
multiples are those of binary fractions, and a schema that branches and refers to itself may ask for
exponentially many steps. Leaves the bounds of a value to `validate.py`. Carries P1: nothing is fetched.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeAlias

import re2
from jsonschema import Draft202012Validator, ValidationError, validators
from referencing.jsonschema import EMPTY_REGISTRY

from runner.kernel.errors import PerimeterError

MAX_STEPS: Final = 100_000
"""How many keywords may be applied to one value: about a second."""

JSON: TypeAlias = Any
"""Values and schemas as `jsonschema` hands them to a keyword."""
Errors: TypeAlias = Iterator[ValidationError]
Keyword: TypeAlias = Callable[[Any, JSON, JSON, JSON], Errors | None]
_steps: ContextVar[Iterator[int]] = ContextVar("_steps")


class TooManySteps(PerimeterError):
    """A value would take too long to judge."""


def is_valid(value: JSON, schema: JSON) -> bool:
    """Return whether `value` fits `schema`, both in lists and dicts.

    Raises `TooManySteps`, and whatever else a schema that is none makes of judging.
    """
    with _counting():
        return bool(_Validator(schema, registry=EMPTY_REGISTRY).is_valid(value))


def compiles(pattern: object) -> bool:
    """Return whether RE2 can compile `pattern`: it cannot look around or refer back."""
    try:
        return isinstance(pattern, str) and _compiled(pattern) is not None
    except (re2.error, ValueError):
        return False


def matches_whole(pattern: str, text: str) -> bool:
    """Return whether the whole of `text` matches `pattern`. Total: what cannot be judged does not."""
    try:
        return _compiled(pattern).fullmatch(text) is not None
    except (re2.error, ValueError):
        return False


@contextmanager
def _counting() -> Iterator[None]:
    token = _steps.set(iter(range(MAX_STEPS)))
    try:
        yield
    finally:
        _steps.reset(token)


def _counted(keyword: Keyword) -> Keyword:
    def check(validator: Any, wanted: JSON, instance: JSON, schema: JSON) -> Errors | None:  # noqa: ANN401 - jsonschema's own object
        if next(_steps.get(), None) is None:
            raise TooManySteps
        return keyword(validator, wanted, instance, schema)

    return check


# --- patterns: RE2, which does not backtrack --------------------------------------------------------


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:  # noqa: ANN401 - google-re2 has no types
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _finds(pattern: str, text: str) -> bool:
    """Return whether `pattern` matches somewhere in `text`; raise `ValueError` for a lone surrogate."""
    return _compiled(pattern).search(text) is not None


def _pattern(_: object, pattern: str, instance: JSON, __: JSON) -> Errors:
    if isinstance(instance, str) and not _finds(pattern, instance):
        yield ValidationError("pattern")


def _pattern_properties(
    validator: Draft202012Validator, patterns: Mapping[str, JSON], instance: JSON, _: JSON
) -> Errors:
    for pattern, below in patterns.items() if isinstance(instance, dict) else ():
        for name, item in instance.items():
            if _finds(pattern, name):
                yield from validator.descend(item, below)


def _additional_properties(
    validator: Draft202012Validator, below: JSON, instance: JSON, schema: Mapping[str, JSON]
) -> Errors:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, item in instance.items() if isinstance(instance, dict) else ():
        if name not in known and not any(_finds(pattern, name) for pattern in patterns):
            yield from validator.descend(item, below)


# --- numbers: the decimals they are written as ------------------------------------------------------


def _multiple_of(_: object, divisor: float, instance: JSON, __: JSON) -> Errors:
    """Judge 4.76 a multiple of 0.01, which it is; the binary fractions nearest to them are none."""
    is_number = isinstance(instance, int | float) and not isinstance(instance, bool)
    if is_number and (_exactly(instance) / _exactly(divisor)).denominator != 1:
        yield ValidationError("multipleOf")


def _exactly(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


# --- items: compared by hash ------------------------------------------------------------------------


def _unique_items(_: object, wanted: JSON, instance: JSON, __: JSON) -> Errors:
    if wanted and isinstance(instance, list) and len({_key(item) for item in instance}) != len(instance):
        yield ValidationError("uniqueItems")


def _key(value: JSON) -> Hashable:
    """Return a key that two JSON values share if they are equal: 1 is 1.0, and true is not 1."""
    match value:
        case dict():
            return frozenset((name, _key(item)) for name, item in value.items())
        case list():
            return tuple(_key(item) for item in value)
        case bool() | str() | None:
            return (type(value), value)
        case _:
            return (float, value)


_OWN: Final[Mapping[str, Keyword]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "multipleOf": _multiple_of,
    "uniqueItems": _unique_items,
}
_Validator: Final = validators.extend(  # type: ignore[no-untyped-call]  # jsonschema leaves it without types
    Draft202012Validator,
    {name: _counted(keyword) for name, keyword in {**Draft202012Validator.VALIDATORS, **_OWN}.items()},
)
