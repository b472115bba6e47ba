# SPDX-License-Identifier: Apache-2.0
"""The archive that an office document is: its parts, unpacked one at a time and never onto a disk.

Owns the bounds on archives and which kind a document is. Source: ISO/IEC 29500-2 (content types), ODF 1.3
part 2.
"""

import zipfile
import zlib
from collections.abc import Mapping
from functools import cached_property
from io import BytesIO
from typing import Final

from runner.capability.documents.parsing.draft import Draft, Unreadable
from runner.capability.documents.parsing.markup import read_xml
from runner.capability.documents.words import Note, Reason

MEMBERS: Final = 5_000
MEMBER_BYTES: Final = 64 << 20
_TYPES: Final = "[Content_Types].xml"
_MIMETYPE: Final = "mimetype"
_ODT: Final = b"application/vnd.oasis.opendocument.text"
_MAIN: Final = (
    ("docx", ("wordprocessingml.document.main+xml", "ms-word.document.macroenabled.main+xml")),
    ("xlsx", ("spreadsheetml.sheet.main+xml", "ms-excel.sheet.macroenabled.main+xml")),
)
_PLAIN: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FAULTS: Final = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError)


class Archive:
    """The parts of an office document in `data`; raises `Unreadable` for one that is no honest archive."""

    def __init__(self, data: bytes, draft: Draft) -> None:
        self._draft = draft
        try:
            self._zip = zipfile.ZipFile(BytesIO(data))
        except _FAULTS:
            raise Unreadable(Reason.BROKEN) from None
        parts = self._zip.infolist()
        self.names: Final = frozenset(part.filename for part in parts)
        if len(parts) > MEMBERS:
            raise Unreadable(Reason.TOO_BIG)
        if len(self.names) < len(parts):
            raise Unreadable(Reason.AMBIGUOUS)
        if any(part.flag_bits & 1 for part in parts):
            raise Unreadable(Reason.ENCRYPTED)
        if any(".." in name.replace("\\", "/").split("/") or name[:1] in "/\\" for name in self.names):
            raise Unreadable(Reason.MEMBER_NAMES)

    def read(self, name: str) -> bytes:
        """Return the part `name`; raise `Unreadable` when it is not there, broken, or too big."""
        try:
            part = self._zip.getinfo(name)
            if part.compress_type not in _PLAIN:
                raise Unreadable(Reason.BROKEN)
            with self._zip.open(part) as stream:
                data = stream.read(MEMBER_BYTES + 1)
        except (KeyError, *_FAULTS):
            raise Unreadable(Reason.BROKEN) from None
        if len(data) > MEMBER_BYTES:
            raise Unreadable(Reason.TOO_BIG)
        self._draft.unpack(len(data))
        return data

    @cached_property
    def kind(self) -> str:
        """Which document it is: `docx`, `xlsx` or `odt`; raises `Unreadable` for another, and for two."""
        kinds = {kind for kind, types in _MAIN if self.parts(*types)}
        if _MIMETYPE in self.names and self.read(_MIMETYPE).strip() == _ODT:
            kinds.add("odt")
        if len(kinds) != 1:
            raise Unreadable(Reason.AMBIGUOUS if kinds else Reason.OTHER_OFFICE)
        return kinds.pop()

    def parts(self, *types: str) -> list[str]:
        """Return the names of the parts that are of one of `types`, by what a content type ends in."""
        return sorted(name for name, said in self._said.items() if said.endswith(types))

    def note_rest(self) -> None:
        """Note what the archive holds beside text."""
        media = sum("/media/" in name or name.startswith("Pictures/") for name in self.names)
        objects = sum("/embeddings/" in name or name.startswith("Object ") for name in self.names)
        macros = sum(name.endswith("vbaProject.bin") or name.startswith("Basic/") for name in self.names)
        self._draft.note(Note.PICTURES, media)
        self._draft.note(Note.EMBEDDED, objects)
        self._draft.note(Note.MACROS, int(macros > 0))

    @cached_property
    def _said(self) -> Mapping[str, str]:
        """The content types of the parts that are there, in lower case."""
        if _TYPES not in self.names:
            return {}
        types = _Types()
        read_xml(self.read(_TYPES), types)
        return {name: said for name, said in types.found.items() if name in self.names}


class _Types:
    """The list of content types."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "Override":
            part = attributes.get("PartName", "").removeprefix("/")
            self.found[part] = attributes.get("ContentType", "").lower()

    def end(self, name: str) -> None:
        """Nothing ends a list."""

    def text(self, text: str) -> None:
        """No text counts."""
