# SPDX-License-Identifier: Apache-2.0
"""What findings say about each other, once all of them are known.

Owns which of two readings of one place holds. Leaves finding to the rules, and sensitive subjects, which need
a person near, to `lexicon`. Pure: spans in, spans out.
Carries the utility of the gate: a VAT number above a telephone number is not a second telephone number.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from runner.perimeter.classify.model import Span

_CHECKED: Final = frozenset({"codice_fiscale", "partita_iva", "vat", "national_id", "card"})
_STRONGER: Final[Mapping[str, frozenset[str]]] = {
    "phone": _CHECKED,
    "partita_iva": frozenset({"codice_fiscale"}),
}
"""For a kind, the kinds that overrule it at the very same place: a check digit and its own name, where the
other had a shape; a person's number, where the other would be a firm's."""


def overruled(spans: Sequence[Span]) -> frozenset[Span]:
    """Return those of `spans` that another reads better as something else at the very same place."""
    kinds: dict[tuple[int, int], set[str]] = {}
    for span in spans:
        kinds.setdefault((span.start, span.end), set()).add(span.kind)
    return frozenset(
        span
        for span in spans
        if not _STRONGER.get(span.kind, frozenset()).isdisjoint(kinds[span.start, span.end])
    )
