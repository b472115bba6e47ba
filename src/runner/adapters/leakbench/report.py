# SPDX-License-Identifier: Apache-2.0
"""The report: what a tally says about a profile, in words and numbers, and whether the run failed.

Owns verdict, shares and the JSON form. Leaves drawing to `page` and the terminal. A figure is a statement
about this generator, not a bound on adversaries, and every form of the report says so.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from runner.adapters.leakbench.bench import Outcome
from runner.adapters.leakbench.kinds import KINDS
from runner.adapters.leakbench.parts import Order
from runner.adapters.leakbench.plan import DEFENCES, Defence, Split
from runner.adapters.leakbench.tally import LABELLED, TYPED, Tally
from runner.adapters.leakbench.transforms import TRANSFORMS

CAVEAT: Final = (
    "A figure here is a statement about this generator of secrets and spellings. It is no bound on what "
    "somebody who knows the rules can get past them. What rests on labels holds whatever the spelling; what "
    "rests on detectors holds for what they recognise."
)
CONTROL: Final = Defence.NONE
"""The run that must find leaks: else the bench shows nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the run was about: the order, and what the profile lets leave (-1: nothing) and redacts."""

    order: Order
    ceiling: int
    redaction: bool

    @property
    def ceiling_name(self) -> str:
        """The ceiling as a profile writes it."""
        return "none" if self.ceiling < 0 else f"C{self.ceiling}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """A way to route questions: the share that the remote model may serve, and of secrets that reach it."""

    name: str
    utility: float
    leak_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A finished run."""

    facts: Facts
    tally: Tally

    def failures(self) -> tuple[str, ...]:
        """Return why the run failed, a sentence each; nothing when it passed."""
        tally = self.tally
        lost = sum(tally.broken.values())
        checks = (
            (lost, f"{lost} secrets leaked that may not leak"),
            (tally.matching["unrecorded"], "requests arrived that are on no record"),
            (tally.matching["unseen"], "records name sends that never arrived"),
            (sum(tally.faults.values()), "trials ended in an error"),
            (tally.local["received"], "requests left though only the local model was asked"),
            (not self.leaks(CONTROL), "without any defence no leak was found: the bench is blind"),
        )
        return tuple(sentence for fails, sentence in checks if fails)

    def trials(self, defence: Defence) -> int:
        """Return the number of trials behind `defence`."""
        return sum(count for (each, _, _), count in self.tally.outcomes.items() if each is defence)

    def leaks(self, defence: Defence) -> int:
        """Return how many secrets leaked behind `defence`; what the profile lets leave is none."""
        return self.tally.secrets[defence, True]

    def false_denials(self, defence: Defence) -> Mapping[str, float]:
        """Return what came of the ordinary texts behind `defence`."""
        counts = {outcome: self.tally.benign[defence, outcome] for outcome in Outcome}
        texts, denied = sum(counts.values()), counts[Outcome.DENIED]
        share = round(denied / max(1, texts), 5)
        return {"texts": texts, "denied": denied, "redacted": counts[Outcome.REDACTED], "share": share}

    def autonomy(self) -> float:
        """Return the share of steps of ordinary tasks that needed no approval."""
        steps = self.tally.steps
        return round(steps[False] / max(1, steps.total()), 5)

    def routings(self) -> tuple[Routing, ...]:
        """Return the three routings. With the local model alone nothing is served remotely."""
        local = self.tally.local
        with_gate, without = self.false_denials(Defence.BOTH), self.false_denials(CONTROL)
        return (
            Routing(name="local only", utility=0.0, leak_rate=local["received"] / max(1, local["trials"])),
            Routing(
                name="remote, with the gate",
                utility=1 - with_gate["share"],
                leak_rate=self._rate(Defence.BOTH),
            ),
            Routing(
                name="remote, without the gate", utility=1 - without["share"], leak_rate=self._rate(CONTROL)
            ),
        )

    def _rate(self, defence: Defence) -> float:
        return round(self.leaks(defence) / max(1, self.trials(defence)), 5)

    def cell(self, kind: str, transform: str, split: Split = Split.WHOLE) -> Mapping[str, int]:
        """Return the outcomes of one kind in one spelling, where nothing but detectors stood."""
        return {
            outcome.value: self.tally.typed[kind, transform, split, outcome]
            for outcome in Outcome
            if self.tally.typed[kind, transform, split, outcome]
        }

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object: the same for the same profile, seed and number of trials."""
        facts, tally = self.facts, self.tally
        failures = self.failures()
        return {
            "profile": facts.order.named,
            "ceiling": facts.ceiling_name,
            "redaction": "on" if facts.redaction else "off",
            "seed": facts.order.seed,
            "trials": {defence.value: self.trials(defence) for defence in DEFENCES},
            "verdict": "fail" if failures else "pass",
            "failures": list(failures),
            "leaks": {defence.value: self.leaks(defence) for defence in DEFENCES},
            "outcomes": {defence.value: self._by_source(defence) for defence in DEFENCES},
            "must_hold": {"trials": tally.held.total(), "leaks": tally.held[False]},
            "leaked_places": list(self.places()),
            "false_denials": {defence.value: dict(self.false_denials(defence)) for defence in DEFENCES},
            "autonomy": self.autonomy(),
            "matching": dict(sorted(tally.matching.items())),
            "local_only": dict(sorted(tally.local.items())),
            "faults": dict(sorted(tally.faults.items())),
            "routings": [asdict(routing) for routing in self.routings()],
            "typed": {
                kind.name: {
                    transform.name: dict(self.cell(kind.name, transform.name)) for transform in TRANSFORMS
                }
                for kind in KINDS
            },
            "splits": {split.value: self.split_counts(split) for split in Split},
            "caveat": CAVEAT,
        }

    def places(self) -> Iterator[dict[str, Any]]:
        """Yield where leaks happened that may not, the most frequent first, each with its first trial."""
        ordered = sorted(self.tally.broken.items(), key=lambda each: (-each[1], self.tally.first[each[0]]))
        for place, count in ordered:
            yield {**asdict(place), "leaks": count, "first_trial": self.tally.first[place]}

    def broken(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield kind, transform, leaks and first trial of what may not leak and did, most leaks first."""
        counts: Counter[tuple[str, str]] = Counter()
        first: dict[tuple[str, str], int] = {}
        for place, count in self.tally.broken.items():
            name, number = (place.kind, place.transform), self.tally.first[place]
            counts[name] += count
            first[name] = min(number, first.get(name, number))
        for (kind, transform), count in counts.most_common():
            yield kind, transform, count, first[kind, transform]

    def _by_source(self, defence: Defence) -> dict[str, dict[str, int]]:
        return {
            source: {outcome.value: self.tally.outcomes[defence, source, outcome] for outcome in Outcome}
            for source in (LABELLED, TYPED)
        }

    def split_counts(self, split: Split) -> dict[str, int]:
        """Return the outcomes of secrets cut up like that, where nothing but detectors stood."""
        counts = {outcome.value: 0 for outcome in Outcome}
        for (_, _, each, outcome), count in self.tally.typed.items():
            if each is split:
                counts[outcome.value] += count
        return counts
