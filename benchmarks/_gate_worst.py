# SPDX-License-Identifier: Apache-2.0
"""Hostile texts for benchmarks/gate.py: each makes one part of the classifier work as hard as it can.

Each is a function of a size. What is asked of every one: twice the text takes at most 2.2 times the time, and
no KB of it takes more than ten times what a KB of a letter takes.
"""

import base64
import gzip
import json
import random
import time
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import Final

SIZES: Final = tuple(1024 << step for step in range(6, 11))
"""From 64 KB to 1 MB."""
GROWTH: Final = 2.2
TIMES: Final = 10


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
    "zeros": _again("\0"),
    "deep JSON": _deep,
    "many keys": lambda size: json.dumps({f"iban{number}": number for number in range(size // 22)}),
    "not Latin": _again("\u043c\u0435\u0434\u0438\u0446\u0438\u043d\u0430 "),
    "anything": lambda size: "".join(map(chr, random.Random(3).choices(range(0x3000), k=size))),  # noqa: S311
}
"""By name, what makes a text of about so many characters."""


def seconds(judge: Callable[[str], object], text: str) -> float:
    """Return the least processor time of two runs; of one where it is long."""
    best = float("inf")
    for _ in range(2):
        judge("")  # so that nothing of the text before is at hand
        started = time.process_time()
        judge(text)
        best = min(best, time.process_time() - started)
        if best > 1:
            break
    return best


def print_worst(judge: Callable[[str], object], ordinary: Sequence[str]) -> None:
    """Print for each hostile text its time a KB at 1 MB beside `ordinary` texts, and the worst doubling."""
    usual = seconds(lambda _: [judge(text) for text in ordinary], "") * 1024 / sum(map(len, ordinary))
    print(f"ordinary text: {usual * 1e6:.0f} us/KB")
    print(f"{'':36} {'us/KB':>8} {'x ordinary':>10} {'time(2n)/time(n), worst of four':>32}")
    for name, make in HOSTILE.items():
        texts = [make(size) for size in SIZES]
        taken = [seconds(judge, text) for text in texts]
        rates = [each * 1024 / len(text) for each, text in zip(taken, texts, strict=True)]
        growth = max(2 * after / before for before, after in pairwise(rates))
        marks = " slow" * (rates[-1] > TIMES * usual) + " superlinear" * (growth > GROWTH)
        print(f"{name:36} {rates[-1] * 1e6:8.0f} {rates[-1] / usual:10.1f} {growth:32.2f}{marks}", flush=True)
