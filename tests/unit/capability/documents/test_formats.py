# SPDX-License-Identifier: Apache-2.0
"""Each format, without the sandbox: every word is found on its page, and nothing that is hidden."""

import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, pkcs7
from papers import (
    DATICERT,
    HEAD,
    LETTER,
    SECOND,
    Paper,
    docx,
    good,
    odt,
    paragraph,
    plain_mail,
    plain_pdf,
    xlsx,
)
from pdfmaker import file_of, pages_of, shown, stream

from runner.capability.documents.kinds import Family, family_of
from runner.capability.documents.parsing import child
from runner.capability.documents.parsing.draft import CHARACTERS, LINE
from runner.capability.documents.parsing.mail import field_text
from runner.capability.documents.port import Document
from runner.capability.documents.reader import parse_answer
from runner.capability.documents.words import Reason
from runner.kernel.language import forms

PAPERS = good()
HIDDEN = ("segreto", "nascosto", "vecchio", "doppio", "no()", "8950", "p{}")


def read(data: bytes) -> Document:
    return parse_answer(child.answer_to(data))


@pytest.mark.parametrize("paper", PAPERS, ids=[paper.name for paper in PAPERS])
def test_every_word_stands_on_its_page_and_none_that_is_hidden(paper: Paper) -> None:
    document = read(paper.data)
    assert (document.kind, list(document.notes)) == (paper.kind, list(paper.notes))
    assert [page.number for page in document.pages] == list(range(1, len(paper.pages) + 1))
    for page, lines in zip(document.pages, paper.pages, strict=True):
        found = " ".join(page.lines).split()
        assert {word for line in lines for word in line.split()} <= set(found)
        assert not [word for word in HIDDEN if word in " ".join(page.lines)]


def test_there_are_forty_files_and_more_with_the_hostile_ones() -> None:
    assert len(PAPERS) >= 35
    assert {paper.kind for paper in PAPERS} == {"pdf", "docx", "odt", "xlsx", "eml", "html", "rtf", "p7m"}


def test_a_row_is_the_line_of_its_number() -> None:
    rows = "".join(f'<row r="{r}"><c t="str"><v>riga {r}</v></c></row>' for r in (1, 7, 300))
    [page] = read(xlsx({"S": rows})).pages
    assert [at for at, line in enumerate(page.lines, start=1) if line.startswith("riga")] == [1, 7, 300]
    assert (page.lines[299], page.lines[300]) == ("riga 300", "Sheet: S")


@pytest.mark.parametrize(
    ("format_", "serial", "shown"),
    [
        pytest.param("dd/mm/yyyy", "46356", "2026-11-30", id="own"),
        pytest.param("dd/mm/yyyy", "46356.4375", "2026-11-30 10:30", id="time"),
        pytest.param('"day "0.00', "46356", "46356.00", id="a word in a number"),
        pytest.param("[Red]0.00", "46356", "46356.00", id="a colour"),
        pytest.param("#,##0.00", "1250.5", "1250.50", id="an amount"),
        pytest.param("[$€-410] #,##0.00;[Red]-[$€-410] #,##0.00", "-1250.5", "-1250.50", id="a currency"),
        pytest.param('_-* #,##0.00 "€"_-', "1.25E+3", "1250.00", id="an account"),
        pytest.param("0.00", "0.30000000000000004", "0.30", id="noise"),
        pytest.param("0.00", "1250.755", "1250.76 (1250.755)", id="more than is shown"),
        pytest.param("#,##0", "1250.4", "1250 (1250.4)", id="no decimals"),
        pytest.param("0%", "0.22", "22%", id="per cent"),
        pytest.param("#,##0,", "1250000", "1250000", id="thousands"),
        pytest.param("0.00E+00", "1250.5", "1250.5", id="powers"),
        pytest.param("# ?/?", "0.5", "0.5", id="a fraction"),
        pytest.param("General", "1250.5", "1250.5", id="as stored"),
        pytest.param("@", "0012", "0012", id="text"),
        pytest.param("0.00", "nan", "nan", id="no amount"),
        pytest.param("0.00", "snan", "snan", id="no amount at all"),
        pytest.param("0.00", "inf", "inf", id="no end"),
        pytest.param("0.00", "1e300", "1e300", id="no amount of this world"),
        pytest.param("0.00", "1e999999999999", "1e999999999999", id="no number that fits"),
        pytest.param("dd/mm/yyyy", "1e300", "1e300", id="no date"),
        pytest.param("dd/mm/yyyy", "nan", "nan", id="no number"),
    ],
)
def test_a_date_is_written_as_one_and_a_number_as_its_cell_shows_it(
    format_: str, serial: str, shown: str
) -> None:
    code = format_.replace('"', "&quot;")
    styles = f'<numFmts><numFmt numFmtId="164" formatCode="{code}"/></numFmts>'
    styles += '<cellXfs><xf numFmtId="164"/></cellXfs>'
    assert row_of(serial, styles) == shown


def row_of(serial: str, styles: str) -> str:
    [page] = read(xlsx({"S": f'<row r="1"><c s="0"><v>{serial}</v></c></row>'}, styles=styles)).pages
    return page.lines[0]


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "1250.5"), (4, "1250.50"), (40, "1250.50"), (10, "125050.00%"), (49, "1250.5")]
)
def test_a_built_in_format_shows_its_decimals(number: int, shown: str) -> None:
    """So an amount is found as it is shown: 1.250,50 counts as 1250.50."""
    assert row_of("1250.5", f'<cellXfs><xf numFmtId="{number}"/></cellXfs>') == shown
    assert forms("1.250,50")[0] == "1250.50"


def test_a_paragraph_is_one_line_however_long() -> None:
    long = "parola " * 900
    for data in (docx(paragraph(long)), odt(f"<text:p>{long}</text:p>")):
        [page] = read(data).pages
        assert page.lines == (long.strip(),)


def test_text_past_the_bound_is_left_out_and_said() -> None:
    document = read(docx("".join(paragraph("abcd " * 1000) for _ in range(1000))))
    assert "there is more than is read of one document" in document.notes[0]
    assert document.kind == "docx"
    counted = sum(len(line) + LINE for page in document.pages for line in page.lines)
    assert CHARACTERS * 0.99 < counted <= CHARACTERS


def test_controls_make_no_line_and_every_kind_of_line_end_does() -> None:
    [page] = read(b"{\\rtf1 uno\\'00\\u27?due\\u8232?tre\\u133?quattro\\u13?\\u10?cinque}").pages
    assert page.lines == ("unodue", "tre", "quattro", "", "cinque")


def test_a_field_is_one_line_and_a_name_of_a_codec_is_not_followed() -> None:
    assert field_text("=?utf-8?b?UGVyY2jDqQ==?= si\r\n Bcc: altri") == "Perché si Bcc: altri"
    assert field_text("=?punycode?q?a-b?=") == "a-b"
    assert field_text("=?utf-8?b?a?=") != ""


def test_a_certificate_alone_is_read_inside_a_mail_only() -> None:
    assert family_of(DATICERT.encode()) is Family.XML
    assert family_of(plain_mail()) is Family.EML
    assert family_of(HEAD.replace(b"\r\n", b"\n") + b"\nciao") is Family.EML
    assert family_of(b"\xef\xbb\xbf" + plain_pdf()) is Family.PDF
    assert family_of("\n".join(LETTER).encode()) is Family.TEXT
    assert family_of(b"\0\1\2") is Reason.UNKNOWN


@pytest.mark.parametrize("encoding", [Encoding.DER, Encoding.PEM], ids=["der", "pem"])
@pytest.mark.parametrize("detached", [False, True], ids=["whole", "detached"])
def test_a_message_that_another_library_signed_is_opened(encoding: Encoding, *, detached: bool) -> None:
    """Certificates and signatures stand after the content, as they do in the files of a practice."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + dt.timedelta(days=9))
    certificate = builder.sign(key, SHA256())
    options = [pkcs7.PKCS7Options.Binary, *([pkcs7.PKCS7Options.DetachedSignature] if detached else [])]
    signing = pkcs7.PKCS7SignatureBuilder().set_data(plain_pdf()).add_signer(certificate, key, SHA256())
    answer = child.answer_to(signing.sign(encoding, options))
    if detached:
        assert answer == {"error": Reason.DETACHED}
    else:
        assert [page.lines for page in parse_answer(answer).pages] == [LETTER, SECOND]


def test_i12_what_a_parser_raises_is_one_word() -> None:
    """Whatever breaks in a parser, the answer says which kind of thing it was and quotes nothing."""
    for problem, reason in (
        (ValueError("Rossi-7731"), Reason.BROKEN),
        (MemoryError(), Reason.TOO_BIG),
        (RecursionError("Rossi-7731"), Reason.TOO_DEEP),
    ):

        def fail(_data: bytes, _draft: object, problem: Exception = problem) -> None:
            raise problem

        assert child.answer_to(b"", fail) == {"error": reason}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rb"Canone {\upr{9000}{\*\ud{100}}} euro", ["Canone 100 euro"]),
        (rb"uno{\object\objemb{\*\objdata 00}{\result  Clausola}}due", ["uno Clausoladue"]),
        (rb"uno{\object{\pict 00}{\*\objdata 00}}due", ["unodue"]),
        (rb"uno{\shp{\*\shpinst{\sp{\sn a}{\sv b}}{\shptxt due\par}}{\shprslt c}}tre", ["uno", "due", "tre"]),
        (rb"uno{\*\do\dobxpage{\dptxbxtext Clausola\par}}due", ["uno", "Clausola", "due"]),
        (rb"{\upr{\upr{1}{2}}{\*\ud{3}}}{\result 4}{\*\result 5}", ["34"]),
    ],
    ids=["halves", "object", "no-result", "shape", "drawing", "nested"],
)  # fmt: skip
def test_i8_rich_text_is_read_as_new_readers_show_it(text: bytes, expected: list[str]) -> None:
    document = read(b"{\\rtf1\\ansi " + text + b"}")
    assert [list(page.lines) for page in document.pages] == [expected]
    assert document.notes == (("files or objects embedded in it, not read: 1",) if b"object" in text else ())


@pytest.mark.parametrize("tag", ["svg", "math", "svg><desc", "math><mi"])
def test_i8_what_stands_after_an_open_drawing_is_read(tag: str) -> None:
    page = f"<html><body><p>Prima<{tag}><p>Clausola penale</p><p>fine</body></html>"
    assert read(page.encode()).pages[0].lines == ("Prima", "Clausola penale", "fine")


def test_what_an_open_element_swallows_is_said() -> None:
    rest = "there is more than is read of one document: what follows was not read"
    document = read(b"<html><body><p>Prima<svg><style><p>Clausola penale</p></body></html>")
    assert (document.pages[0].lines, document.notes) == (("Prima",), (rest,))


def test_i8_fields_that_inherit_and_remarks_are_read() -> None:
    above = b"<< /FT /Tx /T (importo) /V (9000) /Kids [20 0 R] >>"
    more = {
        20: b"<< /Type /Annot /Subtype /Widget /Parent 21 0 R /Rect [0 0 1 1] >>",
        21: above,
        22: b"<< /Type /Annot /Subtype /FreeText /Contents (Clausola penale) /Rect [0 0 1 1] >>",
        23: b"<< /Type /Annot /Subtype /Widget /Parent 23 0 R /Contents (no) /Rect [0 0 1 1] >>",
    }
    words = [b"/Annots [20 0 R 22 0 R 23 0 R]"]
    data = file_of(pages_of([stream(shown(["Canone"]))], words=words, more=more))
    found = [line for line in read(data).pages[0].lines if line]
    assert found == ["Canone", "importo: 9000", "Clausola penale"]
