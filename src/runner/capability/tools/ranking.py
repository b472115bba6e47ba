# SPDX-License-Identifier: Apache-2.0
"""Ranking: which lines of a few thousand texts answer a query best.

Owns scores, as pure functions of a query and texts: the same input ranks the same way everywhere, nothing
is kept between calls. Leaves reading to `beneath`, tokens to `kernel.language`, and display to `search`.

How: a name in the query, if any text holds it, rules out the texts that hold none. Every token of the
texts is compared with the query's words once (same spelling, same stem, or close when no text has the
word). Files are scored by BM25 over their text and path; in the best files every line that holds a query
word is scored by BM25 together with its neighbours, and its file's score is added.
Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import chain, islice
from typing import Final, TypeAlias

from runner.kernel.language import STOP_WORDS, TOKEN, forms, query_words, stem, tokens

Relevance: TypeAlias = Mapping[str, tuple[tuple[int, float], ...]]
"""Token as written -> the query words it stands for, by position, each with a weight in (0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The constants of a ranking; weights are factors of a word's count."""

    query_words: int = 24
    """Words of a query that are used."""
    stem_weight: float = 0.8
    """A token with the stem of a query word."""
    near_weight: float = 0.6
    """A token close to a query word that no text holds, times the closeness."""
    near_ratio: float = 0.8
    """Closeness from which two stems are near, 0 to 1."""
    near_margin: float = 0.1
    """How much less close than the closest token a near one may be."""
    near_length: int = 4
    """Characters both stems need to be compared for closeness."""
    name_boost: float = 3.0
    """A word in a file's path."""
    context_lines: int = 2
    """Neighbouring lines, on each side, that belong to a line's passage."""
    context_weight: float = 0.5
    """A word in a neighbouring line."""
    saturation: float = 1.2
    """k1 of BM25."""
    file_length_norm: float = 0.5
    """b of BM25 for files."""
    line_length_norm: float = 0.3
    """b of BM25 for passages."""
    file_weight: float = 0.5
    """A file's score, added to each of its passages."""
    candidate_files: int = 20
    """Best files whose lines are scored."""
    lines_per_file: int = 5000
    """Lines with a query word that are scored in one file, the first ones."""


DEFAULT: Final = Tuning()

_NAME: Final = re.compile(r"(?<=[^\s.:?!])\s+(?:\w{1,5}['\u2019])?([^\W\d_]\w{2,})")
"""A word that starts no sentence, without an elided article before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text to rank: the path it is shown by, and its lines, of which the first has the number `first`.

    Of a document it is the text of a `page`.
    """

    name: str = field(repr=False)
    lines: tuple[str, ...] = field(repr=False)
    page: int | None = None
    first: int = 1

    def tokens(self) -> list[str]:
        """Return the tokens of the name and of all lines."""
        return tokens("\n".join((self.name, *self.lines)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Lines of one document, `lines` counted from 0 and rising, around its best line `centre`."""

    document: int
    centre: int
    lines: tuple[int, ...]
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Passages, best first, and what each token was worth, for `cut`."""

    passages: tuple[Passage, ...]
    relevance: Relevance = field(repr=False)


def rank(query: str, documents: Sequence[Document], tuning: Tuning = DEFAULT) -> Ranking:
    """Return the passages of `documents` that hold words of `query`, best first; total on any text.

    When the query has names among the words that are used, and some documents hold one, only those count: a
    line about somebody else misleads. A document that matches by its path alone gives its first lines. Ties
    go by document, then line.
    """
    words = query_words(query, tuning.query_words)
    vocabulary = set(chain.from_iterable(document.tokens() for document in documents))
    relevance = relate(words, vocabulary, tuning)
    scores = _score_files(documents, relevance, len(words), tuning)
    named = _holders(names(query) & set(words), documents)
    best = sorted((n for n in named if scores[n] > 0), key=lambda n: (-scores[n], n))
    candidates = {n: scores[n] for n in best[: tuning.candidate_files]}
    passages = _score_lines(documents, candidates, relevance, len(words), tuning)
    return Ranking(passages=tuple(passages), relevance=relevance)


def names(query: str) -> frozenset[str]:
    """Return the words of `query`, folded, that look like names: a capital letter inside a sentence.

    Months are none. No claim of completeness: a query without a name is simply not narrowed.
    """
    found = (match[1] for match in _NAME.finditer(query) if match[1][0].isupper())
    return frozenset(forms(word)[0] for word in found if len(forms(word)) == 1) - STOP_WORDS


def _holders(wanted: frozenset[str], documents: Sequence[Document]) -> Sequence[int]:
    """Return the documents that hold a wanted word; all of them when none does."""
    if not wanted:
        return range(len(documents))
    held = [n for n, d in enumerate(documents) if any(forms(t)[0] in wanted for t in set(d.tokens()))]
    return held or range(len(documents))


def relate(words: Sequence[str], vocabulary: Iterable[str], tuning: Tuning = DEFAULT) -> Relevance:
    """Return which tokens of `vocabulary` stand for which of the query's `words`, and how well."""
    known = {token: forms(token) for token in vocabulary}
    found: dict[str, dict[int, float]] = {}
    stems = [stem(word) for word in words]
    by_word, by_stem = _positions(words), _positions(stems)
    for token, spellings in known.items():
        for n in by_stem.get(stem(spellings[0]), ()):
            found.setdefault(token, {})[n] = tuning.stem_weight
        for n in chain.from_iterable(by_word.get(spelling, ()) for spelling in spellings):
            found.setdefault(token, {})[n] = 1.0
    met = set(chain.from_iterable(found.values()))
    for n, root in enumerate(stems):
        if n not in met:
            for token, close in _near(root, known, tuning).items():
                found.setdefault(token, {})[n] = tuning.near_weight * close
    return {token: tuple(sorted(weights.items())) for token, weights in found.items()}


def _near(root: str, known: Mapping[str, tuple[str, ...]], tuning: Tuning) -> dict[str, float]:
    """Return the tokens close to the stem `root`, and how close: the closest, and those nearly as close."""
    close = {token: closeness(root, stem(spellings[0]), tuning) for token, spellings in known.items()}
    least = max(tuning.near_ratio, max(close.values(), default=0.0) - tuning.near_margin)
    return {token: ratio for token, ratio in close.items() if ratio >= least}


def closeness(one: str, other: str, tuning: Tuning = DEFAULT) -> float:
    """Return how alike two stems are, 0 to 1: share of letters in matching runs, 1 if one begins the other.

    0 when their first letters differ or one is shorter than `tuning.near_length`: such pairs are other
    words ("azione", "nazione") more often than slips.
    """
    short, long = sorted((one, other), key=len)
    if len(short) < tuning.near_length or short[0] != long[0] or not (one.isalpha() and other.isalpha()):
        return 0.0
    if long.startswith(short):
        return 1.0
    if 2 * len(short) < tuning.near_ratio * (len(short) + len(long)):
        return 0.0
    return SequenceMatcher(None, short, long, autojunk=False).ratio()


def bm25(
    counts: Sequence[Sequence[float]], lengths: Sequence[float], *, population: int, k1: float, b: float
) -> list[float]:
    """Return the BM25 score of each of the texts that `counts` describes.

    `counts[i][n]` is how often text i holds query word n (weights allowed), `lengths[i]` how many tokens
    it has, `population` how many texts there are in all, at least as many as `counts`.
    """
    if not counts:
        return []
    holders = [sum(1 for row in counts if row[n] > 0) for n in range(len(counts[0]))]
    rarity = [math.log(1 + (population - held + 0.5) / (held + 0.5)) for held in holders]
    average = sum(lengths) / len(lengths) or 1.0
    return [
        sum(
            rare * count * (k1 + 1) / (count + k1 * (1 - b + b * length / average))
            for rare, count in zip(rarity, row, strict=True)
            if count > 0
        )
        for row, length in zip(counts, lengths, strict=True)
    ]


def cut(line: str, relevance: Relevance, width: int) -> tuple[int, int]:
    """Return the span of `line`, at most `width` characters, that holds most of the query's words.

    The whole line when it fits; ends fall between words where they can. A tie goes to the earliest span.
    """
    if len(line) <= width:
        return 0, len(line)
    hits = [
        (match.start(), max(weight for _, weight in relevance[match.group()]))
        for match in TOKEN.finditer(line)
        if match.group() in relevance
    ]
    lead = width // 4
    best, start = 0.0, 0
    worth, left = 0.0, 0
    for right, (_, weight) in enumerate(hits):
        worth += weight
        while hits[right][0] - hits[left][0] > width - 2 * lead:
            worth -= hits[left][1]
            left += 1
        if worth > best:
            best, start = worth, max(0, hits[left][0] - lead)
    start = min(start, len(line) - width)
    return _between_words(line, start, start + width)


def _between_words(line: str, start: int, end: int) -> tuple[int, int]:
    slack = (end - start) // 4
    first = line.find(" ", start, start + slack) + 1 if start else 0
    last = line.rfind(" ", end - slack, end) if end < len(line) else -1
    return max(start, first), last if last > 0 else end


def _positions(words: Sequence[str]) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = {}
    for n, word in enumerate(words):
        positions.setdefault(word, []).append(n)
    return positions


def _weigh(found: Iterable[str], relevance: Relevance, row: list[float], factor: float) -> None:
    for token in found:
        for n, weight in relevance.get(token, ()):
            row[n] += factor * weight


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A passage before it has a score: its weighted counts by query word, and its length in tokens."""

    document: int
    centre: int
    lines: tuple[int, ...]
    counts: list[float]
    length: float


def _score_files(
    documents: Sequence[Document], relevance: Relevance, words: int, tuning: Tuning
) -> list[float]:
    rows: list[list[float]] = []
    lengths: list[float] = []
    for document in documents:
        row, found = [0.0] * words, document.tokens()
        _weigh(found, relevance, row, 1.0)
        _weigh(tokens(document.name), relevance, row, tuning.name_boost)
        rows.append(row)
        lengths.append(len(found))
    return bm25(rows, lengths, population=len(rows), k1=tuning.saturation, b=tuning.file_length_norm)


def _score_lines(
    documents: Sequence[Document],
    candidates: Mapping[int, float],
    relevance: Relevance,
    words: int,
    tuning: Tuning,
) -> list[Passage]:
    full = {n: _full_lines(documents[n].lines) for n in candidates}
    places = [
        place
        for n in candidates
        for place in _places(n, documents[n], full[n], relevance, words=words, tuning=tuning)
    ]
    scores = bm25(
        [place.counts for place in places],
        [place.length for place in places],
        population=sum(map(len, full.values())),
        k1=tuning.saturation,
        b=tuning.line_length_norm,
    )
    passages = [
        Passage(
            document=place.document,
            centre=place.centre,
            lines=place.lines,
            score=score + tuning.file_weight * candidates[place.document],
        )
        for place, score in zip(places, scores, strict=True)
    ]
    return sorted(passages, key=lambda passage: (-passage.score, passage.document, passage.centre))


def _places(
    number: int, document: Document, full: Sequence[int], relevance: Relevance, *, words: int, tuning: Tuning
) -> list[_Place]:
    """Return a place for each line that holds a query word; the first lines when none does."""
    reach = tuning.context_lines
    centres = (
        (at, line)
        for at, line in enumerate(full)
        if any(token in relevance for token in tokens(document.lines[line]))
    )
    places: list[_Place] = []
    for at, centre in islice(centres, tuning.lines_per_file):
        around = tuple(full[max(0, at - reach) : at + reach + 1])
        row, length = [0.0] * words, 0.0
        for line in around:
            found, factor = tokens(document.lines[line]), 1.0 if line == centre else tuning.context_weight
            _weigh(found, relevance, row, factor)
            length += factor * len(found)
        places.append(_Place(document=number, centre=centre, lines=around, counts=row, length=length))
    if not places and full:
        head = tuple(full[: 2 * reach + 1])
        places.append(_Place(document=number, centre=head[0], lines=head, counts=[0.0] * words, length=0.0))
    return places


def _full_lines(lines: Sequence[str]) -> list[int]:
    return [n for n, line in enumerate(lines) if line and not line.isspace()]
