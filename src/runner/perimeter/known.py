# SPDX-License-Identifier: Apache-2.0
"""What a task knows when a call is decided: what the user said, what tools returned, what was asked before.

Owns that knowledge, and where a value comes from by it: named by the user, read from a result, or composed
by the model. Values are all there is to go by, so this errs one way: what stands in a result was read there,
even if the model might have known it. Leaves verdicts to `policy.py`. Carries I1: a plan of a control plane
is not the user, and knowing nothing vouches for nothing.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from runner.kernel.labels import BOTTOM, Integrity, Label, join_labels
from runner.kernel.messages import Block, Json, JsonObject
from runner.perimeter.named import is_named
from runner.perimeter.validate import parse_json


class Origin(StrEnum):
    """Who chose a value."""

    NAMED = "named"
    """The user's own text holds it."""
    READ = "read"
    """A tool returned it."""
    COMPOSED = "composed"
    """The model made it of all that it has seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a value comes from: its `origin`, the `tools` that returned it, and the label that follows."""

    origin: Origin
    label: Label
    tools: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool returned: its `text`, `records` and `items` where that is JSON.

    `by_user` says that the user named all that it was asked for, and that it was asked for something:
    `asked`, the texts among it.
    """

    tool: str
    text: str = field(repr=False)
    label: Label = BOTTOM
    by_user: bool = False
    asked: tuple[str, ...] = field(default=(), repr=False)
    records: tuple[JsonObject, ...] = field(default=(), repr=False)
    items: tuple[Json, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a task knows. `refused` are the calls that nobody said yes to, as `call_key` names them.

    `warned` says that somebody was there and did not say yes: the model wants something else than the user.
    """

    said: str = field(default="", repr=False)
    spoken: Label = BOTTOM
    results: tuple[Result, ...] = field(default=(), repr=False)
    mark: Label = BOTTOM
    calls: Mapping[str, int] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    warned: bool = False
    questions: int = 0


NOTHING_KNOWN = Known()
"""What is known without a task."""


def leaves(value: Json) -> Iterator[Json]:
    """Yield every text, number, truth value and nothing in `value`, the names of members included.

    A list or mapping that is empty counts as one of them, unless it is `value` itself: how such are nested
    can tell as much as a text.
    """
    stack: list[Json] = [] if value in ([], (), {}) else [value]
    while stack:
        match stack.pop():
            case Mapping() as members if members:
                stack += [*members, *members.values()]
            case (list() | tuple()) as items if items:
                stack += items
            case leaf:
                yield leaf


def repeats(value: Json) -> bool:
    """Return whether any list in `value` has one item twice: how often can tell as much as a text."""
    match value:
        case Mapping():
            return any(map(repeats, value.values()))
        case list() | tuple():
            return len({*map(_frozen, value)}) < len(value) or any(map(repeats, value))
        case _:
            return False


def _frozen(value: Json) -> Hashable:
    """Return what two values have in common only if they are the same JSON."""
    match value:
        case Mapping():
            return frozenset((name, _frozen(each)) for name, each in value.items())
        case list() | tuple():
            return tuple(map(_frozen, value))
        case _:
            return type(value), value


def provenance(value: Json, known: Known) -> Provenance:
    """Return where `value` comes from: the least trusted origin of what is in it, and the join of labels."""
    parts = [_of_leaf(leaf, known) for leaf in leaves(value)]
    worst = max((part.origin for part in parts), key=list(Origin).index, default=Origin.NAMED)
    return Provenance(
        origin=worst,
        label=join_labels(part.label for part in parts),
        tools=frozenset(tool for part in parts for tool in part.tools),
    )


def _of_leaf(leaf: Json, known: Known) -> Provenance:
    if is_named(leaf, known.said):
        return Provenance(origin=Origin.NAMED, label=known.spoken)
    holding = [result for result in known.results if is_named(leaf, result.text)]
    if not holding:
        return Provenance(origin=Origin.COMPOSED, label=known.mark)
    return Provenance(
        origin=Origin.READ,
        label=join_labels(result.label for result in holding),
        tools=frozenset(result.tool for result in holding),
    )


def result_of(
    tool: str, arguments: JsonObject, text: str, label: Label, *, said: str, drafted: bool = False
) -> Result:
    """Return what is kept of a call of `tool` that returned `text`. Total.

    What may be `drafted` by a model vouches for nothing: else it would write down what it may not choose, and
    read it back.
    """
    asked = [leaf for value in arguments.values() for leaf in leaves(value)]
    try:
        value = None if drafted else parse_json(text)
    except ValueError:
        value = None
    rows = value if isinstance(value, list) else [value]
    return Result(
        tool=tool,
        text=text,
        label=label,
        by_user=not drafted and bool(asked) and all(is_named(leaf, said) for leaf in asked),
        asked=tuple(leaf for leaf in asked if isinstance(leaf, str)),
        records=tuple(row for row in rows if isinstance(row, dict)),
        items=tuple(row for row in rows if isinstance(row, str | int | float)),
    )


class Ledger:
    """What one task keeps to tell where values come from. It grows, and what the user named may get less."""

    __slots__ = ("_calls", "_questions", "_refused", "_results", "_said", "_spoken", "_warned")

    def __init__(self, goal: Block) -> None:
        """Begin with `goal`: the user's words, unless its label says that it is somebody else's."""
        self._said = goal.text if goal.label.integrity is Integrity.USER else ""
        self._spoken = goal.label
        self._results: list[Result] = []
        self._calls: Counter[str] = Counter()
        self._refused: set[str] = set()
        self._warned = False
        self._questions = 0

    def known(self, mark: Label) -> Known:
        """Return what is known now, in a task of this `mark`."""
        return Known(
            said=self._said,
            spoken=self._spoken,
            results=tuple(self._results),
            mark=mark,
            calls=dict(self._calls),
            refused=frozenset(self._refused),
            warned=self._warned,
            questions=self._questions,
        )

    def says(self, text: str) -> None:
        """Take `text` for what the user said: the goal as a model elsewhere may see it, once one does.

        Else which of its guesses the user named would tell it what stands behind a token.
        """
        if self._said:
            self._said = text

    def runs(self, tool: str) -> None:
        """Count a call of `tool` that may run."""
        self._calls[tool] += 1

    def returned(
        self, tool: str, arguments: JsonObject, text: str, label: Label, *, drafted: bool = False
    ) -> None:
        """Keep what `tool` returned, which may be `drafted` by a model."""
        found = result_of(tool, arguments, text, label, said=self._said, drafted=drafted)
        self._results.append(found)

    def asked(self) -> None:
        """Count a question to a person."""
        self._questions += 1

    def was_refused(self, key: str, *, by_person: bool) -> None:
        """Keep that nobody said yes to the call that `key` names, and whether a person was there to."""
        self._refused.add(key)
        self._warned |= by_person
