# SPDX-License-Identifier: Apache-2.0
"""I4, I9: whatever is recorded, in whatever order and however often it breaks off, the verifier accepts it.

The verifier shares no code with the writer, so their agreement is evidence for both.
"""

import json
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import akaion_verify
import pytest
from actor import Actor
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.kernel.errors import TraceError
from runner.perimeter.trace import log as log_module
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.merkle import CHAIN_START, Tree, leaf_hash, node_hash
from runner.perimeter.trace.note import parse_vkey, vkey
from runner.perimeter.trace.recover import parse_pin
from runner.testing import (
    FixedEntropy,
    FrozenClock,
    MemoryLogStore,
    MemorySaltStore,
    MemorySigner,
    header_words,
)


class Book(Actor):
    """A book in memory, and somebody who writes it."""

    def __init__(self, seal_every: int) -> None:
        self.store, self.salts, self.clock = MemoryLogStore(), MemorySaltStore(), FrozenClock()
        self.entropy, self.signer = FixedEntropy(), MemorySigner()
        self.seal_every = seal_every
        self.begin()

    def begin(self) -> None:
        facts = HeaderFacts(
            **header_words(
                book="any",
                profile="attached",
                backends=("akaion",),
                max_egress_class="C1",
                seal_every=self.seal_every,
            )
        )
        trace = Trace.open(
            store=self.store,
            signer=self.signer,
            salts=self.salts,
            clock=self.clock,
            entropy=self.entropy,
            facts=facts,
        )
        super().__init__(trace)
        self.announce()

    def wait(self, number: int) -> None:
        self.clock.advance(number / 10)

    def set_clock_back(self, number: int) -> None:
        self.clock._start_us -= number * 1_000_000

    def sleep(self, number: int) -> None:
        self.clock.advance(number * 10_000)

    def sync(self, _: int) -> None:
        self.trace.barrier()

    def rotate(self, _: int) -> None:
        self.trace.close("rotated")
        self.begin()

    def crash(self, number: int) -> None:
        """Die in the middle of writing a batch: some of it is on the disk, and the pin is the old one."""
        pin = self.store.pin
        assert pin is not None
        synced = parse_pin(pin).head.size
        self.trace.barrier()
        log = self.store.files[max(self.store.files)]
        kept = sum(len(line) for line in log.data.splitlines(keepends=True)[:synced])
        log.data = log.data[: kept + (len(log.data) - kept) * number // 12]
        self.store.pin = pin
        self.store.release()
        self.begin()

    def verdict(self) -> tuple[str, object]:
        with tempfile.TemporaryDirectory() as folder:
            book, pin = Path(folder) / "book", Path(folder) / "pin"
            book.mkdir()
            for name, log in self.store.files.items():
                (book / name).write_bytes(log.data)
            pin.write_text(vkey("any/device", self.signer.public_key))
            report = akaion_verify.verify(book, pin)
        return str(report["verdict"]), report


MOVES: dict[str, Callable[[Book, int], None]] = {
    "start": Actor.start,
    "end": Actor.end,
    "classify": Actor.classify,
    "call": Actor.call,
    "send": Actor.send,
    "ask": Actor.ask,
    "answer": Actor.answer,
    "wait": Book.wait,
    "sleep": Book.sleep,
    "set_clock_back": Book.set_clock_back,
    "sync": Book.sync,
    "rotate": Book.rotate,
    "crash": Book.crash,
}
moves = st.lists(st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, 12)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(moves=moves, seal_every=st.integers(1, 5))
def test_i4_every_history_gives_a_book_that_passes(moves: list[tuple[str, int]], seal_every: int) -> None:
    actor = Book(seal_every)
    for move, number in moves:
        MOVES[move](actor, number)
    verdict, report = actor.verdict()
    assert verdict in {"PASS", "INCOMPLETE"}, report
    actor.trace.close()
    verdict, report = actor.verdict()
    assert verdict == "PASS", report


@settings(max_examples=20, deadline=None)
@given(moves=moves, seal_every=st.integers(1, 5))
def test_i4_a_book_that_rotates_again_and_again_passes(moves: list[tuple[str, int]], seal_every: int) -> None:
    """The same days over and over, in logs of 400 records: what one log says never leans on another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_module, "MAX_RECORDS", 400)
        actor = Book(seal_every)
        for _ in range(8):
            for move, number in moves:
                if move in {"call", "send", "wait", "sleep", "set_clock_back"}:
                    MOVES[move](actor, number)
            actor.send(0)
            while actor.tasks:
                actor.end(0)
            actor.sleep(3)
        actor.trace.close()
    assert len(actor.store.files) > 2
    verdict, report = actor.verdict()
    assert verdict == "PASS", report


@settings(max_examples=60, deadline=None)
@given(moves=moves, seal_every=st.integers(1, 5))
def test_i4_every_line_names_the_one_before_and_carries_its_number(
    moves: list[tuple[str, int]], seal_every: int
) -> None:
    actor = Book(seal_every)
    for move, number in moves:
        MOVES[move](actor, number)
    actor.trace.close()
    for log in actor.store.files.values():
        previous = CHAIN_START
        for seq, line in enumerate(log.data.split(b"\n")[:-1]):
            record = json.loads(line)
            assert (record["seq"], record["prev"]) == (seq, previous)
            previous = sha256(b"\0" + line).hexdigest()


@given(st.lists(st.binary(max_size=8), max_size=80))
def test_i4_the_root_is_that_of_the_naive_recursion(lines: list[bytes]) -> None:
    tree, leaves = Tree(), [leaf_hash(line) for line in lines]
    for leaf in leaves:
        tree.add(leaf)
    assert tree.root() == naive_root(leaves)


def naive_root(leaves: list[bytes]) -> bytes:
    if len(leaves) <= 1:
        return leaves[0] if leaves else sha256(b"").digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return node_hash(naive_root(leaves[:split]), naive_root(leaves[split:]))


@given(st.text())
def test_i12_parse_vkey_is_total(text: str) -> None:
    try:
        name, public_key = parse_vkey(text)
    except ValueError:
        return
    assert vkey(name, public_key) == text


@given(
    st.binary()
    | st.from_regex(rb'\{"boot_id":"[a-z]*","log_no":-?[0-9]+,"root":"[0-9a-f]*","size":[0-9]+\}\n')
)
def test_i7_parse_pin_is_total(data: bytes) -> None:
    try:
        parse_pin(data)
    except TraceError:
        return
    assert data.startswith(b'{"boot_id":')


@given(name=st.text(), salted=st.sets(st.text(max_size=9), max_size=3))
def test_i12_only_allowed_words_stay_clear(name: str, salted: set[str]) -> None:
    word, commit = Book(5).trace.vocab_or_other(name, salted)
    if name in salted and name != "other":
        assert (word, commit) == (name, None)
    else:
        assert word == "other"
        assert commit is not None
