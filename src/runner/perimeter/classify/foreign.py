# SPDX-License-Identifier: Apache-2.0
"""The table of identifiers of other European states: VAT numbers, and the numbers of persons.

Owns their shapes and the words that must stand near. Leaves Italy to `rules` and check digits to `checks`.
Carries I6 for clients from abroad; digits alone are noise, so every rule here needs its word.
"""

from collections.abc import Sequence
from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify import checks
from runner.perimeter.classify.model import Rule
from runner.perimeter.classify.views import fold

_EDGE: Final = r"(?:^|[^0-9A-Za-z])"
_END: Final = r"(?:$|[^0-9A-Za-z])"
_VAT: Final = (
    r"ATU[0-9]{8}|BE ?[01][0-9]{9}|BG ?[0-9]{9,10}|CY ?[0-9]{8}[A-Z]|CZ ?[0-9]{8,10}|DE ?[0-9]{9}"
    r"|DK ?[0-9]{8}|EE ?[0-9]{9}|(?:EL|GR) ?[0-9]{9}|ES ?[0-9A-Z][0-9]{7}[0-9A-Z]|FI ?[0-9]{8}"
    r"|FR ?[0-9A-Z]{2} ?[0-9]{9}|HR ?[0-9]{11}|HU ?[0-9]{8}|IE ?[0-9][0-9A-Z][0-9]{5}[A-Z]{1,2}"
    r"|LT ?[0-9]{9}(?:[0-9]{3})?|LU ?[0-9]{8}|LV ?[0-9]{11}|MT ?[0-9]{8}|NL ?[0-9]{9}B[0-9]{2}"
    r"|PL ?[0-9]{10}|PT ?[0-9]{9}|RO ?[0-9]{2,10}|SE ?[0-9]{12}|SI ?[0-9]{8}|SK ?[0-9]{10}"
)
"""VAT numbers of the member states but Italy, as the VIES service writes them."""
_VAT_BEGINS: Final = (
    r"(?:AT|BE|BG|CY|CZ|DE|DK|EE|EL|GR|ES|FI|FR|HR|HU|IE|LT|LU|LV|MT|NL|PL|PT|RO|SE|SI|SK) ?[0-9A-Z]{2}"
)
_SEVEN_DIGITS: Final = r"[0-9](?:[ .\-+]?[0-9]){6}"
"""What nearly every number of a person holds. They share this trigger: one automaton over the beginnings of
so many groupings would have more states than there is memory for."""


def _foreign(
    name: str,
    country: str,
    shape: str,
    words: str,
    *,
    marks: Sequence[str] = (),
    trigger: str = _SEVEN_DIGITS,
) -> Rule:
    """Return a rule for a personal number of another state, of the form `shape`.

    It counts only near its own words: `words` is a pattern, `marks` are whole words, abbreviations mostly.
    """
    whole = "|".join(r"\.?".join(mark) + r"\.?" for mark in marks)
    context = "|".join(filter(None, (words, whole and rf"(?:^|[^a-z])(?:{whole})(?:[^a-z]|$)")))
    return Rule(
        name=name,
        kind="national_id",
        data_class=DataClass.C2,
        pattern=rf"(?i){_EDGE}({shape}){_END}",
        check=checks.EUROPEAN_CHECKS[country],
        context=rf"(?i){context}",
        needs_context=True,
        trigger=trigger,
    )


def _folded(words: str) -> str:
    """Return a pattern for what folding leaves of `words` in another script."""
    return fold(words).data.decode("ascii").replace("?", r"\?")


_SPANISH: Final = "documento nacional|numero de identificacion|extranjer"
FOREIGN: Final = (
    Rule(
        name="vat-eu",
        kind="vat",
        data_class=DataClass.C1,
        pattern=rf"{_EDGE}({_VAT}){_END}",
        check=checks.vat_number,
        context=r"(?i)vat|i\.?v\.?a(?:[^a-z]|$)|ust\.?-?id|u\.?st|tva|btw|nif|moms|intracom|intra-com",
        needs_context=True,
        trigger=rf"{_EDGE}{_VAT_BEGINS}",
    ),
    _foreign(
        "at-insurance-number",
        "at",
        r"[1-9][0-9]{3} ?[0-3][0-9][0-1][0-9]{3}",
        "versicherungsnummer|sv-?n(?:umme)?r",
        marks=("svnr",),
    ),
    _foreign(
        "be-national-number",
        "be",
        r"[0-9]{2}\.?[0-9]{2}\.?[0-9]{2}-?[0-9]{3}\.?[0-9]{2}",
        "registre national|rijksregister|numero national",
        marks=("niss", "insz"),
    ),
    _foreign(
        "bg-egn",
        "bg",
        r"[0-9]{10}",
        _folded("единен граждански номер"),
        marks=("egn",),
    ),
    _foreign("bg-egn-cyrillic", "bg", r"[0-9]{10}", rf"(?:^|[^a-z]){_folded('ЕГН')}"),
    _foreign(
        "ch-ahv",
        "ch",
        r"756[. ]?[0-9]{4}[. ]?[0-9]{4}[. ]?[0-9]{2}",
        "versichertennummer|sozialversicherung",
        marks=("ahv", "avs"),
    ),
    _foreign(
        "cz-sk-birth-number",
        "cz",
        r"[0-9]{6}/?[0-9]{4}",
        "rodn[a-z?]{1,4} ?c|(?:^|[^a-z])r\\. ?c(?:[^a-z]|$)",
        marks=("rc",),
        trigger="[0-9]{6}/?[0-9]",
    ),
    _foreign(
        "de-tax-id",
        "de",
        r"[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}",
        "steuer|identifikationsnummer|idnr",
    ),
    _foreign("ee-lt-personal-code", "ee", r"[1-6][0-9]{10}", "isikukood|asmens kodas", marks=("ik", "ak")),
    _foreign("es-dni", "es_dni", r"[0-9]{8}-?[A-Z]", _SPANISH, marks=("dni", "nif", "nie")),
    _foreign("es-nie", "es_nie", r"[XYZ]-?[0-9]{7}-?[A-Z]", _SPANISH, marks=("dni", "nif", "nie")),
    _foreign(
        "fi-hetu",
        "fi",
        r"[0-3][0-9][01][0-9]{3}[+\-A-FU-Y][0-9]{3}[0-9A-Y]",
        "henkilotunnus|personbeteckning",
        marks=("hetu",),
        trigger=r"(?i)[0-9]{6}[+\-A-FU-Y][0-9]",
    ),
    _foreign(
        "fr-nir",
        "fr",
        r"[12] ?[0-9]{2} ?[0-9]{2} ?[0-9AB]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}",
        "s.curit. ?sociale|(?:^|[^a-z])s.cu(?:[^a-z]|$)|carte vitale",
        marks=("nir", "insee"),
    ),
    _foreign("gb-nhs-number", "gb", r"[0-9]{3}[ \-]?[0-9]{3}[ \-]?[0-9]{4}", "nhs"),
    Rule(
        name="gb-national-insurance",
        kind="national_id",
        data_class=DataClass.C2,
        pattern=rf"(?i){_EDGE}([A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?(?:[0-9]{{2}} ?){{3}}[A-D]){_END}",
        context=r"(?i)national insurance|(?:^|[^a-z])(?:nino|ni)(?:[^a-z]|$)",
        needs_context=True,
    ),
    _foreign("gr-amka", "gr", r"[0-9]{11}", "", marks=("amka",)),
    _foreign("hr-oib", "hr", r"[0-9]{11}", "identifikacijski", marks=("oib",)),
    _foreign("ie-pps", "ie", r"[0-9]{7}[A-W][A-IW]?", "personal public service", marks=("pps", "ppsn")),
    _foreign("nl-bsn", "nl", r"[0-9]{4}\.?[0-9]{2}\.?[0-9]{3}", "burgerservice|sofinummer", marks=("bsn",)),
    _foreign("pl-pesel", "pl", r"[0-9]{11}", "pesel"),
    _foreign("pt-nif", "pt", r"[0-9]{3} ?[0-9]{3} ?[0-9]{3}", "contribuinte", marks=("nif",)),
    _foreign("ro-cnp", "ro", r"[1-9][0-9]{12}", "cod(?:ul)? numeric", marks=("cnp",)),
    _foreign("se-personnummer", "se", r"(?:19|20)?[0-9]{6}[+\-][0-9]{4}", "personnummer|personn(?:umme)?r"),
    _foreign("si-emso", "si", r"[0-3][0-9][01][0-9]{10}", "", marks=("emso",)),
)
"""VAT numbers and personal numbers: a check digit, and near it a word of the language of that state."""
