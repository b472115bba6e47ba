# SPDX-License-Identifier: Apache-2.0
"""The lives of a writer of a book on disk, for the batteries: open, record, seal, rotate, close.

Each says on a pipe what its barrier has returned for; whether that is true is the batteries' to find out.
Owns no fault and no verdict.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.keys import FileSigner
from runner.capability.transport.logstore import FolderLogStore
from runner.capability.transport.salts import FileSaltStore
from runner.kernel.labels import DataClass
from runner.perimeter.trace import records as r
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.note import vkey
from runner.perimeter.trace.recover import parse_pin
from runner.testing import FrozenClock, header_words

BOOK: Final = "studio"
DAY_S: Final = 86_400.0
Say = Callable[[str], None]

FACTS: Final = HeaderFacts(**header_words(book=BOOK, seal_every=4))


class Ports:
    """The ports of the book under `home`."""

    def __init__(self, home: Path) -> None:
        """Open keys and salts; raise `TraceError`."""
        book = home / "book"
        self.clock = FrozenClock(SystemClock().now_us())
        self.entropy = SystemEntropy()
        self.signer = FileSigner(home / "keys" / "device", book=book, entropy=self.entropy)
        self.salts = FileSaltStore(home / "salts" / BOOK, book=book)
        self.store = FolderLogStore(book, home / "heads" / BOOK)

    @contextmanager
    def open(self) -> Iterator[Trace]:
        """Open the next log, and close it; raise `TraceError`."""
        try:
            with Trace.open(
                store=self.store,
                signer=self.signer,
                salts=self.salts,
                clock=self.clock,
                entropy=self.entropy,
                facts=FACTS,
            ) as trace:
                yield trace
        finally:
            self.salts.close()


def start(trace: Trace) -> str:
    """Start a task and return its id."""
    task = trace.mint_id()
    goal = r.TaskStart(goal_commit=trace.commit(b"goal"), data_class=DataClass.C1)
    trace.append(goal, task=task)
    return task


def work(trace: Trace, task: str, say: Say) -> None:
    """Call one tool; say its call id once it may run, that is once the barrier has returned."""
    call, args = trace.mint_id(), trace.commit(b"args")
    decision = r.PolicyDecision(
        call_id=call,
        tool="read_file",
        decision="allow",
        rule="grant",
        args_commit=args,
        data_class=DataClass.C1,
    )
    trace.append(decision, task=task)
    trace.append(r.ToolCall(call_id=call, tool="read_file", args_commit=args, net=False), task=task)
    trace.barrier()
    say(call)
    result = r.ToolResult(call_id=call, status="ok", result_commit=trace.commit(b"r"), bytes=1, block=None)
    trace.append(result, task=task)


def day(home: Path, say: Say) -> None:
    """One log: two tool calls, a batch that fills up by itself, the end."""
    with Ports(home).open() as trace:
        task = start(trace)
        work(trace, task, say)
        work(trace, task, say)
        for _ in range(FACTS.seal_every):
            trace.append(r.StepVerdict(step=1, verdict="pass", by="rule"), task=task)
        trace.append(r.TaskEnd(outcome="done"), task=task)


def two_days(home: Path, say: Say) -> None:
    """Two logs: the first gives way to the second in the middle of the writer's life."""
    ports = Ports(home)
    with ports.open() as trace:
        task = start(trace)
        work(trace, task, say)
        trace.append(r.TaskEnd(outcome="done"), task=task)
        ports.clock.advance(DAY_S)
        task = start(trace)
        work(trace, task, say)
        trace.append(r.TaskEnd(outcome="done"), task=task)


def write_pin(home: Path, pin: Path) -> bool:
    """Write the auditor's pin for the device key under `home`; return whether there is one."""
    if not (home / "keys" / "device").exists():
        return False
    signer = FileSigner(home / "keys" / "device", book=home / "book", entropy=SystemEntropy())
    pin.write_text(vkey(f"{BOOK}/device", signer.public_key), encoding="ascii")
    return True


def pinned_lines(home: Path) -> int:
    """Return how many lines of the last log the head pin of the book under `home` names."""
    pin = FolderLogStore(home / "book", home / "heads" / BOOK).read_pin()
    return parse_pin(pin or b"").head.size


def sealed_calls(home: Path) -> set[str]:
    """Return the ids of the tool calls that stand before a seal in their log."""
    found = set[str]()
    for log in sorted((home / "book").glob("*.jsonl")):
        waiting = set[str]()
        for line in log.read_bytes().split(b"\n")[:-1]:
            record = json.loads(line)
            if record["kind"] == "tool_call":
                waiting.add(record["body"]["call_id"])
            elif record["kind"] == "seal":
                found |= waiting
                waiting = set()
    return found
