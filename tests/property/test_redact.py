# SPDX-License-Identifier: Apache-2.0
"""I6, I8: whatever the text, the spans and the cuts, redaction is undone exactly and shows nothing."""

import json
import secrets
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from runner.kernel.labels import DataClass
from runner.perimeter.places import level
from runner.perimeter.redact import Redactor, StreamRestorer
from runner.testing import FakeHit

TOKEN_SHAPED = "[PERSONA_bcdfgh]"
PIECES = [
    "Rossi",
    "1234567890",
    "ß",
    "İ",
    "è",
    "[",
    "]",
    "_",
    "[PERSONA_",
    "bcdfgh]",
    TOKEN_SHAPED,
    "\ud800",
    " ",
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=20).map("".join)
classes = st.sampled_from([DataClass.C1, DataClass.C2])


def redactor() -> Redactor:
    return Redactor(lambda: secrets.token_hex(16))


@st.composite
def found(draw: st.DrawFn) -> tuple[str, list[FakeHit]]:
    """A text and hits anywhere in it, overlapping and empty ones included."""
    text = draw(texts)
    places = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)), classes, st.sampled_from("abc"))
    hits = [
        FakeHit(start=min(one, other), end=max(one, other), data_class=data_class, kind=kind)
        for one, other, data_class, kind in draw(st.lists(places, max_size=6))
    ]
    return text, hits


@given(found())
def test_i8_what_was_redacted_comes_back_exactly(case: tuple[str, list[FakeHit]]) -> None:
    text, hits = case
    made = redactor()
    redacted, removals = made.take_out(text, hits, above=DataClass.C1)
    assert redacted == text or removals
    assert TOKEN_SHAPED not in redacted
    if removals:
        assert made.restore(redacted) == redacted, "nothing is restored before it was sent"
    made.mark_sent(removal.entry for removal in removals)
    restored = made.restore(redacted)
    assert isinstance(restored, str)
    assert level(restored) == level(text), "white space may be that of the first time"
    if all(removal.entry.value == text[removal.start : removal.end] for removal in removals):
        assert restored == text


@given(found())
def test_i8_removals_are_in_order_apart_and_cover_every_hit(case: tuple[str, list[FakeHit]]) -> None:
    text, hits = case
    _, removals = redactor().take_out(text, hits, above=DataClass.C1)
    assert all(one.end <= other.start for one, other in pairwise(removals))
    covered = {at for removal in removals for at in range(removal.start, removal.end)}
    wanted = {at for hit in hits if hit.data_class > DataClass.C1 for at in range(hit.start, hit.end)}
    assert wanted <= covered
    taken = [text[each.start : each.end] for each in removals]
    assert [level(removal.entry.value) for removal in removals] == [*map(level, taken)]


@given(st.lists(st.text("0123456789", min_size=6, max_size=12), min_size=1, max_size=5), st.data())
def test_p1_a_value_found_once_stands_nowhere_in_what_is_sent(values: list[str], data: st.DataObject) -> None:
    """Glued to words, repeated, in another block: wherever it stands."""
    made = redactor()
    for value in values:
        made.learn(value, [FakeHit(start=0, end=len(value), data_class=DataClass.C2)])
    glue = st.sampled_from(["", " ", "x", "È", "\n", ":", *values])
    text = "".join(data.draw(st.lists(glue, max_size=12)))
    redacted, _ = made.take_out(text, [], above=DataClass.C1)
    assert all(value not in redacted for value in values)


def pieces(text: str, cuts: Sequence[int]) -> list[str]:
    places = [0, *sorted(cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


@given(found(), st.data())
def test_i8_a_stream_shows_the_same_however_it_is_cut(
    case: tuple[str, list[FakeHit]], data: st.DataObject
) -> None:
    text, hits = case
    made = redactor()
    redacted, removals = made.take_out(text, hits, above=DataClass.C1)
    made.mark_sent(removal.entry for removal in removals)
    # What a model may say: tokens that were sent, tokens that were not, and things that begin like one.
    tokens = [removal.entry.token for removal in removals]
    parts = st.sampled_from([*tokens, redacted, TOKEN_SHAPED, "[", "[PERSONA", "[A_bcd", "x", "]"])
    said = "".join(data.draw(st.lists(parts, max_size=8)))
    cuts = data.draw(st.lists(st.integers(0, len(said)), max_size=12))
    restorer = StreamRestorer(made)
    shown = [restorer.feed(piece) for piece in pieces(said, cuts)]
    assert "".join([*shown, restorer.finish()]) == made.restore(said)
    assert not any(
        part in token for token in tokens for part in shown if part.startswith("[") and part != "["
    )


@given(st.text(max_size=60))
def test_a_stream_holds_back_no_more_than_one_token(text: str) -> None:
    made = redactor()
    restorer = StreamRestorer(made)
    shown = "".join(restorer.feed(character) for character in text)
    assert text.startswith(shown)
    assert len(text) - len(shown) < 60
    assert shown + restorer.finish() == text


SECRET = 'Aurelio "Lello" Boccanegra\nVico Dritto 7'
steps = st.lists(
    st.tuples(
        st.sampled_from(["", "x", " ", "7", '"', "\n"]),
        st.sampled_from(["", "y", ".", "["]),
        st.sampled_from(["text", "json", "cut", "cut json", "head", "joined"]),
        st.integers(1, 40),
    ),
    max_size=5,
)


@example([("", "", "json", 1), ("", "", "json", 1), ("", "", "json", 1), ("", "", "cut json", 3)])
@given(steps)
def test_p1_no_conversation_brings_a_value_out(turns: list[tuple[str, str, str, int]]) -> None:
    """A model glues its token to anything; it is restored, cut, joined, spelled as JSON, sent again."""
    made = redactor()
    context = [SECRET]
    made.learn(SECRET, [FakeHit(start=0, end=len(SECRET), data_class=DataClass.C2)])
    for before, after, form, cut in turns:
        tokens = send(made, context)
        said = before.join(["", *tokens]) + after
        reply = str(made.restore(said))
        if "json" in form:
            reply = json.dumps({"answer": reply}, ensure_ascii=False)
        if "cut" in form:
            reply = reply[:-cut]
        if form == "head":
            reply = reply[cut:]
        context = [*context, reply] if form != "joined" else ["".join([*context, reply])]
    send(made, context)


def send(made: Redactor, context: list[str]) -> list[str]:
    """Return the tokens in what is sent of `context`; fail if it shows the value or a good part of it."""
    tokens: list[str] = []
    for text in context:
        redacted, removals = made.take_out(text, [], above=DataClass.C1)
        made.mark_sent(removal.entry for removal in removals)
        tokens += [removal.entry.token for removal in removals]
        spelled = (SECRET, json.dumps(SECRET, ensure_ascii=False)[1:-1])
        shown = [part for part in (each[:6] for each in spelled) if part in redacted]
        shown += [part for part in (each[-6:] for each in spelled) if part in redacted]
        assert shown == []
    return tokens


@given(found())
def test_two_tasks_share_no_token(case: tuple[str, list[FakeHit]]) -> None:
    """Nor does one restore what another sent: a map belongs to one matter and one user."""
    text, hits = case
    one, other = redactor(), redactor()
    first, removals = one.take_out(text, hits, above=DataClass.C1)
    second, others = other.take_out(text, hits, above=DataClass.C1)
    assert not {each.entry.token for each in removals} & {each.entry.token for each in others}
    other.mark_sent(each.entry for each in others)
    assert other.restore(first) == first
    assert (first == second) is not bool(removals)
