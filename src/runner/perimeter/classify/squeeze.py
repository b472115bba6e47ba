# SPDX-License-Identifier: Apache-2.0
"""Words written apart: `R o s s i`, `AKIA-IOSF-...`, and a word broken at the end of a line.

Owns finding such runs and closing them up. Leaves judging to the engine, which asks for corroboration.
Carries I6 and its price: digits of neighbouring numbers are never run together, since check digits match
them by chance; only single characters with one separator between each, and chunks without a space.
"""

from collections.abc import Iterator
from typing import Final

from runner.perimeter.classify import pattern as patterns
from runner.perimeter.classify.model import View
from runner.perimeter.classify.views import Draft, Reading

_SINGLES: Final = r"[0-9A-Za-z](?:[ .\-_*|~/][0-9A-Za-z]){5,}(?: {2,4}[0-9A-Za-z](?:[ .\-_*|~/][0-9A-Za-z])+)*"
_CHUNKS: Final = r"[0-9A-Za-z]{2,24}(?:[.\-_*|~][0-9A-Za-z]{2,24})+"
_BROKEN: Final = r"[A-Za-z]{2,24}-\r?\n[ \t]{0,8}[a-z]{2,24}"
SPACED: Final = rf"(?:^|[^0-9A-Za-z])(?:{_SINGLES})(?:$|[^0-9A-Za-z])|{_CHUNKS}|{_BROKEN}"

_SPACED: Final = patterns.compile_pattern(rf"(?:^|[^0-9A-Za-z])({_SINGLES})(?:$|[^0-9A-Za-z])")
_CHUNKED: Final = patterns.compile_pattern(rf"({_CHUNKS}|{_BROKEN})")
_SHORTEST_CHUNKED: Final = 16
"""Characters of the shortest thing that is looked for in chunks: a codice fiscale."""
_MARGIN: Final = 120
"""Characters kept on either side of a run, for the words that corroborate it."""


def squeeze(reading: Reading) -> Iterator[Reading]:
    """Yield one reading of the runs of `reading` closed up, each with what stands around it, if there are any."""
    runs = sorted(_runs(reading.data))
    if not runs:
        return
    source = reading.data.decode("ascii")
    draft, position = Draft(source), 0
    for start, end in runs:
        if start < position:
            continue
        _between(draft, position, start)
        draft.instead(_closed(source[start:end]), start, end)
        position = end
    draft.literal(position, min(len(source), position + _MARGIN))
    yield draft.reading(View.SQUEEZED, reading, only_disguised=True)


def _between(draft: Draft, position: int, start: int) -> None:
    """Take what lies between two runs, or only the margins of it."""
    if start - position <= 2 * _MARGIN:
        draft.literal(position, start)
        return
    if position:
        draft.literal(position, position + _MARGIN)
        draft.instead("\n\n", position + _MARGIN, start - _MARGIN)
    draft.literal(start - _MARGIN, start)


def _runs(data: bytes) -> Iterator[tuple[int, int]]:
    for match in _SPACED.finditer(data):
        yield match.span(1)
    for match in _CHUNKED.finditer(data):
        start, end = match.span()
        run = data[start:end]
        mixed = not run.isdigit() and any(byte in b"0123456789" for byte in run) and end - start > _SHORTEST_CHUNKED
        if mixed or b"\n" in run:
            yield start, end


def _closed(run: str) -> str:
    """Return `run` without its separators; two or more spaces end a word."""
    words = run.replace("\n", "").split("  ") if "-" not in run or "\n" not in run else ["".join(run.split())]
    return " ".join("".join(filter(str.isalnum, word)) for word in words)
