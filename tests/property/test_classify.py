# SPDX-License-Identifier: Apache-2.0
"""I6 and I7: classification is total over `str`, exact about places, deaf to decoys, and linear."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.kernel.labels import DataClass
from runner.perimeter.classify import RULES, Rule, classify_text
from runner.perimeter.classify.pattern import Pattern, compile_pattern
from runner.perimeter.classify.readings import every_reading
from runner.perimeter.classify.views import fold, join

CODE = "VRDGPP58T13D969W"
ANY = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF))  # surrogates included
PIECES = st.sampled_from(
    [
        "IT29",
        "X050",
        "340",
        CODE,
        CODE[:9],
        "@example.org",
        "tel. 010 ",
        "password: ",
        "%41",
        "\\u00",
        "&#",
        "\ud800",
    ]
)
HOSTILE = st.lists(ANY | PIECES, max_size=40).map("".join)


@given(HOSTILE, st.none() | ANY)
def test_any_text_is_classified_and_spans_lie_in_it(text: str, source: str | None) -> None:
    found = classify_text(text, source=source)
    assert all(0 <= span.start < span.end <= len(text) for span in found.spans)
    assert found.data_class == max((span.data_class for span in found.spans), default=DataClass.C0)
    assert found == classify_text(text, source=source)


@given(HOSTILE, HOSTILE)
def test_no_surroundings_hide_a_code(before: str, after: str) -> None:
    """The code stands alone between line ends, whatever was written around it."""
    text = f"{before}\n{CODE}\n{after}"
    start = len(before) + 1
    spans = classify_text(text).spans
    assert any(span.start <= start and start + len(CODE) <= span.end for span in spans)
    assert classify_text(text).data_class >= DataClass.C2


@given(ANY)
def test_folding_is_one_byte_for_each_code_point(text: str) -> None:
    assert len(fold(text).data) == len(text)
    assert fold(text).data.isascii()


@given(ANY)
def test_joining_keeps_places_in_order(text: str) -> None:
    reading = join(text)
    if reading is not None:
        places = [reading.original_span(index, index + 1) for index in range(len(reading.data))]
        assert places == sorted(places)
        assert all(0 <= start < end <= len(text) for start, end in places)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.trigger], ids=lambda rule: rule.name)
def test_a_trigger_holds_wherever_its_pattern_does(rule: Rule) -> None:
    """The prefilter may only be wider than the rule: else an identifier is never looked for."""
    pattern, trigger = compile_pattern(rule.pattern), compile_pattern(rule.trigger)
    ascii_only = st.characters(max_codepoint=0x7F)

    @settings(max_examples=60)
    @given(st.from_regex(re.compile(rule.pattern, re.ASCII), fullmatch=True, alphabet=ascii_only))
    def holds(text: str) -> None:
        data = text.encode()
        assert trigger.search(data) or not pattern.search(data)

    holds()


@pytest.mark.parametrize(
    "unit",
    [
        "L",
        "ABCDEF01A01RSSMRA80A01F205",
        "IT60X0",
        "it60 x054 il 12 ",
        "4111 ",
        "tel 02 1234 56 ",
        "a@",
        "%41",
        "R\u200b",
    ],
)
def test_work_grows_with_length_and_not_with_its_square(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: how often a pattern was asked, and how many bytes all readings have."""
    asked = []
    search = Pattern.search

    def counted(self: Pattern, data: bytes, start: int = 0) -> list[tuple[int, int]] | None:
        asked.append(start)
        return search(self, data, start)

    monkeypatch.setattr(Pattern, "search", counted)

    def work(size: int) -> tuple[int, int]:
        text = unit * (size // len(unit))
        asked.clear()
        classify_text(text)
        return len(asked), sum(len(reading.data) for reading in every_reading(text))

    (searches, read), (more_searches, more_read) = work(2_048), work(8_192)
    assert more_searches <= 4.4 * searches + 64
    assert more_read <= 4.4 * read + 1_024
