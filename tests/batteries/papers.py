# SPDX-License-Identifier: Apache-2.0
"""Good documents of every format, made here and nowhere else, and what stands on each of their pages.

Owns no judgement. Each paper says every word that a reader has to find, page by page.
"""

import base64
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO

from pdfmaker import file_of, flate, packed_file, pages_of, shown, stream, unicode_font

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
SHAPE = "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
ODF = "urn:oasis:names:tc:opendocument:xmlns"
LETTER = (
    "Perché l'università è così",
    "Il canone è di € 1.250,00 al mese",
    "già più però città",
    "scadenza 31/12/2026",
)
SECOND = ("Pagina due: l'avvocato", "Fàbula (fine)")


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A document: its bytes, its kind, and the lines on each page, of which a reader must find every word."""

    name: str
    kind: str
    data: bytes
    pages: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def zipped(parts: Mapping[str, str | bytes], *, stored: Sequence[str] = ()) -> bytes:
    """Return an archive of `parts`, in order."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            how = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), content, how)
    return out.getvalue()


def types_of(parts: Mapping[str, str]) -> str:
    """Return the list of content types, from part to type."""
    said = "".join(f'<Override PartName="/{part}" ContentType="{kind}"/>' for part, kind in parts.items())
    return f'<?xml version="1.0" encoding="UTF-8"?><Types xmlns="{TYPES}">{said}</Types>'


def links_of(*links: tuple[str, str]) -> str:
    """Return relationships: the kind and the target of each; the first is `rId1`."""
    said = "".join(
        f'<Relationship Id="rId{at}" Type="{LINKS}/{kind}" Target="{target}"/>'
        for at, (kind, target) in enumerate(links, start=1)
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{space}">{said}</Relationships>'


WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml."
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml."


def paragraph(text: str, properties: str = "") -> str:
    """Return a paragraph of a DOCX."""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def docx(body: str, more: Mapping[str, tuple[str, str | bytes]] | None = None) -> bytes:
    """Return a DOCX with `body`, and `more` parts: name to content type and content.

    Each of them that is a part of Word's belongs to the document.
    """
    more = more or {}
    kinds = {"word/document.xml": WORD + "document.main+xml"}
    kinds |= {name: kind for name, (kind, _) in more.items()}
    document = f'<?xml version="1.0" encoding="UTF-8"?><w:document {W}><w:body>{body}</w:body></w:document>'
    inner = [
        (kind.removeprefix(WORD).removesuffix("+xml"), name.removeprefix("word/"))
        for name, (kind, _) in more.items()
        if kind.startswith(WORD)
    ]
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": types_of(kinds),
        "_rels/.rels": links_of(("officeDocument", "word/document.xml")),
        "word/document.xml": document,
        "word/_rels/document.xml.rels": links_of(*inner),
    }
    return zipped(parts | {name: content for name, (_, content) in more.items()})


def odt(body: str, styles: str = "", manifest: str = "<manifest/>") -> bytes:
    """Return an ODT with `body` and automatic `styles`."""
    names = " ".join(f'xmlns:{name}="{ODF}:{name}:1.0"' for name in ("office", "text", "table", "style"))
    names += f' xmlns:fo="{ODF}:xsl-fo-compatible:1.0"'
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {names}><office:automatic-styles>'
        f"{styles}</office:automatic-styles><office:body><office:text>{body}</office:text></office:body>"
        "</office:document-content>"
    )
    parts = {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": content,
        "META-INF/manifest.xml": manifest,
    }
    return zipped(parts, stored=["mimetype"])


def xlsx(
    sheets: Mapping[str, str],
    strings: Sequence[str] = (),
    styles: str = "",
    more: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """Return an XLSX: `sheets` are a title and the rows of each."""
    names = [f"xl/worksheets/sheet{at}.xml" for at in range(1, len(sheets) + 1)]
    kinds = {"xl/workbook.xml": SHEET + "sheet.main+xml", "xl/sharedStrings.xml": SHEET + "sharedStrings+xml"}
    kinds |= {"xl/styles.xml": SHEET + "styles+xml"} | dict.fromkeys(names, SHEET + "worksheet+xml")
    listed = "".join(
        f'<sheet name="{title}" sheetId="{at}" r:id="rId{at}"/>' for at, title in enumerate(sheets, start=1)
    )
    links = [("worksheet", f"worksheets/sheet{at}.xml") for at in range(1, len(sheets) + 1)]
    links += [("sharedStrings", "sharedStrings.xml"), ("styles", "styles.xml")]
    texts = "".join(f"<si><t>{text}</t></si>" for text in strings)
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": types_of(kinds),
        "_rels/.rels": links_of(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook {S} xmlns:r="{LINKS}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": links_of(*links),
        "xl/sharedStrings.xml": f"<sst {S}>{texts}</sst>",
        "xl/styles.xml": f"<styleSheet {S}>{styles}</styleSheet>",
    }
    for name, rows in zip(names, sheets.values(), strict=True):
        parts[name] = f"<worksheet {S}><sheetData>{rows}</sheetData></worksheet>"
    return zipped(parts | dict(more or {}))


def rtf(text: str) -> bytes:
    """Return `text` as the characters of an RTF: what is not ASCII by its number."""
    said = (c if c.isascii() else f"\\u{ord(c)}?" for c in text)
    return "".join(said).encode()


def multipart(kind: str, parts: Sequence[bytes], *, mark: str) -> bytes:
    """Return a container of `parts`, each with its own fields, with the field that says so before it."""
    line = f"--{mark}\r\n".encode()
    body = b"".join(line + part + b"\r\n" for part in parts)
    return (
        f'Content-Type: multipart/{kind}; boundary="{mark}"\r\n\r\n'.encode()
        + body
        + f"--{mark}--\r\n".encode()
    )


def part(kind: str, data: bytes, *, name: str = "") -> bytes:
    """Return a part in base64; with a `name`, an attachment."""
    where = f'Content-Disposition: attachment; filename="{name}"\r\n' if name else ""
    head = f"Content-Type: {kind}\r\n{where}Content-Transfer-Encoding: base64\r\n\r\n"
    return head.encode() + base64.encodebytes(data).replace(b"\n", b"\r\n")


HEAD = (
    b"From: =?utf-8?q?Avv=2E_Niccol=C3=B2_B?= <nb@studio.example>\r\nTo: cliente@studio.example\r\n"
    b"Date: Mon, 30 Nov 2026 10:00:00 +0100\r\nMessage-ID: <1@studio.example>\r\n"
    b"Subject: =?iso-8859-1?Q?Novit=E0_sulla_causa?=\r\nMIME-Version: 1.0\r\n"
)
HEAD_WORDS = (
    "From: Avv. Niccolò B <nb@studio.example>",
    "Subject: Novità sulla causa",
    "To: cliente@studio.example",
)


def der(tag: int, content: bytes) -> bytes:
    """Return an element of known length."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


SIGNED = der(0x06, bytes.fromhex("2a864886f70d010702"))
DATA = der(0x06, bytes.fromhex("2a864886f70d010701"))
_VERSION, _ALGORITHMS = der(0x02, b"\1"), der(0x31, der(0x30, der(0x06, bytes.fromhex("608648016503040201"))))


def p7m(content: bytes) -> bytes:
    """Return `content` in a signed message in DER. Its signature is none."""
    inner = der(0x30, DATA + der(0xA0, der(0x04, content)))
    message = der(0x30, _VERSION + _ALGORITHMS + inner + der(0x31, b""))
    return der(0x30, SIGNED + der(0xA0, message))


def p7m_in_pieces(content: bytes) -> bytes:
    """Return `content` in a signed message in BER: lengths that are marked by their end, text in pieces."""
    pieces = b"".join(der(0x04, content[at : at + 1000]) for at in range(0, len(content), 1000))
    end = b"\0\0"
    algorithms = b"\x31\x80\x30\x80" + der(0x06, bytes.fromhex("608648016503040201")) + end + end
    inner = b"\x30\x80" + DATA + b"\xa0\x80\x24\x80" + pieces + end + end + end
    return (
        b"\x30\x80"
        + SIGNED
        + b"\xa0\x80\x30\x80"
        + _VERSION
        + algorithms
        + inner
        + b"\x31\x80"
        + end
        + end
        + end
        + end
    )


DATICERT = (
    '<?xml version="1.0" encoding="UTF-8"?><postacert tipo="posta-certificata" errore="nessuno"><intestazione>'
    '<mittente>avv.bianchi@pec.example</mittente><destinatari tipo="certificato">tribunale@pec.example</destinatari>'
    "<oggetto>Deposito memoria</oggetto></intestazione><dati><identificativo>opec.1@pec.example</identificativo>"
    "</dati></postacert>"
)


def plain_pdf() -> bytes:
    """Return a PDF of two pages."""
    return file_of(pages_of([stream(shown(LETTER)), stream(shown(SECOND))]))


def _unicode_pdf() -> bytes:
    characters = "".join(sorted(set("".join(LETTER))))
    font, more, codes = unicode_font(characters, at=20)
    said = " ".join(f"<{b''.join(codes[c] for c in line).hex()}> Tj 0 -16 Td" for line in LETTER)
    content = f"BT /F1 12 Tf 1 0 0 1 72 720 Tm {said} ET".encode()
    return file_of(pages_of([flate(content)], font=font, more=more))


def _rotated_pdf() -> bytes:
    sideways = shown(SECOND, matrix="0 1 -1 0 300 100")
    return file_of(pages_of([flate(shown(LETTER)), flate(sideways)], words=[b"/Rotate 90", b"/Rotate 270"]))


def _form_pdf() -> bytes:
    field = b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (cognome) /V (Galli) /Rect [0 0 1 1] >>"
    return file_of(pages_of([stream(shown(LETTER))], words=[b"/Annots [20 0 R]"], more={20: field}))


def _nested_pdf() -> bytes:
    words = b"/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >>"
    objects = pages_of([stream(b"/X1 Do")], more={20: flate(shown(LETTER), words)})
    objects[4] = objects[4].replace(b"/Font <<", b"/XObject << /X1 20 0 R >> /Font <<")
    return file_of(objects)


def _updated_pdf() -> bytes:
    """Return a PDF whose first page was replaced by a later revision."""
    first = file_of(pages_of([stream(shown(["vecchio testo"]))]))
    start = first.rindex(b"xref\n0", 0, first.rindex(b"startxref"))
    place = len(first)
    changed = b"5 0 obj\n" + stream(shown(SECOND)) + b"\nendobj\n"
    table = b"xref\n5 1\n%010d 00000 n \n" % place
    words = b"trailer\n<< /Size 6 /Root 1 0 R /Prev %d >>\nstartxref\n%d\n%%%%EOF\n" % (
        start,
        place + len(changed),
    )
    return first + changed + table + words


def _pdfs() -> list[Paper]:
    blank = file_of(pages_of([stream(shown(LETTER)), stream(b"q Q"), stream(shown(SECOND))]))
    hexed = stream(shown(LETTER).hex().encode() + b">", b"/Filter /ASCIIHexDecode")
    script = pages_of([stream(shown(LETTER))])
    script[1] = b"<< /Type /Catalog /Pages 2 0 R /Names << /JavaScript << /Names [] >> >> >>"
    many = file_of(pages_of([flate(shown([f"Pagina numero {at}"])) for at in range(1, 121)]))
    scan = "pages without text, perhaps scans: 1"
    return [
        Paper(name="plain.pdf", kind="pdf", data=plain_pdf(), pages=[LETTER, SECOND]),
        Paper(name="packed.pdf", kind="pdf", data=file_of(pages_of([flate(shown(LETTER)), flate(shown(SECOND))])), pages=[LETTER, SECOND]),
        Paper(name="unicode.pdf", kind="pdf", data=_unicode_pdf(), pages=[LETTER]),
        Paper(name="rotated.pdf", kind="pdf", data=_rotated_pdf(), pages=[LETTER, SECOND]),
        Paper(name="objects.pdf", kind="pdf", data=packed_file(pages_of([flate(shown(LETTER)), flate(shown(SECOND))])), pages=[LETTER, SECOND]),
        Paper(name="form.pdf", kind="pdf", data=_form_pdf(), pages=[[*LETTER, "cognome: Galli"]]),
        Paper(name="nested.pdf", kind="pdf", data=_nested_pdf(), pages=[LETTER]),
        Paper(name="updated.pdf", kind="pdf", data=_updated_pdf(), pages=[SECOND]),
        Paper(name="blank.pdf", kind="pdf", data=blank, pages=[LETTER, [], SECOND], notes=[scan]),
        Paper(name="hex.pdf", kind="pdf", data=file_of(pages_of([hexed])), pages=[LETTER]),
        Paper(name="script.pdf", kind="pdf", data=file_of(script), pages=[LETTER], notes=["macros or scripts in it, neither run nor read: 1"]),
        Paper(name="many.pdf", kind="pdf", data=many, pages=[[f"Pagina numero {at}"] for at in range(1, 121)]),
    ]  # fmt: skip


def _letters() -> list[Paper]:
    lines = "".join(map(paragraph, LETTER))
    new_page = '<w:p><w:r><w:br w:type="page"/></w:r></w:p>'
    table = (
        "<w:tbl><w:tr><w:tc>"
        + paragraph("Canone")
        + "</w:tc><w:tc>"
        + paragraph("€ 900")
        + "</w:tc></w:tr></w:tbl>"
    )
    deleted = "<w:p><w:del><w:r><w:delText>segreto cancellato</w:delText></w:r></w:del><w:r><w:t>resta</w:t></w:r></w:p>"
    box = (
        "<w:p><w:r>" + f'<mc:AlternateContent {MC} xmlns:wps="{SHAPE}">' + '<mc:Choice Requires="wps"><w:txbxContent>' + paragraph("riquadro")
        + "</w:txbxContent></mc:Choice><mc:Fallback><w:t>riquadro doppio</w:t></mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )  # fmt: skip
    around: dict[str, tuple[str, str | bytes]] = {
        "word/header1.xml": (WORD + "header+xml", f"<w:hdr {W}>{paragraph('Studio Bianchi')}</w:hdr>"),
        "word/footnotes.xml": (WORD + "footnotes+xml", f"<w:footnotes {W}>{paragraph('nota: art. 1571 c.c.')}</w:footnotes>"),
        "word/media/image1.png": ("image/png", b"\x89PNG"),
        "word/vbaProject.bin": ("application/vnd.ms-office.vbaProject", b"x"),
    }  # fmt: skip
    next_section = '<w:pPr><w:sectPr><w:type w:val="nextPage"/></w:sectPr></w:pPr>'
    break_before = "<w:pPr><w:pageBreakBefore/></w:pPr>"
    styles = '<style:style style:name="P2"><style:paragraph-properties fo:break-before="page"/></style:style>'
    odt_lines = "".join(f"<text:p>{line}</text:p>" for line in LETTER)
    odt_table = (
        "<table:table><table:table-row><table:table-cell><text:p>Canone</text:p></table:table-cell>"
        "<table:table-cell><text:p>€<text:s/>900</text:p></table:table-cell></table:table-row></table:table>"
    )
    odt_second = f'<text:h text:style-name="P2">{SECOND[0]}</text:h><text:p>{SECOND[1]}</text:p>'
    rtf_lines = b"\\par ".join(map(rtf, LETTER))
    rtf_second = b"\\par ".join(map(rtf, SECOND))
    fonts = b"{\\fonttbl{\\f0 Arial;}}{\\*\\generator nobody}{\\info{\\title nascosto}}"
    return [
        Paper(name="letter.docx", kind="docx", data=docx(lines), pages=[LETTER]),
        Paper(name="pages.docx", kind="docx", data=docx(lines + new_page + "".join(map(paragraph, SECOND))), pages=[LETTER, SECOND]),
        Paper(name="sections.docx", kind="docx", data=docx(paragraph(LETTER[0], next_section) + paragraph(SECOND[0])), pages=[LETTER[:1], SECOND[:1]]),
        Paper(name="before.docx", kind="docx", data=docx(paragraph(LETTER[0]) + paragraph(SECOND[0], break_before)), pages=[LETTER[:1], SECOND[:1]]),
        Paper(name="table.docx", kind="docx", data=docx(table + deleted + box), pages=[["Canone\t€ 900", "resta", "riquadro"]], notes=["passages marked as deleted, not read: 1"]),
        Paper(name="around.docm", kind="docx", data=docx(lines, around), pages=[["Studio Bianchi", *LETTER, "nota: art. 1571 c.c."]], notes=["pictures in it, not read: 1", "macros or scripts in it, neither run nor read: 1"]),
        Paper(name="letter.odt", kind="odt", data=odt(odt_lines + odt_second, styles), pages=[LETTER, SECOND]),
        Paper(name="table.odt", kind="odt", data=odt(odt_table), pages=[["Canone\t€ 900"]]),
        Paper(name="letter.rtf", kind="rtf", data=b"{\\rtf1\\ansi\\ansicpg1252" + fonts + rtf_lines + b"\\page " + rtf_second + b"}", pages=[LETTER, SECOND]),
        Paper(name="bytes.rtf", kind="rtf", data=b"{\\rtf1\\ansi Perch\\'e9 no\\par{\\pict 8950}citt\\'e0\\cell x\\row}", pages=[["Perché no", "città\tx"]], notes=["pictures in it, not read: 1"]),
    ]  # fmt: skip


def _tables() -> list[Paper]:
    rows = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row>'
        '<row r="4"><c r="A4" t="inlineStr"><is><t>Perché</t></is></c><c r="B4"><v>1250.5</v></c>'
        '<c r="C4" s="1"><v>46022</v></c><c r="D4" t="str"><f>A1</f><v>calcolato</v></c><c r="E4" t="b"><v>1</v></c></row>'
    )
    styles = '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
    data = xlsx(
        {"Scadenze": rows, "Clienti": '<row r="1"><c t="s"><v>2</v></c></row>'},
        ["Voce", "Importo €", "Rossi"],
        styles,
    )
    first = ["Voce\tImporto €", "", "", "Perché\t1250.5\t2025-12-31\tcalcolato\tTRUE", "Sheet: Scadenze"]
    return [Paper(name="table.xlsx", kind="xlsx", data=data, pages=[first, ["Rossi", "Sheet: Clienti"]])]


def _web() -> list[Paper]:
    body = "".join(f"<p>{line}</p>" for line in LETTER)
    page = f"<!DOCTYPE html><html><head><title>Titolo</title><style>p{{}}</style></head><body>{body}<script>no()</script>"
    page += "<table><tr><td>Canone</td><td>&euro; 900</td></tr></table></body></html>"
    broken = f"<html><body>{body}<div style='page-break-before: always'>{SECOND[0]}</div><p>{SECOND[1]}</body></html>"
    latin = '<html><head><meta charset="iso-8859-1"></head><body><p>Perché più città</p></body></html>'
    return [
        Paper(name="page.html", kind="html", data=page.encode(), pages=[["Titolo", *LETTER, "Canone\t€ 900"]], notes=["macros or scripts in it, neither run nor read: 1"]),
        Paper(name="broken.html", kind="html", data=broken.encode(), pages=[LETTER, SECOND]),
        Paper(name="latin.html", kind="html", data=latin.encode("latin-1"), pages=[["Perché più città"]]),
    ]  # fmt: skip


def plain_mail(text: str = "\r\n".join(LETTER)) -> bytes:
    """Return a mail of one text."""
    head = HEAD + b"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    return head + base64.encodebytes(text.encode())


def _mails() -> list[Paper]:
    quoted = (
        HEAD
        + b"Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nPerch=E9 la citt=E0\r\n"
    )
    plain = part("text/plain; charset=utf-8", "\r\n".join(LETTER).encode())
    html = part("text/html; charset=utf-8", f"<p>{'</p><p>'.join(LETTER)}</p>".encode())
    both = HEAD + multipart("alternative", [plain, html], mark="a")
    only = HEAD + multipart("alternative", [html], mark="a")
    attached = [
        part("application/pdf", plain_pdf(), name="atto.pdf"),
        part("application/octet-stream", docx("".join(map(paragraph, SECOND))), name="memoria.docx"),
        part("image/png", b"\x89PNG\r\n\x1a\n0000", name="foto.png"),
        part("text/plain; charset=utf-8", b"nota allegata", name="nota.txt"),
    ]
    with_files = HEAD + multipart("mixed", [both.removeprefix(HEAD), *attached], mark="m")
    half = "other versions of its text, which may say something else, not read: 1"
    first = [*HEAD_WORDS, *LETTER]
    pages = [
        first, ["Attachment: atto.pdf"], LETTER, SECOND, ["Attachment: memoria.docx"], SECOND,
        ["Attachment: foto.png", "(not read: picture)"], ["Attachment: nota.txt", "nota allegata"],
    ]  # fmt: skip
    letter = (
        b'Content-Type: message/rfc822\r\nContent-Disposition: attachment; filename="postacert.eml"\r\n\r\n'
        + plain_mail()
    )
    certificate = part("application/xml", DATICERT.encode(), name="daticert.xml")
    told = part("text/plain; charset=utf-8", b"Messaggio di posta certificata")
    inner = multipart("mixed", [told, certificate, letter], mark="p")
    seal = part("application/pkcs7-signature", b"0000", name="smime.p7s")
    pec = HEAD + multipart("signed", [inner, seal], mark="s")
    certified = [
        "Attachment: daticert.xml",
        "intestazione/mittente: avv.bianchi@pec.example",
        "intestazione/oggetto: Deposito memoria",
        "dati/identificativo: opec.1@pec.example",
    ]
    return [
        Paper(name="quoted.eml", kind="eml", data=quoted, pages=[[*HEAD_WORDS, "Perché la città"]]),
        Paper(name="both.eml", kind="eml", data=both, pages=[first], notes=[half]),
        Paper(name="only.eml", kind="eml", data=only, pages=[first]),
        Paper(name="files.eml", kind="eml", data=with_files, pages=pages, notes=[half, "attachments not read: 1"]),
        Paper(name="pec.eml", kind="eml", data=pec, pages=[[*HEAD_WORDS, "Messaggio di posta certificata"], certified, ["Attachment: postacert.eml", *first]], notes=["signatures, not checked: 1"]),
    ]  # fmt: skip


def _signed() -> list[Paper]:
    seen = ["signatures, not checked: 1"]
    wrapped = base64.encodebytes(p7m(plain_pdf()))
    mail = p7m_in_pieces(plain_mail())
    return [
        Paper(name="atto.pdf.p7m", kind="p7m", data=p7m(plain_pdf()), pages=[LETTER, SECOND], notes=seen),
        Paper(
            name="pieces.p7m", kind="p7m", data=p7m_in_pieces(plain_pdf()), pages=[LETTER, SECOND], notes=seen
        ),
        Paper(name="base64.p7m", kind="p7m", data=wrapped, pages=[LETTER, SECOND], notes=seen),
        Paper(name="message.p7m", kind="p7m", data=mail, pages=[[*HEAD_WORDS, *LETTER]], notes=seen),
    ]


def good() -> list[Paper]:
    """Return every good document."""
    return [*_pdfs(), *_letters(), *_tables(), *_web(), *_mails(), *_signed()]
