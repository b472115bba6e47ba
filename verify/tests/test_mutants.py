# SPDX-License-Identifier: Apache-2.0
"""A sample of the mutation battery: no altered book is accepted, whatever was done to it (I4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import battery
import pytest

if TYPE_CHECKING:
    from pathlib import Path

PARTS, EACH = 8, 2_500
"""20,000 mutants, in parts that workers can share; `make test-mutants` judges a million."""


pytestmark = pytest.mark.skipif(
    not battery.GOLDEN.is_dir(), reason="the golden books are not beside this checkout"
)


def test_each_real_book_passes_as_it_is(tmp_path: Path) -> None:
    verdicts = {
        name: battery.Folder(tmp_path / name, pin).verify(book.files)["verdict"]
        for name, (book, pin) in battery.real_books().items()
    }
    assert verdicts == dict.fromkeys(battery.BOOKS, "PASS")


@pytest.mark.parametrize("part", range(PARTS))
def test_no_altered_book_is_accepted(part: int, tmp_path: Path) -> None:
    """I4: every alteration is refused, none brings the verifier down, and single edits are placed."""
    *_, tally = battery.run(EACH, 0, part * EACH, None, tmp_path)
    assert tally.mutants.total() == EACH
    assert (tally.accepted, tally.faults) == ([], [])
    assert tally.placed >= 0.99 * tally.places
