# SPDX-License-Identifier: Apache-2.0
"""Encoded runs inside a text: base64 (both alphabets), base32, hexadecimal, its dumps, and gzip inside.

Each may be wrapped over lines. Where all lines together are no text, each is read alone.

Owns finding the runs, decoding them, and saying whether the result is text at all. Leaves the
judging of the decoded text to the engine, which asks for corroboration there.
Carries I6: an encoding does not hide an identifier; its depth is bounded by the engine, and each
decoding is at most a fixed number of times longer than its source, so the whole stays linear.
"""

import binascii
import zlib
from collections.abc import Callable, Iterator
from typing import Final

from runner.perimeter.classify import pattern as patterns
from runner.perimeter.classify.model import View
from runner.perimeter.classify.views import Piece, Reading, fold

BASE64: Final = r"[0-9A-Za-z+/_\-]{15,}(?:\r?\n[ \t]*[0-9A-Za-z+/_\-]{4,})*"
_WRAP: Final = r"\r?\n[ \t]{0,16}"
BASE32: Final = rf"[A-Z2-7]{{16,}}(?:{_WRAP}[A-Z2-7]+)*|[a-z2-7]{{16,}}(?:{_WRAP}[a-z2-7]+)*"
_PAIR: Final = "[0-9A-Fa-f]{2}"
HEXADECIMAL: Final = rf"{_PAIR}(?:(?::|,?(?: |{_WRAP})?(?:0[xX])?){_PAIR}){{9,}}"
DUMPED: Final = rf"[0-9A-Fa-f]{{6,16}}(?:: ((?:{_PAIR} ?)+)|  ((?:{_PAIR} {{1,2}})+))"
"""A line of a dump: its offset, and its bytes; the same may follow once more, for people."""
_DUMP: Final = rf"{DUMPED}[^\r\n]*(?:\r?\n[ \t]*{DUMPED}[^\r\n]*)+"

_BASE64: Final = patterns.compile_pattern(BASE64)
_BASE32: Final = patterns.compile_pattern(BASE32)
_HEXADECIMAL: Final = patterns.compile_pattern(HEXADECIMAL)
_DUMP_RUN: Final = patterns.compile_pattern(_DUMP)
_DUMP_LINE: Final = patterns.compile_pattern(DUMPED)
_TEXT_SHARE: Final = 0.85
"""The least share of readable characters in what counts as text; random bytes have less than half."""

_PACKED: Final = {b"\x1f\x8b\x08\0": 10, b"x\x01": 2, b"x\x5e": 2, b"x\x9c": 2, b"x\xda": 2}
"""How gzip (without a file name) and zlib data begin, and how long their headers are."""
_PACKED_FIRST: Final = frozenset(start[:1] for start in _PACKED)
_UNPACKED: Final = 32
"""How many times its own length packed data may unpack to and still be read."""
UNPACKABLE: Final = b"\x02packed beyond reading\x03"
"""Stands for what unpacks to more, or is encoded more often than is read. The rule `packed-beyond-reading`
finds it."""

_BASE32_TAILS: Final = (0, 2, 4, 5, 7)
"""How many characters of base32 may be left over behind groups of eight."""
_BASE32_DIGITS: Final = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789ABCDEFGHIJKLMNOPQRSTUV"
)
"""The signs of base32 as Python writes the digits of a number to that base."""
_CONTROL: Final = bytes({*range(0x20), 0x7F} - {0x09, 0x0A, 0x0D})
_NOT_UTF8: Final = "\ufffd"
_DIGITS: Final = tuple(bytes([digit]) for digit in range(0x30, 0x3A))
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")


def hexadecimal_runs(reading: Reading) -> Iterator[Reading]:
    """Yield the decoded text of every hexadecimal run of `reading`; each maps to its whole run."""
    for match in reading.new_matches(_HEXADECIMAL):
        start, end = match[0]
        yield from _whole_or_lines(reading, start, reading.data[start:end], _unhexlify)


def dumped_runs(reading: Reading) -> Iterator[Reading]:
    """Yield the text that is dumped in hexadecimal in lines of `reading`; it maps to all of them."""
    for match in reading.new_matches(_DUMP_RUN):
        start, end = match[0]
        lines = _DUMP_LINE.finditer(reading.data[start:end])
        dumped = [reading.data[start + at : start + to] for line in lines for at, to in line[1:] if to > 0]
        yield from _as_text(reading, start, end, _unhexlify(b"".join(dumped)))


def _unhexlify(run: bytes) -> bytes:
    """Return the bytes of `run`: pairs of digits, and signs or line ends between them."""
    return binascii.unhexlify(run.replace(b"0x", b"").replace(b"0X", b"").translate(None, b" :,\t\r\n"))


def base32_runs(reading: Reading) -> Iterator[Reading]:
    """Yield the decoded text of every run of base32 (RFC 4648, in either case) in `reading`."""
    for match in reading.new_matches(_BASE32):
        start, end = match[0]
        yield from _whole_or_lines(reading, start, reading.data[start:end], _unbase32)


def _unbase32(run: bytes) -> bytes:
    """Return the bytes of `run`, or nothing where its length says that it is no base32."""
    symbols = run.translate(None, b" \t\r\n").upper()
    if len(symbols) % 8 not in _BASE32_TAILS:
        return b""
    size, over = divmod(5 * len(symbols), 8)
    return (int(symbols.translate(_BASE32_DIGITS) or b"0", 32) >> over).to_bytes(size, "big")


def _whole_or_lines(
    reading: Reading, start: int, run: bytes, decode: Callable[[bytes], bytes]
) -> Iterator[Reading]:
    """Yield `run`, which stands at `start`, decoded whole; where that is no text, each line that is."""
    whole = list(_as_text(reading, start, start + len(run), decode(run)))
    yield from whole
    if not whole and b"\n" in run:
        for at, line in _lines(start, run):
            yield from _as_text(reading, at, at + len(line), decode(line))


def base64_runs(reading: Reading) -> Iterator[Reading]:
    """Yield the decoded text of every run of base64 in `reading`; each maps to its run, or to its line."""
    for match in reading.new_matches(_BASE64):
        start, end = match[0]
        if _is_mixed(reading.data[start:end]):
            yield from _base64_run(reading, start, end)


def _is_mixed(run: bytes) -> bool:
    """Say whether `run` has capitals, and small letters or digits: base64 of a text does, long words do not.

    That of a number may have no small letter.
    """
    return run.lower() != run and (run != run.upper() or any(digit in run for digit in _DIGITS))


def _base64_run(reading: Reading, start: int, end: int) -> Iterator[Reading]:
    """Yield the run decoded whole; where that is no text, each line at the first alignment that is."""
    run = reading.data[start:end]
    text = _text_of(_decode(run))
    if text is not None:
        yield _opened(reading, start, end, text)
        return
    first = int(b"\n" not in run)  # the run is its one line: not twice
    for at, line in _lines(start, run):
        for shift in range(first, 4):
            text = _text_of(_decode(line[shift:]))
            if text is not None:
                yield _opened(reading, at, at + len(line), text)
                break


def _lines(start: int, run: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each line of `run` with its offset, `run` itself standing at `start`."""
    for line in run.split(b"\n"):
        yield start, line
        start += len(line) + 1


def _decode(run: bytes) -> bytes:
    symbols = run.translate(_URL_SAFE, b" \t\r\n")
    usable = len(symbols) - (len(symbols) % 4 == 1)
    return binascii.a2b_base64(symbols[:usable] + b"=" * (-usable % 4))


def _as_text(reading: Reading, start: int, end: int, decoded: bytes) -> Iterator[Reading]:
    """Yield `decoded`, what was written at bytes `start` to `end` of `reading`, if it is text."""
    text = _text_of(decoded)
    if text is not None:
        yield _opened(reading, start, end, text)


def _text_of(decoded: bytes) -> str | None:
    """Return `decoded`, unpacked where it is packed, as a text; None for what is none."""
    decoded = _inflate(decoded)
    decoded = decoded.replace(b"\0", b"")  # UTF-16 of Latin text is that text with zeros between
    controls = len(decoded) - len(decoded.translate(None, _CONTROL))
    if not decoded or controls > (1 - _TEXT_SHARE) * len(decoded):
        return None
    text = decoded.decode("utf-8", "replace")
    return None if controls + text.count(_NOT_UTF8) > (1 - _TEXT_SHARE) * len(text) else text


def _opened(reading: Reading, start: int, end: int, text: str) -> Reading:
    """Return the reading `text`, which is written at bytes `start` to `end` of `reading`."""
    whole = Piece(at=0, start=start, end=end, step=0)
    around = b" ".join((*reading.surroundings(start, end), reading.around))
    return Reading(view=View.DECODED, data=fold(text).data, pieces=(whole,), parent=reading, around=around)


def _inflate(data: bytes) -> bytes:
    """Return what gzip or zlib data unpack to, `UNPACKABLE` where that is too much, and else `data`.

    The checksum at the end is not asked for: who reads the data elsewhere may not ask either.
    """
    if data[:1] not in _PACKED_FIRST:
        return data
    header = next((size for start, size in _PACKED.items() if data.startswith(start)), 0)
    if not header:
        return data
    limit = _UNPACKED * len(data) + 4096
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        unpacked = unpacker.decompress(data[header:], limit)
    except zlib.error:
        return data
    return UNPACKABLE if unpacker.unconsumed_tail else unpacked
