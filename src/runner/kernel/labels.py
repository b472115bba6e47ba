# SPDX-License-Identifier: Apache-2.0
"""Labels: what is known about a piece of content, and how that knowledge joins.

Owns the four data classes, integrity, and the join. Leaves the finding of classes to
`runner.perimeter.classify` and their lowering to a recorded declassification.
Carries I8: `join` never lowers anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import reduce
from typing import Self


class DataClass(IntEnum):
    """How sensitive content is. Ordinal: a higher class is more sensitive."""

    C0 = 0
    """Public: published or trivially public."""
    C1 = 1
    """Internal: business content, not personal."""
    C2 = 2
    """Personal data in the sense of the GDPR."""
    C3 = 3
    """Privileged: professional secrecy, health, judicial data, credentials."""

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the class named `name` ("C0".."C3"); raise `ValueError` for any other text."""
        if name not in cls.__members__:
            raise ValueError("a data class is one of C0, C1, C2, C3")
        return cls[name]


class Integrity(IntEnum):
    """Who may have chosen the content. Ordinal: a higher value is more trusted."""

    UNTRUSTED = 0
    """Web pages, mail, attachments, tool servers."""
    PRACTICE = 1
    """The practice's own files."""
    PLAN = 2
    """A plan handed over by a control plane: below the user."""
    USER = 3
    """The person who gave the task, or the program that embeds the runner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What is known about one block of content.

    The class is kept in three parts, since they may be lowered by different acts only:

    - `declared`: a grant, a tool, a user or a register said so;
    - `default`: nobody said, so the kind of source decides;
    - `detected`: detectors found something in it.

    `matters` names the client matters the content belongs to; `sources` are the identities of
    what was read (ids minted by the runtime or names from the profile, never content).
    """

    declared: DataClass = DataClass.C0
    default: DataClass = DataClass.C0
    detected: DataClass = DataClass.C0
    integrity: Integrity = Integrity.USER
    matters: frozenset[str] = field(default_factory=frozenset)
    sources: frozenset[str] = field(default_factory=frozenset)

    @property
    def data_class(self) -> DataClass:
        """The class that counts: the maximum of the three parts."""
        return max(self.declared, self.default, self.detected)

    def join(self, other: "Label") -> "Label":
        """Return the least label that is at least as restrictive as both (a semilattice join)."""
        return Label(
            declared=max(self.declared, other.declared),
            default=max(self.default, other.default),
            detected=max(self.detected, other.detected),
            integrity=min(self.integrity, other.integrity),
            matters=self.matters | other.matters,
            sources=self.sources | other.sources,
        )

    def with_detected(self, detected: DataClass) -> "Label":
        """Return this label with its detected part raised to at least `detected`."""
        return replace(self, detected=max(self.detected, detected))


BOTTOM = Label()
"""The label of nothing at all: the neutral element of `join`."""


def join_labels(labels: Iterable[Label]) -> Label:
    """Return the join of `labels`; `BOTTOM` when there are none."""
    return reduce(Label.join, labels, BOTTOM)
