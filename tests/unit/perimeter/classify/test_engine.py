# SPDX-License-Identifier: Apache-2.0
"""The classifier as a whole: configurable, versioned, and closed when its automaton fails (I7)."""

import pytest

from runner.kernel.labels import DataClass
from runner.perimeter.classify import RULES, Classifier, Rule, Span, View, classify_text
from runner.perimeter.classify.engine import _without_doubles
from runner.perimeter.classify.pattern import BLOCK, LONG, Prefilter

CLIENT = Rule(name="client-register", kind="client", data_class=DataClass.C2, pattern=r"(?i)officine marassi")


def test_nothing_found_is_c0() -> None:
    assert classify_text("").data_class is DataClass.C0
    assert classify_text("").spans == ()


def test_a_register_is_further_rules() -> None:
    text = "Il contratto con officine marassi"
    assert classify_text(text).data_class is DataClass.C0
    (span,) = Classifier((*RULES, CLIENT)).classify(text).spans
    assert (span.kind, text[span.start : span.end]) == ("client", "officine marassi")


def test_the_version_changes_with_the_rules_and_only_with_them() -> None:
    assert Classifier().version == classify_text("x").version
    assert Classifier((*RULES, CLIENT)).version != Classifier().version
    assert Classifier(RULES[1:]).version != Classifier().version


def test_the_class_is_the_highest_of_the_spans() -> None:
    text = "Avv. Giulia Ferri, giulia@example.org, password: Genova!1958"
    found = classify_text(text)
    assert {span.data_class for span in found.spans} == {DataClass.C1, DataClass.C2, DataClass.C3}
    assert found.data_class is DataClass.C3
    assert list(found.spans) == sorted(found.spans, key=lambda span: (span.start, -span.end))


@pytest.mark.parametrize("pattern", [r"(?=a)b", r"(a)\1", r"("])
def test_a_pattern_that_is_not_linear_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="RE2"):
        Classifier([Rule(name="x", kind="x", data_class=DataClass.C1, pattern=pattern)])


def test_a_rule_that_can_never_hit_is_refused() -> None:
    with pytest.raises(ValueError, match="client"):
        Rule(name="client", kind="x", data_class=DataClass.C1, pattern="a", needs_context=True)
    with pytest.raises(ValueError, match="'client' needs a context"):
        Rule(name="client", kind="x", data_class=DataClass.C1, pattern="a", amid="b$")


@pytest.mark.parametrize(
    ("text", "counts"),
    [("7", True), ("x 7", False), ("cue x 7", True), ("x 7 cue", True), ("cue 7", True), ("y 7", True)],
)
def test_where_a_shape_says_nothing_a_cue_decides(text: str, counts: bool) -> None:
    """I6 and its price: amid its like a candidate counts beside a word of its context, and nowhere else."""
    rule = Rule(name="n", kind="n", data_class=DataClass.C2, pattern="7", context="cue", amid="x $")
    assert bool(Classifier([rule]).classify(text).spans) is counts


class _OutOfMemory:
    """What RE2's set does when its automaton does not fit: it answers that nothing matched."""

    def Match(self, data: bytes) -> list[int]:  # noqa: N802 - the name in google-re2
        assert data
        return []


def test_an_automaton_out_of_memory_means_that_everything_may_match() -> None:
    """I7: read as "no match", it would switch every detector off."""
    prefilter = Prefilter(["aa", "x", "y"])
    assert prefilter.hits(b"xx") == {1}
    prefilter._together._set = _OutOfMemory()
    assert prefilter.hits(b"xx") == {0, 1, 2}


def test_one_of_several_automata_out_of_memory_means_that_all_of_its_patterns_may_match() -> None:
    """I7: what the others say holds beside it."""
    prefilter, text = Prefilter([f"{number}x" for number in range(9)]), b"3x" + b" " * LONG
    assert prefilter.places(text, lambda *_: True) == {3: [(0, BLOCK)]}
    prefilter._apart[1][0]._set = _OutOfMemory()
    all_of_it = [(0, (len(text) + BLOCK - 1) // BLOCK * BLOCK)]
    assert prefilter.places(text, lambda *_: True) == {3: [(0, BLOCK)], 1: all_of_it, 7: all_of_it}


def test_a_span_inside_another_of_its_kind_is_dropped() -> None:
    def span(start: int, end: int, kind: str) -> Span:
        return Span(start=start, end=end, kind=kind, rule="r", data_class=DataClass.C2)

    spans = [span(4, 8, "phone"), span(0, 8, "phone"), span(4, 8, "email"), span(6, 9, "phone")]
    assert _without_doubles(spans) == (span(0, 8, "phone"), span(4, 8, "email"), span(6, 9, "phone"))


def test_a_disguised_span_does_not_hide_the_exact_one_inside_it() -> None:
    """A table's cell, `|label|CODE|`, is also read closed up: the place in the clear must stay."""
    text = "|assistito|RSSMRA80A01F205X|-|"
    exact = [span for span in classify_text(text).spans if span.view is View.TEXT]
    assert [text[span.start : span.end] for span in exact] == ["RSSMRA80A01F205X"]


def test_of_two_readings_of_one_place_the_better_stays() -> None:
    provisional = classify_text("nato a Oran, C.F. provvisorio 12345670108").spans
    assert [(span.kind, span.data_class) for span in provisional] == [("codice_fiscale", DataClass.C2)]
    letterhead = classify_text("P.IVA 07643520567, tel. su richiesta").spans
    assert [span.kind for span in letterhead] == ["partita_iva"]
    assert [span.kind for span in classify_text("tel. 07643520567").spans] == ["phone"]
