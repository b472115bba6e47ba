# SPDX-License-Identifier: Apache-2.0
"""I4, I9: many threads write one log and wait for its seals; a fork writes nothing, whatever happens then."""

import contextlib
import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from runner.capability.transport.logstore import FolderLog, FolderLogStore
from runner.capability.transport.salts import FileSaltStore
from runner.kernel.errors import TraceError, TraceUnavailable
from runner.kernel.labels import DataClass
from runner.perimeter.trace import chain, log, turn
from runner.perimeter.trace import records as r
from runner.perimeter.trace.log import Trace
from runner.testing import FixedEntropy, FrozenClock, MemoryLogFile, MemorySigner

from .conftest import FACTS, Studio

STEP = r.StepVerdict(step=1, verdict="pass", by="rule")
THREADS, EACH = 64, 3


def sealed_through(log: Path) -> int:
    """The `seq` of the last seal on the disk: everything before it is sealed."""
    lines = log.read_bytes().split(b"\n")[:-1]
    return next(seq for seq in range(len(lines) - 1, -1, -1) if json.loads(lines[seq])["kind"] == "seal")


def test_i9_of_64_threads_each_barrier_returns_only_when_its_record_is_sealed_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, wrong, syncs, sync = tmp_path / "book", list[int](), itertools.count(), FolderLog.sync
    monkeypatch.setattr(FolderLog, "sync", lambda log: (next(syncs), sync(log)))
    with Trace.open(
        store=FolderLogStore(book, tmp_path / "heads" / "studio"),
        signer=MemorySigner(),
        salts=FileSaltStore(tmp_path / "salts", book=book),
        clock=FrozenClock(),
        entropy=FixedEntropy(),
        facts=FACTS,
    ) as trace:
        (log,) = book.glob("*.jsonl")
        task, together = trace.mint_id(), threading.Barrier(THREADS)
        trace.append(r.TaskStart(goal_commit="0" * 64, data_class=DataClass.C1), task=task)

        def work() -> None:
            for _ in range(EACH):
                together.wait(120)
                seq = trace.append(STEP, task=task)
                trace.barrier(seq)
                if sealed_through(log) < seq:
                    wrong.append(seq)

        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    kinds = [json.loads(line)["kind"] for line in log.read_bytes().split(b"\n")[:-1]]
    assert (wrong, kinds.count("step_verdict")) == ([], THREADS * EACH)
    assert kinds.count("seal") - 1 == next(syncs) <= THREADS * EACH + 1  # every sync is of one seal


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_i4_a_fork_in_the_middle_of_a_sync_is_refused_and_never_waits(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the child, the locks that another thread of the parent held are held for ever."""
    trace = studio.open()
    task = trace.mint_id()
    trace.append(r.TaskStart(goal_commit="0" * 64, data_class=DataClass.C1), task=task)
    begun, go_on = threading.Event(), threading.Event()

    def slow_sync(log: MemoryLogFile) -> None:
        begun.set()
        assert go_on.wait(120)
        log.durable = log.data

    monkeypatch.setattr(MemoryLogFile, "sync", slow_sync)
    syncing = threading.Thread(target=trace.barrier)
    syncing.start()
    assert begun.wait(120)
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # a child that waits is ended, and its status says so
        os._exit(sum(_refused(trace, act) for act in range(4)))
    status = os.waitpid(child, 0)[1]
    go_on.set()
    syncing.join(10)
    assert os.waitstatus_to_exitcode(status) == 4
    trace.append(STEP, task=task)
    trace.close()
    kinds = [json.loads(line)["kind"] for line in studio.log.durable.splitlines()]
    assert kinds[-4:] == ["step_verdict", "task_end", "close", "seal"]


def _refused(trace: Trace, act: int) -> bool:
    try:
        match act:
            case 0:
                trace.append(STEP, task="0" * 32)
            case 1:
                trace.barrier()
            case 2:
                trace.commit(b"")
            case _:
                trace.close()
    except TraceError:
        return True
    return False


def interrupted_at(place: int, trace: Trace) -> BaseException | None:
    """Wait for a seal, and press Ctrl-C at the `place`-th place where Python looks; return it, kept whole.

    What keeps the error keeps the frames it went through, and nothing in them is cleared away meanwhile.
    """
    places = itertools.count()

    def watch(frame: FrameType, event: str, _: object) -> None:
        here = frame.f_code.co_filename in {each.__file__ for each in (log, turn, threading, contextlib)}
        if here and event in {"call", "c_return"} and next(places) == place:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        trace.barrier()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.setprofile(None)
    return None


def test_i7_an_interrupt_at_any_place_of_a_write_keeps_nobody_else_waiting() -> None:
    """The thread that was interrupted does nothing more to the log, as one that waits for the others."""
    for place in itertools.count():
        trace = Studio().open()
        trace.append(r.TaskStart(goal_commit="0" * 64, data_class=DataClass.C1), task=trace.mint_id())
        caught = interrupted_at(place, trace)
        if caught is None:
            break
        other = threading.Thread(target=finishes, args=(trace,), daemon=True)
        other.start()
        other.join(30)
        assert not other.is_alive(), f"place {place}"
        del caught
    assert place > 20, "it was pressed"


CALLS: dict[str, Callable[[Trace], object]] = {
    "append": lambda trace: trace.append(
        r.TaskStart(goal_commit="0" * 64, data_class=DataClass.C1), task=trace.mint_id()
    ),
    "barrier": Trace.barrier,
    "commit": lambda trace: trace.commit(b"goal"),
    "close": Trace.close,
}


def handled_at(place: int, trace: Trace, outer: str, inner: str, *, raised: bool) -> TraceError | bool | None:
    """Call `outer`, and `inner` at the `place`-th place where Python looks for signals, as a handler would.

    Return how that was refused, which a handler lets through if it is `raised`; True if it was not refused,
    and None if there is no such place.
    """
    places, answers = itertools.count(), list[TraceError | bool]()

    def watch(frame: FrameType, event: str, _: object) -> None:
        here = frame.f_code.co_filename in {each.__file__ for each in (log, turn, chain)}
        if here and event in {"call", "c_return"} and next(places) == place:
            try:
                CALLS[inner](trace)
                answers.append(True)
            except TraceError as error:
                answers.append(error)
                if raised:
                    raise

    sys.setprofile(watch)
    try:
        with contextlib.suppress(TraceError):  # the handler's, or of a log that it has closed before
            CALLS[outer](trace)
    finally:
        sys.setprofile(None)
    return answers[0] if answers else None


@pytest.mark.parametrize("raised", [False, True], ids=["goes on", "is ended by it"])
@pytest.mark.parametrize("inner", CALLS)
@pytest.mark.parametrize("outer", CALLS)
def test_i4_a_signal_handler_that_calls_the_log_at_any_place_of_a_call_leaves_the_book_whole(
    outer: str, inner: str, *, raised: bool
) -> None:
    """It is refused where the log is halfway through a change, whatever becomes of the call around it."""
    refused = 0
    for place in itertools.count():
        studio = Studio()
        trace = studio.open()
        CALLS["append"](trace)
        answer = handled_at(place, trace, outer, inner, raised=raised)
        if answer is None:
            break
        refused += isinstance(answer, TraceUnavailable) and "signal handler" in str(answer)
        trace.close()
        studio.store.release()  # as the end of the process does, where close was cut off
        studio.open().close()  # which checks every line of the one before
    assert refused > 3


def finishes(trace: Trace) -> None:
    """Write and close, as far as the log lets one."""
    with contextlib.suppress(TraceError):
        trace.append(r.TaskStart(goal_commit="0" * 64, data_class=DataClass.C1), task=trace.mint_id())
        trace.barrier()
    trace.close()
