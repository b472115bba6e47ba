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
from runner.adapters.leakbench.facts import CAVEAT, TERMS, Facts, Share
from runner.adapters.leakbench.kinds import KINDS
from runner.adapters.leakbench.plan import DEFENCES, Defence, Split, trial
from runner.adapters.leakbench.tally import LABELLED, TYPED, Step, Tally
from runner.adapters.leakbench.transforms import TRANSFORMS

SOURCES: Final = (LABELLED, TYPED)
TYPED_LEAKS: Final = 50
"""Typed leaks that are listed, each to be made again from seed and number."""
CONTROL: Final = Defence.NONE
"""The run that must find leaks: else the bench shows nothing."""


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
        """Return in how many trials behind `defence` the secret leaked; what the profile permits is none."""
        return sum(self.tally.outcomes[defence, source, Outcome.LEAKED] for source in SOURCES)

    def share(self, defence: Defence, source: str) -> Share:
        """Return leaks and trials behind `defence` with the secret in `source`."""
        counts = self._by_source(defence)[source]
        return Share(leaks=counts[Outcome.LEAKED.value], trials=sum(counts.values()))

    def held(self, defence: Defence, source: str) -> Share:
        """Return the same of those trials only that may not leak."""
        held, lost = (self.tally.held[defence, source, each] for each in (True, False))
        return Share(leaks=lost, trials=held + lost)

    def must_hold(self) -> Share:
        """Return leaks and trials of all that may not leak."""
        shares = [self.held(defence, source) for defence in DEFENCES for source in SOURCES]
        return Share(leaks=sum(each.leaks for each in shares), trials=sum(each.trials for each in shares))

    def must_hold_words(self) -> str:
        """Say how many trials may not leak, of how many, and where they are."""
        whole, total = self.must_hold(), sum(map(self.trials, DEFENCES))
        each = ", ".join(
            f"{sum(self.held(defence, source).trials for source in SOURCES)} behind {defence.value}"
            for defence in DEFENCES
        )
        return f"{whole.trials} of all {total} trials ({each}); {whole.leaks} of them leaked"

    def typed_leaks(self) -> Iterator[dict[str, Any]]:
        """Yield typed leaks of the profile as it is that nothing promised to stop, one a kind and spelling.

        In the order of their trials, `TYPED_LEAKS` at most. Each can be made again: `trial(number, seed)`.
        """
        seed = self.facts.order.seed
        for number in sorted(self.tally.typed_first.values())[:TYPED_LEAKS]:
            each = trial(number, seed)
            yield {
                "kind": each.kind.name,
                "transform": each.transform.name,
                "carrier": each.carrier.value,
                "split": each.split.value,
                "seed": seed,
                "trial": number,
            }

    def false_denials(self, defence: Defence) -> Mapping[str, float]:
        """Return what came of the ordinary texts behind `defence`."""
        counts = {outcome: self.tally.benign[defence, outcome] for outcome in Outcome}
        texts, denied = sum(counts.values()), counts[Outcome.DENIED]
        share = round(denied / max(1, texts), 5)
        return {"texts": texts, "denied": denied, "redacted": counts[Outcome.REDACTED], "share": share}

    def autonomy(self) -> float:
        """Return the share of steps of ordinary tasks that went through with nobody asked: no denied one."""
        steps = self.tally.steps
        return round(steps[Step.ALONE] / max(1, steps.total()), 5)

    def steps_words(self) -> str:
        """Say what became of the steps of ordinary tasks."""
        steps = self.tally.steps
        return (
            f"{steps[Step.ALONE]} of {steps.total()} steps of ordinary tasks went through with nobody asked "
            f"({self.autonomy():.1%}); {steps[Step.ASKED]} wait for an approval, "
            f"{steps[Step.DENIED]} are denied"
        )

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
            "remote": {"protocol": facts.remote or "openai", "put_in_place": not facts.remote},
            "registers": dict(sorted(facts.registers.items())),
            "second_opinion": {"named": facts.opinion or None, "asked": False},
            "terms": TERMS,
            "seed": facts.order.seed,
            "trials": {defence.value: self.trials(defence) for defence in DEFENCES},
            "verdict": "fail" if failures else "pass",
            "failures": list(failures),
            "leaks": {defence.value: self.leaks(defence) for defence in DEFENCES},
            "totals": {
                defence.value: {source: self.share(defence, source).to_json() for source in SOURCES}
                for defence in DEFENCES
            },
            "outcomes": {defence.value: self._by_source(defence) for defence in DEFENCES},
            "must_hold": {
                "trials": self.must_hold().trials,
                "leaks": self.must_hold().leaks,
                "by_defence": {
                    defence.value: {
                        source: {"leaks": share.leaks, "trials": share.trials}
                        for source in SOURCES
                        for share in (self.held(defence, source),)
                    }
                    for defence in DEFENCES
                },
            },
            "leaked_places": list(self.places()),
            "typed_leaks": list(self.typed_leaks()),
            "false_denials": {defence.value: dict(self.false_denials(defence)) for defence in DEFENCES},
            "steps": {step.value: tally.steps[step] for step in Step},
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
            for source in SOURCES
        }

    def split_counts(self, split: Split) -> dict[str, int]:
        """Return the outcomes of secrets cut up like that, where nothing but detectors stood."""
        counts = {outcome.value: 0 for outcome in Outcome}
        for (_, _, each, outcome), count in self.tally.typed.items():
            if each is split:
                counts[outcome.value] += count
        return counts
