# SPDX-License-Identifier: Apache-2.0
"""A tiny writer of PDF files, for tests: objects in, a file out, its references in a table or a stream.

Owns no judgement: it writes what it is told, also what no honest program writes. Source: ISO 32000-1.
"""

import zlib
from collections.abc import Mapping, Sequence

FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def stream(content: bytes, words: bytes = b"") -> bytes:
    """Return a stream object with `words` in its dictionary."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), words, content)


def flate(content: bytes, words: bytes = b"") -> bytes:
    """Return a compressed stream object."""
    return stream(zlib.compress(content, 9), b"/Filter /FlateDecode " + words)


def shown(lines: Sequence[str], *, matrix: str = "1 0 0 1 72 720") -> bytes:
    """Return a page's content that shows `lines` one below the other, in Windows-1252."""
    said = [f"({_escaped(line)}) Tj 0 -16 Td" for line in lines]
    return f"BT /F1 12 Tf {matrix} Tm {' '.join(said)} ET".encode("cp1252")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def numbered(number: int, content: bytes) -> bytes:
    """Return object `number`."""
    return b"%d 0 obj\n%s\nendobj\n" % (number, content)


def file_of(objects: Mapping[int, bytes], *, trailer: bytes = b"", version: bytes = b"1.4") -> bytes:
    """Return the file of `objects`, of which number 1 is the catalogue."""
    out = bytearray(b"%%PDF-%s\n%%\xe2\xe3\xcf\xd3\n" % version)
    places = {}
    for number, content in objects.items():
        places[number] = len(out)
        out += numbered(number, content)
    start, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        used = number in places
        out += b"%010d %05d %s \n" % (places.get(number, 0), 0 if used else 65535, b"n" if used else b"f")
    out += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, start)
    return bytes(out)


def packed_file(objects: Mapping[int, bytes]) -> bytes:
    """Return the file of `objects` with those that are no streams in an object stream (PDF 1.5)."""
    loose = {number: each for number, each in objects.items() if b"endstream" in each}
    inside = [number for number in objects if number not in loose]
    offsets, body = [], b""
    for number in inside:
        offsets.append(b"%d %d" % (number, len(body)))
        body += objects[number] + b"\n"
    head = b" ".join(offsets) + b"\n"
    holder, table = max(objects) + 1, max(objects) + 2
    words = b"/Type /ObjStm /N %d /First %d" % (len(inside), len(head))
    loose[holder] = flate(head + body, words)
    out = bytearray(b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n")
    places = {}
    for number, content in loose.items():
        places[number] = len(out)
        out += numbered(number, content)
    places[table] = start = len(out)
    rows = b"\0" + b"\0" * 4 + b"\xff\xff"
    for number in range(1, table + 1):
        if number in inside:
            rows += b"\2" + holder.to_bytes(4, "big") + inside.index(number).to_bytes(2, "big")
        else:
            rows += b"\1" + places[number].to_bytes(4, "big") + b"\0\0"
    words = b"/Type /XRef /Size %d /W [1 4 2] /Root 1 0 R" % (table + 1)
    out += numbered(table, flate(rows, words)) + b"startxref\n%d\n%%%%EOF\n" % start
    return bytes(out)


def pages_of(
    contents: Sequence[bytes],
    *,
    words: Sequence[bytes] | None = None,
    font: bytes = FONT,
    more: Mapping[int, bytes] | None = None,
) -> dict[int, bytes]:
    """Return the objects of a document whose pages have the streams `contents` and `words` of their own.

    1 is the catalogue, 2 the tree, 3 the font; pages and contents follow, then `more`.
    """
    first = 4
    kids = " ".join(f"{first + 2 * at} 0 R" for at in range(len(contents)))
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>".encode(),
        3: font,
    }
    for at, content in enumerate(contents):
        own = b"" if words is None else words[at]
        objects[first + 2 * at] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >>"
            b" /Contents %d 0 R %s >>" % (first + 2 * at + 1, own)
        )
        objects[first + 2 * at + 1] = content
    return {**objects, **(more or {})}


def unicode_font(characters: str, *, at: int) -> tuple[bytes, dict[int, bytes], Mapping[str, bytes]]:
    """Return a font of two-byte glyphs, its objects from number `at`, and each character's code."""
    codes = {character: (number + 3).to_bytes(2, "big") for number, character in enumerate(characters)}
    lines = "\n".join(f"<{codes[c].hex()}> <{c.encode('utf-16-be').hex()}>" for c in characters)
    table = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        "1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        f"{len(characters)} beginbfchar\n{lines}\nendbfchar\nendcmap end end"
    )
    inner = (
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo"
        b" << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /DW 600 >>"
    )
    font = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H"
        b" /DescendantFonts [%d 0 R] /ToUnicode %d 0 R >>" % (at, at + 1)
    )
    return font, {at: inner, at + 1: flate(table.encode())}, codes
