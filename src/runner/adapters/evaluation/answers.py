# SPDX-License-Identifier: Apache-2.0
"""Whether the arguments of a call are among those that a dataset takes for right.

Owns the comparison, as the Berkeley Function Calling Leaderboard makes it in its check by syntax tree (Patil
et al., 2023): any of the values listed for an argument is right, an argument may be absent if the empty text
is among them, and texts count alike that differ only in case, spaces and some marks. A whole number is as
good as its decimal. Total on any JSON values. Pure.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

ABSENT: Final = ""
"""Among the allowed values: the argument need not be there."""
_MARKS: Final = re.compile(r"[ ,./\-_*^]")


def folded(text: str) -> str:
    """Return `text` as it is compared: without spaces and `,./-_*^`, in lower case, with double quotes."""
    return _MARKS.sub("", text).lower().replace("'", '"')


def is_right(arguments: Mapping[str, Any], allowed: Mapping[str, Sequence[Any]]) -> bool:
    """Return whether each argument has a value out of `allowed`, and none is there or lacking wrongly."""
    if not arguments.keys() <= allowed.keys():
        return False
    return all(
        any(_same(arguments[name], value) for value in values) if name in arguments else ABSENT in values
        for name, values in allowed.items()
    )


def _same(said: Any, right: Any) -> bool:  # noqa: ANN401 - any JSON values
    """Return whether `said` is `right`. An object in `right` lists the allowed values of each member."""
    match right:
        case bool() | None:
            return said is right
        case int() | float():
            return _is_number(said) and said == right
        case str():
            return isinstance(said, str) and folded(said) == folded(right)
        case list() | tuple():
            return isinstance(said, list | tuple) and _same_items(said, right)
        case dict():
            return isinstance(said, dict) and is_right(said, {name: _values(right[name]) for name in right})
        case _:
            return False


def _same_items(said: Sequence[Any], right: Sequence[Any]) -> bool:
    return len(said) == len(right) and all(map(_same, said, right))


def _values(listed: Any) -> Sequence[Any]:  # noqa: ANN401 - any JSON value
    """Return the allowed values of a member: a list of them, or the only one."""
    return listed if isinstance(listed, list) else [listed]


def _is_number(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(value, int | float) and not isinstance(value, bool)
