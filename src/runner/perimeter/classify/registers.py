# SPDX-License-Identifier: Apache-2.0
"""The practice's registers: whose names are a finding, and whose contacts are none.

Owns the finding of clients (exact, in either order, by initial, with one slip of the pen), the contacts
that are the practice's own or public, and the judgement of a register's lines. Leaves reading files to
`runner.capability.registers` and the order of the work to `engine`.
Carries I6: a client's name is found though nobody labelled the text. A register that cannot be looked
for is a mistake of the profile, never skipped (I7). Time is linear in the text: a fixed number of
look-ups at each known word.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Final, TypeVar

from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed
from runner.perimeter.classify.views import fold
from runner.perimeter.classify.words import places_of, words_of

Words = tuple[bytes, ...]
_Key = TypeVar("_Key", Words, bytes)

_LONGEST: Final = 8
"""Words of a name that are looked at; further ones make it no more particular."""
_SHORTEST_ALONE: Final = 4
_SHORTEST_SLIP: Final = 4
"""Letters that a name of one word, and a word with a slip in it, must have."""
_SHORTEST_RUN: Final = 8
"""Letters of a name written as one word, such as the start of an address."""
_PERSON_WORDS: Final = range(2, 5)

_SKIPPED: Final = frozenset(
    b"di de del dello della dei degli delle da dal dalla e ed and of the la le lo il "
    b"srl srls spa snc sas sapa scarl onlus ltd llc llp plc inc gmbh ag sa sarl bv nv".split()
)
"""Words that a name is written with or without: particles and legal forms."""
_ORGANISATIONS: Final = frozenset(
    b"srl srls spa snc sas sapa scarl onlus ltd llc llp plc inc gmbh ag sa sarl bv nv condominio studio "
    b"associazione fondazione cooperativa consorzio banca societa officine azienda impresa ditta istituto "
    b"comune parrocchia supercondominio company bank trust association foundation".split()
)
"""Words that make a name an organisation's: all of its words must then be there, and in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A client's name in a folded text: a half-open range of its bytes, and how it was recognised."""

    start: int
    end: int
    rule: str
    data_class: DataClass


class Clients:
    """The client register, made ready. Immutable."""

    __slots__ = ("_exact", "_initials", "_sizes", "_slips", "_vocabulary")

    def __init__(self, register: Sequence[Listed]) -> None:
        self._exact: dict[Words, DataClass] = {}
        self._initials: dict[Words, DataClass] = {}
        self._slips: dict[Words, dict[bytes, DataClass]] = {}
        for listed in register:
            for name in listed.names:
                self._learn(name, listed.data_class)
        self._sizes = sorted({len(words) for words in self._exact})
        self._vocabulary = frozenset(word for words in self._exact for word in words)

    def _learn(self, name: str, data_class: DataClass) -> None:
        words = _particular(words_of(fold(name).data))
        person = is_person(name)
        for spelling in permutations(words, 2) if person else [words[:_LONGEST]]:
            _raise(self._exact, spelling, data_class)
            if len(run := b"".join(spelling)) >= _SHORTEST_RUN:
                _raise(self._exact, (run,), data_class)
            if person:
                _raise(self._initials, (spelling[0][:1], spelling[1]), data_class)
            for index in range(len(spelling) if len(spelling) > 1 else 0):
                for hole in _holes(spelling, index):
                    _raise(self._slips.setdefault(hole, {}), spelling[index], data_class)

    def find(self, data: bytes, words: Sequence[bytes]) -> Iterator[Mention]:
        """Yield the mentions in `data`, a folded text, whose words are `words`."""
        if self._vocabulary.isdisjoint(words):
            return
        places = places_of(data, words)
        kept = [index for index, word in enumerate(words) if word not in _SKIPPED and _weighs(word)]
        texts = [words[index] for index in kept]
        known = [word in self._vocabulary for word in texts]
        for at, is_known in enumerate(known):
            if not is_known:
                continue
            for first, last, rule, data_class in self._names_at(texts, known, at):
                start, end = places[kept[first]][0], places[kept[last]][1]
                yield Mention(start=start, end=end, rule=rule, data_class=data_class)
            yield from self._initial_beside(data, words, places, kept[at])

    def _names_at(
        self, texts: Sequence[bytes], known: Sequence[bool], at: int
    ) -> Iterator[tuple[int, int, str, DataClass]]:
        """Yield first word, last word, rule and class of the names of which word `at` is the first known."""
        for size in self._sizes:
            found = self._exact.get(tuple(texts[at : at + size]))
            if found is not None:
                yield at, at + size - 1, "client-register", found
            for start in range(max(at - 1, 0), at + 1) if size > 1 else ():
                window = tuple(texts[start : start + size])
                strange = [index for index in range(len(window)) if not known[start + index]]
                first = start if known[start] else start + 1
                if len(window) == size and len(strange) == 1 and first == at:
                    yield from self._slipped(window, strange[0], start)
        found = self._exact.get((texts[at], *texts[at + 2 : at + 3]))
        if found is not None and at + 2 < len(texts):
            yield at, at + 2, "client-register", found

    def _slipped(self, window: Words, index: int, start: int) -> Iterator[tuple[int, int, str, DataClass]]:
        word = window[index]
        if len(word) < _SHORTEST_SLIP:
            return
        meant = {
            original: data_class
            for hole in _holes(window, index)
            for original, data_class in self._slips.get(hole, {}).items()
        }
        for original, data_class in meant.items():
            if one_slip(word, original):
                yield start, start + len(window) - 1, "client-register-slip", data_class

    def _initial_beside(
        self, data: bytes, words: Sequence[bytes], places: Sequence[tuple[int, int]], at: int
    ) -> Iterator[Mention]:
        """Yield `M. Rossi` and `Rossi M.`: a capital letter and a full stop beside word `at`."""
        for beside in (at - 1, at + 1):
            if not 0 <= beside < len(words) or len(words[beside]) != 1:
                continue
            start, end = places[beside]
            found = self._initials.get((words[beside], words[at]))
            if found is not None and data[start:end].isupper() and data[end : end + 1] == b".":
                first, last = min(start, places[at][0]), max(end, places[at][1])
                yield Mention(start=first, end=last, rule="client-register-initial", data_class=found)


class Known:
    """Contacts that are nobody's secret: the practice's own, or a public office's. Immutable.

    A name or an address counts where it is written word for word; a number or an address of mail in any
    grouping; an entry that starts with `@` stands for every address of that domain.
    """

    __slots__ = ("_domains", "_starts", "_values")

    def __init__(self, register: Sequence[Listed]) -> None:
        names = [name for listed in register for name in listed.names]
        self._domains = tuple(name.strip().lower() for name in names if name.strip().startswith("@"))
        self._values = frozenset(_value(name) for name in names)
        self._starts: dict[bytes, set[Words]] = {}
        for words in filter(None, (tuple(words_of(fold(name).data)) for name in names)):
            for size in range(1, len(words)):
                self._starts.setdefault(words[0], set()).add(words[:size])
            self._starts.setdefault(words[0], set()).add((*words, b""))

    def ranges(self, data: bytes, words: Sequence[bytes]) -> "Ranges":
        """Return where entries of the register stand in `data`, a folded text, whose words are `words`."""
        if self._starts.keys().isdisjoint(words):
            return Ranges()
        places = places_of(data, words)
        found = [
            (places[at][0], places[at + size - 1][1])
            for at, word in enumerate(words)
            if word in self._starts and (size := self._longest(words, at))
        ]
        return Ranges(found)

    def _longest(self, words: Sequence[bytes], at: int) -> int:
        """Return how many words the longest entry that starts at word `at` has; 0 for none."""
        starts, longest, size = self._starts[words[at]], 0, 1
        while at + size <= len(words):
            seen = tuple(words[at : at + size])
            longest = size if (*seen, b"") in starts else longest
            if seen not in starts:
                break
            size += 1
        return longest

    def holds(self, text: str) -> bool:
        """Say whether `text`, something that was found, is an entry in another grouping, or of its domain."""
        value = _value(text)
        return value in self._values or text.strip().lower().endswith(self._domains)


class Ranges:
    """Half-open ranges of one text, to be asked whether another lies inside one of them."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, found: Sequence[tuple[int, int]] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(found):
            if not self._ends or end > self._ends[-1]:
                self._starts.append(start)
                self._ends.append(end)

    def cover(self, start: int, end: int) -> bool:
        """Say whether some range holds all of `start` to `end`."""
        index = bisect_right(self._starts, start) - 1
        return index >= 0 and end <= self._ends[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers:
    """The three registers of a practice, made ready, and a digest that changes with any line of them."""

    clients: Clients = field(default_factory=lambda: Clients(()))
    own: Known = field(default_factory=lambda: Known(()))
    public: Known = field(default_factory=lambda: Known(()))
    digest: str = ""


def compile_registers(
    *, clients: Sequence[Listed], own: Sequence[Listed], public: Sequence[Listed], key: bytes
) -> Registers:
    """Return the registers made ready.

    The digest is keyed with `key` (a secret of this runtime, 16 to 64 bytes): it stands in the record,
    and an unkeyed one would let its reader confirm a guess about who is a client (I12).
    Raises `ConfigError` with every line whose names cannot be looked for.
    """
    mistakes = [_mistake(listed) for listed in clients if not all(map(_can_be_sought, listed.names))]
    mistakes += [_mistake(listed) for listed in (*own, *public) if not all(map(_is_particular, listed.names))]
    if mistakes:
        raise ConfigError(mistakes)
    return Registers(
        clients=Clients(clients),
        own=Known(own),
        public=Known(public),
        digest=_digest(clients, own, public, key),
    )


def _digest(clients: Sequence[Listed], own: Sequence[Listed], public: Sequence[Listed], key: bytes) -> str:
    if not (clients or own or public):
        return ""
    digest = hashlib.blake2b(key=key, digest_size=6)
    for register in (clients, own, public):
        digest.update(b"\x1d")
        for listed in register:
            names = "\x1f".join((listed.data_class.name, *listed.names))
            digest.update(names.encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()


def _mistake(listed: Listed) -> Mistake:
    return Mistake(
        file=listed.file,
        line=listed.line,
        where="",
        problem="a name here is too short or too common to be looked for",
        fix="write the whole name: two words, or one of at least four letters",
    )


def _can_be_sought(name: str) -> bool:
    words = _particular(words_of(fold(name).data))
    return len(words) > 1 or (len(words) == 1 and len(words[0]) >= _SHORTEST_ALONE)


def _is_particular(name: str) -> bool:
    """Say whether `name` may be counted as known: a surname alone may not, it is other people's too."""
    words = words_of(fold(name).data)
    return len(words) > 1 or (len(words) == 1 and any(map(str.isdigit, name)) and len(words[0]) > 1)


def is_person(name: str) -> bool:
    """Say whether `name` reads as a natural person's: two to four words, no digit, no word of a firm's."""
    words = words_of(fold(name).data)
    letters = all(word.isalpha() for word in words) and "@" not in name and "&" not in name
    return letters and len(_particular(words)) in _PERSON_WORDS and _ORGANISATIONS.isdisjoint(words)


def _particular(words: Sequence[bytes]) -> Words:
    return tuple(word for word in words if word not in _SKIPPED and _weighs(word))


def _weighs(word: bytes) -> bool:
    return len(word) > 1 or word.isdigit()


def _holes(spelling: Words, index: int) -> tuple[Words, Words]:
    """Return `spelling` with word `index` left open but for its first letter, and but for its last.

    One slip changes one of the two at most, so the word meant is found under one of them.
    """
    before, word, after = spelling[:index], spelling[index], spelling[index + 1 :]
    return (*before, b"^" + word[:1], *after), (*before, b"$" + word[-1:], *after)


def one_slip(one: bytes, other: bytes) -> bool:
    """Say whether one letter was left out, added, replaced, or two neighbours were swapped."""
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    size = min(len(one), len(other))
    head = next((index for index in range(size) if one[index] != other[index]), size)
    if len(one) == len(other):
        swapped = one[:head] + one[head : head + 2][::-1] + one[head + 2 :]
        return one[head + 1 :] == other[head + 1 :] or swapped == other
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer[head + 1 :] == shorter[head:]


def _value(text: str) -> bytes:
    """Return the letters and digits of `text` in lower case; a telephone without the country's prefix."""
    plain = b"".join(words_of(fold(text).data))
    return plain.removeprefix(b"0039").removeprefix(b"39") if plain.isdigit() else plain


def _raise(table: dict[_Key, DataClass], key: _Key, found: DataClass) -> None:
    """Put `found` under `key` unless a higher class stands there."""
    table[key] = max(table.get(key, found), found)
