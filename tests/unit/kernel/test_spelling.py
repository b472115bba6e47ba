# SPDX-License-Identifier: Apache-2.0
"""Which word was meant: one that is a known one but for a slip, and no other."""

import pytest

from runner.kernel.spelling import most_like

KNOWN = ("read_file", "read_document", "write_file", "shell")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("raed_file", "read_file"),
        ("readfile", "read_file"),
        ("read_filee", "read_file"),
        ("read-file", "read_file"),
        ("ead_file", "read_file"),
        ("read_flie", "read_file"),
        ("hsell", "shell"),
        ("read_file", "read_file"),
        ("send_file", None),
        ("raed_flie", None),
        ("file_read", None),
        ("", None),
        pytest.param("x" * 10_000, None, id="long"),
    ],
)
def test_one_slip_is_a_character_too_many_too_few_or_wrong_or_two_swapped(
    word: str, meant: str | None
) -> None:
    assert most_like(word, KNOWN, slips=1) == meant


def test_the_fewest_slips_count_and_none_of_nothing_is_meant() -> None:
    assert most_like("budgets", ("budges", "budget_x", "budgetss"), slips=2) == "budges"
    assert most_like("acb", ("abcd", "abc"), slips=1) == "abc"
    assert most_like("raed_flie", KNOWN, slips=2) == "read_file"
    assert most_like("x", (), slips=2) is None
