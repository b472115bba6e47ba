# SPDX-License-Identifier: Apache-2.0
"""Language: cut Italian and English text into comparable tokens.

Owns tokens, folding of case and accents, numbers and dates in one spelling, light stemming, and the words too
common to search for; and how a count is put into words. Pure, linear in the text, keeps nothing of
it. Leaves scoring to those who rank and compare. The suffix lists are our own, light on purpose: a stem only
has to bring the forms of one word together, and an exact match always counts for more.
"""

import re
import unicodedata
from typing import Final

MIN_STEM: Final = 3
"""Characters a suffix must leave standing."""

_MONTHS: Final = (
    ("gennaio", "january"),
    ("febbraio", "february"),
    ("marzo", "march"),
    ("aprile", "april"),
    ("maggio", "may"),
    ("giugno", "june"),
    ("luglio", "july"),
    ("agosto", "august"),
    ("settembre", "september"),
    ("ottobre", "october"),
    ("novembre", "november"),
    ("dicembre", "december"),
)
_MONTH_NUMBER: Final = {name: n for n, names in enumerate(_MONTHS, start=1) for name in names}
_MONTH: Final = "|".join(_MONTH_NUMBER)
_ENGLISH_MONTH: Final = "|".join(english for _, english in _MONTHS)
_GAP: Final = "[ \t\u00a0]{1,2}"
_DAY_FIRST: Final = rf"\b\d{{1,2}}[°º]?{_GAP}(?i:{_MONTH}){_GAP}\d{{4}}\b"
_MONTH_FIRST: Final = rf"\b(?=[JFMASOND])(?i:{_ENGLISH_MONTH}){_GAP}\d{{1,2}},?{_GAP}\d{{4}}\b"
_NUMBER: Final = r"\d+(?:[.,:/-]\d+)+"
_WORD: Final = "[^\\W_]+(?:[\u0300-\u036f]+[^\\W_]*)*"
TOKEN: Final = re.compile(rf"{_DAY_FIRST}|{_MONTH_FIRST}|{_NUMBER}|{_WORD}|€")
"""One token: a date written with a month's name, a number with its separators, a word, or the euro sign.

Every repetition is bounded or followed by nothing it could give back, so matching is linear.
"""

_DIGITS: Final = re.compile(r"\d+")
_ISO_DATE: Final = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\Z")
_LOCAL_DATE: Final = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})\Z")
_NAMED_DATE: Final = re.compile(
    rf"(?P<d>\d{{1,2}})[°o]?\s+(?P<m>{_MONTH})\s+(?P<y>\d{{4}})\Z"
    rf"|(?P<month>{_MONTH})\s+(?P<day>\d{{1,2}}),?\s+(?P<year>\d{{4}})\Z"
)
_AMOUNT: Final = re.compile(r"(\d{1,3}(?:\.\d{3})+|\d{1,3}(?:,\d{3})+|\d+)(?:[.,](\d{1,2}))?\Z")
_MARKS: Final = re.compile("[\u0300-\u036f]+")

_PLURAL_S_STAYS: Final = ("ss", "us", "is")
_VOWEL_ENDINGS: Final = ("io", "ia", "ie", "ii", "a", "e", "i", "o", "u", "y")
_SUFFIXES: Final = (
    *("ament", "iment", "azion", "izion", "ation", "ition", "ator", "itor", "abil", "ibil"),
    *("ment", "tion", "zion", "ual", "ing", "and", "end", "ed", "ly", "at", "it", "ut", "ar", "er", "ir"),
)

STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """
        il lo la i gli le l un uno una di a da in con su per tra fra e ed o od ma se che chi cui non
        del dello della dei degli delle dell al allo alla ai agli alle all dal dallo dalla dai dagli dalle
        dall nel nello nella nei negli nelle nell sul sullo sulla sui sugli sulle sull col coi
        quale quali quando quanto quanta quanti quante dove come cosa perche mi ti si ci vi ne me te lui lei
        noi voi loro suo sua suoi sue mio mia questo questa questi queste quello quella quelli quelle
        sono sei siamo siete era erano stato stata stati state essere ha ho hai hanno abbiamo avere aveva
        viene vengono anche piu gia c d qual quell
        the an of to on at by for from with and or but if that this these those is are was were be been being
        it its as not no do does did done has have had having what which who whom whose when where why how
        i you he she we they me him her us them my your his our their there here than then so such
        can could will would should may might must about into over
        """,
    )
)
"""Words left out of a query, folded: articles, prepositions, pronouns, auxiliaries, question words."""


_NUMBER_NAMES: Final = """
    1 one  2 two due  3 three tre  4 four quattro  5 five cinque  6 six sei  7 seven sette  8 eight otto
    9 nine nove  10 ten dieci  11 eleven undici  12 twelve dodici  13 thirteen tredici
    14 fourteen quattordici  15 fifteen quindici  16 sixteen sedici  17 seventeen diciassette
    18 eighteen diciotto  19 nineteen diciannove  20 twenty venti  30 thirty trenta  40 forty quaranta
    50 fifty cinquanta  60 sixty sessanta  70 seventy settanta  80 eighty ottanta  90 ninety novanta
"""
_SMALL_NUMBERS: Final = {
    name: number for number, names in re.findall(r"(\d+) ([a-z ]+)", _NUMBER_NAMES) for name in names.split()
}


def tokens(text: str) -> list[str]:
    """Return the tokens of `text` as written, in order."""
    return TOKEN.findall(text)


def fold(word: str) -> str:
    """Return `word` without case, accents and compatibility forms."""
    return _MARKS.sub("", unicodedata.normalize("NFKD", word)).casefold()


def forms(token: str) -> tuple[str, ...]:
    """Return what `token` counts as: its one spelling first, then its parts.

    A date is `yyyy-mm-dd`, then day, year and the month's names. An amount loses its separators and a
    zero fraction. A month's name is also its name in the other language. Other words are folded.
    """
    word = fold(token)
    return _date(word) or _month(word) or _number(word)


def stem(word: str) -> str:
    """Return the stem of a folded `word`; what holds a digit or is short is its own stem.

    Takes an English plural, the last vowels, one suffix, then a doubled last letter.
    """
    if len(word) <= MIN_STEM or not word.isalpha():
        return word
    if word.endswith("s") and not word.endswith(_PLURAL_S_STAYS):
        word = word[:-1]
    bare = _without(word, _VOWEL_ENDINGS)
    if bare != word and word[len(bare)] in "ie":
        bare = bare[:-1] if bare.endswith(("ch", "gh")) else bare
    root = _without(bare, _SUFFIXES)
    return root[:-1] if len(root) > MIN_STEM and root[-1] == root[-2] else root


def query_words(query: str, limit: int) -> tuple[str, ...]:
    """Return the first `limit` distinct words of `query` worth searching, in their one spelling.

    Stop words are left out, unless the query holds nothing else.
    """
    words = tuple(dict.fromkeys(forms(token)[0] for token in tokens(query)))
    telling = tuple(word for word in words if word not in STOP_WORDS)
    return (telling or words)[:limit]


def content_words(text: str, *, parts: bool = False) -> frozenset[str]:
    """Return what `text` says in comparable words: stems, and numbers, dates and amounts in one spelling.

    Stop words are left out. With `parts`, the parts of a date or a number are among them, so that "9 April"
    is held by a text that says "2026-04-09".
    """
    found: set[str] = set()
    for token in tokens(text):
        first, *rest = forms(token)
        if first in _SMALL_NUMBERS:
            found.add(_SMALL_NUMBERS[first])
        elif first not in STOP_WORDS:
            found.add(stem(first))
        if parts:
            found.update(stem(part) for part in rest)
    return frozenset(found)


def _without(word: str, endings: tuple[str, ...]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM:
            return word[: -len(ending)]
    return word


def _date(word: str) -> tuple[str, ...]:
    if match := _ISO_DATE.match(word):
        year, month, day = (int(part) for part in match.groups())
    elif match := _LOCAL_DATE.match(word):
        day, month, year = (int(part) for part in match.groups())
    elif match := _NAMED_DATE.match(word):
        day, year = int(match["d"] or match["day"]), int(match["y"] or match["year"])
        month = _MONTH_NUMBER[match["m"] or match["month"]]
    else:
        return ()
    if not 1 <= month <= len(_MONTHS):
        return ()
    return (f"{year:04d}-{month:02d}-{day:02d}", str(day), str(year), *_MONTHS[month - 1])


def _month(word: str) -> tuple[str, ...]:
    if word not in _MONTH_NUMBER:
        return ()
    # Alone, the English month is far more often the verb.
    other = (
        () if word == "may" else tuple(n for n in _MONTHS[_MONTH_NUMBER[word] - 1] if n not in (word, "may"))
    )
    return (word, *other)


def _number(word: str) -> tuple[str, ...]:
    if not word[:1].isdigit():
        return ("euro",) if word == "€" else (word,)
    if match := _AMOUNT.match(word):
        whole, fraction = match.groups()
        whole = whole.replace(".", "").replace(",", "")
        plain = whole if not fraction or not int(fraction) else f"{whole}.{fraction}"
        return (plain, word) if word != plain else (plain,)
    return (word, *_DIGITS.findall(word))


def how_many(count: int, noun: str) -> str:
    """Return `count` things in English: "1 file", "2,000 files". The plural of `noun` is regular."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def not_text(count: int) -> str:
    """Return what is said, to models and people, of `count` files that are no text."""
    return f"{how_many(count, 'file')} could not be read as text"


def not_whole(count: int) -> str:
    """Return what is said, to models and people, of `count` documents of which a part could not be read."""
    documents = "1 document has" if count == 1 else f"{count:,} documents have"
    return f"{documents} pages or attachments that could not be read; akaion index names those in the index"
