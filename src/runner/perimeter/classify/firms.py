# SPDX-License-Identifier: Apache-2.0
"""The table of organisations and postal addresses, which are nobody by themselves.

Owns the shapes of firms, by legal form or by what they are (a saint's or an author's name makes a
place or an institution), and of addresses with a house number. Leaves
persons to `persons`, and what an address is worth beside a person to `settle`.
Carries the utility of the gate: both are C1 and pass.
"""

import re
from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify.model import Rule, whole

_EDGE: Final = r"(?:^|[^0-9A-Za-z])"
_END: Final = r"(?:$|[^0-9A-Za-z])"
_FORMS: Final = (
    r"(?:S\.? ?[Rr]\.? ?[Ll]\.?(?: ?[Ss]\.?|\b)|s\.?r\.?l\.?s?|S\.? ?[Pp]\.? ?A\.?|s\.p\.a\.|spa|"
    r"(?i:s\.? ?n\.? ?c\.?)|[Ss]\.a\.s\.|SAS|sas|S\.A\.S\.|[Ss]\.c\.(?:a\.)?r\.l\.|scarl|"
    r"[Ss]oc\. ?(?:[Cc]oop|[Aa]gr|[Cc]ons)\.(?: [Aa]gr\.| [Ss]oc\.)?(?: a r\.l\.)?|"
    r"[Ss]ocieta cooperativa|[Ss]\.[Ss]\.|O\.?N\.?L\.?U\.?S\.?|[Oo]nlus|"
    r"ETS|APS|ODV|Ltd\.?|LTD|Limited|LLP|LLC|PLC|plc|Inc\.?|Corp\.?|GmbH|AG|KG|S\.A\.(?:R\.L\.)?|SARL|"
    r"B\.V\.|BV|N\.V\.|"
    r"Sp\. z o\.o\.)"
)
_FIRM_WORD: Final = r"(?:[A-Z][0-9A-Za-z'\-]{0,24}\.?|[0-9]{1,4})"
_FIRM: Final = rf"{_FIRM_WORD}(?: (?:& |d[aei] |del(?:la|lo|l')? ?|dei )?{_FIRM_WORD}){{0,6}}"
_FIRM_KINDS: Final = (
    r"(?:[Ss]tudio (?:[Ll]egale|[Mm]edico|[Nn]otarile|[Tt]ecnico|[Dd]entistico|[Cc]ommercialista|"
    r"[Aa]ssociato)(?: [Aa]ssociato)?|[Cc]ooperativa(?: [Ss]ociale)?|[Cc]onsorzio|[Ff]ondazione|"
    r"[Cc]ondominio|[Aa]ssociazione|[Ff]armacia|[Ii]mpresa(?: [Ee]dile| [Ii]ndividuale)?|[Ii]mmobiliare|"
    r"[Dd]itta|[Bb]anca|"
    r"[Ii]stituto|[Cc]linica|[Oo]spedale|[Aa]zienda(?: [Aa]gricola)?|[Pp]arrocchia|[Aa]genzia|[Oo]fficin[ae]|"
    r"[Ss]ocieta'?|[Uu]niversita'?(?: degli [Ss]tudi)?|[Ll]iceo|[Ss]cuola|[Aa]eroporto|[Tt]eatro|[Ss]tadio|"
    r"[Mm]useo|[Pp]alazzo|[Pp]remio|[Pp]arco|[Bb]iblioteca|[Pp]oliclinico|[Cc]asa di [Cc]ura|"
    r"[Cc]ass[ae] (?:[Rr]urale|di [Rr]isparmio)(?: d[ei]l?(?:la)?)?|[Cc]redito [Cc]ooperativo|[Hh]otel|"
    r"[Rr]istorante|[Tt]rattoria|[Oo]steria|[Pp]izzeria|[Gg]elateria|[Pp]asticceria|[Pp]anificio|[Mm]acelleria|[Ss]alumificio|"
    r"[Cc]aseificio|[Cc]antina(?: [Ss]ociale)?|[Cc]alzaturificio|[Mm]obilificio|[Mm]aglificio|[Ll]avanderia|"
    r"[Ff]alegnameria|[Cc]arrozzeria|[Aa]utofficina|[Aa]utoscuola|[Ff]erramenta|[Tt]ipografia|[Ll]ibreria|"
    r"[Gg]ioielleria|[Pp]arafarmacia|[Ss]upermercat[oi]|[Pp]oliambulatorio|[Aa]mbulatorio|[Ll]aboratorio|"
    r"[Cc]entro (?:[Mm]edico|[Dd]iagnostico|[Ss]portivo|[Cc]ommerciale|[Ee]stetico)|[Pp]alestra|"
    r"[Pp]olisportiva|ASD|SSD|RSA|[Cc]ircolo|[Vv]ivaio?|[Tt]rasporti|[Aa]utotrasporti|"
    r"[Ss]tudio [A-Z][a-z]{3,20}i|"
    r"Legge|Lodo|Riforma|Decreto|San|Santa|Santo|Sant')"
)
_OF: Final = r"(?: (?:d[ae]l|d[ae]lla|dei|alla|al))?"
_FIRM_ENDS: Final = (
    r"(?:Surgery|Practice|Clinic|Hospital|Pharmacy|Chambers|Solicitors|Associates|Partners|Partnership|Company|"
    r"Group|Holdings|Insurance|Bank|Trust|Foundation|Charity|Association|Society|Council|School|College|Academy|"
    r"University|Hotel|Garage|Motors|Builders|Services|Industries|Laboratories|Pharmaceuticals|Brothers|Bros\.?)"
)
STREET: Final = (
    r"(?i:via(?:le)?|v\.le|p\.(?:zz)?a|piazz(?:a|ale|etta|aletta)|p\.le|corso|c\.so|largo|l\.go|vicolo|vico|salita|"
    r"strada|s\.da|lung(?:arno|otevere|adige|olago|omare)|contrada|c\.da|localita'?|loc\.|borgo|galleria|calle|fondamenta|"
    r"frazione|fraz\.|rione|traversa|vialetto|str\.|borgata|riviera|cascina|circonvallazione|campiello|rampa|"
    r"sestiere|stradone|passaggio|discesa|piaggia|vocabolo|zona industriale)"
)
_STREET_NAME: Final = (
    r" (?:(?:[a-z]{1,10}'?|vicinale [a-z]{2,5}) ){0,2}(?:[A-Z][A-Za-z'.\-]{0,24}|[0-9]{1,2} [A-Z][a-z]{2,12})"
    r"(?: [A-Za-z'.]{1,24}){0,4}"
)
_HOUSE: Final = r",? (?:n(?:\.|r\.?|umero)? ?)?[0-9]{1,4}(?:/[0-9A-Za-z]{1,3}| ?(?:bis|ter)|[A-Za-z])?"
_TOWN: Final = r"(?:,? (?:- )?[0-9]{5}(?: [A-Z][A-Za-z']{1,24}){1,4}(?: ?\(?[A-Z]{2}\)?)?)?"
_ROAD: Final = (
    r"(?:Street|St|Road|Rd|Lane|Avenue|Ave|Close|Drive|Way|Court|Gardens|Place|Square|Terrace|Crescent|Hill|"
    r"Grove|Park|Row|Mews|Walk|Green|Parade|Boulevard|Rise|Yard|View|Vale|Villas|Cottages|Quay|Wharf|Circus|"
    r"Approach|Esplanade|Passage|Mount|Fields|Meadows)"
)
_VERSUS: Final = re.compile(r"(?i)(?:^|[ .])vs?\.? ")
_POSTCODE: Final = r"[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}"
_ENGLISH_TOWN: Final = (
    r"(?:,? [A-Z][A-Za-z\-]{2,24}(?: [A-Z][A-Za-z]{2,24})?(?:, [A-Z][A-Za-z]{2,24})?"
    rf"(?: {_POSTCODE})?)?"
)


def no_case(candidate: str) -> int:
    """Accept what names one party and not two: "Rossini Vs Alfa S.r.l."."""
    return 0 if _VERSUS.search(candidate) else len(candidate)


def _place(name: str, kind: str, pattern: str, *, trigger: str) -> Rule:
    return Rule(
        name=name,
        kind=kind,
        data_class=DataClass.C1,
        pattern=rf"{_EDGE}({pattern}){_END}",
        check=no_case if kind == "organisation" else whole,
        distinctive=True,
        trigger=trigger,
    )


ORGANISATIONS: Final = (
    _place("organisation-by-form", "organisation", rf"{_FIRM},? {_FORMS}", trigger=rf" {_FORMS}{_END}"),
    _place(
        "organisation-by-kind",
        "organisation",
        rf"{_FIRM_KINDS}{_OF} {_FIRM}",
        trigger=rf"{_FIRM_KINDS}{_OF} [A-Z0-9]",
    ),
    _place(
        "organisation-by-end",
        "organisation",
        rf"{_FIRM} {_FIRM_ENDS}(?: (?:{_FIRM_ENDS}|{_FORMS}))?",
        trigger=rf"[0-9A-Za-z'\-.] {_FIRM_ENDS}{_END}",
    ),
)
"""Firms by their legal form, or by what they are."""

ADDRESSES: Final = (
    _place(
        "street-address",
        "address",
        rf"{STREET}{_STREET_NAME}{_HOUSE}{_TOWN}",
        trigger=rf"{_EDGE}{STREET}{_STREET_NAME}{_HOUSE}",
    ),
    _place(
        "street-address-english",
        "address",
        rf"[0-9]{{1,4}}[A-Za-z]? (?:[A-Z][A-Za-z'.\-]{{1,24}} ){{1,3}}{_ROAD}{_ENGLISH_TOWN}",
        trigger=rf"[0-9][A-Za-z]? (?:[A-Z][A-Za-z'.\-]+ ){{1,3}}{_ROAD}{_END}",
    ),
)
"""Postal addresses with a house number. Beside a person they are that person's: see `settle`."""
