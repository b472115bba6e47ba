# SPDX-License-Identifier: Apache-2.0
"""I8: of an Office file that is read which its own programs show: parts, elements and branches."""

import pytest
from papers import (
    LINKS,
    MC,
    SHAPE,
    SHEET,
    WORD,
    S,
    W,
    docx,
    links_of,
    paragraph,
    types_of,
    xlsx,
    zipped,
)

from runner.capability.documents.parsing import child
from runner.capability.documents.words import Note, Reason

STRICT = 'xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"'
MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"


def lines(data: bytes) -> list[str]:
    """Return the lines of the only page."""
    [page] = pages(data)
    return page


def pages(data: bytes) -> list[list[str]]:
    answer = child.answer_to(data)
    assert "pages" in answer, answer
    found: list[list[str]] = answer["pages"]  # type: ignore[assignment]
    return found


def letter(body: str, *, space: str = W, **changed: str | bytes) -> bytes:
    """Return a DOCX of the parts that it needs, of which `changed` replaces some."""
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": types_of({"word/document.xml": MAIN}),
        "_rels/.rels": links_of(("officeDocument", "word/document.xml")),
        "word/document.xml": f"<w:document {space}><w:body>{body}</w:body></w:document>",
    }
    return zipped(parts | changed)


def other(text: str) -> str:
    return f"<w:document {W}><w:body>{paragraph(text)}</w:body></w:document>"


def test_a_part_that_nothing_leads_to_is_not_read() -> None:
    footer = f"<w:ftr {W}>{paragraph('9000 euro')}</w:ftr>"
    types = types_of({"word/document.xml": MAIN, "word/footer9.xml": WORD + "footer+xml"})
    orphan = letter(paragraph("100 euro"), **{"[Content_Types].xml": types, "word/footer9.xml": footer})
    assert lines(orphan) == ["100 euro"]
    strings = {"xl/a.xml": f"<sst {S}><si><t>9000 euro</t></si></sst>"}
    types = types_of(
        {
            "xl/workbook.xml": SHEET + "sheet.main+xml",
            "xl/sharedStrings.xml": SHEET + "sharedStrings+xml",
            "xl/a.xml": SHEET + "sharedStrings+xml",
        }
    )
    table = xlsx(
        {"F": '<row r="1"><c r="A1" t="s"><v>0</v></c></row>'},
        ["100 euro"],
        more=strings | {"[Content_Types].xml": types},
    )
    assert lines(table) == ["100 euro", "Sheet: F"]


def test_of_two_parts_that_could_be_the_text_none_is_read() -> None:
    two = types_of({"word/document.xml": MAIN, "word/zzz.xml": MAIN})
    both = links_of(("officeDocument", "word/document.xml"), ("officeDocument", "word/zzz.xml"))
    more = {"[Content_Types].xml": two, "word/zzz.xml": other("9000 euro")}
    for changed in (more, {"word/zzz.xml": other("9000 euro"), "_rels/.rels": both}):
        answer = child.answer_to(letter(paragraph("100 euro"), **changed))
        assert answer == {"error": Reason.AMBIGUOUS}


@pytest.mark.parametrize("kind", ["sharedStrings", "styles"])
def test_of_two_lists_of_strings_or_styles_none_is_read(kind: str) -> None:
    links = links_of(("worksheet", "worksheets/sheet1.xml"), (kind, "sharedStrings.xml"), (kind, "b.xml"))
    more = {"xl/_rels/workbook.xml.rels": links, "xl/b.xml": f"<sst {S}/>"}
    assert child.answer_to(xlsx({"F": ""}, more=more)) == {"error": Reason.AMBIGUOUS}


def test_names_that_differ_by_large_letters_are_one_name() -> None:
    twice = letter(paragraph("100 euro"), **{"word/Document.xml": other("9000 euro")})
    assert child.answer_to(twice) == {"error": Reason.AMBIGUOUS}
    root = links_of(("officeDocument", "/Word/./x/../DOCUMENT.xml"))
    assert lines(letter(paragraph("100 euro"), **{"_rels/.rels": root})) == ["100 euro"]


def test_a_letter_without_a_way_to_its_text_is_broken() -> None:
    assert child.answer_to(letter("", **{"_rels/.rels": links_of()})) == {"error": Reason.BROKEN}


def test_a_type_may_be_that_of_all_names_that_end_alike() -> None:
    types = types_of({}).replace("</Types>", f'<Default Extension="XML" ContentType="{MAIN}"/></Types>')
    parts = {"[Content_Types].xml": types, "_rels/.rels": links_of(("officeDocument", "a.xml"))}
    assert lines(zipped(parts | {"a.xml": other("testo")})) == ["testo"]


def test_both_namespaces_of_the_standard_are_read_and_no_other() -> None:
    assert lines(letter(paragraph("100 euro"), space=STRICT)) == ["100 euro"]
    foreign = '<w:p><w:r><w:t>Canone 100</w:t></w:r><q:t xmlns:q="urn:q">0</q:t></w:p>'
    assert lines(docx(foreign)) == ["Canone 100"]
    row = '<row r="1"><c r="A1" t="str"><v>100</v><q:v xmlns:q="urn:q">0</q:v></c></row>'
    assert lines(xlsx({"F": row})) == ["100", "Sheet: F"]
    root = links_of(("officeDocument", "word/document.xml")).replace(LINKS, "urn:other")
    assert child.answer_to(letter("", **{"_rels/.rels": root})) == {"error": Reason.BROKEN}


@pytest.mark.parametrize(
    ("space", "shown"),
    [(SHAPE, "9000"), ("urn:unknown", "100")],
    ids=["known", "unknown"],
)
def test_a_branch_is_taken_if_its_namespace_is_known(space: str, shown: str) -> None:
    branches = (
        f'<mc:AlternateContent {MC} xmlns:z="{space}"><mc:Choice Requires="z"><w:r><w:t>9000</w:t></w:r>'
        '</mc:Choice><mc:Choice Requires="none z"><w:r><w:t>1</w:t></w:r></mc:Choice>'
        "<mc:Fallback><w:r><w:t>100</w:t></w:r></mc:Fallback></mc:AlternateContent>"
    )
    assert lines(docx(f"<w:p>{branches}<w:r><w:t> euro</w:t></w:r></w:p>")) == [f"{shown} euro"]


def test_text_of_another_format_in_a_letter_is_noted() -> None:
    answer = child.answer_to(docx(paragraph("Prima") + "<w:altChunk/>"))
    assert answer["notes"] == {Note.EMBEDDED: 1}


def row(number: int, text: str) -> str:
    return f'<row r="{number}"><c t="str"><v>{text}</v></c></row>'


def test_a_row_stands_on_its_line_in_whatever_order_rows_come() -> None:
    said = lines(xlsx({"F": row(5, "cinque") + row(2, "due") + row(7, "sette")}))
    assert said == ["", "due", "", "", "cinque", "", "sette", "Sheet: F"]


def test_two_rows_of_one_number_are_refused() -> None:
    twice = xlsx({"F": row(5, "cinque") + row(2, "due") + row(5, "altro")})
    assert child.answer_to(twice) == {"error": Reason.AMBIGUOUS}
