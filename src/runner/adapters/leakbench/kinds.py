# SPDX-License-Identifier: Apache-2.0
"""The kinds of secrets, and how one of each is made.

Owns the table: a kind is a name, a family, the class a practice gives it, and a maker. The family says by
what it can be recognised at all, and so whether a leak of typed content is a failure (`plan`). Leaves
spelling a secret otherwise to `transforms`. Standard library only.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from random import Random
from string import ascii_letters, ascii_uppercase, digits
from typing import Final

from runner.adapters.leakbench import numbers
from runner.adapters.leakbench.people import (
    ABROAD,
    CLIENT_FIRMS,
    CLIENT_PERSONS,
    MONTHS,
    PASSAGES,
    STREETS,
    TOWNS,
    a_date,
    a_person,
)


class Family(Enum):
    """By what a secret can be recognised when nobody labelled it."""

    CHECK = "check digit"
    CREDENTIAL = "credential"
    REGISTER = "register"
    CONTEXT = "words beside it"
    CONTACT = "contact"
    SUBJECT = "subject and person"
    PASSAGE = "nothing but its source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """What is planted: `core` is hidden by a transform and looked for; the words around it stay."""

    before: str
    core: str
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of secret. `level` is its class, 0 to 3. `cased`: in other letters it is no secret any more."""

    name: str
    family: Family
    level: int
    make: Callable[[Random], Secret]
    cased: bool = False


def _some(dice: Random, alphabet: str, count: int) -> str:
    return "".join(dice.choice(alphabet) for _ in range(count))


def _behind(
    words: tuple[str, ...], core: Callable[[Random], str], after: str = ""
) -> Callable[[Random], Secret]:
    """Return the maker of a secret that stands behind one of `words`."""

    def make(dice: Random) -> Secret:
        return Secret(before=dice.choice(words), core=core(dice), after=after)

    return make


def _fiscal(dice: Random, *, replaced: int = 0, abroad: bool = False) -> str:
    place = dice.choice(ABROAD) if abroad else dice.choice(TOWNS)[2]
    return numbers.codice_fiscale(a_person(dice), a_date(dice), place, replaced=replaced)


def _address(dice: Random) -> str:
    code, town, _ = dice.choice(TOWNS)
    return f"{dice.choice(STREETS)} {dice.randint(1, 180)}, {code} {town}"


def _birth(dice: Random) -> Secret:
    day, month, year = a_date(dice)
    return Secret(before=f"{a_person(dice)}, nato il ", core=f"{day} {MONTHS[month - 1]} {year}")


def _mail(dice: Random, host: str) -> str:
    first, _, last = a_person(dice).lower().replace("'", "").replace("ò", "o").partition(" ")
    return f"{first}.{last}{dice.randint(1, 99)}@{host}"


def _plate(dice: Random) -> str:
    letters = "ABCDEFGHJKLMNPRSTVWXYZ"
    return f"{_some(dice, letters, 2)}{numbers.some_digits(dice, 3)}{_some(dice, letters, 2)}"


def _token(dice: Random) -> str:
    """Return a JSON web token, whose parts are base64 of JSON."""

    def part(value: dict[str, str]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = part({"sub": _some(dice, digits, 9), "name": a_person(dice)})
    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{claims}.{_some(dice, ascii_letters + digits, 43)}"


def _private_key(dice: Random) -> str:
    lines = "\n".join(_some(dice, ascii_letters + digits + "+/", 64) for _ in range(4))
    return f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----"


def _password(dice: Random) -> str:
    return f"{_some(dice, ascii_letters, 6)}{dice.choice('!#+?$')}{numbers.some_digits(dice, 3)}"


def _diagnosis(dice: Random) -> str:
    illness = dice.choice(("sclerosi multipla", "carcinoma mammario", "epatite C", "depressione maggiore"))
    return f"la paziente {a_person(dice)} ha una diagnosi di {illness}"


def _conviction(dice: Random) -> str:
    crime = dice.choice(("bancarotta fraudolenta", "lesioni personali", "truffa aggravata", "spaccio"))
    return f"l'imputato {a_person(dice)} ha una condanna per {crime}"


_CF: Final = ("codice fiscale: ", "C.F. ", "il codice fiscale dell'assistito è ")
_IBAN: Final = ("IBAN: ", "bonifico sul conto ", "coordinate bancarie ")
_FROM: Final = ("la chiave è ", "usa questa: ", "api key: ")
_TELEPHONE: Final = ("telefono ", "cell. ", "recapito: ")
_MIXED: Final = ascii_letters + digits

KINDS: Final = (
    Kind(name="codice fiscale", family=Family.CHECK, level=2, make=_behind(_CF, _fiscal)),
    Kind(
        name="codice fiscale, omocodia",
        family=Family.CHECK,
        level=2,
        make=_behind(_CF, lambda dice: _fiscal(dice, replaced=dice.randint(1, 3))),
    ),
    Kind(
        name="codice fiscale, born abroad",
        family=Family.CHECK,
        level=2,
        make=_behind(_CF, lambda dice: _fiscal(dice, abroad=True)),
    ),
    Kind(
        name="codice fiscale, provisional",
        family=Family.CHECK,
        level=2,
        make=_behind(("codice fiscale provvisorio dell'assistito: ",), numbers.partita_iva),
    ),
    Kind(
        name="partita IVA",
        family=Family.CHECK,
        level=1,
        make=_behind(("P.IVA ", "partita IVA: "), numbers.partita_iva),
    ),
    Kind(
        name="IBAN, Italy", family=Family.CHECK, level=2, make=_behind(_IBAN, lambda d: numbers.iban("IT", d))
    ),
    Kind(
        name="IBAN, Germany",
        family=Family.CHECK,
        level=2,
        make=_behind(_IBAN, lambda d: numbers.iban("DE", d)),
    ),
    Kind(
        name="IBAN, France",
        family=Family.CHECK,
        level=2,
        make=_behind(_IBAN, lambda d: numbers.iban("FR", d)),
    ),
    Kind(
        name="payment card",
        family=Family.CHECK,
        level=2,
        make=_behind(("carta di credito: ", "pagamento con carta "), numbers.card),
    ),
    Kind(
        name="tax number, Germany",
        family=Family.CHECK,
        level=2,
        make=_behind(("Steuer-Identifikationsnummer: ", "IdNr. "), numbers.tax_number_of_germany),
    ),
    Kind(
        name="identity card",
        family=Family.CONTEXT,
        level=2,
        make=_behind(
            ("carta d'identità n. ", "CIE "),
            lambda d: (
                f"C{_some(d, ascii_uppercase, 1)}{numbers.some_digits(d, 5)}{_some(d, ascii_uppercase, 2)}"
            ),
        ),
    ),
    Kind(
        name="passport",
        family=Family.CONTEXT,
        level=2,
        make=_behind(("passaporto n. ", "passport "), lambda d: f"YA{numbers.some_digits(d, 7)}"),
    ),
    Kind(
        name="driving licence",
        family=Family.CONTEXT,
        level=2,
        make=_behind(
            ("patente di guida n. ",),
            lambda d: f"GE{numbers.some_digits(d, 7)}{_some(d, ascii_uppercase, 1)}",
        ),
    ),
    Kind(
        name="health card",
        family=Family.CONTEXT,
        level=2,
        make=_behind(("tessera sanitaria ",), lambda d: f"80380{numbers.some_digits(d, 15)}"),
    ),
    Kind(
        name="number plate", family=Family.CONTEXT, level=2, make=_behind(("auto targata ", "targa "), _plate)
    ),
    Kind(
        name="case number",
        family=Family.CONTEXT,
        level=2,
        make=_behind(
            ("R.G. n. ", "R.G.N.R. "), lambda d: f"{d.randint(1000, 29999)}/{d.randint(2012, 2026)}"
        ),
    ),
    Kind(
        name="land register",
        family=Family.CONTEXT,
        level=2,
        make=_behind(
            ("catasto fabbricati, ",),
            lambda d: f"foglio {d.randint(10, 99)}, particella {d.randint(100, 999)}, sub {d.randint(1, 40)}",
        ),
    ),
    Kind(
        name="email",
        family=Family.CONTACT,
        level=2,
        make=_behind(("scrivere a ", "email: "), lambda d: _mail(d, "postafamiglia.example")),
    ),
    Kind(
        name="PEC",
        family=Family.CONTACT,
        level=2,
        make=_behind(("PEC: ",), lambda d: _mail(d, "pec.notifiche.example")),
    ),
    Kind(
        name="mobile telephone",
        family=Family.CONTACT,
        level=2,
        make=_behind(_TELEPHONE, lambda d: f"+39 34{d.randint(0, 9)} {numbers.some_digits(d, 7)}"),
    ),
    Kind(
        name="land-line telephone",
        family=Family.CONTACT,
        level=2,
        make=_behind(_TELEPHONE, lambda d: f"010 {d.randint(2, 8)}{numbers.some_digits(d, 6)}"),
    ),
    Kind(
        name="home address",
        family=Family.CONTACT,
        level=2,
        make=_behind(("residente in ", "domicilio: "), _address),
    ),
    Kind(name="birth date", family=Family.CONTACT, level=2, make=_birth),
    Kind(
        name="client, person",
        family=Family.REGISTER,
        level=2,
        make=_behind(("la pratica di ", "per conto di "), lambda d: d.choice(CLIENT_PERSONS)),
    ),
    Kind(
        name="client, organisation",
        family=Family.REGISTER,
        level=2,
        make=_behind(("l'offerta di ", "il bilancio di "), lambda d: d.choice(CLIENT_FIRMS)),
    ),
    Kind(
        name="key of a cloud",
        family=Family.CREDENTIAL,
        level=3,
        cased=True,
        make=_behind(_FROM, lambda d: f"AKIA{_some(d, ascii_uppercase + '234567', 16)}"),
    ),
    Kind(
        name="key of a model provider",
        family=Family.CREDENTIAL,
        level=3,
        cased=True,
        make=_behind(_FROM, lambda d: f"sk-proj-{_some(d, _MIXED, 44)}"),
    ),
    Kind(
        name="token of a code host",
        family=Family.CREDENTIAL,
        level=3,
        cased=True,
        make=_behind(_FROM, lambda d: f"ghp_{_some(d, _MIXED, 36)}"),
    ),
    Kind(
        name="token of a chat service",
        family=Family.CREDENTIAL,
        level=3,
        cased=True,
        make=_behind(_FROM, lambda d: f"xoxb-{numbers.some_digits(d, 12)}-{_some(d, _MIXED, 24)}"),
    ),
    Kind(name="web token", family=Family.CREDENTIAL, level=3, cased=True, make=_behind(_FROM, _token)),
    Kind(
        name="private key",
        family=Family.CREDENTIAL,
        level=3,
        cased=True,
        make=_behind(("la chiave: ",), _private_key),
    ),
    Kind(
        name="password",
        family=Family.CONTEXT,
        level=3,
        cased=True,
        make=_behind(("password: ", "la password è ", "pwd="), _password),
    ),
    Kind(name="diagnosis", family=Family.SUBJECT, level=3, make=_behind(("dal referto: ",), _diagnosis)),
    Kind(name="conviction", family=Family.SUBJECT, level=3, make=_behind(("dal casellario: ",), _conviction)),
    Kind(
        name="confidential passage",
        family=Family.PASSAGE,
        level=3,
        make=_behind(("",), lambda d: d.choice(PASSAGES)),
    ),
)
"""The kinds, in the order of the report."""
