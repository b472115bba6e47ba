# SPDX-License-Identifier: Apache-2.0
"""Redaction: what may not leave goes out as a token, and comes back as what it was.

Owns the map of one task, the tokens and their restoring. Leaves finding to the classifier and `places.py`,
whole requests to `rewrite.py`, and the last word to `Perimeter.release()`, which judges the new bytes again.
Carries I6 and I8: a value keeps its class whatever stands for it. Carries I12: the map lives in this object,
ends with its task, and shows in no repr and no record. (A map at rest, encrypted, may come later.)
"""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from runner.kernel.errors import PerimeterError
from runner.kernel.labels import DataClass
from runner.kernel.messages import Json
from runner.kernel.ports import Classifier, Hit
from runner.perimeter.classify import classify_text
from runner.perimeter.finding import ask_classifier
from runner.perimeter.places import Known, Stretch, Values, level, merged

LITERAL: Final = "literal"
"""The kind of a stretch that already looked like a token: it is replaced too, so that it comes back as is."""

_LETTERS: Final = "bcdfghjkmnpqrstvwxz"
"""No vowels, so no words; no digits, so no number for a detector to stumble on."""
_SIZE: Final = 6
_KIND: Final = 40
TOKEN: Final = re.compile(rf"\[[A-Z][A-Z0-9_]{{0,{_KIND}}}_[{_LETTERS}]{{{_SIZE}}}\]")
"""The shape of a token. Bounded, so that matching is linear."""
_OPEN: Final = re.compile(rf"\[(?:[A-Z][A-Z0-9_]{{0,{_KIND + 1}}}[{_LETTERS}]{{0,{_SIZE}}})?")
"""The beginning of something that may become a token."""
_TRIES: Final = 64


class Unredactable(PerimeterError):
    """What was found cannot be removed: it lies inside an encoding, or no token is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the map: `token` stands for `value`, found as `kind` and judged `data_class`."""

    token: str
    value: str = field(repr=False)
    kind: str
    data_class: DataClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Where an entry was put: code points `start` to `end` of the original text."""

    start: int
    end: int
    entry: Entry


class Redactor:
    """The map of one task: one matter, one user. Safe to use from several threads.

    Argument: `mint` returns random hexadecimal digits (32 of them), from which tokens are made. The same
    value has the same token in one redactor, and two redactors share none but by chance. By itself:

        redactor = Redactor(lambda: secrets.token_hex(16))
        safe = redactor.redact("The client's fiscal code is RSSMRA80A01H501U.")
        answer = redactor.restore(ask_somebody(safe))

    Detectors miss things, so what `redact` returns is, in general, still personal data. Inside a runtime
    nothing else is needed: with `perimeter.redaction: on` every request passes here, and is judged after.
    """

    __slots__ = ("_entries", "_known", "_lock", "_mint", "_own", "_sent", "_taken", "_values")

    def __init__(self, mint: Callable[[], str]) -> None:
        self._mint = mint
        self._lock = threading.Lock()
        self._known: dict[str, Known] = {}
        self._values: dict[DataClass, Values] = {}  # those of `_known` above a class, made when needed
        self._entries: dict[str, Entry] = {}  # by value, with one space for white space
        self._own: dict[str, Entry] = {}  # by token
        self._taken: set[str] = set()  # every token, and everything seen that looks like one
        self._sent: dict[str, Entry] = {}  # by token

    def __repr__(self) -> str:
        """Return the number of entries only."""
        return f"<Redactor entries={len(self._entries)} sent={len(self._sent)}>"

    def learn(self, text: str, hits: Iterable[Hit]) -> None:
        """Remember what `hits` found in `text`: from now on it is removed wherever it stands."""
        with self._lock:
            self._learn(text, hits)

    def redact(
        self, text: str, *, above: DataClass = DataClass.C1, classifier: Classifier | None = None
    ) -> str:
        """Return `text` with tokens for what is found in it above the class `above`; `restore` undoes that.

        For use by itself. Found is what `classifier` finds, the shipped rules when not given, and everything
        found before. Raises `Unredactable` for what is found inside an encoding, and what the classifier
        raises.
        """
        finding = classify_text(text) if classifier is None else ask_classifier(classifier, text)
        redacted, removals = self.take_out(text, finding.spans, above=above)
        self.mark_sent(removal.entry for removal in removals)
        return redacted

    def take_out(
        self, text: str, hits: Sequence[Hit], *, above: DataClass, own: bool = False
    ) -> tuple[str, tuple[Removal, ...]]:
        """Return `text` with everything above the class `above` replaced by tokens, and what was removed.

        Removed are `hits`, every known value wherever it stands, and a known value cut off at either end.
        What looks like a token is replaced as well, even one of this map: the text came from somebody else.
        With `own` it did not: it was redacted by this map before, and its tokens stay. Raises `Unredactable`
        for a hit inside an encoding.
        """
        if any(hit.data_class > above and not hit.redactable for hit in hits):
            raise Unredactable("something was found inside an encoding, and is denied, not redacted")
        with self._lock:
            self._learn(text, hits)
            removals = tuple(
                Removal(start=each.start, end=each.end, entry=self._entry(text[each.start : each.end], each))
                for each in merged(self._stretches(text, hits, above, own=own))
            )
        pieces, position = [], 0
        for removal in removals:
            pieces += [text[position : removal.start], removal.entry.token]
            position = removal.end
        return "".join([*pieces, text[position:]]), removals

    def mark_sent(self, entries: Iterable[Entry]) -> None:
        """Note that `entries` leave: from now on their tokens can be restored."""
        with self._lock:
            self._sent.update((entry.token, entry) for entry in entries)

    def restore(self, value: Json) -> Json:
        """Return parsed JSON with the tokens in its string leaves restored; only tokens that were sent.

        Member names stay as they are. What is restored is not looked at again. Raises `RecursionError` for
        nesting too deep.
        """
        match value:
            case str():
                return TOKEN.sub(self._original, value)
            case Mapping():
                return {name: self.restore(item) for name, item in value.items()}
            case list() | tuple():
                return [self.restore(item) for item in value]
            case _:
                return value

    def standing_in(self, text: str) -> tuple[Entry, ...]:
        """Return the entries whose tokens stand in `text`, sent or not."""
        with self._lock:
            return tuple(self._own[token] for token in TOKEN.findall(text) if token in self._own)

    def reveal(self, text: str) -> str:
        """Return `text` with every token of this map restored, sent or not. For the user's own eyes."""
        return TOKEN.sub(lambda found: self._own[found[0]].value if found[0] in self._own else found[0], text)

    def holds(self, value: Json, *, sent: bool, said: str | None = None) -> DataClass:
        """Return the highest class of what `value` (parsed JSON) holds of the map, names included.

        C0 when it holds nothing. With `sent`, only values that left as tokens count: those a remote model
        can ask for. A part of a word counts. `said` is what a model that sees tokens wrote `value` in: what
        it spelled out there is a guess of its own, and whether it is right must show in nothing.
        """
        with self._lock:
            known = {entry.value: entry.data_class for entry in self._sent.values()} if sent else {}
            if not sent:
                known = {text: each.data_class for text, each in self._known.items()}
        known = {text: found for text, found in known.items() if not self._is_guess(text, said)}
        texts = [level(text).lower() for text in _strings(value)]
        held = [found for text, found in known.items() if any(level(text).lower() in each for each in texts)]
        return max(held, default=DataClass.C0)

    def forget(self) -> None:
        """Drop the map: no token of it can be restored any more."""
        with self._lock:
            for table in (self._known, self._values, self._entries, self._own, self._sent):
                table.clear()

    def _is_guess(self, value: str, said: str | None) -> bool:
        entry = self._entries.get(level(value))
        asked = entry is not None and said is not None and entry.token in said
        return said is not None and not asked and level(value).lower() in level(said).lower()

    # --- inside; the lock is held ----------------------------------------------------------------

    def _learn(self, text: str, hits: Iterable[Hit]) -> None:
        self._taken.update(TOKEN.findall(text))
        for hit in hits:
            self._remember(text[hit.start : hit.end], hit.kind, hit.data_class)

    def _remember(self, value: str, kind: str, data_class: DataClass) -> None:
        """Keep `value` as it is and as JSON text spells it: a reply's block is JSON text."""
        for spelling in {
            value,
            *(json.dumps(each, ensure_ascii=False)[1:-1] for each in (value, level(value))),
        }:
            known = self._known.get(spelling)
            if spelling and (known is None or known.data_class < data_class):
                self._known[spelling] = Known(kind=kind, data_class=data_class)
                self._values.clear()

    def _stretches(self, text: str, hits: Iterable[Hit], above: DataClass, *, own: bool) -> Iterator[Stretch]:
        for hit in hits:
            if hit.data_class > above and hit.start < hit.end:
                yield Stretch(start=hit.start, end=hit.end, kind=hit.kind, data_class=hit.data_class)
        kept = self._own if own else {}
        for match in (each for each in TOKEN.finditer(text) if each[0] not in kept):
            yield Stretch(start=match.start(), end=match.end(), kind=LITERAL, data_class=DataClass.C0)
        if above not in self._values:
            known = {value: each for value, each in self._known.items() if each.data_class > above}
            self._values[above] = Values(known)
        yield from self._values[above].find(text)

    def _entry(self, value: str, found: Stretch) -> Entry:
        """Return the entry for `value`, new if need be. What is sent is known from then on.

        One written with other white space has the same entry, and comes back as it was written first.
        """
        key = level(value)
        if key not in self._entries:
            token = self._token(found.kind)
            self._entries[key] = Entry(token=token, value=value, kind=found.kind, data_class=found.data_class)
            self._own[token] = self._entries[key]
            if found.data_class > DataClass.C0:
                self._remember(value, found.kind, found.data_class)
        return self._entries[key]

    def _token(self, kind: str) -> str:
        word = re.sub(r"[^A-Z0-9]+", "_", kind.upper()).strip("_0123456789")[:_KIND].rstrip("_") or "X"
        for _ in range(_TRIES):
            number, letters = int(self._mint(), 16), ""
            for _ in range(_SIZE):
                number, digit = divmod(number, len(_LETTERS))
                letters += _LETTERS[digit]
            token = f"[{word}_{letters}]"
            if token not in self._taken:
                self._taken.add(token)
                return token
        raise Unredactable("no free token was found")

    def _original(self, match: re.Match[str]) -> str:
        entry = self._sent.get(match[0])
        return match[0] if entry is None else entry.value


class StreamRestorer:
    """Restores a text that arrives in pieces, so that no token shows cut, wherever the pieces are cut."""

    __slots__ = ("_held", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, chunk: str) -> str:
        """Take the next piece; return what can be shown. What may become a token is held back."""
        text = self._held + chunk
        cut = text.rfind("[")
        if cut < 0 or not _OPEN.fullmatch(text, cut):
            cut = len(text)
        self._held = text[cut:]
        return str(self._redactor.restore(text[:cut]))

    def finish(self) -> str:
        """Return what was held back: it did not become a token."""
        rest, self._held = self._held, ""
        return str(self._redactor.restore(rest))


def _strings(value: Json) -> Iterator[str]:
    """Yield every string in `value`, member names included."""
    match value:
        case str():
            yield value
        case Mapping():
            for name, item in value.items():
                yield name
                yield from _strings(item)
        case list() | tuple():
            for item in value:
                yield from _strings(item)
        case _:
            pass
