# SPDX-License-Identifier: Apache-2.0
"""The database: the file of the index, its schema, and what is wrong with it.

Owns opening and making it: its owner's alone, no link, no second name. Trusts nothing in it: other bytes,
another form, another key, a trigger or a view make it `Broken`, and then the caller makes it anew. Written
ahead (WAL), so that a search never waits for an update. A commit that a crash took is simply made again.
"""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from runner.capability.transport.logstore import make_private_folder
from runner.kernel.errors import RunnerError, ToolError

VERSION: Final = 3
"""Of the schema, and of how words are made terms; a file of another one is made anew."""
BUSY_S: Final = 10.0
"""Seconds to wait for another process that writes."""

_SCHEMA: Final = """
    CREATE TABLE about (version INTEGER NOT NULL, lock BLOB NOT NULL);
    CREATE TABLE root (id INTEGER PRIMARY KEY, mark BLOB NOT NULL UNIQUE);
    CREATE TABLE file (
        id INTEGER PRIMARY KEY, root INTEGER NOT NULL, mark BLOB NOT NULL, name BLOB NOT NULL,
        stamp TEXT NOT NULL, digest BLOB NOT NULL, problem TEXT NOT NULL, missing TEXT NOT NULL,
        UNIQUE (root, mark)
    );
    CREATE INDEX file_problem ON file (root, problem, missing)
"""
_BUSY: Final = "another process is writing it. Fix: try again when that has ended"
_FAILED: Final = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_READONLY: "it cannot be written. Fix: correct its mode, or remove it",
    sqlite3.SQLITE_IOERR: "its disk fails. Fix: check the disk of the home directory",
    sqlite3.SQLITE_FULL: "its disk is full. Fix: make room in the home directory",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened. Fix: correct its mode, or remove it",
}
"""What is wrong with the machine and not with the file."""
_NO_FTS5: Final = (
    "Python's SQLite has no full-text index (FTS5), which the vault needs. Fix: use a Python whose SQLite "
    "has it, as those of Linux distributions have"
)


class Broken(RunnerError):
    """The file is no index that this program made under this key."""


@contextmanager
def open_database(path: Path, lock: bytes) -> Iterator[sqlite3.Connection]:
    """Open the database at `path`, made if there is none. `lock` is a digest that tells its key.

    Raises `Broken` or `ToolError`, and turns what goes wrong in the database meanwhile into one of the two.
    """
    try:
        _make_private(path)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_S)) as connection:
            _prepare(connection, lock)
            yield connection
    except sqlite3.Error as error:
        reason = _FAILED.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if reason is None:
            raise Broken from None
        raise ToolError(f"the index of the vault: {reason}") from None
    except OSError:
        raise ToolError("the index of the vault cannot be made. Fix: check the home directory") from None


@contextmanager
def one_change(connection: sqlite3.Connection) -> Iterator[None]:
    """Do what follows as one change, or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def discard(path: Path) -> None:
    """Remove the database at `path`, whatever it is, its log first, which is of no other; raise `OSError`."""
    for ending in ("-wal", "-shm", ""):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def why_no_index() -> str | None:
    """Return why this Python cannot index, with the fix; None if it can."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            need_fts5(connection)
        except ToolError as problem:
            return str(problem)
    return None


def need_fts5(connection: sqlite3.Connection) -> None:
    """Raise `ToolError` where SQLite was built without FTS5."""
    if not connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone():
        raise ToolError(_NO_FTS5)


def _make_private(path: Path) -> None:
    """Make an empty file at `path` for its owner only, or see that what is there is one; raise `ToolError`.

    A file that is there is not opened: closing it again would drop the locks that SQLite holds on it.
    """
    try:
        about = path.lstat()
    except FileNotFoundError:
        make_private_folder(path.parent)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        return
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or about.st_mode & 0o077:
        raise ToolError("the index of the vault is no private file. Fix: remove it; it is made again")


def _prepare(connection: sqlite3.Connection, lock: bytes) -> None:
    """See that the database is ours, of today's form and under this key; make it if it is empty."""
    need_fts5(connection)
    for pragma in ("trusted_schema = OFF", "journal_mode = WAL", "synchronous = NORMAL"):
        connection.execute(f"PRAGMA {pragma}")
    if not _names(connection):
        with one_change(connection):
            if not _names(connection):  # nobody was faster
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute("INSERT INTO about VALUES (?, ?)", (VERSION, lock))
    if connection.execute("SELECT version, lock FROM about").fetchall() != [(VERSION, lock)]:
        raise Broken
    if connection.execute("SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone():
        raise Broken


def _names(connection: sqlite3.Connection) -> bool:
    """Return whether the database holds anything."""
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
