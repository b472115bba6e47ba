# SPDX-License-Identifier: Apache-2.0
"""Whether a backend behaves otherwise than before: two windows of runs, side by side.

Owns the comparison and its tests. A run is one sample, however many replies it has: replies of one run
resemble each other. Where there are fewer than `ENOUGH` on either side, nothing is said. The tests look at
one figure each and know no cause: a change of the work looks like a change of the backend, so the size of
what was asked stands beside it. Pure.

Sources: Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than
the other" (1947), by its normal approximation with ties and continuity corrected; Fisher's exact test of a
two by two table, two-sided by the sum of all tables that are no more likely.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import comb, erfc, sqrt
from statistics import median
from typing import Any, Final, Literal, TypeAlias

from runner.adapters.ledger.run import BackendFacts, Run, Send

ENOUGH: Final = 8
"""Runs that each window needs before anything is said."""
ALPHA: Final = 0.01
"""Below this probability, shared out over the figures that are compared, a difference is called one."""

Finding: TypeAlias = Literal["changed", "no change seen", "too few"]
Figure: TypeAlias = tuple[str, str, Callable[[Send], float | None]]
"""A figure of a send: its name, its unit, and what it is, if it is known."""
Share: TypeAlias = tuple[str, Callable[[Send], bool]]
"""What may come of a send: its name, and whether it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure in both windows: samples, and its median, or its share where it is one. `p` is of no change.

    `p` is None where the samples are too few.
    """

    name: str
    unit: str
    before_n: int
    after_n: int
    before: float | None
    after: float | None
    p: float | None
    finding: Finding

    def data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "name": self.name,
            "unit": self.unit,
            "before": {"n": self.before_n, "value": self.before},
            "after": {"n": self.after_n, "value": self.after},
            "p": self.p,
            "finding": self.finding,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something on record about a backend is no more what it was: from the run `task` on."""

    what: str
    before: str
    after: str
    task: str
    log: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What is to be said of one backend; `at_us` is where the second window begins."""

    backend: str
    at_us: int
    changes: tuple[Change, ...]
    measures: tuple[Measure, ...]

    @property
    def finding(self) -> Finding:
        """What is to be said of the whole: too few where nothing changed and no figure could be compared."""
        found = {each.finding for each in self.measures}
        if self.changes or "changed" in found:
            return "changed"
        return "too few" if found == {"too few"} else "no change seen"

    def data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        changes = [{name: getattr(each, name) for name in Change.__slots__} for each in self.changes]
        return {
            "backend": self.backend,
            "at_us": self.at_us,
            "finding": self.finding,
            "changes": changes,
            "measures": [each.data() for each in self.measures],
        }


def drift(runs: Sequence[Run], backend: str, at_us: int | None = None) -> Drift | None:
    """Return how `backend` behaved before and from `at_us` on; None if no run of `runs` asked it.

    Without a moment the later half of the runs is held against the earlier one.
    """
    asked = [run for run in runs if any(each.backend == backend for each in run.inferences)]
    if not asked:
        return None
    at = asked[len(asked) // 2].start_us if at_us is None else at_us
    windows = tuple([run for run in asked if (run.start_us >= at) is late] for late in (False, True))
    of_window = ([_sends(run, backend) for run in windows[0]], [_sends(run, backend) for run in windows[1]])
    alpha = ALPHA / (len(_FIGURES) + len(_SHARES))
    measures = [_figure(figure, *of_window, alpha) for figure in _FIGURES]
    measures += [_share(share, *of_window, alpha) for share in _SHARES]
    changes = tuple(_changes(asked, backend))
    return Drift(backend=backend, at_us=at, changes=changes, measures=tuple(measures))


def _sends(run: Run, backend: str) -> list[Send]:
    return [each for each in run.inferences if each.backend == backend]


def _latency(send: Send) -> float | None:
    return None if send.latency_us is None or send.status != "ok" else send.latency_us / 1000


_FIGURES: Final[Sequence[Figure]] = (
    ("latency", "ms", _latency),
    ("tokens of a reply", "tokens", lambda send: send.tokens_out),
    ("size of a reply", "bytes", lambda send: send.bytes_back if send.status == "ok" else None),
    ("size of a request", "bytes", lambda send: send.bytes),
)
_SHARES: Final[Sequence[Share]] = (
    ("runs with a reply of no use", lambda send: bool(send.failure)),
    ("runs with a send that failed", lambda send: send.status not in {"", "ok"}),
)


def _figure(
    figure: Figure, before: Sequence[Sequence[Send]], after: Sequence[Sequence[Send]], alpha: float
) -> Measure:
    """Compare the medians of runs."""
    name, unit, of = figure
    sides = [_medians(of, window) for window in (before, after)]
    p = mann_whitney(*sides) if min(map(len, sides)) >= ENOUGH else None
    values = [median(side) if side else None for side in sides]
    return Measure(
        name=name,
        unit=unit,
        before_n=len(sides[0]),
        after_n=len(sides[1]),
        before=values[0],
        after=values[1],
        p=p,
        finding=_finding(p, alpha),
    )


def _medians(of: Callable[[Send], float | None], window: Sequence[Sequence[Send]]) -> list[float]:
    known = ([value for send in run if (value := of(send)) is not None] for run in window)
    return [median(values) for values in known if values]


def _share(
    share: Share, before: Sequence[Sequence[Send]], after: Sequence[Sequence[Send]], alpha: float
) -> Measure:
    """Compare the shares of runs in which it came at all."""
    name, of = share
    met = [sum(any(map(of, run)) for run in window) for window in (before, after)]
    sizes = len(before), len(after)
    p = fisher(met[0], sizes[0], met[1], sizes[1]) if min(sizes) >= ENOUGH else None
    return Measure(
        name=name,
        unit="share",
        before_n=sizes[0],
        after_n=sizes[1],
        before=met[0] / sizes[0] if sizes[0] else None,
        after=met[1] / sizes[1] if sizes[1] else None,
        p=p,
        finding=_finding(p, alpha),
    )


def _finding(p: float | None, alpha: float) -> Finding:
    if p is None:
        return "too few"
    return "changed" if p < alpha else "no change seen"


def _changes(runs: Sequence[Run], backend: str) -> Iterator[Change]:
    """Yield where model, locality, capabilities or the runner's own prompts are not those of the run before.

    Within a log a backend is first what was declared and then what was found: the last record of each log
    counts.
    """
    logs = [list(group)[-1] for _, group in groupby(runs, key=lambda run: run.log)]
    for before, after in pairwise(logs):
        was, now = (_facts(run, backend) for run in (before, after))
        kinds = (
            ("model", was.model, now.model),
            ("locality", was.locality, now.locality),
            ("capabilities", was.caps_digest, now.caps_digest),
            ("prompts", before.prompts, after.prompts),
        )
        for what, one, other in kinds:
            if one != other:
                yield Change(what=what, before=one, after=other, task=after.task, log=after.log, seq=now.seq)


def _facts(run: Run, backend: str) -> BackendFacts:
    unknown = BackendFacts(name=backend, model="", locality="", caps_digest="", seq=run.first)
    return next((each for each in run.backends if each.name == backend), unknown)


def mann_whitney(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the two-sided probability that samples of one distribution differ as these do, or more.

    Both have at least one value. 1.0 where all values are the same.
    """
    n, m = len(one), len(other)
    both = sorted([*one, *other])
    ranks: dict[float, float] = {}
    for rank, value in enumerate(both, start=1):
        ranks.setdefault(value, rank)
    counts = Counter(both)
    mean_rank = {value: first + (counts[value] - 1) / 2 for value, first in ranks.items()}
    u = sum(mean_rank[value] for value in one) - n * (n + 1) / 2
    ties = sum(count**3 - count for count in counts.values())
    size = n + m
    variance = n * m / 12 * ((size + 1) - ties / (size * (size - 1)))
    if variance <= 0:
        return 1.0
    distance = max(abs(u - n * m / 2) - 0.5, 0.0)
    return erfc(distance / sqrt(variance) / sqrt(2))


def fisher(met: int, of: int, other_met: int, other_of: int) -> float:
    """Return the two-sided probability of shares as different as `met` of `of` and `other_met` of `other_of`.

    Under the hypothesis that both have one share. Exact.
    """
    total, all_met = of + other_of, met + other_met
    ways = [
        comb(all_met, k) * comb(total - all_met, of - k)
        for k in range(max(0, all_met - other_of), min(of, all_met) + 1)
    ]
    seen = comb(all_met, met) * comb(total - all_met, of - met)
    return sum(each for each in ways if each <= seen) / sum(ways)
