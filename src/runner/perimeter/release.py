# SPDX-License-Identifier: Apache-2.0
"""The judgement behind `Perimeter.release()`: whether these exact bytes may go to this backend.

Owns the rules, as a pure function of bytes, label, terms and classifier. Leaves sending and recording
to `client.py`. Carries P1 and I7: any fault in here is a denial, and C3 never passes to a remote
backend whatever the configuration says.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from runner.kernel.decisions import Allowed, Denied, Redacted, Release, Span
from runner.kernel.inference import Address, WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Json
from runner.kernel.ports import Classifier, Locality

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
class Rules:
    """How the profile judges: the classifier, its fault mode, the locality C2 and C3 need, redaction."""

    classifier: Classifier
    fault_as_c3: bool
    locality_c2: Locality
    locality_c3: Locality
    redaction: bool = False

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
        if removed is not None and isinstance(decision, Allowed):
            return Redacted(wire=wire, label=judged, spans=removed)
        return decision
    except Exception:  # noqa: BLE001 - I7: any fault at all closes
        return Denied(reason="fault.release", data_class=max(label.data_class, DataClass.C2))


def _decide(
    wire: WireRequest, label: Label, terms: BackendTerms, locality: Locality, rules: Rules
) -> Release:
    """Return the first objection as a denial; without one, the bytes are allowed.

    A backend that the profile calls local and the check calls remote is judged as remote.
    """
    found = label.data_class
    away = not terms.local or locality is Locality.REMOTE
    ceiling = -1 if terms.ceiling is None else terms.ceiling
    objections = (
        ("address-not-registered", wire.address != terms.address),
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
    texts = [(None, wire.path), *wire.headers, *_texts(body)]
    try:
        return max(rules.classifier.classify(text, source=source).data_class for source, text in texts)
    except Exception:
        if rules.fault_as_c3:
            return DataClass.C3
        raise


class _Members(list[tuple[str, Json]]):
    """A JSON object as its members in order: a repeated name hides nothing, as it would in a dict."""


def _texts(value: Json) -> Iterator[tuple[str | None, str]]:
    """Yield every string, number and member name in `value` with the name it stands under; no recursion."""
    stack: list[tuple[str | None, Json]] = [(None, value)]
    while stack:
        match stack.pop():
            case _, _Members() as members:
                for name, item in members:
                    yield None, name
                    stack.append((name, item))
            case name, list() as items:
                stack.extend((name, item) for item in items)
            case name, str() as text:
                yield name, text
            case name, int() | float() as number:
                yield name, str(number)
            case _:
                pass
