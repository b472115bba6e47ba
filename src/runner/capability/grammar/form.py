# SPDX-License-Identifier: Apache-2.0
"""The whole form of a schema: every goal reached from the root, with what can really be produced.

Owns the graph of goals and its pruning (a goal is productive when some finite value satisfies it: the least
fixed point, as for the rules of a context-free grammar). Leaves text to ``emit`` and ``lower``.

Invariant: after pruning every goal has a shape and every shape can be completed, so no rule is a dead end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from .model import (
    ArrayShape,
    Goal,
    Ledger,
    ObjectShape,
    SchemaRefusedError,
    Shape,
)
from .shapes import goal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .expand import Expander

_GOAL_LIMIT = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Goals and their shapes, in the order of discovery; ``root`` is the schema itself."""

    root: Goal
    shapes: dict[Goal, tuple[Shape, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to be an item of a counted array: its goal, and which counts it raises."""

    goal: Goal
    counts: tuple[bool, ...]


def options(shape: ArrayShape, index: int) -> list[Option]:
    """Return the ways the item at ``index`` can count for the ``contains`` of ``shape``."""
    base = shape.prefix[index] if index < len(shape.prefix) else shape.rest
    sides = []
    for contains in shape.contains:
        if index < contains.start:
            sides.append([(frozenset[int](), False)])
        elif contains.hi is None:
            sides.append([(frozenset({contains.item}), True), (frozenset(), False)])
        else:
            sides.append([(frozenset({contains.item}), True), (frozenset({~contains.item}), False)])
    return [
        Option(goal=goal(base.union(*(side[0] for side in pick))), counts=tuple(side[1] for side in pick))
        for pick in product(*sides)
    ]


def horizon(shape: ArrayShape) -> int:
    """Return the index from which every item of ``shape`` has the same options."""
    return max(len(shape.prefix), *(contains.start for contains in shape.contains), 0)


def children(shape: Shape) -> Iterator[Goal]:
    """Yield every goal that ``shape`` mentions."""
    match shape:
        case ObjectShape(members=members, extras=extras):
            yield from (member.goal for member in members)
            yield from (extra.goal for extra in extras)
        case ArrayShape(contains=()):
            yield from shape.prefix
            yield shape.rest
        case ArrayShape():
            for index in range(horizon(shape) + 1):
                yield from (option.goal for option in options(shape, index))


def build(root: Goal, expander: Expander, ledger: Ledger) -> Form:
    """Return the pruned form reached from ``root``.

    Raises ``TooLargeError`` past the budget and ``SchemaRefusedError`` when no value satisfies the schema.
    """
    found: dict[Goal, tuple[Shape, ...]] = {}
    queue = [root]
    while queue:
        wanted = queue.pop()
        if wanted in found:
            continue
        if len(found) >= _GOAL_LIMIT:
            raise SchemaRefusedError(f"the schema has more than {_GOAL_LIMIT} different parts")
        found[wanted] = expander.shapes(wanted)
        for shape in found[wanted]:
            fresh = [child for child in children(shape) if child not in found]
            ledger.spend(len(fresh) + 1, "size")
            queue.extend(fresh)
    return _prune(Form(root=root, shapes=found), ledger)


def _prune(form: Form, ledger: Ledger) -> Form:
    good: set[Goal] = set()
    grew = True
    while grew and len(good) < len(form.shapes):
        grew = False
        for wanted, shapes in reversed(form.shapes.items()):
            ledger.spend(1, "size")
            if wanted not in good and any(_completes(shape, good) for shape in shapes):
                good.add(wanted)
                grew = True
    if form.root not in good:
        raise SchemaRefusedError("no value satisfies the schema")
    kept: dict[Goal, tuple[Shape, ...]] = {}
    queue = [form.root]
    while queue:
        wanted = queue.pop()
        if wanted in kept:
            continue
        kept[wanted] = tuple(_pruned(shape, good) for shape in form.shapes[wanted] if _completes(shape, good))
        queue.extend(child for shape in kept[wanted] for child in children(shape) if child in good)
    return Form(root=form.root, shapes=kept)


def _completes(shape: Shape, good: set[Goal]) -> bool:
    match shape:
        case ObjectShape(members=members, extras=extras, lo=lo):
            if not all(member.goal in good for member in members if member.required):
                return False
            if any(extra.needed for extra in extras):
                return any(extra.needed and extra.goal in good for extra in extras)
            return any(extra.goal in good for extra in extras) or lo <= sum(m.goal in good for m in members)
        case ArrayShape(contains=()):
            return shape.lo <= _reach(shape, good)
        case ArrayShape():
            return _counted(shape, good)
    return True


def _reach(shape: ArrayShape, good: set[Goal]) -> float:
    """Return how many items can be produced one after the other."""
    for index, item in enumerate(shape.prefix):
        if item not in good:
            return index
    return float("inf") if shape.rest in good else len(shape.prefix)


def _counted(shape: ArrayShape, good: set[Goal]) -> bool:
    """Whether a counted array can end: a walk over (items so far, counts so far)."""
    last = max(horizon(shape), shape.lo) + sum(contains.lo for contains in shape.contains) + 1
    states = {(0,) * len(shape.contains)}
    for index in range(last + 1):
        if index >= shape.lo and any(satisfied(shape, counts) for counts in states):
            return True
        if shape.hi is not None and index >= shape.hi:
            return False
        usable = [option for option in options(shape, index) if option.goal in good]
        states = {
            after for counts in states for option in usable if (after := advance(shape, counts, option))
        }
    return False


def satisfied(shape: ArrayShape, counts: tuple[int, ...]) -> bool:
    """Whether the lower counts are reached."""
    return all(count >= contains.lo for count, contains in zip(counts, shape.contains, strict=True))


def advance(shape: ArrayShape, counts: tuple[int, ...], option: Option) -> tuple[int, ...] | None:
    """Return the counts after an item, capped where they do not matter, or ``None`` past an upper one."""
    result = []
    for count, raised, contains in zip(counts, option.counts, shape.contains, strict=True):
        after = count + raised
        if contains.hi is not None and after > contains.hi:
            return None
        result.append(after if contains.hi is not None else min(after, contains.lo))
    return tuple(result)


def _pruned(shape: Shape, good: set[Goal]) -> Shape:
    match shape:
        case ObjectShape(members=members, extras=extras):
            return ObjectShape(
                members=tuple(member for member in members if member.goal in good),
                extras=tuple(extra for extra in extras if extra.goal in good),
                lo=shape.lo,
                hi=shape.hi,
            )
        case ArrayShape(contains=()):
            reach = _reach(shape, good)
            if reach == float("inf"):
                return shape
            hi = int(reach) if shape.hi is None else min(shape.hi, int(reach))
            return replace(shape, prefix=shape.prefix[:hi], hi=hi)
    return shape
