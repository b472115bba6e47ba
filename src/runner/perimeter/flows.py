# SPDX-License-Identifier: Apache-2.0
"""What a grant says of a tool's arguments, of what it returns, and of where it carries things: frozen data.

Owns the shapes. A sink is a place from which nothing comes back: the network, files, a shell. Its arguments
are critical (whom, where, how much) unless the grant calls them payload (what is said). Leaves judging a call
to `flow.py` and the form of a profile to `runner.kernel.flows`. Carries I1: what is not said is critical.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from runner.kernel.labels import DataClass, Integrity
from runner.kernel.messages import Json
from runner.kernel.web import Place


class SinkKind(StrEnum):
    """Where a call carries its arguments."""

    NETWORK = "network"
    """To somebody else."""
    WRITE = "write"
    """Into what is kept, or over it."""
    SHELL = "shell"
    """Into a program."""
    DRAFT = "draft"
    """Into the user's own place, from which it can be taken back: nobody is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What each text and number of one argument must be, whoever chose it. None: anything.

    `beneath` are paths, of which it is one or lies below one; `hosts` those of an address that it must be;
    `pattern` is RE2 and matches the whole of it; `named` says that the user named it. `places` are where a
    page lies whose address it must be.
    """

    enum: tuple[Json, ...] | None = None
    beneath: tuple[str, ...] | None = None
    hosts: tuple[str, ...] | None = None
    pattern: str | None = None
    max_length: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    named: bool = False
    places: tuple[Place, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The profile itself lists the value."""

    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpTo:
    """The value is a number from 0 to `most`: so little that whoever composed it does not matter."""

    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp:
    """The value is the `field` of the one record, among those `tool` returned, whose `key` the user named.

    `where` says what other members of that record are. Without a `key` it is that of any record, or any item
    of a list when there is no `field` either.
    """

    tool: str
    field: str | None = None
    key: str | None = None
    where: Mapping[str, tuple[Json, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSource:
    """The value stands in what `tool` returned when it was asked for nothing but what the user named."""

    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """The model composed the value in a task that has read nothing yet: of the user's own words."""


Vouch: TypeAlias = Listed | UpTo | LookedUp | NamedSource | Unread
"""What stands for a critical value that the user did not name. Each is a choice of who wrote the profile."""
Case: TypeAlias = Mapping[str, tuple[Vouch, ...]]
"""Arguments that are critical, payload or not, each with what may vouch for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Where a tool carries its arguments, and up to which class of all that the task has seen.

    One of `cases` must hold; none at all is one in which the user names every critical value.
    """

    kind: SinkKind
    ceiling: DataClass
    payload: frozenset[str] = frozenset()
    cases: tuple[Case, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What a host tool returns: the least class it has when nobody said, and who may have written it.

    `minted` are the members of its records that the system itself writes. `most` is the class above which a
    text of it is withheld from the task; None withholds nothing.
    """

    data_class: DataClass
    integrity: Integrity = Integrity.UNTRUSTED
    minted: frozenset[str] = frozenset()
    most: DataClass | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """All that a grant says of where the values of a call come from and go to."""

    limits: Mapping[str, Limits] = field(default_factory=dict)
    reads: Reads | None = None
    sink: Sink | None = None
    calls: int | None = None
    """How many calls one task gets; None for any number."""


FREE = Flow()
"""What a grant says that says nothing."""
