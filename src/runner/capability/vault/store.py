# SPDX-License-Identifier: Apache-2.0
"""The store: what the index has, with a full-text table for each granted folder.

Owns every statement. Two folders never share a table: what stands in one changes no count, rank or order of
the other, so a search in one matter learns nothing of another (ADR 0028). The name of a file is sealed, its
path is looked up by a keyed digest, and words are terms (`words`): there is no readable text in it. Leaves
what to put in to `indexing`, and what to believe to `searching`, which reads every file again.

Source of the score: "The bm25() function" of SQLite's FTS5, with the rarity of a word in one table replaced
by its rarity in all tables of the call. Pairs of words beside each other count too: Metzler and Croft, "A
Markov random field model for term dependencies" (2005), section 3.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from runner.capability.tools.listing import Parts, Stamp
from runner.capability.vault.database import Broken, one_change, open_database
from runner.capability.vault.words import Pattern, Query, Terms
from runner.kernel.ports import Root

SECTION_BITS: Final = 16
"""A row of a table is numbered `file << SECTION_BITS | section`."""
COMMON: Final = 5000
"""A word in more sections is passed over where there is a rarer one: it would say little, slowly."""
PAIR: Final = 0.5
"""What a pair of words in a row is worth, of its rarity."""

_NONCE: Final = 12
_MAKE: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5 (words, parts, path, tokenize = 'ascii')"
)
_INSERT: Final = "INSERT INTO {table} (rowid, words, parts, path) VALUES (?, ?, ?, ?)"
_DELETE: Final = "DELETE FROM {table} WHERE rowid BETWEEN ? AND ?"
_DROP: Final = "DROP TABLE {table}"
_CHECK: Final = "INSERT INTO {table} ({table}) VALUES ('integrity-check')"
_ROWS: Final = "SELECT count(*) FROM {table}_docsize"
_HOLDERS: Final = "SELECT count(*) FROM {table} WHERE {table} MATCH ?"
_PART: Final = (
    "SELECT rowid AS row, -bm25({table}, 1.0, 0.5, 2.0) * ? AS part FROM {table} WHERE {table} MATCH ?"
)
"""What one word gives to each section: it counts in the text, half as a part of a date, twice in the path."""
_ONLY: Final = "WHERE row IN (SELECT rowid FROM {table} WHERE {table} MATCH ?)"
_BEST: Final = """
    WITH parts AS MATERIALIZED ({parts})
    SELECT file.mark, file.name, row, score FROM (
        SELECT row, max(score) AS score
        FROM (SELECT row, sum(part) AS score FROM parts {only} GROUP BY row)
        GROUP BY row >> {bits}
    ) JOIN file ON file.id = row >> {bits} AND file.root = ?
    ORDER BY score DESC, file.mark LIMIT ?
"""
_TALLY: Final = "SELECT problem, count(*), sum(missing <> '') FROM file WHERE root = ? GROUP BY problem"
_PUT: Final = """
    INSERT INTO file (root, mark, name, stamp, digest, problem, missing) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (root, mark) DO UPDATE SET
        stamp = excluded.stamp, digest = excluded.digest,
        problem = excluded.problem, missing = excluded.missing
    RETURNING id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How a file was when it was read: its stamp, a keyed digest of its bytes, why it is unread, if it is.

    `missing` says what of its text is not there, if it was read and not all of it could be.
    """

    stamp: str
    digest: bytes = b""
    problem: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many files were `read`, how many of those not whole, and how many not at all, by the reason."""

    read: int
    not_whole: int
    unread: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A file of the index."""

    id: int
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The terms of one section: of its text, and of the parts of its dates and numbers."""

    section: int
    words: str
    parts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A section that may hold what is looked for: only its file can say."""

    name: str = field(repr=False)
    section: int
    score: float


class Store:
    """An open index; made by `open_store`. Methods raise `Broken` and errors of `sqlite3`."""

    def __init__(self, connection: sqlite3.Connection, terms: Terms) -> None:
        self.terms = terms
        self._db = connection
        self._seal = AESGCM(terms.digest(b"names", size=32))
        self._held: dict[tuple[int, Pattern], int] = {}

    # --- what changes it -----------------------------------------------------------------------------

    def one_change(self) -> AbstractContextManager[None]:
        """Do what is done in this context as one change, or not at all."""
        return one_change(self._db)

    def table_of(self, root: Root) -> int:
        """Return the number of the table of `root`, which is made if there is none."""
        mark = self._mark_of(root)
        self._db.execute("INSERT INTO root (mark) VALUES (?) ON CONFLICT DO NOTHING", (mark,))
        (number,) = self._db.execute("SELECT id FROM root WHERE mark = ?", (mark,)).fetchone()
        self._db.execute(_on(_MAKE, number))
        return int(number)

    def put(self, table: int, name: str, state: State, rows: Sequence[Row]) -> None:
        """Put the file `name` in, with its `rows`, in the place of what was there."""
        mark = self.mark(name)
        about = (state.stamp, state.digest, state.problem, state.missing)
        (file,) = self._db.execute(_PUT, (table, mark, self._sealed(name, mark), *about)).fetchone()
        self._drop_rows(table, file)
        path = " ".join(self.terms.row(name))
        numbered = [(file << SECTION_BITS | row.section, row.words, row.parts, path) for row in rows]
        self._db.executemany(_on(_INSERT, table), numbered)

    def restamp(self, file: int, stamp: str) -> None:
        """Note that a file with this stamp has the bytes it had."""
        self._db.execute("UPDATE file SET stamp = ? WHERE id = ?", (stamp, file))

    def drop(self, table: int, file: int) -> None:
        """Forget a file."""
        self._drop_rows(table, file)
        self._db.execute("DELETE FROM file WHERE id = ?", (file,))

    def keep_only(self, roots: Sequence[Root]) -> None:
        """Forget every folder that is none of `roots`."""
        marks = {self._mark_of(root) for root in roots}
        for number, mark in self._db.execute("SELECT id, mark FROM root").fetchall():
            if mark not in marks:
                self._db.execute(_on(_DROP, number))
                self._db.execute("DELETE FROM file WHERE root = ?", (number,))
                self._db.execute("DELETE FROM root WHERE id = ?", (number,))

    def _drop_rows(self, table: int, file: int) -> None:
        bounds = (file << SECTION_BITS, (file + 1 << SECTION_BITS) - 1)
        self._db.execute(_on(_DELETE, table), bounds)

    @contextmanager
    def one_look(self) -> Iterator[None]:
        """Look in this context at one state of the index, whoever writes meanwhile."""
        self._db.execute("BEGIN")
        self._held.clear()
        try:
            yield
        finally:
            self._db.execute("COMMIT")

    # --- what it says --------------------------------------------------------------------------------

    def mark(self, name: str) -> bytes:
        """Return what a file is looked up by."""
        return self.terms.digest(name.encode("utf-8", "surrogateescape"))

    def tables(self, roots: Sequence[Root]) -> dict[Root, int]:
        """Return the tables of those of `roots` that were ever indexed."""
        numbers = dict(self._db.execute("SELECT mark, id FROM root").fetchall())
        marks = {root: self._mark_of(root) for root in roots}
        return {root: numbers[mark] for root, mark in marks.items() if mark in numbers}

    def known(self, table: int) -> dict[bytes, Known]:
        """Return every file of a table, by its mark."""
        asked = "SELECT mark, id, stamp, digest, problem, missing FROM file WHERE root = ?"
        return {
            mark: Known(id=file, state=State(stamp=stamp, digest=digest, problem=problem, missing=missing))
            for mark, file, stamp, digest, problem, missing in self._db.execute(asked, (table,))
        }

    def tally(self, tables: Sequence[int]) -> Tally:
        """Return how many files of `tables` were read, and how many not."""
        counts: Counter[str] = Counter()
        not_whole = 0
        for table in tables:
            for problem, count, missing in self._db.execute(_TALLY, (table,)):
                counts[problem] += count
                not_whole += 0 if problem else missing
        return Tally(read=counts.pop("", 0), not_whole=not_whole, unread=counts)

    def unread(self, table: int) -> list[tuple[str, str, str]]:
        """Return the name of each file of a table that was not read, or not all of it, by name.

        Beside each the reason why it was not, or what of it is missing.
        """
        asked = "SELECT name, mark, problem, missing FROM file WHERE root = ? AND problem || missing <> ''"
        rows = self._db.execute(asked, (table,))
        return sorted((self._opened(name, mark), problem, missing) for name, mark, problem, missing in rows)

    def worth(self, tables: Sequence[int], query: Query) -> dict[Pattern, float]:
        """Return what each word and pair of `query` is worth, of those that stand in any of `tables`.

        That is how rare it is in all of them together; a pair is worth a part of that, beside its words.
        """
        rows = sum(self._rows(table) for table in tables)
        held = {
            each: sum(self._holders(table, each) for table in tables) for each in (*query.words, *query.pairs)
        }
        telling = {each: count for each, count in held.items() if 0 < count <= COMMON} or held
        rarity = {
            each: log(1 + (rows - count + 0.5) / (count + 0.5)) for each, count in telling.items() if count
        }
        return {each: rare * (PAIR if len(each) > 1 else 1) for each, rare in rarity.items()}

    def best(
        self, table: int, worth: Mapping[Pattern, float], phrases: Sequence[Pattern], most: int
    ) -> list[Candidate]:
        """Return the best section of each of the `most` best files of a table, best first.

        `worth` says what counts, and how much. A section must hold every one of `phrases`.
        """
        rows = self._rows(table)
        values: list[float | str | int] = []
        for each, value in worth.items():
            if held := self._holders(table, each):
                values += value / _rarity_in_table(rows, held), self._match(each)
        if not values:
            return []
        statement = _BEST.format(
            parts=" UNION ALL ".join([_on(_PART, table)] * (len(values) // 2)),
            only=_on(_ONLY, table) if phrases else "",
            bits=SECTION_BITS,
        )
        values += [" AND ".join(map(self._match, phrases))] if phrases else []
        return [
            Candidate(name=self._opened(sealed, mark), section=row & (1 << SECTION_BITS) - 1, score=score)
            for mark, sealed, row, score in self._db.execute(statement, (*values, table, most))
        ]

    def check(self) -> None:
        """Raise `Broken`, or an error of the database, when the file is not whole. Reads all of it."""
        if self._db.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise Broken
        for (number,) in self._db.execute("SELECT id FROM root").fetchall():
            self._db.execute(_on(_CHECK, number))

    def _rows(self, table: int) -> int:
        return int(self._db.execute(_on(_ROWS, table)).fetchone()[0])

    def _holders(self, table: int, pattern: Pattern) -> int:
        """Return how many sections of a table hold `pattern`; counted once in a look."""
        if (table, pattern) not in self._held:
            (count,) = self._db.execute(_on(_HOLDERS, table), (self._match(pattern),)).fetchone()
            self._held[table, pattern] = int(count)
        return self._held[table, pattern]

    def _match(self, pattern: Pattern) -> str:
        """Return `pattern` as FTS5 looks for it: hex digits in quotes, whatever a query said."""
        return f'"{" ".join(map(self.terms.term, pattern))}"'

    def _mark_of(self, root: Root) -> bytes:
        """Return what a folder is looked up by: its path, and which folder stands there."""
        return self.mark("\0".join([root.path, *map(str, root.identity or ())]))

    def _sealed(self, name: str, mark: bytes) -> bytes:
        return self._seal.encrypt(mark[:_NONCE], name.encode("utf-8", "surrogateescape"), mark)

    def _opened(self, sealed: bytes, mark: bytes) -> str:
        try:
            return self._seal.decrypt(mark[:_NONCE], sealed, mark).decode("utf-8", "surrogateescape")
        except (InvalidTag, ValueError, TypeError):
            raise Broken from None


@contextmanager
def open_store(path: Path, terms: Terms) -> Iterator[Store]:
    """Open the index at `path`, made if there is none. Raises as `open_database` does."""
    with open_database(path, terms.digest(b"lock")) as connection:
        yield Store(connection, terms)


def name_of(parts: Parts) -> str:
    """Return the name of a file in the index: its path beneath its folder."""
    return "/".join(parts)


def parts_of(name: str) -> Parts:
    """Return the path beneath its folder of the file that the index calls `name`."""
    return tuple(name.split("/")) if name else ()


def stamp_text(stamp: Stamp) -> str:
    """Return `stamp` as it is kept."""
    return " ".join(map(str, stamp))


def _on(statement: str, table: int) -> str:
    """Return `statement` for a table, whose name is a number of ours."""
    return statement.format(table=f"words_{table:d}")


def _rarity_in_table(rows: int, held: int) -> float:
    """Return what bm25() of FTS5 takes for the rarity of a word in a table."""
    found = log((rows - held + 0.5) / (held + 0.5))
    return found if found > 0 else 1e-6
