# SPDX-License-Identifier: Apache-2.0
"""The question to an approver: the exact text that is shown about one call, or about letting content go.

Owns that text. A model writes the arguments, and may write them to look like this text, or so long that what
stands above them is scrolled away. So every line of them stands behind a mark that no line of ours begins
with, folded here and not by a window; and what counts is said before them and again after them, where the
question is. Leaves asking to an `Approver`. Carries I1: a person's yes is to what the call is.
"""

import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from hashlib import sha256
from types import MappingProxyType
from typing import Final, assert_never

from runner.kernel.labels import DataClass
from runner.kernel.language import how_many
from runner.kernel.messages import Block, ToolCall
from runner.kernel.ports import FOREIGN, RELEASE, ApprovalRequest, Backend
from runner.kernel.shown import cells_of, is_seen, number_of
from runner.perimeter.cuts import Regions
from runner.perimeter.known import Origin, Provenance
from runner.perimeter.validate import plain

NONE_UNNAMED: Final[Mapping[str, Provenance]] = MappingProxyType({})
"""No critical argument that the user did not name."""
WIDTH: Final = 64
"""The terminal cells of one shown line, the mark not counted: no common window folds it again."""


def approval_request(
    call: ToolCall,
    data_class: DataClass,
    meeting: AbstractSet[str] = frozenset(),
    unnamed: Mapping[str, Provenance] = NONE_UNNAMED,
) -> ApprovalRequest:
    """Return what an approver is shown about `call`: inert ASCII, the arguments whole.

    `data_class` is that of all the task has seen; `meeting` names the matters whose content would meet;
    `unnamed` are the critical arguments that the user did not name, with where they come from. These, the
    tool, and the length and SHA-256 of the arguments (of their JSON as shown, without marks and folds) are
    the first lines and, the same, the last. Critical arguments that the user did not name stand before all
    others, whole, and again in their place.
    """
    arguments = json.dumps(plain(call.arguments), ensure_ascii=True, indent=2, sort_keys=True)
    facts = [
        f"class {data_class.name}",
        f"tool {call.tool!a}",
        *([f"brings together the matters {', '.join(sorted(meeting))}"] if meeting else []),
        *(f"you did not name: {name!a}, {_whence(unnamed[name])}" for name in sorted(unnamed)),
        f"arguments {how_many(len(arguments), 'character')}, SHA-256",
        sha256(arguments.encode("ascii")).hexdigest(),
    ]
    lines = [f"{FOREIGN}{line}" for name in sorted(unnamed) for line in _folded(_alone(name, call))]
    lines += [*(["all arguments"] if unnamed else []), *(FOREIGN + line for line in _folded(arguments))]
    rendering = "".join(f"{line}\n" for line in (*facts, *lines, *facts))
    return ApprovalRequest(tool=call.tool, data_class=data_class, rendering=rendering)


def _alone(name: str, call: ToolCall) -> str:
    """Return one argument of `call` as JSON."""
    return json.dumps({name: plain(call.arguments[name])}, ensure_ascii=True, indent=2, sort_keys=True)


def _whence(where: Provenance) -> str:
    """Return where a value comes from, in words."""
    match where.origin:
        case Origin.NAMED:
            return "or only a part of it"
        case Origin.READ:
            return f"read from {', '.join(ascii(tool)[1:-1] for tool in sorted(where.tools))}"
        case Origin.COMPOSED:
            return "composed by the model"
        case _:
            assert_never(where.origin)


def release_request(
    block: Block, spans: Regions | None, *, backend: Backend, seconds: float
) -> ApprovalRequest:
    """Return what an approver is shown about letting `block`, or `spans` of it, go to `backend`.

    The content is shown whole and inert, behind marks: what can be seen as it is, the rest as its number.
    Class, destination, time, and length and SHA-256 of the block (of its text in UTF-8, all of it, without
    marks and folds) are the first lines and, the same, the last.
    """
    text, parts = block.text, ((0, len(block.text)),) if spans is None else spans
    facts = [
        f"class {block.label.data_class.name}",
        f"let this {'text' if spans is None else 'part of a text'} go to {backend.name}",
        f"which is {backend.model} at {backend.address}",
        f"for {seconds / 60:g} min, in this task only",
        f"from {_origin(block)}",
        f"text {how_many(len(text), 'character')}, SHA-256 of all of it",
        sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
    ]
    lines = []
    for start, end in parts:
        lines += [] if spans is None else [f"characters {start} to {end}"]
        lines += [FOREIGN + line for line in _folded("".join(map(_inert, text[start:end])))]
    rendering = "".join(f"{line}\n" for line in (*facts, *lines, *facts))
    return ApprovalRequest(tool=RELEASE, data_class=block.label.data_class, rendering=rendering)


def _origin(block: Block) -> str:
    """Return where a block comes from, in words of the profile and of the format."""
    sources = ", ".join(ascii(source)[1:-1] for source in sorted(block.label.sources))
    return f"{block.kind.value}, having read {sources}" if sources else block.kind.value


def _inert(character: str) -> str:
    return character if is_seen(character) or character == "\n" else number_of(character)


def _folded(text: str) -> Iterator[str]:
    """Yield `text` in lines of at most `WIDTH` terminal cells, nothing left out."""
    for line in text.split("\n"):
        start, room = 0, WIDTH
        for position, character in enumerate(line):
            room -= cells_of(character)
            if room < 0:
                yield line[start:position]
                start, room = position, WIDTH - cells_of(character)
        yield line[start:]
