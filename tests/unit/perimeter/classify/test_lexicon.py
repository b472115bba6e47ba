# SPDX-License-Identifier: Apache-2.0
"""A topic is not a secret: health, judicial data and secrecy are C3 next to a person, and pass alone."""

import pytest

from runner.kernel.labels import DataClass
from runner.perimeter.classify import classify_text
from runner.perimeter.classify.lexicon import LEXICON, lexicon_rules, parse_lexicon
from runner.perimeter.classify.settle import NEAR

PERSONS = ["la sig.ra Elena Costa", "C.F. VRDGPP58T13D969W", "elena@example.org", "la mia assistita"]
SUBJECTS = {
    "health": "una cardiopatia con fibrillazione",
    "judicial": "tre precedenti penali",
    "secrecy": "un parere coperto da segreto professionale",
}


@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.parametrize("person", PERSONS)
def test_a_subject_with_a_person_is_c3(kind: str, person: str) -> None:
    found = classify_text(f"Riguarda {person}: {SUBJECTS[kind]}.")
    assert kind in {span.kind for span in found.spans}
    assert found.data_class is DataClass.C3


@pytest.mark.parametrize("kind", SUBJECTS)
def test_a_subject_alone_passes(kind: str) -> None:
    found = classify_text(f"Che cosa comporta {SUBJECTS[kind]}?")
    assert found.spans == ()
    assert found.data_class is DataClass.C0


def test_a_professional_or_a_firm_is_not_the_person() -> None:
    text = "Avv. Giulia Ferri, P.IVA 12345670108: quando un atto è coperto da segreto professionale?"
    assert classify_text(text).data_class is DataClass.C1


def test_a_page_apart_is_another_field() -> None:
    filler = "x " * (NEAR // 2 + 50)
    assert classify_text(f"elena@example.org {filler} fibrillazione").data_class is DataClass.C2
    assert classify_text(f"elena@example.org {filler[: NEAR - 40]} fibrillazione").data_class is DataClass.C3


def test_words_are_whole_unless_the_term_is_open() -> None:
    (rule,) = lexicon_rules({"health": ("asma", "tumor*")})
    assert r"asma\b" in rule.pattern
    assert classify_text("la sig.ra Elena Costa ha una asmara").data_class is DataClass.C2
    assert classify_text("la sig.ra Elena Costa ha l'asma").data_class is DataClass.C3
    assert classify_text("la sig.ra Elena Costa ha patologie tumorali").data_class is DataClass.C3


@pytest.mark.parametrize("text", ["asma\n[health]\n", "[health]\nAsma\n", "[health]\ninvalidità\n"])
def test_a_wrong_lexicon_names_its_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"lexicon line \d"):
        parse_lexicon(text)


def test_the_shipped_lexicon_has_its_subjects() -> None:
    assert {rule.kind for rule in LEXICON} == {"health", "judicial", "secrecy", "person"}
