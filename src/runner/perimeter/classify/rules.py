# SPDX-License-Identifier: Apache-2.0
"""The table of identifiers: one rule a line of thought, those of Italy.

Owns what counts as a personal identifier and which words corroborate a number without check digit.
Leaves check digits to `checks`, other states to `foreign`, how people are reached to `contacts`.
Carries I6: an identifier typed or pasted by a person is found without anybody having labelled it.

How to read a pattern: texts are folded to ASCII first; `_EDGE` and `_END` are "no letter or digit
here"; the group is the candidate; every repetition is bounded, because a candidate whose check
fails is searched again one character on.
"""

from collections.abc import Sequence
from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify import checks
from runner.perimeter.classify.model import Rule

_C1: Final = DataClass.C1
_C2: Final = DataClass.C2
_EDGE: Final = r"(?:^|[^0-9A-Za-z])"
_END: Final = r"(?:$|[^0-9A-Za-z])"
_BREAK: Final = r"(?:[ .\-]|\r?\n[ \t]{0,4})"
_SEP: Final = f"{_BREAK}?"
_GAPS: Final = r"[ .\-\r\n\t]+"
_OMO: Final = r"[0-9LMNPQRSTUV]"
"""A digit of a codice fiscale, or the letter that replaces it (omocodia)."""

_FISCAL: Final = (
    r"(?i)(?:^|[^a-z])c\.? ?f\.?(?:[^a-z]|$)|cod(?:ice|\.) ?fisc|fiscal ?code|tax ?(?:code|id)|"
    r"(?:^|[^a-z])nat[oa] |paziente|intestat|residente|assistit|contribuente"
)


def _gapped(signs: Sequence[str], gap: str) -> str:
    """Return a pattern for `signs` in a row, with `gap` between two of them at least."""
    pattern = ""
    for at in reversed(range(1, len(signs))):
        behind = gap + f"(?:{gap})?".join(signs[at:])
        pattern = f"{signs[at - 1]}(?:{behind}|{pattern})" if pattern else f"{signs[at - 1]}{behind}"
    return pattern


_LETTERS_AND_DAY: Final = (
    f"[A-Z]{{3}} [A-Z]{{3}} {_OMO}{{2}} [ABCDEHLMPRST] {_OMO}{{2}} [A-Z] {_OMO}{{3}} [A-Z]".split()
)
_DIGITS_AND_DAY: Final = (*["[0-9]"] * 2, "[ABCDEHLMPRST]", *["[0-9]"] * 2, "[A-Z]", *["[0-9]"] * 3, "[A-Z]")
_IBAN_BEGINS: Final = "|".join(
    rf"(?:{'|'.join(country for country, begins in checks.IBAN_BEGINS.items() if begins == signs)})"
    rf"{_SEP}[0-9]{_SEP}[0-9]{_SEP}{signs[0]}{_SEP}{signs[1]}"
    for signs in sorted(set(checks.IBAN_BEGINS.values()))
)
"""A country, two check digits and two signs of the kinds that stand behind them there."""
_GROUPED: Final = rf"(?i){_EDGE}({_SEP.join(_LETTERS_AND_DAY)}){_END}"
_PLATE: Final = r"[A-HJ-NPR-TV-Z]{2}"
_CASE: Final = r"[0-9]{1,6} ?/ ?(?:19|20)?[0-9]{2}"
_ROLL: Final = r"(?: ?(?:E|N\.? ?R|G\.? ?I\.? ?P|A\.? ?C|LAV|TRIB|DIB)\.?)?"
_NUMBER: Final = r"\s{0,2}(?:n(?:umero|umber|r|o|\.)?|#)?[.:o?= ]{0,3}\s{0,2}"
_ELEVEN: Final = rf"{_EDGE}([0-9]{{11}}){_END}"
_FISCAL_NAME: Final = (
    r"(?:(?:^|[^a-z])c\.? ?f\.?(?:[^a-z]|$)|cod(?:ice|\.)?[ _]?fisc|fiscal ?code|tax ?(?:code|id))"
)
_ABOUT_A_PERSON: Final = (
    r"(?:(?:^|[^a-z])nat[oa] |provvisori|resident[ei] |cittadin|sig(?:\.|ra|nor)|assistit|paz)"
)

IDENTIFIERS: Final = (
    Rule(
        name="codice-fiscale",
        kind="codice_fiscale",
        data_class=_C2,
        pattern=rf"(?i)[A-Z]{{6}}{_OMO}{{2}}[ABCDEHLMPRST]{_OMO}{{2}}[A-Z]{_OMO}{{3}}[A-Z]",
        check=checks.codice_fiscale,
        context=_FISCAL,
        trigger=rf"(?i)[A-Z]{_OMO}{{2}}[ABCDEHLMPRST]{_OMO}{{2}}[A-Z]{_OMO}{{3}}[A-Z]",
    ),
    Rule(
        name="codice-fiscale-broken",
        kind="codice_fiscale",
        data_class=_C2,
        pattern=rf"(?i){_EDGE}({_gapped((*('[A-Z]',) * 6, *_DIGITS_AND_DAY), _BREAK)}){_END}",
        check=checks.codice_fiscale,
        context=_FISCAL,
        trigger=rf"(?i){_gapped(_DIGITS_AND_DAY, _GAPS)}|[A-Z]{_GAPS}[A-Z]{{0,5}}{''.join(_DIGITS_AND_DAY)}",
    ),
    Rule(
        name="codice-fiscale-grouped",
        kind="codice_fiscale",
        data_class=_C2,
        pattern=rf"(?i){_EDGE}({_gapped(_LETTERS_AND_DAY, _BREAK)}){_END}",
        check=checks.codice_fiscale,
        context=_FISCAL,
        trigger=rf"(?i){_EDGE}{_gapped(_LETTERS_AND_DAY, _GAPS)}",
    ),
    Rule(
        name="codice-fiscale-mixed-case",
        kind="codice_fiscale",
        data_class=_C2,
        pattern=_GROUPED,
        check=checks.codice_fiscale_in_any_case,
        context=_FISCAL,
        needs_context=True,
        trigger=rf"(?i){_EDGE}{f'(?:{_GAPS})?'.join(_LETTERS_AND_DAY)}",
    ),
    Rule(
        name="codice-fiscale-11",
        kind="partita_iva",
        data_class=_C1,
        pattern=_ELEVEN,
        check=checks.partita_iva,
        context=rf"(?i){_FISCAL_NAME}",
        needs_context=True,
    ),
    Rule(
        name="codice-fiscale-11-of-a-person",
        kind="codice_fiscale",
        data_class=_C2,
        pattern=_ELEVEN,
        check=checks.partita_iva,
        context=(
            rf"(?i){_ABOUT_A_PERSON}[^0-9]{{0,60}}{_FISCAL_NAME}|{_FISCAL_NAME}[^0-9]{{0,16}}provvisori"
        ),
        needs_context=True,
    ),
    Rule(
        name="partita-iva",
        kind="partita_iva",
        data_class=_C1,
        pattern=rf"{_EDGE}(?i:IT ?)?([0-9]{{11}}){_END}",
        check=checks.partita_iva,
        context=r"(?i)p(?:art(?:ita|\.)?)?\.?[ _]?i\.?v\.?a|vat|p\.i\.",
        needs_context=True,
    ),
    Rule(
        name="partita-iva-with-country",
        kind="partita_iva",
        data_class=_C1,
        pattern=rf"{_EDGE}IT([0-9]{{11}}){_END}",
        check=checks.partita_iva,
        context=r"(?i)p(?:art(?:ita|\.))?\.? ?i\.?v\.?a|vat",
    ),
    Rule(
        name="iban",
        kind="iban",
        data_class=_C2,
        pattern=rf"(?i)(?:^|[^0-9A-Z]|iban)((?:{_IBAN_BEGINS})(?:{_SEP}[0-9A-Z]){{9,28}})",
        check=checks.iban,
        context=r"(?i)iban|bonific|conto|coordinate|accredit|bank|banca",
        trigger=rf"(?i)(?:^|[^0-9A-Z]|iban)(?:{_IBAN_BEGINS})",
    ),
    Rule(
        name="payment-card",
        kind="card",
        data_class=_C2,
        pattern=rf"{_EDGE}([2-6][0-9]{{3}}(?:[ \-]?[0-9]){{9,15}}){_END}",
        check=checks.card,
        context=r"(?i)cart[ae]|card|visa|amex|american express|maestro|\bpan\b|credit|debit|pagament|cvv",
        needs_context=True,
        trigger=r"[0-9]{4}(?:[ \-]?[0-9]){2}",  # any first digit: else too many states
    ),
    Rule(
        name="tessera-sanitaria",
        kind="tessera_sanitaria",
        data_class=_C2,
        pattern=rf"{_EDGE}(80380(?:[ \-]?[0-9]){{15}}){_END}",
        context=r"(?i)tessera|team|sanitari|health|assistit",
        trigger=r"80380",
    ),
    Rule(
        name="passport",
        kind="passport",
        data_class=_C2,
        pattern=(
            rf"(?i)(?:passaporto(?: [a-z]{{2,12}})?|passport){_NUMBER}"
            rf"([A-Z]{{2}} ?[0-9]{{7}}|[A-Z0-9]{{1,2}}[0-9]{{6,7}}){_END}"
        ),
        context=r"(?i)passap|passport",
    ),
    Rule(
        name="identity-card",
        kind="identity_card",
        data_class=_C2,
        pattern=(
            rf"(?i)(?:carta d.? ?identita.?|c\.?i\.?e\.?|c\.i\.|identity card|id card|documento)"
            rf"(?: elettronica| di riconoscimento| d.? ?identita.?)?"
            rf"{_NUMBER}(C[A-Z] ?[0-9]{{5}} ?[A-Z]{{2}}|[A-Z]{{2}} ?[0-9]{{7}}){_END}"
        ),
        context=r"(?i)identit|c\.?i\.?e|document",
        trigger=rf"(?i)(?:C[A-Z] ?[0-9]{{5}} ?[A-Z]{{2}}|[A-Z]{{2}} ?[0-9]{{7}}){_END}",
    ),
    Rule(
        name="driving-licence",
        kind="driving_licence",
        data_class=_C2,
        pattern=(
            rf"(?i)(?:patente(?: di guida)?(?: cat(?:\.|egoria)?)?(?: [A-E])?|"
            rf"driv(?:ing|er'?s?) licen[cs]e){_NUMBER}"
            r"([A-Z]{2}[0-9]{7}[A-Z]|U1[0-9A-Z]{7}[A-Z]|[A-Z9]{5}[0-9]{6}[A-Z9]{2}[0-9A-Z]{3})"
            rf"{_END}"
        ),
        context=r"(?i)patente|licen[cs]e",
        trigger=r"(?i)patente|driv(?:ing|er'?s?) licen",
    ),
    Rule(
        name="number-plate",
        kind="number_plate",
        data_class=_C2,
        pattern=(
            rf"(?i)(?:targ(?:a|ata|ato|he)|{_EDGE}tg\.?|plate|registration(?: mark)?){_NUMBER}"
            rf"({_PLATE} ?[0-9]{{3}} ?{_PLATE}|[A-Z]{{2}}[0-9]{{2}} ?[A-Z]{{3}}){_END}"
        ),
        context=r"(?i)targ|tg|plate|registration",
    ),
    Rule(
        name="case-number",
        kind="case_number",
        data_class=_C2,
        pattern=rf"(?i){_EDGE}(?:R\.? ?G\.?{_ROLL}|ruolo generale){_NUMBER}({_CASE}){_END}",
        context=r"(?i)r\.? ?g\.?|ruolo",
        trigger=rf"(?i){_EDGE}(?:R\.? ?G|ruolo generale)",
    ),
    Rule(
        name="case-number-before",
        kind="case_number",
        data_class=_C2,
        pattern=rf"(?i){_EDGE}({_CASE}) (?:R\. ?G|R\.? ?G\.? ?N\.? ?R){_END}",
        context=r"(?i)r\.? ?g\.?",
        trigger=r"(?i)/ ?[0-9]{2,4} R\.? ?G",
    ),
    Rule(
        name="land-register",
        kind="land_register",
        data_class=_C2,
        pattern=(
            r"(?i)((?:fogli?o?|fg)\.? ?n?\.? ?[0-9]{1,4},? "
            r"(?:part(?:icella)?|p\.lla|plla|mapp(?:ale)?)\.? ?n?\.? ?[0-9]{1,5}"
            r"(?:,? sub(?:alterno|\.)? ?[0-9]{1,4})?)"
        ),
        context=r"(?i)catast|fogli",
        trigger=r"(?i)(?:fogl|fg).{0,20}(?:part|p\.?lla|mapp)",
    ),
    Rule(
        name="cig",
        kind="cig",
        data_class=_C1,
        pattern=rf"{_EDGE}(?i:CIG|C\.I\.G\.){_NUMBER}([0-9A-Z]{{10}}){_END}",
        context=r"(?i)CIG|C\.I\.G",
    ),
    Rule(
        name="cup",
        kind="cup",
        data_class=_C1,
        pattern=rf"{_EDGE}(?:CUP|C\.U\.P\.){_NUMBER}([A-Z][0-9]{{2}}[A-Z][0-9]{{11}}){_END}",
        context=r"CUP|C\.U\.P",
    ),
    Rule(
        name="sdi-code",
        kind="sdi_code",
        data_class=_C1,
        pattern=rf"(?i)(?:codice ?(?:sdi|destinatario|univoco)|{_EDGE}sdi){_NUMBER}([0-9A-Z]{{6,7}}){_END}",
        context=r"(?i)sdi|destinatario|univoco",
    ),
)
"""Identifiers of persons, goods and proceedings used in Italy."""


UNREAD: Final = Rule(
    name="more-than-is-read",
    kind="opaque",
    data_class=DataClass.C3,
    pattern="\x02more than is read\x03",
    distinctive=True,
)
"""What would take more reading than its length allows: nobody read it to its end, so it may hold anything.
The one rule of its kind that is C3, which is how the gate knows the reason."""

OPAQUE: Final = (
    UNREAD,
    Rule(
        name="packed-beyond-reading",
        kind="opaque",
        data_class=_C2,
        pattern="\x02packed beyond reading\x03",
        distinctive=True,
    ),
    Rule(
        name="mixed-alphabets",
        kind="opaque",
        data_class=_C2,
        pattern="\x02letters of two alphabets\x03",
        distinctive=True,
    ),
)
"""What nobody read, or what is written to deceive: it may not leave."""
