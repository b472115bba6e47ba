# SPDX-License-Identifier: Apache-2.0
"""Mutants of a book: what somebody who holds the files, but no key, might do to them.

Owns the ways to alter a book, each as edits of its bytes, drawn by number so that a mutant can be made again.
Leaves to others: what a verifier should say of one (`test_mutants.py`, `battery.py`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Callable, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Edit(NamedTuple):
    """Bytes `start` to `end` of a file become `put`."""

    file: str
    start: int
    end: int
    put: bytes


@dataclass(frozen=True)
class Mutant:
    """An altered book. `line` is where it was altered (log number and seq), if that is one place."""

    kind: str
    edits: tuple[Edit, ...]
    line: tuple[int, int] | None = None

    def apply(self, files: dict[str, bytes]) -> dict[str, bytes]:
        """Return the files of the altered book."""
        changed = dict(files)
        for file, start, end, put in self.edits:
            changed[file] = changed[file][:start] + put + changed[file][end:]
        return changed


class Book:
    """The files of a book, and where its lines stand."""

    def __init__(self, files: dict[str, bytes], others: list[bytes]) -> None:
        """Take the `files` of the book, and `others` from which a forger may take lines."""
        self.files = files
        self.names = sorted(files)
        self.lines = {name: data.splitlines(keepends=True) for name, data in files.items()}
        self.foreign = [line for data in others for line in data.splitlines(keepends=True)]
        self.offsets = {}
        for name, lines in self.lines.items():
            at, starts = 0, []
            for line in lines:
                starts.append(at)
                at += len(line)
            self.offsets[name] = starts

    def span(self, name: str, seq: int) -> tuple[int, int]:
        """Return where line `seq` starts and ends, its line feed included."""
        start = self.offsets[name][seq]
        return start, start + len(self.lines[name][seq])

    def place(self, name: str, at: int) -> tuple[int, int]:
        """Return the log number and the seq of the line that holds byte `at`."""
        seq = sum(start <= at for start in self.offsets[name]) - 1
        return number(name), seq


def number(name: str) -> int:
    """Return the log number in the name of a log."""
    return int(name.partition("-")[0])


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the logs of a folder by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.jsonl"))}


# --- bytes -------------------------------------------------------------------------------------------------


def _at(book: Book, random: Random) -> tuple[str, int]:
    """Return a file and a place in it, each byte of the book as likely as any other."""
    name = random.choices(book.names, [len(book.files[each]) for each in book.names])[0]
    return name, random.randrange(len(book.files[name]))


def substitute(book: Book, random: Random) -> Mutant:
    """One byte becomes another."""
    name, at = _at(book, random)
    put = bytes([book.files[name][at] ^ random.randrange(1, 256)])
    return Mutant("substitute", (Edit(name, at, at + 1, put),), book.place(name, at))


def delete(book: Book, random: Random) -> Mutant:
    """A few bytes within a line go."""
    name, at = _at(book, random)
    seq = book.place(name, at)[1]
    end = min(at + random.choice((1, 1, 1, 2, 3, 8)), book.span(name, seq)[1])
    return Mutant("delete", (Edit(name, at, end, b""),), book.place(name, at))


_INSERTED = (b"\n", b" ", b"\r", b"\x00", b"0", b"a", b'"', b"{}", b"\xef\xbb\xbf", b"\xff", b",", b"\\u0000")


def insert(book: Book, random: Random) -> Mutant:
    """A few bytes come in."""
    name, at = _at(book, random)
    put = random.choice(_INSERTED) if random.random() < 0.5 else random.randbytes(1)
    return Mutant("insert", (Edit(name, at, at, put),), book.place(name, at))


def truncate(book: Book, random: Random) -> Mutant:
    """The end of a log goes, from any byte on."""
    name, at = _at(book, random)
    return Mutant("truncate", (Edit(name, at, len(book.files[name]), b""),), book.place(name, at))


def append(book: Book, random: Random) -> Mutant:
    """Something stands after the end of a log: bytes, or a line of this or another book."""
    name = random.choice(book.names)
    end = len(book.files[name])
    put = random.choice((random.randbytes(random.randrange(1, 9)), b"\n", _any_line(book, random)))
    return Mutant("append", (Edit(name, end, end, put),), (number(name), len(book.lines[name])))


# --- lines -------------------------------------------------------------------------------------------------


def _line(book: Book, random: Random) -> tuple[str, int]:
    name = random.choice(book.names)
    return name, random.randrange(len(book.lines[name]))


def _any_line(book: Book, random: Random) -> bytes:
    own = [line for name in book.names for line in book.lines[name]]
    return random.choice(own + book.foreign)


def delete_lines(book: Book, random: Random) -> Mutant:
    """One or more lines go from within a log."""
    name, first = _line(book, random)
    last = min(first + random.choice((0, 0, 1, 2, 5)), len(book.lines[name]) - 1)
    edit = Edit(name, book.span(name, first)[0], book.span(name, last)[1], b"")
    one = (number(name), first) if first == last else None
    return Mutant("delete lines", (edit,), one)


def repeat_line(book: Book, random: Random) -> Mutant:
    """A line stands twice."""
    name, seq = _line(book, random)
    end = book.span(name, seq)[1]
    edit = Edit(name, end, end, book.lines[name][seq])
    return Mutant("repeat line", (edit,), (number(name), seq + 1))


def swap_lines(book: Book, random: Random) -> Mutant:
    """Two lines change places."""
    name, first = _line(book, random)
    second = random.randrange(len(book.lines[name]) - 1)
    second += second >= first
    first, second = sorted((first, second))
    lines = book.lines[name]
    edits = (
        Edit(name, *book.span(name, second), lines[first]),
        Edit(name, *book.span(name, first), lines[second]),
    )
    return Mutant("swap lines", edits, (number(name), first))


def splice_line(book: Book, random: Random) -> Mutant:
    """A line of this or another book stands in place of one, or before it."""
    name, seq = _line(book, random)
    start, end = book.span(name, seq)
    put = _any_line(book, random)
    if random.random() < 0.5 or put == book.lines[name][seq]:
        end = start
    return Mutant("splice line", (Edit(name, start, end, put),), (number(name), seq))


def splice_log(book: Book, random: Random) -> Mutant:
    """From some line on, a log goes on as another does from some line on."""
    name, seq = _line(book, random)
    tails = [lines for each, lines in book.lines.items() if each != name] + [book.foreign]
    tail = random.choice(tails)
    put = b"".join(tail[random.randrange(len(tail)) :])
    edit = Edit(name, book.span(name, seq)[0], len(book.files[name]), put)
    return Mutant("splice log", (edit,), (number(name), seq))


# --- meaning -----------------------------------------------------------------------------------------------


def _whole_line(book: Book, random: Random) -> tuple[str, int]:
    """Return a line that is no torn rest."""
    while True:
        name, seq = _line(book, random)
        if book.lines[name][seq].endswith(b"\n"):
            return name, seq


def _again(value: object, **style: object) -> bytes:
    how = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False, **style}
    return json.dumps(value, **how).encode() + b"\n"  # type: ignore[arg-type]


_ALIASES: tuple[Callable[[str], bytes], ...] = (
    lambda text: _again(json.loads(text), separators=(", ", ":")),
    lambda text: _again(json.loads(text), separators=(",", ": ")),
    lambda text: _again(dict(reversed(json.loads(text).items())), sort_keys=False),
    lambda text: f" {text}".encode(),
    lambda text: text.rstrip("\n").encode() + b"\t\n",
    lambda text: re.sub(r'"seq":([0-9]+)', r'"seq":\1.0', text, count=1).encode(),
    lambda text: re.sub(r'"seq":([0-9]+)', r'"seq":0\1', text, count=1).encode(),
    lambda text: re.sub(r'"seq":([0-9]+)', r'"seq":-\1', text, count=1).encode(),
    lambda text: re.sub(r'"seq":([0-9]+)', r'"seq":\1e0', text, count=1).encode(),
    lambda text: re.sub(r'"seq":([0-9]+)', r'"seq":\1,"seq":\1', text, count=1).encode(),
    lambda text: text.replace('"kind"', '"k\\u0069nd"', 1).encode(),
    lambda text: text.replace("/", "\\/", 1).encode() if "/" in text else f"{text[:-1]}\r\n".encode(),
    lambda text: text[:-2].encode() + b',"x_more":1}\n',
    lambda text: b"\xef\xbb\xbf" + text.encode(),
)


def alias(book: Book, random: Random) -> Mutant:
    """A line says the same, or nearly, in another spelling."""
    name, seq = _whole_line(book, random)
    put = random.choice(_ALIASES)(book.lines[name][seq].decode())
    return Mutant("alias", (Edit(name, *book.span(name, seq), put),), (number(name), seq))


def relabel(book: Book, random: Random) -> Mutant:
    """A word, a number or a flag in a record is another one of its kind, written canonically."""
    name, seq = _whole_line(book, random)
    text = book.lines[name][seq].decode()
    places = list(
        re.finditer(r'"C[0-3]"|true|false|"(?:allow|deny|ask|allowed|denied|ok|remote|L0)"|:[0-9]+', text)
    )
    place = random.choice(places)
    old = place.group()
    if old in ("true", "false"):
        new = "false" if old == "true" else "true"
    elif old.startswith(":"):
        new = f":{int(old[1:]) + random.choice((1, 7))}"
    else:
        new = random.choice(
            [f'"{word}"' for word in ("C0", "C1", "C2", "C3", "allow", "deny") if f'"{word}"' != old]
        )
    put = (text[: place.start()] + new + text[place.end() :]).encode()
    return Mutant("relabel", (Edit(name, *book.span(name, seq), put),), (number(name), seq))


WAYS: tuple[Callable[[Book, Random], Mutant], ...] = (
    *(substitute,) * 4,
    *(delete,) * 2,
    *(insert,) * 2,
    truncate,
    append,
    delete_lines,
    repeat_line,
    swap_lines,
    splice_line,
    splice_log,
    alias,
    relabel,
)
"""The ways to alter a book, the common ones more than once."""


def mutant(book: Book, which: int) -> Mutant:
    """Return mutant `which` of a book; it differs from the book."""
    random = Random(which)
    while True:
        made = random.choice(WAYS)(book, random)
        if made.apply(book.files) != book.files:
            return made
