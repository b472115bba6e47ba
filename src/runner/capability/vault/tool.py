# SPDX-License-Identifier: Apache-2.0
"""The tool `search_documents`: the vault, asked by a model.

Owns the arguments and the words of the answer. Before it searches it brings the index up to date, within
bounds, and what is left out is said. It searches every root of the call and no other, so what it returns has
the class and the matter that the perimeter gives the join of them, hits or none (I8, P2). It makes no claim
to answer from behind a veil: an index of veiled text is not kept, so a call that would need one gets none.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from runner.capability.tools.pages import QUERY, QUERY_LENGTH, check_names, parse_text, parse_whole
from runner.capability.tools.ranking import rank
from runner.capability.tools.showing import Bounds, choose
from runner.capability.vault.indexing import Updated
from runner.capability.vault.searching import Found, Hit
from runner.capability.vault.vault import Vault
from runner.kernel.language import how_many, not_text, not_whole
from runner.kernel.messages import ToolSpec
from runner.kernel.ports import Effect, GrantedCall, ToolOutput

NAME: Final = "search_documents"
MOST_HITS: Final = 20
BY_NAME: Final = "found by its name: this line has none of the words"
"""Said of a hit whose line was not looked for."""
SECONDS: Final = 10.0
"""After which a call opens no more files to bring the index up to date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDocuments:
    """`search_documents(query, limit)`: the best lines of the granted folders, from an index.

    The index finds the best `limit` files; which of their lines are shown is decided as `search_text` does.
    `total_chars` bounds an answer; the first passage is always shown.
    """

    vault: Vault
    total_chars: int = 1800

    effect: ClassVar[Effect] = Effect.READ
    path_arguments: ClassVar[frozenset[str]] = frozenset()
    spec: ClassVar[ToolSpec] = ToolSpec(
        name=NAME,
        description='Search all documents for words or a "phrase". Shows the best lines with their files.',
        parameters={
            "type": "object",
            "properties": {
                "query": QUERY,
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_HITS, "default": 3},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    )

    def run(self, call: GrantedCall) -> ToolOutput:
        """Return the best lines by file, each also as an excerpt; raise `ToolError`."""
        check_names(call.arguments, self.spec)
        query = parse_text(call.arguments, "query", QUERY_LENGTH)
        limit = parse_whole(call.arguments, "limit", default=3, most=MOST_HITS)
        found, done = self.vault.find(call.roots, query, limit, seconds=SECONDS)
        notes = [f"({note})" for note in notes_on(found, done)]
        if not found.hits:
            nothing = f"Nothing found in {how_many(found.files, 'file')}: try other words."
            text = "\n".join([nothing, *notes])
            return ToolOutput(text=text, unread=found.unread, not_whole=found.not_whole)
        pages = [(hit, text) for hit in found.hits for text in hit.texts]
        texts = [text for _, text in pages]
        bounds = Bounds(texts=limit, chars=self.total_chars - sum(map(len, notes)))
        shown = choose(texts, rank(query, texts), [_head(hit, text.page) for hit, text in pages], bounds)
        lines = [line for text in shown for line in text.lines()]
        excerpts = tuple(piece.excerpt for text in shown for piece in text.ordered())
        return ToolOutput(
            text="\n".join([*lines, *notes]),
            excerpts=excerpts,
            unread=found.unread,
            not_whole=found.not_whole,
        )


def _head(hit: Hit, page_number: int | None) -> str:
    """Return the line above a page of a hit: its file and page, what found it, how many say the same."""
    page = "" if page_number is None else f" (page {page_number})"
    also = f" (the same text is in {len(hit.also)} more)" if hit.also else ""
    named = f" ({BY_NAME})" if hit.by_name else ""
    return f"{hit.file}{page}{named}{also}"


def notes_on(found: Found, done: Updated) -> list[str]:
    """Return what must be said beside the hits, to models and people."""
    notes = ["no file has the phrase as it was put: these have words of it"] if found.loose else []
    notes += [not_text(found.unread)] if found.unread else []
    notes += [not_whole(found.not_whole)] if found.not_whole else []
    left = how_many(done.left, "file")
    notes += [f"{left} left to look into: akaion index does that"] if done.left else []
    notes += [f"not indexed, links or folders: {done.skipped}"] if done.skipped else []
    notes += ["a folder holds more files than are indexed"] if done.cut else []
    return notes
