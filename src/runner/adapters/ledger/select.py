# SPDX-License-Identifier: Apache-2.0
"""Which runs of a book are meant: by time, backend, outcome, denial, or a word on record.

Owns the choice and the reading of moments. Pure. What is searched are ids and words of the profile and the
format: a record holds no content (I12), so no search can find any.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from runner.adapters.ledger.book import Ledger, ReadLog
from runner.adapters.ledger.run import INTERRUPTED, OPEN, Run, runs_of

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a run must be like; each condition that is not set holds of every run.

    `since_us` and `until_us` bound when it started, in microseconds since 1970, the first included and the
    second not. `grep` stands somewhere in its ids, its words, or those of its backends, in any case.
    """

    since_us: int | None = None
    until_us: int | None = None
    backend: str = ""
    outcome: str = ""
    denied: bool = False
    grep: str = ""

    def fits(self, run: Run) -> bool:
        """Return whether `run` is meant."""
        return all(
            (
                self.since_us is None or run.start_us >= self.since_us,
                self.until_us is None or run.start_us < self.until_us,
                not self.backend or any(each.backend == self.backend for each in run.sends),
                not self.outcome or run.outcome == self.outcome,
                not self.denied or run.denials > 0,
                not self.grep or self._found(run),
            )
        )

    def _found(self, run: Run) -> bool:
        needle = self.grep.casefold()
        words = (word for entry in run.entries for word in (entry.task, entry.kind, *_texts(entry.body)))
        about = (run.profile, run.policy_digest, run.config_digest, run.prompts, run.writer)
        models = (each.shown for each in run.backends)
        return any(needle in word.casefold() for word in (*about, *models, *words))


def wanted_runs(ledger: Ledger, wanted: Wanted) -> list[Run]:
    """Return the runs of `ledger` that are meant, the oldest first; raise `TraceError`."""
    logs, interrupted = ledger.newest_first(), ledger.verdict.report["interrupted"]
    newest = [[run for run in _told(log, interrupted) if wanted.fits(run)] for log in logs]
    return [run for runs in reversed(newest) for run in runs]


def _told(log: ReadLog, interrupted: Collection[int]) -> Iterator[Run]:
    """Yield the runs of `log`; `interrupted` are the logs that broke off and that the next accounts for."""
    for run in runs_of(log):
        is_over = run.outcome == OPEN and log.number in interrupted
        yield replace(run, outcome=INTERRUPTED) if is_over else run


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    match value:
        case str():
            yield value
        case dict():
            for name, item in value.items():
                yield name
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)


def parse_moment(text: str, *, end: bool = False) -> int:
    """Return a moment in microseconds since 1970: a day, or a day and a time, in UTC unless it says where.

    A day alone is its beginning, with `end` the beginning of the next, so that "until" a day includes it.
    Raises `ValueError`.
    """
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if end and _DAY.fullmatch(text):
        moment += timedelta(days=1)
    return (moment - _EPOCH) // _MICROSECOND


def shown_moment(time_us: int, *, fraction: bool = False) -> str:
    """Return a time on record as a UTC time to the second, or to the microsecond. Total."""
    try:
        moment = _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return "no time"
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f" if fraction else "%Y-%m-%d %H:%M:%S")
