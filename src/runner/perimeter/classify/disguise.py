# SPDX-License-Identifier: Apache-2.0
"""Words of two alphabets: Latin letters with Cyrillic ones among them that are drawn like Latin letters.

Owns finding the first of them. The other readings already see through each letter; this says that somebody
wrote so at all, which no language does (the mixed-script rule of Unicode TS 39, section 5.2, for the one pair
of alphabets where it has no innocent use: Greek letters beside Latin ones are common, as in "TNFα").
Leaves what that is worth to the rules. Carries I6.
"""

import re
from collections.abc import Iterator
from typing import Final

from runner.perimeter.classify.model import View
from runner.perimeter.classify.views import Piece, Reading

DISGUISED: Final = b"\x02letters of two alphabets\x03"
"""Stands for such a word: the rule `mixed-alphabets` finds it."""

_TWINS: Final = frozenset("АВЕЅІЈКМНОРСТУХҮаеоѕіјрсухһԁӏ")
_TWIN: Final = f"[{''.join(sorted(_TWINS))}]"
_MIXED: Final = re.compile(f"[A-Za-z]{_TWIN}|{_TWIN}[A-Za-z]")


def disguised(text: str, strange: frozenset[str]) -> Iterator[Reading]:
    """Yield the mark of the first word of `text` that mixes the two alphabets, if there is one.

    `strange` is `strange_in(text)`.
    """
    found = None if _TWINS.isdisjoint(strange) else _MIXED.search(text)
    if found is not None:
        word = Piece(at=0, start=found.start(), end=found.end(), step=0)
        yield Reading(view=View.DECODED, data=DISGUISED, pieces=(word,))
