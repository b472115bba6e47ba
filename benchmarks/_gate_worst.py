# SPDX-License-Identifier: Apache-2.0
"""Hostile texts for benchmarks/gate.py: each makes one part of the classifier work as hard as it can.

Each is a function of a size. What is asked of every one: twice the text takes at most 2.2 times the time, and
no KB of it takes more than ten times what a KB of a letter takes.

An automaton makes its states while it reads, in a bounded room, and begins anew when that is full. Random
signs fill it: what is read for the first time takes more, and by how much depends on what was read before.
So growth is that of texts which were read before. The first reading of 1 MB has a column of its own.

The garbage collector of Python looks at everything that is kept, whenever enough is new. When that happens
depends on what went before: one doubling may hold a pass over everything and the next none. So growth is
measured without it. Time a KB is measured with it, as it is spent: it may be a third of that.
"""

import base64
import gc
import gzip
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count, pairwise
from string import ascii_lowercase, ascii_uppercase
from typing import Final

SIZES: Final = tuple(1024 << step for step in range(6, 11))
"""From 64 KB to 1 MB."""
GROWTH: Final = 2.2
TIMES: Final = 10
_ROUNDS: Final = 3


def _again(unit: str) -> Callable[[int], str]:
    return lambda size: (unit * (size // len(unit) + 1))[:size]


def _random(alphabet: str, seed: int = 1) -> Callable[[int], str]:
    return lambda size: "".join(random.Random(seed).choices(alphabet, k=size))  # noqa: S311 - a text


def _numbered(template: str) -> Callable[[int], str]:
    """Return texts of `template`, with a number of its own each time."""

    def made(size: int) -> str:
        text, numbers = [], count(1_000_000)
        while size > 0:
            text.append(template.format(next(numbers)))
            size -= len(text[-1])
        return "".join(text)

    return made


def _nested(depth: int) -> Callable[[int], str]:
    def made(size: int) -> str:
        data = _random("abcdefghij iban conto", 2)(int(size * 0.75**depth)).encode()
        for _ in range(depth):
            data = base64.b64encode(data)
        return data.decode()

    return made


def _packed(size: int) -> str:
    """Return packed runs that unpack to as much as is still read, one behind the other."""
    run = base64.b64encode(gzip.compress(b"codice fiscale e conto " * 60, mtime=0)).decode()
    return _again(run + " ")(size)


_APART: Final = (
    "A-B-C-D-E-F|*-a*b*c*d*e*f%2eA\\x41A-B-C-D-E-F%2a\na~b~c~d~e~f\\x41&#46;A%7ca.b.c.d.e.f%2a_"
    "%2aa.b.c.d.e.f%7cZ91_2_3_4_5_6%2e~\na|b|c|d|e|f%2aa b c d e f%20\na b c d e f\n"
)


def _percent(text: str) -> str:
    return "".join(f"%{ord(character):02x}" for character in text)


def _nested_escapes(size: int) -> str:
    """Return percent escapes of references of escapes of programs: each opens one of the next."""
    inner = "".join(f"&#{ord(character)};" for character in "\\x41 \\x42")
    return _again(_percent(inner))(size)


def _numbered_base64(size: int) -> str:
    """Return runs of base64 that are just long enough to be looked at, each of another text."""
    runs = (base64.b64encode(f"conto it6{number:03}".encode()).decode() for number in range(1000))
    return _again(" ".join(runs) + " ")(size)


def _random_words(words: str) -> Callable[[int], str]:
    return lambda size: " ".join(random.Random(4).choices(words.split(), k=size // 3))[:size]  # noqa: S311


def _deep(size: int) -> str:
    return '{"a":' * (size // 6) + "1" + "}" * (size // 6)


HOSTILE: Final[dict[str, Callable[[int], str]]] = {
    "one letter": _again("L"),
    "random letters of codici fiscali": _random("LMPRST"),
    "near-miss codici fiscali": _numbered("RSSMRA80A01F205A{0} "),
    "overlapping codici fiscali": _again("ABCDEF01A01RSSMRA80A01F205"),
    "overlapping IBANs": _again("IT60X0"),
    "IBANs in words": _again("it60 x054 il 12 "),
    "IBANs in random words": _random("it60 a1 b2 "),
    "one digit": _again("4"),
    "random digits": _random("0123456789"),
    "digits in groups": _again("4111 "),
    "digits with dots": _random("0123456789. "),
    "card numbers that fail": _numbered("carta 4111 1111 {0} "),
    "phone-like": _again("tel 02 1234 56 "),
    "telephones without end": _random("tel 0123456789 -/"),
    "local parts": lambda size: "a" * (size - 1) + "@",
    "at signs": _again("a@"),
    "addresses of mail": _numbered("a{0}@b.it "),
    "domains": _again("a@b.c."),
    "percent escapes": _again("%41"),
    "percent inside percent": _again("%25"),
    "escapes, each alone": _again("%41 "),
    "character references": _again("&#65;"),
    "beginnings of references": _again("&#"),
    "quoted-printable": _again("a=\n"),
    "backslash u": _again("\\u0041"),
    "base64 of text": _again("cGF6aWVudGUg"),
    "base64 of noise": _again("q83vASNFZ4mr"),
    "base64 in lines": _again("q83vASNFZ4mrq83vASNF\n"),
    "base64 in base64": _nested(3),
    "hexadecimal": _again("6162"),
    "hexadecimal in groups": _again("61 62:"),
    "hexadecimal of hexadecimal": lambda size: ("ab" * (size // 8)).encode().hex().encode().hex()[:size],
    "packed": _packed,
    "single letters": _again("a "),
    "single letters with dots": _again("a."),
    "single letters, all signs": _random("ab .-_*|~/"),
    "chunks": _again("ab1.cd2-"),
    "chunks in lines": _again("ab-\n"),
    "invisible": _again("R\u200b"),
    "invisible only": _again("\u200b"),
    "combining marks": _again("e\u0301"),
    "soft hyphens": _again("a\xad"),
    "surrogates": _again("\ud800"),
    "ligatures": _again("\ufb03"),
    "many scripts": lambda size: "".join(chr(0x400 + index % 0x3000) for index in range(size)),
    "alternating alphabets": _again("a\u0430"),
    "titles": _again("sig. A "),
    "titles and names": _again("sig. Rossi "),
    "streets": _again("via a "),
    "births": _again("nato a "),
    "subjects": _again("diabete "),
    "subjects and persons": _again("diabete sig. Rossi "),
    "passwords": _again("password="),
    "passwords with values": _numbered("password=a{0}! "),
    "keys": _again("AKIA"),
    "private keys": _again("-----BEGIN PRIVATE KEY-----"),
    "addresses with passwords": _again("a://b:c"),
    "clients": _again("Ada Abate "),
    "clients with a slip": _again("Ada Abatte "),
    "surnames": _again("Abate Alberti Amato "),
    "initials": _again("A. Abate "),
    "what was read": _numbered("word1 word2 word3 word4 word5 word{0} "),
    "what was read, all of it": _again("word1 word2 word3 word4 word5 word6 word7 word8 "),
    "spaces": _again(" "),
    "line ends": _again("\n"),
    "words, each on its line": _again("a\n"),
    "line ends of quotations": _again("\n> "),
    "names, each on its line": _again("Mario\n"),
    "names between tabs": _again("Learco\tOkonkwo\t"),
    "telephones, wrapped": _again("call\nme\non\n020\n"),
    "zeros": _again("\0"),
    "deep JSON": _deep,
    "many keys": lambda size: json.dumps({f"iban{number}": number for number in range(size // 22)}),
    "not Latin": _again("\u043c\u0435\u0434\u0438\u0446\u0438\u043d\u0430 "),
    "anything": lambda size: "".join(map(chr, random.Random(3).choices(range(0x3000), k=size))),  # noqa: S311
    "every way of writing apart": _again(_APART),
    "digits with every separator": _random("0123456789 .-/_*|~:,()+"),
    "digits and letters with every separator": _random("0123456789abcDEF .-/_*|~:,()+@"),
    "letters and digits with a space": _random("0123456789ABEFLMR "),
    "escapes of escapes": _nested_escapes,
    "one escape of many kinds": _again("%41&#66;\\x43=44\\u0045&amp;"),
    "escapes of base64 of escapes": _again(_percent(base64.b64encode(b"%41&#66; " * 99).decode())),
    "hexadecimal of base64": lambda size: base64.b64encode(b"conto it60 " * size)[: size // 2].hex(),
    "short runs of base64": _numbered_base64,
    "short runs of hexadecimal": _again("6369616f206369616f2063 "),
    "short runs of base32": _again("mnuwc3zaxxxxmnuwc3za "),
    "digits with nothing between": _again("1\u200b2\u200b"),
    "look-alikes": _again("\u0420\u0410\u0430\u0435\u043e "),
    "look-alikes of two alphabets": _again("p\u0430\u0443p\u0430l "),
    "wide letters": _random("".join(map(chr, range(0xFF10, 0xFF5B)))),
    "random base64": lambda size: base64.b64encode(random.Random(5).randbytes(size * 3 // 4)).decode(),  # noqa: S311
    "random letters, spaced like prose": _random(ascii_lowercase * 4 + ascii_uppercase + " " * 22),
    "names without end": _again("Maria Rossi "),
    "names of many": _random_words("Anna Maria Luca Paolo Rossi Bianchi de la Galli VERDI D'Amico"),
    "names in a line": _again("Zorba Kline "),
    "names and roles": _again("paziente Luca Galli, attore "),
    "mobile numbers": _again("333 1234567 "),
    "mobile numbers with a word": _again("cell 333 123 4567;"),
    "numbers abroad": _again("tel +1 202 555 0100 "),
    "numbers of nobody": _again("tel +99 1234567 "),
    "IBAN prefixes": _again("IT60 "),
    "IBANs that fail": _numbered("iban IT60X0542811101000000{0} "),
    "names of banks' accounts": _again("conto GB29 NWBK 6016 1331 "),
    "codici fiscali": _again("RSSMRA80A01F205X "),
    "codici fiscali apart": _again("RSS MRA 80A 01 F205X "),
    "numbers with a word for each": _again("bsn nif pesel oib 123456789 "),
    "matters": _again("matter "),
    "fascicoli": _again("fascicolo R.G. 1/20 "),
    "case numbers": _numbered("R.G. {0} "),
    "land": _again("fg 1 part 2 "),
    "at signs between dots": _again("a.@b."),
    "at in words": _again("a (at) b.it "),
    "quoted-printable letters": _again("=41=42"),
    "quoted-printable inside it": _again("=3D"),
    "HTML of HTML": _again("&amp;#65;"),
    "JSON of JSON": _again('\\\\u0041\\"'),
    "dates of birth": _again("nato il 1/1/1980 "),
    "secrets": _again("token: a1!b2c "),
    "assigned": _again("password=none "),
    "bearers": _again("bearer aaaaaaaaaaaaaaa1 "),
    "marks of private keys": _again("-----BEGIN A PRIVATE KEY----- a "),
    "firms": _again("Rossi S.r.l. "),
    "streets with numbers": _again("via Po 1, 10100 Torino "),
    "plates": _again("targa AB123CD "),
    "lines of a dump": _again("00000000: 6162 6364 6566\n"),
    "words broken at line ends": _again("cod-\nice fis-\ncale "),
}
"""By name, what makes a text of about so many characters."""


def seconds(
    judge: Callable[[str], object], text: str, *, rounds: int = _ROUNDS, collecting: bool = True
) -> float:
    """Return the least processor time of so many `rounds`.

    Without `collecting`, garbage is collected before each and not meanwhile.
    """
    best = float("inf")
    for _ in range(rounds):
        judge("")  # so that nothing of the text before is at hand
        with nullcontext() if collecting else _not_collecting():
            started = time.process_time()
            judge(text)
            best = min(best, time.process_time() - started)
    return best


@contextmanager
def _not_collecting() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _doublings(judge: Callable[[str], object], texts: Sequence[str]) -> list[float]:
    """Return how often the time of each of `texts` is in the next, as if each were exactly of its size."""
    taken = [
        seconds(judge, text, collecting=False) * size / len(text)
        for size, text in zip(SIZES, texts, strict=True)
    ]
    return [after / before for before, after in pairwise(taken)]


def print_worst(judge: Callable[[str], object], ordinary: Sequence[str]) -> None:
    """Print for each hostile text its time a KB at 1 MB beside `ordinary` texts, and the worst doubling."""
    usual = seconds(lambda _: [judge(text) for text in ordinary], "") * 1024 / sum(map(len, ordinary))
    print(f"ordinary text: {usual * 1e6:.0f} us/KB")
    print(f"{'':36} {'1 MB, us/KB':>22} {'x ordinary':>14} {'time(2n)/':>10}")
    print(f"{'':36} {'first time':>13} {'again':>8} {'first':>8} {'again':>5} {'time(n)':>10}")
    for name, make in HOSTILE.items():
        texts = [make(size) for size in SIZES]
        size = len(texts[-1]) / 1024
        first = seconds(judge, texts[-1], rounds=1) / size
        again = seconds(judge, texts[-1]) / size
        growth = max(_doublings(judge, texts))
        marks = " slow" * (first > TIMES * usual) + " superlinear" * (growth > GROWTH)
        print(
            f"{name:36} {first * 1e6:13.0f} {again * 1e6:8.0f} {first / usual:8.1f} {again / usual:5.1f}"
            f" {growth:10.2f}{marks}",
            flush=True,
        )
