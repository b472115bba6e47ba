# SPDX-License-Identifier: Apache-2.0
"""Texts that were judged: a text is classified once for one set of rules and registers.

Owns a bounded memory of answers. A request repeats what was sent before it, so that without this every step
would pay for all steps. Leaves judging to the classifier; a fault is not remembered (I7).
The key holds the classifier's version, which names its very rules and registers: an answer cannot cross a
change of either. It holds a digest of the text, never the text.
"""

from collections.abc import Hashable
from hashlib import blake2b
from typing import Final

from runner.kernel.labels import DataClass
from runner.kernel.ports import Classifier
from runner.perimeter.finding import ask_classifier

CAPACITY: Final = 8192
"""Answers remembered, each some 200 bytes."""


class JudgedTexts:
    """Answers by text, field name and version of the rules. Safe to share between threads.

    The older half is forgotten when the newer is full, and what is asked for again counts as new.
    """

    __slots__ = ("_new", "_old", "_room")

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._room = max(1, capacity // 2)
        self._new: dict[Hashable, DataClass] = {}
        self._old: dict[Hashable, DataClass] = {}

    def __len__(self) -> int:
        """Return the number of answers remembered."""
        return len(self._new) + len(self._old)

    def class_of(self, classifier: Classifier, text: str, source: str | None) -> DataClass:
        """Return the class that `classifier` finds in `text` under the field name `source`.

        Raises what the classifier raises.
        """
        key = (classifier.version, source, _digest(text))
        known = self._new.get(key)
        if known is not None:
            return known
        known = self._old.get(key)
        found = ask_classifier(classifier, text, source).data_class if known is None else known
        self._new[key] = found
        if len(self._new) >= self._room:
            self._old, self._new = self._new, {}
        return found


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
