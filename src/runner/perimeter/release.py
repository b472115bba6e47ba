# SPDX-License-Identifier: Apache-2.0
"""The judgement behind `Perimeter.release()`: whether these exact bytes may go to this backend.

Owns the rules, as a pure function of bytes, label, terms and classifier. Leaves sending and recording
to `client.py`. Carries P1 and I7: any fault in here is a denial, and C3 never passes to a remote
backend whatever the configuration says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from runner.kernel.decisions import Allowed, Denied, Redacted, Release, Span
from runner.kernel.inference import Address, WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import JsonObject
from runner.kernel.ports import Classifier, Locality
from runner.perimeter.classify import UNREAD, EchoIndex, carried, forget_readings, is_picture
from runner.perimeter.cuts import Regions
from runner.perimeter.declassify import Subtraction, class_outside
from runner.perimeter.finding import ask_classifier
from runner.perimeter.fixed import fixed_wire
from runner.perimeter.hosts import class_of_host
from runner.perimeter.judged import JudgedTexts
from runner.perimeter.seams import across
from runner.perimeter.texts import NotText, texts_of, texts_of_schema

ABOVE_CEILING: Final = "class-above-ceiling"
"""The one reason for which redaction is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendTerms:
    """What the profile says about one backend. `ceiling` is the highest class that may leave to it.

    `any_host`: whoever composes a request may name its host: the name is content then, and is judged.
    The address of a backend is the profile's, and no content.
    """

    name: str
    local: bool
    address: Address
    ceiling: DataClass | None
    any_host: bool = False


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
    """How the profile judges: the classifier, its fault mode, the locality C2 and C3 need, what may lower.

    `echo` holds what this runtime has read, `judged` what it has classified: one of each per runtime.
    `fragments` finds what may be split over several texts; None looks at each text by itself.
    """

    classifier: Classifier
    fault_as_c3: bool
    locality_c2: Locality
    locality_c3: Locality
    redaction: bool = False
    declassification: bool = False
    echo: EchoIndex = field(default_factory=lambda: EchoIndex(b""))
    judged: JudgedTexts = field(default_factory=JudgedTexts)
    fragments: Classifier | None = None

    def class_of(self, text: str, source: str | None) -> DataClass:
        """Return the class that rules and echoes find in `text`, which stands under the name `source`.

        What can be read in media that the text carries, as base64, counts as if it stood there in clear. Of a
        picture, that is all that counts: its base64 is no text, but for a credential or a client in it.
        Raises what the classifier raises.
        """
        rules = (self.fragments or self.classifier) if is_picture(text, source) else self.classifier
        found = self._found(rules, text, source)
        for each in carried(text):
            found = max(found, self._found(self.classifier, each, None))
        return found

    def _found(self, classifier: Classifier, text: str, source: str | None) -> DataClass:
        try:
            return max(self.judged.class_of(classifier, text, source), self.judged.echo_of(self.echo, text))
        finally:
            forget_readings()

    def is_only_unread(self, text: str, source: str | None) -> bool:
        """Say whether `text`, which is C3, is so because it is not read to its end, and for nothing else.

        Raises what the classifier raises.
        """
        hits = ask_classifier(self.classifier, text, source).spans
        kinds = {hit.kind for hit in hits if hit.data_class is DataClass.C3}
        return kinds == {UNREAD.kind} and self.judged.echo_of(self.echo, text) < DataClass.C3

    def class_outside(self, text: str, source: str | None, regions: Regions) -> DataClass:
        """Return the same for `text` outside of `regions`, which a person let go."""
        try:
            return class_outside(text, regions, self.classifier, self.echo, source)
        finally:
            forget_readings()

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
    subtracted: Subtraction | None = None,
    schema: JsonObject | None = None,
    parts: Sequence[str] = (),
) -> Release:
    """Return whether `wire`, made from content labelled `label`, may go to the backend of `terms`.

    `schema` is that of the reply: it counts as it was given, whatever a codec makes of it. `parts` are the
    texts that `wire` was made of, behind what was sent before it: nothing may be split over them. `locality`
    is the grade checked for this very connection. `removed` says that the bytes were redacted, and where;
    `label` is then what redaction leaves. They are judged like any others: `Redacted` stands where `Allowed`
    would. `subtracted` is what a person let go: its label counts instead, and its regions are left out of
    what is found. Total: whatever happens in here, the answer is a decision.
    """
    try:
        wire = fixed_wire(wire)
        regions: Mapping[int, Regions] = MappingProxyType({})
        if subtracted is not None:
            label, regions = subtracted.label, subtracted.regions
        found = detect(wire, rules, host=terms.any_host, regions=regions, schema=schema, parts=parts)
        judged = label.with_detected(found)
        decision = _decide(wire, judged, terms, locality, rules)
        found_here = label.data_class < DataClass.C3
        if found_here and isinstance(decision, Denied) and decision.reason == "c3-never-leaves":
            unread = _is_only_unread(wire, terms, rules, schema)
            decision = replace(decision, reason="more-than-is-read") if unread else decision
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
        ("address-not-registered", wire.address != terms.address and not terms.any_host),
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


def _is_only_unread(wire: WireRequest, terms: BackendTerms, rules: Rules, schema: JsonObject | None) -> bool:
    """Say whether what is C3 is so because it would take more reading than its length allows, and only so."""
    try:
        texts = [*texts_of(wire, host=terms.any_host), *(() if schema is None else texts_of_schema(schema))]
        texts = [each for each in texts if rules.class_of(each.text, each.name) is DataClass.C3]
        return bool(texts) and all(rules.is_only_unread(each.text, each.name) for each in texts)
    except Exception:  # noqa: BLE001 - the answer is no already, and a fault is no better reason
        return False


def detect(
    wire: WireRequest,
    rules: Rules,
    *,
    host: bool = False,
    regions: Mapping[int, Regions] = MappingProxyType({}),
    schema: JsonObject | None = None,
    parts: Sequence[str] = (),
) -> DataClass:
    """Return the highest class found in `wire`, in any text it carries, in `schema`, and across `parts`.

    With `host`, in the host's name too.

    Of the texts numbered in `regions`, what lies in these is left out, as far as a person's yes goes.
    A body that is not text counts as C3, since nobody labelled it. Raises `ValueError` for a body that cannot
    be read, and whatever the classifier raises unless the profile counts a fault as C3.
    """
    try:
        texts = [*texts_of(wire, host=host), *(() if schema is None else texts_of_schema(schema))]
    except NotText:
        return DataClass.C3
    try:
        found = max(
            rules.class_outside(each.text, each.name, regions[number])
            if number in regions
            else rules.class_of(each.text, each.name)
            for number, each in enumerate(texts)
        )
        if host:
            found = max(found, class_of_host(wire.address.host))
        if rules.fragments is None:
            return found
        values = [each.text for each in texts if each.is_value]
        split = (across(each, rules.fragments, rules.judged) for each in (values, parts))
        return max(found, *split)
    except Exception:
        if rules.fault_as_c3:
            return DataClass.C3
        raise
    finally:
        forget_readings()
