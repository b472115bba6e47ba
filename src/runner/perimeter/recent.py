# SPDX-License-Identifier: Apache-2.0
"""What was sent lately: so that what is split over several requests is seen when its last piece leaves.

Owns a short memory of the texts of the last sends to each place that is less local than C3 needs. A place is
a host, whatever is asked of it: questions and batches of embeddings that go to one are one. Of a long text it
keeps both ends, and of many texts the last: seams reach no further. It lives in memory, shows in no repr,
ends with the runtime (I12). Leaves looking across the seams to `seams.py`. Carries I6.
"""

from collections.abc import Sequence
from typing import Final

from runner.kernel.inference import Address
from runner.perimeter.seams import PIECES, beginning, ending

SENDS: Final = 8
"""How many sends are remembered for each place."""


class RecentSends:
    """The texts of the last sends, by place. Many may read while one writes."""

    __slots__ = ("_sends",)

    def __init__(self) -> None:
        self._sends: dict[str, tuple[tuple[str, ...], ...]] = {}

    def remember(self, place: str, texts: Sequence[str]) -> None:
        """Keep the ends of the last `PIECES` of `texts`, which are being sent to `place`."""
        sent = tuple(map(_ends, texts[-PIECES:]))
        self._sends[place] = (*self._sends.get(place, ()), sent)[-SENDS:]

    def before(self, place: str, texts: Sequence[str]) -> list[str]:
        """Return what was sent to `place` lately and `texts` do not repeat, each once, oldest first."""
        sent = dict.fromkeys(text for send in self._sends.get(place, ()) for text in send)
        repeated = set(texts)
        return [text for text in sent if text not in repeated]


def place_of(address: Address) -> str:
    """Return the place that `address` leads to: its host, whatever the port."""
    return address.host.lower() or address.scheme


def _ends(text: str) -> str:
    """Return `text` without its middle, which no seam reaches."""
    first, last = beginning(text), ending(text)
    return text if len(first) + len(last) >= len(text) else f"{first}\n{last}"
