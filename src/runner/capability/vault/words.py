# SPDX-License-Identifier: Apache-2.0
"""Words as the index holds them, and the words of a query.

Owns the one step from text to terms: a term is a keyed digest of a stem, so that the file of the index has no
readable word in it. Owns reading a query: words, and phrases in quotes, never the syntax of a database.
Leaves tokens, spellings and stems to `kernel.language`, as `search_text` and the evidence check do: one rule
says when two words are the same. Carries I12 at rest, as far as its key is kept. Total on any text.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Final, TypeAlias

from runner.kernel.language import forms, query_words, stem, tokens

TERM_BYTES: Final = 6
"""Bytes of a term: among a million stems two share one with odds of 1 in 560. Files decide, not terms."""
MOST_WORDS: Final = 24
"""Words of a query that are used."""
KNOWN_TOKENS: Final = 1 << 17
"""Tokens whose terms are kept in memory."""

_PHRASE: Final = re.compile(
    '["\u201c\u201d\u201e\u00ab\u00bb]([^"\u201c\u201d\u201e\u00ab\u00bb]+)["\u201c\u201d\u00bb]'
)


Pattern: TypeAlias = tuple[str, ...]
"""Stems that stand in a row in a text: one, or several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for: words, `pairs` of them that stand side by side, and `phrases` that must stand."""

    words: tuple[Pattern, ...] = field(repr=False)
    pairs: tuple[Pattern, ...] = field(default=(), repr=False)
    phrases: tuple[Pattern, ...] = field(default=(), repr=False)


def parse_query(text: str) -> Query:
    """Return what `text` looks for: what stands in quotes is a phrase, and its words count too. Total."""
    wanted = query_words(text, MOST_WORDS)
    said = [forms(token)[0] for token in tokens(text)]
    beside = [(one, other) for one, other in pairwise(said) if {one, other} <= set(wanted)]
    phrases = (stems(phrase) for phrase in _PHRASE.findall(text))
    return Query(
        words=tuple(dict.fromkeys((stem(word),) for word in wanted)),
        pairs=tuple(dict.fromkeys(tuple(map(stem, pair)) for pair in beside))[:MOST_WORDS],
        phrases=tuple(phrase for phrase in phrases if phrase),
    )


def stems(text: str) -> tuple[str, ...]:
    """Return the stem of each token of `text`, in order, stop words included."""
    return tuple(spellings(token)[0] for token in tokens(text))


@lru_cache(maxsize=KNOWN_TOKENS)
def spellings(token: str) -> tuple[str, ...]:
    """Return the stem of `token`, then those of its parts: of a date its day, month and year."""
    return tuple(map(stem, forms(token)))


class Terms:
    """Terms under one secret key of 32 bytes."""

    __slots__ = ("_of", "key")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._of = lru_cache(maxsize=KNOWN_TOKENS)(self._terms)

    def __repr__(self) -> str:
        """Return the name only: the key stays out of logs."""
        return "<Terms>"

    def digest(self, data: bytes, *, size: int = 16) -> bytes:
        """Return a keyed digest of `data`, of `size` bytes (BLAKE2b, RFC 7693)."""
        return blake2b(data, key=self.key, digest_size=size).digest()

    def term(self, word: str) -> str:
        """Return the term of a stem, twelve hex digits."""
        return self.digest(word.encode("utf-8", "surrogatepass"), size=TERM_BYTES).hex()

    def row(self, text: str) -> tuple[str, str]:
        """Return the terms of `text` in order, and those of the parts of its dates and numbers."""
        found = [self._of(token) for token in tokens(text)]
        return " ".join(each[0] for each in found), " ".join(part for each in found for part in each[1:])

    def _terms(self, token: str) -> tuple[str, ...]:
        return tuple(map(self.term, spellings(token)))
