# SPDX-License-Identifier: Apache-2.0
"""The read tool for documents: one page of a PDF, a letter, a table or a mail, its lines numbered.

Owns what a model sees of a page. Leaves taking a document apart to a reader, which does it in a sandbox;
confinement to `beneath`, and labels to the perimeter, which gives the result those of the granted folder.
Invariants P2 and I12, as in `filesystem`. A long line is shown whole, in pieces that are cut after the veil.
"""

from typing import ClassVar, Final

from runner.capability.documents.port import Document, DocumentReader
from runner.capability.documents.reader import FILE_BYTES
from runner.capability.tools.beneath import Beneath
from runner.capability.tools.listing import Limits
from runner.capability.tools.pages import (
    LINES_AT_ONCE,
    MAX_LINES,
    PATH,
    START_LINE,
    Piece,
    check_names,
    file_of,
    parse_whole,
    pieces_of,
    rest_after,
    veiled,
)
from runner.capability.tools.paths import virtual
from runner.kernel.errors import ToolError
from runner.kernel.language import how_many
from runner.kernel.messages import ToolSpec
from runner.kernel.ports import Effect, GrantedCall, ToolOutput

NAME: Final = "read_document"
"""The name by which a profile grants this tool."""
LINE_CHARS: Final = 500
TOTAL_CHARS: Final = 8000
"""Characters of a piece of a line, and of one answer."""


class ReadDocument:
    """`read_document(path, page, start_line, max_lines)`: numbered lines of one page.

    `confined` says whether `reader` works in a sandbox; if not, nothing answers for what it does (P3).
    """

    veils: ClassVar[bool] = True
    path_arguments: ClassVar[frozenset[str]] = frozenset({"path"})
    spec: ClassVar[ToolSpec] = ToolSpec(
        name=NAME,
        description="Read one page of a PDF, Word, Excel, mail or web file. Lines are numbered.",
        parameters={
            "type": "object",
            "properties": {
                "path": PATH,
                "page": {"type": "integer", "minimum": 1, "default": 1},
                "start_line": START_LINE,
                "max_lines": MAX_LINES,
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    )

    def __init__(self, reader: DocumentReader, *, confined: bool = True) -> None:
        self.confined: Final = confined
        self.effect: Final = Effect.READ if confined else Effect.RUN_FREE
        self._reader = reader

    def run(self, call: GrantedCall) -> ToolOutput:
        """Return the lines, each also as an excerpt; raise `ToolError`."""
        check_names(call.arguments, self.spec)
        page = parse_whole(call.arguments, "page", default=1)
        first = parse_whole(call.arguments, "start_line", default=1)
        count = parse_whole(call.arguments, "max_lines", default=LINES_AT_ONCE, most=LINES_AT_ONCE)
        root, parts = file_of(call)
        data = Beneath(root, limits=Limits(file_bytes=FILE_BYTES)).data(parts)
        document = self._reader.read(data, name=(parts or (root.alias,))[-1])
        name, *texts = veiled(call, [virtual(root, parts), *_texts(document)])
        if page > max(1, len(texts)):
            raise ToolError(f"page is past the end: the document has {how_many(len(texts), 'page')}")
        lines = texts[page - 1].split("\n") if texts and texts[page - 1] else []
        if first > max(1, len(lines)):
            raise ToolError(f"start_line is past the end: page {page} has {how_many(len(lines), 'line')}")
        shown, last = _fitting(name, page, lines, first, count)
        head = f"{name} ({document.kind.upper()}, page {page} of {max(1, len(texts))})"
        rest = rest_after(last, len(lines))
        rest += [f"(page {page + 1} follows: page={page + 1})"] if not rest and page < len(texts) else []
        said = [piece.text for piece in shown] or ["(no text on this page)"]
        notes = [f"({note})" for note in document.notes]
        return ToolOutput(
            text="\n".join([head, *said, *rest, *notes]),
            excerpts=tuple(piece.excerpt for piece in shown),
            not_whole=1 if document.missing else 0,
        )


def _texts(document: Document) -> list[str]:
    return ["\n".join(page.lines) for page in document.pages]


def _fitting(name: str, page: int, lines: list[str], first: int, count: int) -> tuple[list[Piece], int]:
    """Return the pieces that are shown of `lines` from number `first` on, and the number of the last one.

    Of a first line that is longer than an answer, what fits is shown, and the next one follows.
    """
    shown: list[Piece] = []
    room = TOTAL_CHARS
    last = first - 1
    for number, line in enumerate(lines[first - 1 : first - 1 + count], start=first):
        for piece in pieces_of(name, page, number, line, width=LINE_CHARS):
            room -= len(piece.text) + 1
            if room < 0 and shown:
                return shown, max(last, first)
            shown.append(piece)
        last = number
    return shown, last
