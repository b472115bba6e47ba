# SPDX-License-Identifier: Apache-2.0
"""The read tools that show one place: list a folder, read a file. `SearchText` is offered here too.

Owns what a model sees of a folder and of a file: names escaped, lines numbered, amounts bounded. Leaves
confinement to `beneath`, spelling to `paths`, search to `search`, and whether the call may happen, with its
labels, to the perimeter. Invariants P2 (only granted roots are touched) and I12 (a refusal repeats nothing
that a model or a document chose).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import ClassVar, assert_never

from runner.capability.documents.kinds import PACKED, family_of
from runner.capability.tools.beneath import Beneath, FileText, decode
from runner.capability.tools.listing import Entry, Kind, Limits, Parts
from runner.capability.tools.openers import Opener
from runner.capability.tools.pages import (
    LINES_AT_ONCE,
    MAX_LINES,
    PATH,
    PATH_LENGTH,
    START_LINE,
    check_names,
    file_of,
    parse_text,
    parse_whole,
    path_of,
    piece_of,
    rest_after,
    split_lines,
    veiled,
)
from runner.capability.tools.paths import resolve, shown, virtual
from runner.capability.tools.search import SearchText
from runner.kernel.errors import ToolError
from runner.kernel.language import how_many, not_text
from runner.kernel.messages import ToolSpec
from runner.kernel.ports import Effect, Excerpt, GrantedCall, Root, ToolOutput

__all__ = ["ListDir", "ReadFile", "SearchText"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDir:
    """`list_dir(path)`: the names in a folder, with kind and size. `.` lists the granted folders.

    `names` and `total_chars` bound, in names and in characters, one answer. In a folder of at most `names`,
    files that cannot be read as text are counted.
    """

    names: int = 200
    total_chars: int = 8000
    limits: Limits = field(default_factory=Limits)
    opener: Opener | None = None

    effect: ClassVar[Effect] = Effect.READ
    veils: ClassVar[bool] = True
    path_arguments: ClassVar[frozenset[str]] = frozenset({"path"})
    spec: ClassVar[ToolSpec] = ToolSpec(
        name="list_dir",
        description="List the files and folders in a folder.",
        parameters={
            "type": "object",
            "properties": {"path": {**PATH, "default": "."}},
            "additionalProperties": False,
        },
    )

    def run(self, call: GrantedCall) -> ToolOutput:
        """Return the listing; raise `ToolError`."""
        check_names(call.arguments, self.spec)
        path = parse_text(call.arguments, "path", PATH_LENGTH, default=".")
        target = resolve(path_of(call, path), call.roots)
        if target is None:
            return ToolOutput(text=self._roots(call.roots))
        root, parts = target
        beneath = Beneath(root, limits=self.limits, opener=self.opener)
        folder = beneath.entries(parts)
        lines = _lines(call, folder.entries)[: self.names]
        ends = accumulate(len(line) + 1 for line in lines)
        fitting = lines[: sum(end <= self.total_chars for end in ends)]
        notes = [] if folder.entries else ["(empty)"]
        if len(fitting) < len(folder.entries) or folder.cut:
            notes.append(f"(the list goes on after the first {how_many(len(fitting), 'name')})")
        # all or none: which names come first may depend on what a veil hides
        unread = _unread(beneath, parts, folder.entries) if len(folder.entries) <= self.names else 0
        notes += [f"({not_text(unread)})"] if unread else []
        head = veiled(call, [f"{virtual(root, parts)}/"])[0]
        return ToolOutput(text="\n".join([head, *fitting, *notes]), unread=unread)

    def _roots(self, roots: Sequence[Root]) -> str:
        lines = [self._root(root) for root in roots]
        return "\n".join(lines) or "(no folder is granted)"

    def _root(self, root: Root) -> str:
        try:
            folder = Beneath(root, limits=self.limits, opener=self.opener).kind(()) is Kind.FOLDER
        except ToolError:
            return f"{virtual(root, ())} (cannot be read)"
        return virtual(root, ()) + ("/" if folder else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """`read_file(path, start_line, max_lines)`: numbered lines of a file.

    `line_chars` and `total_chars` bound, in characters, one line and one answer.
    """

    line_chars: int = 1000
    total_chars: int = 8000
    limits: Limits = field(default_factory=Limits)
    opener: Opener | None = None

    effect: ClassVar[Effect] = Effect.READ
    veils: ClassVar[bool] = True
    path_arguments: ClassVar[frozenset[str]] = frozenset({"path"})
    spec: ClassVar[ToolSpec] = ToolSpec(
        name="read_file",
        description="Read a file. Lines are numbered.",
        parameters={
            "type": "object",
            "properties": {
                "path": PATH,
                "start_line": START_LINE,
                "max_lines": MAX_LINES,
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    )

    def run(self, call: GrantedCall) -> ToolOutput:
        """Return the lines, each also as an excerpt; raise `ToolError`."""
        check_names(call.arguments, self.spec)
        first = parse_whole(call.arguments, "start_line", default=1)
        count = parse_whole(call.arguments, "max_lines", default=LINES_AT_ONCE, most=LINES_AT_ONCE)
        root, parts = file_of(call)
        found = _text(Beneath(root, limits=self.limits, opener=self.opener).data(parts))
        name, text = veiled(call, [virtual(root, parts), found.text])
        lines = split_lines(text)
        if first > max(1, len(lines)):
            raise ToolError(f"start_line is past the end: the file has {how_many(len(lines), 'line')}")
        return self._page(name, found, lines, first, count)

    def _page(self, name: str, found: FileText, lines: Sequence[str], first: int, count: int) -> ToolOutput:
        head = name if found.encoding == "utf-8" else f"{name} (read as {found.encoding})"
        shown_lines: list[str] = []
        excerpts: list[Excerpt] = []
        room = self.total_chars
        for number, line in enumerate(lines[first - 1 : first - 1 + count], start=first):
            piece = piece_of(name, number, line, width=self.line_chars)
            room -= len(piece.text) + 1
            if room < 0 and shown_lines:
                break
            shown_lines.append(piece.text)
            excerpts.append(piece.excerpt)
        last = first + len(shown_lines) - 1
        rest = rest_after(last, len(lines))
        return ToolOutput(
            text="\n".join([head, *(shown_lines or ["(empty file)"]), *rest]), excerpts=tuple(excerpts)
        )


def _text(data: bytes) -> FileText:
    """Return `data` as text; raise `ToolError`, which of a document says who reads it."""
    if family_of(data) in PACKED:
        raise ToolError("that file is a document: read_document reads it, where it is granted")
    return decode(data)


def _unread(beneath: Beneath, parts: Parts, entries: Sequence[Entry]) -> int:
    """Return how many files of `entries`, which stand in the folder at `parts`, cannot be read as text."""
    count = 0
    for entry in entries:
        try:
            if entry.kind is Kind.FILE:
                beneath.read((*parts, entry.name))
        except ToolError:
            count += 1
    return count


def _lines(call: GrantedCall, entries: Sequence[Entry]) -> list[str]:
    """Return a line for each of `entries`; behind a veil in the order of what is seen of them."""
    lines = [_entry(entry, sized=call.veil is None) for entry in entries]
    return lines if call.veil is None else sorted(call.veil(lines))


def _entry(entry: Entry, *, sized: bool) -> str:
    """Return the line of `entry`. Its size says how long what is veiled in it is."""
    match entry.kind:
        case Kind.FILE if not sized:
            return shown(entry.name)
        case Kind.FILE:
            return f"{shown(entry.name)} ({how_many(entry.size, 'byte')})"
        case Kind.FOLDER:
            return f"{shown(entry.name)}/"
        case Kind.LINK:
            return f"{shown(entry.name)} (link, not followed)"
        case Kind.OTHER:
            return f"{shown(entry.name)} (not a file, not read)"
        case _:
            assert_never(entry.kind)
