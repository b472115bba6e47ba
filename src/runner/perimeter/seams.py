# SPDX-License-Identifier: Apache-2.0
"""What shows only when texts are put together: a credential or a client's name split over turns or fields.

Owns putting the texts of one request together and looking across the seams. A request repeats the turns
before it, so this reaches over the conversation. Leaves what is looked for to the classifier it is given:
only what cannot arise by chance (credentials by shape, the client register), for seams make strangers
neighbours.
Carries I6. Time is linear in the texts.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from runner.kernel.labels import DataClass
from runner.kernel.ports import Classifier
from runner.perimeter.finding import ask_classifier

_APART: Final = "\n\nzzq zzq zzq\n\n"
"""Stands between two windows: more strange words in a row than a name may have in it."""
_PAIR: Final = 2
_REACH: Final = 256
"""Characters on either side of a seam that are looked at: more than a credential told by its shape has."""


def across(texts: Sequence[str], fragments: Classifier) -> DataClass:
    """Return the class of what `fragments` finds across the seams of `texts`.

    What lies inside one text is not counted: it is judged by itself. Raises what the classifier raises.
    """
    pieces = [text for text in texts if text]
    drawn, seams, size = [], [], 0
    for window in (each for at in range(len(pieces) - 1) for each in _windows(pieces, at)):
        drawn.append("".join(window))
        seams += [size + length for length in accumulate(map(len, window[:-1]))]
        size += len(drawn[-1]) + len(_APART)
    if not drawn:
        return DataClass.C0
    spans = ask_classifier(fragments, _APART.join(drawn)).spans
    return max(
        (span.data_class for span in spans if _crosses(seams, span.start, span.end)), default=DataClass.C0
    )


def _windows(pieces: Sequence[str], at: int) -> Iterator[Sequence[str]]:
    """Yield the end of piece `at` with the beginning of the next, and with those of all within reach.

    Each begins where a text does, so that a word before it cannot hide what begins there; the shorter also
    ends where one does.
    """
    window, left = [pieces[at][-_REACH:]], _REACH
    for piece in pieces[at + 1 :]:
        window.append(piece[:left])
        left -= len(window[-1])
        if len(window) == _PAIR:
            yield tuple(window)
        if left <= 0:
            break
    if len(window) > _PAIR:
        yield window


def _crosses(seams: Sequence[int], start: int, end: int) -> bool:
    """Say whether a seam lies strictly between `start` and `end`."""
    index = bisect_right(seams, start)
    return index < len(seams) and seams[index] < end
