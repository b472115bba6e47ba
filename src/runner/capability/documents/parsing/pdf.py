# SPDX-License-Identifier: Apache-2.0
"""PDF: the text of each page in the order its program shows it, by pypdf.

A page without text is counted: it may be a scan. Fields of forms and remarks stand after the text of their
page. What pypdf says of a fault is dropped (I12); its bounds on streams are narrowed to ours.
"""

from collections.abc import Iterator
from io import BytesIO
from typing import Final

from pypdf import PdfReader, overwrite_configuration
from pypdf.errors import LimitReachedError
from pypdf.generic import ArrayObject, DictionaryObject

from runner.capability.documents.parsing.draft import Draft, Full, Unreadable
from runner.capability.documents.words import Note, Reason

STREAM_BYTES: Final = 48 << 20
OPERATIONS: Final = 1_000_000
"""Words and operators of a page's program."""
FIELDS: Final = 2_000
FIELD_DEPTH: Final = 32
"""Of fields that belong to fields."""
_FIELD: Final = ("/Tx", "/Ch")
_UNSAID: Final = ("/Widget", "/Link", "/Popup")


def parse(data: bytes, draft: Draft) -> None:
    """Read the pages; raise `Unreadable`, `Full`."""
    overwrite_configuration(
        zlib_maximum_output_length=STREAM_BYTES,
        lzw_maximum_output_length=STREAM_BYTES,
        run_length_maximum_output_length=STREAM_BYTES,
        array_based_stream_maximum_output_length=STREAM_BYTES,
        stream_parsing_work_maximum_count=OPERATIONS,
        jbig2dec_binary=None,
    )
    try:
        reader = PdfReader(BytesIO(data))
        locked = reader.is_encrypted and not reader.decrypt("")
        count = 0 if locked else len(reader.pages)
    except (MemoryError, RecursionError):
        raise
    except LimitReachedError:
        raise Unreadable(Reason.TOO_BIG) from None
    except Exception as problem:  # noqa: BLE001 - whatever a broken file does to a parser (I12)
        reason = Reason.ENCRYPTED if type(problem).__name__ == "DependencyError" else Reason.BROKEN
        raise Unreadable(reason) from None
    if locked:
        raise Unreadable(Reason.ENCRYPTED)
    _pages(reader, count, draft)
    _note_rest(reader, draft)


def _pages(reader: PdfReader, count: int, draft: Draft) -> None:
    broken = 0
    for number in range(count):
        draft.page()
        try:
            found = reader.pages[number]
            text = found.extract_text()
            fields = list(_fields(found))
        except (MemoryError, RecursionError):
            raise
        except LimitReachedError:
            raise Unreadable(Reason.TOO_BIG) from None
        except Exception:  # noqa: BLE001 - as above
            broken += 1
            continue
        for line in (text, *fields):
            draft.line(line)
        draft.note(Note.BLANK_PAGES, int(not text.strip()))
    if broken == count:
        raise Unreadable(Reason.BROKEN)
    draft.note(Note.BROKEN_PAGES, broken)


def _fields(found: DictionaryObject) -> Iterator[str]:
    """Yield the fields of a form on a page that hold text, as `name: value`, and the text of its remarks."""
    notes = found.get("/Annots")
    shown = notes.get_object() if notes is not None else None
    for each in list(shown)[:FIELDS] if isinstance(shown, ArrayObject) else ():
        note = each.get_object()
        if not isinstance(note, DictionaryObject):
            continue
        if _inherited(note, "/FT") in _FIELD and (value := _inherited(note, "/V")):
            yield f"{_inherited(note, '/T') or ''}: {value}"
        elif note.get("/Subtype") not in _UNSAID and (said := note.get("/Contents")):
            yield str(said.get_object())


def _inherited(field: DictionaryObject, key: str) -> object:
    """Return what `field` says of `key`, or else the field it belongs to; None if nobody does."""
    for _ in range(FIELD_DEPTH):
        if key in field:
            return field[key]
        parent = field.get("/Parent")
        above = None if parent is None else parent.get_object()
        if not isinstance(above, DictionaryObject):
            break
        field = above
    return None


def _note_rest(reader: PdfReader, draft: Draft) -> None:
    """Note scripts and attached files, as far as the catalogue says so."""
    try:
        root = reader.trailer["/Root"].get_object()
        names = root.get("/Names") if isinstance(root, DictionaryObject) else None
        listed = names.get_object() if names is not None else None
    except (MemoryError, RecursionError, Full):
        raise
    except Exception:  # noqa: BLE001 - as above
        return
    if isinstance(listed, DictionaryObject):
        draft.note(Note.EMBEDDED, int("/EmbeddedFiles" in listed))
        draft.note(Note.MACROS, int("/JavaScript" in listed))
