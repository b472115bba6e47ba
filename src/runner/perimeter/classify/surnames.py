# SPDX-License-Identifier: Apache-2.0
"""A client called by one word of the name: which words are looked for by themselves, and where one counts.

Owns that judgement. Leaves finding the words to `registers`, which words are ordinary to `names`, a surname
inside a firm's, a street's, another professional's or a public name to `settle` and `engine`.
Carries I6: a client called by surname is found, though the register holds the whole name. And its price: an
ordinary word counts only behind a title.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from runner.perimeter.classify import names
from runner.perimeter.classify.contacts import PRIVATE_TITLE, PROFESSIONAL_TITLE
from runner.perimeter.classify.pattern import compile_pattern
from runner.perimeter.classify.words import words_of

ALONE: Final = "client-register-surname"
"""The rule by which a client is found by one word of the name."""

_SHORTEST: Final = 4
"""Letters of a word that counts without a title."""
_BEFORE: Final = 80
_PARTICLE: Final = (
    rb"(?:d[eiao]|del|dell[aeo]?|de[ig]|dall[ao]?|l[aoei]|van|von|de[nr]|te[nr]|el|al|bin|ben)[' ]|[dlo]'"
)
_WORD: Final = re.compile(rb"((?:\b(?:" + _PARTICLE + rb"))*)\b([a-z]{3,})")
_APART: Final = {
    "\u00df": "ss",
    "\u1e9e": "SS",
    "\u00e6": "ae",
    "\u00c6": "Ae",
    "\u00f8": "oe",
    "\u00d8": "Oe",
} | {
    letter: f"{base}e" for letter, base in zip("\u00e4\u00f6\u00fc\u00c4\u00d6\u00dc", "aouAOU", strict=True)
}
"""Letters that are written as two where a keyboard has no others."""
_LETTERS: Final = str.maketrans(_APART)
_LABELLED: Final = compile_pattern(
    r"(?i)(?:^|[^0-9A-Za-z])(?:client[ei]?|pazient[ei]|patient|assistit[oaei]|cognome|surname)[\"']?\s{0,3}[:=]\s{0,3}[\"']?$"
)
"""The label of a field that holds a name: behind it a surname is one in small letters, too."""
_TITLED: Final = compile_pattern(rf"(?:^|[^0-9A-Za-z])(?:{PRIVATE_TITLE}|{PROFESSIONAL_TITLE})$")


def spellings_of(name: str) -> frozenset[str]:
    """Return `name` as it is, and with each letter that some keyboards lack written as two."""
    return frozenset({name, unicodedata.normalize("NFC", name).translate(_LETTERS)})


class Alone(NamedTuple):
    """A part of a name that is looked for by itself: its words, and whether only behind a title."""

    words: tuple[bytes, ...]
    titled: bool


def parts_of(name: bytes) -> Iterator[Alone]:
    """Yield what of `name`, a person's and folded, is looked for by itself.

    Nobody says which word is the surname. A common given name is none; a particle belongs to what follows it,
    and may be written in one word with it.
    """
    for particles, word in _WORD.findall(name.lower()):
        text = word.decode("ascii")
        told = bool(particles) or (len(word) >= _SHORTEST and names.is_told_by_itself(text))
        if told or text not in names.GIVEN or text in names.SURNAMES:
            yield Alone((*words_of(particles), word), not told)
        joined = b"".join((*words_of(particles), word))
        if particles and names.is_told_by_itself(joined.decode("ascii")):
            yield Alone((joined,), titled=False)


def is_called(data: bytes, start: int, end: int, *, titled: bool) -> bool:
    """Say whether bytes `start` to `end` of `data`, a folded text, part of a name, call somebody.

    Behind a title they do. Elsewhere, unless only `titled` ones count, they do where they are written with
    a capital and nothing is called after somebody.
    """
    before = data[max(0, start - _BEFORE) : start]
    written = data[start:end].split(b" ")
    capitals = not titled and written[0][:1].isupper() and written[-1][:1].isupper()
    if capitals and names.stands_for_a_person(before.decode("ascii")):
        return True
    return _TITLED.search(before) is not None or (not titled and _LABELLED.search(before) is not None)
