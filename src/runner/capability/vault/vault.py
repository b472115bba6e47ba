# SPDX-License-Identifier: Apache-2.0
"""The vault: update and search, over one index file and one key.

Owns the joining of the parts, the key, and what happens to an index that is not whole: it is thrown away and
made again, never repaired. Leaves which folders there are to the caller: the grant says so, and with it the
class and the matter of what is found. Carries P2: a folder that is not among the roots of a call is not
looked into, whatever the index has of it.
"""

import fcntl
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from runner.capability.documents.port import DocumentReader
from runner.capability.documents.reader import FILE_BYTES
from runner.capability.files import read_regular
from runner.capability.tools.beneath import Beneath
from runner.capability.tools.listing import Limits, Parts
from runner.capability.tools.openers import Opener
from runner.capability.tools.paths import virtual
from runner.capability.transport.logstore import make_private_folder, replace_file
from runner.capability.vault.database import Broken, discard
from runner.capability.vault.indexing import Tell, Updated, update
from runner.capability.vault.searching import Found, search
from runner.capability.vault.sections import Section, read_contents
from runner.capability.vault.store import Store, open_store, parts_of
from runner.capability.vault.words import Terms
from runner.kernel.errors import ConfigError, Mistake, ToolError
from runner.kernel.ports import Entropy, Root

LIMITS: Final = Limits(file_bytes=FILE_BYTES, files=200_000, folders=50_000, names=200_000)
"""How much of a folder is indexed."""

_KEY_BYTES: Final = 32
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A file of the index that could not be read, and why, in our words.

    `partly` says that it was read, and `why` what of it could not be.
    """

    file: str = field(repr=False)
    why: str
    partly: bool = False


class Vault:
    """An index at `file` under the key at `key`, both made when they are first needed.

    `reader` reads what is no plain text; None leaves that unread. Safe to use from several threads and
    processes at once. Methods raise `ToolError`.
    """

    def __init__(
        self,
        *,
        file: Path,
        key: Path,
        entropy: Entropy,
        reader: DocumentReader | None = None,
        limits: Limits = LIMITS,
        opener: Opener | None = None,
    ) -> None:
        self._file = file
        self._key = key
        self._entropy = entropy
        self._reader = reader
        self._limits = limits
        self._opener = opener
        self._terms: Terms | None = None

    def update(
        self,
        roots: Sequence[Root],
        *,
        seconds: float | None = None,
        again: bool = False,
        tell: Tell | None = None,
    ) -> Updated:
        """Bring the index of `roots` up to date and say what was done; no file is opened after `seconds`.

        `again` opens those too that could not be read before. `tell` is called as a folder is gone through.
        """
        return self._with_store(lambda store: self._updated(store, roots, seconds, tell, again=again))

    def search(self, roots: Sequence[Root], query: str, limit: int) -> Found:
        """Return the best `limit` hits for `query` in what is indexed, each read from its file now."""
        return self._with_store(lambda store: self._searched(store, roots, query, limit))

    def find(self, roots: Sequence[Root], query: str, limit: int, *, seconds: float) -> tuple[Found, Updated]:
        """Update, then search; see both. A broken index is made anew before anything is found in it."""

        def work(store: Store) -> tuple[Found, Updated]:
            done = self._updated(store, roots, seconds, None, again=False)
            return self._searched(store, roots, query, limit), done

        return self._with_store(work)

    def unread(self, roots: Sequence[Root]) -> tuple[Unread, ...]:
        """Return which files of `roots` are in the index and could not be read, or not whole, and why."""

        def work(store: Store) -> tuple[Unread, ...]:
            return tuple(
                Unread(file=virtual(root, parts_of(name)), why=problem or missing, partly=not problem)
                for root, table in store.tables(roots).items()
                for name, problem, missing in store.unread(table)
            )

        return self._with_store(work)

    def _searched(self, store: Store, roots: Sequence[Root], query: str, limit: int) -> Found:
        """Search; files of two folders never share a run of the reader."""
        with ExitStack() as stack:
            reader = self._reader
            runs = {root: None if reader is None else stack.enter_context(reader.many()) for root in roots}

            def read(root: Root, parts: Parts) -> Sequence[Section]:
                data = self._beneath(root).data(parts)
                return read_contents(data, name=parts[-1] if parts else "", reader=runs[root]).sections

            return search(store, roots, query, limit, read)

    def _updated(
        self, store: Store, roots: Sequence[Root], seconds: float | None, tell: Tell | None, *, again: bool
    ) -> Updated:
        """Update each root; one that cannot be looked into is counted, and the others are."""
        until = None if seconds is None else time.monotonic() + seconds
        done = Updated()
        for root in roots:
            try:
                beneath = self._beneath(root)
                more = update(store, root, beneath, reader=self._reader, until=until, again=again, tell=tell)
            except ToolError as problem:
                more = Updated(unread={str(problem): 1}, skipped=1)
            done = done.plus(more)
        return done

    def check(self, roots: Sequence[Root]) -> None:
        """See that the index is whole, or begin it anew, and forget every folder that is none of `roots`."""

        def work(store: Store) -> None:
            store.check()
            with store.one_change():
                store.keep_only(roots)

        self._with_store(work)

    def _beneath(self, root: Root) -> Beneath:
        return Beneath(root, limits=self._limits, opener=self._opener)

    def _with_store(self, work: Callable[[Store], T]) -> T:
        """Do `work` on the index; on a new one when it is broken."""
        with suppress(Broken), open_store(self._file, self._find_terms()) as store:
            return work(store)
        try:
            discard(self._file)
            with open_store(self._file, self._find_terms()) as store:
                return work(store)
        except (Broken, OSError):
            raise ToolError(
                "the index of the vault cannot be made here. Fix: check the home directory"
            ) from None

    def _find_terms(self) -> Terms:
        """Return the terms under the key as it is now, which is made at first: who removed it meant it."""
        if not os.path.lexists(self._key):
            _make_key(self._key, self._entropy, lock=self._file.parent)
        key = _read_key(self._key)
        if self._terms is None or self._terms.key != key:
            self._terms = Terms(key)
        return self._terms


def _make_key(path: Path, entropy: Entropy, *, lock: Path) -> None:
    """Make the key, unless somebody did meanwhile: one at a time does it, by the folder `lock`."""
    try:
        make_private_folder(lock)
        make_private_folder(path.parent)
        handle = os.open(lock, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not os.path.lexists(path):
                replace_file(path, path.with_name(f"{path.name}.new"), entropy.token(_KEY_BYTES))
        finally:
            os.close(handle)
    except OSError:
        raise ToolError("the key of the vault cannot be made. Fix: check the home directory") from None


def _read_key(path: Path) -> bytes:
    """Return the key at `path`; raise `ToolError`."""
    try:
        key = read_regular(path, most=_KEY_BYTES, refuse=_refuse, private=True)
    except ConfigError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ToolError("the key of the vault is no private file of 32 bytes. Fix: remove it and index again")
    return key


def _refuse(why: str) -> ConfigError:
    return ConfigError([Mistake(file="index.key", line=0, where="", problem=why, fix="remove it")])
