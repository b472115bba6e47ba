# SPDX-License-Identifier: Apache-2.0
"""The tally: what is counted in a run, added up over parts and processes.

Owns the counters and their sum. Holds names and numbers only, never a secret. Leaves shares and verdicts to
`report`.
"""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Final

from runner.adapters.leakbench.bench import Outcome, Result
from runner.adapters.leakbench.ledger import Matching
from runner.adapters.leakbench.plan import Defence, Split, Trial

LABELLED: Final = "labelled source"
TYPED: Final = "typed text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a leak happened though none may: everything but the very secret."""

    kind: str
    transform: str
    carrier: str
    split: str
    plant: str
    defence: str


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts by name. `first` holds for each place that failed the number of its first trial."""

    outcomes: Counter[tuple[Defence, str, Outcome]] = field(default_factory=Counter)
    """By defence and where the secret came from."""
    secrets: Counter[tuple[Defence, bool]] = field(default_factory=Counter)
    """Leaks by defence, and whether they were of a class that may not leave."""
    typed: Counter[tuple[str, str, Split, Outcome]] = field(default_factory=Counter)
    """By kind, transform and split, where nothing but detectors stood."""
    carriers: Counter[tuple[Defence, str, Outcome]] = field(default_factory=Counter)
    held: Counter[bool] = field(default_factory=Counter)
    """Of the trials that must not leak: whether they held."""
    first: dict[Place, int] = field(default_factory=dict)
    broken: Counter[Place] = field(default_factory=Counter)
    benign: Counter[tuple[Defence, Outcome]] = field(default_factory=Counter)
    steps: Counter[bool] = field(default_factory=Counter)
    """Of the steps of ordinary tasks: whether they needed an approval."""
    matching: Counter[str] = field(default_factory=Counter)
    local: Counter[str] = field(default_factory=Counter)
    """Of the trials that asked the local model only: `trials`, and `received` at the remote one."""
    faults: Counter[str] = field(default_factory=Counter)
    """Trials that ended in an error, by its kind; their trials are in no other counter."""

    def add(self, trial: Trial, result: Result, ceiling: int) -> None:
        """Count one trial under a profile that lets classes up to `ceiling` leave."""
        defence, outcome, leaked = trial.defence, result.outcome, result.outcome is Outcome.LEAKED
        labelled = trial.plant.labelled
        self.outcomes[defence, LABELLED if labelled else TYPED, outcome] += 1
        self.carriers[defence, trial.carrier.value, outcome] += 1
        if leaked:
            self.secrets[defence, trial.is_secret(ceiling)] += 1
        if defence.detectors and not (defence.labels and labelled):
            self.typed[trial.kind.name, trial.transform.name, trial.split, outcome] += 1
        if trial.must_hold(ceiling):
            self.held[not leaked] += 1
            if leaked:
                place = _place(trial)
                self.broken[place] += 1
                self.first.setdefault(place, trial.number)
        self.match(result.matching)

    def match(self, matching: Matching) -> None:
        """Count how records and requests agree."""
        for each in fields(matching):
            self.matching[each.name] += getattr(matching, each.name)

    def merge(self, other: "Tally") -> None:
        """Add `other`, a later part of the same run."""
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))
        for place, number in other.first.items():
            self.first[place] = min(number, self.first.get(place, number))


_COUNTERS: Final = tuple(each.name for each in fields(Tally) if each.name != "first")


def _place(trial: Trial) -> Place:
    return Place(
        kind=trial.kind.name,
        transform=trial.transform.name,
        carrier=trial.carrier.value,
        split=trial.split.value,
        plant=trial.plant.value,
        defence=trial.defence.value,
    )
