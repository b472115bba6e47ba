# SPDX-License-Identifier: Apache-2.0
"""The one spelling of a value that the grammars of this room accept.

Owns ``canonical_text`` (compact, escapes only where JSON needs them, whole numbers without a point) and
``arrangements``, the orders of members a schema declares. Leaves judging to whoever calls.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING

from .form import options
from .model import ArrayShape, Goal, ObjectShape, TooLargeError
from .numeric import decimal_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .form import Form

_PLAIN_LOW, _PLAIN_HIGH = 1e-20, 1e20


def canonical_text(value: object) -> str:
    """Return ``value`` as compact JSON text, members in their given order.

    Arguments: ``value`` of what ``json.loads`` returns. Numbers are plain decimals (``1.0`` is ``1``) between
    1e-20 and 1e20. Raises ``ValueError`` for a number that is not finite and ``TypeError`` for other objects.
    """
    if isinstance(value, dict):
        pairs = (
            f"{json.dumps(str(key), ensure_ascii=False)}:{canonical_text(item)}"
            for key, item in value.items()
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical_text(item) for item in value) + "]"
    if isinstance(value, float) and (value == 0 or _PLAIN_LOW <= abs(value) < _PLAIN_HIGH):
        try:
            return decimal_text(Fraction(repr(value)))
        except TooLargeError:
            return json.dumps(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def arrangements(form: Form, value: object, limit: int = 64) -> Iterator[object]:
    """Yield ``value`` with the members of its objects in each declared order, at most ``limit`` of them.

    An object may be declared in several orders where a schema has alternatives; names that are not declared
    come last, in their given order.
    """
    yield from _arranged(form, form.root, value, limit)


def _arranged(form: Form, wanted: Goal, value: object, limit: int) -> list[object]:
    if not isinstance(value, dict | list) or not value:
        return [value]
    found: dict[str, object] = {}
    for shape in form.shapes.get(wanted, ()):
        options: list[object] = []
        if isinstance(value, dict) and isinstance(shape, ObjectShape):
            options = _objects(form, shape, value, limit)
        elif isinstance(value, list) and isinstance(shape, ArrayShape):
            options = _arrays(form, shape, value, limit)
        for option in options:
            found.setdefault(json.dumps(option), option)
            if len(found) >= limit:
                return list(found.values())
    return list(found.values()) or [value]


def _objects(form: Form, shape: ObjectShape, value: dict[str, object], limit: int) -> list[object]:
    goals = {member.name: [member.goal] for member in shape.members if member.name in value}
    others = [extra.goal for extra in shape.extras]
    goals.update({name: others for name in value if name not in goals})
    results: list[dict[str, object]] = [{}]
    for name, choices in goals.items():
        items = [item for choice in choices for item in _arranged(form, choice, value[name], limit)] or [
            value[name]
        ]
        results = [{**result, name: item} for item in items[:limit] for result in results][:limit]
    return list(results)


def _arrays(form: Form, shape: ArrayShape, value: list[object], limit: int) -> list[object]:
    results: list[list[object]] = [[]]
    for index, item in enumerate(value):
        goals = dict.fromkeys(option.goal for option in options(shape, index))
        items = [option for wanted in goals for option in _arranged(form, wanted, item, limit)][:limit]
        results = [[*result, option] for option in items for result in results][:limit]
    return list(results)
