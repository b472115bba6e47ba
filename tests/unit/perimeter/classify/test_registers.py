# SPDX-License-Identifier: Apache-2.0
"""I6: a client's name is found however it is written; the practice's own and public contacts are not."""

import base64
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.errors import ConfigError
from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed
from runner.perimeter.classify import Classifier, Registers, View, compile_registers
from runner.perimeter.classify.registers import _ends, _left, is_person, one_slip

KEY = b"k" * 32
CODE = "VRDGPP58T13D969W"


def listed(*names: str, data_class: DataClass = DataClass.C2, line: int = 1) -> Listed:
    return Listed(file="register.yaml", line=line, names=names, data_class=data_class)


def registers(*, clients: list[Listed] = [], own: list[Listed] = [], public: list[Listed] = []) -> Registers:  # noqa: B006 - read only
    return compile_registers(clients=clients, own=own, public=public, key=KEY)


CLIENTS = Classifier(
    registers=registers(
        clients=[
            listed("Mario Rossi"),
            listed("Officine Marassi S.r.l.", "OffMar"),
            listed("Giulia Elena Bianchi", data_class=DataClass.C3),
            listed("Condominio Via Garibaldi 12"),
            listed("Nicolò Dell'Acqua"),
            listed("Greenfield Ltd"),
        ]
    )
)


def found(text: str, classifier: Classifier = CLIENTS) -> set[tuple[str, str]]:
    spans = classifier.classify(text).spans
    return {(span.rule, text[span.start : span.end]) for span in spans if span.kind == "client"}


@pytest.mark.parametrize(
    "name",
    [
        "Mario Rossi",
        "ROSSI MARIO",
        "rossi, mario",
        "Mario\nRossi",
        "Mario\r\n   Rossi",
        "Mаriо Rоssi",  # Cyrillic vowels
        "Ｍａｒｉｏ Ｒｏｓｓｉ",
        "Mario Giuseppe Rossi",
        "Ma\u200brio Ros\xadsi",
        "officine marassi",
        "OFFICINE MARASSI",
        "OffMar",
        "condominio di Via Garibaldi n. 12",
        "NICOLO' DELL’ACQUA",
        "Greenfield",
        "MarioRossi",
    ],
)
def test_a_client_is_found_at_its_place(name: str) -> None:
    assert found(f"Ho visto {name}, ieri.") == {("client-register", name)}


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("Mrio Rossi", "client-register-slip"),
        ("Mario Rosi", "client-register-slip"),
        ("Marioo Rossi", "client-register-slip"),
        ("Maroi Rossi", "client-register-slip"),
        ("R0ssi Mario", "client-register-slip"),
        ("Officina Marassi", "client-register-slip"),
        ("M. Rossi", "client-register-initial"),
    ],
)
def test_one_slip_or_an_initial_does_not_hide_a_client(name: str, rule: str) -> None:
    assert found(f"Ho visto {name}, ieri.") == {(rule, name)}


def test_two_letters_of_a_short_word_that_changed_places_hide_no_client() -> None:
    classifier = Classifier(registers=registers(clients=[listed("Luca Bianchi")]))
    assert [span.rule for span in classifier.classify("Ho visto Lcua Bianchi.").spans] == [
        "client-register-slip"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Maria Verdi e Luca Rossini",
        "rossi di sera, bel tempo si spera, disse Mario",
        "lavori a costa zero e a rossi bordi",  # a small letter is no initial
        "Condominio Via Garibaldi 14",
        "Condominio Via Mazzini 12",
        "le officine di via Marassi nuova",
        "Marassi officine",
        "il campo e' verde: green field",
    ],
)
def test_what_only_looks_like_a_client_is_none(text: str) -> None:
    assert found(text) == set()


@pytest.mark.parametrize(
    ("disguised", "view"),
    [
        ("M a r i o   R o s s i", View.SQUEEZED),
        ("M-a-r-i-o-R-o-s-s-i", View.SQUEEZED),
        ("Mario Ros-\nsi", View.SQUEEZED),
        ("%4dario%20Rossi", View.UNESCAPED),
        ("%D0%9Cario Rossi", View.UNESCAPED),  # a Cyrillic M in UTF-8
        ("M=61rio R=6Fssi", View.UNESCAPED),
        ("Mar=\nio Rossi", View.UNESCAPED),
        ("&#77;ario Rossi", View.UNESCAPED),
        (base64.b64encode(b"per conto di Mario Rossi oggi").decode().rstrip("="), View.DECODED),
        (
            base64.b64encode(gzip.compress(b"il cliente Mario Rossi " * 9, mtime=0)).decode().rstrip("="),
            View.DECODED,
        ),
        (gzip.compress(b"il cliente Mario Rossi " * 9, mtime=0).hex(), View.DECODED),
    ],
)
def test_no_encoding_hides_a_client(disguised: str, view: View) -> None:
    text = f"Nota: {disguised}: basta."
    spans = [span for span in CLIENTS.classify(text).spans if span.kind == "client"]
    assert (disguised, view) in [(text[span.start : span.end], span.view) for span in spans]


def test_overlapping_names_are_each_found() -> None:
    both = Classifier(
        registers=registers(clients=[listed("Anna Maria Galli"), listed("Galli Costruzioni S.p.A.")])
    )
    assert found("Anna Maria Galli Costruzioni", both) == {
        ("client-register", "Anna Maria Galli"),
        ("client-register", "Galli Costruzioni"),
    }


def test_names_that_run_on_are_told_once_each() -> None:
    """I6: a text of nothing but clients is all of it found, by every other of the names it can be read as."""
    text = "Mario Rossi " * 50
    assert found(text) == {("client-register", "Mario Rossi")}
    spans = [span for span in CLIENTS.classify(text).spans if span.kind == "client"]
    assert [span.start for span in spans] == list(range(0, len(text), len("Mario Rossi ")))


WORDS = ["Mario", "Rossi", "Nicolò", "Dell'Acqua", "Giulia", "Elena", "Bianchi", "e", "M.", "Rosi", "vide"]


@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_no_word_of_a_client_is_lost_where_names_run_into_each_other(words: list[str]) -> None:
    """I6: words that alone are a client's are covered, by its class, in whatever text they stand."""
    text = " ".join(words)
    spans = [span for span in CLIENTS.classify(text).spans if span.kind == "client"]
    for size in (2, 3):
        for at in range(len(words) - size + 1):
            start = len(" ".join(words[:at])) + (at > 0)
            alone = " ".join(words[at : at + size])
            for mention in CLIENTS.classify(alone).spans:
                for letter in range(mention.start, mention.end) if mention.kind == "client" else ():
                    if alone[letter].isalnum():
                        assert any(
                            span.start <= start + letter < span.end and span.data_class >= mention.data_class
                            for span in spans
                        )


def test_the_class_is_the_lines_own() -> None:
    assert CLIENTS.classify("per Giulia Bianchi").data_class is DataClass.C3
    assert CLIENTS.classify("per Mario Rossi").data_class is DataClass.C2


def test_a_subject_beside_a_client_is_about_somebody() -> None:
    """A diagnosis alone is a topic; beside a client's name it is a secret (C3)."""
    assert CLIENTS.classify("Effetti del tamoxifene nel carcinoma").data_class is DataClass.C0
    assert CLIENTS.classify("Mario Rossi prende tamoxifene").data_class is DataClass.C3


# --- the practice's own, and public offices ------------------------------------------------------------

LETTERHEAD = (
    "Studio Legale Bassi - Via XX Settembre 14, 16121 Genova - tel. 010 5551234, tel. +39 0105551234 - "
    "avv.bassi@studiobassi.example - IBAN IT60X0542811101000000123456 - P.IVA 07643520567"
)
KNOWN = Classifier(
    registers=registers(
        own=[
            listed("Studio Legale Bassi"),
            listed("Via XX Settembre 14, 16121 Genova"),
            listed("010 5551234"),
            listed("avv.bassi@studiobassi.example"),
            listed("IT60 X054 2811 1010 0000 0123 456"),
            listed("07643520567"),
            listed("Elena Bassi"),
        ],
        public=[listed("@giustizia.example"), listed("Piero Sala")],
        clients=[listed("Piero Sala Costruzioni S.r.l."), listed("Mario Rossi")],
    )
)


def test_a_letterhead_is_personal_only_without_the_register() -> None:
    assert Classifier().classify(LETTERHEAD).data_class is DataClass.C2
    assert KNOWN.classify(LETTERHEAD).spans == ()


def test_public_officers_and_addresses_of_a_public_domain_are_nobodys_secret() -> None:
    text = "Dott. Piero Sala, a@giustizia.example; indirizzo: Via XX Settembre 14, 16121 Genova"
    assert KNOWN.classify(text).spans == ()


@pytest.mark.parametrize(
    "text",
    [
        "tel. 010 5551235",
        "scrivere a x@giustizia.example.org",
        "scrivere a x@agiustizia.example",
        "sig.ra Elena Bassi Verdi",
        "sig. Bassi",
        f"C.F. {CODE}",
        "IBAN IT40S0542811101000000123456",
        "password: Genova!1958",
    ],
)
def test_what_is_not_an_entry_word_for_word_still_counts(text: str) -> None:
    assert KNOWN.classify(text).data_class >= DataClass.C2


def test_a_client_is_never_excused() -> None:
    assert KNOWN.classify("la Piero Sala Costruzioni ha pagato").data_class is DataClass.C2


def test_an_excused_contact_is_no_person_beside_a_subject() -> None:
    """The practice's own address under a question about an illness does not make it somebody's illness."""
    question = "Il diabete da' diritto a permessi? Rispondere a avv.bassi@studiobassi.example"
    assert Classifier().classify(question).data_class is DataClass.C3
    assert KNOWN.classify(question).data_class is DataClass.C0


# --- lines and versions --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Re", "di", "S.r.l.", "---", "A. B."])
def test_a_client_that_cannot_be_looked_for_is_a_mistake_and_not_skipped(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        registers(clients=[listed("Mario Rossi"), listed(name, line=7)])
    (mistake,) = caught.value.mistakes
    assert (mistake.file, mistake.line) == ("register.yaml", 7)
    assert name not in str(mistake).replace("register.yaml", "").split()


def test_a_surname_alone_cannot_be_excused() -> None:
    with pytest.raises(ConfigError):
        registers(own=[listed("Bassi")])


def test_the_version_changes_with_every_line_and_hides_them() -> None:
    """I12: with another runtime's key the same register has another digest, so no guess can be confirmed."""
    one, two = registers(clients=[listed("Mario Rossi")]), registers(clients=[listed("Mario Russo")])
    raised = registers(clients=[listed("Mario Rossi", data_class=DataClass.C3)])
    moved = registers(own=[listed("Mario Rossi")])
    other_key = compile_registers(clients=[listed("Mario Rossi")], own=[], public=[], key=b"q" * 32)
    every = [one, two, raised, moved, other_key]
    assert len({Classifier(registers=each).version for each in every}) == len(every)
    assert Classifier(registers=registers()).version == Classifier().version
    assert "Rossi" not in repr(listed("Mario Rossi"))


def test_persons_and_organisations_are_told_apart() -> None:
    assert all(map(is_person, ["Mario Rossi", "Maria Giulia De Rossi", "Dell'Acqua Nicolò"]))
    assert not any(
        map(is_person, ["Rossi S.r.l.", "Studio Rossi Verdi", "Via Roma 3", "a@b.it", "Rossi & Verdi"])
    )


def test_one_slip_is_one() -> None:
    for other in (b"mario", b"mrio", b"mmario", b"maria", b"amrio"):
        assert one_slip(b"mario", other) is (other != b"mario")
    for other in (b"maro i", b"moira", b"mariaa", b"ma", b"armio"):
        assert not one_slip(b"mario", other)


@given(st.binary(min_size=2, max_size=9).map(lambda raw: bytes(97 + byte % 3 for byte in raw)), st.data())
def test_every_slip_of_a_word_is_sought_where_the_word_is_kept(word: bytes, data: st.DataObject) -> None:
    """One letter left out, added, replaced or swapped: the holes of both have one in common."""
    at = data.draw(st.integers(0, len(word) - 1))
    letter = data.draw(st.sampled_from([b"a", b"b", b"x"]))
    head, tail = word[:at], word[at:]
    for slip in (
        head + tail[1:],
        head + letter + tail,
        head + letter + tail[1:],
        head + tail[1::-1] + tail[2:],
    ):
        if one_slip(slip, word) and len(slip) >= 4:
            kept = set(_ends(word, _left(word)))
            assert any(kept & set(_ends(slip, left)) for left in (1, 2))
