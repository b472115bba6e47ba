# SPDX-License-Identifier: Apache-2.0
"""The search tool: which lines of the granted files answer a query best, without an index.

Owns gathering the texts within bounds. Leaves confinement to `beneath`, the order to `ranking`, and fitting
the best lines into a short answer to `showing`. Invariants P2 (only the roots of the call are read) and I12.
What could not be read or was left out is said in the answer, never passed over.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar, Final

from runner.capability.documents.kinds import HEAD, is_document
from runner.capability.tools.beneath import Beneath, decode
from runner.capability.tools.listing import Limits, Parts
from runner.capability.tools.openers import Opener
from runner.capability.tools.pages import (
    PATH,
    PATH_LENGTH,
    QUERY,
    QUERY_LENGTH,
    check_names,
    parse_text,
    path_of,
    split_lines,
)
from runner.capability.tools.paths import resolve, virtual
from runner.capability.tools.ranking import DEFAULT, Document, Tuning, rank
from runner.capability.tools.showing import Bounds, choose
from runner.kernel.errors import ToolError
from runner.kernel.language import how_many, not_text
from runner.kernel.messages import ToolSpec
from runner.kernel.ports import Effect, GrantedCall, Root, ToolOutput

SEARCH_CHARS: Final = 64 * 1024 * 1024
"""Characters of text one search reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchText:
    """`search_text(query, path)`: the lines of the granted files that answer a query best.

    `max_passages`, `max_files` and `total_chars` bound an answer and `line_chars` one line of it (the first
    passage is always shown). A passage below `least_share` of the best score is left out. `search_chars`
    bounds what is read. `tuning` holds the constants of the order. `documents_by` names the granted tool that
    looks into documents, which this one does not, if there is one.
    """

    max_passages: int = 12
    max_files: int = 3
    total_chars: int = 1800
    line_chars: int = 300
    least_share: float = 0.0
    search_chars: int = SEARCH_CHARS
    tuning: Tuning = DEFAULT
    limits: Limits = field(default_factory=Limits)
    opener: Opener | None = None
    documents_by: str | None = None

    effect: ClassVar[Effect] = Effect.READ
    veils: ClassVar[bool] = True
    path_arguments: ClassVar[frozenset[str]] = frozenset({"path"})
    spec: ClassVar[ToolSpec] = ToolSpec(
        name="search_text",
        description="Search all files for words, names, dates or numbers. Shows the best lines.",
        parameters={
            "type": "object",
            "properties": {
                "query": QUERY,
                "path": {**PATH, "default": "."},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    )

    def run(self, call: GrantedCall) -> ToolOutput:
        """Return the best lines by file, each also as an excerpt; raise `ToolError`."""
        check_names(call.arguments, self.spec)
        query = parse_text(call.arguments, "query", QUERY_LENGTH)
        path = parse_text(call.arguments, "path", PATH_LENGTH, default=".")
        target = resolve(path_of(call, path), call.roots)
        places = [(root, ()) for root in call.roots] if target is None else [target]
        gathered = self._gather(places, strict=target is not None)
        gathered.documents = _seen_by(call, gathered.documents)
        ranking = rank(query, gathered.documents, self.tuning)
        notes = gathered.notes(self.documents_by)
        if not ranking.passages:
            nothing = f"Nothing found in {how_many(len(gathered.documents), 'file')}: try other words."
            return ToolOutput(text="\n".join([nothing, *notes]), unread=gathered.unread)
        names = [document.name for document in gathered.documents]
        files = choose(gathered.documents, ranking, names, self._bounds(sum(map(len, notes))))
        lines = [line for file in files for line in file.lines()]
        excerpts = tuple(piece.excerpt for file in files for piece in file.ordered())
        return ToolOutput(text="\n".join([*lines, *notes]), excerpts=excerpts, unread=gathered.unread)

    def _bounds(self, taken: int) -> Bounds:
        """Return the bounds of an answer of which `taken` characters are."""
        return Bounds(
            passages=self.max_passages,
            texts=self.max_files,
            chars=self.total_chars - taken,
            line_chars=self.line_chars,
            least_share=self.least_share,
        )

    def _gather(self, places: Sequence[tuple[Root, Parts]], *, strict: bool) -> "_Gathered":
        """Read the texts at `places`; when `strict`, a place that cannot be read is an error."""
        gathered = _Gathered(files=self.limits.files, chars=self.search_chars)
        for root, start in places:
            try:
                beneath = Beneath(root, limits=self.limits, opener=self.opener)
                walk = beneath.walk(start)
            except ToolError:
                if strict:
                    raise
                gathered.skipped += 1
                continue
            gathered.skipped += walk.skipped
            gathered.cut = gathered.cut or walk.cut
            gathered.add(root, beneath, walk)
        return gathered


def _seen_by(call: GrantedCall, documents: list[Document]) -> list[Document]:
    """Return `documents` as whoever asked may see them, names and their order included.

    All of them are looked at first: a value may be recognised in one place only.
    """
    if call.veil is None:
        return documents
    names = [document.name for document in documents]
    texts = call.veil([*names, *("\n".join(document.lines) for document in documents)])
    pairs = sorted(zip(texts[: len(names)], texts[len(names) :], strict=True))
    return [Document(name=name, lines=split_lines(text)) for name, text in pairs]


@dataclass(slots=True, kw_only=True)
class _Gathered:
    """The texts read so far, how many more `files` and `chars` may be, and what was left out.

    `unread` counts the files that are no text; `packed` those that are documents, as text or not at all.
    """

    files: int
    chars: int
    documents: list[Document] = field(default_factory=list)
    unread: int = 0
    packed: int = 0
    packed_unread: int = 0
    skipped: int = 0
    cut: bool = False

    def add(self, root: Root, beneath: Beneath, walk: Iterable[Parts]) -> None:
        """Read the files of `walk`, while there is room; count those that cannot be read."""
        for parts in walk:
            if len(self.documents) >= self.files or self.chars <= 0:
                self.cut = True
                return
            text, packed = _look(beneath, parts)
            self.packed += packed
            if text is None:
                self.unread += 1
                self.packed_unread += packed
                continue
            self.chars -= len(text)
            self.documents.append(Document(name=virtual(root, parts), lines=split_lines(text)))

    def notes(self, documents_by: str | None) -> list[str]:
        """Return what the answer must say about what was not searched, and which tool reads documents."""
        others = self.unread - self.packed_unread
        notes = [f"({not_text(others)})"] if others else []
        notes += [f"({_as_text_only(self.packed, documents_by)})"] if self.packed else []
        if self.skipped:
            notes.append(f"(not searched, files or links: {self.skipped})")
        if self.cut:
            notes.append(
                f"(too much to search: nothing after the first {how_many(len(self.documents), 'file')} was)"
            )
        return notes


def _look(beneath: Beneath, parts: Parts) -> tuple[str | None, bool]:
    """Return the text of a file, None if it has none, and whether it is a document."""
    text, data = None, b""
    with suppress(ToolError):
        data = beneath.data(parts)
        text = decode(data).text
    with suppress(ToolError):
        data = data or beneath.beginning(parts, HEAD)
    return text, is_document(data)


def _as_text_only(count: int, tool: str | None) -> str:
    """Return what is said of `count` documents; `tool` is the one that looks into them, if one does."""
    said = (
        "1 PDF, mail or other document was" if count == 1 else f"{count} PDF, mails or other documents were"
    )
    by = "read_document does, where it is granted" if tool is None else f"{tool} does"
    return f"{said} not looked into, or as plain text only: {by}"
