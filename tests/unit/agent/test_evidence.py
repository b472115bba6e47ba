# SPDX-License-Identifier: Apache-2.0
"""A quote counts only if it stands in what was read."""

from hypothesis import given
from hypothesis import strategies as st

from runner.agent.evidence import find_quote
from runner.agent.progress import ProgressGuard
from runner.kernel.ports import Excerpt

texts = st.text(max_size=40)


def excerpts(lines: list[str]) -> list[Excerpt]:
    return [Excerpt(file="f", line=number, text=line) for number, line in enumerate(lines, 1)]


@given(lines=st.lists(texts, max_size=6), quote=texts)
def test_found_exactly_when_some_line_holds_it(lines: list[str], quote: str) -> None:
    found = find_quote(quote, excerpts(lines))
    holders = [number for number, line in enumerate(lines, 1) if quote.strip() and quote in line]
    assert (found.line if found else None) == (holders[0] if holders else None)


def test_a_blank_quote_stands_nowhere() -> None:
    assert find_quote("  ", excerpts(["  "])) is None


def test_one_letter_off_is_not_a_quote() -> None:
    assert find_quote("The fee is nine crowns", excerpts(["The fee is nine Crowns"])) is None


def test_the_guard_knows_a_call_by_its_arguments_not_their_order() -> None:
    guard = ProgressGuard()
    assert guard.is_new("t", {"a": 1, "b": 2})
    assert not guard.is_new("t", {"b": 2, "a": 1})
    assert guard.is_new("t", {"a": 1, "b": 3})
