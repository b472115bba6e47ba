# SPDX-License-Identifier: Apache-2.0
"""The judgement behind `Perimeter.release()`: whether these exact bytes may go to this backend.

Owns the rules, as a pure function of bytes, label, terms and classifier. Leaves sending and recording
to `client.py`. Carries P1 and I7: any fault in here is a denial, and C3 never passes to a remote
backend whatever the configuration says.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from runner.kernel.decisions import Allowed, Denied, Redacted, Release, Span
from runner.kernel.inference import Address, WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Json
from runner.kernel.ports import Classifier, Locality
from runner.perimeter.classify import EchoIndex
from runner.perimeter.judged import JudgedTexts
from runner.perimeter.seams import across

ABOVE_CEILING: Final = "class-above-ceiling"
"""The one reason for which redaction is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendTerms:
    """What the profile says about one backend. `ceiling` is the highest class that may leave to it."""

    name: str
    local: bool
    address: Address
    ceiling: DataClass | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """How local the backend of this name was found to be, `at` seconds of the monotonic clock.

    A value: a judgement is made with the check of its own call, whatever other calls find meanwhile.
    """

    backend: str
    locality: Locality
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the profile judges: the classifier, its fault mode, the locality C2 and C3 need, redaction.

    `echo` holds what this runtime has read, `judged` what it has classified: one of each per runtime.
    `fragments` finds what may be split over several texts; None looks at each text by itself.
    """

    classifier: Classifier
    fault_as_c3: bool
    locality_c2: Locality
    locality_c3: Locality
    redaction: bool = False
    echo: EchoIndex = field(default_factory=lambda: EchoIndex(b""))
    judged: JudgedTexts = field(default_factory=JudgedTexts)
    fragments: Classifier | None = None

    def class_of(self, text: str, source: str | None) -> DataClass:
        """Return the class that rules and echoes find in `text`, which stands under the name `source`.

        Raises what the classifier raises. An echo is looked for anew each time: what was read since may have
        changed the answer.
        """
        return max(self.judged.class_of(self.classifier, text, source), self.echo.class_of(text))

    def needed(self, data_class: DataClass) -> Locality:
        """Return the locality grade a local backend needs for content of `data_class`."""
        match data_class:
            case DataClass.C3:
                return self.locality_c3
            case DataClass.C2:
                return self.locality_c2
            case DataClass.C0 | DataClass.C1:
                return Locality.L0


def judge(
    wire: WireRequest,
    label: Label,
    *,
    terms: BackendTerms,
    locality: Locality,
    rules: Rules,
    removed: tuple[Span, ...] | None = None,
) -> Release:
    """Return whether `wire`, made from content labelled `label`, may go to the backend of `terms`.

    `locality` is the grade checked for this very connection. `removed` says that the bytes were redacted,
    and where; `label` is then what redaction leaves. They are judged like any others: `Redacted` stands
    where `Allowed` would. Total: whatever happens in here, the answer is a decision.
    """
    try:
        judged = label.with_detected(detect(wire, rules))
        decision = _decide(wire, judged, terms, locality, rules)
    except Exception:  # noqa: BLE001 - I7: any fault at all closes
        return Denied(reason="fault.release", data_class=max(label.data_class, DataClass.C2))
    if removed is not None and isinstance(decision, Allowed):
        return Redacted(wire=decision.wire, label=decision.label, spans=removed)
    return decision


def _decide(
    wire: WireRequest, label: Label, terms: BackendTerms, locality: Locality, rules: Rules
) -> Release:
    """Return the first objection as a denial; without one, the bytes are allowed.

    A backend that the profile calls local and the check calls remote gets nothing: the profile permits no
    way out under that name.
    """
    found = label.data_class
    away = not terms.local
    ceiling = -1 if terms.ceiling is None else terms.ceiling
    objections = (
        ("address-not-registered", wire.address != terms.address),
        ("not-local", not away and locality is Locality.REMOTE),
        ("locality-too-weak", not away and locality.rank < rules.needed(found).rank),
        ("c3-never-leaves", away and found is DataClass.C3),
        ("nothing-may-leave", away and terms.ceiling is None),
        ("class-above-ceiling", away and found > ceiling),
    )
    for reason, stands in objections:
        if stands:
            return Denied(reason=reason, data_class=found)
    return Allowed(wire=wire, label=label)


def detect(wire: WireRequest, rules: Rules) -> DataClass:
    """Return the highest class found in `wire`: path, headers, and every JSON leaf and key of the body.

    Raises `ValueError` for a body that is not JSON, and whatever the classifier raises unless the
    profile counts a fault as C3. A GET has no body, and so nothing in it.
    """
    bodiless = wire.method == "GET" and not wire.body
    body = None if bodiless else json.loads(wire.body, object_pairs_hook=_Members)
    inside = list(_texts(body))
    texts = [(None, wire.path), *wire.headers, *((leaf.name, leaf.text) for leaf in inside)]
    try:
        found = max(rules.class_of(text, source) for source, text in texts)
        if rules.fragments is None:
            return found
        values = [(leaf.name, leaf.text) for leaf in inside if leaf.is_value]
        return max(found, across(values, rules.fragments))
    except Exception:
        if rules.fault_as_c3:
            return DataClass.C3
        raise


class _Members(list[tuple[str, Json]]):
    """A JSON object as its members in order: a repeated name hides nothing, as it would in a dict."""


class _Leaf(NamedTuple):
    """A text of the body, the name it stands under, and whether it is a value or itself a name."""

    name: str | None
    text: str
    is_value: bool


def _texts(value: Json) -> Iterator[_Leaf]:
    """Yield every string and number in `value` in order, and every member name; no recursion."""
    stack: list[tuple[str | None, Json]] = [(None, value)]
    while stack:
        match stack.pop():
            case _, _Members() as members:
                yield from (_Leaf(None, name, False) for name, _ in members)
                stack.extend(reversed(members))
            case name, list() as items:
                stack.extend((name, item) for item in reversed(items))
            case name, str() as text:
                yield _Leaf(name, text, True)
            case name, int() | float() as number:
                yield _Leaf(name, str(number), True)
            case _:
                pass
