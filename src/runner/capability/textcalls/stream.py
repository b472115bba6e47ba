# SPDX-License-Identifier: Apache-2.0
"""A reply that arrives in pieces: what may be shown meanwhile, and its calls at the end.

Owns the hold-back. Calls are parsed once, from the whole text: they cannot depend on where pieces were cut.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from runner.capability.textcalls.dialects import MARKERS
from runner.capability.textcalls.parse import ParsedCalls, parse_calls

_BEGINNINGS: Final = re.compile(
    "|".join([r"[{\[`]", r"<\|", "Action", *map(re.escape, sorted(MARKERS, key=len, reverse=True))])
)
_LONGEST: Final = max(map(len, MARKERS))


class CallStream:
    """Takes the pieces of one reply to a model that was offered `tools` (name to JSON Schema)."""

    __slots__ = ("_pieces", "_shown", "_tail", "_tools")

    def __init__(self, tools: Mapping[str, Mapping[str, Any]]) -> None:
        self._tools = tools
        self._pieces: list[str] = []
        self._tail = ""
        self._shown = True

    def feed(self, piece: str) -> str:
        """Take the next piece; return the text that is surely no part of a call, and may be shown."""
        self._pieces.append(piece)
        if not self._shown:
            return ""
        self._tail += piece
        begun = _BEGINNINGS.search(self._tail)
        if begun is not None:
            self._shown = False
            return self._tail[: begun.start()]
        free = max(0, len(self._tail) - _LONGEST + 1)
        shown, self._tail = self._tail[:free], self._tail[free:]
        return shown

    def finish(self, *, finished: bool = True) -> ParsedCalls:
        """Return the calls of the whole reply; see `parse_calls`."""
        return parse_calls("".join(self._pieces), self._tools, finished=finished)
