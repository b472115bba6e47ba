# SPDX-License-Identifier: Apache-2.0
"""Human declassification: what a person let go to one backend, and what is left once that is subtracted.

Owns the yeses of one task, which of its blocks they cover, and the label of the rest. Leaves asking to
`consent.py`, showing where covered text stands in the bytes to `marking.py`, and judging to
`Perimeter.release()`. Carries I8: a yes covers the block it names, what is cut from it, and what that very
backend said about it, until it expires; everything else the task has seen counts as before. C3 is never
covered.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from runner.kernel.labels import DataClass, Label, join_labels
from runner.kernel.messages import Block
from runner.kernel.ports import Classifier, Hit
from runner.perimeter.classify import EchoIndex, carried
from runner.perimeter.finding import ask_classifier

LEAST_LEFT_US: Final = 10_000_000
"""How long a yes must last beyond now to cover a send, in microseconds: its record comes a little later."""

Regions: TypeAlias = tuple[tuple[int, int], ...]
"""Stretches of a text, in code points, the ends excluded."""
Outside: TypeAlias = Callable[[str, Regions], DataClass]
"""Returns the class of what is found in a text outside of some regions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearance:
    """A person's yes: `block` of this task may go to `backend` until `expires` (microseconds since 1970).

    `spans` are the parts of it, None all of it. `approval` is the call id on record, `commit` what it binds.
    """

    block: str
    backend: str
    spans: Regions | None
    expires: int
    approval: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtraction:
    """What `release()` subtracts from a request to `backend`, until `until` at the latest.

    `label` is that of all the task has seen without what is covered; `regions` says where covered text stands
    in the leaves of the body, by their number.
    """

    backend: str
    until: int
    label: Label
    regions: Mapping[int, Regions]


class Clearances:
    """The yeses of one task. Not shared between threads: the event loop's alone."""

    __slots__ = ("_asked", "_given", "_made", "_said")

    def __init__(self) -> None:
        self._given: list[Clearance] = []
        self._asked: set[tuple[str, str]] = set()
        self._made: dict[str, tuple[Block, ...]] = {}
        self._said: dict[str, str] = {}

    def give(self, clearance: Clearance) -> None:
        """Take a person's yes."""
        self._given.append(clearance)

    def ask_once(self, backend: str, block: Block) -> bool:
        """Return whether nobody was asked about `block` and `backend` yet, and note that somebody is now."""
        fresh = (backend, block.id) not in self._asked
        self._asked.add((backend, block.id))
        return fresh

    def made(self, block: Block, inputs: Sequence[Block]) -> None:
        """Note that program code cut `block` from `inputs`."""
        self._made[block.id] = tuple(inputs)

    def said(self, block: Block, backend: str) -> None:
        """Note that `backend` answered `block` to a request that a clearance let through."""
        self._said[block.id] = backend

    def valid(self, backend: str, now_us: int) -> list[Clearance]:
        """Return the yeses for `backend` that will last, the first to expire first."""
        found = [each for each in self._given if each.backend == backend]
        lasting = [each for each in found if now_us + LEAST_LEFT_US < each.expires]
        return sorted(lasting, key=lambda each: each.expires)

    def covered(
        self,
        blocks: Iterable[Block],
        backend: str,
        *,
        above: DataClass,
        now_us: int,
        also: AbstractSet[str] = frozenset(),
    ) -> dict[str, Regions]:
        """Return what is covered of `blocks` (of the task, in the order they were minted), by block id.

        `above` is the backend's ceiling; `also` are ids of blocks to be taken as covered whole. Media and
        vectors are not covered: nobody can be shown what they say.
        """
        given = self.valid(backend, now_us)
        named = {each.block: each.spans for each in given} | dict.fromkeys(also)
        covered: dict[str, Regions] = {}
        for block in blocks if named else ():
            if block.label.data_class is DataClass.C3:
                continue
            if block.id in named and is_readable(block):
                spans = named[block.id]
                covered[block.id] = _whole(block) if spans is None else spans
            elif self._said.get(block.id) == backend:
                covered[block.id] = _whole(block)
            elif regions := _carried(block, self._made.get(block.id, ()), covered, above):
                covered[block.id] = regions
        return covered

    def open_questions(
        self, blocks: Iterable[Block], backend: str, *, above: DataClass, now_us: int
    ) -> list[Block]:
        """Return the blocks above the class `above` that only a person could cover, in order."""
        listed, asking = list(blocks), list[Block]()
        for block in listed:
            if block.label.data_class <= above:
                continue
            also = frozenset(each.id for each in asking)
            if block.id not in self.covered(listed, backend, above=above, now_us=now_us, also=also):
                asking.append(block)
        return asking


def is_readable(block: Block) -> bool:
    """Return whether `block` is a text that a person can be shown: no media, and not empty."""
    return bool(block.text) and block.media is None


def left_of(blocks: Iterable[Block], covered: Mapping[str, Regions], outside: Outside) -> Label:
    """Return the label of all that `blocks` say without what is covered of them."""
    return join_labels(_rest(block, covered.get(block.id), outside) for block in blocks)


def class_outside(
    text: str, regions: Regions, classifier: Classifier, echo: EchoIndex, source: str | None = None
) -> DataClass:
    """Return the class of what detectors and echoes find in `text` outside of `regions`.

    Nothing of C3 is left out, nothing that has no place, and nothing inside an encoding or media, which no
    person can read. The whole text is judged, and then what lies in a region is left out: a name that makes a
    diagnosis privileged does so wherever it stands. Raises what the classifier raises.
    """
    finding = ask_classifier(classifier, text, source)
    placed = max((hit.data_class for hit in finding.spans), default=DataClass.C0)
    unplaced = finding.data_class if finding.data_class > placed else DataClass.C0
    counted = [hit.data_class for hit in finding.spans if _counts(hit, regions)]
    echoed = echo.class_of(text)
    if echoed is not DataClass.C3:
        echoed = echo.class_of(_without(text, regions))
    inside = [max(ask_classifier(classifier, each).data_class, echo.class_of(each)) for each in carried(text)]
    return max([unplaced, echoed, *counted, *inside])


def _counts(hit: Hit, regions: Regions) -> bool:
    if hit.data_class is DataClass.C3 or not hit.redactable:
        return True
    return not any(start <= hit.start and hit.end <= end for start, end in regions)


def _without(text: str, regions: Regions) -> str:
    """Return `text` without `regions`: what stands on both sides of one becomes neighbours."""
    pieces, position = [], 0
    for start, end in sorted(regions):
        pieces.append(text[position:start])
        position = max(position, end)
    return " ".join([*pieces, text[position:]])


def _rest(block: Block, regions: Regions | None, outside: Outside) -> Label:
    if regions is None:
        return block.label
    if regions == _whole(block):
        return replace(block.label, declared=DataClass.C0, default=DataClass.C0, detected=DataClass.C0)
    return replace(block.label, detected=outside(block.text, regions))


def _carried(
    block: Block, inputs: Sequence[Block], covered: Mapping[str, Regions], above: DataClass
) -> Regions:
    """Return what of `block`, cut from `inputs`, is covered because they are; () for nothing.

    Each input is covered, or may leave anyway. Of an input that is covered in part, the place is known only
    where the whole of it stands in `block`, once.
    """
    sources = [each for each in inputs if each.id in covered]
    if not sources or any(each.label.data_class > above for each in inputs if each.id not in covered):
        return ()
    if all(covered[each.id] == _whole(each) for each in sources):
        return _whole(block)
    if any(block.text.count(each.text) != 1 for each in sources):
        return ()
    places = [(block.text.index(each.text), covered[each.id]) for each in sources]
    return tuple((at + start, at + end) for at, regions in places for start, end in regions)


def _whole(block: Block) -> Regions:
    return ((0, len(block.text)),)
