# SPDX-License-Identifier: Apache-2.0
"""I6 and I7: classification is total over `str`, exact about places, deaf to decoys, and linear."""

import base64
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.kernel.labels import DataClass
from runner.perimeter.classify import RULES, Classifier, Rule, classify_text
from runner.perimeter.classify.pattern import BLOCK, LOCAL, Pattern, Prefilter, compile_pattern
from runner.perimeter.classify.readings import every_reading
from runner.perimeter.classify.search import detector
from runner.perimeter.classify.views import Reading, fold, join

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


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_of_a_long_text_a_rule_searches_wherever_it_may_match(rule: Rule) -> None:
    """I6: where one block of a long text ends and the next begins, nothing is overlooked."""
    tried, seen = detector(rule), Prefilter([rule.trigger or rule.pattern])
    assert tried.is_local
    ascii_only = st.characters(max_codepoint=0x7F)
    matches = st.from_regex(re.compile(rule.pattern, re.ASCII), fullmatch=True, alphabet=ascii_only)

    @settings(max_examples=10)
    @given(matches, st.integers(0, 40) | st.integers(0, LOCAL))
    def holds(text: str, before: int) -> None:
        data = b"\n" * (BLOCK - before) + text.encode() + b"\n" * (2 * BLOCK)
        stretches = seen.places(data, lambda _start, _end: True).get(0, ())
        for match in tried.pattern.finditer(data):
            start, end = match[0]
            assert any(
                (tried.reach is None or low - tried.reach <= start)
                and start < high
                and (tried.width is None or end <= high + tried.width)
                for low, high in stretches
            )

    holds()


FAR = "parola " * (BLOCK // 2)
DISGUISED = st.sampled_from(
    [
        f"codice fiscale {CODE[:5]}%50{CODE[6:]} ",
        f"c%6Fdice fiscale {CODE} ",
        f"codice fiscale {'-'.join(CODE)} ",
        f"codice fiscale {CODE[:5]}\xad{CODE[5:]} ",
        base64.b64encode(f"codice fiscale {CODE}".encode()).decode() + " ",
        "p%252Eiva 01114601006 ",
        "&#65;",
        " ",
        FAR,
    ]
)


@settings(max_examples=60)
@given(st.lists(DISGUISED | PIECES, max_size=12).map("".join))
def test_nothing_is_lost_by_searching_readings_only_where_they_are_new(text: str) -> None:
    """I6: what is found by searching all readings to their ends is found, in that place or around it."""
    text = f"{text}{FAR}"
    found = classify_text(text).spans
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reading, "is_new", lambda *_: True)
        every_reading.cache_clear()
        everything = classify_text(text).spans
    every_reading.cache_clear()
    assert not [
        span
        for span in everything
        if span.kind != "opaque"  # what was opened before is not packed beyond reading
        and not any(
            each.start <= span.start and span.end <= each.end and each.data_class >= span.data_class
            for each in found
        )
    ]


def test_a_rule_whose_match_may_be_of_any_length_reads_a_long_text_as_a_whole() -> None:
    rule = Rule(name="r", kind="r", data_class=DataClass.C2, pattern="<[^>]*>", distinctive=True)
    text = f"{'word ' * BLOCK}<{'word ' * BLOCK}> <c>"
    found = Classifier([rule]).classify(text).spans
    assert [text[span.start : span.end] for span in found] == [text[text.index("<") : -4], "<c>"]


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

    def counted(
        self: Pattern, data: bytes, start: int = 0, end: int | None = None
    ) -> list[tuple[int, int]] | None:
        asked.append(start)
        return search(self, data, start, end)

    monkeypatch.setattr(Pattern, "search", counted)

    def work(size: int) -> tuple[int, int]:
        text = unit * (size // len(unit))
        asked.clear()
        classify_text(text)
        return len(asked), sum(len(reading.data) for reading in every_reading(text))

    (searches, read), (more_searches, more_read) = work(2_048), work(8_192)
    assert more_searches <= 4.4 * searches + 64
    assert more_read <= 4.4 * read + 1_024
