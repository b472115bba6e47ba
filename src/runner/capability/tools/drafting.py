# SPDX-License-Identifier: Apache-2.0
"""The tools that write: a file whole, a passage of one, and a file into the bin.

Owns what a model is offered, and what it is told afterwards. Leaves steps and refusals to `writing`, spelling
to `paths`, and whether the call may happen, and up to which class, to the perimeter. Invariants P2 (only the
granted roots of the call are touched) and I12 (a refusal repeats nothing that a model or a document chose).
Nothing is ever lost: what stood there goes to the bin first.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar, Final

from runner.capability.tools.beneath import NotThere, decode
from runner.capability.tools.listing import Limits, Parts
from runner.capability.tools.openers import Opener
from runner.capability.tools.pages import PATH_LENGTH, check_names, parse_text
from runner.capability.tools.paths import resolve, virtual
from runner.capability.tools.writing import Writer
from runner.kernel.errors import ToolError
from runner.kernel.messages import JsonObject, ToolSpec
from runner.kernel.ports import Effect, GrantedCall, Root, ToolOutput

TEXT_LENGTH: Final = 100_000
"""Characters of a text that is written at once."""
PASSAGE_LENGTH: Final = 4_000
"""Characters of the text that a patch looks for."""
_PATH: Final[JsonObject] = {
    "type": "string",
    "maxLength": PATH_LENGTH,
    "description": "folder/file, as list_dir shows folders",
}
_MARK: Final = b"\xef\xbb\xbf"
_NO_TEXT: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile:
    """`write_file(path, text, replace)`: a new file, or all of one that is there if `replace` is true."""

    limits: Limits = field(default_factory=Limits)
    opener: Opener | None = None

    effect: ClassVar[Effect] = Effect.WRITE
    path_arguments: ClassVar[frozenset[str]] = frozenset({"path"})
    spec: ClassVar[ToolSpec] = ToolSpec(
        name="write_file",
        description="Write a new text file. With replace, write all of a file anew.",
        parameters={
            "type": "object",
            "properties": {
                "path": _PATH,
                "text": {"type": "string", "maxLength": TEXT_LENGTH},
                "replace": {"type": "boolean", "default": False},
            },
            "required": ["path", "text"],
            "additionalProperties": False,
        },
    )

    def run(self, call: GrantedCall) -> ToolOutput:
        """Write the file; raise `ToolError`."""
        check_names(call.arguments, self.spec)
        data = _written(call, "text", TEXT_LENGTH).encode()
        root, parts = _target(call)
        writer = Writer(root, limits=self.limits, opener=self.opener)
        if call.arguments.get("replace", False) is True:
            with suppress(NotThere):
                return _said("replaced", root, parts, writer.change(parts, lambda old: _instead(old, data)))
        writer.create(parts, data)
        return ToolOutput(text=f"written: {virtual(root, parts)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchFile:
    """`patch_file(path, old, new)`: `new` in the place of `old`, which stands in the file exactly once."""

    limits: Limits = field(default_factory=Limits)
    opener: Opener | None = None

    effect: ClassVar[Effect] = Effect.WRITE
    path_arguments: ClassVar[frozenset[str]] = frozenset({"path"})
    spec: ClassVar[ToolSpec] = ToolSpec(
        name="patch_file",
        description="Change one passage of a text file, and leave the rest.",
        parameters={
            "type": "object",
            "properties": {
                "path": _PATH,
                "old": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": PASSAGE_LENGTH,
                    "description": "the passage as it stands there, once only, without line numbers",
                },
                "new": {"type": "string", "maxLength": TEXT_LENGTH},
            },
            "required": ["path", "old", "new"],
            "additionalProperties": False,
        },
    )

    def run(self, call: GrantedCall) -> ToolOutput:
        """Change the passage; raise `ToolError`."""
        check_names(call.arguments, self.spec)
        old = parse_text(call.arguments, "old", PASSAGE_LENGTH)
        new = _written(call, "new", TEXT_LENGTH)
        root, parts = _target(call)
        writer = Writer(root, limits=self.limits, opener=self.opener)
        return _said("changed", root, parts, writer.change(parts, lambda data: _patched(data, old, new)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveToBin:
    """`move_to_bin(path)`: a file, whatever is in it, to the bin of its granted folder."""

    opener: Opener | None = None

    effect: ClassVar[Effect] = Effect.WRITE
    path_arguments: ClassVar[frozenset[str]] = frozenset({"path"})
    spec: ClassVar[ToolSpec] = ToolSpec(
        name="move_to_bin",
        description="Move one file to the bin, from which a person can take it back.",
        parameters={
            "type": "object",
            "properties": {"path": _PATH},
            "required": ["path"],
            "additionalProperties": False,
        },
    )

    def run(self, call: GrantedCall) -> ToolOutput:
        """Move the file; raise `ToolError`."""
        check_names(call.arguments, self.spec)
        root, parts = _target(call)
        kept = Writer(root, opener=self.opener).discard(parts)
        return ToolOutput(text=f"moved to the bin, as {kept}: {virtual(root, parts)}")


def _target(call: GrantedCall) -> tuple[Root, Parts]:
    target = resolve(parse_text(call.arguments, "path", PATH_LENGTH), call.roots)
    if target is None:
        raise ToolError("name a file in one of the granted folders: folder/name.txt")
    return target


def _written(call: GrantedCall, name: str, longest: int) -> str:
    """Return the argument `name`, which is to be written; raise `ToolError` for what is no text in a file."""
    text = parse_text(call.arguments, name, longest)
    if _NO_TEXT.search(text):
        raise ToolError(f"{name} holds a control character: only tabs and line ends are written")
    return text


def _instead(old: bytes, data: bytes) -> bytes:
    """Return `data`; raise `ToolError` where `old` is no text: nobody wrote that with this tool."""
    decode(old)
    return data


def _patched(data: bytes, old: str, new: str) -> bytes:
    """Return `data` with `new` for `old`, its encoding, mark and line ends kept; raise `ToolError`."""
    found = decode(data)
    if 0 < found.text.count("\r\n") == found.text.count("\n"):
        old, new = (each.replace("\r\n", "\n").replace("\n", "\r\n") for each in (old, new))
    start = found.text.find(old)
    if start < 0:
        raise ToolError("old does not stand in that file, character for character: copy it from read_file")
    if found.text.find(old, start + 1) >= 0:
        raise ToolError("old stands in that file more than once: take in more of what is around it")
    text = found.text[:start] + new + found.text[start + len(old) :]
    try:
        return (_MARK if data.startswith(_MARK) else b"") + text.encode(found.encoding)
    except UnicodeEncodeError:
        raise ToolError(f"new holds a character that is not in {found.encoding}, as that file is") from None


def _said(done: str, root: Root, parts: Parts, kept: str) -> ToolOutput:
    return ToolOutput(text=f"{done}: {virtual(root, parts)} (the version before is in the bin, as {kept})")
