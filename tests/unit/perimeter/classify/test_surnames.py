# SPDX-License-Identifier: Apache-2.0
"""I6: a client called by surname is found; a street, a firm or a figure of history of that name is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed
from runner.perimeter.classify import Classifier, compile_registers

NAMES = (
    "Mario Rossini",
    "Bardelli Ugo",
    "Anna Costa",
    "Paolo Conti",
    "Ida Vannetti Corsaro",
    "Marco Di Stefano",
    "Nicolo D'Avossa",
    "Sean O'Rourke",
    "Piet van den Brink",
)


def classifier(*names: str, public: tuple[str, ...] = (), **said: object) -> Classifier:
    clients = [Listed(file="clients", line=1, names=(name,), **said) for name in names]  # type: ignore[arg-type]
    known = [Listed(file="public", line=1, names=(name,)) for name in public]
    return Classifier(registers=compile_registers(clients=clients, own=(), public=known, key=b"k" * 32))


PRACTICE = classifier(*NAMES, public=("Gioachino Rossini", "Avv. Bardelli"))


def called(text: str, by: Classifier = PRACTICE) -> list[str]:
    spans = by.classify(text).spans
    return [text[span.start : span.end] for span in spans if span.rule == "client-register-surname"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Rossini ha richiamato.", "Rossini"),
        ("ok, ho visto la mail di Rossini", "Rossini"),
        ("il Rossini paga domani", "Rossini"),
        ("Int. 3 ROSSINI 84,20", "ROSSINI"),
        ("Rossini's appeal is listed", "Rossini"),
        ("causa Rossini: rinviata", "Rossini"),
        ("il fascicolo Rossini-Gatti", "Rossini"),
        ("ho sentito la sig.ra rossini", "rossini"),
        ("parere dell'avv. Rossini", "Rossini"),
        ("Via Roma. Rossini non risponde", "Rossini"),
        ("Bardelli ha firmato", "Bardelli"),
        ("viene Vannetti da sola", "Vannetti"),
        ("viene Corsaro da sola", "Corsaro"),
        ("la sig.ra Costa attende", "Costa"),
        ("Mr Conti is here", "Conti"),
        ("chiede Di Stefano se puo", "Di Stefano"),
        ("chiede D'Avossa se puo", "D'Avossa"),
        ("so O'Rourke said", "O'Rourke"),
        ("Mr van den Brink agreed", "van den Brink"),
    ],
)
def test_a_client_called_by_surname_is_found_at_its_place(text: str, name: str) -> None:
    """I6."""
    spans = PRACTICE.classify(text).spans
    assert name in [text[span.start : span.end] for span in spans if span.kind == "client"]
    assert PRACTICE.classify(text).data_class is DataClass.C2


@pytest.mark.parametrize(
    "text",
    [
        "in via Rossini",
        "via Rossini, 12",
        "in Via Gioachino Rossini",
        "il Teatro Rossini",
        "TEATRO ROSSINI",
        "lo Studio Rossini",
        "fornitore Rossini S.r.l.",
        "Rossini Group",
        "l'avv. Giulia Rossini",
        "le opere di Gioachino Rossini",
        "la memoria dell'Avv. Bardelli",
        "rossini e verdi in cartellone",
        "Costa 300 euro. Conti alla mano, la Costa Azzurra",
        "scrivo di Stefano e Mario, Anna, Marco",
        "Rossiniano, Bardellini",
    ],
)
def test_what_is_only_called_like_a_client_is_none(text: str) -> None:
    assert called(text) == []


def test_a_line_that_is_not_looked_for_by_surname_is_found_by_the_whole_name_only() -> None:
    by = classifier("Mario Rossini", by_surname=False)
    assert called("Rossini ha richiamato", by) == []
    assert by.classify("il signor Mario Rossini").spans[0].kind == "client"
    assert by.version != classifier("Mario Rossini").version


def test_a_surname_alone_is_of_the_class_of_its_line() -> None:
    by = classifier("Mario Rossini", data_class=DataClass.C3)
    assert by.classify("Rossini ha richiamato").data_class is DataClass.C3
    assert by.classify("Studio Rossini").data_class is DataClass.C0


def test_the_whole_name_says_which_client_of_that_surname_is_meant() -> None:
    """I8: one of C3 in the middle of the name of another counts all the same."""
    clients = [("Mario Rossini", DataClass.C2), ("Ada Rossini", DataClass.C3), ("Ida Bardelli", DataClass.C3)]
    listed = [Listed(file="f", line=1, names=(name,), data_class=said) for name, said in clients]
    by = Classifier(registers=compile_registers(clients=listed, own=(), public=(), key=b"k" * 32))
    classes = [
        by.classify(text).data_class for text in ("Mario Rossini", "Rossini", "Mario Bardelli Rossini")
    ]
    assert classes == [DataClass.C2, DataClass.C3, DataClass.C3]


def test_no_part_of_a_firm_is_looked_for_by_itself() -> None:
    assert called("Bardelli ha firmato", classifier("Officine Bardelli S.r.l.")) == []


@given(st.text(max_size=40), st.lists(st.sampled_from((*NAMES, "Rossini", "di", "via", " ", "'", "."))))
def test_every_text_is_judged_and_every_span_lies_in_it(odd: str, pieces: list[str]) -> None:
    text = odd + " ".join(pieces) + odd
    assert all(0 <= span.start < span.end <= len(text) for span in PRACTICE.classify(text).spans)


KEYBOARDS = classifier(
    "Otto Wei\u00df",
    "J\u00fcrgen M\u00fcller",
    "S\u00f8ren Kj\u00e6rgaard",
    "Luigi De Biasio",
    "Anna Zorzetto",
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Weiss paga", "Weiss"),
        ("WEISS paga", "WEISS"),
        ("Wei\u00df paga", "Wei\u00df"),
        ("Mueller paga", "Mueller"),
        ("Muller paga", "Muller"),
        ("M\u00fcller paga", "M\u00fcller"),
        ("Kjaergaard paga", "Kjaergaard"),
        ("DeBiasio paga", "DeBiasio"),
        ("Cliente: zorzetto", "zorzetto"),
        ('{"cliente": "zorzetto"}', "zorzetto"),
    ],
)
def test_i6_a_surname_is_found_as_other_keyboards_and_forms_write_it(text: str, name: str) -> None:
    assert called(text, KEYBOARDS) == [name]


def test_a_label_makes_no_ordinary_word_a_surname() -> None:
    assert called("Cliente: costa") == []
