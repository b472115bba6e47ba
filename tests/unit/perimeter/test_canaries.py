# SPDX-License-Identifier: Apache-2.0
"""I7: what an answer to a canary says. Only the exact answer counts, and only two of them are `enforced`."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.capabilities import Facts, Mechanism, Standing, Thinking
from runner.kernel.inference import WrittenCall
from runner.kernel.probing import Canary, Heard
from runner.perimeter.canaries import (
    MAX_REQUESTS,
    MAX_TOKENS,
    Asked,
    Seen,
    concluded,
    is_last,
    judge,
    next_canary,
)
from runner.perimeter.classify import Classifier

SEEDS = st.text("0123456789abcdef", min_size=32, max_size=32)
ORDERS = st.lists(st.sampled_from(Mechanism), unique=True, min_size=1, max_size=6)
HELD = [each for each in Mechanism if each not in {Mechanism.TOOLS, Mechanism.TOOL_CHOICE}]


def first(mechanism: Mechanism, *, seed: str = "0" * 32, wrapped: bool = False) -> Canary:
    found = next_canary([mechanism], [], seed=seed, wrapped=wrapped)
    assert found is not None
    return found


def said(text: str = "", **more: Any) -> Heard:
    return Heard(text=text, **more)


def whole_probe(
    mechanisms: Sequence[Mechanism], answer: Callable[[Canary], Asked], *, seed: str, wrapped: bool = False
) -> list[Asked]:
    asked: list[Asked] = []
    while canary := next_canary(mechanisms, asked, seed=seed, wrapped=wrapped):
        asked.append(answer(canary))
    return asked


def right(canary: Canary) -> Heard:
    """The exact answer to `canary`."""
    text = json.dumps(canary.answer)
    if canary.called:
        return said(calls=(WrittenCall(name=canary.called, arguments=text),))
    return said(text)


# --- the bounds of a probe -----------------------------------------------------------------------


@given(ORDERS, SEEDS, st.booleans(), st.data())
def test_a_probe_has_at_most_five_requests_and_sixty_four_tokens(
    order: list[Mechanism], seed: str, wrapped: bool, data: st.DataObject
) -> None:
    """Whatever the answers, and whatever a runtime says it generated."""
    seen = st.sampled_from(Seen)
    asked = whole_probe(
        order, lambda canary: Asked(canary=canary, seen=data.draw(seen), tokens=0), seed=seed, wrapped=wrapped
    )
    generating = [each.canary.max_tokens for each in asked if each.seen is not Seen.REFUSED]
    assert 1 <= len(asked) <= MAX_REQUESTS == 5
    assert sum(generating) <= MAX_TOKENS == 64
    assert all(each.canary.max_tokens > 0 for each in asked)


@given(ORDERS, SEEDS, st.booleans())
def test_no_two_canaries_of_a_probe_have_the_same_answer(
    order: list[Mechanism], seed: str, wrapped: bool
) -> None:
    asked = whole_probe(order, lambda each: Asked(canary=each, seen=Seen.EXACT), seed=seed, wrapped=wrapped)
    answers = [(each.canary.called, json.dumps(each.canary.answer)) for each in asked]
    assert len(set(answers)) == len(answers)


@given(ORDERS, SEEDS, st.booleans())
def test_a_nonce_cannot_be_copied_out_of_the_words(order: list[Mechanism], seed: str, wrapped: bool) -> None:
    asked = whole_probe(order, lambda each: Asked(canary=each, seen=Seen.EXACT), seed=seed, wrapped=wrapped)
    for canary in (each.canary for each in asked if not each.canary.called):
        assert "zq" not in canary.words
        assert "zq7" in json.dumps(canary.schema)
        assert "zq" not in json.dumps([tool.parameters for tool in canary.tools])


def test_nothing_is_asked_after_a_runtime_that_answers_nothing() -> None:
    asked = whole_probe(
        list(Mechanism), lambda each: Asked(canary=each, seen=Seen.NOTHING, last=True), seed="7" * 32
    )
    assert len(asked) == 1
    assert [is_last(status) for status in (0, 200, 400, 401, 404, 429, 500, 503)] == [
        *[True, False, False, True, True, True, False, True]
    ]


def test_a_mechanism_is_asked_again_only_when_it_held() -> None:
    order = (Mechanism.GRAMMAR, Mechanism.TOOLS, Mechanism.TOOLS_WITH_FORMAT)
    held = whole_probe(order, lambda each: Asked(canary=each, seen=Seen.EXACT), seed="1" * 32)
    assert [each.canary.mechanism for each in held] == [order[0], order[0], order[1], order[1], order[2]]
    broke = whole_probe(order, lambda each: Asked(canary=each, seen=Seen.OTHER), seed="1" * 32)
    assert [each.canary.mechanism for each in broke] == list(order)


def test_every_canary_passes_the_gate_as_public() -> None:
    """C0: all 887 nonces and 10 digits, in words and schemas; one that looked like something would block."""
    rules = Classifier()
    for number in range(100, 987):
        text = json.dumps({"enum": [f"zq7{number}"]})
        assert (rules.classify(text).data_class, rules.classify(f"zq7{number}").data_class) == (0, 0)
    for digit in range(10):
        canary = first(Mechanism.TOOLS, seed=f"{digit:032x}")
        assert rules.classify(canary.words).data_class == 0
    assert rules.classify(first(Mechanism.GRAMMAR).words).data_class == 0


# --- what one answer says ------------------------------------------------------------------------


@given(st.sampled_from(Mechanism), SEEDS, st.booleans())
def test_the_exact_answer_counts(mechanism: Mechanism, seed: str, wrapped: bool) -> None:
    canary = first(mechanism, seed=seed, wrapped=wrapped)
    assert judge(canary, status=200, heard=right(canary)) is Seen.EXACT


@given(st.sampled_from(Mechanism), SEEDS, st.booleans(), st.text())
def test_i7_no_other_answer_counts(mechanism: Mechanism, seed: str, wrapped: bool, text: str) -> None:
    canary = first(mechanism, seed=seed, wrapped=wrapped)
    assert judge(canary, status=200, heard=said(text)) is not Seen.EXACT


@given(st.sampled_from(Mechanism), st.integers(), st.one_of(st.none(), st.text().map(said)))
def test_judging_is_total_and_an_error_is_never_an_answer(
    mechanism: Mechanism, status: int, heard: Heard | None
) -> None:
    seen = judge(first(mechanism), status=status, heard=heard)
    assert seen in {Seen.REFUSED, Seen.NOTHING} or (status == 200 and heard is not None)


@pytest.mark.parametrize("mechanism", HELD)
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: f"```json\n{text}\n```", id="fence"),
        pytest.param(lambda text: f"Here it is: {text}", id="preamble"),
        pytest.param(lambda text: f"{text} {text}", id="twice"),
        pytest.param(lambda text: f"<think></think>{text}", id="thought"),
        pytest.param(lambda text: text[1:-1], id="bare"),
        pytest.param(lambda text: text.upper(), id="upper"),
        pytest.param(lambda text: text[:-2] + "x" + text[-1], id="changed"),
        pytest.param(lambda text: f"[{text}]", id="array"),
        pytest.param(lambda text: json.dumps({"answer": text}), id="member"),
        pytest.param(lambda _: "", id="empty"),
        pytest.param(lambda _: "[" * 100_000, id="deep"),
    ],
)
def test_i7_nearly_the_answer_is_another(mechanism: Mechanism, spoil: Callable[[str], str]) -> None:
    canary = first(mechanism)
    assert judge(canary, status=200, heard=said(spoil(json.dumps(canary.answer)))) is Seen.OTHER


def test_i7_a_member_said_twice_is_another_answer() -> None:
    canary = first(Mechanism.RESPONSE_FORMAT, wrapped=True)
    word = json.dumps(canary.answer)[:-1]
    assert judge(canary, status=200, heard=said(f'{word}, "v": "x"}}')) is Seen.OTHER
    assert judge(canary, status=200, heard=said(word + "}")) is Seen.EXACT


def test_a_cut_answer_says_nothing_only_if_it_could_have_become_the_right_one() -> None:
    canary = first(Mechanism.RESPONSE_FORMAT, wrapped=True)
    for text in ("", "{", '{\n  "v"\n :', '{"v": "zq7'):
        assert judge(canary, status=200, heard=said(text, truncated=True)) is Seen.NOTHING
        assert judge(canary, status=200, heard=said(text)) is Seen.OTHER
    for text in ("apple", '{"apple', "```", '"zq7'):
        assert judge(canary, status=200, heard=said(text, truncated=True)) is Seen.OTHER


CALL = first(Mechanism.TOOLS)
LEVEL = {"n": 0}


@pytest.mark.parametrize(
    ("calls", "seen"),
    [
        pytest.param([("dim", '{"n": 0}')], Seen.EXACT, id="text"),
        pytest.param([("dim", {"n": 0})], Seen.EXACT, id="object"),
        pytest.param([("dim", '{"n": 0')], Seen.OTHER, id="malformed"),
        pytest.param([("dim", '{"n": "0"}')], Seen.OTHER, id="text-for-number"),
        pytest.param([("dim", '{"n": 0.0}')], Seen.OTHER, id="float"),
        pytest.param([("dim", '{"n": false}')], Seen.OTHER, id="boolean"),
        pytest.param([("dim", '{"n": 1}')], Seen.OTHER, id="other-number"),
        pytest.param([("dim", '{"n": 0, "m": 1}')], Seen.OTHER, id="more"),
        pytest.param([("dim", "{}")], Seen.OTHER, id="nothing"),
        pytest.param([("bell", '{"n": 0}')], Seen.OTHER, id="other-tool"),
        pytest.param([("dim", '{"n": 0}'), ("dim", '{"n": 0}')], Seen.OTHER, id="two"),
        pytest.param([], Seen.OTHER, id="none"),
    ],
)
def test_a_call_counts_when_it_is_the_one_asked_for(calls: list[tuple[str, Any]], seen: Seen) -> None:
    heard = said(calls=tuple(WrittenCall(name=name, arguments=arguments) for name, arguments in calls))
    assert CALL.answer == LEVEL
    assert judge(CALL, status=200, heard=heard) is seen


def test_a_call_written_in_the_text_is_no_call() -> None:
    assert judge(CALL, status=200, heard=said('{"name": "dim", "arguments": {"n": 0}}')) is Seen.OTHER
    assert judge(CALL, status=200, heard=said("```json\n{", truncated=True)) is Seen.NOTHING


def test_a_call_is_no_answer_to_a_question_of_form() -> None:
    canary = first(Mechanism.TOOLS_WITH_FORMAT)
    call = WrittenCall(name="dim", arguments="{}")
    heard = said(json.dumps(canary.answer), calls=(call,), truncated=True)
    assert judge(canary, status=200, heard=heard) is Seen.OTHER


# --- what follows from all -----------------------------------------------------------------------


@given(st.lists(st.sampled_from(Seen), max_size=2))
def test_i7_only_two_exact_answers_are_enforced(seen: list[Seen]) -> None:
    asked = [Asked(canary=first(Mechanism.GRAMMAR), seen=each) for each in seen]
    found = concluded(Mechanism.GRAMMAR, asked, Facts())[Mechanism.GRAMMAR]
    assert (found is Standing.ENFORCED) is (seen == [Seen.EXACT, Seen.EXACT])
    assert (found is Standing.IGNORED) is (Seen.OTHER in seen)
    assert (found is Standing.REFUSED) is (seen == [Seen.REFUSED])


@pytest.mark.parametrize(
    ("seen", "thinking"),
    [
        ([], Thinking.UNVERIFIED),
        ([Thinking.UNVERIFIED], Thinking.UNVERIFIED),
        ([Thinking.UNVERIFIED, Thinking.ABSENT], Thinking.ABSENT),
        ([Thinking.ABSENT, Thinking.BESIDE, Thinking.INLINE], Thinking.BESIDE),
        ([Thinking.INLINE, Thinking.ABSENT], Thinking.INLINE),
    ],
)
def test_reasoning_is_where_it_was_seen(seen: list[Thinking], thinking: Thinking) -> None:
    canary = first(Mechanism.GRAMMAR)
    asked = [Asked(canary=canary, seen=Seen.OTHER, thinking=each) for each in seen]
    assert concluded(None, asked, Facts()).thinking is thinking
