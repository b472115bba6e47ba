# SPDX-License-Identifier: Apache-2.0
"""Sensitive subjects in both languages: what is said of somebody is C3; a topic or a question is not."""

import pytest

from runner.kernel.labels import DataClass
from runner.perimeter.classify import classify_text

ENGLISH_PERSONS = [
    ("health", "Mr Thornbury was recently diagnosed with multiple sclerosis."),
    ("health", "Please note that Ms Okafor has bipolar disorder and takes medication."),
    ("health", "Mrs Ferris is pregnant, so the hearing should be moved."),
    ("health", "We understand Mr Hallam is HIV positive."),
    ("health", "Mrs Ferris suffers from depression since her dismissal."),
    ("health", "Mr Thornbury has been in rehab since March."),
    ("health", "Ms Okafor had a miscarriage in the spring and was off work."),
    ("health", "Mr Hallam starts chemotherapy on Monday."),
    ("health", "After a suicide attempt Mr Thornbury was kept in for observation."),
    ("health", "Sarah Penhallow underwent surgery and uses a wheelchair."),
    ("health", "My husband is an alcoholic and I want to leave."),
    ("health", "She was diagnosed with it two years ago; can the insurer refuse?"),
    ("health", "My son is autistic and the school has excluded him."),
    ("health", "Rowena Wainwright was hospitalised after an overdose."),
    ("judicial", "Mr Thornbury was convicted of fraud in 2019."),
    ("judicial", "Ms Okafor was arrested at the airport last night."),
    ("judicial", "Mr Hallam was sentenced to eighteen months."),
    ("judicial", "Mrs Ferris obtained a restraining order against him."),
    ("judicial", "Mr Thornbury is on bail and must surrender his passport."),
    ("judicial", "My brother pleaded guilty to shoplifting as a teenager."),
    ("judicial", "Ms Okafor has filed for divorce."),
    ("judicial", "Imogen Wainwright was remanded until the trial."),
    ("secrecy", "Mr Hallam's file: our litigation strategy is to settle early."),
    ("secrecy", "This note to Mrs Ferris is covered by legal professional privilege."),
]
ENGLISH_TOPICS = [
    "What is multiple sclerosis?",
    "Explain bipolar disorder in simple words.",
    "Is an employer allowed to ask whether a candidate is pregnant?",
    "How long does chemotherapy usually last?",
    "What are the side effects of sertraline and fluoxetine?",
    "Compare insulin glargine with insulin degludec.",
    "The Mental Health Act 1983 sets out who may be detained.",
    "Section 2 of the Fraud Act 2006 creates an offence of false representation.",
    "A person convicted of an offence under this section is liable to imprisonment.",
    "Summarise the Sentencing Act 2020 on suspended sentences.",
    "What is the difference between bail and remand?",
    "How does a restraining order work in England?",
    "Which court hears divorce proceedings?",
    "The Equality Act 2010 protects employees with a disability.",
    "When does attorney-client privilege end?",
    "Draft a policy on sick notes and hospital appointments.",
    "Incidence of depression among adults, by region and year.",
    "Guidelines for the treatment of hypertension were updated.",
    "Should companies check a criminal record before hiring?",
    "Domestic abuse statistics for 2023, please.",
    "Is epilepsy a bar to driving a lorry?",
    "List books about addiction and rehab.",
]
ITALIAN_PERSONS = [
    ("health", "Alla sig.ra Ferrante hanno trovato la sclerosi multipla."),
    ("health", "Il sig. Tornabuoni soffre di depressione da anni."),
    ("health", "La sig.ra Ferrante è incinta, chiede il rinvio dell'udienza."),
    ("health", "Il sig. Tornabuoni è sieropositivo."),
    ("health", "La sig.ra Ferrante ha avuto un aborto spontaneo a marzo."),
    ("health", "Il sig. Tornabuoni comincia la chemioterapia lunedì."),
    ("health", "Dopo il tentato suicidio il sig. Tornabuoni è rimasto sotto osservazione."),
    ("health", "Mio marito è in comunità di recupero per la cocaina."),
    ("health", "Mia moglie ha un disturbo bipolare e non vuole curarsi."),
    ("health", "Learco Boccadoro è ricoverato in terapia intensiva."),
    ("health", "Mi hanno diagnosticato un linfoma: posso chiedere l'aspettativa?"),
    ("health", "Sono incinta e il datore non mi rinnova il contratto."),
    ("health", "Mio figlio è autistico e la scuola nega il sostegno."),
    ("health", "La sig.ra Ferrante è stata operata al cuore."),
    ("health", "Il sig. Tornabuoni è in dialisi tre volte alla settimana."),
    ("judicial", "Il sig. Tornabuoni è stato condannato per truffa nel 2019."),
    ("judicial", "Ieri notte la sig.ra Ferrante è stata arrestata in aeroporto."),
    ("judicial", "Il sig. Tornabuoni è stato condannato a due anni."),
    ("judicial", "Contro il sig. Tornabuoni c'è un divieto di avvicinamento."),
    ("judicial", "Il sig. Tornabuoni è ai domiciliari fino al processo."),
    ("judicial", "La sig.ra Ferrante ha patteggiato davanti al GIP."),
    ("judicial", "Mio fratello è in carcere e non può firmare."),
    ("secrecy", "Per il sig. Tornabuoni la linea difensiva sarà il silenzio."),
    ("secrecy", "Quanto detto dalla sig.ra Ferrante è coperto dal segreto medico."),
]
ITALIAN_TOPICS = [
    "Che cos'è la sclerosi multipla?",
    "Spiega il disturbo bipolare in parole semplici.",
    "Il datore può chiedere a una candidata se è incinta?",
    "Quanto dura di solito una chemioterapia?",
    "Quali sono gli effetti collaterali della sertralina, un antidepressivo?",
    "Confronta l'insulina glargine con la degludec.",
    "La legge 104 del 1992 prevede permessi retribuiti.",
    "L'art. 640 c.p. punisce la truffa con la reclusione da sei mesi a tre anni.",
    "Chi è condannato per un delitto non colposo perde il beneficio.",
    "Che differenza c'è tra arresti domiciliari e custodia cautelare?",
    "Come funziona il divieto di avvicinamento?",
    "Quale tribunale decide una separazione giudiziale?",
    "Il segreto professionale dell'avvocato: fonti e limiti.",
    "Riassumi la disciplina del patteggiamento dopo la riforma.",
    "Linee guida sull'ipertensione arteriosa, edizione aggiornata.",
    "L'incidenza della depressione negli adulti per regione.",
    "Scrivi una clausola sui certificati di ricovero dei dipendenti.",
    "Un trapianto di rene dà diritto all'invalidità civile?",
    "Statistiche sulla violenza domestica nel 2023.",
    "Serve il casellario giudiziale per un appalto?",
    "Chi ha l'epilessia può guidare un autocarro?",
    "Elenca libri sulle comunità di recupero.",
]


@pytest.mark.parametrize(("kind", "text"), ENGLISH_PERSONS + ITALIAN_PERSONS)
def test_what_is_said_of_somebody_is_c3(kind: str, text: str) -> None:
    found = classify_text(text)
    assert kind in {span.kind for span in found.spans}
    assert found.data_class is DataClass.C3


@pytest.mark.parametrize("text", ENGLISH_TOPICS + ITALIAN_TOPICS)
def test_a_topic_a_statute_a_drug_or_a_question_is_not_c3(text: str) -> None:
    assert classify_text(text).data_class <= DataClass.C1


@pytest.mark.parametrize(
    "text",
    [
        "Mrs Ferris will call about the invoice and the charge of 40 pounds.",
        "Mr Thornbury pays a custody fee for his securities.",
        "Mr Hallam says the button is disabled in the form.",
        "Ms Okafor passed her probation and stays in the team.",
        "Il sig. Tornabuoni va condannato al pagamento delle spese di lite.",
        "La sig.ra Ferrante critica l'operato di chi ha amministrato il condominio.",
    ],
)
def test_words_of_business_beside_a_person_are_no_sensitive_subject(text: str) -> None:
    assert classify_text(text).data_class is DataClass.C2
