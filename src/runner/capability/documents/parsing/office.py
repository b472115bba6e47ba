# SPDX-License-Identifier: Apache-2.0
"""The archive that an office document is: its parts, unpacked one at a time and never onto a disk.

Owns the bounds on archives, which kind a document is, and which parts belong to it: those that a relationship
leads to, as in the programs that show it, and no other. Sources: ISO/IEC 29500-2 (relationships, content
types, names of parts), ODF 1.3 part 2.
"""

import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from posixpath import join, normpath
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
_LINKS: Final = (
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships/",
    "http://purl.oclc.org/ooxml/officeDocument/relationships/",
)
_MAINS: Final = tuple(ending for _, endings in _MAIN for ending in endings)
_PLAIN: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FAULTS: Final = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class Link:
    """A relationship: its `id`, its `kind` such as `footnotes`, and the `part` that it leads to."""

    id: str
    kind: str
    part: str


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
        if len({name.lower() for name in self.names}) < len(parts):
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
        listed = [part for part, said in self._types.parts.items() if said.endswith(_MAINS)]
        mains = {self._lower[part] for part in listed if part in self._lower} | self._begins
        said = [kind for part in mains for kind, types in _MAIN if self._type(part).endswith(types)]
        if _MIMETYPE in self.names and self.read(_MIMETYPE).strip() == _ODT:
            said.append("odt")
        if len(said) != 1:
            raise Unreadable(Reason.AMBIGUOUS if said else Reason.OTHER_OFFICE)
        return said[0]

    @cached_property
    def main(self) -> str:
        """The part that a DOCX or XLSX begins with; raises `Unreadable`."""
        kind = self.kind
        for part in self._begins:
            if self._type(part).endswith(dict(_MAIN)[kind]):
                return part
        raise Unreadable(Reason.BROKEN)

    @cached_property
    def _begins(self) -> frozenset[str]:
        """The part that the archive says it begins with, none if it does not say; raises `Unreadable`."""
        part = only(self.links(""), "officeDocument")
        return frozenset() if part is None else frozenset({part})

    def links(self, part: str) -> list[Link]:
        """Return where the relationships of `part` lead inside the archive; `""` is the archive itself.

        Raises `Unreadable` for two of one name.
        """
        folder, _, name = part.rpartition("/")
        listed = self._found(join(folder, "_rels", f"{name}.rels"))
        if listed is None:
            return []
        links = _Links()
        read_xml(self.read(listed), links)
        if len({one for one, _, _ in links.found}) < len(links.found):
            raise Unreadable(Reason.AMBIGUOUS)
        whole = ((one, kind, normpath(join("/", folder, target))[1:]) for one, kind, target in links.found)
        places = ((one, kind, self._found(place)) for one, kind, place in whole)
        return [Link(one, kind, place) for one, kind, place in places if place is not None]

    def _found(self, name: str) -> str | None:
        """Return the name of the part `name`, whose letters may be large or small."""
        return self._lower.get(name.lower())

    @cached_property
    def _lower(self) -> Mapping[str, str]:
        return {name.lower(): name for name in self.names}

    def note_rest(self) -> None:
        """Note what the archive holds beside text."""
        media = sum("/media/" in name or name.startswith("Pictures/") for name in self.names)
        objects = sum("/embeddings/" in name or name.startswith("Object ") for name in self.names)
        macros = sum(name.endswith("vbaProject.bin") or name.startswith("Basic/") for name in self.names)
        self._draft.note(Note.PICTURES, media)
        self._draft.note(Note.EMBEDDED, objects)
        self._draft.note(Note.MACROS, int(macros > 0))

    def _type(self, part: str) -> str:
        """Return the content type of `part`, in lower case."""
        ending = part.rpartition(".")[2].lower()
        return self._types.parts.get(part.lower()) or self._types.endings.get(ending, "")

    @cached_property
    def _types(self) -> "_Types":
        types = _Types()
        if _TYPES in self.names:
            read_xml(self.read(_TYPES), types)
        return types


def only(links: Iterable[Link], kind: str) -> str | None:
    """Return the part of `kind`, None if there is none; raise `Unreadable` if there are two."""
    parts = {link.part for link in links if link.kind == kind}
    if len(parts) > 1:
        raise Unreadable(Reason.AMBIGUOUS)
    return next(iter(parts), None)


class _Types:
    """The list of content types: of parts, and of names that end alike."""

    def __init__(self) -> None:
        self.parts: dict[str, str] = {}
        self.endings: dict[str, str] = {}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        said = attributes.get("ContentType", "").lower()
        if name == "ct:Override":
            self.parts[attributes.get("PartName", "").removeprefix("/").lower()] = said
        if name == "ct:Default":
            self.endings[attributes.get("Extension", "").lower()] = said

    def end(self, name: str) -> None:
        """Nothing ends a list."""

    def text(self, text: str) -> None:
        """No text counts."""


class _Links:
    """The relationships of a part: name, kind, and where each leads, inside the archive only."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name != "rel:Relationship" or attributes.get("TargetMode") == "External":
            return
        said = attributes.get("Type", "")
        kind = next((said.removeprefix(lead) for lead in _LINKS if said.startswith(lead)), "")
        self.found.append((attributes.get("Id", ""), kind, attributes.get("Target", "")))

    def end(self, name: str) -> None:
        """Nothing ends a relationship."""

    def text(self, text: str) -> None:
        """No text counts."""
