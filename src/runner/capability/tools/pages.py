# SPDX-License-Identifier: Apache-2.0
"""Pages: what the read tools share, from a call's arguments to the lines of an answer.

Owns reading arguments (they were validated before; a tool still trusts none), cutting a text into lines,
and the pair of a numbered line with its `Excerpt`. Invariant I12: a refusal names the argument, not its
value. A line is what ends with LF, CR LF or CR; it is shown without trailing white space. When it is too
long to show whole, the excerpt is exactly the piece shown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from runner.capability.tools.listing import Parts
from runner.capability.tools.paths import resolve
from runner.capability.tools.ranking import Relevance, cut
from runner.kernel.errors import ToolError
from runner.kernel.messages import JsonObject, ToolSpec
from runner.kernel.ports import Excerpt, GrantedCall, Root

PATH_LENGTH: Final = 1000
"""Characters of a path argument."""
QUERY_LENGTH: Final = 400
"""Characters of a query."""
LINES_AT_ONCE: Final = 200
"""Lines `read_file` shows at most."""
PATH: Final[JsonObject] = {
    "type": "string",
    "maxLength": PATH_LENGTH,
    "description": 'folder/file as list_dir shows it; "." is everything granted',
}
"""The JSON Schema of a path argument."""
QUERY: Final[JsonObject] = {
    "type": "string",
    "minLength": 1,
    "maxLength": QUERY_LENGTH,
    "description": "the words to look for",
}
START_LINE: Final[JsonObject] = {"type": "integer", "minimum": 1, "default": 1}
MAX_LINES: Final[JsonObject] = {
    "type": "integer",
    "minimum": 1,
    "maximum": LINES_AT_ONCE,
    "default": LINES_AT_ONCE,
}
"""Those of a query, and of what is shown of a text."""

_UNSEEN: Final = "[unseen]"
"""Stands in a path for a name of which nothing may be seen."""
_LINE_END: Final = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A line as shown: its `text` with the number, and the excerpt of the same characters."""

    text: str = field(repr=False)
    excerpt: Excerpt


def pieces_of(file: str, page: int, number: int, line: str, *, width: int) -> Iterator[Piece]:
    """Yield line `number` of a `page`, whole, in pieces of at most `width` characters.

    A piece ends after a sentence or a space where that leaves it long enough.
    """
    whole, start, mark = line.rstrip(), 0, ""
    while True:
        part = whole[start : start + width]
        more = start + len(part) < len(whole)
        if more:
            sentence, space = part.rfind(". ", width // 2), part.rfind(" ", width // 2)
            part = part[: max(sentence if sentence > 0 else space, 0) + 1 or width]
        start += len(part)
        excerpt = Excerpt(file=file, page=page, line=number, text=part.strip())
        yield Piece(text=f"{number}: {mark}{excerpt.text}{'…' if more else ''}", excerpt=excerpt)
        mark = "…"
        if not more:
            return


def piece_of(
    file: str,
    number: int,
    line: str,
    *,
    width: int,
    relevance: Relevance | None = None,
    page: int | None = None,
) -> Piece:
    """Return line `number` of `file`, or of a page of it, at most `width` characters.

    They are those around what is relevant, or its start.
    """
    whole = line.rstrip()
    start, end = cut(whole, relevance or {}, width)
    part = whole if (start, end) == (0, len(whole)) else whole[start:end].strip()
    before, after = "…" if start else "", "…" if end < len(whole) else ""
    excerpt = Excerpt(file=file, page=page, line=number, text=part)
    return Piece(text=f"{number}: {before}{part}{after}", excerpt=excerpt)


def split_lines(text: str) -> tuple[str, ...]:
    """Return the lines of `text` without their ends; a last end opens no further line."""
    lines = _LINE_END.split(text)
    return tuple(lines[:-1] if not lines[-1] else lines)


def path_of(call: GrantedCall, path: str) -> str:
    """Return the path to open: a model is held to what it may see, a program knows what it names.

    A path of which nothing may be seen leads nowhere, like one that is wrong.
    """
    if call.named or not path:
        return path
    folder, *rest = path.split("/")
    return veiled(call, [path])[0] or "/".join([folder, *(_UNSEEN for _ in rest)])


def file_of(call: GrantedCall) -> tuple[Root, Parts]:
    """Return the root and the names of the file that the argument `path` is; raise `ToolError`."""
    target = resolve(path_of(call, parse_text(call.arguments, "path", PATH_LENGTH)), call.roots)
    if target is None:
        raise ToolError("that is not a file: list_dir shows the files there are")
    return target


def rest_after(last: int, lines: int) -> list[str]:
    """Return what is said when the last line shown, counted from 1, is not the last of `lines`."""
    return [f"(lines {last + 1}-{lines} follow: start_line={last + 1})"] if last < lines else []


def veiled(call: GrantedCall, texts: Sequence[str]) -> Sequence[str]:
    """Return `texts` as whoever asked may see them."""
    return texts if call.veil is None else call.veil(texts)


def check_names(arguments: JsonObject, spec: ToolSpec) -> None:
    """Raise `ToolError` when `arguments` has a name that `spec` does not."""
    known = spec.parameters["properties"]
    if isinstance(known, Mapping) and not set(arguments) <= set(known):
        raise ToolError(f"{spec.name} takes only these arguments: {', '.join(known)}")


def parse_text(arguments: JsonObject, name: str, longest: int, *, default: str | None = None) -> str:
    """Return the string argument `name`, at most `longest` characters; raise `ToolError`."""
    value = arguments.get(name, default)
    if not isinstance(value, str) or len(value) > longest:
        raise ToolError(f"{name} must be a text of at most {longest} characters")
    return value


def parse_whole(arguments: JsonObject, name: str, *, default: int, most: int | None = None) -> int:
    """Return the whole number `name`, from 1 up to `most`; raise `ToolError`. `2.0` is a whole number."""
    value = arguments.get(name, default)
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= (most or number):
        raise ToolError(f"{name} must be a whole number, at least 1" + (f", at most {most}" if most else ""))
    return number
