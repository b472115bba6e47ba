# SPDX-License-Identifier: Apache-2.0
"""Texts that were judged: a text is classified once for one set of rules and registers.

Owns a bounded memory of answers. A request repeats what was sent before it, so that without this every step
would pay for all steps. Leaves judging to the classifier; a fault is not remembered (I7).
The key holds the classifier's version, which names its very rules and registers: an answer cannot cross a
change of either; the answer about echoes cannot cross what was read since, where that may change it. It
holds a digest of the text, never the text. Second opinions are remembered the same way.
"""

from collections.abc import Hashable
from hashlib import blake2b
from typing import Final, Generic, TypeVar

from runner.kernel.labels import DataClass
from runner.kernel.ports import Classifier
from runner.perimeter.classify import EchoIndex
from runner.perimeter.finding import ask_classifier

CAPACITY: Final = 32_768
"""Answers remembered, each some 200 bytes."""

Answer = TypeVar("Answer")


class Remembered(Generic[Answer]):
    """Answers by key. Safe to share between threads.

    The older half is forgotten when the newer is full, and what is asked for again counts as new.
    """

    __slots__ = ("_new", "_old", "_room")

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._room = max(1, capacity // 2)
        self._new: dict[Hashable, Answer] = {}
        self._old: dict[Hashable, Answer] = {}

    def __len__(self) -> int:
        """Return the number of answers remembered."""
        return len(self._new) + len(self._old)

    def recall(self, key: Hashable) -> Answer | None:
        """Return the answer kept under `key`; None without one."""
        known = self._new.get(key)
        if known is None:
            known = self._old.get(key)
            if known is not None:
                self.keep(key, known)
        return known

    def keep(self, key: Hashable, answer: Answer) -> None:
        """Remember `answer`."""
        self._new[key] = answer
        if len(self._new) >= self._room:
            self._old, self._new = self._new, {}


class JudgedTexts(Remembered[DataClass]):
    """Answers by text, field name and version of the rules."""

    __slots__ = ()

    def class_of(self, classifier: Classifier, text: str, source: str | None) -> DataClass:
        """Return the class that `classifier` finds in `text` under the field name `source`.

        Raises what the classifier raises.
        """
        key = (classifier.version, source, digest_text(text))
        found = self.recall(key)
        if found is None:
            found = ask_classifier(classifier, text, source).data_class
            self.keep(key, found)
        return found

    def echo_of(self, echo: EchoIndex, text: str) -> DataClass:
        """Return the class of what `text` repeats of what `echo` holds; raise nothing.

        What is remembered meanwhile makes another version, unless it cannot change the answer.
        """
        key = (echo.version, digest_text(text))
        found = self.recall(key)
        if found is None:
            found = echo.class_of(text)
            self.keep(key, found)
        return found


def digest_text(text: str) -> bytes:
    """Return what stands for `text` in a key: 16 bytes."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
