# SPDX-License-Identifier: Apache-2.0
"""I8: labels join as a semilattice, and no join ever lowers anything."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.labels import BOTTOM, DataClass, Integrity, Label, join_labels

names = st.frozensets(st.sampled_from(["rossi", "perodi", "boatyard", "f1", "f2"]))
classes = st.sampled_from(DataClass)
labels = st.builds(
    Label,
    declared=classes,
    default=classes,
    detected=classes,
    integrity=st.sampled_from(Integrity),
    matters=names,
    sources=names,
)


def is_at_least(high: Label, low: Label) -> bool:
    """Whether `high` is at least as restrictive as `low` in every part."""
    return (
        high.declared >= low.declared
        and high.default >= low.default
        and high.detected >= low.detected
        and high.integrity <= low.integrity
        and high.matters >= low.matters
        and high.sources >= low.sources
    )


@given(labels, labels)
def test_i8_join_is_commutative(one: Label, other: Label) -> None:
    assert one.join(other) == other.join(one)


@given(labels, labels, labels)
def test_i8_join_is_associative(one: Label, two: Label, three: Label) -> None:
    assert one.join(two).join(three) == one.join(two.join(three))


@given(labels)
def test_i8_join_is_idempotent_and_bottom_is_neutral(label: Label) -> None:
    assert label.join(label) == label
    assert label.join(BOTTOM) == label


@given(labels, labels)
def test_i8_join_never_lowers_and_adds_nothing_of_its_own(one: Label, other: Label) -> None:
    joined = one.join(other)
    assert is_at_least(joined, one)
    assert is_at_least(joined, other)
    assert joined.data_class == max(one.data_class, other.data_class)
    assert joined.integrity in {one.integrity, other.integrity}
    assert joined.matters == one.matters | other.matters
    assert joined.sources == one.sources | other.sources


@given(labels, labels, labels)
def test_i8_join_is_the_least_upper_bound(one: Label, other: Label, above: Label) -> None:
    if is_at_least(above, one) and is_at_least(above, other):
        assert is_at_least(above, one.join(other))


@given(st.lists(labels, max_size=5))
def test_i8_joining_many_is_above_each_of_them(many: list[Label]) -> None:
    joined = join_labels(many)
    assert all(is_at_least(joined, label) for label in many)
    assert joined == join_labels(reversed(many))


@given(labels, classes)
def test_i8_detection_raises_the_detected_part_only(label: Label, found: DataClass) -> None:
    raised = label.with_detected(found)
    assert raised.detected == max(label.detected, found)
    assert is_at_least(raised, label)
    assert raised.with_detected(label.detected) == raised
    untouched = [part.name for part in fields(Label) if part.name != "detected"]
    assert [getattr(raised, name) for name in untouched] == [getattr(label, name) for name in untouched]


def test_the_join_of_nothing_is_bottom() -> None:
    assert join_labels([]) == BOTTOM
    assert BOTTOM.data_class is DataClass.C0
    assert BOTTOM.integrity is Integrity.USER


@pytest.mark.parametrize("part", ["declared", "default", "detected"])
def test_one_high_part_makes_the_class(part: str) -> None:
    assert Label(**{part: DataClass.C3}).data_class is DataClass.C3  # type: ignore[arg-type] # a part is a class


def test_the_order_of_classes_and_of_integrity_is_the_documented_one() -> None:
    assert sorted(DataClass) == [DataClass.C0, DataClass.C1, DataClass.C2, DataClass.C3]
    assert sorted(Integrity) == [Integrity.UNTRUSTED, Integrity.PRACTICE, Integrity.PLAN, Integrity.USER]


@pytest.mark.parametrize("name", ["C0", "C1", "C2", "C3"])
def test_a_class_is_parsed_from_its_name(name: str) -> None:
    assert DataClass.parse(name).name == name


@given(st.text().filter(lambda text: text not in DataClass.__members__))
def test_any_other_text_is_refused_unquoted(text: str) -> None:
    """I12: the message names the allowed words, not what was written."""
    with pytest.raises(ValueError, match=r"\Aa data class is one of C0, C1, C2, C3\Z"):
        DataClass.parse(text)
