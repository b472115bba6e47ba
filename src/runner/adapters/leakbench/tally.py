# SPDX-License-Identifier: Apache-2.0
"""The tally: what is counted in a run, added up over parts and processes.

Owns the counters and their sum. Holds names and numbers only, never a secret. Leaves shares and verdicts to
`report`.
"""

from collections import Counter
from dataclasses import dataclass, field, fields
from enum import Enum
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


class Step(Enum):
    """What became of a step of an ordinary task: a question to the remote model, or a call of a tool."""

    ALONE = "alone"
    """It went through, and nobody was asked."""
    ASKED = "asked"
    """It waits for a person's approval."""
    DENIED = "denied"
    """The gate refused it. Nobody was asked, and nothing was done."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts by name. `first` holds for each place that failed the number of its first trial.

    `typed_first` holds the same, by kind and transform, for typed leaks of the profile as it is that nothing
    promised to stop: seed and number make the rest again.
    """

    outcomes: Counter[tuple[Defence, str, Outcome]] = field(default_factory=Counter)
    """By defence and where the secret came from."""
    typed: Counter[tuple[str, str, Split, Outcome]] = field(default_factory=Counter)
    """By kind, transform and split, where nothing but detectors stood."""
    carriers: Counter[tuple[Defence, str, Outcome]] = field(default_factory=Counter)
    held: Counter[tuple[Defence, str, bool]] = field(default_factory=Counter)
    """Of the trials that must not leak, by defence and where the secret came from: whether they held."""
    first: dict[Place, int] = field(default_factory=dict)
    broken: Counter[Place] = field(default_factory=Counter)
    typed_first: dict[tuple[str, str], int] = field(default_factory=dict)
    benign: Counter[tuple[Defence, Outcome]] = field(default_factory=Counter)
    steps: Counter[Step] = field(default_factory=Counter)
    matching: Counter[str] = field(default_factory=Counter)
    local: Counter[str] = field(default_factory=Counter)
    """Of the trials that asked the local model only: `trials`, and `received` at the remote one."""
    faults: Counter[str] = field(default_factory=Counter)
    """Trials that ended in an error, by its kind; their trials are in no other counter."""

    def add(self, trial: Trial, result: Result, ceiling: int) -> None:
        """Count one trial under a profile that lets classes up to `ceiling` leave."""
        defence, outcome, leaked = trial.defence, result.outcome, result.outcome is Outcome.LEAKED
        labelled, must_hold = trial.plant.labelled, trial.must_hold(ceiling)
        source = LABELLED if labelled else TYPED
        self.outcomes[defence, source, outcome] += 1
        self.carriers[defence, trial.carrier.value, outcome] += 1
        if defence.detectors and not (defence.labels and labelled):
            self.typed[trial.kind.name, trial.transform.name, trial.split, outcome] += 1
        if must_hold:
            self.held[defence, source, not leaked] += 1
        if leaked and must_hold:
            place = _place(trial)
            self.broken[place] += 1
            self.first.setdefault(place, trial.number)
        elif leaked and defence is Defence.BOTH:
            self.typed_first.setdefault((trial.kind.name, trial.transform.name), trial.number)
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
        for typed, number in other.typed_first.items():
            self.typed_first[typed] = min(number, self.typed_first.get(typed, number))


_COUNTERS: Final = tuple(each.name for each in fields(Tally) if each.name not in {"first", "typed_first"})


def _place(trial: Trial) -> Place:
    return Place(
        kind=trial.kind.name,
        transform=trial.transform.name,
        carrier=trial.carrier.value,
        split=trial.split.value,
        plant=trial.plant.value,
        defence=trial.defence.value,
    )
