# SPDX-License-Identifier: Apache-2.0
"""Words written apart: `R o s s i`, `AKIA-IOSF-...`, and a word broken at the end of a line.

Owns finding such runs and closing them up. Leaves judging to the engine, which asks for corroboration.
Carries I6 and its price: digits of neighbouring numbers are never run together, since check digits match
them by chance; only single characters with one separator between each, and chunks without a space.
"""

import re
from collections.abc import Iterator
from typing import Final

from runner.perimeter.classify import pattern as patterns
from runner.perimeter.classify.model import View
from runner.perimeter.classify.views import Draft, Reading

_ONE: Final = "[0-9A-Za-z]"
_EDGE: Final = "(?:^|[^0-9A-Za-z])"
_END: Final = "(?:$|[^0-9A-Za-z])"
_SINGLES: Final = tuple(
    rf"{_EDGE}({_ONE}(?:{sign}{_ONE}){{2,}}(?:(?: {{2,4}}|{sign} ){_ONE}(?:{sign}{_ONE}){{2,}})+"
    rf"|{_ONE}(?:{sign}{_ONE}){{5,}}){_END}"
    for sign in (r" ", r"\.", r"\-", r"_", r"\*", r"\|", r"~", r"/")
)
"""Single characters with one and the same sign between each; a wider gap ends a word. One pattern a sign, so
that a run with one sign cannot swallow the beginning of a run with another."""
_SPELLED: Final = tuple(
    rf"{_EDGE}([!-~](?:{sign}(?:{sign}{sign}| {sign})?[!-~]){{11,}}){_END}" for sign in (r" ", r"\.", r"\-")
)
"""Twelve or more characters of any kind with one sign between each, as a key or a name is spelled out. In the
place of a space stands a space between two signs, or the sign: three signs in a row. What follows is no
part of it: else the last word takes a letter of the next."""
_CHUNKS: Final = r"[0-9A-Za-z]{2,24}(?:[.\-_*|~][0-9A-Za-z]{2,24})+|[A-Za-z]{2,24}-\r?\n[ \t]{0,8}[a-z]{2,24}"
_SHORTEST_CHUNKED: Final = 17
"""Characters of the shortest thing that is looked for in chunks: a codice fiscale, and a sign in it."""
SPACED: Final = (*_SINGLES, *_SPELLED, rf"[0-9A-Za-z.\-_*|~]{{{_SHORTEST_CHUNKED}}}|[A-Za-z]{{2}}-\r?\n")
"""The ways of writing apart that are closed up: patterns that hold wherever there is such a run."""

_PATTERNS: Final = tuple(map(patterns.compile_pattern, (*_SINGLES, *_SPELLED, _CHUNKS)))
_LAST: Final = len(_PATTERNS) - 1
_SIGN: Final = re.compile(r"(?<=[0-9A-Za-z])[.\-](?=[0-9A-Za-z])")
_AS_SPACES: Final = {code: " " for code in range(0x80) if not chr(code).isalnum()}
_MARGIN: Final = 120
"""Characters kept on either side of a run, for the words that corroborate it."""


def squeeze(reading: Reading, way: int) -> Iterator[Reading]:
    """Yield `reading` with what was written apart closed up, if there is any.

    `way` is the index of one of `SPACED`. Only the runs are kept, each with what stands around it.
    """
    runs = [match[-1] for match in reading.new_matches(_PATTERNS[way])]
    if way == _LAST:
        runs = [run for run in runs if _is_worth_it(reading.data[slice(*run)])]
    if not runs:
        return
    closed = _unspelled if len(_SINGLES) <= way < _LAST else _closed
    source = reading.data.decode("ascii")
    draft, position = Draft(source), 0
    for start, end in runs:
        _between(draft, position, start)
        draft.instead(closed(source[start:end]), start, end)
        position = end
    draft.literal(position, min(len(source), position + _MARGIN))
    yield draft.reading(View.SQUEEZED, reading, only_disguised=True)


def _is_worth_it(run: bytes) -> bool:
    """Say whether chunks may be something: long, with a digit; or a word broken by a line end."""
    return b"\n" in run or (
        len(run) >= _SHORTEST_CHUNKED and len(run.translate(None, b"0123456789")) < len(run)
    )


def _between(draft: Draft, position: int, start: int) -> None:
    """Take what lies between two runs, or only the margins of it."""
    if start - position <= 2 * _MARGIN:
        draft.literal(position, start)
        return
    if position:
        draft.literal(position, position + _MARGIN)
        draft.gap(position + _MARGIN)
    draft.literal(start - _MARGIN, start)


def _closed(run: str) -> str:
    """Return `run` without its separators; where two stand together a word ends."""
    if "\n" in run:
        return "".join(filter(str.isalnum, run))
    spaced = run.translate(_AS_SPACES)
    return " ".join(word.replace(" ", "") for word in spaced.split("  ") if word)


def _unspelled(run: str) -> str:
    """Return every other character of `run`: what stood between the signs.

    Then its beginning without the first, which may be a word of one letter before it; and all of it with
    spaces for signs that stand between letters.
    """
    text = run[::2]
    return f"{text} {text[1:_MARGIN]} {_SIGN.sub(' ', text)}"
