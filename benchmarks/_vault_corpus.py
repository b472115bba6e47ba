# SPDX-License-Identifier: Apache-2.0
"""A practice that nobody has: documents made of facts, and questions whose right answers the facts say.

Owns texts and questions. A document is about one client, one affair and one kind of paper; its sentences are
drawn from those of the affair, between sentences that stand in any letter. A question names an affair in a
person's own words, often in other forms of them, or with others altogether, and a client, a kind or a place.
Which documents answer it follows from the facts alone: no search was asked while this was written.

Grades: 3 for a document of everything that the question names, 2 where only the kind of paper is another one,
1 for the same client's other affairs, or, where no client is named, for the affair elsewhere.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

FIRST = [
    "Ada",
    "Bruno",
    "Carla",
    "Dario",
    "Elena",
    "Furio",
    "Gaia",
    "Hilda",
    "Ivo",
    "Lia",
    "Mauro",
    "Nora",
    "Olga",
    "Pietro",
    "Quinto",
    "Rita",
    "Sara",
    "Tullio",
    "Ugo",
    "Vera",
    "Zoe",
    "Aldo",
    "Bianca",
    "Ciro",
    "Dora",
    "Enzo",
    "Fabia",
    "Gino",
    "Ilda",
    "Leo",
]
LAST = [
    "Abbadini",
    "Barcolli",
    "Cantarutti",
    "Dalmonego",
    "Erbetti",
    "Fontalba",
    "Gambarucci",
    "Iacovelli",
    "Lavezzani",
    "Mondragola",
    "Nardelloni",
    "Ombretti",
    "Passerinelli",
    "Quattrocchini",
    "Rovigatti",
    "Santambrosi",
    "Tavernelli",
    "Ubertazzi",
    "Valsecchini",
    "Zandegiacomi",
    "Bellandi",
    "Corvatti",
    "Dellacroce",
    "Fumagallini",
    "Gherardoni",
    "Lanfranconi",
    "Morandelli",
    "Orsatti",
    "Pellizzari",
    "Ruscigno",
]
PLACES = [
    "Trieste",
    "Udine",
    "Ferrara",
    "Modena",
    "Cuneo",
    "Asti",
    "Lecce",
    "Bari",
    "Siena",
    "Arezzo",
    "Rieti",
    "Terni",
    "Ancona",
    "Pescara",
    "Nuoro",
    "Sassari",
    "Ragusa",
    "Enna",
    "Como",
    "Varese",
]
MONTHS = [
    "gennaio",
    "febbraio",
    "marzo",
    "aprile",
    "maggio",
    "giugno",
    "luglio",
    "agosto",
    "settembre",
    "ottobre",
    "novembre",
    "dicembre",
]
ENGLISH_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
KINDS = {
    "lettera": ("Oggetto: comunicazione", "Gentile Collega,", "Distinti saluti"),
    "verbale": ("Verbale di riunione", "Sono presenti le parti e i difensori.", "Letto e sottoscritto"),
    "parere": ("Parere pro veritate", "Mi è stato chiesto quanto segue.", "Questo il mio avviso"),
    "atto": ("Atto giudiziario", "All'Ill.mo Tribunale.", "Con osservanza"),
}
ENGLISH_KINDS = {
    "letter": ("Re: your matter", "Dear colleague,", "Yours faithfully"),
    "minutes": ("Minutes of a meeting", "The parties and counsel attended.", "Read and signed"),
    "opinion": ("Opinion of counsel", "I have been asked to advise.", "That is my advice"),
    "claim": ("Particulars of claim", "In the county court.", "I believe these facts are true"),
}
AFFAIRS = {
    "licenziamento": (
        "Il datore di lavoro ha intimato il licenziamento per giusta causa il {date}.",
        "La lavoratrice ha impugnato il provvedimento entro sessanta giorni.",
        "Si chiede la reintegrazione nel posto di lavoro e il pagamento di {amount} euro di arretrati.",
        "La contestazione disciplinare non indicava i fatti con sufficiente precisione.",
        "Le mansioni svolte erano superiori a quelle del livello di inquadramento.",
    ),
    "sfratto": (
        "Il conduttore non ha versato i canoni di locazione da {month}.",
        "È stato notificato lo sfratto per morosità con citazione per la convalida.",
        "L'immobile di {place} deve essere rilasciato libero da persone e cose.",
        "La cauzione versata ammonta a {amount} euro.",
        "L'inquilino chiede il termine di grazia per sanare gli arretrati.",
    ),
    "divorzio": (
        "I coniugi vivono separati dal {date} e non vi è stata riconciliazione.",
        "L'assegno di mantenimento per i figli è di {amount} euro al mese.",
        "L'affidamento dei minori è condiviso, con collocamento presso la madre.",
        "La casa coniugale di {place} resta assegnata al genitore collocatario.",
        "Si domanda la cessazione degli effetti civili del matrimonio.",
    ),
    "successione": (
        "Il defunto ha lasciato un testamento olografo pubblicato il {date}.",
        "Gli eredi legittimari lamentano la lesione della quota di riserva.",
        "L'asse ereditario comprende un terreno a {place} e titoli per {amount} euro.",
        "È stata accettata l'eredità con beneficio d'inventario.",
        "Il notaio ha redatto la dichiarazione di successione.",
    ),
    "sinistro": (
        "Il veicolo non ha rispettato la precedenza all'incrocio di {place}.",
        "La vittima ha riportato fratture e una inabilità temporanea di quaranta giorni.",
        "La compagnia di assicurazione offre {amount} euro a titolo di risarcimento.",
        "La constatazione amichevole è stata firmata da entrambi i guidatori.",
        "Il perito ha stimato i danni alla carrozzeria il {date}.",
    ),
    "ingiunzione": (
        "Il creditore vanta fatture insolute per {amount} euro.",
        "Il giudice ha emesso decreto ingiuntivo provvisoriamente esecutivo.",
        "Il debitore ha proposto opposizione il {date}.",
        "È stato avviato il pignoramento del conto corrente presso la banca di {place}.",
        "Gli interessi di mora decorrono dalla scadenza di ogni fattura.",
    ),
    "appalto": (
        "L'impresa ha consegnato il cantiere di {place} con tre mesi di ritardo.",
        "Il committente denuncia vizi dell'opera: infiltrazioni dal tetto e crepe nei muri.",
        "La penale pattuita è di {amount} euro per ogni settimana.",
        "Il collaudo del {date} si è concluso con riserve.",
        "Il direttore dei lavori ha ordinato il rifacimento dell'impermeabilizzazione.",
    ),
    "marchio": (
        "La società registra il marchio figurativo dal {date}.",
        "Un concorrente di {place} vende borse con un segno confondibile.",
        "Si chiede il sequestro della merce contraffatta e l'inibitoria.",
        "Il danno da lucro cessante è stimato in {amount} euro.",
        "La diffida è rimasta senza riscontro.",
    ),
    "allergia": (
        "Il paziente ha avuto una reazione allergica dopo la penicillina.",
        "Durante il ricovero a {place} sono comparsi orticaria e difficoltà respiratoria.",
        "È stata somministrata adrenalina e il quadro è regredito.",
        "La cartella clinica del {date} non riportava l'anamnesi dei farmaci.",
        "Si sconsigliano in futuro antibiotici beta-lattamici.",
    ),
    "gravidanza": (
        "La paziente è alla ventesima settimana e l'ecografia è nella norma.",
        "Il test del {date} ha mostrato una glicemia alterata.",
        "Si prescrive una dieta e il controllo quotidiano dell'insulina.",
        "Il parto è previsto presso l'ospedale di {place}.",
        "La ginecologa raccomanda riposo e la sospensione del lavoro notturno.",
    ),
    "privacy": (
        "Un dipendente ha inviato per errore l'elenco dei clienti a un indirizzo esterno.",
        "La violazione dei dati è stata notificata al Garante il {date}.",
        "Gli interessati sono stati informati con una comunicazione individuale.",
        "Il registro dei trattamenti della sede di {place} non era aggiornato.",
        "La sanzione proposta è di {amount} euro.",
    ),
    "quote": (
        "I soci cedono il quaranta per cento delle quote al prezzo di {amount} euro.",
        "Lo statuto prevede la prelazione a favore degli altri soci.",
        "L'atto è stato rogato dal notaio di {place} il {date}.",
        "Il bilancio non espone passività potenziali verso il fisco.",
        "L'acquirente rilascia una fideiussione bancaria a garanzia.",
    ),
}
ENGLISH_AFFAIRS = {
    "dismissal": (
        "The employer terminated the contract without notice on {date}.",
        "The claimant was earning a salary of {amount} pounds a year.",
        "She says that the redundancy was a sham and that her post was advertised again.",
        "The grievance was never heard by the manager in {place}.",
        "ACAS was told before the time limit ran out.",
    ),
    "tenancy": (
        "The tenants stopped paying rent in {month}.",
        "A notice seeking possession was served on {date}.",
        "The boiler of the flat in {place} has been broken all winter.",
        "The deposit of {amount} pounds was not protected in a scheme.",
        "The landlord wants the keys back.",
    ),
    "confidentiality": (
        "The former director copied the customer database on {date}.",
        "The agreement forbids disclosure of trade secrets for five years.",
        "An injunction was granted to restrain any use of the files.",
        "The rival firm in {place} denies having received anything.",
        "Damages of {amount} pounds are claimed.",
    ),
    "surgery": (
        "The operation on the left knee was carried out on {date}.",
        "The consent form did not mention the risk of nerve injury.",
        "The patient still limps and takes painkillers every night.",
        "The hospital in {place} has disclosed the anaesthetic chart.",
        "Our expert puts the cost of future care at {amount} pounds.",
    ),
    "merger": (
        "The buyer acquires all issued shares for {amount} pounds.",
        "Completion is conditional on the approval of the regulator in {place}.",
        "The warranties expire eighteen months after {date}.",
        "The disclosure letter lists two pending lawsuits.",
        "Employees keep their pension entitlements.",
    ),
}
FILLER = (
    "Si allegano i documenti richiesti in copia semplice.",
    "Resto a disposizione per ogni chiarimento e porgo cordiali saluti.",
    "La prossima udienza è fissata per il {date} alle ore dieci.",
    "Il fascicolo è stato depositato in cancelleria a {place}.",
    "Le spese di lite seguono la soccombenza.",
    "Il pagamento dell'onorario è avvenuto con bonifico di {amount} euro.",
    "Si prega di confermare la ricezione della presente.",
    "Il cliente è stato informato dei rischi e dei costi.",
    "La controparte chiede un rinvio per trattative.",
    "Il consulente tecnico depositerà la relazione entro {month}.",
    "Per il resto si richiama quanto già scritto.",
    "Il termine scade il {date} e non è prorogabile.",
)
ENGLISH_FILLER = (
    "Copies of the papers are enclosed.",
    "Please let me know if anything is unclear.",
    "The next hearing is listed for {date} at ten.",
    "The file is kept at our office in {place}.",
    "Costs follow the event.",
    "Our fee of {amount} pounds has been paid.",
    "Kindly acknowledge receipt of this note.",
    "The client has been told about risk and cost.",
    "The other side asks for an adjournment to negotiate.",
    "The report of the expert is due in {month}.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A document and the facts it was made of."""

    path: str
    text: str
    client: int
    affair: str
    kind: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person asks, and the facts that its answers have."""

    text: str
    affair: str
    client: int | None = None
    kind: str | None = None
    place: str | None = None

    def grade(self, paper: Paper) -> int:
        """Return 0 to 3."""
        if self.client is not None and paper.client != self.client:
            return 0
        if paper.affair != self.affair:
            return int(self.client is not None)
        if self.place is not None and paper.place != self.place:
            return 1
        return 3 if self.kind in (None, paper.kind) else 2


def client_name(number: int) -> str:
    """Return the name of a client: no two of the first 900 are the same."""
    name = f"{FIRST[number // len(LAST) % len(FIRST)]} {LAST[number % len(LAST)]}"
    return name if number < len(FIRST) * len(LAST) else f"{name} {number // (len(FIRST) * len(LAST)) + 1}"


def papers(count: int, seed: int = 1) -> Iterator[Paper]:
    """Yield `count` documents: each client has two affairs, each affair four papers."""
    chance = random.Random(seed)  # noqa: S311 - made-up texts
    affairs = [*AFFAIRS, *ENGLISH_AFFAIRS]
    for number in range(count):
        client, paper = divmod(number, 8)
        affair = affairs[(client * 7 + paper // 4 * 5) % len(affairs)]
        english = affair in ENGLISH_AFFAIRS
        kind = list(ENGLISH_KINDS if english else KINDS)[paper % 4]
        yield _paper(chance, number, client=client, affair=affair, kind=kind)


def _paper(chance: random.Random, number: int, *, client: int, affair: str, kind: str) -> Paper:
    english = affair in ENGLISH_AFFAIRS
    place = PLACES[(client * 3 + len(affair)) % len(PLACES)]
    head, greeting, end = (ENGLISH_KINDS if english else KINDS)[kind]
    own = chance.sample((ENGLISH_AFFAIRS if english else AFFAIRS)[affair], 4)
    other = chance.sample(ENGLISH_FILLER if english else FILLER, 8)
    body = [own[0], *chance.sample([*own[1:], *other], len(own) + len(other) - 1)]
    lines = [
        head,
        f"{'Client' if english else 'Assistito'}: {client_name(client)}",
        f"{'Ref.' if english else 'R.G.'} {1000 + number}/{2019 + number % 8}",
        "",
        greeting,
        "",
        *(_filled(chance, sentence, place, english=english) for sentence in body),
        "",
        end,
    ]
    folder = client_name(client).replace(" ", "_").lower()
    return Paper(
        path=f"{folder}/{kind}_{number:05}.txt",
        text="\n".join(lines) + "\n",
        client=client,
        affair=affair,
        kind=kind,
        place=place,
    )


def _filled(chance: random.Random, sentence: str, place: str, *, english: bool) -> str:
    day, month, year = chance.randrange(1, 28), chance.randrange(12), chance.randrange(2019, 2027)
    name = (ENGLISH_MONTHS if english else MONTHS)[month]
    written = chance.choice([f"{day} {name} {year}", f"{day:02}/{month + 1:02}/{year}"])
    return sentence.format(
        date=written, month=name, place=place, amount=f"{chance.randrange(1, 90)}.{chance.randrange(10)}00"
    )


# Who asks writes as people do: other forms of a word, other words, no articles, a slip of the shift key.
ASKED: Sequence[tuple[str, str]] = (
    ("licenziamento", "perché hanno licenziato {client}"),
    ("licenziamento", "impugnazione licenziamento disciplinare {client}"),
    ("licenziamento", "reintegra sul posto di lavoro e arretrati {client}"),
    ("sfratto", "{client} inquilini morosi, canone non pagato"),
    ("sfratto", "convalida dello sfratto di {client}"),
    ("divorzio", "quanto deve versare {client} per mantenere i figli"),
    ("divorzio", "separazione di {client} affido figli minorenni"),
    ("successione", "eredi di {client} quota di legittima lesa"),
    ("successione", "il testamento di cui si occupa {client}"),
    ("sinistro", "incidente stradale {client} risarcimenti offerti dalle assicurazioni"),
    ("sinistro", "quali lesioni e fratture per {client}"),
    ("ingiunzione", "opposizioni a decreti ingiuntivi {client}"),
    ("ingiunzione", "pignorare il conto: pratica {client}"),
    ("appalto", "difetti costruttivi e infiltrazione d'acqua dal tetto, {client}"),
    ("appalto", "penali per il ritardo nei lavori {client}"),
    ("marchio", "contraffazione del marchio di {client}"),
    ("marchio", "sequestrare le borse imitate {client}"),
    ("allergia", "a quali farmaci è allergico {client}"),
    ("allergia", "reazioni alla penicillina {client}"),
    ("gravidanza", "{client} esami in gravidanza e glicemie"),
    ("gravidanza", "quando partorisce {client}"),
    ("privacy", "notifica al garante per {client}"),
    ("privacy", "dati personali violati, elenchi di clienti spediti per sbaglio {client}"),
    ("quote", "cessione delle quote sociali di {client}"),
    ("quote", "diritto di prelazione dei soci {client}"),
    ("dismissal", "why was {client} dismissed"),
    ("dismissal", "unfair redundancies claim of {client}"),
    ("tenancy", "is the tenant of {client} paying the rents"),
    ("tenancy", "unprotected deposits and repairs, {client}"),
    ("confidentiality", "who copied customers' databases, {client}"),
    ("confidentiality", "injunctions against disclosing trade secrets {client}"),
    ("surgery", "risks the patient consented to before knee operations {client}"),
    ("surgery", "care costs {client} expert"),
    ("merger", "acquisition of shares and warranty expiry {client}"),
    ("merger", "pending litigation disclosed to the buyers of {client}"),
)
PLACED: Sequence[tuple[str, str]] = (
    ("sfratto", "sfratti per immobili a {place}"),
    ("appalto", "cantieri in ritardo a {place}"),
    ("sinistro", "scontri agli incroci di {place}"),
    ("allergia", "ricoveri per allergie ai medicinali, {place}"),
    ("ingiunzione", "pignoramenti in banca a {place}"),
    ("successione", "terreni ereditati a {place}"),
    ("surgery", "knee surgeries in {place} hospitals"),
    ("tenancy", "flats in {place} with broken boilers"),
    ("confidentiality", "rivals in {place} accused of using our files"),
)


def questions(documents: Sequence[Paper], seed: int = 1) -> list[Question]:
    """Return the questions, each about facts that some of `documents` have; every third names a kind."""
    chance, found = random.Random(6 + seed), []  # noqa: S311 - made-up questions
    for number, (affair, text) in enumerate(ASKED):
        paper = chance.choice([each for each in documents if each.affair == affair])
        named = paper.kind if number % 3 == 0 else None
        said = text.format(client=client_name(paper.client))
        said = said if named is None else f"{named}: {said}"
        found.append(Question(text=said, affair=affair, client=paper.client, kind=named))
    for affair, text in PLACED:
        paper = chance.choice([each for each in documents if each.affair == affair])
        found.append(Question(text=text.format(place=paper.place), affair=affair, place=paper.place))
    return found
