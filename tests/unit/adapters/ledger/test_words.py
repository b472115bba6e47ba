# SPDX-License-Identifier: Apache-2.0
"""The words of a pack: both languages say the same things, and no statement is without its sentence."""

import inspect
import re
from pathlib import Path
from string import Formatter

import pytest

from runner.adapters.ledger import account, articles, statements
from runner.adapters.ledger.said import EXITS
from runner.adapters.ledger.statements import Statement
from runner.adapters.ledger.words import LANGUAGES, Language, all_words, sentence, terms, value

SOURCE = "".join(map(inspect.getsource, (account, articles, statements)))
ERRORS = Path(__file__).resolve().parents[4] / "docs" / "reference" / "errors.md"
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
    named = ("sections", "frame", "claims", "terms")
    rooms = (*(all_words()[name] for name in named), *all_words()["values"].values())
    assert all(
        set(words) == set(LANGUAGES) and all(words.values()) for room in rooms for words in room.values()
    )


CODES = {
    "reason": ("Why a request was denied",),
    "rule": ("Why a tool call was denied", "Why nobody was asked about letting content go"),
}


def listed(heading: str) -> set[str]:
    """The codes that the reference of errors lists under `heading`; another test holds it to the source."""
    text = ERRORS.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `([a-z0-9.-]+)` \|", text, re.MULTILINE))


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_code_of_a_denial_keeps_its_code_and_has_plain_words(name: str, language: Language) -> None:
    """A data protection officer reads why, and still can look the code up."""
    codes = set().union(*map(listed, CODES[name]))
    assert len(codes) > 10
    for code in codes:
        said = value(name, code, language)
        assert said.startswith(f"{code} (") and said.endswith(")"), code  # noqa: PT018 - one form


def test_each_verdict_that_a_pack_is_made_of_has_plain_words() -> None:
    assert all(value("verdict", word, language) != word for word in EXITS for language in LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_class_and_grade_is_explained_before_it_is_used(language: Language) -> None:
    told = " ".join(terms(language))
    assert all(code in told for code in ("C0", "C1", "C2", "C3", "L0", "L1", "L2", "seq"))


def test_a_question_that_nobody_was_there_to_answer_is_no_refusal() -> None:
    """I9: whoever reads it takes it neither for a person's no nor for an answer of "nobody"."""
    values = {"time": "t", "tool": "diary", "expires": "e", "rendering": "r", "by": "none"}
    said = sentence(Statement(code="unanswered", values=values), "en")
    assert "nobody was there to be asked" in said
    assert "it was about: diary" in said
    assert "answered by" not in said + sentence(Statement(code="refused", values=values), "en")


def test_a_value_without_words_is_shown_as_it_is() -> None:
    values = {"time": "t", "tool": "diary", "rule": "r", "class": "C9"}
    said = sentence(Statement(code="call_denied", values=values), "en")
    assert said == "t UTC: a call of the tool diary, with arguments of class C9, was denied. Rule: r."
