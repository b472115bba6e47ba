# SPDX-License-Identifier: Apache-2.0
"""The table of persons who are in no register.

Owns the shapes of names and how they are introduced, followed, greeted and signed. The words that do so stand
in introductions.txt; which words are names is said by `names`. A name that nothing introduces is known by its
shape, and by what does not stand before it. Leaves a name inside a firm's, a street's or a client's to
`settle`.
Carries I6: somebody who is named is found though nobody has registered the name.
"""

from collections.abc import Callable, Iterable
from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify import names
from runner.perimeter.classify.firms import STREET
from runner.perimeter.classify.model import Check, Role, Rule

_EDGE: Final = r"(?:^|[^0-9A-Za-z])"
_END: Final = r"(?:$|[^0-9A-Za-z])"
WORD: Final = (
    r"(?:[A-Z]' ?)?[A-Z](?:[a-z]{1,24}(?:['\-]?[A-Z][a-z]{1,24}){0,2}|[A-Z']{1,24}(?:-[A-Z]{2,24})?)"
)
_PARTICLE: Final = (
    r"(?:d[eia]|del(?:l[aoe])?|de[i']|dall?[ao]?|l[oai]|van(?: de[nr]?)?|von|[dt]e[nr]|el|al|bin|ben)"
)
_NEXT: Final = rf"(?: (?:{_PARTICLE} )?(?:{WORD}|[A-Z]\.))"
_FULL: Final = rf"{WORD}{_NEXT}{{1,3}}"
_LED: Final = rf"(?:{_FULL}|{WORD}(?: {WORD})?, {WORD}|(?:[A-Z]\. ?){{1,2}}(?:{_PARTICLE} )?{WORD})"
"""A full name, one with a comma behind the surname, or a surname behind an initial."""
_ANY: Final = rf"(?:{_PARTICLE} )?{WORD}{_NEXT}{{0,3}}"

_LISTS: Final = names.read_sections("introductions.txt")
_ROLES: Final = "|".join(word for line in _LISTS["words"] for word in line.split())
_WORDS: Final = "|".join((_ROLES, *(word for line in _LISTS["titles"] for word in line.split())))
_LABELS: Final = "|".join(_LISTS["labels"])
_PHRASES: Final = "|".join(_LISTS["phrases"])
_JOIN: Final = r"(?: (?:di|del|della|of))?(?:,|:|;)?[\"']? ?[:=|;>]{0,2} ?[\"'|]?(?: \n?|\n)?"
"""What stands between a word and the name it introduces: a space, a colon, a cell's border, a line's end."""
_INTRODUCED: Final = rf"{_EDGE}(?i:{_WORDS}|{_LABELS}|{_PHRASES}){_JOIN}"
_AFTER: Final = (
    rf"(?:,? ?(?i:{'|'.join(_LISTS['after'])})|,? c/ |,? (?i:contro) [A-Z]|"
    r"(?i:, (?:il |la |the )?(?:" + _WORDS + r")(?:[^a-z]|$))| \(\"|"
    r" \((?i:attor|convenut|ricorrent|resistent|the |nat[oa] |c\.f))"
)
_CLOSING: Final = (
    rf"(?i:{'|'.join(_LISTS['closings'])}),?[ \t]*(?:\r?\n[ \t]*){{1,3}}(?i:per lo studio |per |p\. )?"
)
_CLOSED: Final = rf"(?i:{'|'.join(_LISTS['closings'])}),?(?:[ \t]{{0,8}}\r?\n|[ \t]{{8}})"
_TITLE: Final = r"(?: (?i:sig\.?(?:ra|na)?\.?|signora?|signorina|mrs?\.?|ms\.?|miss|madam|avvocato))?"
_GREETING: Final = rf"{_EDGE}(?i:{'|'.join(_LISTS['greetings'])}){_TITLE} "
_HEADER: Final = r"(?:^|\n)(?:Da|A|Cc|From|To|Mittente|Destinatario): ?"
_LABEL: Final = r"(?i:cognome|nome|surname|first name|last name)[\"']? ?[:=|] ?[\"']?"

_HEADS: Final = rf"(?i:{'|'.join(_LISTS['heads'])})\b[^\n]{{0,80}}[|;,\t]"
_MORE_HEADS: Final = (
    rf"(?i:{'|'.join(_LISTS['heads-of-things-too'])})[^\n|;,\t]{{0,20}}(?:[|;\t]|,[A-Za-z\"])"
)
_COLUMNS: Final = (
    rf"[^\n]{{0,40}}(?:{_HEADS}|{_MORE_HEADS})[^\n]{{0,80}}\n"
    r"(?:[|:\- ]{3,80}\n)?\|? ?(?:[0-9]{1,4} ?[|;,\t] ?)?"
)
"""The heads of columns, one of them for names, and what stands before the first cell below."""


def _any_case(words: Iterable[str]) -> str:
    return f"(?i:{'|'.join(sorted(words))})"


_GIVEN: Final = _any_case(names.GIVEN)
_SURNAME: Final = _any_case(names.SURNAMES)

_NO_CASE: Final = r"(?:$|[^0-9A-Za-z ]| (?:$|[^v]|v[^ .]))"
"""What may stand behind: no `v` of a case that is cited."""

_CALLED: Final = rf"(?:{_ROLES})|(?i:{'|'.join(_LISTS['called'])})"
"""Behind these one word is a name. The words of roles count in small letters: in headings they are titles."""
_CALLED_NAME: Final = rf"(?:(?:D[eia]|Del(?:l[ao])?|L[aoe]|Van(?: de[nr])?|El|St\.) )?{WORD}{_NEXT}{{0,3}}"
_ACTING: Final = f"(?i:{'|'.join(_LISTS['acting'])})"
"""Before these one word is a name: what persons do, and whose kin they are."""
_OWNING: Final = rf"'s (?i:{'|'.join(_LISTS['kin'])})"
_MATTERS: Final = f"(?:{'|'.join(_LISTS['matters'])})"
"""What persons have, and what a practice calls by the name of one."""
_FILE: Final = r"(?i:pdf|docx?|odt|rtf|txt|xlsx?|csv|eml|msg|p7m|zip|jpe?g|png|tiff?)"
"""The ends of the names of files that a practice keeps."""

_SIMPLE: Final = r"[A-Z][A-Za-z'\-]{0,40}[A-Za-z]"
"""A word of a name, loosely: most candidates are refused, so they should be found cheaply."""


_ONE: Final = r"(?:[DO]'|Mc|Mac)?[A-Z][a-z]{3,24}(?:['\-][A-Z][a-z]{2,24})?"
"""One word of a name, as it stands in the middle of a sentence."""
_ENTRY_BEGINS: Final = (
    r"(?:^|[\n|\t(]|[a-z]:) ?"
    r"(?:[\-*] |[0-9]{1,2}[.)] |[A-Z][a-z]{3,12} |(?i:(?:re|fwd?|per|for|rif\.?|ref\.?)[: ]) ?)?"
)
_ENTRY_ENDS: Final = r"(?: ?[|\t]|\)|:(?:\n| [a-z0-9\"<?])| \(| - | c/ | Vs )"
"""What stands around one word that is a cell or the head of an entry: "- Rossini: agrees"."""
_BEHIND: Final = r"(?:$|[,;:!?)\n]|\.(?:$|[ \n])| [a-z(])"
"""What stands behind one word that is no part of a name of several."""

_LIKE_A_PLACE: Final = rf"{_any_case(names.PLACES)} {_GIVEN}"
"""Somebody whose surname is a place's word, or the place: "Villa Giulia". A subject may be about either."""


def _person(
    name: str,
    pattern: str,
    *,
    trigger: str,
    check: Check = names.full_name,
    stands: Callable[[str, str], bool] | None = None,
    of_a_line: bool = False,
) -> Rule:
    return Rule(
        name=name,
        kind="person",
        data_class=DataClass.C2,
        pattern=pattern,
        check=check,
        distinctive=True,
        trigger=trigger,
        stands=stands,
        of_a_line=of_a_line,
    )


PERSONS: Final = (
    _person(
        "person-introduced",
        rf"(?:{_INTRODUCED}|{_HEADER})({_LED}|{_LIKE_A_PLACE}){_END}",
        trigger=rf"(?:{_INTRODUCED}|{_HEADER})(?:[A-Z]|{_any_case(names.PLACES)} )",
        stands=names.stands_as_introduced,
    ),
    _person("person-followed", rf"{_EDGE}({_LED}){_AFTER}", trigger=rf"[A-Z][A-Za-z'.\-]*{_AFTER}"),
    _person(
        "person-signing",
        rf"{_CLOSING}({_ANY})[ \t]*(?:$|\r?\n)",
        trigger=_CLOSED,
        check=names.any_name,
        of_a_line=True,
    ),
    _person(
        "person-greeted",
        rf"{_GREETING}({_ANY})(?:[ \t]*[,!:\n]|$)",
        trigger=_GREETING,
        check=names.any_name,
    ),
    _person(
        "person-labelled",
        rf"{_EDGE}{_LABEL}({_ANY}){_END}",
        trigger=rf"{_EDGE}{_LABEL}[A-Za-z]",
        check=names.any_name,
    ),
    _person(
        "person-in-columns",
        rf"(?:^|\n){_COLUMNS}({_ANY}(?:, {WORD})?) ?[|;,\t]",
        trigger=rf"(?i:{'|'.join(_LISTS['heads'])})|{_MORE_HEADS}",
        check=names.any_name,
        of_a_line=True,
    ),
    _person(
        "person-called",
        rf"{_EDGE}(?:{_CALLED})(?: di)? ({_CALLED_NAME}){_END}",
        trigger=rf"{_EDGE}(?:{_CALLED})(?: di)? [A-Z]",
        check=names.called_name,
        stands=names.stands_called,
    ),
    _person(
        "person-acting",
        rf"{_EDGE}({_CALLED_NAME})(?:,? (?:{_ACTING})|{_OWNING})(?:$|[^a-z])",
        trigger=rf" (?:{_ACTING})|{_OWNING}",  # no capital: else too many states
        check=names.called_name,
        stands=names.stands_freely,
    ),
    _person(
        "person-of-a-matter",
        rf"{_EDGE}[Tt]he ({_CALLED_NAME}) {_MATTERS}{_END}",
        trigger=rf"[A-Za-z'.] {_MATTERS}{_END}",
        check=names.called_name,
    ),
    _person(
        "person-above-an-address",
        rf"(?:^|\n)({_SIMPLE}(?: (?:{_PARTICLE} )?{_SIMPLE}){{1,3}})\r?\n{STREET} ",
        trigger=rf"[A-Za-z]\r?\n{STREET} ",
        check=names.unusual_name,
        of_a_line=True,
    ),
    _person(
        "person-in-a-file-name",
        rf"{_EDGE}({_SIMPLE}_{_SIMPLE}(?:_{_SIMPLE})?)(?:[_\-.][^\s/]{{0,60}})?\.{_FILE}{_END}",
        trigger="[A-Za-z]_[A-Z][A-Za-z'\\-]",
        check=names.name_of_a_file,
    ),
    _person(
        "person-of-the-lexicon",
        rf"{_EDGE}({_GIVEN}(?: {_GIVEN})?{_NEXT}{{1,2}}|(?:{_SURNAME}|[A-Z][A-Z']{{3,24}}) {_GIVEN}){_END}",
        trigger=rf"{_EDGE}{_GIVEN} [A-Zabdeltv]|{_EDGE}(?:{_SURNAME}|[A-Z][A-Z']{{3,24}}) {_GIVEN}",
        check=names.lone_name,
        stands=names.stands_as_somebody,
    ),
    Rule(
        name="perhaps-a-person",
        kind="person",
        data_class=DataClass.C0,
        pattern=rf"{_EDGE}({_LIKE_A_PLACE}){_END}",
        distinctive=True,
        role=Role.MARKER,
        stands=names.stands_as_somebody,
    ),
    _person(
        "person-of-an-entry",
        rf"{_ENTRY_BEGINS}({_ONE}(?:, {_ONE})?){_ENTRY_ENDS}",
        trigger=rf"[A-Z][a-z]+{_ENTRY_ENDS}",
        check=names.entry,
        of_a_line=True,
    ),
    Rule(
        name="person-by-shape",
        kind="person",
        data_class=DataClass.C2,
        pattern=rf"{_EDGE}({_SIMPLE}(?: (?:{_PARTICLE} )?{_SIMPLE}){{1,3}}){_NO_CASE}",
        check=names.unusual_name,
        trigger=rf"[A-Z][A-Za-z'\-]*[A-Za-z] (?:{_PARTICLE} )?[A-Z][A-Za-z'\-]",
        stands=names.stands_freely,
    ),
    _person(
        "person-by-one-word",
        rf"(?:^|[^A-Za-z'])(?:[a-z]{{4,24}}|per|for),? ({_ONE}){_BEHIND}",
        trigger=r"[a-z]{2}[a-z,] [A-Z][a-z'][A-Za-z]",
        check=names.entry,
        stands=names.stands_alone,
    ),
)
"""Persons by what stands around the name, and by the name itself. C2."""
