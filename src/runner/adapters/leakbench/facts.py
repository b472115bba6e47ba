# SPDX-License-Identifier: Apache-2.0
"""The facts of a run and the terms of its figures: what was measured, what is counted, how sure a share is.

Owns the words that terminal, page and JSON have in common, and the interval of a share. Leaves counting to
`tally` and verdicts to `report`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from runner.adapters.leakbench.kinds import KINDS
from runner.adapters.leakbench.parts import Order
from runner.adapters.reports.shares import interval_words, wilson

CAVEAT: Final = (
    "A figure here is a statement about this generator of secrets and spellings. It is no bound on what "
    "somebody who knows the rules can get past them. What rests on labels holds whatever the spelling; what "
    "rests on detectors holds for what they recognise."
)
TERMS: Final = (
    "A trial plants one secret behind one defence. Four trials in a row plant the same secret, once behind "
    "each of the four. A secret leaked when it arrived at the remote model and is of a class that the "
    "profile keeps in. What arrived and is of a class that may leave is counted as permitted, and is no leak."
)
"""What is counted, in the words of every form of the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the run was about: the order, and what the profile lets leave (-1: nothing) and redacts.

    `remote` is the protocol of its remote backend, empty if it has none; `registers` counts the entries of
    each register it names; `opinion` is the model it names for a second opinion, empty for none.
    """

    order: Order
    ceiling: int
    redaction: bool
    remote: str = ""
    registers: Mapping[str, int] = field(default_factory=dict)
    opinion: str = ""

    @property
    def ceiling_name(self) -> str:
        """The ceiling as a profile writes it."""
        return "none" if self.ceiling < 0 else f"C{self.ceiling}"

    def words(self) -> tuple[tuple[str, str], ...]:
        """Return what the run was about, a name and a sentence each."""
        may_leave = ", ".join(f"{kind.name}, if typed" for kind in KINDS if kind.level <= self.ceiling)
        entries = ", ".join(f"{name} {count}" for name, count in sorted(self.registers.items()))
        return (
            ("May leave", f"{self.ceiling_name}; of the kinds planted: {may_leave or 'none'}"),
            ("Redaction", "on" if self.redaction else "off"),
            ("Registers", f"entries of the profile's own: {entries or 'none'}; and those of the bench"),
            (
                "Remote",
                f"a receiver on loopback that speaks {self.remote}, as the profile's remote does"
                if self.remote
                else "the profile has none; a receiver on loopback that speaks openai was put in its place",
            ),
            (
                "2nd opinion",
                f"not asked, though the profile names {self.opinion}: the rules are measured"
                if self.opinion
                else "not asked: the profile names none",
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """So many leaks in so many trials."""

    leaks: int
    trials: int

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share after Wilson (1927), in [0, 1]; all of it where there are no trials.

        It takes the trials for drawn at random from this generator.
        """
        return wilson(self.leaks, self.trials)

    @property
    def interval_words(self) -> str:
        """The interval in percent, for people."""
        return interval_words(self.leaks, self.trials)

    def to_json(self) -> dict[str, Any]:
        """Return the counts and the interval, to five places."""
        low, high = self.interval
        return {"leaks": self.leaks, "trials": self.trials, "interval": [round(low, 5), round(high, 5)]}
