# SPDX-License-Identifier: Apache-2.0
"""I6, the other side: a question of law or medicine with an author, a sign or Tizio in it is no secret."""

import pytest

from runner.kernel.labels import DataClass
from runner.perimeter.classify import Classifier, classify_text
from runner.perimeter.classify.names import GIVEN, SURNAMES
from runner.perimeter.classify.nobody import _is_asked, without_nobody

PROMPTS = """\
Translate: the defendant was acquitted of all charges.
Proofread: Depression is common after a stroke and often goes untreated.
Rephrase: the patient has a right to refuse treatment for cancer.
Simplify: schizophrenia is not a split personality.
Outline: sentencing for manslaughter, aggravating factors first.
Shorten: an offender who was convicted abroad must be told of the effects.
Paraphrase: a conviction is spent after the rehabilitation period.
Summarise: how bail was granted before the reform.
Hint: bipolar disorder is often mistaken for depression.
Quiz: which antidepressants are safe in pregnancy?
Goals: reduce relapse, improve adherence, prevent suicide.
Audience: parents of children with epilepsy.
Causes: cirrhosis, hepatitis, alcoholism.
Aetiology: why does multiple sclerosis run in families?
Epilepsy: what are the first-line drugs in adults?
Leukaemia: staging in one table, please.
Riscrivi: la schizofrenia e la sua terapia in parole semplici.
Correggi: l'imputato è stato assolto perché il fatto non sussiste.
Accorcia: la depressione post partum colpisce una donna su dieci.
Semplifica: il condannato può chiedere la riabilitazione dopo tre anni.
Traducilo: the sentence was suspended on appeal.
Riformula: la violenza sessuale è procedibile a querela.
Sintetizza: il testo tratta dell'aborto e dell'obiezione di coscienza.
Commenta: l'arresto in flagranza è facoltativo.
Migliora: il diabete gestazionale si cura con la dieta.
Espandi: chi è stato arrestato ha diritto di avvisare i familiari.
Massima: la diagnosi tardiva di tumore è danno risarcibile.
Traccia: il candidato parli della custodia cautelare in carcere.
Quesito: l'epilessia esclude l'idoneità alla guida?
Eziologia: cirrosi, epatite, alcolismo.
Destinatari: familiari di malati di demenza.
Leucemia: stadi e terapia in una tabella.
Epilessia: quali farmaci evitare in gravidanza?
What does a positive Murphy sign indicate?
What does a positive Kernig sign indicate in meningitis?
How do I elicit the Chvostek sign, and is it specific?
How is the Whipple procedure done for pancreatic cancer?
What does the Rovsing sign add in appendicitis?
What is the Killip classification and does it predict death?
Explain the Ranson criteria for pancreatitis.
Which Mallampati score makes intubation hard?
How do the Rinne and Weber tests differ?
Che cosa indica il segno di Rovsing nell'appendicite?
Come si esegue la manovra di Hallpike?
Quando la sindrome di Sheehan segue un aborto?
Che cos'è la triade di Whipple nell'insulinoma?
Come si valuta il punteggio di Mallampati prima dell'anestesia?
Quali criteri di Ranson contano nella pancreatite?
According to Goodman and Gilman, how does lithium treat bipolar disorder?
According to Robbins and Cotran, what are the hallmarks of cancer?
According to Wigmore, is hearsay admissible in rape trials?
As Blackstone explains, which wrongs are murder?
Explain what Hippocrates wrote about epilepsy.
Explain how Semmelweis discovered the cause of puerperal fever.
What did Bleuler write about schizophrenia?
How did Kraepelin classify psychosis?
Compare how Kelsen defines punishment with the view of the utilitarians.
Secondo Antolisei, quando il dolo è eventuale nell'omicidio?
Come distingue Roxin tra autore e partecipe nel reato?
Come spiega Galgano, quando la simulazione è relativa?
Che cosa ha scritto Basaglia sulla schizofrenia?
Che cosa insegna Carnelutti sulla pena dell'ergastolo?
Perché Fleming scoprì la penicillina per caso?
Tizio uccide Caio per legittima difesa: spiega l'art. 52 c.p.
Esempio: Mevio è affetto da demenza e vende la casa a Sempronio. Il contratto è annullabile?
Il sig. Tizio cita Caio per danni: chi ha l'onere della prova?
Tizio, Caio e Sempronio sono coeredi: come si divide?
Sempronio ha firmato una fideiussione per Mevio: può recedere?
Tizio è stato condannato per rapina: quando ottiene la semilibertà?
John Doe sues Jane Roe for libel: who bears the burden?
If Joe Bloggs was convicted of theft, when is it spent?
A fact pattern: Jane Doe was diagnosed with cancer too late. Is there negligence?
Describe how the Apgar score is taken, for new parents.
Cosa prevede la legge sul consenso informato per un minore in dialisi?
Draft a leaflet on living with HIV for our waiting room.
Prepara una lezione sul delirio da astinenza alcolica.
Which drugs prolong the QT interval in patients on methadone?
Quali sono le pene per lo stalking dopo la riforma?
Write a model letter that refuses a request for medical records.
Scrivi un modello di querela per diffamazione a mezzo stampa.""".splitlines()
DENIED_AT_MOST = 0.02


def test_prompts_of_a_law_office_and_a_doctor_pass_the_ceiling_of_the_attached_profile() -> None:
    found = {text: classify_text(text) for text in PROMPTS}
    denied = {
        text: [(span.rule, text[span.start : span.end]) for span in found[text].spans]
        for text in PROMPTS
        if found[text].data_class > DataClass.C1
    }
    assert len(PROMPTS) >= 60
    assert len(denied) <= DENIED_AT_MOST * len(PROMPTS), denied


@pytest.mark.parametrize(
    ("text", "data_class"),
    [
        ("Translate: Mario Rossi was acquitted of all charges.", DataClass.C3),
        ("Riscrivi: il sig. Rossini soffre di schizofrenia.", DataClass.C3),
        ("Rossini: agrees to the price", DataClass.C2),
        ("- Rossini: schizofrenia, terapia in corso", DataClass.C3),
        ("Pare che Rossini positivo al test abbia un tumore.", DataClass.C3),
        ("We hope that Murphy signs before the chemotherapy.", DataClass.C3),
        ("Mr Hint has cancer.", DataClass.C3),
        ("Fletcher: non paga da marzo", DataClass.C2),
        ("Mr Murphy signed. Murphy sign is negative, Murphy has cancer.", DataClass.C3),
        ("La malattia di Rossini: mia moglie gli porta la spesa.", DataClass.C2),
        ("Rossini said the wall was not his. According to Rossini, which wall is it?", DataClass.C2),
        ("According to Rossini, the wall was never his.", DataClass.C2),
        ("According to Mario Rossi, what did the doctor say about his cancer?", DataClass.C3),
        ("Il sig. Caio Rossini ha la febbre.", DataClass.C2),
        ("Tizio e la signora Rossini litigano: lei soffre di depressione.", DataClass.C3),
        ("What did Fletcher write about on the form? My client has cancer.", DataClass.C3),
    ],
)
def test_somebody_stays_somebody(text: str, data_class: DataClass) -> None:
    """I6: an instruction, an example or a quotation beside a person takes nothing away from the person."""
    assert classify_text(text).data_class is data_class


def test_an_author_beside_a_person_is_judged_as_one() -> None:
    """The same words alone and beside a telephone number: the second sign decides."""
    alone = "According to Fletcher, what is due?"
    assert classify_text(alone).data_class is DataClass.C0
    kinds = {span.kind for span in classify_text(f"{alone} Call her on 020 7946 0958.").spans}
    assert kinds == {"person", "phone"}


def test_a_client_of_the_register_is_never_nobody() -> None:
    """Only persons by their words are judged: what else is found comes through as it was."""
    text = b"tizio, john doe"
    spans = [span._replace(kind="client") for span in classify_text("il sig. Rossini").spans]
    assert without_nobody(text, spans, []) == (spans, [])


def test_what_is_encoded_is_never_nobody() -> None:
    """I6: nobody writes Tizio in percent signs for an exercise."""
    assert Classifier().classify("sig%2E%20%54izio%20ha%20firmato").data_class is DataClass.C2
    assert classify_text("According to %52ossini, what is due?").data_class is DataClass.C2


def test_no_known_name_is_a_word_of_instruction_or_a_subject() -> None:
    """The lists were made by hand: what is a given name or a common surname may not slip in."""
    assert [name for name in sorted(GIVEN | SURNAMES) if _is_asked(name)] == []
