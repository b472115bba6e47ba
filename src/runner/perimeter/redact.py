# SPDX-License-Identifier: Apache-2.0
"""Redaction: what may not leave goes out as a token, and comes back as what it was.

Owns the map of one task, the tokens, their restoring, and the rewriting of a request. Leaves finding to
the classifier, and the last word to `Perimeter.release()`, which judges the rewritten bytes again.
Carries I6 and I8: a value keeps its class whatever stands for it. Carries I12: the map lives in this object,
dies with its task, and shows in no repr and no record. (An encrypted map that outlives a task may come later.)
"""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from runner.kernel.decisions import Span
from runner.kernel.errors import PerimeterError
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Block, Json, JsonObject
from runner.kernel.ports import Classifier, Hit

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
_PIECE: Final = 4
"""The shortest piece of a value, in characters, that is taken for one cut off at the edge of a text."""
_EDGE: Final = 64
"""How far from the edge of a text a cut value is looked for, in characters."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    start: int
    end: int
    kind: str
    data_class: DataClass

    def join(self, other: "_Stretch") -> "_Stretch":
        """Return the stretch over both, named after the more sensitive, then the longer."""
        chief = max(self, other, key=lambda each: (each.data_class, each.end - each.start))
        return replace(chief, start=min(self.start, other.start), end=max(self.end, other.end))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    kind: str
    data_class: DataClass
    lowered: str


class Redactor:
    """The map of one task: one matter, one user. Safe to use from several threads.

    Argument: `mint` returns random hexadecimal digits (32 of them), from which tokens are made. The same
    value has the same token in one redactor, and two redactors share none but by chance.
    """

    __slots__ = ("_entries", "_known", "_lock", "_mint", "_sent", "_taken")

    def __init__(self, mint: Callable[[], str]) -> None:
        self._mint = mint
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._entries: dict[str, Entry] = {}  # by value
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
        self, text: str, hits: Sequence[Hit], *, above: DataClass
    ) -> tuple[str, tuple[Removal, ...]]:
        """Return `text` with everything above the class `above` replaced by tokens, and what was removed.

        Removed are `hits`, every known value wherever it stands, and a known value cut off at either end.
        What looks like a token is replaced as well. Raises `Unredactable` for a hit inside an encoding.
        """
        if any(hit.data_class > above and not hit.redactable for hit in hits):
            raise Unredactable("something was found inside an encoding, and is denied, not redacted")
        with self._lock:
            self._learn(text, hits)
            removals = tuple(
                Removal(start=each.start, end=each.end, entry=self._entry(text[each.start : each.end], each))
                for each in _merged(self._stretches(text, hits, above))
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

    def holds(self, value: Json, *, sent: bool) -> DataClass:
        """Return the highest class of what `value` (parsed JSON) holds of the map, names included.

        C0 when it holds nothing. With `sent`, only values that left as tokens count: those a remote model
        can ask for. A part of a word counts.
        """
        with self._lock:
            known = {entry.value: entry.data_class for entry in self._sent.values()} if sent else {}
            if not sent:
                known = {text: each.data_class for text, each in self._known.items()}
        texts = [text.lower() for _, text in _strings(value, "", names=True)]
        held = [found for text, found in known.items() if any(text.lower() in each for each in texts)]
        return max(held, default=DataClass.C0)

    def forget(self) -> None:
        """Drop the map: no token of it can be restored any more."""
        with self._lock:
            for table in (self._known, self._entries, self._sent):
                table.clear()

    # --- inside; the lock is held ----------------------------------------------------------------

    def _learn(self, text: str, hits: Iterable[Hit]) -> None:
        self._taken.update(TOKEN.findall(text))
        for hit in hits:
            if hit.redactable:
                self._remember(text[hit.start : hit.end], hit.kind, hit.data_class)

    def _remember(self, value: str, kind: str, data_class: DataClass) -> None:
        """Keep `value` as it is and as JSON text spells it: a reply's block is JSON text."""
        for spelling in {value, json.dumps(value, ensure_ascii=False)[1:-1]}:
            known = self._known.get(spelling)
            if spelling and (known is None or known.data_class < data_class):
                self._known[spelling] = _Known(kind=kind, data_class=data_class, lowered=spelling.lower())

    def _stretches(self, text: str, hits: Iterable[Hit], above: DataClass) -> Iterator[_Stretch]:
        for hit in hits:
            if hit.data_class > above and hit.start < hit.end:
                yield _Stretch(start=hit.start, end=hit.end, kind=hit.kind, data_class=hit.data_class)
        for match in TOKEN.finditer(text):
            yield _Stretch(start=match.start(), end=match.end(), kind=LITERAL, data_class=DataClass.C0)
        lowered = text.lower()
        folded = lowered if len(lowered) == len(text) else text  # a few capitals change length: skip case
        for value, known in self._known.items():
            if known.data_class > above:
                for start, end in (*_places(text, folded, value, known), *_cuts(text, known.lowered)):
                    yield _Stretch(start=start, end=end, kind=known.kind, data_class=known.data_class)

    def _entry(self, value: str, found: _Stretch) -> Entry:
        """Return the entry for `value`, new if need be. What is sent is known from then on."""
        if value not in self._entries:
            token = self._token(found.kind)
            self._entries[value] = Entry(
                token=token, value=value, kind=found.kind, data_class=found.data_class
            )
            if found.data_class > DataClass.C0:
                self._remember(value, found.kind, found.data_class)
        return self._entries[value]

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


# --- a whole request ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedRequest:
    """A request to be encoded and judged again; `spans` of the original were replaced by `entries`."""

    request: InferenceRequest
    spans: tuple[Span, ...]
    entries: tuple[Entry, ...]


def redact_request(
    request: InferenceRequest, redactor: Redactor, classifier: Classifier, *, above: DataClass
) -> RedactedRequest:
    """Return `request` with what is above the class `above` replaced, in its blocks and its schema.

    The schema's strings are replaced too, so that a constrained reply comes back in tokens; its member names
    and patterns are not, so that what is found there is denied. Raises `Unredactable`, and whatever the
    classifier raises.
    """
    texts = dict(_texts(request))
    hits = {pointer: classifier.classify(text, source=name).spans for pointer, (name, text) in texts.items()}
    for pointer, (_, text) in texts.items():  # all of it first: a value may be recognised in one place only
        redactor.learn(text, hits[pointer])
    redacted: dict[str, str] = {}
    spans: list[Span] = []
    entries: dict[str, Entry] = {}
    for pointer, (_, text) in texts.items():
        redacted[pointer], removals = redactor.redact(text, hits[pointer], above=above)
        for each in removals:
            spans.append(Span(pointer=pointer, start=each.start, end=each.end, kind=each.entry.kind))
            entries[each.entry.token] = each.entry
    return RedactedRequest(
        request=_rewritten(request, redacted), spans=tuple(spans), entries=tuple(entries.values())
    )


def _texts(request: InferenceRequest) -> Iterator[tuple[str, tuple[str | None, str]]]:
    """Yield the pointer of each text that may be replaced, the name it stands under, and the text."""
    for number, message in enumerate(request.messages):
        for index, block in enumerate(message.blocks):
            yield f"/messages/{number}/blocks/{index}", (None, block.text)
    for pointer, text in _strings(request.schema, "/schema"):
        name = pointer.rpartition("/")[2]
        if name != "pattern":
            yield pointer, (None if name.isdigit() else name, text)


def _rewritten(request: InferenceRequest, texts: Mapping[str, str]) -> InferenceRequest:
    def block(number: int, index: int, original: Block) -> Block:
        return replace(original, text=texts[f"/messages/{number}/blocks/{index}"])

    messages = tuple(
        replace(
            message, blocks=tuple(block(number, index, each) for index, each in enumerate(message.blocks))
        )
        for number, message in enumerate(request.messages)
    )
    schema = None if request.schema is None else _replaced_members(request.schema, "/schema", texts)
    return replace(request, messages=messages, schema=schema)


def _strings(value: Json, pointer: str, *, names: bool = False) -> Iterator[tuple[str, str]]:
    """Yield pointer (RFC 6901) and text of each string leaf in `value`, and of member names if `names`."""
    match value:
        case str():
            yield pointer, value
        case Mapping():
            for name, item in value.items():
                if names:
                    yield pointer, name
                yield from _strings(item, _under(pointer, name), names=names)
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _strings(item, f"{pointer}/{index}", names=names)
        case _:
            pass


def _replaced(value: Json, pointer: str, texts: Mapping[str, str]) -> Json:
    match value:
        case str():
            return texts.get(pointer, value)
        case Mapping():
            return _replaced_members(value, pointer, texts)
        case list() | tuple():
            return [_replaced(item, f"{pointer}/{index}", texts) for index, item in enumerate(value)]
        case _:
            return value


def _replaced_members(value: JsonObject, pointer: str, texts: Mapping[str, str]) -> JsonObject:
    return {name: _replaced(item, _under(pointer, name), texts) for name, item in value.items()}


def _under(pointer: str, name: str) -> str:
    return f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"


# --- places in a text --------------------------------------------------------------------------------


def _merged(stretches: Iterable[_Stretch]) -> list[_Stretch]:
    """Return `stretches` in order, those that overlap made one."""
    merged: list[_Stretch] = []
    for each in sorted(stretches, key=lambda stretch: (stretch.start, -stretch.end)):
        if merged and each.start < merged[-1].end:
            merged[-1] = merged[-1].join(each)
        else:
            merged.append(each)
    return merged


def _places(text: str, folded: str, value: str, known: _Known) -> Iterator[tuple[int, int]]:
    """Yield where `value` stands: as it is anywhere, in another case as words of its own.

    Anywhere, since a model may glue a token to a word, and the restored value comes back in the next
    request. `folded` is `text` in lower case, or `text` itself.
    """
    needle = value if folded is text else known.lowered
    start = folded.find(needle)
    while start >= 0:
        end = start + len(needle)
        if text[start:end] == value or (_is_edge(text, start) and _is_edge(text, end)):
            yield start, end
        start = folded.find(needle, start + 1)


def _cuts(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Yield the end of `text` where it is the beginning of a value, and the beginning where it is the end."""
    tail, head = text[-_EDGE:].lower(), text[:_EDGE].lower()
    if lowered[:_PIECE] in tail:
        for size in range(min(len(lowered) - 1, len(tail)), _PIECE - 1, -1):
            if tail.endswith(lowered[:size]) and _is_edge(text, len(text) - size):
                yield len(text) - size, len(text)
                break
    if lowered[-_PIECE:] in head:
        for size in range(min(len(lowered) - 1, len(head)), _PIECE - 1, -1):
            if head.startswith(lowered[-size:]) and _is_edge(text, size):
                yield 0, size
                break


def _is_edge(text: str, position: int) -> bool:
    """Return whether no word runs across `position`."""
    return not (0 < position < len(text) and text[position - 1].isalnum() and text[position].isalnum())
