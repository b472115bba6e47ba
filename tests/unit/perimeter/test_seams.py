# SPDX-License-Identifier: Apache-2.0
"""I6: a credential or a client's name that is split over turns or fields of one request is found."""

import json
from random import Random
from typing import Any

import pytest

from runner.kernel.inference import Address, WireRequest
from runner.kernel.labels import DataClass
from runner.kernel.ports import Locality
from runner.kernel.registers import Listed
from runner.perimeter.classify import FRAGMENTS, Classifier, compile_registers
from runner.perimeter.judged import JudgedTexts
from runner.perimeter.release import Rules, detect
from runner.perimeter.seams import FARTHEST, PIECES, across
from runner.testing import FakeClassifier

AWS = "AKIA" + "IOSFODNN7EXAMPLE"
JWT = f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIi{'Oi1a_9' * 250}.{'c2ln' * 11}"
LONG_HEAD = f"eyJ{'hbGci' * 200}.eyJzdWIiOiIxMjM0In0.{'c2ln' * 11}"
CLIENT = Listed(file="r", line=1, names=("Mario Rossi",), by_surname=False)  # so that half of it is nothing
REGISTERS = compile_registers(clients=[CLIENT], own=[], public=[], key=b"k" * 16)
FINDER = Classifier(FRAGMENTS, REGISTERS)


def found(
    body: Any, *, fragments: Classifier | FakeClassifier | None = FINDER, as_c3: bool = False
) -> DataClass:
    rules = Rules(
        classifier=Classifier(registers=REGISTERS),
        fault_as_c3=as_c3,
        locality_c2=Locality.L0,
        locality_c3=Locality.L2,
        fragments=fragments,
    )
    address = Address(scheme="https", host="model.example", port=443)
    data = json.dumps(body).encode()
    return detect(WireRequest(method="POST", address=address, path="/v1", headers=(), body=data), rules)


def turns(*texts: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"model": "m", "messages": messages, "temperature": 0}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (turns(f"first {AWS[:9]}", f"{AWS[9:]} then"), DataClass.C3),
        (turns(f"{'word ' * 500} {AWS[:9]}", f"{AWS[9:]} {'word ' * 500}"), DataClass.C3),
        (turns(f"first {AWS[:3]}", AWS[3:7], AWS[7:], "ok"), DataClass.C3),
        ({"first": AWS[:10], "second": AWS[10:]}, DataClass.C3),
        ({"input": [[AWS[:10], AWS[10:]]]}, DataClass.C3),
        (turns("v1", AWS[:10], AWS[10:]), DataClass.C3),  # what stands before must not hide where it begins
        (turns(AWS[:10], "", AWS[10:]), DataClass.C3),
        (turns("Dimmi di Mario", "Rossi, quanto deve?"), DataClass.C2),
        (turns("tutti", "Mario", "Rossi", "oggi"), DataClass.C2),
        ({"content": [{"type": "text", "text": "Mario "}, {"type": "text", "text": "Rossi"}]}, DataClass.C2),
        ({"nome": "Mario", "cognome": "Rossi"}, DataClass.C2),
        (turns(f"token {JWT[:20]}", JWT[20:]), DataClass.C3),
        (turns(f"token {LONG_HEAD[:500]}", f"{LONG_HEAD[500:]} ok"), DataClass.C3),
        (turns(f"first {AWS[:9]}\n", f"{AWS[9:]} then"), DataClass.C3),
        (turns(f"first {AWS[:9]} ", f"\n {AWS[9:]} then"), DataClass.C3),
        (turns(f'"{AWS[:9]}"', f"'{AWS[9:]}'"), DataClass.C3),
        (turns(f"first {AWS[:9]}", "\n", AWS[9:]), DataClass.C3),
        (turns("tutti\n", "Mario\n", "Rossi\n", "oggi"), DataClass.C2),
    ],
)
def test_what_is_split_over_texts_is_found(body: Any, expected: DataClass) -> None:
    assert found(body) is expected
    assert found(body, fragments=None) < expected  # each text by itself hides it


@pytest.mark.parametrize(
    "body",
    [
        turns("Quanto costa?", "Dieci euro.", "E Mario?", "Non so.", "Rossi di sera"),
        turns("4111 1111", "1111 1111", "carta"),  # check digits may arise by chance
        turns("il mio codice e' VRDGPP58", "T13D969W"),
        turns("", "", ""),
        turns(
            f"Mario {'parola ' * 200}Rossi", "fine"
        ),  # a long text cut down must not make a neighbour of its end
        {},
    ],
)
def test_seams_make_no_findings_of_neighbours(body: Any) -> None:
    assert found(body) is found(body, fragments=None)


def test_what_lies_inside_one_text_is_not_counted_twice() -> None:
    assert across([f"a {AWS}", "b"], FINDER, JudgedTexts()) is DataClass.C0
    assert across([AWS], FINDER, JudgedTexts()) is DataClass.C0
    assert across([], FINDER, JudgedTexts()) is DataClass.C0


def test_i7_a_fault_across_seams_closes() -> None:
    down = FakeClassifier(fault=RuntimeError("down"))
    with pytest.raises(RuntimeError):
        found(turns("a", "b"), fragments=down)
    assert found(turns("a", "b"), fragments=down, as_c3=True) is DataClass.C3


def test_many_small_texts_cost_a_bounded_multiple() -> None:
    """A request of single letters must not become hundreds of times its size before it is judged."""
    count, counter = 2_000, FakeClassifier()
    letters = Random(1).choices("abcdefghijklmnop", k=count)  # noqa: S311 - no keys
    across(letters, counter, JudgedTexts())
    assert sum(map(len, counter.seen)) <= count * (PIECES + 40)


@pytest.mark.parametrize("cut", [40, 60, 700, len(JWT) - 50, len(JWT) - 10])
def test_the_beginning_of_a_long_token_is_found_wherever_it_is_split(cut: int) -> None:
    """A token may be longer than what is looked at: its head by itself says what it is."""
    assert found(turns(f"token {JWT[:cut]}", f"{JWT[cut:]} ok")) is DataClass.C3


@pytest.mark.parametrize("piece", ["a\n", "a" * 85, "a" * 5_000, "a" * 300 + " "])
def test_long_words_and_white_space_at_seams_cost_a_bounded_multiple(piece: str) -> None:
    count, counter = 300, FakeClassifier()
    pieces = [f"{at:03}{piece}" for at in range(count)]
    across(pieces, counter, JudgedTexts())
    assert sum(map(len, counter.seen)) <= 2 * sum(map(len, pieces)) * (PIECES + 40)
    assert sum(map(len, counter.seen)) <= 2 * count * (4 * FARTHEST + 40)


def test_of_an_endless_word_only_so_much_is_looked_at() -> None:
    counter = FakeClassifier()
    across(["a" * 100_000, "b" * 100_000], counter, JudgedTexts())
    assert [*map(len, counter.seen)] == [2 * FARTHEST]


def test_texts_that_take_too_much_reading_hide_nothing_behind_them_and_taint_nothing() -> None:
    """Many windows are read together: where they are too much at once, each is read by itself."""
    slow = (
        "A-B-C-D-E-F|*-a*b*c*d*e*f%2eA\\x41A-B-C-D-E-F%2a\na~b~c~d~e~f\\x41&#46;A%7ca.b.c.d.e.f%2a_"
        "%2aa.b.c.d.e.f%7cZ91_2_3_4_5_6%2e~\na|b|c|d|e|f%2aa b c d e f%20\na b c d e f\n"
    )
    judged = JudgedTexts()
    texts = [f"{slow}{at}" for at in range(200)]
    assert FINDER.classify("".join(texts)).data_class is DataClass.C3
    assert across([*texts, f"first {AWS[:9]}", f"{AWS[9:]} then"], FINDER, judged) is DataClass.C3
    assert across([f"first {AWS[:9]}", f"{AWS[9:]} then"], FINDER, judged) is DataClass.C3
    assert across(["plain", "words"], FINDER, judged) is DataClass.C0


def test_a_credential_in_single_letters_is_found() -> None:
    assert across([*"key ", *AWS, *" ok"], FINDER, JudgedTexts()) is DataClass.C3
