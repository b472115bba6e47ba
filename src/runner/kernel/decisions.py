# SPDX-License-Identifier: Apache-2.0
"""Decisions: the closed sets of answers the perimeter gives, as values.

`Release = Allowed | Redacted | Denied` for bytes, `ToolVerdict = Allow | Ask | Deny` for calls.
Consume them with `match` ending in `assert_never`: their truth value raises, so that
`if decision:` cannot turn a denial into a permission (I7).
"""

from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from runner.kernel.inference import WireRequest
from runner.kernel.labels import DataClass, Label


class Decision:
    """Root of all decisions: has no truth value."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        """Raise `TypeError`: a decision is matched, never tested."""
        raise TypeError("a decision has no truth value: use match and handle every case")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A removed stretch of a request: its text's `pointer` (RFC 6901, into messages or schema), its `kind`.

    `start` and `end` count code points of the original text.
    """

    pointer: str
    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed(Decision):
    """The bytes may leave as they are. `label` is what they were judged to be."""

    wire: WireRequest
    label: Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted(Decision):
    """The bytes in `wire` may leave; `spans` of the request they were made from were replaced.

    `label` is what these bytes were judged to be: below what the request was made from.
    """

    wire: WireRequest
    label: Label
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied(Decision):
    """Nothing leaves. `reason` names a rule of the perimeter; `data_class` is what the bytes were judged."""

    reason: str
    data_class: DataClass


Release: TypeAlias = Allowed | Redacted | Denied


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow(Decision):
    """The call may run under the named `rule` of the policy."""

    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Decision):
    """The call may run if a person approves it; without an approver that is a denial."""

    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny(Decision):
    """The call does not run. `hint` tells the model what would be allowed, in the policy's own words."""

    rule: str
    hint: str


ToolVerdict: TypeAlias = Allow | Ask | Deny
