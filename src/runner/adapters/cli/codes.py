# SPDX-License-Identifier: Apache-2.0
"""Plain words for the codes that a screen shows: classes of content, grades of locality, figures, an outcome.

Owns the words, and which of them a screen needs. The codes stay: they are what the documentation and the
record are looked up by.
"""

import re
from collections.abc import Iterable
from typing import Final

from rich.console import Console

from runner.adapters.cli.screen import print_line
from runner.kernel.labels import DataClass

_WORDS: Final = {
    "C0": "public",
    "C1": "internal",
    "C2": "personal data",
    "C3": "privileged",
    "L0": "on this machine, as declared",
    "L1": "on this machine, as its server confirms",
    "L2": "in this process, or launched without a way out",
    "median": "half took no longer",
    "p95": "95 in 100 took no longer",
    "interrupted": "its end is not on record, and the next log accounts for that",
}
_CODE: Final = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b")
CLASSES: Final = {each: f"{each.name}, {_WORDS[each.name]}" for each in DataClass}


def class_words(data_class: DataClass) -> str:
    """Return a class with its word behind it, for the middle of a sentence."""
    return f"{data_class.name} ({_WORDS[data_class.name]})"


def legend(texts: Iterable[object]) -> str:
    """Return what the codes in `texts`, which are ours, mean; empty if there is none in them."""
    found = {code for text in texts for code in _CODE.findall(str(text))}
    return "; ".join(f"{code}: {words}" for code, words in _WORDS.items() if code in found)


def print_legend(console: Console, texts: Iterable[object]) -> None:
    """Print what the codes in `texts` mean, on one line; nothing if there is none in them."""
    if words := legend(texts):
        print_line(console, words, "dim")
