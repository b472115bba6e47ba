# SPDX-License-Identifier: Apache-2.0
"""The practice's registers: whose names are a finding, and whose contacts are none.

Owns the finding of clients (exact, in either order, by initial, with one slip of the pen, by surname) and the
judgement of a register's lines. Leaves what calls a client by surname to `surnames`, contacts that are the
practice's own or public to `known`, reading files to `runner.capability.registers`, the order of the work to
`engine`.
Carries I6: a client's name is found though nobody labelled the text. A register that cannot be looked
for is a mistake of the profile, never skipped (I7). Time is linear in the text: a fixed number of
look-ups at each known word.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain, compress, count, permutations
from typing import Final, NamedTuple, TypeVar

from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed
from runner.perimeter.classify.contacts import CLIENT
from runner.perimeter.classify.known import Known
from runner.perimeter.classify.model import Span
from runner.perimeter.classify.surnames import ALONE, Alone, is_called, parts_of, spellings_of
from runner.perimeter.classify.views import Reading, fold
from runner.perimeter.classify.words import Starts, words_of

Words = tuple[bytes, ...]
_Key = TypeVar("_Key", Words, bytes, Alone)

_LONGEST: Final = 8
"""Words of a name that are looked at; further ones make it no more particular."""
_SHORTEST_ALONE: Final = 4
_SHORTEST_SLIP: Final = 4
"""Letters that a name of one word must have, and a word with a slip in it and the rest of its name."""
_LONG: Final = 5
"""Letters of a word of which one slip leaves the first two or the last two as they are."""
_SHORTEST_RUN: Final = 8
"""Letters of a name written as one word, such as the start of an address."""
_PERSON_WORDS: Final = range(2, 5)

_SKIPPED: Final = frozenset(
    b"di de del dello della dei degli delle da dal dalla e ed and of the la le lo il "
    b"srl srls spa snc sas sapa scarl onlus ltd llc llp plc inc gmbh ag sa sarl bv nv "
    b"a b c d e f g h i j k l m n o p q r s t u v w x y z".split()
)
"""Words that a name is written with or without: particles, legal forms, single letters."""
_ORGANISATIONS: Final = frozenset(
    b"srl srls spa snc sas sapa scarl onlus ltd llc llp plc inc gmbh ag sa sarl bv nv condominio studio "
    b"associazione fondazione cooperativa consorzio banca societa officine azienda impresa ditta istituto "
    b"comune parrocchia supercondominio company bank trust association foundation".split()
)
"""Words that make a name an organisation's: all of its words must then be there, and in order."""


_NONE: Final[dict[bytes, DataClass]] = {}


class _Name(NamedTuple):
    """A name found: its first and last word, how, of which class, and which word is an initial, if any.

    A part of a name counts only as the text writes it, `titled` ones only behind a title.
    """

    first: int
    last: int
    rule: str
    data_class: DataClass
    initial: int | None = None
    titled: bool = False


class _Text(NamedTuple):
    """The words of a part of a text that count: their places in it, and a one for each that is unknown."""

    places: Sequence[int]
    words: Words
    strange: bytes


def _text_of(words: Sequence[bytes], vocabulary: AbstractSet[bytes], stretch: range) -> _Text:
    places = [at for at in stretch if words[at] not in _SKIPPED]
    kept = tuple([words[at] for at in places])
    return _Text(places, kept, bytes([word not in vocabulary for word in kept]))


def _stretches(known: Sequence[int], before: int, after: int, size: int) -> Iterator[range]:
    """Yield the parts of a text of `size` words that lie near its `known` ones, none of them twice.

    A known word has so many `before` it in its part and so many `after` it; the text may end sooner.
    """
    start = end = known[0]
    for at in known:
        if at - before > end:
            yield range(max(0, start - before), end)
            start = at
        end = min(size, at + after + 1)
    yield range(max(0, start - before), end)


class Clients:
    """The client register, made ready. Immutable."""

    __slots__ = (
        "_alone",
        "_exact",
        "_initials",
        "_longest",
        "_persons",
        "_several",
        "_sizes",
        "_slips",
        "_vocabulary",
    )

    def __init__(self, register: Sequence[Listed]) -> None:
        self._exact: dict[Words, DataClass] = {}
        self._alone: dict[bytes, dict[Alone, DataClass]] = {}
        self._initials: dict[Words, DataClass] = {}
        self._persons: set[Words] = set()
        self._slips: dict[Words, dict[bytes, dict[bytes, DataClass]]] = {}
        """For a name with one word left open, by how that word begins, and how it ends: which are meant."""
        for listed in register:
            for name in sorted(set().union(*map(spellings_of, listed.names))):
                self._learn(name, listed.data_class)
                if listed.by_surname and is_person(name):
                    for part in parts_of(fold(name).data):
                        _raise(self._alone.setdefault(part.words[-1], {}), part, listed.data_class)
        self._sizes = sorted({len(words) for words in self._exact})
        self._several = [size for size in self._sizes if size > 1]
        self._longest = max(self._sizes, default=0)
        self._vocabulary = frozenset(word for words in self._exact for word in words) | self._alone.keys()

    def __bool__(self) -> bool:
        """Say whether there is any client."""
        return bool(self._vocabulary)

    def _learn(self, name: str, data_class: DataClass) -> None:
        words = _particular(words_of(fold(name).data))
        person = is_person(name)
        for spelling in permutations(words, 2) if person else [words[:_LONGEST]]:
            _raise(self._exact, spelling, data_class)
            if len(run := b"".join(spelling)) >= _SHORTEST_RUN:
                _raise(self._exact, (run,), data_class)
            if person:
                self._persons.add(spelling)
                _raise(self._initials, (spelling[0][:1], spelling[1]), data_class)
            for index in range(len(spelling) if len(spelling) > 1 else 0):
                meant = spelling[index]
                if sum(map(len, spelling)) - len(meant) >= _SHORTEST_SLIP:
                    ends = self._slips.setdefault(_open(spelling, index), {})
                    for end in _ends(meant, _left(meant)):
                        _raise(ends.setdefault(end, {}), meant, data_class)

    def find(self, reading: Reading) -> Iterator[Span]:
        """Yield where a client is named in `reading`."""
        if all(map(self._vocabulary.isdisjoint, reading.words_in_parts())):
            return
        data, words = reading.data, reading.words
        names = self._names(words)
        first = next(names, None)
        if first is None:
            return
        starts = Starts(data, words)
        for each in _without_covered(_as_written(chain((first,), names), words, data, starts)):
            start, end = starts[each.first], starts[each.last] + len(words[each.last])
            if reading.counts(start, end):
                place = reading.original_span(start, end)
                yield Span(*place, CLIENT, each.rule, each.data_class, reading.view)

    def _names(self, words: Sequence[bytes]) -> Iterator[_Name]:
        """Yield the names in `words`, some of them known. Only what stands near those is looked at."""
        known = list(compress(count(), map(self._vocabulary.__contains__, words)))
        for stretch in _stretches(known, 2, 2 * self._longest, len(words)):
            text = _text_of(words, self._vocabulary, stretch)
            for here, at in enumerate(text.places):
                if not text.strange[here]:
                    yield from self._names_at(words, text, here, at)

    def _names_at(self, words: Sequence[bytes], text: "_Text", here: int, at: int) -> Iterator[_Name]:
        """Yield the names of which the word that counts `here`, word `at` of all, is the first known one."""
        places, exact = text.places, self._exact
        end = bisect_left(places, at + 2 * self._longest + 1, here)
        for size in self._sizes:
            if here + size <= end and (window := text.words[here : here + size]) in exact:
                yield _Name(at, places[here + size - 1], "client-register", exact[window])
        begin = here - (here > 0 and places[here - 1] >= at - 2)
        if text.strange.find(1, begin, end) >= 0:
            yield from self._slips_at(text, here, begin, end)
        if here + 2 < end and (around := (words[at], text.words[here + 2])) in self._persons:
            yield _Name(at, places[here + 2], "client-register", exact[around])
        yield from self._initials_at(words, at)
        yield from self._parts_at(words, at)

    def _slips_at(self, text: "_Text", here: int, begin: int, end: int) -> Iterator[_Name]:
        """Yield the names of two words or more with a slip, from word `begin` or `here` on, up to `end`."""
        for size in self._several:
            for start in range(begin, min(here, end - size) + 1):
                if text.strange.count(1, start, start + size) == 1:
                    strange = text.strange.index(1, start)
                    if start in (here, strange) and len(text.words[strange]) >= _SHORTEST_SLIP:
                        first, last = text.places[start], text.places[start + size - 1]
                        for data_class in self._slipped(text.words[start : start + size], strange - start):
                            yield _Name(first, last, "client-register-slip", data_class)

    def _slipped(self, window: Words, strange: int) -> Collection[DataClass]:
        """Return the class of each name that `window` is but for word `strange`, the only unknown one."""
        word, meant = window[strange], self._slips.get(_open(window, strange))
        if meant is None:
            return ()
        ends = _ends(word, 2) if len(word) > _LONG else (*_ends(word, 1), *_ends(word, 2))
        return {
            original: data_class
            for end in ends
            for original, data_class in meant.get(end, _NONE).items()
            if one_slip(word, original)
        }.values()

    def _initials_at(self, words: Sequence[bytes], at: int) -> Iterator[_Name]:
        """Yield what may be `M. Rossi` or `Rossi M.` around word `at`: the text itself says whether it is."""
        for beside in (at - 1, at + 1):
            if 0 <= beside < len(words) and len(words[beside]) == 1:
                data_class = self._initials.get((words[beside], words[at]))
                if data_class is not None:
                    first, last = sorted((at, beside))
                    yield _Name(first, last, "client-register-initial", data_class, beside)

    def _parts_at(self, words: Sequence[bytes], at: int) -> Iterator[_Name]:
        """Yield the parts of names that end with word `at`: the text says whether they call somebody."""
        for part, data_class in self._alone.get(words[at], _NO_PARTS).items():
            first = at + 1 - len(part.words)
            if first >= 0 and tuple(words[first : at + 1]) == part.words:
                yield _Name(first, at, ALONE, data_class, titled=part.titled)


_NO_PARTS: Final[dict[Alone, DataClass]] = {}


def _as_written(
    names: Iterable[_Name], words: Sequence[bytes], data: bytes, starts: Starts
) -> Iterator[_Name]:
    """Yield `names` but for those that `data`, whose `words` are at `starts`, writes as none."""
    for each in names:
        if each.rule == ALONE:
            end = starts[each.last] + len(words[each.last])
            if is_called(data, starts[each.first], end, titled=each.titled):
                yield each
        elif each.initial is None or _is_initial(data, starts[each.initial]):
            yield each


def _without_covered(names: Iterable[_Name]) -> Iterator[_Name]:
    """Yield `names` but for each whose words all stand in the one before and the one after it, of its kind.

    What runs on, as in `Ada Abate Ada Abate`, is a name at each word: every other one of them says it all.
    """
    kinds: dict[str, list[_Name]] = {}
    for name in names:
        kept = kinds.setdefault(name.rule, [])
        if len(kept) > 1 and _covered(kept[0], kept[1], name):
            kept.pop()
        elif len(kept) > 1:
            yield kept.pop(0)
        kept.append(name)
    yield from chain.from_iterable(kinds.values())


def _covered(before: _Name, name: _Name, after: _Name) -> bool:
    """Say whether `before` and `after`, of its class, begin and end beyond `name` and leave no word out."""
    around = before.first < name.first and name.last < after.last and after.first <= before.last + 1
    return around and before.data_class == name.data_class == after.data_class


def _is_initial(data: bytes, start: int) -> bool:
    """Say whether the letter at `start` is a capital with a full stop behind it."""
    return data[start : start + 1].isupper() and data[start + 1 : start + 2] == b"."


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers:
    """The three registers of a practice, made ready, and a digest that changes with any line of them."""

    clients: Clients = field(default_factory=lambda: Clients(()))
    known: Known = field(default_factory=lambda: Known(()))
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
        known=Known((*own, *public)),
        digest=_digest(clients, own, public, key),
    )


def _digest(clients: Sequence[Listed], own: Sequence[Listed], public: Sequence[Listed], key: bytes) -> str:
    if not (clients or own or public):
        return ""
    digest = hashlib.blake2b(key=key, digest_size=6)
    for register in (clients, own, public):
        digest.update(b"\x1d")
        for listed in register:
            names = "\x1f".join((listed.data_class.name, str(listed.by_surname), *listed.names))
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
    of_a_firm = not _ORGANISATIONS.isdisjoint([*words, *words_of(fold(name.replace(".", "")).data)])
    return letters and len(_particular(words)) in _PERSON_WORDS and not of_a_firm


def _particular(words: Sequence[bytes]) -> Words:
    """Return those of `words` that tell one name from another."""
    return tuple(word for word in words if word not in _SKIPPED)


def _open(spelling: Words, index: int) -> Words:
    """Return `spelling` with word `index` left open."""
    return (*spelling[:index], b"", *spelling[index + 1 :])


def _ends(word: bytes, left: int) -> tuple[bytes, bytes]:
    """Return what tells `word` by its first `left` letters, and what by its last.

    One slip changes one of the two at most, so the word meant is found under one of them.
    """
    return b"^" + word[:left], b"$" + word[-left:]


def _left(word: bytes) -> int:
    """Return how many letters of `word` are looked at on either side, such that no one slip reaches both."""
    return 2 if len(word) >= _LONG else 1


def one_slip(one: bytes, other: bytes) -> bool:
    """Say whether one letter was left out, added, replaced, or two neighbours were swapped."""
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    if len(longer) - len(shorter) > 1 or one == other:
        return False
    head = 0
    while head < len(shorter) and one[head] == other[head]:
        head += 1
    if len(longer) > len(shorter):
        return longer[head + 1 :] == shorter[head:]
    swapped = one[head : head + 2] == other[head : head + 2][::-1]
    return one[head + 1 + swapped :] == other[head + 1 + swapped :]


def _raise(table: dict[_Key, DataClass], key: _Key, found: DataClass) -> None:
    """Put `found` under `key` unless a higher class stands there."""
    table[key] = max(table.get(key, found), found)
