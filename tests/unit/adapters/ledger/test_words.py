# SPDX-License-Identifier: Apache-2.0
"""The words of a pack: both languages say the same things, and no statement is without its sentence."""

import inspect
import re
from string import Formatter

import pytest

from runner.adapters.ledger import account, articles, statements
from runner.adapters.ledger.statements import Statement
from runner.adapters.ledger.words import LANGUAGES, all_words, sentence

SOURCE = "".join(map(inspect.getsource, (account, articles, statements)))
SENTENCES = all_words()["sentences"]


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def test_each_code_of_the_account_has_a_sentence_and_none_is_left_over() -> None:
    """A code stands in quotes in these three modules, where nothing else is named as sentences are."""
    quoted = set(re.findall(r'"([a-z0-9_]+)"', SOURCE))
    assert set(SENTENCES) <= quoted
    said = re.findall(r'(?:code=|by_hand\(|nothing\(|return |else |code = )"([a-z0-9_]+)"', SOURCE)
    assert set(said) - {"none"} <= set(SENTENCES)


@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_both_languages_say_the_same_values(code: str) -> None:
    assert set(SENTENCES[code]) == set(LANGUAGES)
    assert fields(SENTENCES[code]["it"]) == fields(SENTENCES[code]["en"])
    assert SENTENCES[code]["it"] != SENTENCES[code]["en"]


def test_what_is_to_be_completed_says_so_in_both_languages() -> None:
    for code, words in SENTENCES.items():
        by_hand = code.endswith("_by_hand")
        assert ("da completare" in words["it"].casefold()) is by_hand, code
        assert ("to be completed" in words["en"].casefold()) is by_hand, code


def test_every_other_word_is_there_in_both_languages() -> None:
    named = ("sections", "frame", "claims")
    rooms = (*(all_words()[name] for name in named), *all_words()["values"].values())
    assert all(
        set(words) == set(LANGUAGES) and all(words.values()) for room in rooms for words in room.values()
    )


def test_a_value_without_words_is_shown_as_it_is() -> None:
    values = {"time": "t", "tool": "diary", "rule": "r", "class": "C9"}
    said = sentence(Statement(code="call_denied", values=values), "en")
    assert said == "t UTC: a call of the tool diary, with arguments of class C9, was denied. Rule: r."
