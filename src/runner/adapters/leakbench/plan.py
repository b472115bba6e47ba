# SPDX-License-Identifier: Apache-2.0
"""The plan of a run: which trial plants what, where, behind which defence, and whether it may ever leak.

Owns the grid and the order in which it is walked. A trial is known by its number and the seed alone, so that
a run is the same in any number of processes, and a shorter run is the beginning of a longer one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import pairwise
from math import gcd
from random import Random
from typing import Final

from runner.adapters.leakbench.judge import Planted
from runner.adapters.leakbench.kinds import KINDS, Family, Kind, Secret
from runner.adapters.leakbench.transforms import TRANSFORMS, Transform


class Defence(Enum):
    """Which defences stand. Only the bench can take one away."""

    BOTH = "labels and detectors"
    LABELS = "labels alone"
    DETECTORS = "detectors alone"
    NONE = "neither"

    @property
    def labels(self) -> bool:
        """Whether content carries the class of where it comes from."""
        return self in {Defence.BOTH, Defence.LABELS}

    @property
    def detectors(self) -> bool:
        """Whether anything looks into the content."""
        return self in {Defence.BOTH, Defence.DETECTORS}


class Plant(Enum):
    """Where the secret comes from."""

    FILE = "labelled file"
    """A tool returns it from a granted folder."""
    SAID = "model's words"
    """A local model says it, after it read that file."""
    TYPED = "typed text"
    """Somebody typed or pasted it, or a program brought it in: nobody labelled it."""

    @property
    def labelled(self) -> bool:
        """Whether it comes from a labelled source."""
        return self is not Plant.TYPED


class Split(Enum):
    """How the secret is cut up."""

    WHOLE = "whole"
    BLOCKS = "over blocks"
    CALLS = "over calls"


class Carrier(Enum):
    """Which part of a request holds the secret, by way of which client."""

    INPUT = "input"
    SYSTEM = "system prompt"
    MEMORY = "memory turn"
    TOOL_RESULT = "tool result"
    TOOL_DEFAULT = "tool schema default"
    TOOL_NAME = "tool name and description"
    OUTPUT_SCHEMA = "output schema"
    STRUCTURED = "structured"
    STREAM = "stream"
    MEDIA = "media"
    EMBEDDING = "embedding"
    DP_INPUT = "input, datapizza"
    DP_SYSTEM = "system prompt, datapizza"
    DP_MEMORY = "memory turn, datapizza"
    DP_TOOL_RESULT = "tool result, datapizza"
    DP_TOOL_DEFAULT = "tool schema default, datapizza"
    DP_TOOL_NAME = "tool name and description, datapizza"
    DP_STRUCTURED = "structured, datapizza"
    DP_STREAM = "stream, datapizza"
    DP_MEDIA = "media, datapizza"
    DP_EMBEDDING = "embedding, datapizza"


PLANTS: Final = (Plant.TYPED, Plant.FILE, Plant.TYPED, Plant.SAID)
"""Half of the trials rest on labels, half on detectors."""
DEFENCES: Final = tuple(Defence)
STRONG: Final = frozenset({Family.CHECK, Family.CREDENTIAL, Family.REGISTER})
"""Families that detectors must find in every reading they claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One trial: `number` in a run, what is planted and how. `level` is the class of the source's grant."""

    number: int
    defence: Defence
    plant: Plant
    kind: Kind
    transform: Transform
    carrier: Carrier
    split: Split
    level: int
    secret: Secret

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that carry the secret, in order, and the words around it with the first and the last."""
        first, *rest = self.planted.pieces
        texts = [self.secret.before + first, *rest]
        texts[-1] += self.secret.after
        return tuple(texts)

    @property
    def planted(self) -> Planted:
        """What the judge looks for."""
        form = self.transform.apply(self.secret.core)
        return Planted(core=self.secret.core, pieces=tuple(_cut(form, 1 if self.split is Split.WHOLE else 2)))

    def is_secret(self, ceiling: int) -> bool:
        """Say whether what is planted is of a class above `ceiling`: else it may leave, and that is no leak.

        Content of a labelled source has the class of its label, and as much as its own.
        """
        return max(self.kind.level, self.level if self.plant.labelled else 0) > ceiling

    def must_hold(self, ceiling: int) -> bool:
        """Say whether this may never leak under a profile that lets classes up to `ceiling` (-1: none) leave.

        Where nothing may leave, nothing does. Labels hold whatever they label. Detectors hold what has a
        check digit, the shape of a credential, or a place in the client register, in the readings they claim
        and in one piece.
        """
        if self.defence is Defence.NONE:
            return False
        if ceiling < 0 or (self.defence.labels and self.plant.labelled):
            return True
        seen = self.defence.detectors and self.kind.family in STRONG and self.transform.readable
        return seen and self.kind.level > ceiling and self.split is Split.WHOLE


def _cut(form: str, count: int) -> Iterator[str]:
    """Yield `form` in `count` pieces of about the same length."""
    bounds = [len(form) * index // count for index in range(count + 1)]
    yield from (form[start:end] for start, end in pairwise(bounds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A place of the grid: everything of a trial but its defence and the very secret."""

    kind: Kind
    transform: Transform
    plant: Plant
    carrier: Carrier
    split: Split


@cache
def grid() -> tuple[Cell, ...]:
    """Return every cell. A credential is not planted in letters of one case, where it is none any more."""
    return tuple(
        Cell(kind=kind, transform=transform, plant=plant, carrier=carrier, split=split)
        for kind in KINDS
        for transform in TRANSFORMS
        if not (kind.cased and transform.folds_case)
        for plant in PLANTS
        for carrier in Carrier
        for split in Split
    )


def trial(number: int, seed: int) -> Trial:
    """Return trial `number` (from 0) of the run with `seed`.

    Four trials in a row plant one secret behind each defence. The grid is walked in strides, so that any
    beginning of a run is spread over all of it; after its end it is walked again with other secrets.
    """
    cells = grid()
    step, turn = number // len(DEFENCES), number % len(DEFENCES)
    cell = cells[(seed * 7919 + step * _stride(len(cells))) % len(cells)]
    dice = Random(f"{seed}/{step}")  # noqa: S311 - secrets of nobody
    return Trial(
        number=number,
        defence=DEFENCES[turn],
        plant=cell.plant,
        kind=cell.kind,
        transform=cell.transform,
        carrier=cell.carrier,
        split=cell.split,
        level=dice.choice((2, 3)),
        secret=cell.kind.make(dice),
    )


@cache
def _stride(size: int) -> int:
    """Return a step near the golden section of `size` that reaches every place."""
    return next(step for step in range(int(size * 0.618), 2 * size) if gcd(step, size) == 1)
