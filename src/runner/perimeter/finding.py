# SPDX-License-Identifier: Apache-2.0
"""Asking a classifier, and believing its answer only if it is one.

Owns the one place where a `Classifier` is called. Leaves what an answer means to the callers, and what a
fault costs to the profile. Carries I7: a class that is none would compare as lower than a ceiling, and a
place outside the text would cut the wrong stretch out of it. So an answer out of its type or its bounds is a
fault, as an exception is.
"""

from typing import Final

from runner.kernel.labels import DataClass
from runner.kernel.ports import Classifier, Finding

_TYPES: Final = [int, int, bool, DataClass]


def ask_classifier(classifier: Classifier, text: str, source: str | None = None) -> Finding:
    """Return what `classifier` finds in `text`, which stands under the name `source`.

    Raises `ValueError`, which quotes nothing, for an answer that is none, and what the classifier raises.
    """
    finding = classifier.classify(text, source=source)
    if type(finding.data_class) is not DataClass:
        raise ValueError("a classifier answers with one of the four classes")
    for hit in finding.spans:
        if [type(hit.start), type(hit.end), type(hit.redactable), type(hit.data_class)] != _TYPES:
            raise ValueError("a classifier says where, what and whether in these very types")
        kind: object = hit.kind
        if not isinstance(kind, str) or not 0 <= hit.start <= hit.end <= len(text):
            raise ValueError("a classifier finds things at places of the text")
    return finding
