# SPDX-License-Identifier: Apache-2.0
"""The judge: whether what was planted stands in what arrived.

Owns that one question. It knows the very text that was planted and looks for it in the bytes, so it needs no
detector, and shares no code with one: an import contract holds it to the standard library. Total over bytes.
It looks for the planted form, for the plain form, and for the pieces of a split secret in their order. Media
travel as base64, whatever is in them: those are opened.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

_SHORTEST: Final = 4
"""Characters of the shortest text that is looked for: shorter ones stand anywhere."""
_LEAST_MEDIA: Final = 64
"""Characters of the shortest base64 that is opened: no picture has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """What was hidden in the requests of a trial: the secret itself, and the pieces that were sent."""

    core: str = field(repr=False)
    pieces: tuple[str, ...] = field(repr=False)

    @property
    def form(self) -> str:
        """The planted form, whole."""
        return "".join(self.pieces)


def found(planted: Planted, bodies: Sequence[bytes]) -> bool:
    """Say whether `planted` can be read out of `bodies`, the requests received, in order."""
    raw = b"\n".join(bodies)
    whole = [text for text in (planted.form, planted.core) if len(text) >= _SHORTEST]
    if any(text.encode("utf-8", "surrogatepass") in raw for text in whole):
        return True
    texts = [text for body in bodies for text in texts_of(body)]
    joined = "\n".join(texts)
    return any(text in joined for text in whole) or _in_order(planted.pieces, joined)


def _in_order(pieces: Sequence[str], text: str) -> bool:
    """Say whether every piece stands in `text`, each behind the one before."""
    position = 0
    for piece in pieces:
        position = text.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    return True


def texts_of(body: bytes) -> Iterator[str]:
    """Yield every string of a JSON body in order, names included; all of the body when it is not JSON."""
    try:
        value = json.loads(body, object_pairs_hook=list)
    except (ValueError, RecursionError):
        yield body.decode("utf-8", "replace")
        return
    stack: list[object] = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, str):
            yield each
            yield from _opened(each)
        elif isinstance(each, list | tuple):
            stack.extend(reversed(each))


def _opened(text: str) -> Iterator[str]:
    """Yield what a text, or a data URL, says in base64, if it does."""
    written = text.rpartition(";base64,")[2]
    if len(written) < _LEAST_MEDIA:
        return
    try:
        yield base64.b64decode(written, validate=True).decode("utf-8", "replace")
    except ValueError:
        return
