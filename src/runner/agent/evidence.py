# SPDX-License-Identifier: Apache-2.0
"""Evidence: an answer counts only if its words stand in a line that was read.

Owns the check. The quote is the line itself, as the tool returned it, so a model cannot make one up; an
answer that no line bears out has no evidence and is not given. Deterministic, and no model is asked.
"""

from collections.abc import Sequence
from typing import Final

from runner.agent.steps import Evidence
from runner.kernel.language import content_words
from runner.kernel.ports import Excerpt

LEAST_SHARE: Final = 0.6
"""Share of an answer's words, by weight, that a line must hold to bear it out."""
NUMBER_WEIGHT: Final = 3
"""What a number, a date or an amount weighs against a word: it is rarely there by chance."""
QUESTION_WEIGHT: Final = 0.03
"""What a word shared with the question adds, to choose among lines that hold the answer equally well."""
NEAR: Final = (2, 1)
"""Lines before and after that count half for the question's words."""


def find_evidence(answer: str, question: str, excerpts: Sequence[Excerpt]) -> Evidence | None:
    """Return the line of `excerpts` that bears `answer` out best, or None when no line does.

    A line must hold every number, date and amount of the answer, and a share of its words. Among such
    lines, the one nearest to the words of `question` wins; a tie goes to the first.
    """
    said = content_words(answer)
    numbers = frozenset(filter(_is_number, said))
    asked = content_words(question)
    held = [content_words(excerpt.text, parts=True) for excerpt in excerpts]
    best, chosen = 0.0, None
    for at, excerpt in enumerate(excerpts):
        share = _weight(said & held[at]) / max(1, _weight(said))
        around = _around(at, excerpts, held)
        score = share + QUESTION_WEIGHT * (len(asked & held[at]) + len(asked & around) / 2)
        if numbers <= held[at] and share >= LEAST_SHARE and score > best:
            best, chosen = score, excerpt
    if chosen is None:
        return None
    return Evidence(file=chosen.file, page=chosen.page, line=chosen.line, quote=chosen.text.strip())


def _is_number(word: str) -> bool:
    return any(map(str.isdigit, word))


def _weight(words: frozenset[str]) -> int:
    return sum(NUMBER_WEIGHT if _is_number(word) else 1 for word in words)


def _around(at: int, excerpts: Sequence[Excerpt], held: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the words of the lines near the one `at`, itself included, on its page."""
    before, after = NEAR
    near = range(max(0, at - before), min(len(excerpts), at + after + 1))
    return frozenset().union(*(held[n] for n in near if page_of(excerpts[n]) == page_of(excerpts[at])))


def page_of(excerpt: Excerpt) -> tuple[str, int | None]:
    """Return which page of which file a line stands on."""
    return excerpt.file, excerpt.page
