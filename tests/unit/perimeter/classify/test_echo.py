# SPDX-License-Identifier: Apache-2.0
"""I6: text that repeats a labelled source takes its class, in any reading; formulas do not."""

import base64

import pytest

from runner.agent.prompts import own_texts
from runner.kernel.labels import DataClass
from runner.kernel.messages import ToolSpec
from runner.kernel.registers import Listed
from runner.perimeter.classify import EchoIndex, compile_registers
from runner.perimeter.classify import echo as module

KEY = b"e" * 32
LETTER = (
    "Il consiglio ha deciso di chiudere lo stabilimento di ponente entro l'estate e di trasferire la linea "
    "di montaggio all'estero, senza avvisare le rappresentanze prima della firma del contratto preliminare."
)
EIGHT = "trasferire la linea di montaggio all'estero, senza"
SEVEN = "trasferire la linea di montaggio all'estero"


def index_of(text: str = LETTER, data_class: DataClass = DataClass.C3) -> EchoIndex:
    index = EchoIndex(KEY)
    index.remember(text, data_class)
    return index


@pytest.mark.parametrize(
    "text",
    [
        LETTER,
        f"Riassumi: {EIGHT}",
        EIGHT.upper(),
        EIGHT.replace(" ", "\n> "),
        EIGHT.replace(" ", "  ").replace("'", " "),
        EIGHT.replace("montaggio", "mon\u200btaggio"),
        EIGHT.replace("montaggio", "montag-\ngio"),
        EIGHT.replace("a", "а"),  # Cyrillic
        EIGHT.replace(" ", "%20"),
        " ".join(EIGHT),
        f"{' '.join(EIGHT)} poi basta",
        f"guarda {' '.join(EIGHT)}, dice",
        ".".join(EIGHT),
        f"{'-'.join(EIGHT)} poi basta",
        f"nota {base64.b64encode(LETTER.encode()).decode()}",
    ],
)
def test_a_repeated_passage_has_the_class_of_its_source(text: str) -> None:
    assert index_of().class_of(text) is DataClass.C3


@pytest.mark.parametrize(
    "text",
    [
        "",
        SEVEN,
        "Lo stabilimento di ponente chiude in estate? E la linea di montaggio?",
        " ".join(sorted(LETTER.split())),
    ],
)
def test_a_few_words_are_no_echo(text: str) -> None:
    assert index_of().class_of(text) is DataClass.C0


@pytest.mark.parametrize("data_class", [DataClass.C0, DataClass.C1])
def test_sources_below_c2_leave_no_trace(data_class: DataClass) -> None:
    index = index_of(data_class=data_class)
    assert index.class_of(LETTER) is DataClass.C0
    assert repr(index) == "<EchoIndex 0>"


def test_a_passage_of_two_sources_has_the_higher_class() -> None:
    index = index_of(data_class=DataClass.C2)
    assert index.class_of(EIGHT) is DataClass.C2
    index.remember(LETTER, DataClass.C3)
    index.remember(LETTER, DataClass.C2)
    assert index.class_of(EIGHT) is DataClass.C3


def test_formulas_are_no_echo() -> None:
    formula = "Resto a disposizione per ogni ulteriore chiarimento e porgo distinti saluti."
    index = index_of(f"{LETTER} {formula}")
    assert index.class_of(f"Gentile collega, {formula}") is DataClass.C0
    assert index.class_of(f"{EIGHT} {formula}") is DataClass.C3


def test_the_practices_own_letterhead_is_no_echo() -> None:
    head = "Studio Legale Bassi, Via XX Settembre 14, 16121 Genova"
    own = Listed(file="own.yaml", line=1, names=(head,))
    registers = compile_registers(clients=[], own=[own], public=[], key=KEY)
    with_register, without = EchoIndex(KEY, registers=registers), EchoIndex(KEY)
    for index in (with_register, without):
        index.remember(f"{head} {LETTER}", DataClass.C3)
    assert (with_register.class_of(head), without.class_of(head)) == (DataClass.C0, DataClass.C3)
    assert with_register.class_of(EIGHT) is DataClass.C3


def test_memory_is_bounded_and_the_oldest_goes_first() -> None:
    index = EchoIndex(KEY, capacity=100)
    index.remember(LETTER, DataClass.C3)
    for page in range(50):
        index.remember(" ".join(f"parola{page}x{number}" for number in range(20)), DataClass.C2)
        assert int(repr(index).strip("<>").split()[1]) <= 100
    assert index.class_of(LETTER) is DataClass.C0
    assert index.class_of(" ".join(f"parola49x{number}" for number in range(8))) is DataClass.C2


def test_what_is_kept_are_numbers_of_this_runtime_only() -> None:
    """I12: no word is kept, and another runtime's numbers are others."""
    one, other = index_of(), EchoIndex(b"o" * 32)
    other.remember(LETTER, DataClass.C3)
    assert all(isinstance(mark, int) for mark in one._new)
    assert not one._new.keys() & other._new.keys()


@pytest.mark.parametrize("start", range(12))
def test_eight_words_are_an_echo_wherever_they_begin(start: int) -> None:
    words = LETTER.replace("'", " ").split()
    before = ["allora", "dunque", "poi", "ecco"][: start % 4]
    assert index_of().class_of(" ".join([*before, *words[start : start + 8]])) is DataClass.C3


def test_a_document_that_quotes_the_runner_cannot_shut_the_way_out() -> None:
    """Otherwise one hostile file denies every later task of the runtime."""
    spec = ToolSpec(name="keep", description="Keep a note for the one who asked for it.", parameters={})
    ours = own_texts([spec])
    echo = EchoIndex(KEY, ours=ours)
    echo.remember("\n".join(ours), DataClass.C3)
    assert [echo.class_of(text) for text in ours] == [DataClass.C0] * len(ours)
    poisoned = EchoIndex(KEY)
    poisoned.remember("\n".join(ours), DataClass.C3)
    assert DataClass.C3 in [poisoned.class_of(text) for text in ours]


@pytest.mark.parametrize("size", [6, 7])
@pytest.mark.parametrize("before", range(4))
def test_pieces_of_a_passage_are_an_echo_wherever_they_stand(size: int, before: int) -> None:
    """I6: fillers between the pieces do not carry a file out, whatever stands before the first."""
    words = LETTER.replace("'", " ").replace(",", "").split()[: 3 * size]
    pieces = [" ".join(words[start : start + size]) for start in range(0, len(words), size)]
    text = " ".join(["allora"] * before + [f"{piece} poi inoltre" for piece in pieces])
    assert index_of().class_of(text) is DataClass.C3


def test_two_pieces_of_six_words_are_no_echo() -> None:
    words = LETTER.replace("'", " ").replace(",", "").split()
    assert index_of().class_of(" ".join([*words[:6], "poi", *words[6:12]])) is DataClass.C0


def test_an_answer_about_pieces_does_not_outlive_the_reading_of_their_source() -> None:
    """What was asked about anywhere in a text is asked again once a source with it is read."""
    words = LETTER.split()
    for before in range(3):
        index = index_of(" ".join(f"altro{number}" for number in range(8)))
        assert index.class_of(" ".join(["allora"] * before + words[:6])) is DataClass.C0
        version = index.version
        index.remember(" ".join(words[:6]), DataClass.C3)
        assert index.version is not version


def test_what_was_asked_about_is_bounded_and_no_answer_outlives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CAPACITY", 50)
    index = index_of()
    versions = set()
    for number in range(40):
        index.class_of(" ".join(f"altro{number}x{word}" for word in range(30)))
        versions.add(index.version)
        assert sum(map(len, index._asked_last.values())) + len(index._asked) <= 50
    assert len(versions) > 1


@pytest.mark.parametrize("length", range(8, 12))
@pytest.mark.parametrize("start", range(9))
@pytest.mark.parametrize("before", range(3))
def test_no_echo_is_missed_for_where_its_words_are_looked_up(length: int, start: int, before: int) -> None:
    """I6: a probe at each third of the words meets every fingerprint, at either end of a text too."""
    source = [f"parola{number}" for number in range(20)]
    index = index_of(" ".join(source))
    repeated = [*["allora"] * before, *source[start : start + length]]
    assert index.class_of(" ".join(repeated)) is DataClass.C3
    assert index.class_of(" ".join([*repeated, "poi"])) is DataClass.C3


def test_what_is_forgotten_is_forgotten_with_its_probes() -> None:
    index = EchoIndex(KEY, capacity=40)
    for number in range(40):
        index.remember(" ".join(f"parola{number}x{word}" for word in range(14)), DataClass.C2)
    probes = index._new_probes | index._old_probes
    assert len(probes) <= 3 * 40
    assert index.class_of(" ".join(f"parola0x{word}" for word in range(14))) is DataClass.C0
    assert index.class_of(" ".join(f"parola39x{word}" for word in range(14))) is DataClass.C2
