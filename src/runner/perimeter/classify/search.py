# SPDX-License-Identifier: Apache-2.0
"""One rule in one reading: candidates found, checked, and held against what stands around them.

Owns the search itself, what counts as corroboration, and where in a long text it is worth searching. Leaves
the rules to their tables, which of them are tried to `engine`, and what findings say of each other to
`settle`. Carries I6: a candidate that is refused hides none that overlaps it. No state but that of one text.
"""

from dataclasses import dataclass
from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify.model import Check, Rule, Span, is_clear, whole
from runner.perimeter.classify.pattern import LOCAL, Pattern, Stretches, compile_pattern, width_of
from runner.perimeter.classify.pattern import Span as Range
from runner.perimeter.classify.views import Reading

_VERDICTS: Final = 256
"""Verdicts of checks that are kept while a text is judged: rules and readings ask for the same again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """A rule made ready: its patterns compiled."""

    rule: Rule
    pattern: Pattern
    covers: tuple[str, DataClass]
    """What it finds: nothing inside a finding that is the same says anything new."""
    group: int
    """The group of `pattern` that is the candidate."""
    context: Pattern | None
    amid: Pattern | None
    width: int | None
    """Bytes that a match of `pattern` has at most; None for no bound."""
    reach: int | None
    """Bytes before a hit of its trigger in which a match may begin; None for no bound."""
    is_local: bool
    """Whether its trigger is sure to be seen in a block of a text and what stands right behind it."""


def detector(rule: Rule) -> Detector:
    """Return `rule` made ready; raise `ValueError` when a pattern is not RE2 syntax."""
    width = width_of(rule.pattern)
    seen = [size for size in (width, width_of(rule.trigger or rule.pattern)) if size is not None]
    pattern = compile_pattern(rule.pattern)
    return Detector(
        rule=rule,
        pattern=pattern,
        covers=(rule.kind, rule.data_class),
        group=min(pattern.groups, 1),
        context=compile_pattern(rule.context) if rule.context else None,
        amid=compile_pattern(rule.amid) if rule.amid else None,
        width=width,
        reach=0 if rule.trigger_leads or not rule.trigger else width,
        is_local=min(seen, default=LOCAL + 1) <= LOCAL,
    )


class Verdicts:
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


class Finder:
    """What rules find in one reading.

    After a candidate that is refused the search goes on one character later, not behind it, so that a decoy
    cannot hide the identifier that overlaps it. One that lies in what another rule has found, of its kind and
    class, says nothing new and is not checked.
    """

    __slots__ = ("_clear", "_covered", "_data", "_found", "_reading", "_source", "_verdicts")

    def __init__(self, reading: Reading, source: bytes, verdicts: Verdicts) -> None:
        self._reading = reading
        self._data = reading.data
        self._clear = is_clear(reading.view)
        self._source = source
        self._verdicts = verdicts
        self._covered: dict[tuple[str, DataClass], bytearray] = {}
        self._found: list[Span] = []

    @property
    def words(self) -> bytes:
        """What may hold words that corroborate: the reading, what stands beside it, and its field's name."""
        return b"\n".join((self._reading.data, self._reading.around, self._source))

    def search(self, tried: Detector, stretches: Stretches) -> list[Span]:
        """Return the hits of one rule whose trigger was seen in `stretches` of the reading."""
        search, data, position = tried.pattern.search, self._data, 0
        self._found = []
        for low, high in stretches:
            if tried.reach is not None and position < low - tried.reach:
                position = low - tried.reach
            stop = None if tried.width is None else min(len(data), high + tried.width)
            while (match := search(data, position, stop)) is not None and match[0][0] < high:
                position = self._judge(tried, match)
        return self._found

    def covered(self, kind: tuple[str, DataClass]) -> bytearray | None:
        """Return which bytes of the reading lie in findings of a kind and class; None if none was found."""
        return self._covered.get(kind)

    def _judge(self, tried: Detector, match: list[Range]) -> int:
        """Add the candidate of `match` if it is a hit; return where to go on."""
        start, end = match[tried.group]
        rule, covered = tried.rule, self._covered.get(tried.covers)
        if covered is not None and covered.find(0, start, end) < 0:
            return start + 1
        if rule.check is not whole:
            accepted = self._verdicts.of(rule.check, self._data[start:end])
            if not accepted:
                return start + 1
            end = start + accepted
        if self._holds(tried, start, end):
            if covered is None:
                covered = self._covered[tried.covers] = bytearray(len(self._data))
            covered[start:end] = b"\1" * (end - start)
            first, last = self._reading.original_span(start, end)
            self._found.append(Span(first, last, rule.kind, rule.name, rule.data_class, self._reading.view))
        return max(end, start + 1)

    def _holds(self, tried: Detector, start: int, end: int) -> bool:
        """Say whether a candidate that was accepted counts where it stands."""
        rule, reading = tried.rule, self._reading
        if reading.only_disguised and not reading.counts(start, end):
            return False
        if rule.stands is not None:
            before, _ = reading.surroundings(start, end)
            if not rule.stands(before.decode("ascii"), reading.data[start:end].decode("ascii")):
                return False
        if (self._clear or rule.distinctive) and not rule.needs_context:
            amid = tried.amid
            if amid is None or amid.search(reading.surroundings(start, end)[0]) is None:
                return True
        return self._is_corroborated(tried.context, start, end)

    def _is_corroborated(self, context: Pattern | None, start: int, end: int) -> bool:
        """Say whether a word of the vocabulary `context` stands near what was found."""
        if context is None:
            return False
        nearby = (*self._reading.surroundings(start, end), self._reading.around, self._source)
        return any(words and context.search(words) for words in nearby)
