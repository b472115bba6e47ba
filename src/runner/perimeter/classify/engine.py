# SPDX-License-Identifier: Apache-2.0
"""The classifier: every view of a text, one automaton over each, checks only for what it hits.

Owns the order of the work. Leaves the search of one rule to `search`, the tables to `rules`,
`contacts`, `credentials` and `lexicon`, joining with declared and default classes to the label
(`runner.kernel.labels`), and what to do about a class to the gate.
Carries I6 and I8 (it answers a class and cannot lower one). Pure: no I/O, no clock, no state that a
call changes; total over `str`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify.contacts import CONTACTS
from runner.perimeter.classify.credentials import CREDENTIALS
from runner.perimeter.classify.foreign import FOREIGN
from runner.perimeter.classify.lexicon import LEXICON, points_at_person, subjects_of_persons
from runner.perimeter.classify.model import Classification, Role, Rule, Span, View, is_clear
from runner.perimeter.classify.nobody import without_nobody
from runner.perimeter.classify.pattern import Stretches, compile_prefilter
from runner.perimeter.classify.readings import every_reading
from runner.perimeter.classify.registers import Registers
from runner.perimeter.classify.rules import IDENTIFIERS, OPAQUE, UNREAD
from runner.perimeter.classify.search import Finder, Verdicts, detector
from runner.perimeter.classify.settle import beside_persons, without_overruled
from runner.perimeter.classify.spaced import SpacedFinder, spaced
from runner.perimeter.classify.surnames import ALONE
from runner.perimeter.classify.views import Reading, fold

RULES: Final = (*IDENTIFIERS, *FOREIGN, *CONTACTS, *CREDENTIALS, *OPAQUE, *LEXICON)
"""The shipped rules, in the order in which they are tried."""

SHAPED: Final = frozenset({"api_key", "jwt", "private_key"})
"""The kinds of credentials that their shape alone tells: no two strangers make one by chance."""
FRAGMENTS: Final = (*(rule for rule in CREDENTIALS if rule.kind in SHAPED), UNREAD)
"""Those whose shape alone tells them, so that they may be looked for across the seams of texts; and the mark
of what was not read to its end."""

_RELEASE: Final = "rules-10"
EXEMPTABLE: Final = frozenset(rule.kind for rule in (*IDENTIFIERS, *CONTACTS))
"""The kinds that the practice's own and public registers may call nobody's secret."""

_RANK: Final = {view: rank for rank, view in enumerate(View)}
"""Of two readings of one place, the more literal first."""

_NOWHERE: Final = (-1,) * len(DataClass)
_NEVER: Final = r"[^\x00-\xff]"
"""A pattern that no folded text matches."""


class Classifier:
    """Classifies texts by rules and registers. Immutable, and safe to share between threads.

    Arguments: `rules`, tried in order; the shipped ones when not given; `registers`, the practice's own.
    Raises `ValueError` when a pattern is not RE2 syntax.
    """

    __slots__ = (
        "_detectors",
        "_endless",
        "_far",
        "_needing",
        "_prefilter",
        "_registers",
        "_topics",
        "_vocabulary",
        "_whole",
        "version",
    )

    def __init__(self, rules: Iterable[Rule] = RULES, registers: Registers | None = None) -> None:
        detectors = tuple(map(detector, rules))
        self._detectors = detectors
        self._registers = Registers() if registers is None else registers
        rules = [each.rule for each in detectors]
        self._needing = frozenset(index for index, rule in enumerate(rules) if rule.needs_context)
        self._topics = frozenset(index for index, rule in enumerate(rules) if rule.role is Role.TOPIC)
        triggers = [each.rule.trigger or each.rule.pattern for each in detectors]
        near = [each.is_local for each in detectors]
        self._prefilter = compile_prefilter(
            [trigger if is_near else _NEVER for trigger, is_near in zip(triggers, near, strict=True)]
        )
        self._far = frozenset(index for index, is_near in enumerate(near) if not is_near)
        self._endless = frozenset(index for index, each in enumerate(detectors) if each.width is None)
        whole = self._far | self._endless
        self._whole = compile_prefilter(
            [trigger if index in whole else _NEVER for index, trigger in enumerate(triggers)]
        )
        self._vocabulary = compile_prefilter(
            [rule.context if rule.needs_context else _NEVER for rule in rules]
        )
        self.version = _version(rules, self._registers)
        """Names the release, the very rules and the registers: a key of every cache of classifications."""

    def classify(self, text: str, *, source: str | None = None) -> Classification:
        """Return what the rules say about `text`.

        `source` is the name of the field the text was found under, if any (a JSON key, a column):
        a number under the key `iban` is as good as one behind the word. Time is linear in the
        length of `text`. Raises nothing for any `str`.
        """
        name, verdicts = fold(source).data if source else b"", Verdicts()
        readings = every_reading(text)
        finders = [each for reading in readings for each in self._finders(reading, name, verdicts)]
        found: list[Span] = []
        markers: list[Span] = []
        for finder, seen in finders:
            for role, spans in self._search(finder, seen, seen.keys() - self._topics):
                (markers if role is Role.MARKER else found).extend(spans)
        if self._registers.clients:
            found += chain.from_iterable(map(self._registers.clients.find, readings))
        if not found and not markers:
            return Classification(data_class=DataClass.C0, spans=(), version=self.version)
        if self._registers.known:
            found, markers = self._without_known(text, readings[0], found, markers)
        found, markers = without_nobody(readings[0].data, without_overruled(found), markers)
        persons = sorted(span.start for span in (*filter(points_at_person, found), *markers))
        topics = [
            span
            for finder, seen in (finders if persons else ())
            for _, spans in self._search(finder, seen, seen.keys() & self._topics)
            for span in spans
        ]
        kept = _without_doubles([*beside_persons(found, persons), *subjects_of_persons(topics, persons)])
        return Classification(
            data_class=max((span.data_class for span in kept), default=DataClass.C0),
            spans=kept,
            version=self.version,
        )

    def _finders(
        self, reading: Reading, name: bytes, verdicts: Verdicts
    ) -> Iterator[tuple[Finder, dict[int, Stretches]]]:
        """Yield what searches `reading`, and it with one space for each run of white space, and where."""
        finder = Finder(reading, name, verdicts)
        yield finder, self._seen(reading)
        flattened = spaced(reading)
        if flattened is not None:
            yield SpacedFinder(flattened, name, verdicts, finder), self._seen(flattened)

    def _seen(self, reading: Reading) -> dict[int, Stretches]:
        """Return for each detector whose trigger is in `reading` the stretches that it was seen in.

        Of a reading that was made from another only what is new counts, unless what is found has no bound.
        """
        data, whole = reading.data, self._far | self._endless if reading.pieces else self._far
        seen = self._prefilter.places(data, reading.is_new)
        if whole:
            seen.update(dict.fromkeys(self._whole.hits(data) & whole, ((0, len(data)),)))
        return seen

    def _search(
        self, finder: Finder, seen: Mapping[int, Stretches], wanted: AbstractSet[int]
    ) -> Iterator[tuple[Role, list[Span]]]:
        """Yield what the detectors `wanted` of those that were `seen` find, and what it means.

        None that needs words is asked where no word of its own stands.
        """
        needing = wanted & self._needing
        if needing:
            wanted = wanted - (needing - self._vocabulary.hits(finder.words))
        for index in sorted(wanted):
            tried = self._detectors[index]
            yield tried.rule.role, finder.search(tried, seen[index])

    def _without_known(self, text: str, folded: Reading, *groups: Sequence[Span]) -> Iterator[list[Span]]:
        """Yield each of `groups` without contacts that the registers call the practice's own or public.

        Only contacts, identifiers and surnames inside an entry, written in the clear: never a client's whole
        name, a credential or a subject.
        """
        known = self._registers.known
        ranges = known.ranges(folded.data, folded.words)
        for spans in groups:
            yield [
                span
                for span in spans
                if not _may_be_known(span)
                or not (ranges.cover(span.start, span.end) or known.holds(text[span.start : span.end]))
            ]


def _may_be_known(span: Span) -> bool:
    return (span.kind in EXEMPTABLE or span.rule == ALONE) and is_clear(span.view)


def _without_doubles(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return the spans in order, none inside another of its kind and class or more; of two the more literal.

    A disguised one never hides one in the clear inside it: the place of the latter is exact.
    """
    ordered = sorted(spans, key=lambda span: (span.start, -span.end, span.kind, _RANK[span.view]))
    literal: dict[str, list[int]] = {}
    disguised: dict[str, list[int]] = {}
    kept: list[Span] = []
    for span in ordered:
        clear = is_clear(span.view)
        if not _reach(literal, span) and (clear or not _reach(disguised, span)):
            (literal if clear else disguised).setdefault(span.kind, [*_NOWHERE])[span.data_class] = span.end
            kept.append(span)
    return tuple(kept)


def _reach(ends: Mapping[str, Sequence[int]], span: Span) -> bool:
    """Say whether one of the kind of `span`, and of its class or more, ends no sooner.

    `ends` says for each kind where the last of each class ends.
    """
    return max(ends.get(span.kind, _NOWHERE)[span.data_class :]) >= span.end


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
