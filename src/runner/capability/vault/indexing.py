# SPDX-License-Identifier: Apache-2.0
"""Indexing: what changed in a granted folder, and only that, into the store.

Owns the comparison of a folder with the index, and reading what is new. A file whose size, times and inode
are as before is not opened; one that was opened is known by a digest of its bytes. Times are believed once
they are two seconds old, as Git does: a file can change twice within one tick of a clock. Leaves confinement
to `beneath`, cutting to `sections`, and every statement to `store`. Changes are made in steps, each whole: a
kill loses one. Carries P2.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final, TypeAlias

from runner.capability.documents.port import DocumentReader
from runner.capability.tools.beneath import Beneath
from runner.capability.tools.listing import Parts, Stamp
from runner.capability.vault.sections import MOST_SECTIONS, TOO_LONG, Section, read_contents
from runner.capability.vault.store import Known, Row, State, Store, name_of, stamp_text
from runner.capability.vault.words import Terms
from runner.kernel.errors import ToolError
from runner.kernel.ports import Root

STEP: Final = 200
STEP_SECTIONS: Final = 5000
"""Files, and sections of them, that are put in at once."""
FRESH_NS: Final = 2_000_000_000
"""Younger times are not believed."""

Tell: TypeAlias = Callable[[int, int], None]
"""Told how many files of how many were looked at, in one folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """What an update did, in files: `same` were not read again, `left` are still to be read.

    `unread` counts those that cannot be read, or not to their end, by our words for the reason. `not_whole`
    were read and have pages or attachments that could not be. `skipped` names were no regular files, and
    `cut` says that the folder holds more than is indexed.
    """

    new: int = 0
    changed: int = 0
    gone: int = 0
    same: int = 0
    left: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)
    not_whole: int = 0
    skipped: int = 0
    cut: bool = False

    def plus(self, other: "Updated") -> "Updated":
        """Return the two together."""
        return Updated(
            new=self.new + other.new,
            changed=self.changed + other.changed,
            gone=self.gone + other.gone,
            same=self.same + other.same,
            left=self.left + other.left,
            unread=Counter(self.unread) + Counter(other.unread),
            not_whole=self.not_whole + other.not_whole,
            skipped=self.skipped + other.skipped,
            cut=self.cut or other.cut,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """A file to look into, how it was when its folder was read, and what the index has of it."""

    parts: Parts = field(repr=False)
    stamp: str
    known: Known | None

    def is_as_before(self, state: State) -> bool:
        """Return whether what was read now is what the index has."""
        before = None if self.known is None else self.known.state
        return before is not None and (before.digest, before.problem) == (state.digest, state.problem)


_Done: TypeAlias = tuple[_Work, State, tuple[Section, ...]]


def update(
    store: Store,
    root: Root,
    beneath: Beneath,
    *,
    reader: DocumentReader | None,
    until: float | None,
    again: bool,
    tell: Tell | None,
) -> Updated:
    """Bring what `store` has of `root` up to date and say what was done; raise `ToolError`.

    No file is opened once `until` is past, by the monotonic clock in seconds (None: all are). `again` opens
    those too that could not be read last time. A folder's files share one run of `reader`, and with no other
    folder's.
    """
    started = time.time_ns()
    walk = beneath.walk()
    with store.one_change():
        table = store.table_of(root)
        known = store.known(table)
        found = [
            (store.mark(name_of(parts)), parts, stamp) for parts, stamp in zip(walk, walk.stamps, strict=True)
        ]
        gone = known.keys() - {mark for mark, _, _ in found}
        for mark in gone:
            store.drop(table, known[mark].id)
    work = [
        _Work(parts=parts, stamp=stamp_text(stamp) if is_old(stamp, started) else "", known=known.get(mark))
        for mark, parts, stamp in found
        if _is_due(known.get(mark), stamp, again=again)
    ]
    work.sort(key=lambda each: each.known is not None)  # what is new is never kept waiting
    counts: Counter[str] = Counter()
    with reader.many() if reader is not None else nullcontext() as many:
        for step in _steps(_read(beneath, each, store.terms, many) for each in _while_time(work, until)):
            counts += _put(store, table, step)
            if tell is not None:
                tell(len(found) - len(work) + counts.total(), len(found))
    tally = store.tally([table])
    return Updated(
        new=counts["new"],
        changed=counts["changed"],
        gone=len(gone),
        same=len(found) - len(work) + counts["same"],
        left=len(work) - counts.total(),
        unread=tally.unread,
        not_whole=tally.not_whole,
        skipped=walk.skipped,
        cut=walk.cut,
    )


def is_old(stamp: Stamp, now_ns: int) -> bool:
    """Return whether the times of `stamp` are old enough at `now_ns` to tell a change after them."""
    _, modified, changed, _ = stamp
    return max(modified, changed) < now_ns - FRESH_NS


def _is_due(known: Known | None, stamp: Stamp, *, again: bool) -> bool:
    return known is None or known.state.stamp != stamp_text(stamp) or (again and bool(known.state.problem))


def _while_time(work: Sequence[_Work], until: float | None) -> Iterator[_Work]:
    """Yield `work` in order, nothing more once `until` is past."""
    return takewhile(lambda _: until is None or time.monotonic() < until, work)


def _read(beneath: Beneath, work: _Work, terms: Terms, reader: DocumentReader | None) -> _Done:
    """Return how a file is now, and its sections; none when it is as it was, or cannot be read."""
    digest = b""
    try:
        data = beneath.data(work.parts)
        digest = terms.digest(data)
        whole = State(stamp=work.stamp, digest=digest)
        cut = replace(whole, problem=TOO_LONG)
        for state in (whole, cut):
            if work.is_as_before(state):
                return work, state, ()
        found = read_contents(data, name=work.parts[-1] if work.parts else "", reader=reader)
        state = whole if len(found.sections) <= MOST_SECTIONS else cut
        return work, replace(state, missing=found.missing), found.sections[:MOST_SECTIONS]
    except ToolError as problem:
        return work, State(stamp=work.stamp, digest=digest, problem=str(problem)), ()


def _steps(found: Iterable[_Done]) -> Iterator[Sequence[_Done]]:
    """Yield what was read in steps that memory holds."""
    step: list[_Done] = []
    sections = 0
    for each in found:
        step.append(each)
        sections += len(each[2])
        if len(step) >= STEP or sections >= STEP_SECTIONS:
            yield step
            step, sections = [], 0
    if step:
        yield step


def _put(store: Store, table: int, found: Sequence[_Done]) -> Counter[str]:
    """Put in what was read, as one change; return how many files were new, changed, or the same."""
    counts: Counter[str] = Counter()
    with store.one_change():
        for work, state, sections in found:
            if work.known is not None and work.is_as_before(state):
                store.restamp(work.known.id, state.stamp)
                counts["same"] += 1
                continue
            store.put(table, name_of(work.parts), state, tuple(_rows(store, sections)))
            counts["new" if work.known is None else "changed"] += 1
    return counts


def _rows(store: Store, sections: Sequence[Section]) -> Iterator[Row]:
    for number, section in enumerate(sections):
        words, parts = store.terms.row("\n".join(section.lines))
        if words:
            yield Row(section=number, words=words, parts=parts)
