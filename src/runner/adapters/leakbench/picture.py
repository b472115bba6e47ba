# SPDX-License-Identifier: Apache-2.0
"""A picture with a note in it: the smallest PNG that carries a text (PNG specification, sections 5 and 11).

Owns its bytes. The note is an `iTXt` chunk, which programs and cameras write, and nobody sees in the picture.
Standard library only.
"""

import struct
import zlib
from typing import Final

MIME: Final = "image/png"
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"


def picture_with(text: str) -> bytes:
    """Return a picture of one grey point, with `text` as its description."""
    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    note = b"Description\0\0\0\0\0" + text.encode("utf-8", "surrogatepass")
    chunks = ((b"IHDR", head), (b"iTXt", note), (b"IDAT", zlib.compress(b"\0\x80")), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
