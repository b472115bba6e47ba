# SPDX-License-Identifier: Apache-2.0
"""RTF: paragraphs as lines, a table's row as one line. Source: Rich Text Format specification 1.9.1."""

import re
from dataclasses import dataclass, replace
from typing import Final

from runner.capability.documents.parsing.draft import Draft, Unreadable
from runner.capability.documents.parsing.text import decoded
from runner.capability.documents.words import Note, Reason

_TOKEN: Final = re.compile(
    r"\\(?P<word>[A-Za-z]{1,32})(?P<number>-?\d{1,9})? ?"
    r"|\\'(?P<byte>[0-9A-Fa-f]{2})"
    r"|\\(?P<symbol>[^A-Za-z'])"
    r"|(?P<brace>[{}])"
    r"|(?P<text>[^\\{}\r\n]+)"
    r"|[\r\n]+|.",
    re.DOTALL,
)
_DESTINATIONS: Final = frozenset(
    {
        "bkmkend", "bkmkstart", "colorschememapping", "colortbl", "datastore", "filetbl", "fldinst",
        "fonttbl", "generator", "info", "latentstyles", "listoverridetable", "listtable", "listtext",
        "nonshppict", "objclass", "objdata", "object", "pict", "pntxta", "pntxtb", "revtbl", "rsidtbl",
        "shprslt", "sp", "stylesheet", "themedata", "xmlnstbl",
    }
)  # fmt: skip
_ENTERED: Final = frozenset({"do", "shpinst", "shppict", "ud"})
"""Destinations that old readers are told to skip and that hold what is shown."""
_SAID: Final = {
    "dptxbxtext": "\n", "shptxt": "\n",
    "par": "\n", "line": "\n", "sect": "\n", "row": "\n", "nestrow": "\n", "tab": "\t", "cell": "\t",
    "nestcell": "\t", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“",
    "rdblquote": "”", "bullet": "•", "emspace": " ", "enspace": " ",
}  # fmt: skip
_SYMBOLS: Final = {"~": "\u00a0", "_": "-", "\n": "\n", "\r": "\n", "\\": "\\", "{": "{", "}": "}"}
DEPTH: Final = 2_000


@dataclass(frozen=True, slots=True)
class _Group:
    """What holds in a group: is its text skipped, and how many characters follow one given by its number.

    `halves`: it says one thing twice, and its next group is the half for old readers, which is skipped.
    `shows`: it is an embedded object, skipped, of which the group `result` is what is shown.
    """

    skipped: bool = False
    stand_ins: int = 1
    halves: bool = False
    shows: bool = False


def parse(data: bytes, draft: Draft) -> None:
    """Read rich text; raise `Unreadable`, `Full`."""
    draft.page()
    reader = _Reader(draft)
    reader.read(data.decode("latin-1"))
    if reader.open:
        raise Unreadable(Reason.BROKEN)


class _Reader:
    """The state of reading: the group one is in, and what was said since the last line."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._group = _Group()
        self._outer: list[_Group] = []
        self._said: list[str] = []
        self._bytes = bytearray()
        self._charset = "cp1252"
        self._drop = 0
        self._marked = False

    @property
    def open(self) -> bool:
        """Whether a group has not ended."""
        return bool(self._outer)

    def read(self, text: str) -> None:
        """Read all of it; raise `Unreadable`, `Full`."""
        at = 0
        while token := _TOKEN.match(text, at):
            at = token.end()
            match token.lastgroup:
                case "word" | "number":
                    at += self._word(token["word"], token["number"])
                case "byte":
                    self._byte(int(token["byte"], 16))
                case "symbol":
                    self._symbol(token["symbol"])
                case "brace":
                    self._brace(token["brace"])
                case "text":
                    self._text(token["text"])
                case _:
                    pass
        self._end_line()

    def _brace(self, brace: str) -> None:
        self._drop, self._marked = 0, False
        if brace == "{":
            if len(self._outer) >= DEPTH:
                raise Unreadable(Reason.TOO_DEEP)
            self._outer.append(replace(self._group, halves=False))
            skipped = self._group.skipped or self._group.halves
            self._group = replace(self._group, skipped=skipped, halves=False)
        elif self._outer:
            self._group = self._outer.pop()
        else:
            raise Unreadable(Reason.BROKEN)

    def _word(self, word: str, number: str | None) -> int:
        """Follow a control word; return how many characters after it are data to be left out."""
        self._enter(word)
        value = int(number or 0)
        if word == "bin":
            return max(0, value)
        if word == "uc":
            self._group = replace(self._group, stand_ins=max(0, min(value, 16)))
        elif word == "ansicpg":
            self._charset = f"cp{value}"
        elif self._drop:
            self._drop -= 1
        elif word == "u":
            self._say(chr(value % 0x10000))
            self._drop = self._group.stand_ins
        elif word == "page" and not self._group.skipped:
            self._end_line()
            self._draft.page()
        else:
            self._say(_SAID.get(word, ""))
        return 0

    def _enter(self, word: str) -> None:
        """Follow a control word that says what its group is, if it is one."""
        if word == "result" and self._group.shows:
            self._marked, self._group = False, replace(self._group, skipped=False, shows=False)
        elif self._marked and word in _ENTERED:
            self._marked = False
        elif word in _DESTINATIONS or self._marked:
            self._destination(word)
        elif word == "upr":
            self._group = replace(self._group, halves=True)

    def _destination(self, word: str) -> None:
        self._marked = False
        seen = not self._group.skipped
        self._draft.note(Note.PICTURES, int(seen and word == "pict"))
        self._draft.note(Note.EMBEDDED, int(seen and word == "object"))
        self._group = replace(self._group, skipped=True, shows=seen and word == "object")

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._marked = True
        elif self._drop:
            self._drop -= 1
        else:
            self._say(_SYMBOLS.get(symbol, ""))

    def _byte(self, value: int) -> None:
        if self._drop:
            self._drop -= 1
        elif not self._group.skipped:
            self._bytes.append(value)

    def _text(self, text: str) -> None:
        dropped = min(self._drop, len(text))
        self._drop -= dropped
        self._say(text[dropped:])

    def _say(self, text: str) -> None:
        if self._group.skipped or not text:
            return
        self._flush()
        *lines, rest = text.split("\n")
        for line in lines:
            self._said.append(line)
            self._end_line()
        self._said.append(rest)

    def _flush(self) -> None:
        if self._bytes:
            self._said.append(decoded(bytes(self._bytes), self._charset))
            self._bytes.clear()

    def _end_line(self) -> None:
        self._flush()
        line = "".join(self._said).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        self._said.clear()
        self._draft.line(line.rstrip("\t "))
