# SPDX-License-Identifier: Apache-2.0
"""Telephone numbers: which of those that have the shape of one are in some country's numbering plan.

Owns the judgement of a candidate by the plans that `phonenumbers` publishes, and is the only place where
that package is imported. Leaves shapes and context to `contacts`. Carries I6, and its price: a number out
of an invoice is in nobody's plan more often than not.

Only the plans are taken: their patterns run on RE2, some 2 microseconds a number, where the package's own
parser takes fifty. So no cap on the number of candidates is needed, and none can be used to hide one.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE
from phonenumbers.phonemetadata import PhoneMetadata

from runner.perimeter.classify.pattern import Pattern, compile_pattern

_ITALY: Final = 39
_NATIONAL: Final = (_ITALY, 44)
"""Countries whose numbers are known without a prefix: Italy, and Britain for English letters."""
_LONGEST_CODE: Final = 3
_E164: Final = 15
_POSSIBLE: Final = range(10, _E164 + 1)
_SHORTEST: Final = 7
"""Digits of the shortest number that is looked for."""
_KINDS: Final = (
    "fixed_line",
    "mobile",
    "toll_free",
    "premium_rate",
    "shared_cost",
    "personal_number",
    "voip",
    "pager",
    "uan",
    "voicemail",
)


def italian(candidate: str) -> int:
    """Accept the leading part of `+39 ...` or `0039 ...` that is an Italian number."""
    return _leading(candidate, lambda digits: _in_plan(_ITALY, digits.lstrip("0").removeprefix("39")))


def national(candidate: str) -> int:
    """Accept the leading part that is an Italian or British number as dialled there; no date, no time."""
    if ("." in candidate and "-" in candidate) or _is_date(candidate):
        return 0  # "09.30-12.30" is an opening time
    return _leading(candidate, lambda digits: any(_in_plan(code, digits) for code in _NATIONAL))


def mobile(candidate: str) -> int:
    """Accept an Italian mobile number. One dot among other separators is a decimal point: `399.21 74.21`."""
    if "." in candidate and not candidate.replace(".", "").isdigit():
        return 0
    return len(candidate) if _in_plan(_ITALY, _digits(candidate)) else 0


def international(candidate: str) -> int:
    """Accept the leading part of `+` and digits that is a number in the plan of the country it names.

    Behind `00` only a word that speaks of a telephone makes it one: amounts end in zeros. So it is with a
    number that is written as a signed coordinate is, `+49.410947`.
    """
    end = _leading(candidate, in_international_plan) if candidate.startswith("+") else 0
    return 0 if _COORDINATE.fullmatch(candidate, 0, end) else end


def possible(candidate: str) -> int:
    """Accept a number of a plan, or else ten to fifteen digits (E.164 allows at most fifteen)."""
    planned = _leading(candidate, lambda digits: in_international_plan(digits.removeprefix("00")))
    return planned or len(candidate) * (len(_digits(candidate).removeprefix("00")) in _POSSIBLE)


def in_international_plan(digits: str) -> bool:
    """Say whether `digits`, a country code and the rest, are a number of that country's plan.

    The prefix that a country dials inside is forgiven behind its code: `+44 (0)20 7946 0000`.
    """
    if not digits.isascii() or not digits.isdigit() or len(digits) > _E164 + 1:
        return False
    sizes = range(1, _LONGEST_CODE + 1)
    code = next(
        (int(digits[:size]) for size in sizes if int(digits[:size]) in COUNTRY_CODE_TO_REGION_CODE), 0
    )
    return code > 0 and _in_plan(code, digits[len(str(code)) :])


def _in_plan(code: int, digits: str) -> bool:
    """Say whether `digits` are a number of one of the plans under `code`; most are in none of them."""
    plans, any_plan = _plans(code)
    if any_plan is not None and not any_plan.search(digits.encode("ascii")):
        return False
    return any(plan.holds(digits) for plan in plans)


def _leading(candidate: str, holds: Callable[[str], bool]) -> int:
    """Return the length of the longest part of `candidate`, cut at a separator, that `holds` accepts."""
    end = len(candidate)
    while end > 0 and len(digits := _digits(candidate[:end])) >= _SHORTEST:
        if holds(digits):
            return end
        kept = candidate[:end].rstrip("0123456789")
        end = len(kept.rstrip(" ./()-\r\n\t"))
    return 0


_COORDINATE: Final = re.compile(r"\+[0-9]{1,3}\.[0-9]{1,7}(?: [0-9]{1,3}| -[0-9]{1,3}(?:\.[0-9]{1,7})?)?")
"""A decimal number of degrees, and the beginning of another. National numbers of seven digits or less, with a
full stop before them, are rare."""
_DATE: Final = re.compile(r"\D*(\d\d)\D+(\d\d?)\D+(\d{4})\D*")
_SIGNS: Final = {code: None for code in range(0x80) if not chr(code).isdigit()}


def _digits(candidate: str) -> str:
    return candidate.translate(_SIGNS)


def _is_date(candidate: str) -> bool:
    """Say whether `candidate` reads as day, month and a year of this century or the last."""
    parts = _DATE.fullmatch(candidate)
    if parts is None:
        return False
    day, month, year = map(int, parts.groups())
    return 1 <= day <= 31 and 1 <= month <= 12 and 1900 <= year < 2100  # noqa: PLR2004 - the calendar


class _Plan:
    """The numbering plan of one region."""

    __slots__ = ("_general", "_kinds", "_prefix", "any_kind")

    def __init__(self, region: PhoneMetadata) -> None:
        kinds = (getattr(region, kind) for kind in _KINDS)
        patterns = [kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern]
        general = region.general_desc.national_number_pattern if region.general_desc else None
        self._general = _whole([general] if general else patterns)
        self._kinds = _whole(patterns)
        self._prefix = region.national_prefix or ""
        self.any_kind = f"(?:{re.escape(self._prefix)})?(?:{'|'.join(patterns)})"
        """The shape of a number of any kind, the prefix dialled inside before it or not."""

    def holds(self, digits: str) -> bool:
        """Say whether `digits` are a number of this plan, with or without the prefix dialled inside."""
        if self._matches(digits):
            return True
        return (
            bool(self._prefix)
            and digits.startswith(self._prefix)
            and self._matches(digits.removeprefix(self._prefix))
        )

    def _matches(self, digits: str) -> bool:
        data = digits.encode("ascii")
        return bool(self._kinds.search(data) and self._general.search(data))


def _whole(patterns: list[str]) -> Pattern:
    return compile_pattern(rf"^(?:{'|'.join(patterns)})$")


@lru_cache(maxsize=256)
def _plans(code: int) -> tuple[tuple[_Plan, ...], Pattern | None]:
    """Return the plans under `code`, a known country code, and where there are several the shape of all."""
    regions = [
        PhoneMetadata.metadata_for_nongeo_region(code)
        if region == "001"
        else PhoneMetadata.metadata_for_region(region)
        for region in COUNTRY_CODE_TO_REGION_CODE[code]
    ]
    plans = tuple(_Plan(region) for region in regions if region is not None)
    return plans, _whole([plan.any_kind for plan in plans]) if len(plans) > 1 else None
