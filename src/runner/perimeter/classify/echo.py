# SPDX-License-Identifier: Apache-2.0
"""Echoes: text that repeats a labelled source takes its class, whoever typed it.

Owns the fingerprints of what was read: every six words in a row, hashed with a key of this runtime. Leaves
saying which sources are labelled, and how, to the perimeter.

A text is first asked for probes, every four words in a row of what was read, at each third of its words: six
words in a row hold one of those wherever they begin. Only where one is known are all fingerprints made, so
that a text which repeats nothing costs a third.
Carries I6 where no rule can: a passage of a C3 letter without a name in it is C3 when it is pasted into
another task. Eight words in a row are an echo, or two pieces of seven, or three of six; fewer, or reworded,
are not.
Common formulas of letters and the practice's own letterhead are no echo of anything.

The index lives in memory and is never written. It holds numbers only. It is bounded: beyond its capacity
the oldest sources are forgotten first.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify.formulas import FORMULAS
from runner.perimeter.classify.readings import every_reading
from runner.perimeter.classify.registers import Registers
from runner.perimeter.classify.views import Reading, fold

_SIZE: Final = 6
"""Words in one fingerprint."""
_PROBE: Final = 4
"""Words in one probe."""
_STEP: Final = _SIZE - _PROBE + 1
"""Probes in one fingerprint: with every so many-th of a text looked for, no fingerprint of it is missed."""
_HITS: Final = 3
"""Fingerprints that make an echo: three of six words overlap to eight words in a row, or stand apart."""
CAPACITY: Final = 200_000
"""Fingerprints kept, about one for each word read: some 400 pages, and about 40 MB."""


class EchoIndex:
    """The fingerprints of the labelled sources of one runtime. Safe to share between threads.

    Arguments: `key`, a secret of this runtime (16 bytes or more); `registers`, whose own and public entries
    are left out of every comparison; `capacity`, in fingerprints; `ours`, what the runner says itself in
    every request, so that a document that quotes it cannot shut the way out for everything.
    """

    __slots__ = (
        "_asked",
        "_asked_last",
        "_common",
        "_key",
        "_new",
        "_new_probes",
        "_old",
        "_old_probes",
        "_registers",
        "_room",
        "_room_asked",
        "version",
    )

    def __init__(
        self,
        key: bytes,
        *,
        registers: Registers | None = None,
        capacity: int = CAPACITY,
        ours: Iterable[str] = (),
    ) -> None:
        self._key = key
        self._registers = Registers() if registers is None else registers
        self._room = max(1, capacity // 2)
        self._new: dict[int, DataClass] = {}
        self._old: dict[int, DataClass] = {}
        self._new_probes: set[int] = set()
        self._old_probes: set[int] = set()
        self._asked: set[int] = set()
        self._asked_last: dict[int, list[int]] = {}
        """What was asked since. It goes once it is among the rest: two who remember at a time miss none."""
        self._room_asked = CAPACITY
        self.version = object()
        """Another object whenever an answer given before may have changed: a key for remembering answers."""
        self._common = frozenset(
            mark for formula in (*FORMULAS, *ours) for mark in self._marks(self._words(fold(formula)))
        )

    def __repr__(self) -> str:
        """Return the number of fingerprints only."""
        return f"<EchoIndex {len(self._new) + len(self._old)}>"

    def remember(self, text: str, data_class: DataClass) -> None:
        """Take the fingerprints of `text`, a source of class `data_class`; below C2 nothing is kept."""
        if data_class < DataClass.C2:
            return
        first, raised = not self._new and not self._old, set[int]()
        for mark, probes in self._marks_with_probes(self._words(fold(text))):
            known = max(self._new.get(mark, DataClass.C0), self._old.get(mark, DataClass.C0))
            if known < data_class:
                raised.update(probes)
            self._new_probes.update(probes)
            self._new[mark] = max(known, data_class)
            if len(self._new) >= self._room:
                self._old, self._new = self._new, {}
                self._old_probes, self._new_probes = self._new_probes, set()
                self._forget_answers()
        for place, asked in tuple(self._asked_last.items()):
            self._asked.update(asked)
            self._asked_last.pop(place, None)
        if first or not self._asked.isdisjoint(raised):
            self._forget_answers()

    def class_of(self, text: str) -> DataClass:
        """Return the class of the sources that `text` repeats, in any reading of it; C0 for none.

        Time is linear in the length of `text`. Raises nothing for any `str`.
        """
        if not self._new and not self._old:
            return DataClass.C0
        return max(self._echoed(reading) for reading in every_reading(text))

    def _echoed(self, reading: Reading) -> DataClass:
        """Return the class that `reading` repeats: of three fingerprints or more, that of the third highest.

        Every fingerprint is looked for, once a probe says that there may be one: pieces of six or seven words
        can stand anywhere. Before that the probes are noted as asked about: what is remembered meanwhile
        finds them.
        """
        known = {self._note(list(probes)) for probes in self._in_parts(reading, _PROBE, _STEP)}
        if True not in known:
            return DataClass.C0
        new, old = self._new, self._old
        every = chain.from_iterable(self._in_parts(reading, _SIZE, 1))
        marks = {mark for mark in every if mark in new or mark in old}
        classes = sorted(max(new.get(mark, DataClass.C0), old.get(mark, DataClass.C0)) for mark in marks)
        return classes[-_HITS] if len(classes) >= _HITS else DataClass.C0

    def _in_parts(self, reading: Reading, size: int, step: int) -> Iterator[Iterator[int]]:
        """Yield the hashes of each `size` words in a row at every `step`-th of `reading`, part by part."""
        rest: list[bytes] = []
        for part in self._registers.known.without(reading):
            words = rest + part if rest else part
            yield self._hashes(words, size, step)
            rest = words[max(0, (len(words) - size) // step + 1) * step :]

    def _note(self, probes: list[int]) -> bool:
        """Say whether one of `probes` is known, and keep that they were asked about, for `remember`.

        Many texts are asked about for each that is read.
        """
        if len(probes) > self._room_asked:
            self._forget_answers()
        self._room_asked -= len(probes)
        self._asked_last[id(probes)] = probes
        return not (self._new_probes.isdisjoint(probes) and self._old_probes.isdisjoint(probes))

    def _forget_answers(self) -> None:
        """Let no answer count that was given before; the fingerprints go first, or one might be lost."""
        self._asked = set()
        self._asked_last.clear()
        self._room_asked = CAPACITY
        self.version = object()

    def _words(self, reading: Reading) -> list[bytes]:
        """Return the words of `reading` without those of entries of the own and public registers."""
        return list(chain.from_iterable(self._registers.known.without(reading)))

    def _marks(self, words: Sequence[bytes]) -> Iterator[int]:
        """Return the fingerprints of `words`, in order."""
        return self._hashes(words, _SIZE, 1)

    def _marks_with_probes(self, words: Sequence[bytes]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield each fingerprint of `words` that is no formula's, once, with the probes in it."""
        probes = list(self._hashes(words, _PROBE, 1))
        inside = zip(*(probes[start:] for start in range(_STEP)), strict=False)
        marks = dict(zip(self._marks(words), inside, strict=True))
        return ((mark, probes) for mark, probes in marks.items() if mark not in self._common)

    def _hashes(self, words: Sequence[bytes], size: int, step: int) -> Iterator[int]:
        """Return a hash of each `size` words in a row that begin at every `step`-th of `words`.

        Python hashes bytes with SipHash under a key of the process; the key of the runtime comes on top.
        """
        columns = (words[start::step] for start in range(size))
        return map(hash, zip(repeat(self._key), *columns, strict=False))
