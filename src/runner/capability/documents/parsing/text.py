# SPDX-License-Identifier: Apache-2.0
"""Bytes as text, by the character set they say they are in, if it is a plain one."""

import re
from typing import Final

from runner.capability.documents.parsing.draft import Draft

_CHARSETS: Final = re.compile(
    r"utf-?8|utf-?16(?:[lb]e)?|us-ascii|ascii|iso-8859-\d{1,2}|windows-125\d|cp125\d|koi8-r"
)
_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def decoded(data: bytes, charset: str | None = None) -> str:
    """Return `data` as text: by its mark, as `charset` if that is a plain one, as UTF-8, as Windows-1252."""
    named = (charset or "").strip().lower()
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    tried = [name for name in (marked, named if _CHARSETS.fullmatch(named) else None, "utf-8") if name]
    for name in tried:
        try:
            return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", "replace")


def parse(data: bytes, draft: Draft) -> None:
    """Read plain text: an attachment, since a file of it is no document."""
    draft.line(decoded(data))
