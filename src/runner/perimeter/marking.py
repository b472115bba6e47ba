# SPDX-License-Identifier: Apache-2.0
"""Where a piece of a block stands in the bytes that would leave: shown, not searched for.

Owns the proof. The request is encoded a second time with a random mark in the place of each piece. If the
second body with the pieces put back is the first, member by member, then each piece stands where its mark
does, and nowhere else by virtue of this. The same words elsewhere in the request are no piece. If it is not,
whatever the codec did, nothing is shown. Pure. Serves P1 and I8.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from runner.kernel.inference import InferenceRequest, WireRequest
from runner.kernel.messages import Block, Json, Message
from runner.perimeter.cuts import Regions
from runner.perimeter.texts import texts_of

Marks: TypeAlias = Mapping[str, str]
"""The piece that each mark stands for."""


def marked(
    request: InferenceRequest, covered: Mapping[str, Regions], mint: Callable[[], str]
) -> tuple[InferenceRequest, Marks]:
    """Return `request` with a mark in each region of its blocks (by id), and what the marks stand for.

    `mint` returns random text that nobody could have written. Raises `ValueError` for regions that overlap.
    """
    marks: dict[str, str] = {}

    def block(each: Block) -> Block:
        pieces, position = [], 0
        for start, end in sorted(covered.get(each.id, ())):
            if start < position:
                raise ValueError("two regions of a block overlap")
            mark = mint()
            marks[mark] = each.text[start:end]
            pieces += [each.text[position:start], mark]
            position = end
        return replace(each, text="".join([*pieces, each.text[position:]]))

    def message(each: Message) -> Message:
        return replace(each, blocks=tuple(map(block, each.blocks)))

    return replace(request, messages=tuple(map(message, request.messages))), marks


def places(wire: WireRequest, other: WireRequest, marks: Marks) -> dict[int, Regions] | None:
    """Return where the pieces stand in the texts of `wire`, by the number of the text; None if not shown.

    `other` is the same request encoded with `marks`. Raises `ValueError` for a body that is not JSON, and
    `RecursionError` for one nested too deep.
    """
    pattern = re.compile("|".join(map(re.escape, marks)) or "(?!)")
    restored = _restored(_parsed(other), lambda text: pattern.sub(lambda mark: marks[mark[0]], text))
    frames = [replace(each, body=b"") for each in (wire, other)]
    if frames[0] != frames[1] or restored != _restored(_parsed(wire), str):
        return None
    found = {
        number: _regions(each.text, pattern, marks) for number, each in enumerate(texts_of(other, host=False))
    }
    return {number: regions for number, regions in found.items() if regions}


def _parsed(wire: WireRequest) -> Json:
    """Return the body with its objects as pairs: a member that is repeated is not lost."""
    body: Json = json.loads(wire.body, object_pairs_hook=lambda pairs: {"": [list(pair) for pair in pairs]})
    return body


def _restored(value: Json, restore: Callable[[str], str]) -> object:
    """Return `value` to be compared, with `restore` applied to each string that is no member's name."""
    match value:
        case {"": list() as pairs}:
            return ("members", [(pair[0], _restored(pair[1], restore)) for pair in pairs])
        case list() as items:
            return [_restored(item, restore) for item in items]
        case str() as text:
            return restore(text)
        case _:
            return (type(value), str(value))


def _regions(text: str, pattern: re.Pattern[str], marks: Marks) -> Regions:
    """Return where the pieces stand once the marks in `text` are replaced by them."""
    regions, moved = [], 0
    for mark in pattern.finditer(text):
        start, size = mark.start() + moved, len(marks[mark[0]])
        regions.append((start, start + size))
        moved += size - len(mark[0])
    return tuple(regions)
