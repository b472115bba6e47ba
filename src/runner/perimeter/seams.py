# SPDX-License-Identifier: Apache-2.0
"""What shows only when texts are put together: a credential or a client's name split over turns or fields.

Owns putting texts together and looking across the seams: those of one request, which repeats the turns before
it, and those that were sent lately (`recent.py`). Leaves what is looked for to the classifier it is given:
only what cannot arise by chance (credentials by shape, the client register), for seams make strangers
neighbours.
What stands between two pieces does not hide a credential: they may be `NEAR` pieces apart. A name has to
stand in neighbours, for two of its words a turn apart are two people's.
Carries I6. Time is linear in the texts; a request that repeats the last one pays for what is new in it.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from typing import Final, TypeAlias

from runner.kernel.labels import DataClass
from runner.kernel.ports import Classifier
from runner.perimeter.classify import SHAPED
from runner.perimeter.finding import ask_classifier
from runner.perimeter.judged import JudgedTexts, digest_text

Kinds: TypeAlias = AbstractSet[str] | None
"""The kinds of finding that count; None for all."""
_APART: Final = "\n\nzzq zzq zzq\n\n"
"""Stands between two windows: more strange words in a row than a name may have in it."""
_PAIR: Final = 2
REACH: Final = 256
"""Characters on either side of a seam that are looked at: more than most credentials have."""
FARTHEST: Final = 4096
"""Characters that are looked at where the seam is in one long word: a token may be as long."""
_IN_WORDS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.-"
_EDGES: Final = " \t\r\n\"'`"
"""What may stand at a seam and not belong to what is split: looked at with it and without it."""
PIECES: Final = 48
"""The most pieces that are put together: most credentials and names have no more letters."""
NEAR: Final = 4
"""How far apart two pieces of a credential may be, in pieces, with anything between them."""


def across(texts: Sequence[str], fragments: Classifier, judged: JudgedTexts) -> DataClass:
    """Return the class of what `fragments` finds across the seams of `texts`; `judged` keeps the answers.

    What lies inside one text is not counted: it is judged by itself. Raises what the classifier raises.
    """
    ways = (tuple(filter(None, way)) for way in (texts, [text.strip(_EDGES) for text in texts]))
    seams = [(pieces, at) for pieces in dict.fromkeys(ways) for at in range(len(pieces) - 1)]
    close = [window for pieces, at in seams for window in _windows(pieces, at)]
    apart = [window for pieces, at in seams for window in _apart(pieces, at)]
    return max(_class_of(close, fragments, judged), _class_of(apart, fragments, judged, SHAPED))


def _class_of(
    windows: Sequence[Sequence[str]], fragments: Classifier, judged: JudgedTexts, kinds: Kinds = None
) -> DataClass:
    """Return the highest class of what crosses a seam in one of `windows`, of `kinds` only, if given."""
    keys = {
        (fragments.version, kinds is None, *map(len, window), digest_text("".join(window))): window
        for window in windows
    }
    classes = {key: judged.recall(key) for key in keys}
    new = [key for key, known in classes.items() if known is None]
    for key, found in zip(new, _classes_of([keys[key] for key in new], fragments, kinds), strict=True):
        judged.keep(key, found)
        classes[key] = found
    return max(filter(None, classes.values()), default=DataClass.C0)


def _classes_of(windows: Sequence[Sequence[str]], fragments: Classifier, kinds: Kinds) -> list[DataClass]:
    """Return for each of `windows` the class of what crosses a seam in it; all are looked at together."""
    classes = [DataClass.C0 for _ in windows]
    starts, seams, size = [], [], 0
    for window in windows:
        starts.append(size)
        seams += [size + length for length in accumulate(map(len, window[:-1]))]
        size += sum(map(len, window)) + len(_APART)
    for span in ask_classifier(fragments, _APART.join(map("".join, windows))).spans if windows else ():
        first, last = (bisect_right(starts, place) - 1 for place in (span.start, span.end))
        if first < last:  # it runs on over several: each is looked at by itself
            return [each for window in windows for each in _classes_of([window], fragments, kinds)]
        if (kinds is None or span.kind in kinds) and _crosses(seams, span.start, span.end):
            classes[first] = max(classes[first], span.data_class)
    return classes


def _windows(pieces: Sequence[str], at: int) -> Iterator[Sequence[str]]:
    """Yield the end of piece `at` with the beginning of the next, and with those of all within reach.

    Each begins where a text does, so that a word before it cannot hide what begins there; the shorter also
    ends where one does. It takes few pieces, so that many small ones do not make it many times what they are.
    """
    end = ending(pieces[at])
    yield end, beginning(pieces[at + 1])
    window, left = [end], REACH
    for piece in pieces[at + 1 : at + PIECES]:
        window.append(piece[:left])
        left -= len(window[-1])
        if left <= 0:
            break
    if len(window) > _PAIR:
        yield window


def _apart(pieces: Sequence[str], at: int) -> Iterator[Sequence[str]]:
    """Yield the end of piece `at` with the beginning of each that is near, but for the next."""
    end = ending(pieces[at])
    for piece in pieces[at + _PAIR : at + NEAR + 1]:
        yield end, beginning(piece)


def ending(text: str) -> str:
    """Return what is looked at of `text` before a seam: with the whole of its last word, if that ends."""
    far = text[-FARTHEST:]
    return text[-max(REACH, len(far) - len(far.rstrip(_IN_WORDS))) :]


def beginning(text: str) -> str:
    """Return what is looked at of `text` behind a seam: with the whole of its first word, if that ends."""
    far = text[:FARTHEST]
    return text[: max(REACH, len(far) - len(far.lstrip(_IN_WORDS)))]


def _crosses(seams: Sequence[int], start: int, end: int) -> bool:
    """Say whether a seam lies strictly between `start` and `end`."""
    index = bisect_right(seams, start)
    return index < len(seams) and seams[index] < end
