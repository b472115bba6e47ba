# SPDX-License-Identifier: Apache-2.0
"""The table of contacts and persons: addresses, telephones, births, names behind a title.

Owns how a person can be reached or is introduced. Leaves names without a title to the client
register and the name lexicon, which are given to a `Classifier` by whoever holds them.
Carries I6: contact data typed or pasted by a person is found without anybody having labelled it.
"""

from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify import names, phones
from runner.perimeter.classify.firms import ADDRESSES, ORGANISATIONS
from runner.perimeter.classify.model import Rule
from runner.perimeter.classify.persons import PERSONS, WORD

_C1: Final = DataClass.C1
_C2: Final = DataClass.C2
_EDGE: Final = r"(?:^|[^0-9A-Za-z])"
_END: Final = r"(?:$|[^0-9A-Za-z])"
_DOMAIN: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,40}[A-Za-z0-9])?\.){1,5}[A-Za-z]{2,24}"
_LOCAL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._%+'\-]{0,62}[A-Za-z0-9_+\-])?"
_AT: Final = r"(?: ?@ ?|@\r?\n[ \t]{0,4}|\s?[\[(](?:at|chiocciola)[\])]\s?)"
_AT_SIGN: Final = r"(?i)@|[\[(](?:at|chiocciola)[\])]"
_CALL: Final = (
    r"(?i)tel(?:\.|efon)|(?:^|[^a-z])tel(?:[^a-z]|$)|cell(?:\.|ulare|[^a-z])|(?:^|[^a-z])mobile|fax|phone|"
    r"whatsapp|recapit|(?:^|[^a-z])chiam|contatt|utenza|"
    r"(?:^|[^a-z])(?:call|ring|reach|text) (?:me|us|him|her|them) (?:back )?(?:on|at)(?:[^a-z]|$)|"
    r"(?:^|[^a-z])(?:my|our|his|her|their)(?: [a-z]{2,8})? number(?: is|:)|"
    r"(?:mio|tuo|suo|nostro|vostro)(?: [a-z]{2,8})? numero(?: e'?(?:[^a-z]|$)|:)"
)
_ABROAD: Final = rf"(?:^|[^0-9A-Za-z+.]|[^0-9]\.)((?:\+|00 ?)[1-9](?:[ ./()\-]{{0,2}}[0-9]){{7,14}}){_END}"
_ABROAD_TRIGGER: Final = r"(?:\+|(?:^|[^0-9])00 ?)[1-9][ ./()\-]{0,2}[0-9]"
_COORDINATE: Final = r"-?[0-9]{1,3}(?:\.[0-9]{1,8})?(?:,? ?[A-Z] ?|,? ?-|,? |,)"
_COORDINATES: Final = (
    rf"(?i)(?:^|[^0-9.])(?:{_COORDINATE}){{4}}$|"
    rf"(?:^|[^a-z])(?:d|points|viewbox)=[\"'](?:[A-Z] ?)?(?:{_COORDINATE}){{1,8}}$|"
    r"(?:^|\n)-?[0-9]{1,3}(?:[ ,;]{1,2}-?[0-9]{1,3}){2}\r?\n$|"
    r"(?:^|[^a-z])x[ ,;|]{1,3}y(?:[ ,;|]{1,3}z)?\r?\n$"
)
"""Numbers of up to three digits before a number: four in its line, all since an attribute of SVG began, or
three that are the line above; and the heads of columns of coordinates."""
_MONTH: Final = (
    r"(?:gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre)"
)
_DAY_IN_WORDS: Final = (
    r"(?:primo|un[od]?|due|tre|quattro|cinque|sei|sette|otto|nove|dieci|"
    r"[a-z]{2,8}dici|dici[a-z]{4,8}|vent[a-z]{1,8}|trent[a-z]{1,4})"
)
_STREET: Final = (
    r"(?i:via(?:le)?|v\.le|piazza(?:le)?|p\.zza|corso|c\.so|largo|vicolo|salita|strada|lungomare|"
    r"contrada|localita) "
)
_NUMBER: Final = r",? (?:n(?:\.|r\.?|umero)? ?)?[0-9]{1,4}(?:/[0-9A-Za-z]{1,3})?"
_TOWN: Final = r"(?:,? (?:- )?[0-9]{5}(?: [A-Z][A-Za-z']{1,24}){1,4}(?: ?\([A-Z]{2}\))?)?"
PRIVATE_TITLE: Final = (
    r"(?i:sig(?:\.(?: ?ra| ?na)?|ra|nora|nor|\.ri|nori)?|il mio cliente|la mia cliente|(?:il |la )?paziente|"
    r"l'assistit[oa]|(?:l'|dell'|all')imputat[oa]|(?:l'|dell')indagat[oa]|minore|coniuge|vedov[oa]|defunt[oa]|"
    r"mr\.?|mrs\.?|ms\.?|patient),? "
)
PROFESSIONAL_TITLE: Final = (
    r"(?i:avv(?:\.(?:to|ta)?|ocat[oa])"
    r"|dott(?:\.(?: ?ssa)?|ssa|oressa|or)|prof(?:\.(?: ?ssa)?|essor[a-z]{1,5})"
    r"|notaio|geom\.|ing\.|rag\.) "
)
_PEC_HOST: Final = r"(?:pec|legalmail|postacert|postecert|cert|arubapec)"
_DATE: Final = (
    rf"(?:[0-3]?[0-9][./\- ][01]?[0-9][./\- ](?:19|20)?[0-9]{{2}}|[0-3]?[0-9]o? {_MONTH} (?:19|20)[0-9]{{2}}|"
    rf"{_DAY_IN_WORDS} {_MONTH} (?:mille|duemila)[a-z]{{0,30}})"
)
_NAME: Final = WORD
_FIRST: Final = "(?:(?i:de|di|da|del|della|lo|la) )?[A-Z]"
_NAMES: Final = (
    rf"(?:(?i:de|di|da|del|della|lo|la) )?{_NAME}(?: (?:(?:de|di|da|del|della|lo|la) )?{_NAME}){{0,3}}"
)

CONTACTS: Final = (
    Rule(
        name="pec",
        kind="pec",
        data_class=_C2,
        pattern=(
            rf"(?i){_EDGE}({_LOCAL}{_AT}(?:[a-z0-9\-]{{1,40}}\.){{0,4}}{_PEC_HOST}"
            rf"(?:\.[a-z0-9\-]{{1,40}}){{0,3}}\.[a-z]{{2,24}})"
        ),
        distinctive=True,
        trigger=rf"(?i){_PEC_HOST}\.[a-z0-9\-]",
    ),
    Rule(
        name="email",
        kind="email",
        data_class=_C2,
        pattern=rf"(?i){_EDGE}({_LOCAL}{_AT}{_DOMAIN})",
        distinctive=True,
        trigger=_AT_SIGN,
    ),
    Rule(
        name="phone-italian-prefix",
        kind="phone",
        data_class=_C2,
        pattern=rf"(?:^|[^0-9A-Za-z+.]|[^0-9]\.)((?:\+|00) ?39(?:[ ./()\-]{{0,2}}[0-9]){{6,11}}){_END}",
        check=phones.italian,
        context=_CALL,
        trigger=r"(?:\+|00) ?39",
    ),
    Rule(
        name="phone",
        kind="phone",
        data_class=_C2,
        pattern=(
            r"(?:^|[^0-9A-Za-z+/,.]|[^0-9]\.)(\(?[03][0-9]{1,4}\)?(?:[ ./\-]{0,3}[0-9]){4,9})"
            r"(?:$|[^0-9A-Za-z,]|,[^0-9]|,$)"
        ),
        check=phones.national,
        context=_CALL,
        needs_context=True,
        trigger=r"[0-9]{2}\)?(?:[ ./\-]{0,3}[0-9]){4}",  # any first digit: else too many states
    ),
    Rule(
        name="phone-mobile",
        kind="phone",
        data_class=_C2,
        pattern=(
            r"(?:^|[^0-9A-Za-z+/,.\-]|[^0-9]\.)(3[2-9][0-9](?:[ \-][0-9]{6,7}|[ .\-][0-9]{3}[ .\-][0-9]{3,4}"
            r"|[ .\-][0-9]{2}[ .\-][0-9]{2}[ .\-][0-9]{2,3}))(?:$|[^0-9A-Za-z,./ \-]|[,./ \-](?:[^0-9]|$))"
        ),
        check=phones.mobile,
        context=_CALL,
        trigger=r"3[2-9][0-9][ .\-][0-9]{2}",
        amid=_COORDINATES,
    ),
    Rule(
        name="phone-international",
        kind="phone",
        data_class=_C2,
        pattern=_ABROAD,
        check=phones.international,
        context=_CALL,
        trigger=_ABROAD_TRIGGER,
    ),
    Rule(
        name="phone-foreign",
        kind="phone",
        data_class=_C2,
        pattern=_ABROAD,
        check=phones.possible,
        context=_CALL,
        needs_context=True,
        trigger=_ABROAD_TRIGGER,
    ),
    Rule(
        name="home-address",
        kind="address",
        data_class=_C2,
        pattern=rf"{_EDGE}({_STREET}(?:[A-Za-z0-9'.]{{1,24}} ){{0,5}}[A-Za-z'.]{{2,24}}{_NUMBER}{_TOWN})",
        context=r"(?i)resident|residenza|domicil|abita|dimora|indirizzo|recapito|lives at|address",
        needs_context=True,
        trigger=rf"{_EDGE}{_STREET}(?:[A-Za-z0-9'.]{{1,24}} ){{0,5}}[A-Za-z'.]{{2,24}}{_NUMBER}",
    ),
    Rule(
        name="birth-date",
        kind="birth_date",
        data_class=_C2,
        pattern=(
            r"(?i)(?:^|[^0-9a-z])(?:nat[oa](?: a [a-z' ]{2,40}(?: ?\([a-z]{2}\))?,?)?,? (?:il|l'|in data)|"
            rf"nascita:?|date of birth:?|born on(?: the)?|d\.?o\.?b\.?:?) ?(?:giorno )?({_DATE})"
        ),
        context=r"(?i)(?:^|[^a-z])nat[oa]|nascita|birth|born",
        trigger=r"(?i)(?:^|[^0-9a-z])nat[oa][ ,]|nascita|birth|born|d\.?o\.?b",
    ),
    Rule(
        name="person-by-title",
        kind="person",
        data_class=_C2,
        pattern=rf"{_EDGE}{PRIVATE_TITLE}({_NAMES})",
        check=names.titled_name,
        context=r"(?i)sig|client|pazient|assistit|imputat|indagat|m[rs]",
        trigger=rf"{_EDGE}{PRIVATE_TITLE}{_FIRST}",
    ),
    Rule(
        name="professional-by-title",
        kind="professional",
        data_class=_C1,
        pattern=rf"{_EDGE}{PROFESSIONAL_TITLE}({_NAMES})",
        context=r"(?i)avv|dott|prof|notaio|geom|ing|rag",
        trigger=rf"{_EDGE}{PROFESSIONAL_TITLE}{_FIRST}",
    ),
    *PERSONS,
    *ORGANISATIONS,
    *ADDRESSES,
)
"""Contacts and persons. A professional is C1: a name on a letterhead is not a client's."""

CLIENT: Final = "client"
"""The kind of a name that stands in the practice's client register."""

PERSON_KINDS: Final = frozenset(
    {
        "address",
        "birth_date",
        CLIENT,
        "codice_fiscale",
        "driving_licence",
        "email",
        "identity_card",
        "national_id",
        "passport",
        "pec",
        "person",
        "phone",
        "tessera_sanitaria",
    }
)
"""Kinds that point at one natural person: with one of them near, a sensitive subject is about somebody."""
