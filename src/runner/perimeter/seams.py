# SPDX-License-Identifier: Apache-2.0
"""What shows only when texts are put together: a credential or a client's name split over turns or fields.

Owns putting the texts of one request together and looking across the seams. A request repeats the turns
before it, so this reaches over the conversation. Leaves what is looked for to the classifier it is given:
only what cannot arise by chance (credentials by shape, the client register), for seams make strangers
neighbours.
Carries I6. Time is linear in the texts.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from runner.kernel.labels import DataClass
from runner.kernel.ports import Classifier

FRAMES: Final = frozenset({"role", "type", "id", "object", "model", "name"})
"""Names of members that stand between two turns and carry nothing of them."""

_REACH: Final = 256
"""Characters on either side of a seam that are looked at: more than a credential told by its shape has."""


def across(texts: Sequence[tuple[str | None, str]], fragments: Classifier) -> DataClass:
    """Return the class of what `fragments` finds across the seams of `texts`, pairs of field name and text.

    What lies inside one text is not counted: it is judged by itself. Raises what the classifier raises.
    """
    pieces = [_ends(text) for name, text in texts if name not in FRAMES]
    seams = list(accumulate(map(len, pieces)))[:-1]
    if not seams:
        return DataClass.C0
    spans = fragments.classify("".join(pieces)).spans
    return max(
        (span.data_class for span in spans if _crosses(seams, span.start, span.end)), default=DataClass.C0
    )


def _ends(text: str) -> str:
    """Return `text`, or of a long one its beginning and its end: the middle crosses no seam."""
    return text if len(text) <= 2 * _REACH else f"{text[:_REACH]}\n\n{text[-_REACH:]}"


def _crosses(seams: Sequence[int], start: int, end: int) -> bool:
    """Say whether a seam lies strictly between `start` and `end`."""
    index = bisect_right(seams, start)
    return index < len(seams) and seams[index] < end
