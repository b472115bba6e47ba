# SPDX-License-Identifier: Apache-2.0
"""People and firms that do not exist, and where they live: the words of the planted secrets.

Owns these lists, and the client register of the bench, which a run adds to the profile's own. Leaves what is
made of them to `kinds`. Standard library only: nothing here knows what a detector looks for.
"""

from random import Random
from typing import Final

FIRST: Final = (
    *("Tancredi", "Ludovica", "Eleonora", "Ruggero", "Ginevra", "Baldassarre", "Ottilia", "Fiorenzo"),
    *("Niccolò", "Debora", "Amedeo", "Costanza", "Ermanno", "Zaira", "Ulderico", "Mafalda"),
)
LAST: Final = (
    *("Belfiore", "Santangelo", "Quaranta", "Montefusco", "Zamparelli", "Cavazzuti", "Pellegrinotti"),
    *("Scognamillo", "Bertolazzi", "Ravagnani", "Trombadori", "Giustiniani", "Mezzacapo", "D'Ambruoso"),
    *("Varricchio", "Lombardozzi"),
)
STREETS: Final = ("via dei Glicini", "viale Bezzecca", "corso Martinetti", "via Fieschi", "piazza Dinegro")
TOWNS: Final = (("16128", "Genova", "D969"), ("20135", "Milano", "F205"), ("00185", "Roma", "H501"))
ABROAD: Final = ("Z110", "Z112", "Z129", "Z330", "Z514")
"""The codes by which a codice fiscale names France, Germany, Romania, Morocco and Mexico."""
MONTHS: Final = (
    *("gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno"),
    *("luglio", "agosto", "settembre", "ottobre", "novembre", "dicembre"),
)

CLIENT_PERSONS: Final = (
    "Ildebrando Castelvecchio",
    "Serafina Quintavalle",
    "Gualtiero Ormezzano",
    "Clotilde Bassignani",
    "Evaristo Malagodi",
    "Noemi Strozzapane",
    "Prospero Gambalunga",
    "Isotta Verdelocco",
    "Niccolò Frangipàne",
    "Leopoldo Ancellotti",
)
CLIENT_FIRMS: Final = (
    "Torrefazione Meridiana S.r.l.",
    "Cantieri Navali Portoscuro S.p.A.",
    "Officine Meccaniche Valdombra S.n.c.",
    "Cooperativa Agricola Pratolungo",
    "Laboratori Farmaceutici Celestina S.r.l.",
    "Immobiliare Castagneto Alto S.p.A.",
)
"""Who stands in the client register of the bench."""

PASSAGES: Final = (
    (
        "il comitato ha scelto di tacere la rottura delle trattative fino a quando le banche non avranno "
        "firmato il nuovo accordo sulla ristrutturazione del debito"
    ),
    (
        "la proposta riservata prevede che il socio uscente rinunci alla clausola di gradimento in cambio "
        "di una quota maggiore degli utili non distribuiti del triennio"
    ),
    (
        "abbiamo concordato di non produrre in giudizio la perizia sfavorevole e di puntare invece sulla "
        "decadenza del termine, che la controparte non sembra avere notato"
    ),
    (
        "the board agreed to keep the failed audit of the northern plant out of the prospectus until the "
        "second bridge loan has been drawn and the guarantor has been replaced"
    ),
)
"""Passages that are confidential by where they stand, and hold no name or number."""


def a_person(dice: Random) -> str:
    """Return first and last name of somebody."""
    return f"{dice.choice(FIRST)} {dice.choice(LAST)}"


def a_date(dice: Random) -> tuple[int, int, int]:
    """Return day, month and year of a birth."""
    return dice.randint(1, 28), dice.randint(1, 12), dice.randint(1931, 2004)
