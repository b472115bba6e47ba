# SPDX-License-Identifier: Apache-2.0
"""I7, I12: whatever bytes a reader is given, the answer is a document or one of our reasons.

Without the sandbox, whose bounds are tested elsewhere: here it is the parsers that must raise nothing else.
`make test-documents` does the same with many thousand files inside it.
"""

import random

import pytest
from documents import mutated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from papers import good

from runner.capability.documents.kinds import family_of
from runner.capability.documents.parsing import child
from runner.capability.documents.parsing.draft import Unreadable
from runner.capability.documents.parsing.signed import content_of
from runner.capability.documents.reader import parse_answer
from runner.kernel.errors import ToolError

PAPERS = [paper.data for paper in good() if len(paper.data) < 20_000]
HEADS = (
    b"%PDF-1.7\n",
    b"PK\x03\x04",
    b"{\\rtf1 ",
    b"<html>",
    b"From: a\nMIME-Version: 1.0\n",
    b"\x30\x80",
    b"",
)


def answered(data: bytes) -> None:
    """Fail unless the answer for `data` is one that the other side believes."""
    try:
        document = parse_answer(child.answer_to(data))
    except ToolError:
        return
    except ValueError:
        assert family_of(data) in ("text", "xml"), "only what is no document has a kind of its own"
        return
    assert all("\n" not in line and "\r" not in line for page in document.pages for line in page.lines)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(HEADS), st.binary(max_size=400))
def test_i7_any_bytes_are_answered_for(head: bytes, data: bytes) -> None:
    answered(head + data)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, len(PAPERS) - 1), st.integers(0, 2**32))
def test_i7_any_changed_document_is_answered_for(paper: int, seed: int) -> None:
    answered(mutated(PAPERS[paper], random.Random(seed)))  # noqa: S311


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_i7_a_signed_message_is_taken_apart_or_refused(data: bytes) -> None:
    try:
        content_of(data)
    except Unreadable:
        return


@pytest.mark.parametrize("size", range(0, 1200, 37))
def test_i7_a_document_that_ends_anywhere_is_answered_for(size: int) -> None:
    for data in PAPERS[::5]:
        answered(data[:size])
