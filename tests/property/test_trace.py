# SPDX-License-Identifier: Apache-2.0
"""I4, I9: whatever is recorded, in whatever order and however often it breaks off, the verifier accepts it.

The verifier shares no code with the writer, so their agreement is evidence for both.
"""

import json
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import akaion_verify
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.kernel.errors import TraceError
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.ports import Locality
from runner.perimeter.trace import log as log_module
from runner.perimeter.trace import records as r
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.merkle import CHAIN_START, Tree, leaf_hash, node_hash
from runner.perimeter.trace.note import parse_vkey, vkey
from runner.perimeter.trace.recover import parse_pin
from runner.testing import FixedEntropy, FrozenClock, MemoryLogStore, MemorySaltStore, MemorySigner


class Actor:
    """Does what a runner may do, in the order that the drawn moves say."""

    def __init__(self, seal_every: int) -> None:
        self.store, self.salts, self.clock = MemoryLogStore(), MemorySaltStore(), FrozenClock()
        self.entropy, self.signer = FixedEntropy(), MemorySigner()
        self.seal_every = seal_every
        self.begin()

    def begin(self) -> None:
        facts = HeaderFacts(
            book="any",
            host="host",
            boot_id="0" * 32,
            profile="attached",
            policy_digest="1" * 64,
            config_digest="2" * 64,
            backends=("akaion",),
            max_egress_class="C1",
            enforcement="cooperative",
            sandbox="none",
            writer="akaion-runner/test",
            seal_every=self.seal_every,
        )
        self.trace = Trace.open(
            store=self.store,
            signer=self.signer,
            salts=self.salts,
            clock=self.clock,
            entropy=self.entropy,
            facts=facts,
        )
        self.tasks: list[str] = []
        self.marks: dict[str, DataClass] = {}
        self.blocks: list[tuple[str, DataClass]] = []
        commit = self.trace.commit(b"address")
        self.trace.append(
            r.Backend(
                name="akaion",
                model="model",
                locality=Locality.REMOTE,
                is_local=False,
                caps_digest="3" * 64,
                endpoint_commit=commit,
            )
        )

    def task(self, number: int) -> str:
        if not self.tasks:
            self.start(number)
        return self.tasks[number % len(self.tasks)]

    def start(self, number: int) -> None:
        task = self.trace.mint_id()
        commit = self.trace.commit(str(number).encode())
        if not self.tasks:
            self.blocks = []  # this may be the next log, and blocks are those of a log
        self.trace.append(r.TaskStart(goal_commit=commit, data_class=DataClass.C1), task=task)
        self.tasks.append(task)
        self.marks[task] = DataClass.C1

    def end(self, number: int) -> None:
        task = self.task(number)
        self.tasks.remove(task)
        self.trace.append(r.TaskEnd(outcome="stopped"), task=task)

    def classify(self, number: int) -> None:
        inputs = dict(self.blocks[-(number % 3) :] if number % 3 else [])
        data_class = max([DataClass(number % 4), *inputs.values()])
        self.label(self.trace.mint_block(), data_class, tuple(inputs), self.task(number))

    def label(self, block: str, data_class: DataClass, inputs: tuple[str, ...], task: str) -> None:
        record = r.Classify(
            block=block,
            data_class=data_class,
            parts=r.Parts(default=data_class),
            integrity=Integrity.UNTRUSTED,
            classifier="rules-only",
            version="rules/1",
            inputs=inputs,
            commit=self.trace.commit(block.encode()),
        )
        self.trace.append(record, task=task)
        self.blocks.append((block, data_class))
        self.marks[task] = max(self.marks[task], data_class)

    def call(self, number: int) -> None:
        task, call, args = self.task(number), self.trace.mint_id(), self.trace.commit(b"args")
        tool, commit = self.trace.vocab_or_other(f"tool{number % 4}", {"tool0", "tool1", "tool2"})
        decision: Any = "deny" if commit else ("allow", "ask", "deny")[number % 3]
        self.trace.append(
            r.PolicyDecision(
                call_id=call,
                tool=tool,
                tool_commit=commit,
                decision=decision,
                rule="rule",
                args_commit=args,
                data_class=DataClass.C1,
            ),
            task=task,
        )
        if decision == "ask":
            expires = self.trace.now_us() + 1
            self.trace.append(
                r.Approval(
                    call_id=call,
                    by="user",
                    args_commit=args,
                    rendering_digest="4" * 64,
                    expires=expires,
                    granted=number % 2 == 0,
                ),
                task=task,
            )
        if decision == "allow" or (decision == "ask" and number % 2 == 0):
            self.run(task, call, tool, args)

    def run(self, task: str, call: str, tool: str, args: str) -> None:
        self.trace.append(r.ToolCall(call_id=call, tool=tool, args_commit=args, net=False), task=task)
        self.trace.barrier()
        block, commit = self.trace.mint_block(), self.trace.commit(b"result")
        result = r.ToolResult(call_id=call, status="ok", result_commit=commit, bytes=6, block=block)
        self.trace.append(result, task=task)
        self.label(block, DataClass.C2, (), task)

    def send(self, number: int) -> None:
        task, call, send = self.task(number), self.trace.mint_id(), self.trace.mint_id()
        inputs = dict(self.blocks[-1:])
        data_class = max([self.marks[task], *inputs.values()])
        denied = data_class > DataClass.C1
        self.trace.append(
            r.Egress(
                call_id=call,
                send_id=send,
                channel="inference",
                backend="akaion",
                locality=Locality.REMOTE,
                data_class=data_class,
                inputs=tuple(inputs),
                decision="denied" if denied else "allowed",
                reason="class-above-ceiling" if denied else None,
                payload_commit=self.trace.commit(b"body"),
                bytes=4,
            ),
            task=task,
        )
        if not denied:
            self.trace.barrier()
            self.trace.append(r.EgressResult(call_id=call, send_id=send, status="ok", bytes=4), task=task)

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


MOVES: dict[str, Callable[[Actor, int], None]] = {
    "start": Actor.start,
    "end": Actor.end,
    "classify": Actor.classify,
    "call": Actor.call,
    "send": Actor.send,
    "wait": Actor.wait,
    "sleep": Actor.sleep,
    "set_clock_back": Actor.set_clock_back,
    "sync": Actor.sync,
    "rotate": Actor.rotate,
    "crash": Actor.crash,
}
moves = st.lists(st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, 12)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(moves=moves, seal_every=st.integers(1, 5))
def test_i4_every_history_gives_a_book_that_passes(moves: list[tuple[str, int]], seal_every: int) -> None:
    actor = Actor(seal_every)
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
        actor = Actor(seal_every)
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
    actor = Actor(seal_every)
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
    word, commit = Actor(5).trace.vocab_or_other(name, salted)
    if name in salted and name != "other":
        assert (word, commit) == (name, None)
    else:
        assert word == "other"
        assert commit is not None
