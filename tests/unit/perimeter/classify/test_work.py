# SPDX-License-Identifier: Apache-2.0
"""How much is done for a text, in counts and not in seconds: what cannot be found is not looked for."""

import base64
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed
from runner.perimeter.classify import (
    RULES,
    Classifier,
    EchoIndex,
    Rule,
    classify_text,
    compile_registers,
    search,
    settle,
    views,
    words,
)
from runner.perimeter.classify import pattern as patterns
from runner.perimeter.classify.lexicon import LEXICON
from runner.perimeter.classify.model import Span, View
from runner.perimeter.classify.pattern import BLOCK, LOCAL, LONG
from runner.perimeter.classify.readings import MOST, ROOM, every_reading, forget_readings
from runner.perimeter.classify.surnames import is_called
from runner.perimeter.classify.views import fold
from runner.perimeter.classify.words import PART, Starts, parts_of, starts_of, words_of

SUBJECT = "Il diabete e la chemioterapia sono malattie, l'usura e' un reato."


WRITTEN = (
    *(
        "sig. Rossi",
        "dott. Aldo Neri",
        "via Po 1, 10100 Torino",
        "Rossi S.r.l.",
        "Studio Legale Bianchi",
        "diabete",
    ),
    *(
        "RSSMRA80A01F205X",
        "IT60X0542811101000000123456",
        "tel. 02 1234567",
        "333 1234567",
        "4111 1111 1111 1111",
    ),
    *("a@b.it", "password=a1b2!", "AKIAABCDEFGHIJKLMNOP", "R.G. 1/2020", "nato il 1/1/1980", "targa AB123CD"),
)


@pytest.fixture
def triggered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of each block that an automaton has read to see which triggers occur."""
    sizes: list[int] = []
    plain = patterns._Automaton.found

    def counted(self: patterns._Automaton, data: bytes) -> list[int]:
        sizes.extend([len(data)] * (len(data) <= BLOCK + LOCAL))
        return plain(self, data)

    monkeypatch.setattr(patterns._Automaton, "found", counted)
    return sizes


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of what each search of a pattern had still to read."""
    sizes: list[int] = []
    plain = patterns.Pattern.search

    def counted(
        self: patterns.Pattern, data: bytes, start: int = 0, end: int | None = None
    ) -> list[patterns.Span] | None:
        sizes.append((len(data) if end is None else end) - start)
        return plain(self, data, start, end)

    monkeypatch.setattr(patterns.Pattern, "search", counted)
    return sizes


def test_a_subject_is_not_looked_for_without_a_person(searched: list[int]) -> None:
    person = Rule(name="person", kind="person", data_class=DataClass.C2, pattern="Aldo Neri")
    classifier = Classifier((*LEXICON, person))
    assert classifier.classify(SUBJECT).data_class is DataClass.C0
    assert searched == []
    assert classifier.classify(f"{SUBJECT} Cosi' Aldo Neri.").data_class is DataClass.C3
    assert searched != []


def test_the_readings_of_a_text_are_made_once_for_rules_and_echoes() -> None:
    text = f"{SUBJECT} %41"
    echo = EchoIndex(b"k" * 16)
    echo.remember("una due tre quattro cinque sei sette otto nove", DataClass.C3)
    every_reading.cache_clear()
    Classifier().classify(text)
    assert echo.class_of(text) is DataClass.C0
    assert (every_reading.cache_info().misses, every_reading.cache_info().hits) == (1, 1)


@given(st.text())
def test_every_word_begins_where_it_is_said_to(text: str) -> None:
    data = fold(text).data
    words = words_of(data)
    starts = starts_of(data)
    assert [data[at : at + len(word)].lower() for at, word in zip(starts, words, strict=True)] == words


@given(st.text("ab ,.\n", max_size=80), st.lists(st.integers(0, 40), max_size=12))
def test_where_a_word_begins_is_the_same_however_often_and_in_whatever_order_it_is_asked(
    text: str, asked: list[int]
) -> None:
    data = fold(text).data
    table, starts = starts_of(data), Starts(data, words_of(data))
    for index in (each % len(table) for each in asked if table):
        assert starts[index] == table[index]


def test_the_words_of_a_context_are_looked_for_only_where_a_rule_asks() -> None:
    class Seen:
        asked = 0

        def Match(self, data: bytes) -> list[int]:  # noqa: N802 - the name in google-re2
            assert data
            self.asked += 1
            return []

    rule = Rule(
        name="n", kind="n", data_class=DataClass.C2, pattern="[0-9]+", context="no", needs_context=True
    )
    classifier, seen = Classifier([rule]), Seen()
    classifier._vocabulary._together._set = seen
    classifier.classify("no word of it")
    assert seen.asked == 0
    assert classifier.classify("no 1").data_class is DataClass.C2
    assert seen.asked == 1


def test_a_candidate_is_checked_once_for_all_rules_and_readings() -> None:
    asked: list[str] = []

    def check(candidate: str) -> int:
        asked.append(candidate)
        return len(candidate)

    rules = [
        Rule(name=name, kind=name, data_class=DataClass.C2, pattern="[0-9]{6}", check=check, distinctive=True)
        for name in ("one", "two")
    ]
    found = Classifier(rules).classify("123456 \u200b654321 123456").spans
    assert [span.kind for span in found] == ["one", "two"] * 3
    assert asked == ["123456", "654321"]


def test_what_a_rule_has_found_is_not_checked_by_another_of_its_kind_and_class() -> None:
    """I8: what stands inside something of a lower class still counts."""
    asked: list[str] = []

    def check(candidate: str) -> int:
        asked.append(candidate)
        return len(candidate)

    def rule(name: str, pattern: str, data_class: DataClass = DataClass.C2) -> Rule:
        return Rule(
            name=name, kind="k", data_class=data_class, pattern=pattern, check=check, distinctive=True
        )

    rules = [rule("one", "[0-9]{6}"), rule("two", "[3-9]{2,4}"), rule("higher", "[4]", DataClass.C3)]
    found = Classifier(rules).classify("123456 9999").spans
    assert asked == ["123456", "9999", "4"]
    assert [(span.start, span.rule) for span in found] == [(0, "one"), (3, "higher"), (7, "two")]
    assert Classifier(rules).classify("123456").data_class is DataClass.C3
    assert Classifier(rules).classify("123 56").data_class is DataClass.C2


def test_the_verdicts_that_are_kept_are_bounded() -> None:
    verdicts = search.Verdicts()
    for number in range(3 * search._VERDICTS):
        assert verdicts.of(len, b"%d" % number) == len(str(number))
        assert len(verdicts._known) <= search._VERDICTS


def test_rules_that_search_for_the_same_share_an_automaton() -> None:
    assert patterns.compile_pattern("[0-9]{11}x") is patterns.compile_pattern("[0-9]" + "{11}x")


@pytest.mark.parametrize(
    ("name", "without", "holding"),
    [
        ("case-number", "in largo uso, urgente", "procedimento R.G. 1234/2021"),
        ("pec", "scrivere ad a@b.it, certo", "scrivere ad a@pec.b.it"),
    ],
)
def test_a_rule_whose_words_are_not_there_does_not_search(
    searched: list[int], name: str, without: str, holding: str
) -> None:
    classifier = Classifier([rule for rule in RULES if rule.name == name])
    assert classifier.classify(without).spans == ()
    assert searched == []
    assert len(classifier.classify(holding).spans) == 1


APART = (
    "A-B-C-D-E-F|*-a*b*c*d*e*f%2eA\\x41A-B-C-D-E-F%2a\na~b~c~d~e~f\\x41&#46;A%7ca.b.c.d.e.f%2a_"
    "%2aa.b.c.d.e.f%7cZ91_2_3_4_5_6%2e~\na|b|c|d|e|f%2aa b c d e f%20\na b c d e f\n"
)


@pytest.mark.parametrize("size", [2_000, 20_000])
def test_all_readings_together_are_bounded_and_what_needs_more_may_not_leave(size: int) -> None:
    text = (APART * size)[:size]
    readings = every_reading(text)
    assert sum(len(reading.data) for reading in readings[:-2]) < MOST * size + ROOM
    assert [span.rule for span in Classifier().classify(text).spans] == ["more-than-is-read"]


def test_a_short_text_in_every_way_of_writing_is_read_to_its_end() -> None:
    text = APART[:60]
    assert Classifier().classify(text).spans == ()
    readings = every_reading(text)
    assert len(readings) > 20
    assert all(len(reading.pieces) != 1 or reading.parent for reading in readings)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.trigger], ids=lambda rule: rule.name)
def test_no_trigger_counts_far(rule: Rule) -> None:
    """I6: what counts to 160 from every place has more states in one automaton than there is memory for."""
    counts = [int(most) for most in re.findall(r"\{[0-9]*,?([0-9]+)\}", rule.trigger)]
    assert max(counts, default=0) <= 80


@pytest.mark.parametrize(
    "written",
    ["luca.galli@example.org", "IT60X0542811101000000123456", "+44 20 7946 0123", "RSSMRA80A01F205X"],
)
def test_nothing_is_overlooked_where_two_blocks_of_a_long_text_meet(written: str) -> None:
    """I6: a trigger may stand behind the seam, and what it belongs to begin before it."""
    for before in range(len(written) + 2):
        text = f"{('parola ' * BLOCK)[: BLOCK - before]} {written}{' parola' * BLOCK}"
        assert [text[span.start : span.end] for span in classify_text(text).spans] == [written]


def test_the_rules_that_numbers_wake_do_not_depend_on_the_digits() -> None:
    """I6's bound: an automaton that tells digits apart has a state for every row of digits it has seen."""
    prefilter = Classifier()._prefilter
    woken = {prefilter.hits(f" {digit}".encode() * 3 + digit.encode() * 12 + b" ") for digit in "0123456789"}
    assert len(woken) == 1


def test_a_reading_is_searched_only_where_it_is_not_as_in_what_it_was_made_from(
    triggered: list[int],
) -> None:
    """I6's bound: one escape in a long text does not double the work, and an escape of an escape neither."""
    classifier = Classifier(
        [Rule(name="n", kind="n", data_class=DataClass.C2, pattern="xxx", distinctive=True)]
    )
    text = "parola " * 20_000
    classifier.classify(text)
    once = sum(triggered)
    assert once > len(text)
    triggered.clear()
    found = classifier.classify(f"{text}x%78x x%2578x {text}").spans
    assert [span.view for span in found] == [View.UNESCAPED] * 2
    assert sum(triggered) < 2 * once + 20 * patterns._APART * BLOCK


def test_a_long_text_is_read_by_several_automata_and_a_short_one_by_one(triggered: list[int]) -> None:
    """I6's bound: one has a state for each way in which all triggers occur together. Noise has all."""
    prefilter = Classifier()._prefilter
    read = {}
    for size in (LONG - 1, LONG):
        prefilter.places(b"x" * size, lambda *_: True)
        read[size] = sum(triggered)
        triggered.clear()
    assert read[LONG - 1] < 1.2 * LONG
    assert patterns._APART * LONG < read[LONG] < 1.2 * patterns._APART * LONG


@given(st.lists(st.sampled_from(WRITTEN), max_size=8).map(" ".join), st.binary(max_size=40))
def test_several_automata_see_what_one_sees(written: str, noise: bytes) -> None:
    """I6: how long a text is makes no difference for what is found in it."""
    data = fold(f"{written} {noise.decode('latin-1')}").data
    assert Classifier()._prefilter._found_apart(data) == set(Classifier()._prefilter._together.found(data))


@pytest.mark.parametrize("hidden", ["%41", "&#65;", "A\u200b", "%2541"])
@pytest.mark.parametrize("distance", [0, 70, BLOCK - 100, BLOCK, 2 * BLOCK + 50])
def test_what_is_disguised_is_found_wherever_it_stands_in_a_long_text(hidden: str, distance: int) -> None:
    """I6: also at a seam of two blocks, and where the word beside the number is what was disguised."""
    code, filler = f"RSSMR{hidden}80A01F205X", ("parola " * BLOCK)[:distance]
    number = f"p{'%2E' if '%' in hidden else '.'}iva 01114601006"
    text = f"{'parola ' * BLOCK}{filler} codice fiscale {code} {filler} {number} {'parola ' * BLOCK}"
    found = classify_text(text).spans
    assert [span.kind for span in found] == ["codice_fiscale", "partita_iva"]
    assert text[found[0].start : found[0].end] == code


def test_a_run_of_escapes_is_one_piece_of_its_reading() -> None:
    readings = every_reading("parola " + "%41" * 5_000 + " parola")
    assert [len(reading.pieces) for reading in readings] == [0, 3]


@pytest.mark.parametrize("pattern", ["^xx", "xx$"])
def test_what_is_left_out_at_either_end_of_a_text_is_seen(pattern: str) -> None:
    """I6: a line begins and ends beside what cannot be seen."""
    rule = Rule(name="n", kind="n", data_class=DataClass.C2, pattern=pattern, distinctive=True)
    text = f"\u200bxx{' parola' * BLOCK} xx\u200b"
    assert [span.view for span in Classifier([rule]).classify(text).spans] == [View.JOINED]


def test_a_long_encoding_is_searched_throughout() -> None:
    """I6: all of it is new, also where neither end of it is near."""
    inside = f"{'parola ' * BLOCK}codice fiscale RSSMRA80A01F205X{' parola' * BLOCK}"
    found = classify_text(f"ecco {base64.b64encode(inside.encode()).decode()}").spans
    assert [span.kind for span in found] == ["codice_fiscale"]


@pytest.mark.parametrize("around", ["c%6Fdice fiscale {}", "{} c%6Fdice fiscale"])
def test_a_word_beside_an_encoding_counts_though_it_is_disguised(around: str) -> None:
    """I6: the encoding is as it was, and what corroborates it is new."""
    blob = base64.b64encode(b"alfa beta RSSMRA80A01F205X gamma").decode()
    text = f"{'parola ' * BLOCK}{{}}{' parola' * BLOCK}"
    assert classify_text(text.format(blob)).spans == ()
    assert [span.kind for span in classify_text(text.format(around.format(blob))).spans] == ["codice_fiscale"]


def test_a_key_of_any_length_is_found_as_a_whole_though_an_escape_stands_far_behind_its_beginning() -> None:
    """I12: what is replaced for redaction is all of it."""
    body = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0\n" * (2 * BLOCK // 37)
    key = f"-----BEGIN PRIVATE KEY-----\n{body}QUJD%2BREVG\n{body}-----END PRIVATE KEY-----"
    text = f"{'parola ' * BLOCK}\n{key}\n{'parola ' * BLOCK}"
    found = [span for span in classify_text(text).spans if span.kind == "private_key"]
    assert key in {text[span.start : span.end] for span in found}


def test_an_encoding_is_opened_once_however_many_readings_show_it() -> None:
    """I7's price: what was opened at the first level is not packed beyond reading at the fourth."""
    blob = base64.b64encode(b"una parola e ancora una parola, senza altro").decode()
    text = f"{blob} {'parola ' * BLOCK} %252541 {'parola ' * BLOCK}"
    assert classify_text(text).spans == ()
    assert [reading.data for reading in every_reading(text)].count(
        fold(base64.b64decode(blob).decode()).data
    ) == 1


def test_an_echo_keeps_only_what_it_knows_of_a_long_text() -> None:
    """The bound on memory: a text of many different words has as many fingerprints, and none is kept."""
    index = EchoIndex(b"k" * 16)
    index.remember("una due tre quattro cinque sei sette otto nove", DataClass.C3)
    words = " ".join(f"una due tre quattro parola{number}" for number in range(20_000))
    every_reading(words)
    assert all(reading.words for reading in every_reading(words))
    tracemalloc.start()
    try:
        assert index.class_of(words) is DataClass.C0
        assert tracemalloc.get_traced_memory()[1] < 90 * 5 * 20_000
    finally:
        tracemalloc.stop()


def test_a_client_with_a_capital_is_called_without_a_search_for_titles(searched: list[int]) -> None:
    """Whatever stands before a name in capitals, one look at the last words says that it calls somebody."""
    data = b"Ne abbiamo parlato con Rossini, poi con il sig. Rossini e con rossini."
    assert is_called(data, 23, 30, titled=False)
    assert searched == []
    assert is_called(data, 48, 55, titled=True)
    assert not is_called(data, 62, 69, titled=False)
    assert searched != []


def test_findings_that_nothing_overrules_leave_no_trace_of_their_place() -> None:
    """A text full of telephones holds a table of places only where a check digit stands among them."""
    phones = [Span(at, at + 9, "phone", "phone", DataClass.C2) for at in range(0, 1000, 10)]
    card = Span(10, 19, "card", "payment-card", DataClass.C2)
    assert settle._kinds(phones) == {}
    assert settle._kinds([*phones, card]) == {(10, 19): {"card"}}
    assert settle.without_overruled([*phones, card]) == [phones[0], *phones[2:], card]


@given(st.text("ab ,.\n", max_size=200))
def test_the_words_of_a_text_are_the_same_part_by_part(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "PART", 16)
        parts = list(parts_of(data := fold(text).data))
    assert b"".join(parts) == data
    assert [word for part in parts for word in words_of(part)] == words_of(data)
    assert all(len(part) >= 16 for part in parts[:-1])


CLIENTS = Listed(file="clients", line=1, names=("Aldo Neri",))
OWN = Listed(file="own", line=1, names=("Studio Legale Verdi di Torino",))


def test_the_words_of_a_long_text_are_not_all_alive_at_a_time() -> None:
    """The bound on memory, and on time where a cache ends: who is no client is no word that is kept."""
    text, registers = (
        "4111 " * (8 * PART),
        compile_registers(clients=[CLIENTS], own=[OWN], public=[], key=b"k" * 16),
    )
    echo, reading = EchoIndex(b"k" * 16, registers=registers), every_reading(text)[0]
    echo.remember("una due tre quattro cinque sei sette otto nove", DataClass.C3)
    tracemalloc.start()
    try:
        assert list(registers.clients.find(reading)) == []
        assert tracemalloc.get_traced_memory()[1] < 30 * PART
        assert echo.class_of(text) is DataClass.C0
        assert tracemalloc.get_traced_memory()[1] < 4 * len(text)  # probes; the words alone would be nine
    finally:
        tracemalloc.stop()
        forget_readings()


@pytest.mark.parametrize("size", range(1, 40, 3))
def test_what_lies_over_the_edge_of_two_parts_is_seen(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """I6: clients, echoes and the practice's own entries, wherever the words of a text are cut."""
    for module in (words, views):
        monkeypatch.setattr(module, "PART", size)
    registers = compile_registers(clients=[CLIENTS], own=[OWN], public=[], key=b"k" * 16)
    echo = EchoIndex(b"k" * 16, registers=registers)
    echo.remember("la perizia dice che il ponte non regge il peso", DataClass.C3)
    text = "Scrive Aldo Neri: perizia dice che il ponte studio legale Verdi di Torino non regge il, disse."
    every_reading.cache_clear()
    assert [(span.start, span.kind) for span in Classifier((), registers).classify(text).spans] == [
        (7, "client")
    ]
    assert echo.class_of(text) is DataClass.C3
    assert echo.class_of(text.replace("Verdi", "Bianchi")) is DataClass.C0
    assert echo.class_of("Dicono: la perizia dice che il ponte non regge, forse.") is DataClass.C3


def test_all_of_a_long_text_counts_as_asked_about_though_its_beginning_repeats_something() -> None:
    """I6: what is remembered later and stands at its end makes the answer that was given an old one."""
    echo = EchoIndex(b"k" * 16)
    echo.remember("una due tre quattro cinque sei", DataClass.C3)
    end = "sette otto nove dieci undici dodici tredici quattordici"
    assert echo.class_of(f"una due tre quattro cinque sei {'parola ' * PART} {end}") is DataClass.C0
    version = echo.version
    echo.remember(end, DataClass.C3)
    assert echo.version is not version
