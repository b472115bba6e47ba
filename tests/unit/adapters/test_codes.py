# SPDX-License-Identifier: Apache-2.0
"""Codes on a screen: each one that is shown is said in plain words, and no other."""

from rich.text import Text

from runner.adapters.cli.codes import CLASSES, class_words, legend
from runner.kernel.labels import DataClass


def test_a_legend_has_the_codes_that_are_shown_each_once_and_no_other() -> None:
    cells = ["remote C3 1", Text("C1"), "C1 2; L2 C1 1", 7, "C12 AC1 c0"]
    assert legend(cells) == (
        "C1: internal; C3: privileged; L2: in this process, or launched without a way out"
    )
    assert legend(["149/276 ms (median/p95 of 2)"]) == (
        "median: half took no longer; p95: 95 in 100 took no longer"
    )
    assert legend(["nothing", ""]) == ""


def test_every_class_has_a_word_and_keeps_its_code() -> None:
    for each in DataClass:
        assert CLASSES[each].startswith(f"{each.name}, ")
        assert class_words(each) == f"{each.name} ({CLASSES[each].partition(', ')[2]})"
