# SPDX-License-Identifier: Apache-2.0
"""What the user named: whether a value stands in the text that the user typed, whole and as it is.

Owns one total predicate, `is_named`. A value is compared by its exact characters: what looks the same, or is
the same to some system only, is another value. It must stand by itself, not inside a longer word, number,
path or address. Days may be written as people write them. Leaves the addresses in a text to `links.py`, and
what follows from a name to `flow.py`. Carries I1: in doubt nothing was named.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import Final

from runner.kernel.messages import Json
from runner.kernel.shown import is_seen
from runner.kernel.web import Url

_GLUE: Final = frozenset("._@-/\\:+%~#?&=$*")
"""Signs that join letters and digits to one word: a name, a path, an address, a number with its unit."""
_HARD: Final = frozenset("/\\@%")
"""Signs that belong to what they touch, whatever stands on their other side."""
_APART: Final = {
    True: frozenset('([<>"\u00ab\u00bb\u201c\u201d\u201e'),
    False: frozenset(')]<>"\u00ab\u00bb\u201c\u201d\u201e'),
}
"""Signs that set apart what follows them (True), and what they follow: any other between two words joins."""
_AROUND: Final = 64
"""Characters looked at on each side of a value: signs all the way join."""
_FIGURE: Final = re.compile(r"\+?[0-9][0-9.,'\u2019+]*+(?![\w/:-])")
"""A number, read from either end; not a day or a time. Two of them with a space between are one."""
_POSSESSIVE: Final = re.compile(r"(?<=\w)['\u2019]s\b")
_QUOTES: Final = frozenset("\"'`\u00ab\u00bb\u2018\u2019\u201c\u201d")
_LEAST: Final = 2
"""Characters of the shortest text that can be named."""
_LONGEST: Final = 40
"""Characters of the longest numeral that is read."""
_NUMERAL: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_ISO: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T]([0-9]{2}):([0-9]{2})(?::00)?)?")
_ALONE: Final = r"(?!\w|[:.,/-]\w)"
_CLOCK: Final = re.compile(
    rf"(?<![\w:.,/-])([0-9]{{1,2}}):([0-9]{{2}})(?: ?(am|pm))?{_ALONE}"
    rf"|(?<![\w:.,/-])([0-9]{{1,2}}) ?(am|pm){_ALONE}"
    rf"|\b(?:ore|alle) +([0-9]{{1,2}}){_ALONE}",
    re.IGNORECASE,
)
_NOON: Final = 12
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan gennaio gen",
            "february feb febbraio",
            "march mar marzo",
            "april apr aprile",
            "may maggio mag",
            "june jun giugno giu",
            "july jul luglio lug",
            "august aug agosto ago",
            "september sept sep settembre set",
            "october oct ottobre ott",
            "november nov novembre",
            "december dec dicembre dic",
        ),
        start=1,
    )
    for name in names.split()
}
_MONTH: Final = "(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_YEAR: Final = r"(?:,? *(?:of |del )?\b([0-9]{4})\b)?"
_DAY: Final = r"\b([0-9]{1,2})(?:st|nd|rd|th|\u00ba|\u00b0)?"
_DAY_MONTH: Final = re.compile(rf"{_DAY} +(?:of +|di +)?{_MONTH}{_YEAR}", re.IGNORECASE)
_MONTH_DAY: Final = re.compile(rf"\b{_MONTH} +(?:the +)?{_DAY}\b{_YEAR}", re.IGNORECASE)
_NUMERIC: Final = re.compile(r"\b([0-9]{1,2})[/.]([0-9]{1,2})[/.]([0-9]{4})\b")
_FULL_YEAR: Final = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})(?![0-9])")
_MONTHS_IN_YEAR: Final = 12


def is_named(value: Json, said: str) -> bool:
    """Return whether `value`, a leaf of JSON, stands in `said`. Total.

    A truth value, nothing, and a text of one character are never named. A day is named by its date in any
    common form; a time of day on it is midnight, or named too. A number is named where its numeral can be
    read in one way only.
    """
    match value:
        case bool() | None:
            return False
        case int() | float():
            return any(number == value for number in _numbers(said))
        case str():
            return _stands_in(value, said) or _is_named_day(value, said)
        case _:
            return False


def forget_named() -> None:
    """Forget every text that was read here: what a user said lives no longer than the task (I12)."""
    for kept in (_spaced, _numbers, _times, _days):
        kept.cache_clear()


def spelling_of(url: Url, said: str) -> str | None:
    """Return how `said` names the page at `url`; None if it does not."""
    return next((spelling for spelling in url.spellings if is_named(spelling, said)), None)


@lru_cache(maxsize=256)
def _spaced(said: str) -> str:
    """Return `said` composed (NFC), with one space for each run of white space."""
    return " ".join(unicodedata.normalize("NFC", said).split())


def _stands_in(value: str, said: str) -> bool:
    """Return whether the very characters of `value` stand in `said` by themselves."""
    if len(value) < _LEAST or value != _spaced(value) or not all(map(is_seen, value)):
        return False
    if value[0] in _QUOTES or value[-1] in _QUOTES:
        return False
    text, start = _spaced(said), 0
    while (start := text.find(value, start)) >= 0:
        if _is_whole(text, start, start + len(value)):
            return True
        start += len(value)
    return False


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether `start` to `end` of `text`, which is spaced, is no piece of a longer word or number."""
    inside = text[start : min(end, start + _AROUND)], text[max(start, end - _AROUND) : end][::-1]
    before = text[max(0, start - _AROUND) : start][::-1]
    owned = _POSSESSIVE.match(text, end)
    end = owned.end() if owned else end
    return _ends(before, inside[0], before=True) and _ends(text[end : end + _AROUND], inside[1], before=False)


def _ends(beside: str, inside: str, *, before: bool) -> bool:
    """Return whether a value, read `inside` from this end of it, ends where the text `beside` begins."""
    if not beside:
        return True
    first, edge = beside[0], inside[0]
    if _joins(first) or first in _HARD:
        return not _joins(edge) and not (first in _HARD or edge in _GLUE)
    if first == " ":
        return not (_FIGURE.match(inside) and _FIGURE.match(beside, 1))
    signs = "".join(
        takewhile(lambda char: char not in _APART[before] and char != " " and not _joins(char), beside)
    )
    if len(signs) == _AROUND or (first in _GLUE and signs[1:2] and signs[1] in _GLUE):
        return False
    return not signs or not _joins(beside[len(signs) : len(signs) + 1])


def _joins(char: str) -> bool:
    """Return whether `char` is part of a word whatever stands beside it: marks and what is unseen, too."""
    return bool(char) and (char.isalnum() or unicodedata.category(char)[0] == "M" or not is_seen(char))


@lru_cache(maxsize=256)
def _numbers(said: str) -> frozenset[float]:
    """Return the numbers that stand by themselves in `said`, each read in the only way there is."""
    text = _spaced(said)
    found = (_number(match.group()) for match in _NUMERAL.finditer(text) if _is_whole(text, *match.span()))
    return frozenset(number for number in found if number is not None)


def _number(numeral: str) -> float | None:
    """Return the value of `numeral`; None where a sign in it may group thousands or begin decimals."""
    if len(numeral) > _LONGEST:
        return None
    signs = [char for char in numeral if char in ".,"]
    whole, *groups = re.split(r"[.,]", numeral)
    thousands = all(len(group) == 3 for group in groups)  # noqa: PLR2004 - a thousand has three noughts
    if not signs:
        return int(whole)
    if len(signs) == 1:
        return None if thousands and whole != "0" else float(f"{whole}.{groups[0]}")
    if len(set(signs)) == 1:
        return int(whole + "".join(groups)) if thousands else None
    grouped = all(len(group) == 3 for group in groups[:-1]) and len(set(signs[:-1])) == 1  # noqa: PLR2004
    return float(f"{whole}{''.join(groups[:-1])}.{groups[-1]}") if grouped else None


def _is_named_day(value: str, said: str) -> bool:
    """Return whether `value` is a day in ISO 8601, or a time of one, and `said` names that day."""
    match = _ISO.fullmatch(value)
    if match is None or not value.isascii():
        return False
    year, month, day, hour, minute = (int(group or 0) for group in match.groups())
    years, days = _days(said)
    return (hour, minute) in _times(said) and any(
        (month, day) == (each_month, each_day)
        and (year == each_year if each_year is not None else not years or year in years)
        for each_year, each_month, each_day in days
    )


@lru_cache(maxsize=256)
def _times(said: str) -> frozenset[tuple[int, int]]:
    """Return the times of day in `said`, as hour and minute, with midnight: a day's own beginning."""
    found = {(0, 0)}
    for match in _CLOCK.finditer(_spaced(said)):
        hour, minute, half, short, short_half, italian = match.groups()
        half = (half or short_half or "").lower()
        number = int(hour or short or italian)
        number = number % _NOON + (_NOON if half == "pm" else 0) if half else number
        found.add((number, int(minute or 0)))
    return frozenset(found)


@lru_cache(maxsize=256)
def _days(said: str) -> tuple[frozenset[int], frozenset[tuple[int | None, int, int]]]:
    """Return the years that stand in `said`, and its days as (year, month, day): without a year, None."""
    text = _spaced(said)
    return frozenset(map(int, _FULL_YEAR.findall(text))), frozenset(_each_day(text))


def _each_day(text: str) -> Iterator[tuple[int | None, int, int]]:
    for year, month, day, *_ in _ISO.findall(text):
        yield int(year), int(month), int(day)
    for day, month, year in _DAY_MONTH.findall(text):
        yield int(year) if year else None, _MONTHS[month.lower()], int(day)
    for month, day, year in _MONTH_DAY.findall(text):
        yield int(year) if year else None, _MONTHS[month.lower()], int(day)
    for first, second, year in _NUMERIC.findall(text):
        if int(first) > _MONTHS_IN_YEAR or first == second:  # else one reader in two takes it for another day
            yield int(year), int(second), int(first)
