# SPDX-License-Identifier: Apache-2.0
"""Showing: the best lines of some texts, fitted into a short answer.

Owns which passages are shown, and in what order. Leaves their order of merit to `ranking`, and reading to
whoever has the texts. A text is shown by a head of the caller's and its lines, each with its number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from runner.capability.tools.pages import Piece, piece_of
from runner.capability.tools.ranking import Document, Ranking

CONSIDERED: Final = 50
"""Passages tried for a place in the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What an answer holds at most: `passages` of `texts`, in `chars` in all and `line_chars` of a line.

    The first passage is always shown. One below `least_share` of the best score is left out.
    """

    passages: int = 12
    texts: int = 3
    chars: int = 1800
    line_chars: int = 300
    least_share: float = 0.0


@dataclass(slots=True, kw_only=True)
class Shown:
    """A text of the answer: its head, and its pieces by line counted from 0."""

    head: str = field(repr=False)
    pieces: dict[int, Piece] = field(default_factory=dict, repr=False)

    def ordered(self) -> list[Piece]:
        """Return the pieces in the order of their lines."""
        return [self.pieces[line] for line in sorted(self.pieces)]

    def lines(self) -> list[str]:
        """Return what to print: the head, then the numbered lines."""
        return [self.head, *(piece.text for piece in self.ordered())]


def choose(
    documents: Sequence[Document], ranking: Ranking, heads: Sequence[str], bounds: Bounds
) -> list[Shown]:
    """Return the texts to show, best first, with their lines: passages of `ranking` in order while they fit.

    `heads` are those of `documents`, in their order.
    """
    found: dict[int, Shown] = {}
    least = max((passage.score for passage in ranking.passages[:1]), default=0.0) * bounds.least_share
    room, left = bounds.chars, bounds.passages
    for passage in islice(ranking.passages, CONSIDERED):
        if not left or passage.score < least:
            break
        document, head = documents[passage.document], heads[passage.document]
        text = found.get(passage.document) or Shown(head=head)
        if passage.centre in text.pieces or (not text.pieces and len(found) == bounds.texts):
            continue
        fresh = {
            line: piece_of(
                document.name,
                document.first + line,
                document.lines[line],
                width=bounds.line_chars,
                relevance=ranking.relevance,
                page=document.page,
            )
            for line in passage.lines
            if line not in text.pieces
        }
        cost = sum(len(piece.text) + 1 for piece in fresh.values())
        cost += 0 if text.pieces else len(head) + 1
        if found and cost > room:
            continue
        room, left = room - cost, left - 1
        text.pieces.update(fresh)
        found[passage.document] = text
    return list(found.values())
