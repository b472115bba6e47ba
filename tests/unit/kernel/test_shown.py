# SPDX-License-Identifier: Apache-2.0
"""I1: what is shown as it is can be seen; everything else is shown as its number."""

import sys
import unicodedata

import pytest
from rich.cells import cell_len

from runner.kernel.shown import cells_of, is_seen, number_of

UNSEEN = (
    "\ufe00", "\ufe0f", "\U000e0100", "\U000e01ef", "\U000e0041", "\u034f", "\u3164", "\u115f", "\u1160",
    "\u2800", "\uffa0", "\u180b", "\u17b4", "\u200b", "\u2066", "\x1b", "\ud800", "\u00ad",
)  # fmt: skip


@pytest.mark.parametrize("char", UNSEEN, ids=ascii)
def test_i1_what_shows_nothing_is_no_seen_character(char: str) -> None:
    assert not is_seen(char)
    assert number_of(char).encode().decode("unicode_escape") == char


def test_ordinary_characters_are_seen() -> None:
    assert all(map(is_seen, "aZ9 .àéñß€“”中文한글カ🙂"))


def test_i1_no_seen_character_takes_more_cells_than_we_count() -> None:
    seen = (chr(code) for code in range(sys.maxunicode + 1))
    wrong = [char for char in seen if is_seen(char) and cell_len(char) > cells_of(char)]
    assert [f"U+{ord(char):04X} {unicodedata.name(char, '')}" for char in wrong] == []
