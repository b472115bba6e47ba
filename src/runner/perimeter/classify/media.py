# SPDX-License-Identifier: Apache-2.0
"""What can be read in media: texts inside bytes, and bytes inside texts.

Owns finding them, whatever a media type claims: text of any encoding, the notes and metadata of pictures
(PNG text chunks, Exif, XMP, IPTC), the text of markup, and the streams of a PDF. Leaves judging the texts to
the engine, in all its views, and pictures of text to the label: what nobody labelled is C3.
Carries I6: base64 does not hide what a picture carries. Time and memory are linear in what was given: one
budget covers all that is unpacked, at every depth, and what exceeds it is said to be beyond reading.
"""

import base64
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from runner.perimeter.classify import pattern as patterns
from runner.perimeter.classify.decode import BASE64, UNPACKABLE
from runner.perimeter.classify.views import fold

DEPTH: Final = 3
"""How many media inside each other are opened: a picture in a drawing in a text."""
_LEAST: Final = 40
"""The shortest base64 that is opened: thirty bytes. Shorter ones are the engine's, as derived views."""
_UNPACKED: Final = 32
_ROOM: Final = 1 << 16
"""What media may unpack to: so many times their length, and so many bytes more."""

_BEYOND: Final = UNPACKABLE.decode("ascii")

_BASE64: Final = patterns.compile_pattern(rf"{BASE64}={{0,2}}")
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
_WIDE: Final = r"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
_ACCENTED: Final = r"\xc3[\x80-\xbf]"
"""A character beyond ASCII in UTF-8: any, or a letter with an accent."""


def _runs(least: int, beyond: str) -> tuple[tuple[str, patterns.Pattern], ...]:
    """Return what reads `least` characters or more in a row, for each encoding."""
    one = {
        "utf-8": rf"[\t\n\r -~]|{beyond}",
        "utf-16-le": r"[\t\n\r -~\xa0-\xff]\x00",
        "utf-16-be": r"\x00[\t\n\r -~\xa0-\xff]",
    }
    return tuple(
        (code, patterns.compile_pattern(f"(?:{character}){{{least},}}")) for code, character in one.items()
    )


_IN_NOTES: Final = _runs(3, _WIDE)
_IN_NOISE: Final = _runs(10, _ACCENTED)
"""In random bytes, such as the points of a picture, shorter or stranger runs look like addresses of mail, or
like words in two alphabets, now and then."""
_LONG: Final = 16
_WORDS: Final = re.compile(
    r"(?:[A-Z]?[a-z]+|[A-Z][a-z]+[A-Z][a-z]{2,}|[A-Z]+|[0-9]+|[a-z]+[0-9]+|[A-Z]+[0-9]+|[0-9]+[a-z]+|[0-9]{2,}[A-Z]|"
    r"[A-Z]{1,3}[0-9]{2,9}[A-Z]{1,3})"
)
_SIGNS: Final = re.compile(r"[^0-9A-Za-z]+")
_SIGNS_OF_MAIL: Final = re.compile(r"[\s@._:,;'/+()\"\-]+")
"""In noise, what is shorter than `_LONG` counts if it is made like words, numbers and addresses are: chance
makes an address of mail in every hundredth picture of a megabyte, and hardly ever one that looks like any."""
_TOLD: Final = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase|code)?|pwd|secret|segreto|credenziali?|token|"
    r"(?:api|access|secret|private|auth)[ _\-]?key)[\"']?\s{0,3}(?:[:=]|e'? |is )|"
    r"[a-z]{4}[a-z0-9._%+\-]*@(?:[a-z0-9\-]+\.)+(?:"
    "at|be|ch|com|de|edu|es|eu|fr|gov|ie|info|it|nl|net|org|pl|pt|ro|uk"
    r")(?![a-z0-9])"
)
"""What chance does not make: a secret behind its name; a name in an address of mail below a known domain."""
_CONTROLS: Final = bytes([*range(9), 11, *range(14, 32), 127])
_INLINE: Final = (
    r"(?i)</?(?:a|b|em|font|i|span|strong|sub|sup|text|textpath|tref|tspan|u|wbr)(?:\s[^<>]*)?/?>"
)
_TAG: Final = patterns.compile_pattern(r"<[A-Za-z/!?][^<>]*>")
_IS_INLINE: Final = patterns.compile_pattern(rf"^{_INLINE}$")

_PICTURE: Final = re.compile(r"(?:data:image/(?:png|jpeg|gif|webp);base64,)?([0-9A-Za-z+/]{40,}={0,2})")
_FIELDS: Final = frozenset({"url", "data", "images"})
"""Names under which the protocols carry media, and no text."""
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_POINTS: Final = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND"})
_JPEG: Final = b"\xff\xd8"
_NOTES_OF_JPEG: Final = frozenset({0xFE, *range(0xE0, 0xF0)})
_POINTS_OF_JPEG: Final = 0xDA
"""Markers of a comment and of application data, and of the points."""
_PDF: Final = b"%PDF-"
_HEAD: Final = 512
"""Bytes before a stream in which its dictionary is looked for."""
_STREAM: Final = re.compile(rb"stream\r?\n")
_ZLIB: Final = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_ZLIB_HEAD: Final = 2
_GZIP: Final = b"\x1f\x8b\x08"
_PIECE: Final = 256
"""How much is unpacked at a time: where packed data are damaged, so much of them may be lost."""
_BETWEEN: Final = re.compile(r"\)[ \t\r\n]{0,8}-?[0-9.]{0,12}[ \t\r\n]{0,8}\(")
"""What stands between two strings of one shown text in a PDF: a shift in thousandths of the letter size."""


def carried(text: str) -> Iterator[str]:
    """Yield every text in the media that `text` carries as base64, a data URL included, at every depth."""
    yield from _Reader(len(text)).in_text(text, DEPTH)


def is_picture(text: str, name: str | None) -> bool:
    """Return whether `text`, under the name `name` of a body, is a picture and nothing else.

    Then its letters are no text: in some megabytes of them an identifier arises by chance. What the picture
    says is read in its bytes. So it must stand where media stand, as base64 in its one spelling, and be
    whole: nothing before, behind or between what makes a picture of its kind.
    """
    found = _PICTURE.fullmatch(text) if name in _FIELDS else None
    if found is None:
        return False
    data = _decoded(found[1].encode("ascii"))
    return base64.b64encode(data).decode("ascii") == found[1] and _is_whole(data)


def texts_in(data: bytes) -> Iterator[str]:
    """Yield every text that can be read in `data`, the media in it included."""
    yield from _Reader(len(data)).in_bytes(data, DEPTH)


class _Reader:
    """Reads on until what was unpacked exceeds the budget for `size` bytes or characters."""

    __slots__ = ("_left",)

    def __init__(self, size: int) -> None:
        self._left = _UNPACKED * size + _ROOM

    def in_text(self, text: str, depth: int) -> Iterator[str]:
        """Yield what is readable in the bytes that `text` carries."""
        data = fold(text).data
        for match in _BASE64.finditer(data):
            start, end = match[0]
            if end - start >= _LEAST:
                yield from self.in_bytes(_decoded(data[start:end]), depth)

    def in_bytes(self, data: bytes, depth: int) -> Iterator[str]:
        """Yield the texts of `data`, those of what is packed in it, and those of media inside either."""
        self._left -= len(data)
        if self._left < 0:
            yield _BEYOND
            return
        for text in _plain_texts(data):
            yield text
            if depth:
                yield from self.in_text(text, depth - 1)
        if depth:
            for packed in _packed(data):
                unpacked = self._unpacked(packed)
                yield from [_BEYOND] if unpacked is None else self.in_bytes(unpacked, depth - 1)

    def _unpacked(self, packed: bytes) -> bytes | None:
        """Return what `packed` unpacks to, up to where it is damaged; None beyond the budget.

        The checksum at the end is not asked for: who reads the data elsewhere may not ask either.
        """
        unpacker, data, left = zlib.decompressobj(-zlib.MAX_WBITS), [b""], max(1, self._left)
        start = _gzip_head(packed) if packed.startswith(_GZIP) else _ZLIB_HEAD
        for at in range(start, len(packed), _PIECE):
            try:
                data.append(unpacker.decompress(packed[at : at + _PIECE], left))
            except zlib.error:
                break
            left -= len(data[-1])
            if left <= 0 or unpacker.unconsumed_tail:
                return None
            if unpacker.eof:
                break
        return b"".join(data)


def _gzip_head(data: bytes) -> int:
    """Return how long the header of gzip data is (RFC 1952, section 2.3)."""
    flags, at = int.from_bytes(data[3:4], "big"), 10
    if flags & 4:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for named in (8, 16):
        if flags & named:
            at = data.find(b"\0", at) + 1 or len(data)
    return at + (flags & 2)


def _decoded(run: bytes) -> bytes:
    symbols = run.translate(_URL_SAFE, b" \t\r\n=")
    usable = len(symbols) - (len(symbols) % 4 == 1)
    return base64.b64decode(symbols[:usable] + b"=" * (-usable % 4))


def _plain_texts(data: bytes) -> Iterator[str]:
    """Yield `data` as text if that is what it is, else the runs that can be read in it, by encoding."""
    if len(data.translate(None, _CONTROLS)) == len(data):
        yield from _with_markup(_as_text(data))
        return
    for note in _notes(data):
        yield from _read(_ZLIB.split(note, 1)[0], _IN_NOTES)
    yield from _read(data, _IN_NOISE, noise=True)


def _read(
    data: bytes, encodings: Sequence[tuple[str, patterns.Pattern]], *, noise: bool = False
) -> Iterator[str]:
    """Yield what can be read in `data` by each of `encodings`; what does not touch is kept apart."""
    for encoding, runs in encodings:
        found = [data[match[0][0] : match[0][1]].decode(encoding, "replace") for match in runs.finditer(data)]
        found = [run for run in found if not noise or len(run) >= _LONG or _is_said(run)]
        if found:
            yield from _with_markup("\n\n".join(found))


def _is_said(run: str) -> bool:
    """Say whether `run` holds `_TOLD`, or is made of words, numbers and codes, and the signs between them."""
    folded = fold(run).data.decode("ascii")
    parts = (_SIGNS_OF_MAIL if "@" in folded else _SIGNS).split(folded)
    return _TOLD.search(folded) is not None or all(not part or _WORDS.fullmatch(part) for part in parts)


def _as_text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _with_markup(text: str) -> Iterator[str]:
    """Yield `text`; if it has tags, also what is left without them: a tag inside a line joins its sides.

    So do the shifts between the strings that a PDF shows in one line.
    """
    yield text
    if "TJ" in text:
        yield _BETWEEN.sub("", text)
    data = fold(text).data
    tags = [match[0] for match in _TAG.finditer(data)]
    if tags:
        pieces, position = [], 0
        for start, end in tags:
            inline = _IS_INLINE.search(data[start:end]) is not None
            pieces += [text[position:start], "" if inline else "\n"]
            position = end
        yield "".join([*pieces, text[position:]])


def _packed(data: bytes) -> Iterator[bytes]:
    """Yield what is packed in `data` and may hold text: not the points of a picture."""
    if data.startswith(_GZIP) or _ZLIB.match(data):
        yield data
    elif data.startswith(_PDF):
        yield from _streams(data)
    else:
        for note in _notes(data):
            if start := _ZLIB.search(note):
                yield note[start.start() :]


def _streams(data: bytes) -> Iterator[bytes]:
    """Yield the packed streams of a PDF, one behind the other, but for its pictures."""
    position = 0
    while start := _STREAM.search(data, position):
        head = data[max(position, start.start() - _HEAD) : start.start()].rpartition(b"obj")[2]
        end = data.find(b"endstream", start.end())
        position = len(data) if end < 0 else end + len(b"endstream")
        if b"/Image" not in head and _ZLIB.match(data, start.end()):
            yield data[start.end() : position]


def _notes(data: bytes) -> Iterator[bytes]:
    """Yield what a picture says beside its points: the chunks of a PNG, the segments of a JPEG."""
    if data.startswith(_PNG):
        yield from (body for kind, body in _chunks(data) if kind not in _POINTS)
    elif data.startswith(_JPEG):
        yield from (body for kind, body in _segments(data) if kind in _NOTES_OF_JPEG)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and body of each chunk of a PNG, as far as their kinds and lengths are right."""
    at = len(_PNG)
    while data[at + 4 : at + 8].isalpha():
        size = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        at += size + 12


def _is_whole(data: bytes) -> bool:
    """Return whether `data` are a picture from its first byte to its last, as far as its frame tells."""
    if data.startswith(_PNG):
        return _is_whole_png(data)
    if data.startswith(_JPEG):
        return _POINTS_OF_JPEG in dict(_segments(data)) and data.endswith(b"\xff\xd9")
    if data.startswith((b"GIF87a", b"GIF89a")):
        return data.endswith(b"\x3b")
    return (
        data[:4] == b"RIFF" and data[8:12] == b"WEBP" and data[4:8] == (len(data) - 8).to_bytes(4, "little")
    )


def _is_whole_png(data: bytes) -> bool:
    """Return whether the chunks of a PNG have the checksums they state and lead to its very end."""
    at, kind = len(_PNG), b""
    for kind, body in _chunks(data):
        at += len(body) + 12
        if zlib.crc32(kind + body).to_bytes(4, "big") != data[at - 4 : at]:
            return False
    return kind == b"IEND" and at == len(data)


def _segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and body of each segment of a JPEG up to its points, which begin with an empty one."""
    at = len(_JPEG)
    while data[at : at + 1] == b"\xff" and at + 1 < len(data):
        kind, size = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        yield kind, b"" if kind == _POINTS_OF_JPEG else data[at + 4 : at + 2 + size]
        at = len(data) if kind == _POINTS_OF_JPEG else at + 2 + max(2, size)
