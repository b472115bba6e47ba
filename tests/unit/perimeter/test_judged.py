# SPDX-License-Identifier: Apache-2.0
"""I6, I7: an answer is remembered for one text, field, set of rules and registers; a fault is not."""

import json
from dataclasses import replace

import pytest

from runner.kernel.inference import Address, WireRequest
from runner.kernel.labels import DataClass
from runner.kernel.ports import Locality
from runner.kernel.registers import Listed
from runner.perimeter.classify import Classifier, EchoIndex, compile_registers
from runner.perimeter.judged import JudgedTexts
from runner.perimeter.release import Rules, detect
from runner.testing import FakeClassifier

CLIENT = Listed(file="r", line=1, names=("Ubaldo Boccadoro",))


def rules(classifier: FakeClassifier | Classifier, *, judged: JudgedTexts | None = None) -> Rules:
    return Rules(
        classifier=classifier,
        fault_as_c3=False,
        locality_c2=Locality.L0,
        locality_c3=Locality.L2,
        echo=EchoIndex(b"k" * 16),
        judged=JudgedTexts() if judged is None else judged,
    )


def wire(*texts: str) -> WireRequest:
    body = json.dumps({"messages": [{"content": text} for text in texts]}).encode()
    address = Address(scheme="https", host="model.example", port=443)
    return WireRequest(method="POST", address=address, path="/v1", headers=(), body=body)


def test_a_step_is_judged_for_its_new_content_only() -> None:
    classifier = FakeClassifier()
    judging = rules(classifier)
    history: list[str] = []
    for step in range(20):
        history.append(f"content of step {step}")
        before = len(classifier.seen)
        detect(wire(*history), judging)
        new = classifier.seen[before:]
        assert f"content of step {step}" in new
        assert step == 0 or new == [f"content of step {step}"]


def test_an_answer_does_not_cross_a_change_of_registers() -> None:
    judged = JudgedTexts()
    none = compile_registers(clients=[], own=[], public=[], key=b"k" * 16)
    one = compile_registers(clients=[CLIENT], own=[], public=[], key=b"k" * 16)
    text = "scrivo per ubaldo boccadoro"
    for registers, expected in ((none, DataClass.C0), (one, DataClass.C2), (none, DataClass.C0)):
        assert judged.class_of(Classifier(registers=registers), text, None) is expected
    assert len(judged) == 2


def test_an_answer_does_not_cross_a_change_of_rules_or_of_field() -> None:
    judged = JudgedTexts()
    assert judged.class_of(Classifier(rules=()), "scrivere a a@b.example", None) is DataClass.C0
    assert judged.class_of(Classifier(), "scrivere a a@b.example", None) is DataClass.C2
    number = "4111111111111111"
    assert judged.class_of(Classifier(), number, "lotto") is DataClass.C0
    assert judged.class_of(Classifier(), number, "carta di credito") is DataClass.C2


def test_a_remembered_text_is_asked_for_echoes_again() -> None:
    """What was read since may have changed the answer: an old answer must not hide it."""
    judging, text = (
        rules(Classifier()),
        "la linea di montaggio va trasferita entro agosto senza avvisare nessuno",
    )
    assert detect(wire(text), judging) is DataClass.C0
    judging.echo.remember(text, DataClass.C3)
    assert detect(wire(text), judging) is DataClass.C3


def test_a_fault_is_not_remembered() -> None:
    judged, text = JudgedTexts(), "a"
    with pytest.raises(RuntimeError):
        judged.class_of(FakeClassifier(fault=RuntimeError("down")), text, None)
    assert judged.class_of(FakeClassifier({"a": DataClass.C2}), text, None) is DataClass.C2


def test_memory_is_bounded_and_what_is_used_stays() -> None:
    judged, classifier = JudgedTexts(capacity=10), FakeClassifier()
    for number in range(100):
        judged.class_of(classifier, f"text {number}", None)
        judged.class_of(classifier, "again", None)
        assert len(judged) <= 10
    assert classifier.seen.count("again") == 1


def test_lone_surrogates_are_texts_too() -> None:
    assert JudgedTexts().class_of(Classifier(), "\ud800", "\udfff") is DataClass.C0


PASSAGE = "la linea di montaggio va trasferita entro agosto senza avvisare nessuno"


class Counting(EchoIndex):
    """An index that counts what it was asked."""

    asked = 0

    def class_of(self, text: str) -> DataClass:
        self.asked += 1
        return super().class_of(text)


def test_an_echo_is_looked_for_again_only_where_what_was_read_may_change_the_answer() -> None:
    """What a task reads next has mostly nothing of what it said before: no step pays for that again."""
    judged, echo = JudgedTexts(), Counting(b"k" * 16)
    echo.remember("un testo letto prima di tutto il resto, lungo quanto basta per otto parole", DataClass.C2)
    assert [judged.echo_of(echo, PASSAGE) for _ in range(3)] == [DataClass.C0] * 3
    assert echo.asked == 1
    for step in range(20):
        words = " ".join(f"parola{step}{number}" for number in range(12))
        echo.remember(words, DataClass.C2)
        assert judged.echo_of(echo, PASSAGE) is DataClass.C0
    assert echo.asked == 1
    echo.remember(f"allegato: {PASSAGE}.", DataClass.C2)
    assert judged.echo_of(echo, PASSAGE) is DataClass.C2
    echo.remember(f"riservato: {PASSAGE}.", DataClass.C3)
    assert judged.echo_of(echo, PASSAGE) is DataClass.C3
    assert echo.asked == 3


@pytest.mark.parametrize("cut", range(6, 11))
def test_no_cut_of_a_passage_hides_a_later_echo(cut: int) -> None:
    """Half of it was read before: whichever half comes next, the answer is asked for again."""
    words = PASSAGE.split()
    halves = (" ".join(words[:cut]), " ".join(words[cut - 6 :]))
    for first, second in (halves, halves[::-1]):
        judged, echo = JudgedTexts(), EchoIndex(b"k" * 16)
        for read in (first, second):
            echo.remember(read, DataClass.C3)
            assert judged.echo_of(echo, PASSAGE) is echo.class_of(PASSAGE)
        assert judged.echo_of(echo, PASSAGE) is DataClass.C3


def test_what_is_read_beside_a_piece_that_was_read_before_is_an_echo_with_it() -> None:
    """The piece alone is too short to be one: the answer of then must not stay."""
    words = PASSAGE.split()
    judged, echo = JudgedTexts(), EchoIndex(b"k" * 16)
    echo.remember(" ".join(words[:6]), DataClass.C3)
    assert judged.echo_of(echo, PASSAGE) is DataClass.C0
    echo.remember(" ".join(words[1:8]), DataClass.C3)
    assert judged.echo_of(echo, PASSAGE) is DataClass.C3


def test_a_request_that_repeats_the_last_one_is_looked_at_across_its_new_seams_only() -> None:
    fragments = FakeClassifier()
    judging = replace(rules(Classifier()), fragments=fragments)
    history: list[str] = []
    for step in range(20):
        history.append(f"content of step {step} " * 40)
        before = sum(map(len, fragments.seen))
        detect(wire(*history), judging)
        read = sum(map(len, fragments.seen)) - before
        assert read < 6144, step
        assert read > 0 or step == 0
    before = len(fragments.seen)
    detect(wire(*history), judging)
    assert len(fragments.seen) == before
