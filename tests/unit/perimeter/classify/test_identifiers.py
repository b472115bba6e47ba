# SPDX-License-Identifier: Apache-2.0
"""I6: an identifier that a person typed or pasted is found, at its exact place, and only that."""

import pytest

from runner.kernel.labels import DataClass
from runner.perimeter.classify import Span, classify_text

CODE = "VRDGPP58T13D969W"
IBAN = "IT29X0503401600000000012345"


def found(text: str) -> set[tuple[str, str]]:
    """Return the kind and the text of every finding."""
    return {(span.kind, text[span.start : span.end]) for span in classify_text(text).spans}


def only(text: str) -> Span:
    (span,) = classify_text(text).spans
    return span


@pytest.mark.parametrize(
    "code",
    [
        CODE,
        CODE.lower(),
        "VRDGPP58T13D96VL",  # omocodia: one letter for a digit
        "VRDGPP58T1PD96VH",  # omocodia: two
        "VRDGPPRUTMPDVSVA",  # omocodia: all seven
        "VRDGPP58T53Z114K",  # a woman (day + 40), born abroad (place Z...)
        "VRD GPP 58T13 D969W",
        "VRDGPP58\nT13D969W",
        "Vrdgpp58t13d969w",  # the keyboard of a telephone
        "Vrd gpp 58t13 d969w",
    ],
)
def test_codice_fiscale_in_every_form(code: str) -> None:
    text = f"Il contratto di {code}, come da allegato."
    assert found(text) == {("codice_fiscale", code)}
    assert classify_text(text).data_class is DataClass.C2


@pytest.mark.parametrize(
    "text",
    [
        "VRDGPP58T13D969X",  # wrong check letter
        "VRDGPP58T99D969W",  # no such day
        "vRdGpP58t13D969W",  # mixed case: nobody writes it so, encoded noise does
    ],
)
def test_codice_fiscale_is_more_than_a_shape(text: str) -> None:
    assert found(text) == set()


@pytest.mark.parametrize("code", ["vRdGpP58t13D969W", "Vrdgpp58T13D969W", "VRD Gpp 58t13 D969W"])
def test_a_codice_fiscale_of_mixed_case_needs_a_word_near(code: str) -> None:
    assert found(f"Il codice fiscale: {code}.") == {("codice_fiscale", code)}
    assert found(f"Il numero: {code}.") == set()


def test_a_decoy_that_fails_its_check_does_not_hide_the_code_behind_it() -> None:
    text = f"ABCDEF01A01{CODE}"
    assert found(text) == {("codice_fiscale", CODE)}


def test_eleven_digits_are_a_person_or_a_firm_by_the_words_around_them() -> None:
    """A firm's codice fiscale is its VAT number; a person has one of eleven digits only for a while."""
    assert found("codice fiscale: 12345670108") == {("partita_iva", "12345670108")}
    assert found("C.F. e P.IVA 12345670108") == {("partita_iva", "12345670108")}
    assert found("Partita IVA n. 12345670108") == {("partita_iva", "12345670108")}
    assert found("IT12345670108") == {("partita_iva", "12345670108")}
    assert found("P.IVA 12345670109") == set()
    assert classify_text("P. IVA 12345670108").data_class is DataClass.C1
    assert classify_text("C.F. 12345670108").data_class is DataClass.C1
    assert classify_text("nato a Oran, C.F. provvisorio 12345670108").data_class is DataClass.C2
    assert classify_text("ha consegnato a C.F. 12345670108").data_class is DataClass.C1


@pytest.mark.parametrize(
    "iban",
    [
        IBAN,
        IBAN.lower(),
        "IT29 X050 3401 6000 0000 0012 345",
        "IT29-X050-3401-6000-0000-0012-345",
        "IT29X05034016\n00000000012345",
        "DE89370400440532013000",
        "GB82 WEST 1234 5698 7654 32",
    ],
)
def test_iban_in_every_grouping_gives_back_the_words_after_it(iban: str) -> None:
    text = f"accredito su {iban} entro il 30 giugno presso la banca"
    assert found(text) == {("iban", iban)}


def test_iban_behind_decoys_and_with_a_wrong_check() -> None:
    assert found(f"IT29 IT29 IT29 {IBAN}") == {("iban", IBAN)}
    assert found("IBAN IT28X0503401600000000012345") == set()


def test_a_card_needs_luhn_a_known_prefix_and_a_word() -> None:
    assert found("carta di credito 5360 1234 5678 9018") == {("card", "5360 1234 5678 9018")}
    assert found("carta di credito 5360 1234 5678 9019") == set()
    assert found("ordine 5360 1234 5678 9018") == set()


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Passaporto n. YA1234567 rilasciato a Genova", "passport", "YA1234567"),
        ("carta d'identità elettronica n. CA12345AB", "identity_card", "CA12345AB"),
        ("C.I. AX 1234567", "identity_card", "AX 1234567"),
        ("patente di guida n. GE1234567K", "driving_licence", "GE1234567K"),
        ("autovettura targata AB 123 CD", "number_plate", "AB 123 CD"),
        ("tessera sanitaria 80380 12345 67890 12345", "tessera_sanitaria", "80380 12345 67890 12345"),
        ("causa iscritta al n. R.G. 4127/2025", "case_number", "4127/2025"),
        ("fascicolo n. 815/24 R.G.N.R.", "case_number", "815/24"),
        ("foglio 12, particella 345, sub. 6", "land_register", "foglio 12, particella 345, sub. 6"),
        ("CIG: Z1234567AB", "cig", "Z1234567AB"),
        ("CUP J11B22000330004", "cup", "J11B22000330004"),
        ("codice destinatario ZQ0WX9T", "sdi_code", "ZQ0WX9T"),
        ("codiceSDI: ZQ0WX9T", "sdi_code", "ZQ0WX9T"),
        ("(SDI n. ZQ0WX9T)", "sdi_code", "ZQ0WX9T"),
        ("DNI 12345678Z", "national_id", "12345678Z"),
        ("Carta di identita' elettronica: CA 12345 AB", "identity_card", "CA 12345 AB"),
        ("documento di riconoscimento AX 1234567", "identity_card", "AX 1234567"),
        ("ID card number AX1234567", "identity_card", "AX1234567"),
        ("Passport number: 533401234", "passport", "533401234"),
        ("passaporto italiano n° YB 7654321", "passport", "YB 7654321"),
        ("patente B numero AB1234567C", "driving_licence", "AB1234567C"),
        ("driver's license MORGA657054SM9IJ", "driving_licence", "MORGA657054SM9IJ"),
        ("health insurance card 80380001234567890123", "tessera_sanitaria", "80380001234567890123"),
        ("veicolo tg. AB123CD", "number_plate", "AB123CD"),
        ("vehicle registration AB12 CDE", "number_plate", "AB12 CDE"),
        ("ruolo generale 1234/2024", "case_number", "1234/2024"),
        ("esecuzione R.G.E. 45/2022", "case_number", "45/2022"),
        ("Fg. 12 part. 345 sub 6", "land_register", "Fg. 12 part. 345 sub 6"),
        ("al foglio 12, p.lla 34", "land_register", "foglio 12, p.lla 34"),
        ("cig n. Z1234567AB", "cig", "Z1234567AB"),
        ("NINO: AB 12 34 56 C", "national_id", "AB 12 34 56 C"),
    ],
)
def test_numbers_without_check_digit_need_their_word(text: str, kind: str, value: str) -> None:
    assert found(text) == {(kind, value)}
    assert kind not in {each for each, _ in found(f"articolo {value} in magazzino")} or kind in {
        "land_register",
        "tessera_sanitaria",
    }


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("scrivere a m.costa+cause@example.org.", "email", "m.costa+cause@example.org"),
        ("m.costa (at) example.org", "email", "m.costa (at) example.org"),
        ("PEC: studio@pec.example.it", "pec", "studio@pec.example.it"),
        ("tel. 010 555 0162", "phone", "010 555 0162"),
        ("cell. 347 555 0162", "phone", "347 555 0162"),
        ("Chiama lo 0039 010 5550162", "phone", "0039 010 5550162"),
        ("phone +44 1632 960 204", "phone", "+44 1632 960 204"),
        (
            "residente in Via delle Rose n. 4, 16100 Genova (GE)",
            "address",
            "Via delle Rose n. 4, 16100 Genova (GE)",
        ),
        ("nato a Savona il 13/12/1958", "birth_date", "13/12/1958"),
        ("nata il 3 marzo 1971", "birth_date", "3 marzo 1971"),
        (
            "nato a Como il dodici marzo millenovecentosettanta",
            "birth_date",
            "dodici marzo millenovecentosettanta",
        ),
        ("la sig.ra Elena Costa ha chiesto", "person", "Elena Costa"),
    ],
)
def test_contacts_and_persons(text: str, kind: str, value: str) -> None:
    assert (kind, value) in found(text)
    assert classify_text(text).data_class is DataClass.C2


def test_a_name_on_a_letterhead_is_not_a_client() -> None:
    assert classify_text("Avv. Giulia Ferri, Genova").data_class is DataClass.C1


def test_offsets_are_code_points_of_the_original() -> None:
    """Accents, characters outside the BMP and lone surrogates before it do not move the span."""
    text = f"perché 😀 \ud800 ’ № {CODE}"
    span = only(text)
    assert text[span.start : span.end] == CODE
