# SPDX-License-Identifier: Apache-2.0
"""An answer counts only if its words stand in a line that was read, and the quote is that line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.agent.answerer import _page
from runner.agent.evidence import find_evidence
from runner.agent.progress import ProgressGuard
from runner.kernel.ports import Excerpt

texts = st.text(max_size=40)

PAGE = (
    "The hearing of 12 March 2026 is adjourned.",
    "The parties will appear on 9 April 2026 at 10:30, room 7.",
    "The judge is Ornella Pastine.",
    "The fee is euro 1.500,00, half of it due by 9 April 2026.",
)


def excerpts(lines: list[str], file: str = "f") -> list[Excerpt]:
    return [Excerpt(file=file, line=number, text=line) for number, line in enumerate(lines, 1)]


@pytest.mark.parametrize(
    ("answer", "question", "line"),
    [
        ("9 April 2026", "When will the parties appear?", 2),
        ("2026-04-09", "When will the parties appear?", 2),
        ("9 aprile 2026", "When is half of the fee due?", 4),
        ("Pastine", "Who is the judge?", 3),
        ("1,500", "How much is the fee?", 4),
        ("€ 1500.00", "How much is the fee?", 4),
        ("seven", "Which room?", 2),
        ("30 June 2026", "When will the parties appear?", None),
        ("euro 2.500,00", "How much is the fee?", None),
        ("Mario Rossi", "Who is the judge?", None),
        ("the of and", "Who is the judge?", None),
        ("The parties will appear at 10:30 in room 8 on 9 April 2026", "Which room?", None),
        ("Pastine, Mario Rossi Bianchi Verdi", "Who is the judge?", None),
        ("", "Who is the judge?", None),
    ],
)
def test_the_line_that_bears_an_answer_out_is_found(answer: str, question: str, line: int | None) -> None:
    found = find_evidence(answer, question, excerpts(list(PAGE)))
    assert (found.line if found else None) == line
    assert found is None or found.quote == PAGE[found.line - 1]


@given(answer=texts, question=texts, lines=st.lists(texts, max_size=6))
def test_total_and_a_quote_is_always_a_line_that_was_read(
    answer: str, question: str, lines: list[str]
) -> None:
    found = find_evidence(answer, question, excerpts(lines))
    if found is not None:
        assert found.quote == lines[found.line - 1].strip()


def test_a_neighbouring_file_does_not_lend_its_words() -> None:
    lines = [
        *excerpts(["The rent of the shop", "is euro 900."], "a"),
        *excerpts(["The rent of the flat", "is euro 900."], "b"),
    ]
    found = find_evidence("euro 900", "What is the rent of the flat?", lines)
    assert found is not None
    assert (found.file, found.line) == ("b", 2)


def test_the_guard_knows_a_call_by_its_arguments_not_their_order() -> None:
    guard = ProgressGuard()
    assert guard.is_new("t", {"a": 1, "b": 2})
    assert not guard.is_new("t", {"b": 2, "a": 1})
    assert guard.is_new("t", {"a": 1, "b": 3})


@pytest.mark.parametrize(
    ("answer", "line"),
    [("19 days", "uninsured for nineteen days"), ("diciannove giorni", "for 19 giorni"), ("ten", "10 boxes")],
)
def test_a_number_is_the_same_in_words_and_in_digits(answer: str, line: str) -> None:
    assert find_evidence(answer, "", excerpts([line])) is not None


def test_a_page_is_no_neighbour_of_the_next_and_is_named_in_the_evidence() -> None:
    """Words of the question that stand near, but on another page, say nothing about a line."""
    pages = [
        Excerpt(file="f", page=1, line=1, text="The hearing is on Monday."),
        Excerpt(file="f", page=2, line=1, text="The judge of appeal, of the second chamber:"),
        Excerpt(file="f", page=2, line=2, text="The hearing is on Monday."),
    ]
    found = find_evidence("Monday", "When does the judge of appeal, second chamber, sit?", pages)
    assert found is not None
    assert (found.page, found.line) == (2, 2)


def test_the_model_reads_the_pages_of_a_document_under_their_numbers() -> None:
    lines = [
        Excerpt(file="a.pdf", page=1, line=1, text="primo rigo"),
        Excerpt(file="a.pdf", page=2, line=1, text="secondo rigo"),
        Excerpt(file="a.txt", line=1, text="terzo rigo"),
    ]
    assert _page(lines).splitlines() == [
        "# a.pdf (page 1)", "primo rigo", "# a.pdf (page 2)", "secondo rigo", "# a.txt", "terzo rigo",
    ]  # fmt: skip
