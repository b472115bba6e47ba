# SPDX-License-Identifier: Apache-2.0
"""The classifier: every view of a text, one automaton over each, checks only for what it hits.

Owns the order of the work and what counts as corroboration. Leaves the tables to `rules`,
`contacts`, `credentials` and `lexicon`, joining with declared and default classes to the label
(`runner.kernel.labels`), and what to do about a class to the gate.
Carries I6 and I8 (it answers a class and cannot lower one). Pure: no I/O, no clock, no state that a
call changes; total over `str`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

from runner.kernel.labels import DataClass
from runner.perimeter.classify.contacts import CLIENT, CONTACTS
from runner.perimeter.classify.credentials import CREDENTIALS
from runner.perimeter.classify.foreign import FOREIGN
from runner.perimeter.classify.lexicon import LEXICON, points_at_person, subjects_of_persons
from runner.perimeter.classify.model import (
    Check,
    Classification,
    Role,
    Rule,
    Span,
    View,
    is_clear,
    whole,
)
from runner.perimeter.classify.pattern import Pattern, Prefilter, compile_pattern
from runner.perimeter.classify.readings import every_reading
from runner.perimeter.classify.registers import Clients, Mention, Registers
from runner.perimeter.classify.rules import IDENTIFIERS, OPAQUE, UNREAD
from runner.perimeter.classify.settle import beside_persons, overruled
from runner.perimeter.classify.views import Reading, fold

RULES: Final = (*IDENTIFIERS, *FOREIGN, *CONTACTS, *CREDENTIALS, *OPAQUE, *LEXICON)
"""The shipped rules, in the order in which they are tried."""

FRAGMENTS: Final = (
    *(rule for rule in CREDENTIALS if rule.kind in {"api_key", "jwt", "private_key"}),
    UNREAD,
)
"""Those whose shape alone tells them, so that they may be looked for across the seams of texts; and the mark
of what was not read to its end."""

_RELEASE: Final = "rules-5"
EXEMPTABLE: Final = frozenset(rule.kind for rule in (*IDENTIFIERS, *CONTACTS))
"""The kinds that the practice's own and public registers may call nobody's secret."""

_VERDICTS: Final = 256
"""Verdicts of checks that are kept while a text is judged: rules and readings ask for the same again."""
_RANK: Final = {view: rank for rank, view in enumerate(View)}
"""Of two readings of one place, the more literal first."""

_NEVER: Final = r"[^\x00-\xff]"
"""A pattern that no folded text matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Detector:
    """A rule made ready: its patterns compiled."""

    rule: Rule
    pattern: Pattern
    context: Pattern | None
    amid: Pattern | None


class _Verdicts:
    """What checks said of candidates of one text, the last few hundred of them."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[Check, bytes], int] = {}

    def of(self, check: Check, candidate: bytes) -> int:
        """Return how much of `candidate` passes `check`."""
        key = check, candidate
        accepted = self._known.get(key)
        if accepted is None:
            if len(self._known) >= _VERDICTS:
                self._known.clear()
            accepted = self._known[key] = check(candidate.decode("ascii"))
        return accepted


_Covered = dict[tuple[str, DataClass], bytearray]
"""For a kind and a class the bytes of a reading that something of them was found in."""


class _Hit(NamedTuple):
    """A span, and what the rule that found it means."""

    span: Span
    role: Role


class Classifier:
    """Classifies texts by rules and registers. Immutable, and safe to share between threads.

    Arguments: `rules`, tried in order; the shipped ones when not given; `registers`, the practice's own.
    Raises `ValueError` when a pattern is not RE2 syntax.
    """

    __slots__ = ("_detectors", "_needing", "_prefilter", "_registers", "_topics", "_vocabulary", "version")

    def __init__(self, rules: Iterable[Rule] = RULES, registers: Registers | None = None) -> None:
        detectors = tuple(
            _Detector(
                rule=rule,
                pattern=compile_pattern(rule.pattern),
                context=compile_pattern(rule.context) if rule.context else None,
                amid=compile_pattern(rule.amid) if rule.amid else None,
            )
            for rule in rules
        )
        self._detectors = detectors
        self._registers = Registers() if registers is None else registers
        rules = [detector.rule for detector in detectors]
        self._needing = frozenset(index for index, rule in enumerate(rules) if rule.needs_context)
        self._topics = frozenset(index for index, rule in enumerate(rules) if rule.role is Role.TOPIC)
        self._prefilter = Prefilter([rule.trigger or rule.pattern for rule in rules])
        self._vocabulary = Prefilter([rule.context if rule.needs_context else _NEVER for rule in rules])
        self.version = _version(rules, self._registers)
        """Names the release, the very rules and the registers: a key of every cache of classifications."""

    def classify(self, text: str, *, source: str | None = None) -> Classification:
        """Return what the rules say about `text`.

        `source` is the name of the field the text was found under, if any (a JSON key, a column):
        a number under the key `iban` is as good as one behind the word. Time is linear in the
        length of `text`. Raises nothing for any `str`.
        """
        name, verdicts = fold(source).data if source else b"", _Verdicts()
        readings = [(reading, self._prefilter.hits(reading.data)) for reading in every_reading(text)]
        hits = [
            hit
            for reading, seen in readings
            for hit in self._hits(reading, seen - self._topics, name, verdicts)
        ]
        if self._registers.clients:
            hits += [hit for reading, _ in readings for hit in _clients(self._registers.clients, reading)]
        hits = self._without_known(text, readings[0][0], hits)
        weaker = overruled([hit.span for hit in hits if hit.role is Role.FINDING])
        hits = [hit for hit in hits if hit.span not in weaker] if weaker else hits
        persons = sorted(hit.span.start for hit in hits if points_at_person(hit.span, hit.role))
        topics = [
            hit.span
            for reading, seen in (readings if persons else ())
            for hit in self._hits(reading, seen & self._topics, name, verdicts)
        ]
        found = beside_persons([hit.span for hit in hits if hit.role is Role.FINDING], persons)
        spans = _without_doubles([*found, *subjects_of_persons(topics, persons)])
        return Classification(
            data_class=max((span.data_class for span in spans), default=DataClass.C0),
            spans=spans,
            version=self.version,
        )

    def _hits(
        self, reading: Reading, seen: AbstractSet[int], source: bytes, verdicts: _Verdicts
    ) -> Iterator[_Hit]:
        """Yield the hits in `reading` of the detectors `seen`."""
        needing = seen & self._needing
        if needing:
            words = self._vocabulary.hits(b"\n".join((reading.data, reading.around, source)))
            seen -= needing - words
        covered: _Covered = {}
        for index in sorted(seen):
            yield from _search(self._detectors[index], reading, source, verdicts, covered)

    def _without_known(self, text: str, folded: Reading, hits: list[_Hit]) -> list[_Hit]:
        """Return `hits` without contacts that the registers call the practice's own or public.

        Only contacts and identifiers written in the clear: never a client, a credential or a subject.
        """
        exempt = [hit for hit in hits if hit.span.kind in EXEMPTABLE and is_clear(hit.span.view)]
        known = self._registers.known
        if not exempt or not known:
            return hits
        ranges = known.ranges(folded.data, folded.words)
        dropped = {
            id(hit)
            for hit in exempt
            if ranges.cover(hit.span.start, hit.span.end) or known.holds(text[hit.span.start : hit.span.end])
        }
        return [hit for hit in hits if id(hit) not in dropped]


def _search(
    detector: _Detector, reading: Reading, source: bytes, verdicts: _Verdicts, covered: _Covered
) -> Iterator[_Hit]:
    """Yield the hits of one rule in one reading.

    After a candidate that is refused the search goes on one character later, not behind it, so
    that a decoy cannot hide the identifier that overlaps it. One that lies in what another rule has found,
    of its kind and class, says nothing new.
    """
    search, data = detector.pattern.search, reading.data
    match = search(data)
    if match is None:
        return
    rule, position = detector.rule, 0
    check, group = rule.check, min(detector.pattern.groups, 1)
    by_shape = not rule.needs_context and (rule.distinctive or is_clear(reading.view))
    known, what = covered.get((rule.kind, rule.data_class)), (rule.kind, rule.data_class)
    while match is not None:
        start, end = match[group]
        position = start + 1
        if known is None or known.find(0, start, end) >= 0:
            accepted = end - start if check is whole else verdicts.of(check, data[start:end])
            if accepted:
                end = start + accepted
                position = max(end, position)
                if _holds(detector, reading, start, end, source, by_shape=by_shape):
                    if known is None:
                        known = covered[what] = bytearray(len(data))
                    known[start:end] = b"\1" * (end - start)
                    yield _hit(rule, reading, start, end)
        match = search(data, position)


def _holds(
    detector: _Detector, reading: Reading, start: int, end: int, source: bytes, *, by_shape: bool
) -> bool:
    """Say whether a candidate that was accepted counts where it stands."""
    stands, found = detector.rule.stands, (start, end)
    if stands is not None and not stands(*_in_place(reading, found)):
        return False
    return reading.counts(start, end) and (
        (by_shape and (detector.amid is None or not _is_amid(detector.amid, reading, found)))
        or _corroborated(detector.context, reading, found, source)
    )


def _is_amid(amid: Pattern, reading: Reading, found: tuple[int, int]) -> bool:
    """Say whether `amid`, which makes a shape worth nothing, stands right before what was found."""
    return amid.search(reading.surroundings(*found)[0]) is not None


def _corroborated(context: Pattern | None, reading: Reading, found: tuple[int, int], source: bytes) -> bool:
    """Say whether a word of the vocabulary `context` stands near what was found."""
    if context is None:
        return False
    nearby = (*reading.surroundings(*found), reading.around, source)
    return any(words and context.search(words) for words in nearby)


def _in_place(reading: Reading, found: tuple[int, int]) -> tuple[str, str]:
    """Return what stands before a candidate, and the candidate."""
    before, _ = reading.surroundings(*found)
    return before.decode("ascii"), reading.data[slice(*found)].decode("ascii")


def _hit(rule: Rule, reading: Reading, start: int, end: int) -> _Hit:
    first, last = reading.original_span(start, end)
    span = Span(
        start=first, end=last, kind=rule.kind, rule=rule.name, data_class=rule.data_class, view=reading.view
    )
    return _Hit(span, rule.role)


def _clients(clients: Clients, reading: Reading) -> Iterator[_Hit]:
    """Yield the clients named in one reading."""
    if clients:
        for mention in clients.find(reading.data, reading.words):
            if reading.counts(mention.start, mention.end):
                yield _mentioned(mention, reading)


def _mentioned(mention: Mention, reading: Reading) -> _Hit:
    first, last = reading.original_span(mention.start, mention.end)
    span = Span(
        start=first,
        end=last,
        kind=CLIENT,
        rule=mention.rule,
        data_class=mention.data_class,
        view=reading.view,
    )
    return _Hit(span, Role.FINDING)


def _without_doubles(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return the spans in order, none inside another of its kind; of two in one place the more literal.

    A disguised one never hides one in the clear inside it: the place of the latter is exact.
    """
    ordered = sorted(spans, key=lambda span: (span.start, -span.end, span.kind, _RANK[span.view]))
    literal: dict[str, int] = {}
    disguised: dict[str, int] = {}
    kept: list[Span] = []
    for span in ordered:
        kind, end, clear = span.kind, span.end, is_clear(span.view)
        if end > literal.get(kind, -1) and (clear or end > disguised.get(kind, -1)):
            (literal if clear else disguised)[kind] = end
            kept.append(span)
    return tuple(kept)


def _version(rules: Sequence[Rule], registers: Registers) -> str:
    digest = hashlib.sha256()
    for rule in rules:
        fields = (
            rule.name,
            rule.kind,
            rule.data_class.name,
            rule.pattern,
            rule.check.__qualname__,
            "" if rule.stands is None else rule.stands.__qualname__,
            rule.context,
            rule.amid,
            str(rule.needs_context),
            str(rule.distinctive),
            rule.role.value,
        )
        digest.update("\x1f".join((*fields, "\x1e")).encode())
    practice = f".{registers.digest}" if registers.digest else ""
    return f"{_RELEASE}+{digest.hexdigest()[:12]}{practice}"


_SHIPPED: Final = Classifier()


def classify_text(text: str, *, source: str | None = None) -> Classification:
    """Return what the shipped rules say about `text`; see `Classifier.classify`."""
    return _SHIPPED.classify(text, source=source)
