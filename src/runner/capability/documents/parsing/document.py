# SPDX-License-Identifier: Apache-2.0
"""A document of any kind: its parser, found by its content, also for what lies in it."""

from typing import assert_never

from runner.capability.documents.kinds import Family, family_of
from runner.capability.documents.parsing import docx, mail, markup, odt, page, rtf, signed, text, xlsx
from runner.capability.documents.parsing.draft import Draft, Unreadable
from runner.capability.documents.parsing.office import Archive
from runner.capability.documents.words import Reason


def read_into(data: bytes, draft: Draft) -> None:
    """Read `data` into `draft`, whose kind is that of the outermost document; raise `Unreadable`, `Full`."""
    family = family_of(data)
    draft.kind = draft.kind or family
    match family:
        case Reason():
            raise Unreadable(family)
        case Family.ZIP:
            _office(data, draft)
        case Family.PDF:
            _pdf(data, draft)
        case Family.RTF:
            rtf.parse(data, draft)
        case Family.HTML:
            page.parse(data, draft)
        case Family.EML:
            mail.parse(data, draft, read_into)
        case Family.P7M:
            signed.parse(data, draft, read_into)
        case Family.XML:
            markup.parse(data, draft)
        case Family.TEXT:
            text.parse(data, draft)
        case _:
            assert_never(family)


def _office(data: bytes, draft: Draft) -> None:
    archive = Archive(data, draft)
    draft.kind = archive.kind if draft.kind == Family.ZIP else draft.kind
    parsers = {"docx": docx.parse, "odt": odt.parse, "xlsx": xlsx.parse}
    parsers[archive.kind](archive, draft)


def _pdf(data: bytes, draft: Draft) -> None:
    """Read a PDF. Its parser is imported for the first one only: it takes longer than most documents."""
    from runner.capability.documents.parsing import pdf  # noqa: PLC0415 - see above

    pdf.parse(data, draft)
