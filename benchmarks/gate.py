# SPDX-License-Identifier: Apache-2.0
"""The gate's speed beside peers, in one run over the same letters; and its time on hostile text.

Run: python benchmarks/gate.py [--letters N] [--rounds N] [--peer-python PYTHON] [--worst]

Letters hold about three identifiers a KB at known places; see _gate_texts.py. Ours is measured with every
detector on, a register of 2,000 clients and an index of 10,000 fingerprints of what was read. Rounds are
interleaved, in processor time, and of each text the quickest counts: machines are shared and noisy, so read
the ratios. Each figure speaks about these letters.

Peers run in an interpreter of their own, named by --peer-python or GATE_PEER_PYTHON. To have one:
  python -m venv PLACE && PLACE/bin/pip install presidio-analyzer openai-guardrails
openai-guardrails also wants the spaCy model en_core_web_sm, installed there or as a folder of that name where
this is started. Its persons come from that model; Presidio runs here with patterns alone.
"""

import argparse
import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from _gate_peer import PEERS, Finding
from _gate_texts import Letter, Truth, Writer
from _gate_worst import print_worst

from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed
from runner.perimeter.classify import Classifier, EchoIndex, compile_registers

COMMON: Final = ("card", "email", "iban", "phone")
"""The kinds that all look for, whatever the language."""
_ONE: Final = {"client": "person", "pec": "email", "vat": "partita_iva"}
"""Kinds that count as one with another."""
_SUBJECTS: Final = frozenset({"health", "judicial", "secrecy"})
_REMEMBERED: Final = 10_000
_KEY: Final = b"benchmark-key-16"
_KB: Final = 1024


def gate(writer: Writer) -> Callable[[str], list[Finding]]:
    """Return what judges a text at the gate: rules, registers and echoes, with the register of `writer`."""
    clients = [
        Listed(file="clients", line=line, names=(name,)) for line, name in enumerate(writer.clients, 1)
    ]
    registers = compile_registers(clients=clients, own=(), public=(), key=_KEY)
    classifier, echo = Classifier(registers=registers), EchoIndex(_KEY, registers=registers)
    echo.remember(" ".join(f"word{number}" for number in range(_REMEMBERED + 5)), DataClass.C2)

    def judge(text: str) -> list[Finding]:
        echo.class_of(text)
        return [(span.start, span.end, span.kind) for span in classifier.classify(text).spans]

    return judge


@dataclass(slots=True, kw_only=True)
class Score:
    """What one system did: the least seconds of all rounds for each letter, and what was found."""

    name: str
    seconds: list[float] = field(default_factory=list)
    found: list[list[Finding]] = field(default_factory=list)

    def add(self, seconds: list[float], found: list[list[Finding]]) -> None:
        """Take in a round."""
        self.seconds = list(map(min, self.seconds or seconds, seconds))
        self.found = found

    def per_kb(self, letters: Sequence[Letter]) -> float:
        """Return microseconds a KB."""
        return sum(self.seconds) * 1e6 / size_of([letter.text for letter in letters])

    def recall(self, letters: Sequence[Letter], kinds: Sequence[str] = ()) -> float:
        """Return the share of the identifiers (of `kinds`, if given) that were found, as what they are."""
        hits = [
            any(_agree(truth, found) for found in there)
            for letter, there in zip(letters, self.found, strict=True)
            for truth in letter.truths
            if truth.kind in kinds or not kinds
        ]
        return sum(hits) / len(hits)

    def precision(self, letters: Sequence[Letter], kinds: Sequence[str] = ()) -> float:
        """Return the share of findings (of `kinds`, if given) that are identifiers of that kind."""
        hits = [
            any(_agree(truth, found) for truth in letter.truths)
            for letter, there in zip(letters, self.found, strict=True)
            for found in there
            if (found[2] in kinds if kinds else found[2] not in _SUBJECTS)
        ]
        return sum(hits) / max(1, len(hits))


def _agree(truth: Truth, found: Finding) -> bool:
    """Say whether `found` is `truth`: of its kind, and over some of its place."""
    start, end, kind = found
    return (
        start < truth.end and truth.start < end and _ONE.get(kind, kind) == _ONE.get(truth.kind, truth.kind)
    )


class PeerProcess:
    """A peer in its own interpreter."""

    def __init__(self, name: str, python: str) -> None:
        program = str(Path(__file__).with_name("_gate_peer.py"))
        self._process = subprocess.Popen(
            [python, program, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        first = self._line()
        self.name = json.loads(first) if first else ""
        """The package and its version; empty when it does not run in that interpreter."""

    def judge(self, letters: Sequence[Letter]) -> tuple[list[float], list[list[Finding]]]:
        """Return the seconds that the peer took for each of `letters`, and what it found there."""
        batch = json.dumps([[each.language, each.text] for each in letters])
        print(batch, file=self._process.stdin, flush=True)
        answer = json.loads(self._line())
        return answer["seconds"], answer["found"]

    def _line(self) -> str:
        return "" if self._process.stdout is None else self._process.stdout.readline()


def peers(python: str) -> Iterator[PeerProcess]:
    """Yield the peers that run under the interpreter `python`."""
    for name in PEERS:
        peer = PeerProcess(name, python)
        if peer.name:
            yield peer
        else:
            print(f"{name} does not run under {python}: left out; see the beginning of this file")


def timed(
    judge: Callable[[str], list[Finding]], texts: Sequence[str]
) -> tuple[list[float], list[list[Finding]]]:
    """Return the seconds of processor time that `judge` takes for each of `texts`, and its answers."""
    seconds, found = [], []
    for text in texts:
        started = time.process_time()
        found.append(judge(text))
        seconds.append(time.process_time() - started)
    return seconds, found


def size_of(texts: Sequence[str]) -> float:
    """Return the size of `texts` in KB of UTF-8."""
    return sum(len(text.encode()) for text in texts) / _KB


def disguised(letters: Sequence[Letter]) -> list[str]:
    """Return `letters`, each with its last third written in one of the ways that derived views open."""
    ways: tuple[Callable[[str], str], ...] = (
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: text.encode().hex(),
        lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
        lambda text: text.replace("o", "o\u200b"),
        " ".join,
    )
    cut = [2 * len(letter.text) // 3 for letter in letters]
    return [
        letter.text[:at] + ways[number % len(ways)](letter.text[at:])
        for number, (letter, at) in enumerate(zip(letters, cut, strict=True))
    ]


def compare(letters: Sequence[Letter], writer: Writer, others: Sequence[PeerProcess], rounds: int) -> None:
    """Print speed, recall and precision of ours and of `others` over `letters`."""
    judge, texts = gate(writer), [letter.text for letter in letters]
    ours = Score(name="akaion, every detector")
    scores = [ours, *(Score(name=peer.name) for peer in others)]
    for _ in range(rounds):
        for score, peer in zip(scores, (None, *others), strict=True):
            score.add(*(timed(judge, texts) if peer is None else peer.judge(letters)))
    size, identifiers = size_of(texts), sum(len(letter.truths) for letter in letters)
    print(f"{len(letters)} letters, {size:.0f} KB, {identifiers / size:.1f} identifiers a KB")
    print(f"{'':28} {'us/KB':>7} {'x ours':>7}   {', '.join(COMMON):>24}   {'all kinds':>18}")
    print(f"{'':28} {'':7} {'':7}   {'recall':>12} {'precision':>11}   {'recall':>8} {'precision':>9}")
    for score in scores:
        pace = score.per_kb(letters)
        print(
            f"{score.name:28} {pace:7.0f} {pace / ours.per_kb(letters):7.1f}"
            f"   {score.recall(letters, COMMON):12.3f} {score.precision(letters, COMMON):11.3f}"
            f"   {score.recall(letters):8.3f} {score.precision(letters):9.3f}"
        )


def goals(letters: Sequence[Letter], writer: Writer, rounds: int) -> None:
    """Print the figures with a goal: letters as they are and partly disguised, texts without identifiers.

    An automaton makes its states while it reads, so what it never read takes longer: that is printed beside.
    """
    judge = gate(writer)
    sets = (
        ("letters as they are", 100, [letter.text for letter in letters]),
        ("a third of each disguised", 400, disguised(letters)),
        ("texts without identifiers", 40, list(writer.plain(len(letters)))),
    )
    for name, goal, texts in sets:
        seconds = map(min, zip(*(timed(judge, texts)[0] for _ in range(rounds)), strict=True))
        print(f"{name:34} {1e6 * sum(seconds) / size_of(texts):8.0f} us/KB; goal {goal}")
    unread = [letter.text for letter in writer.letters(len(letters))]
    first = sum(timed(judge, unread)[0])
    print(f"{'letters never read before, once':34} {1e6 * first / size_of(unread):8.0f} us/KB")


def main() -> None:
    """Print the tables that the arguments ask for."""
    parser = argparse.ArgumentParser(description="The gate's speed, beside peers.")
    parser.add_argument("--letters", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peer-python", default=os.environ.get("GATE_PEER_PYTHON", sys.executable))
    parser.add_argument("--worst", action="store_true", help="time on hostile text instead, up to 1 MB")
    options = parser.parse_args()
    writer = Writer(options.seed)
    letters = list(writer.letters(options.letters))
    if options.worst:
        print_worst(gate(writer), [letter.text for letter in letters])
        return
    compare(letters, writer, list(peers(options.peer_python)), options.rounds)
    goals(letters, writer, options.rounds)


if __name__ == "__main__":
    main()
