# SPDX-License-Identifier: Apache-2.0
"""Human declassification: what a person let go to one backend, and what is left once that is subtracted.

Owns the yeses of one task, which of its blocks they cover, and the label of the rest. Leaves asking to
`consent.py`, what is cut from what to `cuts.py`, showing where covered text stands in the bytes to
`marking.py`, and judging to `Perimeter.release()`. Carries I8: a yes covers the block it names, what is cut
from it, and what that very backend said about it, until it expires; everything else the task has seen counts
as before. C3 is never covered.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, TypeAlias

from runner.kernel.labels import DataClass, Label, join_labels
from runner.kernel.messages import Block
from runner.kernel.ports import Classifier, Hit
from runner.perimeter.classify import EchoIndex, carried
from runner.perimeter.cuts import Regions, cuts, merged
from runner.perimeter.finding import ask_classifier

LEAST_LEFT_US: Final = 10_000_000
"""How long a yes must last beyond now to cover a send, in microseconds: its record comes a little later."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """What is covered of a block: `regions` of its text. `declared`, `default`, `detected` stay of its label.

    What lies outside of the regions counts for what is found in it, and for these three. `detected` is what
    was said of the text as a whole, and has no place in it that could lie in a region.
    """

    regions: Regions
    declared: DataClass = DataClass.C0
    default: DataClass = DataClass.C0
    detected: DataClass = DataClass.C0


class Clearances:
    """The yeses of one task. Not shared between threads: the event loop's alone."""

    __slots__ = ("_asked", "_cuts", "_given", "_made", "_opinions", "_said")

    def __init__(self) -> None:
        self._given: list[Clearance] = []
        self._asked: set[tuple[str, str]] = set()
        self._made: dict[str, tuple[Block, ...]] = {}
        self._cuts: dict[tuple[str, str], Regions] = {}  # of one block, cut from another: both never change
        self._said: dict[str, str] = {}
        self._opinions: dict[str, DataClass] = {}

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

    def opined(self, block: Block, found: DataClass) -> None:
        """Note that `block` says what a second opinion `found` in its input."""
        self._opinions[block.id] = found

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
    ) -> dict[str, Cover]:
        """Return what is covered of `blocks` (of the task, in the order they were minted), by block id.

        `above` is the backend's ceiling; `also` are ids of blocks to be taken as covered whole. Media and
        vectors are not covered: nobody can be shown what they say.
        """
        named = self._named(backend, now_us)
        covered: dict[str, Cover] = {}
        for block in blocks if named or also else ():
            given = _whole(block) if block.id in also else _together(block, named.get(block.id, ()))
            cover = self._cover(block, given, covered, backend, above)
            if cover is not None:
                covered[block.id] = cover
        return covered

    def open_questions(
        self,
        blocks: Iterable[Block],
        backend: str,
        *,
        above: DataClass,
        now_us: int,
        most: int,
        outside: Outside,
    ) -> list[Block]:
        """Return the blocks above the class `above` that only a person could cover, in order.

        One that is covered in part is among them if the rest of it is above, as `outside` finds. No more than
        `most` and one: then there are too many, and nothing further is looked at.
        """
        named = self._named(backend, now_us)
        covered: dict[str, Cover] = {}

        def asking() -> Iterator[Block]:
            for block in blocks:
                cover = None
                if named or covered:  # without any yes nothing is covered
                    given = _together(block, named.get(block.id, ()))
                    cover = self._cover(block, given, covered, backend, above)
                if _rest(block, cover, outside).data_class > above:
                    yield block
                    cover = self._cover(block, _whole(block), covered, backend, above)
                if cover is not None:
                    covered[block.id] = cover

        return list(islice(asking(), most + 1))

    def _named(self, backend: str, now_us: int) -> dict[str, list[Clearance]]:
        """Return the yeses that count, by block."""
        named: dict[str, list[Clearance]] = {}
        for each in self.valid(backend, now_us):
            named.setdefault(each.block, []).append(each)
        return named

    def _cover(
        self,
        block: Block,
        named: Cover | None,
        covered: Mapping[str, Cover],
        backend: str,
        above: DataClass,
    ) -> Cover | None:
        """Return what is covered of `block` once those before it are `covered` and it is `named` itself."""
        if block.label.data_class is DataClass.C3:
            return None
        if named is not None and is_readable(block):
            return named
        if self._said.get(block.id) == backend:
            return _whole(block)
        return self._carried(block, covered, above)

    def _carried(self, block: Block, covered: Mapping[str, Cover], above: DataClass) -> Cover | None:
        """Return what of `block`, cut from others, is covered because they are; None for nothing.

        Each input is covered, or may leave anyway. What is cut from an input that is covered as a whole is
        looked for in the text. Of one that is covered in part, the place is known only where the whole of it
        stands in `block`, once; and if `block` is a second opinion, that is on all of it and stays. The rest
        of the text is none of it, and is judged.
        """
        inputs = self._made.get(block.id, ())
        sources = [each for each in inputs if each.id in covered]
        if any(each.label.data_class > above for each in inputs if each.id not in covered):
            return None
        regions: list[tuple[int, int]] = []
        stays = DataClass.C0
        for each in sources:
            cover = covered[each.id]
            if cover == _whole(each):
                regions += self._cut(block, each)
            elif block.text.count(each.text) == 1:
                at = block.text.index(each.text)
                regions += [(at + start, at + end) for start, end in cover.regions]
                if cover.regions != _whole(each).regions:
                    stays = max(stays, cover.detected, self._opinions.get(block.id, DataClass.C0))
            else:
                return None
        told = [covered.get(each.id, each.label) for each in inputs]
        return (
            None
            if not regions
            else Cover(
                regions=merged(regions),
                declared=max(each.declared for each in told),
                default=max(each.default for each in told),
                detected=stays,
            )
        )

    def _cut(self, block: Block, source: Block) -> Regions:
        key = (block.id, source.id)
        if key not in self._cuts:
            self._cuts[key] = cuts(block.text, source.text)
        return self._cuts[key]


def is_readable(block: Block) -> bool:
    """Return whether `block` is a text that a person can be shown: no media, and not empty."""
    return bool(block.text) and block.media is None


def left_of(blocks: Iterable[Block], covered: Mapping[str, Cover], outside: Outside) -> Label:
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


def _rest(block: Block, cover: Cover | None, outside: Outside) -> Label:
    if cover is None:
        return block.label
    whole = cover.regions == _whole(block).regions
    detected = DataClass.C0 if whole else outside(block.text, cover.regions)
    return replace(
        block.label,
        declared=cover.declared,
        default=cover.default,
        detected=max(detected, cover.detected),
    )


def _whole(block: Block) -> Cover:
    return Cover(regions=((0, len(block.text)),))


def _together(block: Block, given: Sequence[Clearance]) -> Cover | None:
    """Return what all yeses together cover of `block`. Parts of it leave what was said of the whole."""
    if not given:
        return None
    regions: list[tuple[int, int]] = []
    for each in given:
        if each.spans is None:
            return _whole(block)
        regions += each.spans
    return Cover(regions=merged(regions), declared=block.label.declared, default=block.label.default)
