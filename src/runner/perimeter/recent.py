# SPDX-License-Identifier: Apache-2.0
"""What was sent lately: so that what is split over several requests is seen when its last piece leaves.

Owns a short memory of the texts of the last sends to each backend that is less local than C3 needs. Of a long
text it keeps both ends: seams reach no further. It lives in memory, shows in no repr, ends with the runtime
(I12). Leaves looking across the seams to `seams.py`. Carries I6.
"""

from collections.abc import Sequence
from typing import Final

from runner.perimeter.seams import beginning, ending

SENDS: Final = 8
"""How many sends are remembered for each backend."""


class RecentSends:
    """The texts of the last sends, by backend. Many may read while one writes."""

    __slots__ = ("_sends",)

    def __init__(self) -> None:
        self._sends: dict[str, tuple[tuple[str, ...], ...]] = {}

    def remember(self, backend: str, texts: Sequence[str]) -> None:
        """Keep the ends of `texts`, which are being sent to `backend`."""
        self._sends[backend] = (*self._sends.get(backend, ()), tuple(map(_ends, texts)))[-SENDS:]

    def before(self, backend: str, texts: Sequence[str]) -> list[str]:
        """Return what was sent to `backend` lately and `texts` do not repeat, each once, oldest first."""
        sent = dict.fromkeys(text for send in self._sends.get(backend, ()) for text in send)
        repeated = set(texts)
        return [text for text in sent if text not in repeated]


def _ends(text: str) -> str:
    """Return `text` without its middle, which no seam reaches."""
    first, last = beginning(text), ending(text)
    return text if len(first) + len(last) >= len(text) else f"{first}\n{last}"
