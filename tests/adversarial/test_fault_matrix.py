# SPDX-License-Identifier: Apache-2.0
"""I7, I9, I4: every fault closes. A table of named faults, each with what must come of it.

One inference, over a real socket to a real server, with the real codec, transport, record and files, is run
once for each fault; what fails is put in by the ports, or is a real file, server or process that fails. What
is looked at is outside: the bytes that the server received, the lines of the record, the verifier's verdict.
After every fault a sound run follows in the same place, and must work.
"""

import contextlib
import errno
import json
import math
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import akaion_verify
import anyio
import pytest
from awaits import Cancelled

from runner import open_profile
from runner.capability.backends.openai import OpenAIBackend
from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.http import HttpTransport
from runner.capability.transport.keys import FileSigner
from runner.capability.transport.locality import LoopbackCheck
from runner.capability.transport.logstore import FolderLogStore
from runner.capability.transport.salts import FileSaltStore
from runner.kernel.errors import (
    BackendError,
    ClassifierFault,
    ConfigError,
    EgressDenied,
    Redirected,
    ReplyInvalid,
    RequestRefused,
    SealError,
    TraceError,
    TraceUnavailable,
    TransportError,
)
from runner.kernel.inference import Address, InferenceRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, JsonObject, Message, Role, ToolCall
from runner.kernel.ports import Effect, Locality, ToolOutput
from runner.perimeter import probe, toolbox
from runner.perimeter.classify import Classifier, EchoIndex
from runner.perimeter.client import Registration, SealedClient
from runner.perimeter.gate import Perimeter
from runner.perimeter.policy import Policy, ToolGrant
from runner.perimeter.redact import Redactor
from runner.perimeter.release import BackendTerms, Rules
from runner.perimeter.task import Task
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.note import device_key_name, vkey
from runner.testing import (
    BreakOff,
    FakeServerCheck,
    FakeTool,
    RawBytes,
    Redirect,
    ScriptedServer,
    ServerError,
    ServerReply,
    Stall,
    broken,
    header_words,
    oblige,
)

ROOT: Final = Path(__file__).resolve().parents[2]
BOOK: Final = "test/book"
GOAL: Final = "How long is a lease?"
SCHEMA: Final = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
OBJECT: Final[JsonObject] = {"type": "object", "properties": {}, "additionalProperties": False}


SHIPPED: Final = Classifier()
TRANSPORT: Final = HttpTransport(5.0)


# --- one run, with any part of it replaced ---------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a runtime keeps its files, and what an auditor sees of them."""

    folder: Path

    @property
    def book(self) -> Path:
        return self.folder / "book"

    @property
    def head_pin(self) -> Path:
        return self.folder / "state" / "head.pin"

    @property
    def salts(self) -> Path:
        return self.folder / "vault" / "salts"

    @property
    def key(self) -> Path:
        return self.folder / "keys" / "device.key"

    def log(self) -> Path:
        """The latest log."""
        return max(self.book.glob("*.jsonl"))

    def records(self, kind: str) -> list[dict[str, Any]]:
        """The bodies of the whole lines of one kind, over all logs."""
        logs = sorted(self.book.glob("*.jsonl"))
        lines = [line for log in logs for line in log.read_bytes().split(b"\n")[:-1]]
        return [entry["body"] for line in lines if (entry := json.loads(line))["kind"] == kind]

    def verdict(self) -> str:
        """What the verifier says to the auditor's pin."""
        public = FileSigner(self.key, book=self.book, entropy=SystemEntropy()).public_key
        pin = self.folder / "auditor.pin"
        pin.write_text(vkey(device_key_name(BOOK), public) + "\n", encoding="ascii")
        return str(akaion_verify.verify(self.book, pin)["verdict"])


@dataclass(frozen=True, kw_only=True)
class Box:
    """A runtime that is open: what a fault's action works with."""

    place: Place
    server: ScriptedServer
    perimeter: Perimeter
    client: SealedClient
    tool: FakeTool

    async def ask(self, goal: str = GOAL, *, schema: Any = None, **more: Any) -> str:
        """Ask the model one question in a task of its own."""
        with self.perimeter.task(goal) as task:
            return await self.infer(task, task.goal, schema=schema, **more)

    async def infer(self, task: Task, *blocks: Block, schema: Any = None, **more: Any) -> str:
        """Ask the model in `task`; return what it said."""
        on_text = more.pop("on_text", None)
        message = Message(role=Role.USER, blocks=blocks)
        request = InferenceRequest(messages=(message,), schema=schema, max_tokens=64, **more)
        return (await self.client.infer(request, task=task, on_text=on_text)).block.text


Parts = dict[str, Any]
"""What stands in for the sound parts of a runtime, by the names used in `opened`."""


@contextlib.contextmanager
def opened(place: Place, server: ScriptedServer, parts: Parts) -> Iterator[Box]:
    """Open a runtime whose remote model is `server`, with `parts` in the place of the sound ones."""
    made: Parts = dict(parts)
    entropy = made.get("entropy", SystemEntropy())
    clock: Any = made.get("clock", SystemClock())
    signer = wrapped(made, "signer", FileSigner(place.key, book=place.book, entropy=SystemEntropy()))
    store = wrapped(made, "store", FolderLogStore(place.book, place.head_pin))
    kept = FileSaltStore(place.salts, book=place.book)
    trace = None
    try:
        backend = wrapped(made, "backend", OpenAIBackend(name="remote", model="m", address=server.address))
        trace = Trace.open(
            store=store,
            signer=signer,
            salts=wrapped(made, "salts", kept),
            clock=clock,
            entropy=entropy,
            facts=facts(),
        )
        tool = made.get("tool", FakeTool(parameters=OBJECT, path_arguments=frozenset()))
        perimeter = Perimeter(
            rules=Rules(
                classifier=made.get("classifier", SHIPPED),
                fault_as_c3=made.get("fault_as_c3", False),
                locality_c2=Locality.L0,
                locality_c3=Locality.L2,
                redaction=made.get("redaction", False),
                echo=made.get("echo", EchoIndex(b"k" * 16)),
            ),
            policy=Policy(
                grants={
                    "fake": ToolGrant(
                        tool="fake", effect=Effect.READ, parameters=OBJECT, ask="approver" in made
                    )
                }
            ),
            trace=trace,
            clock=made.get("perimeter_clock", clock),
            registrations={"remote": registration(backend, made)},
            approver=made.get("approver"),
        )
        yield Box(place=place, server=server, perimeter=perimeter, client=perimeter.seal(backend), tool=tool)
    finally:
        if trace is not None:
            with contextlib.suppress(TraceError):
                trace.close()
        kept.close()


def wrapped(made: Parts, name: str, sound: Any) -> Any:
    """The sound part, or what a case makes of it."""
    return made[name](sound) if name in made else sound


def registration(backend: Any, made: Parts) -> Registration:
    local = made.get("local", False)
    address = backend.address
    return Registration(
        terms=BackendTerms(
            name="remote", local=local, address=address, ceiling=None if local else DataClass.C1
        ),
        transport=wrapped(made, "transport", TRANSPORT),
        locality=made.get("locality", LoopbackCheck()),
        server=made.get("server"),
        timeout_s=made.get("timeout_s", 120.0),
    )


def facts() -> HeaderFacts:
    return HeaderFacts(
        **header_words(book=BOOK, profile="attached", backends=("remote",), max_egress_class="C1")
    )


# --- what must come of a fault -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What must come of a fault.

    `error` is what is raised (None: nothing); `sent` how many requests the server got; `denied` the reason of
    the one denial on record; `result` the status of the one result of the one send; `task` how the task ended
    on record (None: the record could not be written); `verdict` what the verifier says; `mends` whether a
    sound run in the same place works afterwards, or refuses.
    """

    error: type[BaseException] | None = None
    sent: int | None = 0
    denied: str | None = None
    result: str | None = None
    task: str | None = "failed"
    verdict: str = "PASS"
    mends: bool = True


def denied(reason: str = "fault.release", **more: Any) -> Outcome:
    return Outcome(error=EgressDenied, denied=reason, **more)


def failed(error: type[BaseException], **more: Any) -> Outcome:
    return Outcome(error=error, **more)


def after(status: str, error: type[BaseException] | None = BackendError, **more: Any) -> Outcome:
    task = "done" if error is None else "failed"
    return Outcome(**({"error": error, "sent": 1, "result": status, "task": task} | more))


UNAVAILABLE: Final = Outcome(error=TraceUnavailable, task=None, verdict="INCOMPLETE")
"""The record cannot be written: nothing leaves, and the book is open until the next run accounts for it."""
REFUSED: Final = Outcome(error=TraceUnavailable, task=None, verdict="INCOMPLETE")
"""The runtime does not open."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault: `parts` that stand in for sound ones, what the server answers, and what is done."""

    id: str
    outcome: Outcome
    parts: Parts | Callable[[], Parts] = field(default_factory=dict)
    reply: ServerReply = "fine"
    act: Callable[[Box], Coroutine[Any, Any, object]] | None = None
    before: Callable[[Place], object] | None = None
    """Done to the files before the faulty run, which then follows a sound one."""


# --- the faults --------------------------------------------------------------------------------------------


class Raising:
    """The shipped classifier, failing where `where` says: at the goal, at the gate, or at the reply."""

    version = SHIPPED.version

    def __init__(self, where: str, fault: Any) -> None:
        self.where, self.fault = where, fault

    def classify(self, text: str, *, source: str | None = None) -> Any:
        here = "gate" if source is not None else "goal" if text == GOAL else "reply" if text == "fine" else ""
        if here != self.where:
            return SHIPPED.classify(text, source=source)
        if isinstance(self.fault, BaseException):
            raise self.fault
        return self.fault() if callable(self.fault) else self.fault


@dataclass(frozen=True, kw_only=True)
class Says:
    """A finding, or a hit: whatever a classifier may say."""

    data_class: Any = DataClass.C0
    spans: Any = ()
    start: Any = 0
    end: Any = 1
    kind: Any = "name"
    redactable: Any = True


def hit(**wrong: Any) -> Says:
    return Says(
        spans=(Says(data_class=DataClass.C2, **{"start": 0, "end": 1} | wrong),), data_class=DataClass.C1
    )


NONSENSE: Final[Mapping[str, Any]] = {
    "none": None,
    "a-text": "C0",
    "a-dict": {},
    "class-none": Says(data_class=None),
    "class-text": Says(data_class="C3"),
    "class-7": Says(data_class=7),
    "class-minus-1": Says(data_class=-1),
    "class-nan": Says(data_class=math.nan),
    "class-false": Says(data_class=False),
    "spans-none": Says(spans=None),
    "span-none": Says(spans=(None,)),
    "span-past-the-end": hit(end=10**9),
    "span-negative": hit(start=-5),
    "span-backwards": hit(start=2, end=1),
    "span-of-texts": hit(start="0", end="1"),
    "span-of-floats": hit(start=0.0, end=1.0),
    "span-class-out-of-range": Says(spans=(Says(data_class=9),)),
    "span-maybe-redactable": hit(redactable="no"),
}
EXCEPTIONS: Final[Mapping[str, BaseException]] = {
    "value-error": ValueError(GOAL),
    "memory": MemoryError(),
    "recursion": RecursionError(),
    "os-error": OSError(errno.EIO, GOAL),
    "stop-iteration": StopIteration(),
    "unicode": UnicodeDecodeError("utf-8", b"\xff", 0, 1, GOAL),
    "assertion": AssertionError(GOAL),
    "group": ExceptionGroup("several", [ValueError(GOAL)]),
}


def hangs_at_the_gate() -> Parts:
    """A judgement that takes longer than an exchange may. It is let go by `release_the_hung` in the end."""
    return {"classifier": Raising("gate", HUNG.wait), "timeout_s": 0.2}


HUNG: Final = threading.Event()


def classifier_faults() -> Iterator[Fault]:
    for name, error in EXCEPTIONS.items():
        yield Fault(
            id=f"classifier-raises-{name}-at-the-goal",
            parts={"classifier": Raising("goal", error)},
            outcome=failed(ClassifierFault),
        )
        yield Fault(
            id=f"classifier-raises-{name}-at-the-gate",
            parts={"classifier": Raising("gate", error)},
            outcome=denied(),
        )
    for name, said in NONSENSE.items():
        yield Fault(
            id=f"classifier-answers-{name}-at-the-gate",
            parts={"classifier": Raising("gate", said)},
            outcome=denied(),
        )
        yield Fault(
            id=f"classifier-answers-{name}-at-the-goal",
            parts={"classifier": Raising("goal", said)},
            outcome=failed(ClassifierFault),
        )
    yield Fault(
        id="classifier-interrupted-at-the-goal",
        parts={"classifier": Raising("goal", KeyboardInterrupt())},
        outcome=failed(KeyboardInterrupt, task="cancelled"),
    )
    yield Fault(
        id="classifier-exits-at-the-gate",
        parts={"classifier": Raising("gate", SystemExit(0))},
        outcome=failed(SystemExit, task="cancelled"),
    )
    yield Fault(id="classifier-hangs-at-the-gate", parts=hangs_at_the_gate, outcome=denied())
    yield Fault(
        id="classifier-raises-at-the-gate-and-a-fault-counts-as-c3",
        parts={"classifier": Raising("gate", ValueError()), "fault_as_c3": True},
        outcome=denied("c3-never-leaves"),
    )
    for name, fault in (("raises", ValueError()), ("answers-nonsense", Says(data_class=-1))):
        yield Fault(
            id=f"classifier-{name}-at-the-reply",
            parts={"classifier": Raising("reply", fault)},
            outcome=after("error", ClassifierFault),
        )
    yield Fault(
        id="echo-index-raises",
        parts={"echo": broken(EchoIndex(b"k" * 16), class_of=MemoryError())},
        outcome=failed(ClassifierFault),
    )
    yield Fault(
        id="echo-index-raises-at-the-gate",
        parts={"echo": broken(EchoIndex(b"k" * 16), after=1, class_of=MemoryError())},
        outcome=denied(),
    )
    yield Fault(
        id="echo-index-raises-at-the-reply",
        parts={"echo": EchoOfReplies(b"k" * 16)},
        outcome=after("error", ClassifierFault),
    )
    yield Fault(
        id="redactor-raises",
        parts={"redaction": True},
        act=redactor_raises,
        outcome=denied("class-above-ceiling"),
    )


class EchoOfReplies(EchoIndex):
    """Fails at the reply."""

    def class_of(self, text: str) -> DataClass:
        if text == "fine":
            raise MemoryError
        return super().class_of(text)


async def redactor_raises(box: Box) -> None:
    with box.perimeter.task("The fiscal code is RSSMRA80A01H501U.") as task:
        task.redactor = Redactor(lambda: "not a number")
        await box.infer(task, task.goal)


DISK: Final = {
    "full": errno.ENOSPC,
    "read-only": errno.EROFS,
    "input-output": errno.EIO,
    "quota": errno.EDQUOT,
}


def failing_file(after: int, method: str, error: BaseException) -> Callable[[Any], Any]:
    """A store whose log fails after so many batches."""
    return lambda store: broken(
        store, create=lambda name, head: broken(store.create(name, head), after=after, **{method: error})
    )


def record_faults() -> Iterator[Fault]:
    sent = replace(UNAVAILABLE, sent=1)
    written = replace(sent, result="ok", task="done")  # written, and nobody knows whether it is on the disk
    for name, number in DISK.items():
        error = OSError(number, "x")
        for method in ("append", "sync"):
            yield Fault(
                id=f"log-{method}-{name}-before-the-send",
                parts={"store": failing_file(0, method, error)},
                outcome=UNAVAILABLE,
            )
            yield Fault(
                id=f"log-{method}-{name}-after-the-send",
                parts={"store": failing_file(1, method, error)},
                outcome=sent if method == "append" else written,
            )
        yield Fault(
            id=f"head-pin-{name}",
            parts={"store": lambda store, e=error: broken(store, after=1, write_pin=e)},
            outcome=UNAVAILABLE,
        )
        yield Fault(
            id=f"salts-{name}",
            parts={"salts": lambda salts, e=error: broken(salts, after=1, sync=e)},
            outcome=UNAVAILABLE,
        )
        yield Fault(
            id=f"log-not-created-{name}",
            parts={"store": lambda store, e=error: broken(store, create=e)},
            outcome=REFUSED,
        )
    for name, strange in (("a-runtime-error", RuntimeError(GOAL)), ("out-of-memory", MemoryError())):
        yield Fault(
            id=f"log-raises-{name}",
            parts={"store": failing_file(0, "append", strange)},
            outcome=UNAVAILABLE,
        )
    yield Fault(
        id="salt-not-kept",
        parts={"salts": lambda salts: broken(salts, after=2, keep=KeyError())},
        outcome=UNAVAILABLE,
    )
    yield Fault(
        id="salts-not-synced-at-the-opening",
        parts={"salts": lambda salts: broken(salts, sync=OSError(errno.EROFS, "x"))},
        outcome=REFUSED,
    )
    yield Fault(
        id="lock-refused",
        parts={"store": lambda store: broken(store, acquire=OSError(errno.ENOLCK, "x"))},
        outcome=REFUSED,
    )
    yield Fault(
        id="book-not-listed",
        parts={"store": lambda store: broken(store, names=PermissionError(errno.EACCES, "x"))},
        outcome=REFUSED,
    )
    yield Fault(
        id="head-pin-not-read",
        parts={"store": lambda store: broken(store, read_pin=OSError(errno.EIO, "x"))},
        outcome=REFUSED,
    )
    yield Fault(
        id="signer-raises",
        parts={"signer": lambda signer: broken(signer, sign=RuntimeError())},
        outcome=REFUSED,
    )
    yield Fault(
        id="signer-signs-nonsense",
        parts={"signer": lambda signer: broken(signer, sign=bytes(64))},
        outcome=REFUSED,
    )
    yield Fault(id="log-cut-by-another", act=cut_log, outcome=replace(UNAVAILABLE, mends=False))
    yield Fault(id="log-cut-at-a-line-by-another", act=cut_line, outcome=replace(UNAVAILABLE, mends=False))
    yield Fault(id="log-lengthened-by-another", act=lengthen_log, outcome=UNAVAILABLE)
    yield Fault(id="log-removed-by-another", act=remove_log, outcome=replace(UNAVAILABLE, mends=False))
    yield Fault(id="book-moved-away", act=move_book, outcome=replace(UNAVAILABLE, mends=False))
    yield Fault(id="second-writer", act=second_writer, outcome=replace(REFUSED, verdict="PASS"))
    yield Fault(
        id="chain-broken-underneath",
        before=alter,
        outcome=replace(REFUSED, error=TraceError, verdict="FAIL", mends=False),
    )
    yield Fault(
        id="log-lost-synced-lines",
        before=lose_lines,
        outcome=replace(REFUSED, error=TraceError, verdict="INCOMPLETE", mends=False),
    )
    yield Fault(
        id="head-pin-missing",
        before=lambda place: place.head_pin.unlink(),
        outcome=replace(REFUSED, error=TraceError, verdict="PASS", mends=False),
    )
    yield Fault(
        id="head-pin-damaged",
        before=lambda place: place.head_pin.write_text("{}"),
        outcome=replace(REFUSED, error=TraceError, verdict="PASS", mends=False),
    )
    yield Fault(
        id="device-key-damaged",
        before=lambda place: place.key.write_text("no key"),
        outcome=replace(REFUSED, error=TraceError, mends=False, verdict=""),
    )
    yield Fault(
        id="salts-are-a-folder",
        before=lambda place: make_a_folder(place.salts),
        outcome=replace(REFUSED, verdict="PASS", mends=False),
    )


def make_a_folder(path: Path) -> None:
    """Put a folder where a file stood."""
    path.unlink()
    path.mkdir()


async def cut_log(box: Box) -> None:
    os.truncate(box.place.log(), box.place.log().stat().st_size - 10)
    await box.ask()


async def cut_line(box: Box) -> None:
    whole = box.place.log().read_bytes().splitlines(keepends=True)
    os.truncate(box.place.log(), len(whole[0]))
    await box.ask()


async def lengthen_log(box: Box) -> None:
    with box.place.log().open("ab") as log:
        log.write(b"{")
    await box.ask()


async def remove_log(box: Box) -> None:
    box.place.log().unlink()
    await box.ask()


async def move_book(box: Box) -> None:
    box.place.book.rename(box.place.folder / "elsewhere")
    box.place.book.mkdir()
    await box.ask()


async def second_writer(box: Box) -> None:
    with opened(box.place, box.server, {}):
        pass


def alter(place: Place) -> None:
    data = place.log().read_bytes()
    at = data.index(b'"egress"')
    place.log().write_bytes(data[:at] + data[at:].replace(b'"C1"', b'"C0"', 1))


def lose_lines(place: Place) -> None:
    lines = place.log().read_bytes().splitlines(keepends=True)
    place.log().write_bytes(b"".join(lines[:4]))


class Clock(SystemClock):
    """The system's clocks, put wrong by a function of what they say."""

    def __init__(self, *, wall: Callable[[int], Any] = int, steady: Callable[[float], Any] = float) -> None:
        self.wall, self.steady, self.looks = wall, steady, 0

    def now_us(self) -> Any:
        self.looks += 1
        return self.wall(super().now_us())

    def monotonic(self) -> Any:
        self.looks += 1
        return self.steady(super().monotonic())


def raising(error: BaseException) -> Callable[[Any], Any]:
    def fail(_: Any) -> Any:
        raise error

    return fail


def falling() -> Callable[[float], float]:
    """A clock that goes back an hour at each look."""
    looks = iter(range(10**6))
    return lambda now: now - 3600 * next(looks)


def clock_faults() -> Iterator[Fault]:
    hour = 3_600_000_000
    sound = after("ok", None)
    yield Fault(
        id="wall-clock-goes-back-at-each-look",
        parts=lambda: {"clock": Clock(wall=lambda now: int(falling_wall(now)))},
        outcome=sound,
    )
    yield Fault(
        id="wall-clock-a-day-back", parts={"clock": Clock(wall=lambda now: now - 24 * hour)}, outcome=sound
    )
    yield Fault(
        id="wall-clock-ten-years-on",
        parts={"clock": Clock(wall=lambda now: now + 87_660 * hour)},
        outcome=sound,
    )
    yield Fault(id="wall-clock-before-the-epoch", parts={"clock": Clock(wall=lambda _: -5)}, outcome=sound)
    yield Fault(id="monotonic-clock-stuck", parts={"clock": Clock(steady=lambda _: 7.0)}, outcome=sound)
    yield Fault(
        id="monotonic-clock-goes-back",
        parts=lambda: {"perimeter_clock": Clock(steady=falling())},
        outcome=denied("locality-stale"),
    )
    yield Fault(
        id="monotonic-clock-nan",
        parts={"perimeter_clock": Clock(steady=lambda _: math.nan)},
        outcome=denied("locality-stale"),
    )
    yield Fault(
        id="monotonic-clock-raises-in-the-perimeter",
        parts={"perimeter_clock": Clock(steady=raising(OSError(1, "x")))},
        outcome=denied(),
    )
    yield Fault(
        id="monotonic-clock-raises-in-the-record",
        parts={"clock": Clock(steady=raising(OSError(1, "x")))},
        outcome=REFUSED,
    )
    yield Fault(
        id="wall-clock-raises", parts={"clock": Clock(wall=raising(OSError(1, "x")))}, outcome=REFUSED
    )
    yield Fault(
        id="wall-clock-raises-later",
        parts=lambda: {"clock": broken(SystemClock(), after=3, now_us=OverflowError())},
        outcome=UNAVAILABLE,
    )
    yield Fault(id="wall-clock-gives-a-text", parts={"clock": Clock(wall=str)}, outcome=REFUSED)


def falling_wall(now: int) -> int:
    LOOKS.append(now)
    return now - 3_600_000_000 * len(LOOKS)


LOOKS: Final[list[int]] = []
AT_TASK, AT_SEND = 2, 5
"""Draws of random bytes before the first of a task, and before the first of a send."""


def random_bytes(fault: object, calls: int) -> Parts:
    """The system's randomness, failing after so many draws."""
    return {"entropy": broken(SystemEntropy(), after=calls, token=fault)}


def no_key(fault: object) -> Parts:
    """The system's randomness, failing where a key is to be made."""
    return {"entropy": broken(SystemEntropy(), fill=fault)}


def entropy_faults() -> Iterator[Fault]:
    wrong: Mapping[str, object] = {
        "raises": OSError(errno.EIO, "x"),
        "is-missing": NotImplementedError(),
        "gives-nothing": b"",
        "gives-too-few": b"x" * 15,
        "gives-none": lambda _: None,
        "is-stuck": lambda size: b"x" * size,
    }
    for name, fault in wrong.items():
        for moment, calls in (("at-the-opening", 0), ("at-the-task", AT_TASK), ("at-the-send", AT_SEND)):
            yield Fault(
                id=f"entropy-{name}-{moment}",
                parts=partial(random_bytes, fault, calls),
                outcome={
                    "at-the-opening": REFUSED,
                    "at-the-task": replace(UNAVAILABLE, verdict="PASS"),
                    "at-the-send": replace(UNAVAILABLE, verdict="PASS", task="failed"),
                }[moment],
            )
    wrong_keys: Mapping[str, object] = {
        "raises": OSError(errno.EIO, "x"),
        "is-missing": NotImplementedError(),
        "stays-empty": None,
    }
    for name, fault in wrong_keys.items():
        yield Fault(
            id=f"entropy-for-a-key-{name}",
            parts=partial(no_key, fault),
            outcome=REFUSED,
        )


def request_faults() -> Iterator[Fault]:
    yield Fault(id="unknown-block", act=unknown_block, outcome=failed(SealError))
    yield Fault(id="foreign-block", act=foreign_block, outcome=failed(SealError))
    yield Fault(id="altered-block", act=altered_block, outcome=failed(SealError))
    yield Fault(id="lone-surrogate", act=lambda box: box.ask("a \ud800 b"), outcome=failed(BackendError))
    yield Fault(id="nul", act=lambda box: box.ask("a \0 b"), outcome=after("ok", None))
    yield Fault(
        id="every-control-character",
        act=lambda box: box.ask("".join(map(chr, range(32)))),
        outcome=after("ok", None),
    )
    yield Fault(id="huge-text", act=lambda box: box.ask("lorem ipsum " * 30_000), outcome=after("ok", None))
    yield Fault(
        id="endless-number", act=lambda box: box.ask(temperature=math.inf), outcome=failed(BackendError)
    )
    yield Fault(
        id="not-a-number", act=lambda box: box.ask(temperature=math.nan), outcome=failed(BackendError)
    )
    yield Fault(
        id="schema-without-end", act=lambda box: box.ask(schema=nested(100_000)), outcome=failed(BackendError)
    )
    yield Fault(
        id="schema-not-json", act=lambda box: box.ask(schema={"enum": {1, 2}}), outcome=failed(BackendError)
    )
    yield Fault(
        id="schema-invalid",
        act=lambda box: box.ask(schema={"type": "no such type"}),
        reply="{}",
        outcome=after("ok", ReplyInvalid),
    )
    yield Fault(
        id="codec-raises",
        parts={"backend": lambda b: broken(b, encode=RuntimeError(GOAL))},
        outcome=failed(BackendError),
    )
    yield Fault(
        id="codec-returns-none",
        parts={"backend": lambda b: broken(b, encode=lambda *_: None)},
        act=lambda box: box.ask(),
        outcome=failed(BackendError),
    )
    yield Fault(
        id="codec-interrupted",
        parts={"backend": lambda b: broken(b, encode=KeyboardInterrupt())},
        outcome=failed(KeyboardInterrupt, task="cancelled"),
    )


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"items": value}
    return value


async def unknown_block(box: Box) -> None:
    with box.perimeter.task(GOAL) as task:
        await box.infer(task, Block(id="b999", kind=BlockKind.GOAL, text=GOAL, label=Label()))


async def foreign_block(box: Box) -> None:
    with box.perimeter.task("another") as other:
        pass
    with box.perimeter.task(GOAL) as task:
        await box.infer(task, other.goal)


async def altered_block(box: Box) -> None:
    with box.perimeter.task(GOAL) as task:
        await box.infer(task, replace(task.goal, text="another"))


class Check:
    """A locality check that does what it is told."""

    def __init__(self, fault: Any) -> None:
        self.fault = fault

    async def grade(self, _address: Address) -> Any:
        if self.fault == "hangs":
            await anyio.sleep_forever()
        if isinstance(self.fault, BaseException):
            raise self.fault
        return self.fault


def locality_faults() -> Iterator[Fault]:
    answers: Mapping[str, Any] = {
        "raises": OSError(1, GOAL),
        "raises-key-error": KeyError(),
        "hangs": "hangs",
        "says-remote": Locality.REMOTE,
        "says-none": None,
        "says-a-text": "L2",
        "says-a-number": 3,
    }
    for name, answer in answers.items():
        yield Fault(
            id=f"locality-check-{name}",
            parts={"local": True, "locality": Check(answer)},
            outcome=denied("not-local"),
        )
    checks: Mapping[str, Any] = {
        "has-no-questions": broken(FakeServerCheck(locality=Locality.L1), questions=RuntimeError()),
        "raises": broken(FakeServerCheck(locality=Locality.L1), grade=ValueError()),
        "says-a-text": FakeServerCheck(locality="L2"),  # type: ignore[arg-type]  # nonsense
    }
    for name, check in checks.items():
        yield Fault(
            id=f"server-check-{name}", parts={"local": True, "server": check}, outcome=denied("not-local")
        )


class Wire:
    """A transport that fails where `where` says; otherwise the real one."""

    def __init__(self, real: Any, where: str, fault: BaseException) -> None:
        self.real, self.where, self.fault = real, where, fault

    @contextlib.asynccontextmanager
    async def open(self, wire: Any, *, credential: Any) -> Any:
        if self.where == "at-once":
            raise self.fault
        async with self.real.open(wire, credential=credential) as reply:
            if self.where == "before-the-reply":
                raise self.fault
            yield replace(reply, chunks=self.chunks(reply.chunks))
        if self.where == "after-the-reply":
            raise self.fault

    async def chunks(self, chunks: Any) -> Any:
        async for chunk in chunks:
            if self.where == "in-the-reply":
                raise self.fault
            yield chunk


def transport_faults() -> Iterator[Fault]:
    errors: Mapping[str, tuple[BaseException, str, type[BaseException]]] = {
        "a-transport-error": (TransportError("x"), "error", TransportError),
        "a-runtime-error": (RuntimeError(GOAL), "error", BackendError),
        "a-key-error": (KeyError(GOAL), "error", BackendError),
        "a-timeout": (TimeoutError(), "timeout", TransportError),
        "out-of-memory": (MemoryError(), "error", BackendError),
        "a-group": (ExceptionGroup("x", [OSError(1, GOAL)]), "error", BackendError),
        "an-exit": (SystemExit(1), "cancelled", SystemExit),
        "a-group-with-an-exit": (
            BaseExceptionGroup("x", [KeyboardInterrupt()]),
            "cancelled",
            BaseExceptionGroup,
        ),
    }
    for where in ("at-once", "before-the-reply", "in-the-reply", "after-the-reply"):
        for name, (error, status, raised) in errors.items():
            yield Fault(
                id=f"transport-raises-{name}-{where}",
                parts={"transport": lambda real, w=where, e=error: Wire(real, w, e)},
                outcome=after(
                    status,
                    raised,
                    task="failed" if issubclass(raised, Exception) else "cancelled",
                    **({"sent": 0} if where == "at-once" else {}),
                ),
            )


HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def raw(body: bytes, head: bytes = HEAD) -> RawBytes:
    return RawBytes(data=head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def server_faults() -> Iterator[Fault]:
    broke: Mapping[str, ServerReply] = {
        "closes-without-a-word": RawBytes(data=b""),
        "breaks-off-in-the-status": RawBytes(data=b"HTTP/1.1 20"),
        "breaks-off-in-the-headers": RawBytes(data=HEAD + b"Content-Le"),
        "breaks-off-before-the-body": BreakOff(text="fine", after=0),
        "breaks-off-in-the-body": BreakOff(text="fine", after=20),
        "sends-garbage": RawBytes(data=b"\x00\xff" * 500),
        "sends-bad-chunks": RawBytes(data=HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nno\r\n"),
        "sends-a-gzip-bomb": raw(b"\x1f\x8b" + bytes(1000), HEAD + b"Content-Encoding: gzip\r\n"),
        "sends-endless-headers": RawBytes(data=b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000, endless=True),
        "has-no-protocol": RawBytes(data=b"220 smtp ready\r\n"),
    }
    for name, reply in broke.items():
        yield Fault(id=f"server-{name}", reply=reply, outcome=after("error", TransportError))
    nonsense: Mapping[str, ServerReply] = {
        "sends-html": raw(b"<html></html>", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"),
        "sends-nothing": raw(b""),
        "sends-no-object": raw(b"[]"),
        "sends-deep-json": raw(b"[" * 100_000),
        "sends-a-number-without-end": raw(b'{"choices":[{"message":{"content":' + b"9" * 6000 + b"}}]}"),
        "sends-two-choices": raw(b'{"choices":[{},{}]}'),
        "sends-lone-surrogates-as-bytes": raw(b'{"choices":[{"message":{"content":"\xed\xa0\x80"}}]}'),
        "says-400": ServerError(status=400, message=GOAL),
        "says-401": ServerError(status=401, message=GOAL),
        "says-403": ServerError(status=403),
        "says-429": ServerError(status=429),
        "says-500": ServerError(status=500, message=GOAL),
        "says-503": ServerError(status=503),
        "says-204": RawBytes(data=b"HTTP/1.1 204 No\r\n\r\n"),
        "never-ends": RawBytes(data=HEAD + b"\r\n" + b" " * 65_536, endless=True),
    }
    for name, reply in nonsense.items():
        error = RequestRefused if name.startswith("says-") else BackendError
        yield Fault(id=f"server-{name}", reply=reply, outcome=after("error", error))
    for status in (300, 301, 302, 303, 307, 308):
        yield Fault(
            id=f"server-redirects-{status}",
            reply=Redirect(location="http://127.0.0.1:9/", status=status),
            outcome=after("error", Redirected),
        )
    for name, stall in (("says-nothing", Stall()), ("stops-after-the-head", Stall(after_head=True))):
        yield Fault(
            id=f"server-{name}",
            reply=stall,
            parts={"timeout_s": 0.3},
            outcome=after("timeout", TransportError),
        )
    yield Fault(
        id="server-breaks-off-a-stream",
        reply=BreakOff(text="fine and long", after=90),
        act=lambda box: box.ask(stream=True),
        outcome=after("error", TransportError),
    )
    yield Fault(
        id="server-ends-a-stream-early",
        reply=raw(b'data: {"choices":[{"delta":{"content":"fi"}}]}\n\n'),
        act=lambda box: box.ask(stream=True),
        outcome=after("error", BackendError),
    )
    yield Fault(
        id="reply-not-of-its-schema",
        reply='{"n": "one"}',
        act=lambda box: box.ask(schema=SCHEMA),
        outcome=after("ok", ReplyInvalid),
    )
    yield Fault(
        id="reply-with-a-member-twice",
        reply='{"n": 1, "n": 2}',
        act=lambda box: box.ask(schema=SCHEMA),
        outcome=after("ok", ReplyInvalid),
    )
    yield Fault(
        id="reply-with-a-number-without-end",
        reply='{"n": ' + "9" * 1500 + "}",
        act=lambda box: box.ask(schema=SCHEMA),
        outcome=after("ok", ReplyInvalid),
    )
    yield Fault(
        id="reply-nested-without-end",
        reply="[" * 1500,
        act=lambda box: box.ask(schema=SCHEMA),
        outcome=after("ok", ReplyInvalid),
    )
    yield Fault(
        id="screen-raises",
        act=lambda box: box.ask(stream=True, on_text=raising(ValueError(GOAL))),
        outcome=after("error", BackendError),
    )
    for name, fault in (("raises", ValueError(GOAL)), ("is-none", lambda *_: None)):
        yield Fault(
            id=f"decoder-{name}",
            parts={"backend": lambda b, f=fault: Codec(b, f)},
            outcome=after("error", BackendError),
        )
    yield Fault(
        id="server-not-there",
        parts={"backend": lambda b: replace(b, address=NOBODY)},
        outcome=after("error", TransportError, sent=0),
    )
    yield Fault(
        id="tls-with-a-plain-server",
        parts=tls_with_a_plain_server,
        outcome=after("error", TransportError, sent=0),
    )


def tls_with_a_plain_server() -> Parts:
    """A server that answers the greeting of TLS in plain HTTP."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def answer() -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    threading.Thread(target=answer, daemon=True).start()
    address = Address(scheme="https", host="127.0.0.1", port=port)
    return {"backend": lambda b: replace(b, address=address)}


NOBODY: Final = Address(scheme="http", host="127.0.0.1", port=1)


class Codec:
    """The real codec with a decoder that fails."""

    def __init__(self, real: Any, fault: Any) -> None:
        self.real, self.fault = real, fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def decoder(self, request: Any, status: int) -> Any:
        return broken(self.real.decoder(request, status), finish=self.fault)


FAULTS: Final = [
    *classifier_faults(),
    *record_faults(),
    *clock_faults(),
    *entropy_faults(),
    *request_faults(),
    *locality_faults(),
    *transport_faults(),
    *server_faults(),
]


def raised_by(fault: Fault, place: Place, server: ScriptedServer) -> BaseException | None:
    """Run the fault; return what came out."""
    parts = fault.parts() if callable(fault.parts) else fault.parts
    try:
        with opened(place, server, parts) as box:
            act = fault.act or Box.ask
            anyio.run(act, box)
    except BaseException as error:  # noqa: BLE001 - interrupts and exits are part of the table
        return error
    finally:
        HUNG.set()
    return None


def sound(place: Place) -> str:
    """Ask once in the same place, with nothing broken; return the answer."""
    with ScriptedServer(replies=["fine"]) as server, opened(place, server, {}) as box:
        return anyio.run(box.ask)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(probe, "ADDRESS_TIMEOUT_S", 0.1)
    return Place(folder=tmp_path)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_i7_a_fault_closes_and_is_on_record(fault: Fault, place: Place) -> None:
    expected = fault.outcome
    if fault.before is not None:
        assert sound(place) == "fine"
        fault.before(place)
    known = {kind: len(place.records(kind)) for kind in ("egress", "egress_result", "task_end")}
    with ScriptedServer(replies=[fault.reply]) as server:
        error = raised_by(fault, place, server)
    assert type(error) is (expected.error or type(None)), error
    assert GOAL not in str(error), "I12: no content in a message"
    if expected.sent is not None:
        assert len(server.received) == expected.sent
    egress, results, ends = (place.records(kind)[known[kind] :] for kind in known)
    decisions = [(record["decision"], record.get("reason")) for record in egress]
    wanted = [("denied", expected.denied)] if expected.denied else []
    assert [each for each in decisions if each[0] == "denied"] == wanted, "I4: one denial, on record"
    assert [record["status"] for record in results] == ([expected.result] if expected.result else [])
    if expected.result:
        assert decisions == [("allowed", None)]
        assert results[0]["send_id"] == egress[0]["send_id"]
    assert [end["outcome"] for end in ends[-1:]] == ([expected.task] if expected.task else [])
    if expected.verdict:
        assert place.verdict() == expected.verdict
    if expected.mends:
        assert sound(place) == "fine"
        assert place.verdict() == "PASS", "the next run accounts for it"
    else:
        with pytest.raises(TraceError):
            sound(place)


# --- tools and approvers ------------------------------------------------------------------------------------


class Person:
    """An approver who does what it is told."""

    name = "person"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def approve(self, _request: object) -> Any:
        if self.answer == "hangs":
            await anyio.sleep_forever()
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


NOT_A_YES: Final[Mapping[str, Any]] = {
    "raises": RuntimeError(GOAL),
    "raises-timeout": TimeoutError(),
    "raises-stop": StopAsyncIteration(),
    "hangs": "hangs",
    "says-1": 1,
    "says-yes": "yes",
    "says-none": None,
    "says-a-list": [True],
    "says-an-object": object(),
}


@pytest.mark.parametrize("answer", NOT_A_YES.values(), ids=NOT_A_YES)
def test_i1_whatever_an_approver_says_but_true_is_no(
    answer: Any, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolbox, "APPROVAL_LASTS_US", 100_000)
    with ScriptedServer(replies=[]) as server, opened(place, server, {"approver": Person(answer)}) as box:
        reply = anyio.run(call, box)
        assert (reply.status, box.tool.calls) == ("denied", [])
    assert [each["granted"] for each in place.records("approval")] == [False]
    assert place.records("tool_call") == []
    assert place.verdict() == "PASS"


def test_i1_true_is_a_yes(place: Place) -> None:
    with ScriptedServer(replies=[]) as server, opened(place, server, {"approver": Person(True)}) as box:
        assert anyio.run(call, box).status == "ok"
    assert place.verdict() == "PASS"


async def call(box: Box) -> Any:
    tools = box.perimeter.seal_tools([box.tool])
    with box.perimeter.task(GOAL) as task:
        return await tools.call(ToolCall(tool="fake", arguments={}, origin=task.goal), task=task)


TOOL_FAULTS: Final[Mapping[str, Any]] = {
    "raises": RuntimeError(GOAL),
    "out-of-memory": MemoryError(),
    "stops": StopIteration(),
    "returns-none": None,
    "returns-a-text": "done",
    "returns-bytes": ToolOutput(text=b"done"),  # type: ignore[arg-type]  # nonsense
}


@pytest.mark.parametrize("fault", TOOL_FAULTS.values(), ids=TOOL_FAULTS)
def test_i4_a_tool_that_fails_has_its_result(fault: Any, place: Place) -> None:
    tool = broken(FakeTool(parameters=OBJECT, path_arguments=frozenset()), run=fault)
    with ScriptedServer(replies=[]) as server, opened(place, server, {"tool": tool}) as box:
        reply = anyio.run(call, box)
    assert reply.status == "error"
    assert GOAL not in reply.block.text
    assert [each["status"] for each in place.records("tool_result")] == ["error"]
    assert place.verdict() == "PASS"


def test_i9_a_tool_does_not_run_when_its_call_cannot_be_recorded(place: Place) -> None:
    store = failing_file(0, "append", OSError(errno.ENOSPC, "x"))
    with ScriptedServer(replies=[]) as server, opened(place, server, {"store": store}) as box:
        with pytest.raises(TraceUnavailable):
            anyio.run(call, box)
        assert box.tool.calls == []
    assert sound(place) == "fine"


# --- profiles, registers, credentials ------------------------------------------------------------------

PROFILE: Final = """\
profile: attached
policy: {{grants: [{{tool: read_file, paths: [{{path: "{practice}"}}]}}]}}
perimeter: {{max_egress_class: C1, registers: {{clients: "{clients}"}}}}
inference:
  prefer: remote
  local: null
  remote: {{backend: openai, endpoint: "{url}", model: m, credential: "file:{token}"}}
"""


@dataclass(frozen=True, kw_only=True)
class Practice:
    """The files that a profile names, and itself."""

    folder: Path
    url: str

    @property
    def profile(self) -> Path:
        return self.folder / "profile.yaml"

    @property
    def clients(self) -> Path:
        return self.folder / "clients.yaml"

    @property
    def token(self) -> Path:
        return self.folder / "token"

    def write(self) -> "Practice":
        (self.folder / "practice").mkdir(exist_ok=True)
        self.clients.write_text("- Rossi Mario\n", encoding="utf-8")
        self.token.write_text("secret-token\n", encoding="utf-8")
        self.token.chmod(0o600)
        text = PROFILE.format(
            practice=self.folder / "practice", clients=self.clients, token=self.token, url=self.url
        )
        self.profile.write_text(text, encoding="utf-8")
        return self

    def ask(self, between: Callable[["Practice"], object] = repr) -> str:
        """Open the profile and ask once, `between` the two doing something to the files."""
        with open_profile(self.profile) as runtime:
            between(self)
            return str(anyio.run(ask_with, runtime.client))


async def ask_with(client: SealedClient) -> str:
    with client.task(GOAL) as task:
        message = Message(role=Role.USER, blocks=(task.goal,))
        return (await client.infer(InferenceRequest(messages=(message,)), task=task)).block.text


def edit(old: str, new: str) -> Callable[[Practice], object]:
    return lambda practice: practice.profile.write_text(practice.profile.read_text().replace(old, new))


FILE_FAULTS: Final[Mapping[str, Callable[[Practice], object]]] = {
    "profile-missing": lambda practice: practice.profile.unlink(),
    "profile-empty": lambda practice: practice.profile.write_text(""),
    "profile-no-yaml": lambda practice: practice.profile.write_text("a: [\n"),
    "profile-no-text": lambda practice: practice.profile.write_bytes(b"\xff\x00\xfe"),
    "profile-a-folder": lambda practice: make_a_folder(practice.profile),
    "profile-too-big": lambda practice: practice.profile.write_text("# " + "x" * (9 << 20)),
    "policy-missing": edit("policy:", "policies:"),
    "policy-a-text": edit("{grants: [", "allow-everything #"),
    "policy-of-an-unknown-tool": edit("read_file", "rm"),
    "policy-class-unknown": edit("max_egress_class: C1", "max_egress_class: C9"),
    "policy-c3-may-leave": edit("max_egress_class: C1", "max_egress_class: C3"),
    "granted-folder-missing": lambda practice: (practice.folder / "practice").rmdir(),
    "register-missing": lambda practice: practice.clients.unlink(),
    "register-no-text": lambda practice: practice.clients.write_bytes(b"\xff\xfe\x00"),
    "register-no-list": lambda practice: practice.clients.write_text("name: Rossi\n"),
    "register-too-big": lambda practice: practice.clients.write_text("- " + "x" * (9 << 20)),
    "register-a-folder": lambda practice: make_a_folder(practice.clients),
    "credential-missing": lambda practice: practice.token.unlink(),
    "credential-empty": lambda practice: practice.token.write_text(""),
    "credential-open-to-others": lambda practice: practice.token.chmod(0o644),
}
UNHARMED: Final[Mapping[str, Callable[[Practice], object]]] = {
    "profile-rewritten": edit("C1", "C0"),
    "profile-removed": lambda practice: practice.profile.unlink(),
    "register-removed": lambda practice: practice.clients.unlink(),
    "register-emptied": lambda practice: practice.clients.write_text(""),
    "credential-removed": lambda practice: practice.token.unlink(),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("fault", FILE_FAULTS.values(), ids=FILE_FAULTS)
def test_i7_a_profile_that_cannot_be_used_opens_nothing(
    fault: Callable[[Practice], object], home: Path
) -> None:
    with ScriptedServer(replies=["fine"]) as server:
        practice = Practice(folder=home, url=server.url).write()
        fault(practice)
        with pytest.raises(ConfigError) as caught:
            practice.ask()
        assert (server.received, "Fix: " in str(caught.value)) == ([], True)
        if not practice.profile.is_dir() and not practice.clients.is_dir():
            assert practice.write().ask() == "fine", "mended, it works"


@pytest.mark.parametrize("change", UNHARMED.values(), ids=UNHARMED)
def test_what_becomes_of_the_files_meanwhile_changes_nothing_of_a_run(
    change: Callable[[Practice], object], home: Path
) -> None:
    """A run is judged by what was read when it was opened; the record names that by its digest."""
    with ScriptedServer(replies=["fine"] * 2) as server:
        practice = Practice(folder=home, url=server.url).write()
        assert practice.ask(change) == "fine"
        assert b"secret-token" in server.received[0], "I5: with the credential it was opened with"


# --- processes and cancellation -----------------------------------------------------------------------------

CHILD: Final = """
import os, sys
import anyio
from runner import RunnerError, TraceUnavailable, open_profile

remote = {"backend": "openai", "endpoint": sys.argv[1], "model": "m"}
inference = {"prefer": "remote", "local": None, "remote": remote}
with open_profile("attached", policy={"grants": []}, inference=inference) as runtime:
    SETUP
    try:
        print("stop", runtime.loop().run("How long is a lease?").stop)
    except TraceUnavailable as error:
        print("unavailable", error)
    CLEANUP
"""
FORK: Final = CHILD.replace("SETUP", "child = os.fork()").replace(
    "CLEANUP", "sys.stdout.flush()\n    os._exit(0) if child == 0 else os.waitpid(child, 0)"
)
SMALL_FILES: Final = CHILD.replace(
    "SETUP",
    "import resource; sizes = [each.stat().st_size for each in runtime.trace_path.glob('*.jsonl')];"
    " resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) + 700, max(sizes) + 700))",
).replace("CLEANUP", "")


def run_child(program: str, url: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "AKAION_HOME": str(home / "home")}
    command = [sys.executable, "-W", "ignore", "-c", program, url]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_i4_a_forked_child_sends_nothing_and_its_parent_goes_on(home: Path) -> None:
    with ScriptedServer(replies=[oblige] * 4) as server:
        done = run_child(FORK, server.url, home)
        assert sorted(line.split()[0] for line in done.stdout.splitlines()) == ["stop", "unavailable"], done
        assert len(server.received) == len(sent_by(home)), "every byte that left is on the parent's record"


def test_i9_a_disk_that_really_takes_no_more_stops_everything(home: Path) -> None:
    """EFBIG by the process's own limit: what a full disk is, without one."""
    with ScriptedServer(replies=[oblige] * 4) as server:
        done = run_child(SMALL_FILES, server.url, home)
        assert "unavailable the record cannot be written: EFBIG" in done.stdout, done
        assert server.received == []
        mended = run_child(CHILD.replace("SETUP", "").replace("CLEANUP", ""), server.url, home)
        assert mended.stdout.startswith("stop"), mended


def sent_by(home: Path) -> list[dict[str, Any]]:
    logs = (home / "home" / "trace").glob("*.jsonl")
    lines = [json.loads(line) for log in logs for line in log.read_bytes().splitlines()]
    return [line["body"] for line in lines if line["kind"] == "egress"]


def test_i4_a_task_that_is_cancelled_at_any_await_leaves_an_honest_record(place: Place) -> None:
    async def cancelled_at(box: Box, at: int) -> bool:
        with anyio.CancelScope() as scope:
            cut = Cancelled(box.ask(), scope.cancel, at)
            await cut
        return cut.came

    moments = 0
    with ScriptedServer(replies=["fine"] * 200) as server, opened(place, server, {}) as box:
        while anyio.run(cancelled_at, box, moments):
            moments += 1
    assert moments > 5
    sends = [record for record in place.records("egress") if record["decision"] == "allowed"]
    results = place.records("egress_result")
    assert [each["send_id"] for each in results] == [each["send_id"] for each in sends]
    assert {each["status"] for each in results} == {"cancelled", "ok"}
    assert len(server.received) <= len(sends)
    assert len(place.records("task_end")) == len(place.records("task_start")) == moments + 1
    assert place.verdict() == "PASS"
    assert sound(place) == "fine"


def test_there_are_many_faults_and_each_has_a_name() -> None:
    names = [*(fault.id for fault in FAULTS), *NOT_A_YES, *TOOL_FAULTS, *FILE_FAULTS, *UNHARMED]
    assert len(FAULTS) >= 200
    assert len({fault.id for fault in FAULTS}) == len(FAULTS)
    assert len(names) >= 240
