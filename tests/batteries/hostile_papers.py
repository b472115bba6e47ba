# SPDX-License-Identifier: Apache-2.0
"""Documents that somebody made to do harm, or that broke on the way, and what may come of each.

Owns no judgement. `reason` is why a reader has to refuse it; None where it is read within the limits all the
same, and then `notes` are what it has to say.
"""

import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

from papers import (
    DATA,
    HEAD,
    LETTER,
    SIGNED,
    WORD,
    W,
    der,
    docx,
    links_of,
    multipart,
    odt,
    p7m,
    paragraph,
    part,
    plain_mail,
    plain_pdf,
    types_of,
    xlsx,
    zipped,
)
from pdfmaker import file_of, flate, pages_of, shown, stream
from pypdf import PdfWriter

from runner.capability.documents.words import Reason

MEGA = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Trap:
    """A hostile or broken file."""

    name: str
    data: bytes
    reason: Reason | None
    notes: Sequence[str] = ()
    slow: bool = False


def _xml_bomb(declared: str) -> bytes:
    kinds = {"word/document.xml": WORD + "document.main+xml"}
    said = f'<?xml version="1.0"?><!DOCTYPE d [{declared}]><w:document {W}><w:body><w:p><w:t>&a;</w:t></w:p></w:body></w:document>'
    root = links_of(("officeDocument", "word/document.xml"))
    return zipped({"[Content_Types].xml": types_of(kinds), "_rels/.rels": root, "word/document.xml": said})


def _laughs() -> str:
    lines = ['<!ENTITY z "ha">'] + [
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("zyxwvutsrq", "yxwvutsrqa", strict=True)
    ]
    return "".join(lines)


def _encrypted_zip() -> bytes:
    """Return a DOCX whose parts say that they are encrypted."""
    data = bytearray(docx(paragraph("x")))
    for mark, at in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        place = data.find(mark)
        while place >= 0:
            data[place + at] |= 1
            place = data.find(mark, place + 1)
    return bytes(data)


def _doubled_zip() -> bytes:
    """Return a DOCX with two parts of one name."""
    out = BytesIO(docx(paragraph("primo")))
    with zipfile.ZipFile(out, "a") as archive:
        archive.filelist[:] = list(archive.filelist)
        archive.NameToInfo.pop("word/document.xml")
        archive.writestr("word/document.xml", f"<w:document {W}/>")
    return out.getvalue()


def _bombs() -> list[Trap]:
    zeros = b"\0" * (70 * MEGA)
    flood = docx(
        paragraph("x"),
        {
            f"word/header{at}.xml": (WORD + "header+xml", b"<h>" + b" " * (30 * MEGA) + b"</h>")
            for at in range(8)
        },
    )
    one = docx("".join(map(paragraph, LETTER)), {"word/footnotes.xml": (WORD + "footnotes+xml", zeros)})
    text = docx("".join(paragraph("abc " * 2000) for _ in range(700)))
    shared = xlsx({"S": "".join('<row><c t="s"><v>0</v></c></row>' for _ in range(20_000))}, ["x" * 100_000])
    many = zipped({f"a{at}": b"" for at in range(6000)})
    spaces = odt("<text:p>" + '<text:s text:c="2000000000"/>' * 2000 + "fine</text:p>")
    rest = "there is more than is read of one document: what follows was not read"
    return [
        Trap(name="zip bomb, one part", data=one, reason=Reason.TOO_BIG),
        Trap(name="zip bomb, many parts", data=flood, reason=Reason.TOO_BIG),
        Trap(name="archive of too many names", data=many, reason=Reason.TOO_BIG),
        Trap(name="more text than is read", data=text, reason=None, notes=[rest]),
        Trap(name="shared string many times", data=shared, reason=None, notes=[rest]),
        Trap(name="spaces by number", data=spaces, reason=None),
    ]  # fmt: skip


def _archives() -> list[Trap]:
    good = docx("".join(map(paragraph, LETTER)))
    sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    both = docx(paragraph("x"), {"xl/workbook.xml": (sheet, "<workbook/>")})
    slides = zipped(
        {
            "[Content_Types].xml": types_of(
                {
                    "p.xml": "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
                }
            ),
            "p.xml": "<p/>",
        }
    )
    deep = "<w:p>" * 100_000
    wrong_crc = bytearray(good)
    at = wrong_crc.rfind(b"PK\1\2")
    wrong_crc[at + 16 : at + 20] = b"\1\2\3\4"
    far = '<row r="1"><c t="str"><v>vicino</v></c></row><row r="1048576"><c r="XFD1048576" t="str"><v>lontano</v></c></row>'
    dims = '<row r="99999999999999999999"><c r="ZZZZZZ9" t="str"><v>oltre</v></c></row>'
    locked = odt("<text:p>x</text:p>", manifest="<manifest><encryption-data/></manifest>")
    return [
        Trap(name="entities in entities", data=_xml_bomb(_laughs()), reason=Reason.ENTITIES),
        Trap(name="one long entity, often", data=_xml_bomb(f'<!ENTITY a "{"x" * 100_000}">'), reason=Reason.ENTITIES),
        Trap(name="entity of a file", data=_xml_bomb('<!ENTITY a SYSTEM "file:///etc/passwd">'), reason=Reason.ENTITIES),
        Trap(name="document type elsewhere", data=_xml_bomb("").replace(b"[]", b""), reason=Reason.ENTITIES),
        Trap(name="deep elements", data=docx(deep), reason=Reason.TOO_DEEP),
        Trap(name="encrypted parts", data=_encrypted_zip(), reason=Reason.ENCRYPTED),
        Trap(name="encrypted odt", data=locked, reason=Reason.ENCRYPTED),
        Trap(name="two parts of one name", data=_doubled_zip(), reason=Reason.AMBIGUOUS),
        Trap(name="letter and table at once", data=both, reason=Reason.AMBIGUOUS),
        Trap(name="slides", data=slides, reason=Reason.OTHER_OFFICE),
        Trap(name="plain archive", data=zipped({"a.txt": "x"}), reason=Reason.OTHER_OFFICE),
        Trap(name="name that climbs out", data=docx(paragraph("x"), {"../../etc/cron.d/x": ("text/plain", b"x")}), reason=Reason.MEMBER_NAMES),
        Trap(name="name from the top", data=docx(paragraph("x"), {"/etc/x": ("text/plain", b"x")}), reason=Reason.MEMBER_NAMES),
        Trap(name="cut off letter", data=good[: len(good) // 2], reason=Reason.BROKEN),
        Trap(name="wrong checksum", data=bytes(wrong_crc), reason=Reason.BROKEN),
        Trap(name="broken markup", data=docx("<w:p><w:r>"), reason=Reason.BROKEN),
        Trap(name="row of another world", data=xlsx({"S": far}), reason=None, notes=["rows far below the others, not read: 1"]),
        Trap(name="row without a number", data=xlsx({"S": dims}), reason=None),
    ]  # fmt: skip


def _changed(objects: dict[int, bytes], number: int, content: bytes) -> bytes:
    return file_of({**objects, number: content})


def _locked(algorithm: str, password: str) -> bytes:
    writer, out = PdfWriter(), BytesIO()
    writer.append(BytesIO(plain_pdf()))
    writer.encrypt(user_password=password, owner_password="padrone", algorithm=algorithm)
    writer.write(out)
    return out.getvalue()


def _pdfs() -> list[Trap]:
    base = pages_of([flate(shown(LETTER))])
    bomb = zlib.compress(zlib.compress(b"0" * (100 * MEGA), 9), 9)
    twice = stream(bomb, b"/Filter [/FlateDecode /FlateDecode]")
    form = stream(
        b"/X1 Do /X1 Do",
        b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X1 20 0 R >> >>",
    )
    loop = pages_of([stream(b"/X1 Do")], more={20: form})
    loop[4] = loop[4].replace(b"/Font <<", b"/XObject << /X1 20 0 R >> /Font <<")
    doubling = pages_of([stream(b"/X20 Do")])
    doubling[4] = doubling[4].replace(b"/Font <<", b"/XObject << /X20 20 0 R >> /Font <<")
    for at in range(20, 50):
        words = (
            b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X%d %d 0 R >> >>"
            % (at + 1, at + 1)
        )
        doubling[at] = stream(b"/X%d Do /X%d Do" % (at + 1, at + 1), words)
    doubling[50] = stream(b"", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9]")
    tree = b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"
    giant = base[4].replace(b"[0 0 595 842]", b"[0 0 99999999999 99999999999]")
    picture = stream(
        b"\0",
        b"/Type /XObject /Subtype /Image /Width 2000000000 /Height 2000000000 /BitsPerComponent 8 /ColorSpace /DeviceRGB",
    )
    shows_it = base[4].replace(b"/Font <<", b"/XObject << /Im1 20 0 R >> /Font <<")
    deep = b"[" * 50_000 + b"]" * 50_000
    nested = base[4].replace(b"/MediaBox", b"/Junk " + deep + b" /MediaBox")
    many_words = stream(b"BT /F1 12 Tf " + b"(a) Tj " * 3_000_000 + b"ET")
    selfish = base[4].replace(b"/Contents 5 0 R", b"/Contents 4 0 R")
    count = b"<< /Type /Pages /Kids [4 0 R] /Count 1000000000 >>"
    copies = b"<< /Type /Pages /Kids [" + b"4 0 R " * 200_000 + b"] /Count 200000 >>"
    blank = ["pages without text, perhaps scans: 1"]
    table = plain_pdf()
    start = table.rindex(b"startxref")
    circle = (
        table[: table.rindex(b"trailer")]
        + b"trailer\n<< /Size 9 /Root 1 0 R /Prev %d >>\n" % table.rindex(b"xref\n0", 0, start)
        + table[start:]
    )
    return [
        Trap(name="pages of themselves", data=_changed(base, 2, tree), reason=Reason.BROKEN),
        Trap(name="stream of zeros in a stream", data=_changed(base, 5, twice), reason=Reason.TOO_BIG),
        Trap(name="form in itself", data=file_of(loop), reason=None, notes=blank),
        Trap(name="forms that double", data=file_of(doubling), reason=None, notes=blank, slow=True),
        Trap(name="giant page", data=_changed(base, 4, giant), reason=None),
        Trap(name="giant picture", data=file_of({**base, 4: shows_it, 20: picture}), reason=None),
        Trap(name="deep array", data=_changed(base, 4, nested), reason=Reason.BROKEN),
        Trap(name="million words", data=_changed(base, 5, many_words), reason=Reason.TOO_BIG, slow=True),
        Trap(name="content is its page", data=_changed(base, 4, selfish), reason=None, notes=blank),
        Trap(name="count of a billion", data=_changed(base, 2, count), reason=None),
        Trap(name="one page many times", data=_changed(base, 2, copies), reason=Reason.TOO_BIG, slow=True),
        Trap(name="table of tables", data=circle, reason=None),
        Trap(name="password, AES", data=_locked("AES-256", "segreta"), reason=Reason.ENCRYPTED),
        Trap(name="password, RC4", data=_locked("RC4-128", "segreta"), reason=Reason.ENCRYPTED),
        Trap(name="cut off pdf", data=plain_pdf()[:400], reason=Reason.BROKEN),
        Trap(name="pdf of nothing", data=b"%PDF-1.7\n", reason=Reason.BROKEN),
    ]  # fmt: skip


def _mail_in_mail(depth: int) -> bytes:
    mail = plain_mail()
    for at in range(depth):
        inner = (
            b'Content-Type: message/rfc822\r\nContent-Disposition: attachment; filename="m.eml"\r\n\r\n'
            + mail
        )
        mail = HEAD + multipart("mixed", [inner], mark=f"b{at}")
    return mail


def _parts_in_parts(depth: int) -> bytes:
    body = b"Content-Type: text/plain\r\n\r\nfondo\r\n"
    for at in range(depth):
        body = multipart("mixed", [body], mark=f"b{at}")
    return HEAD + body


def _mails() -> list[Trap]:
    bomb = docx(paragraph("x"), {"word/footnotes.xml": (WORD + "footnotes+xml", b"\0" * (70 * MEGA))})
    told = part("text/plain", b"corpo")
    bombed = HEAD + multipart("mixed", [told, part("application/x", bomb, name="b.docx")], mark="m")
    climbing = HEAD + multipart(
        "mixed", [told, part("text/plain", b"x", name="../../../etc/passwd")], mark="m"
    )
    crowd = HEAD + multipart(
        "mixed", [part("text/plain", b"x", name=f"{at}.txt") for at in range(300)], mark="m"
    )
    long_field = HEAD + b"X-Long: " + b"=?utf-8?q?a?= " * 400_000 + b"\r\n\r\ncorpo"
    wrapped = plain_pdf()
    for _ in range(20):
        wrapped = p7m(wrapped)
    other = ["attachments not read: 1"]
    return [
        Trap(name="mail in mail in mail", data=_mail_in_mail(40), reason=None, notes=other),
        Trap(name="parts in parts", data=_parts_in_parts(3000), reason=Reason.TOO_DEEP),
        Trap(name="bomb in a mail", data=bombed, reason=None, notes=other),
        Trap(name="attachment that climbs out", data=climbing, reason=None),
        Trap(name="three hundred attachments", data=crowd, reason=None, notes=["attachments not read: 200"]),
        Trap(name="endless field", data=long_field, reason=None),
        Trap(name="signed, signed and signed", data=wrapped, reason=Reason.TOO_DEEP),
    ]


def _signed() -> list[Trap]:
    signature = der(0x02, b"\1") + der(0x31, b"") + der(0x30, DATA) + der(0xA0, der(0x30, b"certificate"))
    detached = der(0x30, SIGNED + der(0xA0, der(0x30, signature)))
    enveloped = der(0x30, der(0x06, bytes.fromhex("2a864886f70d010703")) + der(0xA0, b""))
    endless = b"\x30\x80" + SIGNED + b"\xa0\x80\x30\x80" + der(0x02, b"\1") + b"\x31\x80" * 100_000
    return [
        Trap(name="signature alone", data=detached, reason=Reason.DETACHED),
        Trap(name="enveloped message", data=enveloped, reason=Reason.ENCRYPTED),
        Trap(name="cut off p7m", data=p7m(plain_pdf())[:300], reason=Reason.BROKEN),
        Trap(name="length of the world", data=b"\x30\x84\x7f\xff\xff\xff" + SIGNED, reason=Reason.BROKEN),
        Trap(name="sets in sets", data=endless, reason=Reason.TOO_DEEP),
        Trap(
            name="signed text", data=p7m(b"solo testo\n"), reason=None, notes=["signatures, not checked: 1"]
        ),
    ]


def _texts() -> list[Trap]:
    nothing = b"{\\rtf1 " + b"{" * 100_000
    return [
        Trap(name="deep groups", data=nothing, reason=Reason.TOO_DEEP),
        Trap(name="group without end", data=b"{\\rtf1 testo", reason=Reason.BROKEN),
        Trap(name="group without beginning", data=b"{\\rtf1 a}}}", reason=Reason.BROKEN),
        Trap(name="data without end", data=b"{\\rtf1\\bin999999999 x}", reason=Reason.BROKEN),
        Trap(name="halves of characters", data=b"{\\rtf1 \\u-10179?\\par\\u-8704? fine}", reason=None),
        Trap(name="deep page", data=b"<html>" + b"<div>" * 200_000 + b"fondo", reason=None, slow=True),
        Trap(name="tags without end", data=b"<html>" + b"<a " * 1_000_000, reason=Reason.TOO_BIG),
        Trap(name="page of 17 MB", data=b"<html>" + b"x" * (17 * MEGA), reason=Reason.TOO_BIG),
        Trap(name="page that says UTF-7", data=b"<html><meta charset=utf-7><p>+ADw-script+AD4-", reason=None),
    ]


def _disguised() -> list[Trap]:
    letter = docx("".join(map(paragraph, LETTER)))
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 512
    picture = b"\x89PNG\r\n\x1a\n" + struct.pack(
        ">I4sIIBBBBB", 13, b"IHDR", 2**31 - 1, 2**31 - 1, 8, 6, 0, 0, 0
    )
    return [
        Trap(name="letter.pdf that is a docx", data=letter, reason=None),
        Trap(name="pdf that ends as an archive", data=plain_pdf() + letter, reason=None),
        Trap(name="pdf head on an archive", data=b"%PDF-1.4\n" + letter, reason=Reason.BROKEN),
        Trap(name="page before a pdf", data=b"<html><p>pagina</p></html>" + plain_pdf(), reason=None),
        Trap(name="old office.docx", data=old, reason=Reason.OLD_OFFICE),
        Trap(name="giant picture.pdf", data=picture, reason=Reason.PICTURE),
        Trap(name="notes.pdf that are text", data=b"solo testo\n" * 5, reason=Reason.PLAIN),
        Trap(name="letter with a From line", data=b"From: me\nTo: you\n\nCiao\n", reason=Reason.PLAIN),
        Trap(name="nothing", data=b"", reason=Reason.PLAIN),
        Trap(name="chance.pdf", data=zlib.compress(b"chance") + b"\0" * 9, reason=Reason.UNKNOWN),
    ]


def hostile() -> list[Trap]:
    """Return every hostile or broken document."""
    groups = (_bombs(), _archives(), _pdfs(), _mails(), _signed(), _texts(), _disguised())
    return [trap for group in groups for trap in group]
