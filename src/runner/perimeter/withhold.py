# SPDX-License-Identifier: Apache-2.0
"""What of a tool's result a task is not shown: the texts in which more is found than it is to see.

Owns one step between a tool and the task: of a result that is JSON, each text above a class goes, and a few
words stand in its place; of a page, each line. Leaves finding to the caller's judge, and the label to the
task, which looks at what is left as a whole: what only several texts say together still raises its mark.
Carries I8 and I12: what was not shown is in no prompt, no reply and no call, so nothing needs to follow where
it went.
"""

import json
from collections.abc import Callable
from typing import Final

from runner.kernel.labels import DataClass
from runner.kernel.messages import Json
from runner.perimeter.validate import is_bounded, parse_json

MOST_TEXTS: Final = 4096
"""Texts of a result that are looked at one by one. A result with more is shown whole, and counts whole."""


def withhold(text: str, most: DataClass, judge: Callable[[str], DataClass]) -> tuple[str, int]:
    """Return the JSON `text` without the texts that `judge` puts above `most`, and how many these were.

    `judge` gets a text with the name of the member that it is, as JSON. What is no JSON, is beyond the bounds
    of a call, or has more than `MOST_TEXTS`, comes back as it is: the task then counts all of it. So does
    what is above `most` in the names of members, in numbers, or in several texts together only. Raises what
    `judge` raises.
    """
    if judge(text) <= most:
        return text, 0
    try:
        value = parse_json(text)
    except ValueError:
        return text, 0
    if not is_bounded(value) or _texts_in(value) > MOST_TEXTS:
        return text, 0
    shown, count = _without(value, None, _instead(most), lambda each: judge(each) > most)
    return (json.dumps(shown, ensure_ascii=False), count) if count else (text, 0)


def withhold_lines(text: str, most: DataClass, judge: Callable[[str], DataClass]) -> tuple[str, int]:
    """Return `text` without the lines that `judge` puts above `most`, and how many these were.

    What only several lines say together, the task counts. Raises what `judge` raises.
    """
    if judge(text) <= most:
        return text, 0
    lines = text.split("\n")
    above = {number for number, line in enumerate(lines) if judge(line) > most}
    shown = [_instead(most) if number in above else line for number, line in enumerate(lines)]
    return "\n".join(shown), len(above)


def _instead(most: DataClass) -> str:
    return f"[withheld: above {most.name}]"


def _texts_in(value: Json) -> int:
    match value:
        case str():
            return 1
        case dict() as members:
            return sum(map(_texts_in, members.values()))
        case list() as items:
            return sum(map(_texts_in, items))
        case _:
            return 0


def _without(
    value: Json, name: str | None, instead: str, is_above: Callable[[str], bool]
) -> tuple[Json, int]:
    """Return `value`, the member called `name`, without the texts that are above, and their number."""
    match value:
        case str():
            said: Json = value if name is None else {name: value}
            return (instead, 1) if is_above(json.dumps(said, ensure_ascii=False)) else (value, 0)
        case dict() as members:
            found = {each: _without(item, each, instead, is_above) for each, item in members.items()}
            return {each: shown for each, (shown, _) in found.items()}, sum(n for _, n in found.values())
        case list() as items:
            parts = [_without(item, name, instead, is_above) for item in items]
            return [shown for shown, _ in parts], sum(n for _, n in parts)
        case _:
            return value, 0
