# SPDX-License-Identifier: Apache-2.0
"""The sentences of a pack of evidence, in Italian and English.

Owns the reading of `words.json`: headings, one sentence for each code of `account.py`, the words for values
in them, and what the frame of the page says. A test holds both languages to the same codes and values.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, TypeAlias

from runner.adapters.ledger.statements import Statement

Language: TypeAlias = Literal["it", "en"]
LANGUAGES: Final[tuple[Language, ...]] = ("it", "en")
Room: TypeAlias = Literal["sections", "frame", "sentences"]


@cache
def all_words() -> Mapping[str, Any]:
    """Return the whole of `words.json`."""
    text = (resources.files("runner.adapters.ledger") / "words.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def said(room: Room, code: str, language: Language) -> str:
    """Return the words for `code` in `language`; raise `KeyError` for a code that has none."""
    return str(all_words()[room][code][language])


def terms(language: Language) -> tuple[str, ...]:
    """Return what the codes and words of art mean that a page uses, in `language`."""
    return tuple(str(each[language]) for each in all_words()["terms"].values())


def value(name: str, word: str | int, language: Language) -> str:
    """Return the words for `word` where it is a value called `name`; itself, where there are none for it."""
    known = all_words()["values"].get(name, {}).get(str(word))
    return str(word) if known is None else str(known[language])


def claim(text: str, language: Language) -> str | None:
    """Return in `language` what the verifier does not claim; None for words of it that have no others."""
    known = all_words()["claims"].get(text)
    return None if known is None else str(known[language])


def sentence(statement: Statement, language: Language) -> str:
    """Return the sentence of a statement, its values in words."""
    values = {name: value(name, each, language) for name, each in statement.values.items()}
    return said("sentences", statement.code, language).format(**values)
