# SPDX-License-Identifier: Apache-2.0
"""I6, the other side: invoices, citations, dates, amounts and questions of law are not personal data.

A gate that stops ordinary text is switched off. Each text here was chosen to look like a finding.
"""

import random

import pytest

from runner.kernel.labels import DataClass
from runner.perimeter.classify import classify_text

ORDINARY = [
    "Fattura n. 2026/031 del 12/03/2026, imponibile € 1.234.567,89, IVA 22% € 271.604,94.",
    "Cass. civ., sez. III, 11 novembre 2019, n. 28985; Cass., sez. un., n. 26972/2008.",
    "Corte cost. n. 162/2014; Corte EDU, 28 agosto 2012, ric. n. 54270/10.",
    "art. 2043 c.c., artt. 1218-1223 c.c., art. 360, co. 1, n. 5, c.p.c.; d.lgs. 30 giugno 2003, n. 196",
    "Regolamento (UE) 2016/679, CELEX 32016R0679, GU L 119 del 4.5.2016, pag. 1-88",
    "ordine 4111111111111111 e lotto 12345670108, bolla 5360123456789018",
    "ISBN 978-88-14-12345-6, ISSN 0391-1896, DOI 10.1000/182",
    "il 12 marzo 2020 alle ore 10 al 15 gennaio 2021 in 30 giorni",
    "orario 09.30-12.30 e 15.00-18.00, tel. su richiesta",
    "3,14159265358979 e 0.333333333333 e 1e-10",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 3f2a91c4de, uuid 123e4567-e89b-12d3-a456-426614174000",
    "def total(rows): return sum(r['amount'] for r in rows)  # api_key = os.environ['KEY']",
    'password = "${PASSWORD}" oppure token: <your-token-here>',
    "La password deve essere lunga e il token scade.",
    "Qual è il termine per proporre appello? E se il convenuto è contumace?",
    "Cosa prevede la legge 22 maggio 1978, n. 194?",
    "Quali sono gli effetti collaterali del tamoxifene nel carcinoma?",
    "Quando un documento è coperto da segreto professionale?",
    "Che pena è prevista per il maltrattamento? Serve la reclusione?",
    "AMMINISTRAZIONE STRAORDINARIA, RESPONSABILMENTE CONCLUSA",
    "https://www.example.org/a%20b%2Fc?id=20260312#n",
    "Ill.mo Sig. Presidente del Tribunale, Egr. Sig. Direttore, Gentili Sig.ri Condomini, Dear Mr. Chairman",
    "La merce consegnata il 12/03/2020; il perito nominato in data 12 marzo 2020 ha terminato il 1.4.2020.",
    "Tel. su appuntamento. Genova, 08/05/2020. Importo € 1.022.715,22 (immobiliare n. 02896838)",
    "Che differenza c'e' fra indagato e imputato? Il paziente ha diritto alla cartella clinica?",
    "S.p.A., c.p.c., R.G., art. 1 c. 2 l. 3; a b c d e; 1 2 3 4 5 6 7 8; www.example.org, 2016-679-UE",
    "Titolo\n=====\nx=1&y=20&z=3D e n=AB;\nfine=\n",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_passes(text: str) -> None:
    found = classify_text(text)
    assert [(span.kind, span.rule) for span in found.spans] == []
    assert found.data_class is DataClass.C0


@pytest.mark.parametrize(
    "text",
    [
        "Il Tribunale di Milano, via Freguglia 1, ha sede in centro",
        "La Fornaci del Ponente S.r.l., con sede in Corso Italia 40, 20122 Milano, produce mattoni",
        "Northgate Fittings Ltd, 14 Market Street, London EC2A 4NE",
        "Studio Legale Bianchi, Cooperativa Il Faro, Banca del Monte",
        "L'ambulatorio di cardiologia di Via Garibaldi 12 cura l'ipertensione",
    ],
)
def test_a_firm_or_an_address_by_itself_passes(text: str) -> None:
    assert classify_text(text).data_class is DataClass.C1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Sig. Presidente Mario Bruni", "person"),
        ("sig. Giudici", None),
        ("Sig.ra Di Stefano", "person"),
        ("Mr. Justice", None),
        ("Mr. Justice Brown", "person"),
        ("nata il 12/03/2020", "birth_date"),
        ("tel.010 5551234", "phone"),
        ("tel. 010 5551234, interno 2", "phone"),
    ],
)
def test_what_precision_must_not_cost(text: str, kind: str | None) -> None:
    assert {span.kind for span in classify_text(text).spans} == ({kind} - {None})


def test_a_patient_of_whom_something_is_told_is_somebody() -> None:
    for text in (
        "La paziente riferisce epilessia",
        "Il paziente, 54 anni, con diabete",
        "e' imputato per spaccio",
    ):
        assert classify_text(text).data_class is DataClass.C3, text


def test_check_digits_alone_are_noise_in_long_digit_runs() -> None:
    """One in ten of random sixteen-digit numbers passes Luhn: without a word none may count."""
    dice = random.Random(7)  # noqa: S311 - a fixed sequence of numbers, not a secret
    numbers = [str(dice.randrange(10**15, 10**16)) for _ in range(500)]
    numbers += [str(dice.randrange(10**10, 10**11)) for _ in range(500)]
    assert classify_text("\n".join(numbers)).spans == ()


def test_noise_in_encoded_runs_is_no_finding() -> None:
    dice = random.Random(11)  # noqa: S311 - as above
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    blob = "".join(dice.choice(alphabet) for _ in range(60_000))
    assert classify_text(f"data:application/pdf;base64,{blob}").spans == ()
