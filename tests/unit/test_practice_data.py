# SPDX-License-Identifier: Apache-2.0
"""Check the sample practices and their questions.

Owns: the claim that each question has one answer, in one document, at one place, and that every identifier is
well formed. Leaves to the evaluation: running an agent on them. Carries no runtime invariant; it keeps the
figures measured on these files meaningful, since a wrong expected answer would make a right agent look wrong.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from stdnum import iban
from stdnum.it import codicefiscale, iva

ROOT = Path(__file__).resolve().parents[2]
CODICE_FISCALE = re.compile(r"\b[A-Z]{6}\d{2}[A-Z]\d{2}[A-Z]\d{3}[A-Z]\b")
PARTITA_IVA = re.compile(r"\b(?:IT)?(\d{11})\b")
IBAN = re.compile(r"\bIT\d{2}(?: ?[A-Z0-9]{4}){5} ?[A-Z0-9]{3}\b")
ADDRESS = re.compile(r"[\w.+-]+@[\w.-]+\w")
MONTHS = {
    name: number
    for names in (
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "january february march april may june july august september october november december",
    )
    for number, name in enumerate(names.split(), start=1)
}
SAME_WORDS = {
    "9 months": "nine months",
    "4 years": "four years",
    "4 anni": "four years",
    "quattro anni": "four years",
    "21 days": "21 giorni",
    "amoxicillin": "amoxicillina",
    "19 days": "nineteen days",
    "19 giorni": "nineteen days",
    "diciannove giorni": "nineteen days",
    "levothyroxine": "levotiroxina",
    "10ª settimana": "decima settimana",
    "dieci settimane": "decima settimana",
    "10 settimane": "decima settimana",
    "ventiquattro ore": "24 ore",
    "landlord": "locatore",
    "lessor": "locatore",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question; `file` is None when the documents do not hold the answer."""

    id: str
    language: str
    text: str
    file: str | None
    answers: tuple[str, ...]
    quotes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """A folder of documents and the questions asked on it, some of them without an answer there."""

    folder: str
    question_file: str
    unanswered: int


SHIPPED = Practice(folder="examples/practice", question_file="examples/practice-questions.json", unanswered=2)
DEVELOPMENT = Practice(
    folder="tests/data/dev-practice", question_file="tests/data/dev-practice-questions.json", unanswered=2
)
DEVELOPMENT_2 = Practice(
    folder="tests/data/dev-practice", question_file="tests/data/dev-practice-questions-2.json", unanswered=3
)
PRACTICES = pytest.mark.parametrize(
    "practice", [SHIPPED, DEVELOPMENT, DEVELOPMENT_2], ids=["shipped", "development", "development-2"]
)


@cache
def read_documents(practice: Practice) -> dict[str, str]:
    """Return the text of each document by its path relative to the practice's folder."""
    top = ROOT / practice.folder
    files = sorted(path for path in top.rglob("*") if path.is_file())
    return {path.relative_to(top).as_posix(): path.read_text(encoding="utf-8") for path in files}


@cache
def read_questions(practice: Practice) -> tuple[Question, ...]:
    """Return the practice's questions; a missing or unknown key fails the test."""
    items = json.loads((ROOT / practice.question_file).read_text(encoding="utf-8"))
    return tuple(parse_question(item) for item in items)


def parse_question(item: dict[str, object]) -> Question:
    """Turn one JSON object into a question, with exactly the keys that the schema names."""
    assert set(item) == {"id", "language", "question", "expected"}
    expected = item["expected"]
    assert isinstance(expected, dict)
    found = expected["found"]
    assert isinstance(found, bool)
    assert set(expected) == ({"found", "file", "answer_any", "quote_any"} if found else {"found"})
    return Question(
        id=str(item["id"]),
        language=str(item["language"]),
        text=str(item["question"]),
        file=str(expected["file"]) if found else None,
        answers=tuple(expected.get("answer_any", ())),
        quotes=tuple(expected.get("quote_any", ())),
    )


def answerable(practice: Practice) -> list[tuple[Question, str]]:
    """Return each question whose answer is in the documents, with its file's name."""
    return [(question, question.file) for question in read_questions(practice) if question.file is not None]


def plain(text: str) -> str:
    """Return the text in lower case with each run of white space as one space."""
    return " ".join(text.lower().split())


def windows(text: str) -> list[str]:
    """Return each pair of adjacent lines, normalised: what a citation may span."""
    return [plain(f"{first} {second}") for first, second in pairwise([*text.splitlines(), ""])]


def meaning(answer: str) -> str:
    """Return one key for all plain forms of an answer: a date, an amount, or a listed translation."""
    text = plain(answer)
    if match := re.fullmatch(r"(\d{1,2}) ([a-z]+)(?: (\d{4}))?", text):
        day, month, year = match.groups()
        if month in MONTHS:
            return f"{year or ''}-{MONTHS[month]:02d}-{int(day):02d}"
    if match := re.fullmatch(r"(\d{1,2})/(\d{1,2})(?:/(\d{4}))?", text):
        day, month, year = match.groups()
        return f"{year or ''}-{int(month):02d}-{int(day):02d}"
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return text
    if re.fullmatch(r"[\d.,]+", text):
        return text.replace(".", "").replace(",", "")
    return SAME_WORDS.get(text, text.replace(" %", "%"))


def is_english(text: str) -> bool:
    """Tell the two languages of the set apart by their commonest small words."""
    words = re.findall(r"\w+", text.lower())
    english = sum(words.count(word) for word in ("the", "and", "of", "is", "what", "to", "for"))
    italian = sum(words.count(word) for word in ("di", "il", "la", "del", "che", "per", "e"))
    return english > italian


@PRACTICES
def test_sizes_and_layout_stay_within_the_limits(practice: Practice) -> None:
    documents = read_documents(practice)
    assert 12 <= len(documents) <= 14
    for name, text in documents.items():
        assert name.endswith((".txt", ".md")), name
        assert 1200 <= len(text) <= 2800, name
        assert 200 <= len(text.split()) <= 420, name
        assert max(len(line) for line in text.splitlines()) <= 110, name
        assert text.endswith("\n"), name
        assert not re.search(r"[ \t]+$", text, re.MULTILINE), name


@PRACTICES
def test_no_long_line_is_written_twice_in_a_document(practice: Practice) -> None:
    for name, text in read_documents(practice).items():
        lines = [plain(line) for line in text.splitlines()]
        long = [line for line in lines if len(line) > 30 and re.search(r"\w", line)]
        assert len(long) == len(set(long)), name


@PRACTICES
def test_the_mix_of_languages_is_the_one_described(practice: Practice) -> None:
    documents, questions = read_documents(practice), read_questions(practice)
    english = {name for name, text in documents.items() if is_english(text)}
    assert 4 <= len(english) <= 5
    assert 8 <= len(documents) - len(english) <= 9
    assert sorted(question.language for question in questions) == ["en"] * 8 + ["it"] * 12
    for question in questions:
        assert is_english(question.text) == (question.language == "en"), question.id
    crossed = [q.id for q, name in answerable(practice) if (name in english) != (q.language == "en")]
    assert len(crossed) >= 4


@PRACTICES
def test_a_few_questions_have_no_answer_and_every_document_is_asked_about(practice: Practice) -> None:
    questions = read_questions(practice)
    assert len({question.id for question in questions}) == len(questions) == 20
    assert sum(question.file is None for question in questions) == practice.unanswered
    assert {name for _, name in answerable(practice)} == set(read_documents(practice))


@PRACTICES
def test_the_quoted_words_stand_in_the_expected_document_only(practice: Practice) -> None:
    """A citation can then be right in one document alone."""
    documents = {name: plain(text) for name, text in read_documents(practice).items()}
    for question, expected in answerable(practice):
        assert question.quotes, question.id
        for quote in question.quotes:
            whole = re.compile(rf"(?<!\w){re.escape(plain(quote))}(?!\w)")
            holders = {name for name, text in documents.items() if whole.search(text)}
            assert holders == {expected}, (question.id, quote)


@PRACTICES
def test_two_adjacent_lines_carry_the_quoted_words_and_the_answer(practice: Practice) -> None:
    documents = read_documents(practice)
    for question, expected in answerable(practice):
        for quote in question.quotes:
            spans = [span for span in windows(documents[expected]) if plain(quote) in span]
            assert any(plain(a) in span for span in spans for a in question.answers), question.id


@PRACTICES
def test_all_accepted_answers_of_a_question_mean_the_same(practice: Practice) -> None:
    for question, _ in answerable(practice):
        assert len({meaning(answer) for answer in question.answers}) == 1, question.id


@PRACTICES
def test_identifiers_carry_valid_check_digits(practice: Practice) -> None:
    text = "\n".join(read_documents(practice).values())
    ibans = [iban.compact(number) for number in IBAN.findall(text)]
    codes, vat_numbers = CODICE_FISCALE.findall(text), PARTITA_IVA.findall(text)
    assert len(codes) >= 3
    assert len(vat_numbers) >= 3
    assert len(ibans) >= 2
    assert [code for code in codes if not codicefiscale.is_valid(code)] == []
    assert [number for number in vat_numbers if not iva.is_valid(number)] == []
    assert [number for number in ibans if not iban.is_valid(number)] == []
    # The Italian bank check letter (CIN) is computed as a tax code's last letter is, over the account number.
    assert [n for n in ibans if codicefiscale.calc_check_digit(n[5:]) != n[4]] == []


@PRACTICES
def test_addresses_use_the_reserved_domain(practice: Practice) -> None:
    """RFC 2606 keeps `.example` out of the real name system, so no invented person has a real address."""
    for name, text in read_documents(practice).items():
        assert "://" not in text, name
        assert all(address.endswith(".example") for address in ADDRESS.findall(text)), name


def test_development_and_shipped_practices_share_nothing() -> None:
    """What is tuned on one set must say nothing about the other."""
    shipped, development = read_documents(SHIPPED), read_documents(DEVELOPMENT)
    assert not set(shipped) & set(development)
    questions = [q for practice in (SHIPPED, DEVELOPMENT, DEVELOPMENT_2) for q in read_questions(practice)]
    assert len({q.text for q in questions}) == len({q.id for q in questions}) == len(questions)
    identifiers = [
        set(CODICE_FISCALE.findall(text) + PARTITA_IVA.findall(text) + IBAN.findall(text))
        for text in ("\n".join(shipped.values()), "\n".join(development.values()))
    ]
    assert not identifiers[0] & identifiers[1]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("9 aprile 2026", "09/04/2026", True),
        ("9 April 2026", "2026-04-09", True),
        ("9 aprile 2026", "9 aprile 2025", False),
        ("28 maggio", "28/05", True),
        ("4.197,18", "4,197.18", True),
        ("8.400", "8.401", False),
        ("38 %", "38%", True),
    ],
)
def test_plain_forms_of_one_value_compare_equal(left: str, right: str, same: object) -> None:
    assert (meaning(left) == meaning(right)) is same
