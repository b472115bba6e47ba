# SPDX-License-Identifier: Apache-2.0
"""What findings say about each other, once all of them are known.

Owns which of two readings of one place holds, and what an address is worth beside a person. Leaves finding to
the rules, and sensitive subjects, which need a person near, to `lexicon`. Pure: spans in, spans out.
Carries the utility of the gate: a VAT number above a telephone number is not a second telephone number, and a
street that is called after somebody is nobody.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify.model import Span, View, is_clear
from runner.perimeter.classify.surnames import ALONE

NEAR: Final = 2_000
"""Code points between two things of one field: about a page."""

_CHECKED: Final = frozenset({"codice_fiscale", "partita_iva", "vat", "national_id", "card"})
_AT_THE_SAME_PLACE: Final[Mapping[str, frozenset[str]]] = {
    "phone": _CHECKED,
    "partita_iva": frozenset({"codice_fiscale"}),
}
"""For a kind, those that overrule it at the very same place: a check digit and its own name, where the other
had a shape; a person's number, where the other would be a firm's."""
_OVERRULING: Final = frozenset().union(*_AT_THE_SAME_PLACE.values())
_AROUND: Final = frozenset({"professional", "address", "client"})
_BY_KIND: Final = "organisation-by-kind"
"""Kinds, and a rule, that overrule a person whose name lies inside: somebody's title, a street or a firm
named after somebody, a client who is in the register."""
_FIRM: Final = "organisation"
"""Overrules a person whose name is its beginning. One that begins before is no reason to lose somebody."""

_BY_SHAPE: Final = "person-by-shape"
"""The rule for persons whom nothing introduces: a firm overrules it wherever it begins."""


_LONGER: Final = frozenset({"professional", "address", _FIRM})
"""Kinds that overrule a client called by surname who is a part of them: "avv. Giulia Rossini". So does the
whole name of a client of that surname: it says which of them is meant."""


def without_overruled(spans: list[Span]) -> list[Span]:
    """Return `spans` but for those that another one reads better as something else.

    Only of what stands in the clear: a place inside an encoding is the whole of it, and says nothing. What
    goes on behind a line end says nothing of what stands in one line: below a firm stands who signs for it.
    """
    clear = [span for span in spans if is_clear(span.view)]
    lines = [span for span in clear if span.view is not View.SPACED]
    weaker = set(map(id, _overruled(lines)))
    if len(lines) < len(clear):
        weaker.update(id(span) for span in _overruled(clear) if span.view is View.SPACED)
    return [span for span in spans if id(span) not in weaker] if weaker else spans


def _overruled(spans: Sequence[Span]) -> list[Span]:
    """Return those of `spans`, all in the clear, that another one reads better."""
    kinds = _kinds(spans)
    persons = [span for span in spans if span.kind == "person"]
    alone = [span for span in spans if span.rule == ALONE]
    weaker = [span for span in spans if _is_another(span, kinds)] if kinds else []
    if persons:
        inside = sorted((span.start, span.end) for span in spans if span.kind == _FIRM)
        firms = dict(inside)  # of two that begin together the longer comes last
        around = sorted((span.start, span.end) for span in spans if _is_around(span))
        weaker += [
            span
            for span in persons
            if firms.get(span.start, 0) >= span.end
            or _inside(span, around)
            or (span.rule == _BY_SHAPE and _inside(span, inside))
        ]
    if alone:
        longer = sorted((span.start, span.end) for span in spans if span.kind in _LONGER)
        named = [span for span in spans if span.kind == "client" and span.rule != ALONE]
        edges = {span.start for span in named} | {span.end for span in named}
        weaker += [
            span for span in alone if span.start in edges or span.end in edges or _inside(span, longer, by=1)
        ]
    return weaker


def _kinds(spans: Sequence[Span]) -> Mapping[tuple[int, int], set[str]]:
    """Return which kinds that may overrule another were found at each place, among `spans`."""
    kinds: dict[tuple[int, int], set[str]] = {}
    for span in spans:
        if span.kind in _OVERRULING:
            kinds.setdefault((span.start, span.end), set()).add(span.kind)
    return kinds


def _is_another(span: Span, kinds: Mapping[tuple[int, int], set[str]]) -> bool:
    """Say whether what was found at the place of `span` is better read as another of `kinds`."""
    stronger = _AT_THE_SAME_PLACE.get(span.kind)
    return stronger is not None and not stronger.isdisjoint(kinds.get((span.start, span.end), ()))


def _is_around(span: Span) -> bool:
    """Say whether a person inside `span` is better read as `span`. A client below C2 is less."""
    listed = span.kind == "client" and span.data_class < DataClass.C2
    return (span.kind in _AROUND and not listed) or span.rule == _BY_KIND


def _inside(span: Span, around: Sequence[tuple[int, int]], *, by: int = 0) -> bool:
    """Say whether `span` lies in one of the last of `around`, ranges in order, longer `by` so much."""
    index = bisect_left(around, (span.start + 1,))
    last, least = span.end, span.end - span.start + by
    return any(end >= last and end - start >= least for start, end in around[max(0, index - 4) : index])


def beside_persons(spans: Sequence[Span], persons: Sequence[int]) -> list[Span]:
    """Return `spans` with each address that has a person near raised to C2: it is that person's.

    `persons` are the sorted start offsets of everything that points at one person.
    """
    return [
        span._replace(data_class=DataClass.C2)
        if span.kind == "address" and span.data_class < DataClass.C2 and is_near(persons, span.start)
        else span
        for span in spans
    ]


def is_near(offsets: Sequence[int], position: int) -> bool:
    """Say whether one of the sorted `offsets` lies within a page of `position`."""
    index = bisect_left(offsets, position)
    if index < len(offsets) and offsets[index] - position <= NEAR:
        return True
    return index > 0 and position - offsets[index - 1] <= NEAR
