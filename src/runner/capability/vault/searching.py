# SPDX-License-Identifier: Apache-2.0
"""Searching: from a query to exact quotes.

Owns what is believed. The store only says where to look: every file is opened again beneath its folder, cut
again, and the line that is shown is a line of it, word for word. So an index that is old or forged can hide a
line or waste a look, and cannot make a quote up. Leaves the order of sections to `store`. Carries P2, and I8
by being examined within the roots of the call only, counts and rarity included.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from runner.capability.tools.listing import Parts
from runner.capability.tools.pages import Piece, piece_of
from runner.capability.tools.paths import virtual
from runner.capability.tools.ranking import Document
from runner.capability.vault.sections import Section
from runner.capability.vault.store import Candidate, Store, parts_of
from runner.capability.vault.words import Pattern, Query, parse_query, spellings, stems
from runner.kernel.errors import ToolError
from runner.kernel.language import tokens
from runner.kernel.ports import Root

OPENED: Final = 60
"""Files that one search opens at most."""
AROUND: Final = 2
"""Lines on each side whose words count for a line, by half, and that are shown with it."""
BESIDE: Final = 5
"""Sections on each side of the best one whose lines may be shown with its own."""
NAMED_SECTIONS: Final = 50
"""Sections of a file found by its name that are looked through for a line with a word."""
LINE_CHARS: Final = 300
"""Characters of a line that are shown."""
ALIKE: Final = 0.9
"""Share of words from which two sections with the same best line are the same text twice."""

Read: TypeAlias = Callable[[Root, Parts], Sequence[Section]]
"""Returns the sections of a file as they are now; raises `ToolError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A line of a file, as it stands there: `quote`, number `line` of its `page`, both counted from 1.

    A plain file has no pages. A line too long to show is cut to a piece of itself. `pieces` are it and the
    lines around it that say something, in order. `texts` are its page and those beside it that hold the
    phrases. `also` names the files that have the same text. `by_name` says that no line was found with a
    word that was looked for: the file's name or folder has it.
    """

    file: str = field(repr=False)
    page: int | None
    line: int
    quote: str = field(repr=False)
    pieces: tuple[Piece, ...] = field(repr=False)
    texts: tuple[Document, ...] = field(repr=False)
    score: float
    also: tuple[str, ...] = field(default=(), repr=False)
    by_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The hits, best first, and how many files of the roots are indexed and how many could not be read.

    `not_whole` of those that are indexed have pages or attachments that could not be read.
    `loose` says that no file has the phrases as they were put, so their words were looked for.
    """

    hits: tuple[Hit, ...]
    files: int = 0
    unread: int = 0
    not_whole: int = 0
    loose: bool = False


@dataclass(slots=True, kw_only=True)
class _Group:
    """A hit, the words of its section, and the other files that have the same text."""

    hit: Hit
    words: frozenset[str] = field(repr=False)
    also: list[str] = field(default_factory=list, repr=False)

    def is_the_text_of(self, other: "_Group") -> bool:
        """Return whether the hit of `other` is the same text once more."""
        if stems(self.hit.quote) != stems(other.hit.quote):
            return False
        return len(self.words & other.words) >= ALIKE * len(self.words | other.words)


def search(store: Store, roots: Sequence[Root], text: str, limit: int, read: Read) -> Found:
    """Return the best `limit` hits for `text` in `roots`, each read from its file now. Total on any text."""
    with store.one_look():
        return _searched(store, roots, parse_query(text), limit, read)


def _searched(store: Store, roots: Sequence[Root], query: Query, limit: int, read: Read) -> Found:
    tables = store.tables(roots)
    tally = store.tally(list(tables.values()))
    work = _Search(
        store=store, tables=tables, worth=store.worth(list(tables.values()), query), read=read, limit=limit
    )
    hits = work.hits(query.phrases)
    loose = bool(query.phrases) and not hits
    if loose:
        hits = work.hits(())
    return Found(
        hits=hits,
        files=tally.read,
        unread=sum(tally.unread.values()),
        not_whole=tally.not_whole,
        loose=loose and bool(hits),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What one search goes by."""

    store: Store
    tables: Mapping[Root, int]
    worth: Mapping[Pattern, float]
    read: Read
    limit: int

    def hits(self, phrases: Sequence[Pattern]) -> tuple[Hit, ...]:
        """Return the hits, best first, copies of one text together."""
        groups: list[_Group] = []
        for root, candidate in self._candidates(phrases)[:OPENED]:
            group = self._look_into(root, candidate, phrases)
            if group is None:
                continue
            same = next((each for each in groups if each.is_the_text_of(group)), None)
            if same is not None:
                same.also.append(group.hit.file)
            elif len(groups) < self.limit:
                groups.append(group)
            else:
                break
        return tuple(replace(group.hit, also=tuple(group.also)) for group in groups)

    def _candidates(self, phrases: Sequence[Pattern]) -> list[tuple[Root, Candidate]]:
        found = [
            (root, candidate)
            for root, table in self.tables.items()
            for candidate in self.store.best(table, self.worth, phrases, OPENED)
        ]
        return sorted(found, key=lambda each: (-each[1].score, each[0].alias, each[1].name))

    def _look_into(self, root: Root, candidate: Candidate, phrases: Sequence[Pattern]) -> _Group | None:
        """Return the best line of a candidate's section, None if its file does not bear the index out.

        Where the file's name has the words and the section has none, another section may.
        """
        parts = parts_of(candidate.name)
        try:
            sections = self.read(root, parts)
        except ToolError:
            return None
        section = next(iter(sections[candidate.section : candidate.section + 1]), None)
        if section is None:
            return None
        words = {pattern[0]: value for pattern, value in self.worth.items() if len(pattern) == 1}
        at = _best_line(section.lines, words)
        by_name = at is None and bool(words.keys() & set(stems(candidate.name)))
        if by_name:
            section, at = _section_with(sections[:NAMED_SECTIONS], words) or (section, None)
            by_name = at is None
        if by_name:
            at = next((n for n, line in enumerate(section.lines) if line.strip()), None)
        text = stems("\n".join(section.lines))
        if at is None or not all(_holds(text, phrase) for phrase in phrases):
            return None
        file, pieces = virtual(root, parts), _pieces(virtual(root, parts), section, at, words)
        quote = next(each.excerpt for each in pieces if each.excerpt.line == section.first + at)
        hit = Hit(
            file=file,
            page=section.page,
            line=quote.line,
            quote=quote.text,
            pieces=pieces,
            texts=_texts(file, sections, sections.index(section), phrases),
            score=candidate.score,
            by_name=by_name,
        )
        return _Group(hit=hit, words=frozenset(text))


def _texts(
    file: str, sections: Sequence[Section], at: int, phrases: Sequence[Pattern]
) -> tuple[Document, ...]:
    """Return the pages of the section `at` of `file` and of those beside it that hold all `phrases`."""
    near = sections[max(0, at - BESIDE) : at + BESIDE + 1]
    held = (each for each in near if all(_holds(stems("\n".join(each.lines)), phrase) for phrase in phrases))
    pages: list[Document] = []
    for each in held:
        before = pages[-1] if pages else None
        if before and (before.page, before.first + len(before.lines)) == (each.page, each.first):
            pages[-1] = replace(before, lines=before.lines + each.lines)
        else:
            pages.append(Document(name=file, lines=each.lines, page=each.page, first=each.first))
    return tuple(pages)


def _pieces(file: str, section: Section, at: int, words: Mapping[str, float]) -> tuple[Piece, ...]:
    """Return the line `at` of a section and those around it, as they are shown; blank ones are not."""
    start = max(0, at - AROUND)
    lines = section.lines[start : at + AROUND + 1]
    relevance = {
        token: ((0, words[word]),)
        for token in tokens("\n".join(lines))
        for word in spellings(token)
        if word in words
    }
    return tuple(
        piece_of(file, number, line, width=LINE_CHARS, relevance=relevance, page=section.page)
        for number, line in enumerate(lines, start=section.first + start)
        if line.strip()
    )


def _section_with(
    sections: Sequence[Section], words: Mapping[str, float]
) -> tuple[Section, int | None] | None:
    """Return the first of `sections` in which a line has one of `words`, and its best line; None for none."""
    found = ((section, _best_line(section.lines, words)) for section in sections)
    return next((each for each in found if each[1] is not None), None)


def _best_line(lines: Sequence[str], words: Mapping[str, float]) -> int | None:
    """Return the line whose words, with those around it, are worth most; None if none has a word."""
    held = [words.keys() & {word for token in tokens(line) for word in spellings(token)} for line in lines]

    def worth(at: int) -> float:
        around = set().union(*held[max(0, at - AROUND) : at + AROUND + 1])
        own = sum(words[word] for word in held[at])
        return own + sum(words[word] for word in around - held[at]) / 2

    return max((at for at in range(len(lines)) if held[at]), key=lambda at: (worth(at), -at), default=None)


def _holds(text: Sequence[str], phrase: Sequence[str]) -> bool:
    """Return whether the stems of `phrase` stand in a row in `text`."""
    size = len(phrase)
    return any(tuple(text[n : n + size]) == tuple(phrase) for n, word in enumerate(text) if word == phrase[0])
