# SPDX-License-Identifier: Apache-2.0
"""I6: somebody who is named is found without a register; a firm, a street and an office are nobody."""

import base64

import pytest

from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed
from runner.perimeter.classify import Classifier, classify_text, compile_registers
from runner.perimeter.classify.names import any_name, full_name, parse_sections
from runner.perimeter.classify.settle import NEAR


def found(text: str, kind: str = "person") -> list[str]:
    return [text[span.start : span.end] for span in classify_text(text).spans if span.kind == kind]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Il sottoscritto Learco Boccadoro dichiara", "Learco Boccadoro"),
        ("I, Imogen Wainwright, will say as follows", "Imogen Wainwright"),
        ("Gentile Pescarolo,", "Pescarolo"),
        ("Dear Rowena,", "Rowena"),
        ("Learco Boccadoro, nato a Como", "Learco Boccadoro"),
        ("Learco Boccadoro, rappresentato e difeso", "Learco Boccadoro"),
        ("LEARCO BOCCADORO c/ Comune di Savona", "LEARCO BOCCADORO"),
        ("Distinti saluti\n\nLearco Boccadoro\n", "Learco Boccadoro"),
        ("Yours sincerely,\nRowena O'Shaughnessy", "Rowena O'Shaughnessy"),
        ("gli eredi di Learco Lo Presti", "Learco Lo Presti"),
        ('{"paziente": "Learco Boccadoro"}', "Learco Boccadoro"),
        ('{"cognome": "Boccadoro"}', "Boccadoro"),
        ("| Conduttore | Learco Boccadoro |", "Learco Boccadoro"),
        ("From: Rowena Clarke-Whitmore\nTo: us", "Rowena Clarke-Whitmore"),
        ("ha chiamato Marta Boccadoro per il rogito", "Marta Boccadoro"),
        ("la pratica Boccadoro Marta", "Boccadoro Marta"),
        ("la pratica ROSSI Marta", "ROSSI Marta"),
        ("Secondo Learco Boccadoro il muro cede", "Learco Boccadoro"),
        ("Fu Learco Del Vecchio ad aprire.", "Learco Del Vecchio"),
        ("I met Rowena Wainwright at noon", "Rowena Wainwright"),
        ("12. Learco Boccadoro", "Learco Boccadoro"),
        ("L. Boccadoro ha disdetto", "L. Boccadoro"),
        ("cognome;nome;via\nBoccadoro;Learco;x", "Boccadoro"),
        ("avviso a LEARCO BOCCADORO", "LEARCO BOCCADORO"),
        ("ho letto la mail di Boccadoro stamattina", "Boccadoro"),
        ("avvisare Lo Presti della proroga", "Lo Presti"),
        ("la teste Boccadoro conferma", "Boccadoro"),
        ("please ask Wainwright to sign", "Wainwright"),
        ("Letto 4: BOCCADORO", "BOCCADORO"),
        ("Paziente;Ora;Esame\nBoccadoro, Learco;9;TAC", "Boccadoro, Learco"),
        ("Atto_Boccadoro_Learco_2.docx", "Boccadoro_Learco"),
        ("L. Boccadoro propone un rinvio", "L. Boccadoro"),
        ("il sottoscritto \u0141earco Yıldırım dichiara", "\u0141earco Yıldırım"),
        ("Boccadoro ha firmato ieri", "Boccadoro"),
        ("Wainwright owes two months", "Wainwright"),
        ("seen with Rowena, her carer", "Rowena"),
        ("Learco (la moglie) attende", "Learco"),
        ("acconto di Boccadoro", "Boccadoro"),
        ("- Boccadoro: d'accordo\n", "Boccadoro"),
        ("il vicino (Boccadoro) tace", "Boccadoro"),
        ("Boccadoro, Learco | 12/05", "Boccadoro, Learco"),
        ("the Wainwright file is here", "Wainwright"),
        ("Wainwright's daughter rang", "Wainwright"),
        ("LEARCO BOCCADORO\nvia Roma 3, Lodi", "LEARCO BOCCADORO"),
        ("alle 9.30 Boccadoro, poi altri", "Boccadoro"),
        ("nessuno sopporta Boccadoro.", "Boccadoro"),
        ("nobody trusts Wainwright, ever", "Wainwright"),
        ("Between (1) ROWENA WAINWRIGHT and others", "ROWENA WAINWRIGHT"),
        ("Paziente Boccadoro: sta meglio", "Boccadoro"),
        ("- Featherstonehaughly: agrees", "Featherstonehaughly"),
        ("| Boccadoro-Zen | si |", "Boccadoro-Zen"),
        ("Ha visto D'Avossa ieri.", "D'Avossa"),
        ("Conad Superstore, poi la Boccadoro ha firmato", None),
        ("Chiunque ha firmato, everybody said so", None),
        ("fallo sapere a marta rossi", None),
        ("Il presidente della Corte Learco", None),
    ],
)
def test_a_name_is_found_by_what_stands_around_it(text: str, name: str | None) -> None:
    assert found(text) == ([] if name is None else [name])
    assert name is None or classify_text(text).data_class is DataClass.C2


@pytest.mark.parametrize(
    "text",
    [
        "Gentile Cliente, il contratto scade.",
        "la mail di INPS",
        "LETTERA DI DIMISSIONE\n",
        "avvisare Venezia, il teste Presente, chiamare Marzo",
        "Cliente Finale e Condomino Uscente, Teste Escusso",
        "Cliente;Importo;Data\nTotale;3;4",
        "Elenco_Fatture_2024.xlsx, set_Content_Type",
        "Studio Boccadori, Boccadoro Surgery, Hotel Boccadoro",
        "Gentili Condomini,",
        "Dear Hiring Manager,",
        "Hi there,",
        "Hello World",
        "Buongiorno, come si calcola il TFR?",
        "Cordiali saluti\nUfficio Legale",
        "Kind regards,\nThe Team",
        "Che differenza c'e' tra Codice Civile e Codice di Procedura Civile?",
        "La differenza tra Google Drive e Microsoft Teams.",
        "ricorso contro Agenzia delle Entrate",
        "A: Ufficio Protocollo\nDa: Servizio Clienti",
        "name: Build And Test",
        "Il figlio minore ha diritto al mantenimento?",
        "socio Accomandatario, medico Competente, custode Giudiziario",
        "Corte Costituzionale dichiara inammissibile",
        "La legge Gelli Bianco, il lodo Alfano e la riforma Cartabia",
        "The Landlord and Tenant Act 1954; Smith v Jones [2020] EWCA Civ 12",
        "Farnell Oakes v Tilbury Marlow [1964] AC 465",
        "il Learco Boccadoro, la Nuova Vernazza, presso Osteria Mulin Vernaz",
        "FARMACIE DI TURNO, ASTERIX OBELIX",
        "con Trasporti Vernaz Learco S.r.l. di Savona",
        "F.to digitalmente ai sensi del CAD",
        "San Giovanni Rotondo, Reggio Emilia, Monte Bianco",
        "Aeroporto Leonardo da Vinci, Liceo Alessandro Manzoni, Teatro Carlo Felice",
        "Via Giuseppe Verdi 3, Busseto",
        "Il cliente Fornaci del Ponente S.r.l. chiede un parere.",
        "Il fornitore, Consorzio Acque del Levante, codice fiscale in calce",
        "Avv. Marta Boccadoro, Dott. Luca Neri",
        "il farmaco Zolvatrin, the drug Zolvatrin, nel programma Zolvatrin",
        "usare Zolvatrin, installed Zolvatrin, visitare Zolvatrina",
        "- Risotto: d'accordo\n- Nginx (nuovo)\n",
        "Monti Sibillini, Colli Zolvani; Sagra della Zolvana, La Zolvana di Zolve",
        "Dora Baltea in piena, Kuala Lumpur, Amoxicillina Triidrato",
        "tra Real Madrid e Bayern Zolve",
        "L'Ospedale Zolvino, in Zolva Marittima",
        "Aggiornare Zolvatrin",
        "Browser/1.0 (KHTML, like Gecko) Engine/2",
        "Accept: text/csv\nAccept-Language: it\nCache-Control: no-cache\nVary: origin",
        "Usage: tidy PATH\nDelete (for good) what is old.\n- Rename: the old file is kept\nDefaults: none",
        "Content-Type: text/plain\nUser-Agent: curl/8.5\nTransfer-Encoding: chunked\nReferer: about:blank",
    ],
)
def test_what_is_nobody_passes(text: str) -> None:
    assert found(text) == []
    assert classify_text(text).data_class <= DataClass.C1


def test_a_firm_that_begins_before_a_name_does_not_swallow_the_person() -> None:
    assert found("Il sig. Learco Boccadoro e Alfa S.r.l.") == ["Learco Boccadoro"]
    assert found("il cliente Learco Boccadoro S.r.l.") == []


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("ricevuta da Panificio Spigadoro, pane", "organisation", "Panificio Spigadoro"),
        ("con la Cassa Rurale di Valdombra", "organisation", "Cassa Rurale di Valdombra"),
        ("they moved to Fennimore Surgery", "organisation", "Fennimore Surgery"),
        ("fornitore Alfaverde S.N.C. oggi", "organisation", "Alfaverde S.N.C."),
        ("Ortiverdi Soc. Agr. a r.l. vende", "organisation", "Ortiverdi Soc. Agr. a r.l."),
        ("in Riviera Ombralta 12 da anni", "address", "Riviera Ombralta 12"),
        ("sita in Borgata Ombralta, 3", "address", "Borgata Ombralta, 3"),
        ("at 14 Fennimore Yard now", "address", "14 Fennimore Yard"),
    ],
)
def test_a_firm_and_a_street_are_found_by_what_they_are(text: str, kind: str, name: str) -> None:
    assert found(text, kind) == [name]


def test_i6_a_client_against_a_firm_is_no_part_of_its_name() -> None:
    """Else the firm would overrule the client who is called by surname."""
    listed = [Listed(file="r", line=1, names=("Learco Boccadoro",))]
    known = compile_registers(clients=listed, own=(), public=(), key=b"0123456789abcdef")
    spans = Classifier(registers=known).classify("Boccadoro Vs Alfaverde S.r.l. oggi").spans
    assert {span.kind for span in spans} == {"client", "organisation"}


def test_i6_a_client_called_like_a_thing_is_found_by_surname() -> None:
    """The list of things says what is nobody's name without a register, and nothing about who is in one."""
    assert found("l'istanza di Toradol") == []
    listed = [Listed(file="r", line=1, names=("Learco Toradol",))]
    known = compile_registers(clients=listed, own=(), public=(), key=b"0123456789abcdef")
    assert [span.kind for span in Classifier(registers=known).classify("istanza di Toradol").spans] == [
        "client"
    ]


def test_an_address_is_personal_beside_a_person_only() -> None:
    """02 section 3: an address identifies nobody; with a name it says where somebody lives."""
    alone, address = "Corso Italia 40, 20122 Milano", "address"
    assert [span.data_class for span in classify_text(alone).spans] == [DataClass.C1]
    beside = classify_text(f"Learco Boccadoro, nato a Como. {alone}").spans
    assert {span.kind: span.data_class for span in beside} == {"person": DataClass.C2, address: DataClass.C2}
    filler = "x " * (NEAR // 2 + 50)
    apart = classify_text(f"il sottoscritto Learco Boccadoro {filler} {alone}").spans
    assert {span.kind: span.data_class for span in apart}[address] is DataClass.C1


def test_a_subject_beside_an_address_alone_is_about_nobody() -> None:
    text = "L'ambulatorio di Corso Italia 40 cura l'ipertensione."
    assert classify_text(text).data_class is DataClass.C1
    assert classify_text(f"Gentile Boccadoro,\n{text}").data_class is DataClass.C3


def test_a_title_inside_an_encoding_does_not_hide_the_person_beside_it() -> None:
    """I8: in a decoded run every place is the whole run, so none may overrule another."""
    hidden = base64.b64encode(b"Avv. Giulia Ferri per il paziente Learco Boccadoro").decode()
    assert classify_text(hidden).data_class is DataClass.C2


def test_a_client_is_shown_as_a_client_and_not_twice() -> None:
    listed = [Listed(file="r", line=1, names=("Learco Boccadoro",))]
    known = compile_registers(clients=listed, own=(), public=(), key=b"0123456789abcdef")
    spans = Classifier(registers=known).classify("il sottoscritto Learco Boccadoro").spans
    assert [span.kind for span in spans] == ["client"]


def test_how_much_of_a_candidate_is_a_name() -> None:
    assert full_name("Learco Boccadoro Tribunale") == len("Learco Boccadoro")
    assert full_name("Learco") == full_name("Corte Suprema") == full_name("De Lo") == 0
    assert full_name("Learco De Bortoli") == len("Learco De Bortoli")
    assert any_name("Learco") == len("Learco")
    assert any_name("Hiring Manager") == any_name("Learco Tribunale") == 0


@pytest.mark.parametrize("text", ["rossi\n[given]\n", "[given]\nnicolò\n"])
def test_a_wrong_word_list_names_its_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"word list, line \d"):
        parse_sections(text)


@pytest.mark.parametrize(
    "text",
    [
        *[
            "Villa Giulia",
            "Visita a Villa Giulia domani",
            "Hotel Villa Paola",
            "Piazza Maria",
            "a villa giulia",
        ],
        *["il museo di Villa Giulia", "IL MUSEO DI VILLA GIULIA", "tra Villa Giulia e Casa Maria"],
        "un convegno sulla depressione a Villa Giulia",
    ],
)
def test_a_place_that_is_called_after_somebody_is_nobody(text: str) -> None:
    assert not [span for span in classify_text(text).spans if span.kind in {"person", "health"}]


@pytest.mark.parametrize(
    "text",
    [
        *["VILLA GIULIA soffre di depressione.", "Villa Giulia ha la depressione", "Villa Giulia has HIV"],
        *["la signora villa giulia, in cura per HIV", "Paziente: Villa Giulia. Diagnosi: HIV."],
        *["villa giulia soffre di depressione", "Dr. Villa Giulia, HIV", "Paziente: PALAZZO ANNA, HIV"],
        *["Villa Giulia, nata a Roma, ha il diabete", "l'imputata Palazzo Anna ha l'HIV"],
    ],
)
def test_i6_somebody_called_like_a_place_is_who_a_subject_is_about(text: str) -> None:
    encoded = base64.b64encode(f"ecco: {text} fine".encode()).decode()
    for each in (text, f"blob {encoded}"):
        assert classify_text(each).data_class is DataClass.C3


def test_i6_somebody_called_like_a_place_is_found_behind_a_label_in_an_encoded_text() -> None:
    encoded = base64.b64encode(b"ecco qui, Contact: Palazzo Anna, fine").decode()
    assert "person" in {span.kind for span in classify_text(f"blob {encoded}").spans}


@pytest.mark.parametrize(
    "text",
    ["Giulia Villa", "sig.ra Villa Giulia", "Villa Maria Rossi", "VILLA GIULIA", "la signora villa giulia"],
)
def test_somebody_called_like_a_place_is_somebody(text: str) -> None:
    assert [span.kind for span in classify_text(text).spans] == ["person"]
