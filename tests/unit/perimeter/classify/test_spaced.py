# SPDX-License-Identifier: Apache-2.0
"""I6: where a mail was wrapped, quoted or typed with two blanks hides nothing that is found with one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.labels import DataClass
from runner.perimeter.classify import Classification, classify_text
from runner.perimeter.classify.model import View
from runner.perimeter.classify.spaced import spaced
from runner.perimeter.classify.views import fold

SENTENCES = """\
The patient Sarah Jones was told she has type 2 diabetes and bipolar disorder.
Il paziente Mario Rossi soffre di disturbo bipolare e diabete di tipo 2.
Call me on 020 7946 0958 after six.
Il mio numero è 333 123 4567, chiamami.
Il suo codice fiscale è RSSMRA80A01H501U e abita qui.
The card 4111 1111 1111 1111 expires in May, it is my visa card.
Procedimento R.G. 1234/2024 contro il mio assistito.
La carta di identità n. AX 1234567 è scaduta.
Born on 12 March 1980, Mr Smith lives in Leeds.
La signora Bianchi è nata il 12 marzo 1980 a Pisa.
NHS number 943 476 5919 for the referral.
Abita in via Garibaldi 12, 56100 Pisa con la moglie Anna Greco.
The password is Luna2024! for the portal.
Elena Fontana è indagata per truffa aggravata.
David Miller was arrested for rape yesterday.
Laura Conti ha un tumore al seno metastatico.
Il figlio di Paolo Ferri è in comunità di recupero per tossicodipendenza.
Il contratto con Giulia Bianchi è scaduto, e ha parlato con Learco Del Vecchio.
Bonifico su IT60 X054 2811 1010 0000 0123 456 entro lunedì.
We wrote to Fletcher about the wall, because Rossini did not pay.
The tenant Okonkwo said that the boiler leaks.
Authorization: Bearer abcdefghijklmnop0123456789 was in the log.
Das ist die Steuernummer 86 095 742 719 des Mandanten.
Il passaporto n. YA 1234567 della signora Anna Greco è valido.""".splitlines()
RUNS = (
    "  ",
    "\n",
    "\r\n",
    "\t",
    " \n",
    "\n    ",
    "\n> ",
    "\n> > ",
    "\r\n> ",
    "\u2028",
    "\\n",
    "\\r\\n> ",
    "\x0b",
    "\x85",
    " " * 400,
)
EMPTY = "\n\n"


def reach(found: Classification) -> dict[str, DataClass]:
    """Return the kinds above C1 that were found, and the highest class of each."""
    kinds: dict[str, DataClass] = {}
    for span in found.spans:
        if span.data_class > DataClass.C1:
            kinds[span.kind] = max(span.data_class, kinds.get(span.kind, DataClass.C0))
    return kinds


def spaces(text: str) -> list[int]:
    return [at for at, sign in enumerate(text) if sign == " "]


@pytest.mark.parametrize("number", range(len(SENTENCES)))
@pytest.mark.parametrize("run", ["\n", "  ", "\r\n> "], ids=["line end", "two blanks", "quotation"])
def test_no_single_space_hides_a_kind_when_it_is_a_run(number: int, run: str) -> None:
    text = SENTENCES[number]
    wanted = reach(classify_text(text))
    assert wanted, "a sentence in which nothing is found proves nothing"
    for at in spaces(text):
        broken = text[:at] + run + text[at + 1 :]
        assert reach(classify_text(broken)).items() >= wanted.items(), repr(broken)


def test_the_letter_of_an_escape_is_none_of_the_word_behind_it() -> None:
    text = "Elena Fontana è\\nindagata per truffa aggravata."
    assert reach(classify_text(text)) == reach(classify_text(text.replace("\\n", " ")))


@given(st.sampled_from(SENTENCES), st.data())
def test_any_runs_in_place_of_any_spaces_hide_nothing(text: str, data: st.DataObject) -> None:
    wanted = reach(classify_text(text))
    chosen = data.draw(st.sets(st.sampled_from(spaces(text)), min_size=1, max_size=4))
    for at in sorted(chosen, reverse=True):
        text = text[:at] + data.draw(st.sampled_from(RUNS)) + text[at + 1 :]
    assert reach(classify_text(text)).items() >= wanted.items(), repr(text)


@pytest.mark.parametrize("columns", [24, 40, 72])
@pytest.mark.parametrize("mark", ["", "> "], ids=["plain", "quoted"])
def test_a_wrapped_mail_has_all_that_the_mail_had(columns: int, mark: str) -> None:
    mail, wrapped, width = " ".join(SENTENCES), "", 0
    for word in mail.split(" "):
        width += len(word) + 1
        wrapped += word + (" " if width < columns else f"\n{mark}")
        width = 0 if width >= columns else width
    assert reach(classify_text(wrapped)) == reach(classify_text(mail))


def test_what_is_found_behind_a_line_end_has_its_place_in_the_text() -> None:
    text = "The house of Sarah\r\n> > Jones is empty."
    (span,) = classify_text(text).spans
    assert (text[span.start : span.end], span.view) == ("Sarah\r\n> > Jones", View.SPACED)


@pytest.mark.parametrize(
    "text",
    [
        "La casa di Mario\\n\\nRossi è il colore del muro.",
        f"La casa di Mario{EMPTY}Rossi è il colore del muro.",
        "La casa di Mario\n \nRossi è il colore del muro.",
        "La casa di Mario\n>\n> Rossi è il colore del muro.",
        "Egr. Sig. Direttore\nComune di Savona\n",
        "Sempre caro mi fu.\nGentile cosa, e bella.",
        "def total(rows):\n    Result = sum(rows)\n    return Result\n",
        "Prezzo\tQuantita\nGrano\t12\nOrzo\t7\n",
        "- Prosecco\n- Lambrusco\n- Barolo",
    ],
)
def test_lines_that_are_no_paragraph_accuse_nobody(text: str) -> None:
    """An empty line is no space, an office ends with its line, and lists and columns stay what they are."""
    spans = classify_text(text).spans
    assert [span for span in spans if span.view is View.SPACED and span.data_class > DataClass.C1] == []


def test_rules_of_a_line_do_not_fire_on_joined_lines() -> None:
    """A signature, the head of an entry and a column are that because of the lines they stand in."""
    assert reach(classify_text("Cordiali saluti\nFerri")) == {"person": DataClass.C2}
    assert reach(classify_text("Rossini: agrees")) == {"person": DataClass.C2}
    assert reach(classify_text("Grano - farina")) == {"person": DataClass.C2}  # the price of that rule
    assert classify_text("Grano\n- farina\n- uova").spans == ()


@pytest.mark.parametrize(
    "text",
    [
        "Mario Rossi\nGiulia Bianchi\nPaolo Ferri",
        "Banca del Monte\nMario Rossi\nvia Roma 1",
        "Avv. Luigi Verdi\nMario Rossi",
        "STUDIO LEGALE\nMario Rossi",
    ],
)
def test_persons_in_lines_of_their_own_are_found_as_before(text: str) -> None:
    """What goes on behind a line end takes nothing from what stands in one, not even below a firm."""
    persons = [text[span.start : span.end] for span in classify_text(text).spans if span.kind == "person"]
    named = [line for line in text.splitlines() if line in {"Mario Rossi", "Giulia Bianchi", "Paolo Ferri"}]
    assert persons == named


def test_the_work_for_runs_is_in_proportion_to_them() -> None:
    """Nothing is searched twice where white space is one space: no second reading is made."""
    found = classify_text("Mario Rossi ha firmato. " * 50)
    assert {span.view for span in found.spans} == {View.TEXT}
    assert spaced(fold("Mario Rossi ha firmato.\n\nAnche\r\n\r\nlei.\n")) is None
    assert spaced(fold("Mario Rossi ha\nfirmato.")) is not None


def test_an_address_ends_with_its_line() -> None:
    """Below it stands a telephone, and a letterhead of the practice must stay what its register says."""
    text = "Via Assarotti 19/7, 16122 Genova\nTel. 010 8391177"
    assert [text[each.start : each.end] for each in classify_text(text).spans if each.kind == "address"] == [
        "Via Assarotti 19/7, 16122 Genova"
    ]
    text = "abita in via\nGaribaldi 12 con la moglie Anna Greco"
    assert "address" in {each.kind for each in classify_text(text).spans}
