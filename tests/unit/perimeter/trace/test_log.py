# SPDX-License-Identifier: Apache-2.0
"""I9: what `barrier` returned from is sealed and durable, or the log is broken for good. Also I4, I7, I12."""

import errno
import itertools
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from runner.kernel.errors import TraceError, TraceUnavailable
from runner.kernel.labels import DataClass
from runner.kernel.ports import Locality
from runner.perimeter.trace import log as log_module
from runner.perimeter.trace import records as r
from runner.perimeter.trace.commit import commitment
from runner.perimeter.trace.log import TooLate, Trace
from runner.testing import FixedEntropy, MemoryLogFile, MemorySigner

if TYPE_CHECKING:
    from .conftest import Studio

STEP = r.StepVerdict(step=1, verdict="pass", by="rule")
RECOVERY = r.Recovery(log_no=0, size=1, root="0" * 64, torn_bytes=0, torn_sha256="0" * 64, unsealed_kept=0)


def start(trace: Trace) -> str:
    task = trace.mint_id()
    trace.append(r.TaskStart(goal_commit=trace.commit(b"goal"), data_class=DataClass.C1), task=task)
    return task


def records_of(log: MemoryLogFile) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.durable.splitlines()]


def kinds_of(log: MemoryLogFile) -> list[str]:
    return [record["kind"] for record in records_of(log)]


# --- barrier ---------------------------------------------------------------------------------------


def test_i9_a_record_is_durable_and_sealed_after_the_barrier_and_not_before(studio: "Studio") -> None:
    trace = studio.open()
    task = start(trace)
    assert kinds_of(studio.log) == ["header", "seal"]
    trace.barrier(trace.append(STEP, task=task))
    assert kinds_of(studio.log) == ["header", "seal", "task_start", "step_verdict", "seal"]


def test_i9_a_barrier_with_nothing_new_adds_no_seal(studio: "Studio") -> None:
    trace = studio.open()
    studio.store.pin, pin = b"not written again", studio.store.pin
    trace.barrier()
    assert studio.store.pin == b"not written again"
    studio.store.pin = pin
    trace.barrier(trace.append(STEP, task=start(trace)))
    before = studio.log.durable
    trace.barrier()
    trace.barrier(2)
    assert studio.log.durable == before


def test_i9_a_barrier_for_a_record_that_is_not_there_is_refused(studio: "Studio") -> None:
    trace = studio.open()
    with pytest.raises(TraceError, match="no such record"):
        trace.barrier(99)


def test_i9_one_sync_serves_every_thread_that_waits(
    studio: "Studio", monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = studio.open()
    task = start(trace)
    first_sync, go_on, syncs = threading.Event(), threading.Event(), list[int]()

    def slow_sync(log: MemoryLogFile) -> None:
        syncs.append(len(log.data))
        first_sync.set()
        assert go_on.wait(120)
        log.durable = log.data

    monkeypatch.setattr(MemoryLogFile, "sync", slow_sync)
    threads = [threading.Thread(target=trace.barrier)]
    threads[0].start()
    assert first_sync.wait(120)
    for _ in range(64):  # these append and queue behind the first sync
        threads.append(threading.Thread(target=trace.barrier, args=(trace.append(STEP, task=task),)))
        threads[-1].start()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert len(syncs) == 2
    assert kinds_of(studio.log)[-65:] == ["step_verdict"] * 64 + ["seal"]


@pytest.mark.parametrize("step", ["append", "sync", "pin", "salts"])
def test_i9_a_disk_that_fails_fails_the_step_and_breaks_the_log(
    studio: "Studio", monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "a path that must not be quoted")

    trace = studio.open()
    task = start(trace)
    target, name = {
        "append": (MemoryLogFile, "append"),
        "sync": (MemoryLogFile, "sync"),
        "pin": (studio.store, "write_pin"),
        "salts": (studio.salts, "sync"),
    }[step]
    with monkeypatch.context() as patch:
        patch.setattr(target, name, fail)
        with pytest.raises(TraceError, match="ENOSPC") as caught:
            trace.barrier()
        assert "path" not in str(caught.value)
    with pytest.raises(TraceError, match="takes no more"):
        trace.append(STEP, task=task)
    with pytest.raises(TraceError, match="takes no more"):
        trace.barrier()
    before = studio.log.data
    trace.close()
    assert (studio.log.data, studio.log.closed, studio.store.held) == (before, True, False)


def test_i9_salts_are_durable_before_the_seal_over_their_commitments(
    studio: "Studio", monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = studio.open()
    commit = trace.commit(b"payload")
    written = list[bool]()
    append = MemoryLogFile.append

    def watch(log: MemoryLogFile, data: bytes) -> None:
        written.append(commit in studio.salts.durable)
        append(log, data)

    monkeypatch.setattr(MemoryLogFile, "append", watch)
    start(trace)
    trace.barrier()
    assert written == [True]


def test_i9_an_interrupt_in_the_middle_of_a_write_breaks_the_log(
    studio: "Studio", monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    trace = studio.open()
    task = start(trace)
    with monkeypatch.context() as patch:
        patch.setattr(MemoryLogFile, "sync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            trace.barrier()
    with pytest.raises(TraceError, match="takes no more"):
        trace.append(STEP, task=task)


def test_i9_an_interrupt_in_the_middle_of_an_append_breaks_the_log(
    studio: "Studio", monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> float:
        raise KeyboardInterrupt

    trace = studio.open()
    task = start(trace)
    trace.barrier()
    with monkeypatch.context() as patch:
        patch.setattr(studio.clock, "monotonic", interrupt)
        with pytest.raises(KeyboardInterrupt):
            trace.append(STEP, task=task)
    with pytest.raises(TraceError, match="takes no more"):
        trace.barrier()


# --- seals by number and by time --------------------------------------------------------------------


def test_i4_a_full_batch_is_sealed_and_synced_by_itself(studio: "Studio") -> None:
    trace = studio.open(seal_every=3)
    task = start(trace)
    for _ in range(5):
        trace.append(STEP, task=task)
    assert kinds_of(studio.log)[2:] == ["task_start", "step_verdict", "step_verdict", "seal"] + [
        "step_verdict"
    ] * 3 + ["seal"]


def test_i4_the_next_record_after_seal_ms_is_sealed(studio: "Studio") -> None:
    trace = studio.open(seal_ms=500)
    task = start(trace)
    studio.clock.advance(0.499)
    trace.append(STEP, task=task)
    assert kinds_of(studio.log) == ["header", "seal"]
    studio.clock.advance(0.001)
    trace.append(STEP, task=task)
    assert kinds_of(studio.log)[-1] == "seal"


def test_time_in_the_log_never_goes_back(studio: "Studio") -> None:
    trace = studio.open()
    task = start(trace)
    studio.clock._start_us -= 5_000_000
    trace.append(STEP, task=task)
    studio.clock.advance(9)
    trace.append(STEP, task=task)
    times = [record["ts"] for record in records_of(studio.log) if "ts" in record]
    assert times == sorted(times)
    assert times[-1] == times[0] + 4_000_000


def test_i4_the_time_that_the_trace_tells_is_the_time_of_its_next_record(studio: "Studio") -> None:
    trace = studio.open()
    task = start(trace)
    told = [trace.now_us()]
    for step_us in (-600_000_000, 1_000_000, -(2**52)):  # the last is before 1970
        studio.clock._start_us += step_us
        told.append(trace.now_us())
        trace.append(STEP, task=task)
    trace.barrier()
    assert [record["ts"] for record in records_of(studio.log) if record["kind"] == "step_verdict"] == told[1:]
    assert told == sorted(told)


def test_i9_a_record_that_would_come_too_late_by_the_time_on_it_is_not_written(studio: "Studio") -> None:
    """The log's time counts, and not what a clock says that was set back."""
    trace = studio.open()
    task = start(trace)
    now = trace.now_us()
    studio.clock._start_us -= 5_000_000
    with pytest.raises(TooLate):
        trace.append(STEP, task=task, before=now)
    trace.append(STEP, task=task, before=now + 1)
    trace.barrier()
    assert kinds_of(studio.log).count("step_verdict") == 1


# --- tasks, ids, commitments ------------------------------------------------------------------------


def test_the_trace_counts_what_a_task_did(studio: "Studio") -> None:
    with studio.open() as trace:
        task, other = start(trace), start(trace)
        for who in (task, other, task):
            trace.append(STEP, task=who)
        trace.append(r.TaskEnd(outcome="done"), task=task)
        trace.append(r.TaskEnd(outcome="done"), task=other)
    ends = [record["body"] for record in records_of(studio.log) if record["kind"] == "task_end"]
    assert ends[0] == {"outcome": "done", "counts": {"step_verdict": 2, "task_start": 1}}
    assert ends[1] == {"outcome": "done", "counts": {"step_verdict": 1, "task_start": 1}}
    close = records_of(studio.log)[-2]["body"]
    assert close == {"entries": 9, "reason": "done"}


def test_a_record_stands_where_its_kind_may_stand(studio: "Studio") -> None:
    trace = studio.open()
    task = start(trace)
    ended = start(trace)
    trace.append(r.TaskEnd(outcome="done"), task=ended)
    again = r.TaskStart(goal_commit="0" * 64, data_class=DataClass.C1)
    for record, where, problem in (
        (STEP, None, "needs"),
        (STEP, "f" * 32, "outside its task"),
        (STEP, ended, "outside its task"),
        (again, task, "started before"),
        (again, ended, "started before"),
        (r.Close(entries=1, reason="done"), None, "by the trace itself"),
        (RECOVERY, None, "by the trace itself"),
    ):
        with pytest.raises(TraceError, match=problem):
            trace.append(record, task=where)
    trace.append(STEP, task=task)
    trace.close()


def test_i12_a_task_id_is_minted_and_never_a_word_of_somebody_else(studio: "Studio") -> None:
    trace = studio.open()
    for name in ("Rossi contro Bianchi", "A" * 32, "a" * 31, ""):
        with pytest.raises(TraceError, match="mint_id") as caught:
            trace.append(r.TaskStart(goal_commit="0" * 64, data_class=DataClass.C1), task=name)
        assert "Rossi" not in str(caught.value)


def test_open_tasks_end_with_the_log(studio: "Studio") -> None:
    def fail_in_the_middle() -> None:
        with studio.open() as trace:
            start(trace)
            raise RuntimeError("host")

    with pytest.raises(RuntimeError, match="host"):
        fail_in_the_middle()
    assert kinds_of(studio.log)[-3:] == ["task_end", "close", "seal"]
    assert records_of(studio.log)[-3]["body"]["outcome"] == "failed"
    assert records_of(studio.log)[-2]["body"]["reason"] == "error"


def test_a_full_log_refuses_and_can_still_be_closed(
    studio: "Studio", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "MAX_RECORDS", 40)
    trace = studio.open(seal_every=1)
    task = start(trace)
    for _ in range(15):
        trace.append(STEP, task=task)
    with pytest.raises(TraceError, match="open in it"):
        trace.append(STEP, task=task)
    trace.close("rotated")
    assert len(records_of(studio.log)) == 38
    assert kinds_of(studio.log)[-2:] == ["close", "seal"]


# --- rotation ---------------------------------------------------------------------------------------

LOCAL = r.Backend(
    name="local",
    model="m",
    locality=Locality.L0,
    is_local=True,
    caps_digest="0" * 64,
    endpoint_commit="0" * 64,
)


def logs_of(studio: "Studio") -> list[list[dict[str, Any]]]:
    return [records_of(studio.store.files[name]) for name in studio.store.names()]


def run_task(trace: Trace, steps: int = 1) -> None:
    task = start(trace)
    for _ in range(steps):
        trace.append(STEP, task=task)
    trace.append(r.TaskEnd(outcome="done"), task=task)
    trace.barrier()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log holds 40 records."""
    monkeypatch.setattr(log_module, "MAX_RECORDS", 40)


@pytest.mark.usefixtures("small")
def test_i4_a_half_full_log_gives_way_to_the_next_between_tasks(studio: "Studio") -> None:
    """A runtime that runs for months never stops recording, and no log outgrows the format."""
    with studio.open() as trace:
        trace.append(LOCAL)
        for _ in range(30):
            run_task(trace)
    logs = logs_of(studio)
    assert len(logs) > 4
    assert all(len(log) <= 40 for log in logs)
    assert [log[-2]["body"]["reason"] for log in logs] == ["rotated"] * (len(logs) - 1) + ["done"]
    assert sum(record["kind"] == "task_end" for log in logs for record in log) == 30
    for number, (before, after) in enumerate(itertools.pairwise(logs)):
        named = after[0]["body"]["prev_log"]
        assert (named["id"], named["size"]) == (before[0]["body"]["log_id"], len(before))
        assert after[0]["body"]["log_no"] == number + 1
        assert after[0]["body"]["vkey"] != before[0]["body"]["vkey"]


@pytest.mark.usefixtures("small")
def test_i10_the_next_log_says_again_what_each_backend_is(studio: "Studio") -> None:
    """S11: a send follows the record of its backend in its own log, and the gate records changes only."""
    with studio.open() as trace:
        trace.append(LOCAL)
        trace.append(replace(LOCAL, locality=Locality.L2))
        for _ in range(8):
            run_task(trace)
    first, second, *_ = logs_of(studio)
    assert [record["body"]["locality"] for record in first if record["kind"] == "backend"] == ["L0", "L2"]
    assert [record["body"]["locality"] for record in second if record["kind"] == "backend"] == ["L2"]
    assert second[2]["kind"] == "backend"


def test_i4_a_log_gives_way_after_a_day(studio: "Studio") -> None:
    with studio.open() as trace:
        run_task(trace)
        studio.clock.advance(86_399)
        run_task(trace)
        assert len(studio.store.files) == 1
        studio.clock.advance(1)
        run_task(trace)
        run_task(trace)
    assert [len(log) for log in logs_of(studio)] == [12, 12]


def ask(trace: Trace, *, denied: bool = False) -> r.Egress:
    """Ask a backend about itself, outside any task."""
    sent = r.Egress(
        call_id=trace.mint_id(),
        send_id=trace.mint_id(),
        channel="inference",
        backend="local",
        locality=Locality.L0,
        data_class=DataClass.C0,
        decision="denied" if denied else "allowed",
        reason="class-above-ceiling" if denied else None,
        payload_commit="0" * 64,
        bytes=0,
    )
    trace.append(sent)
    return sent


def answer(trace: Trace, sent: r.Egress) -> None:
    trace.append(r.EgressResult(call_id=sent.call_id, send_id=sent.send_id, status="ok", bytes=0))


def test_i4_a_send_outside_any_task_has_its_result_in_its_own_log(studio: "Studio") -> None:
    """One thread asks a server about itself while another starts the task that a new log begins with."""
    with studio.open() as trace:
        trace.append(LOCAL)
        ask(trace, denied=True)
        first, second = ask(trace), ask(trace)
        studio.clock.advance(90_000)
        run_task(trace)
        answer(trace, first)
        run_task(trace)
        assert len(studio.store.files) == 1
        answer(trace, second)
        run_task(trace)
    found = [[each["kind"] for each in log if each["kind"].startswith("egress")] for log in logs_of(studio)]
    assert found == [["egress"] * 3 + ["egress_result"] * 2, []]


@pytest.mark.usefixtures("small")
def test_i7_a_full_log_takes_the_result_of_a_send_outside_any_task(studio: "Studio") -> None:
    with studio.open(seal_every=1) as trace:
        trace.append(LOCAL)
        sent, task = ask(trace), start(trace)
        with pytest.raises(TraceError, match="open in it"):
            for _ in range(40):
                trace.append(STEP, task=task)
        with pytest.raises(TraceError, match="open in it"):
            answer(trace, replace(sent, send_id="0" * 32))
        answer(trace, sent)
        with pytest.raises(TraceError, match="open in it"):
            answer(trace, sent)
    assert len(records_of(studio.log)) <= 40
    assert kinds_of(studio.log)[-2:] == ["close", "seal"]


@pytest.mark.usefixtures("small")
def test_i4_a_task_lives_in_one_log_however_long_it_lasts(studio: "Studio") -> None:
    with studio.open() as trace:
        task = start(trace)
        studio.clock.advance(100_000)
        for _ in range(9):
            run_task(trace, steps=0)
        assert len(studio.store.files) == 1
        trace.append(r.TaskEnd(outcome="done"), task=task)
        run_task(trace)
    assert len(studio.store.files) == 2


@pytest.mark.usefixtures("small")
def test_i7_a_full_log_takes_the_end_of_its_tasks_and_then_gives_way(studio: "Studio") -> None:
    """What is refused for want of room is refused once, not for good."""
    with studio.open(seal_every=1) as trace:
        task, other = start(trace), start(trace)
        with pytest.raises(TraceError, match="open in it"):
            for _ in range(40):
                trace.append(STEP, task=task)
        for who in (task, other):
            trace.append(r.TaskEnd(outcome="failed"), task=who)
        run_task(trace)
    first, second = logs_of(studio)
    assert (len(first) <= 40, first[-2]["body"]["reason"]) == (True, "rotated")
    assert [record["kind"] for record in second].count("task_end") == 1


@pytest.mark.parametrize("step", ["append", "create", "pin"])
def test_i9_a_rotation_that_fails_breaks_the_log_and_the_next_start_goes_on(
    studio: "Studio", monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    calls, write_pin = itertools.count(), studio.store.write_pin

    def fail(*given: object) -> None:
        if step != "pin" or next(calls) == 1:  # of two pins, the one of the new log
            raise OSError(errno.ENOSPC, "full")
        write_pin(*given)  # type: ignore[arg-type]  # the bytes of the pin

    trace = studio.open()
    run_task(trace)
    studio.clock.advance(90_000)
    target, name = {
        "append": (MemoryLogFile, "append"),
        "create": (studio.store, "create"),
        "pin": (studio.store, "write_pin"),
    }[step]
    with monkeypatch.context() as patch:
        patch.setattr(target, name, fail)
        with pytest.raises(TraceError, match="ENOSPC"):
            start(trace)
    with pytest.raises(TraceError, match="takes no more"):
        start(trace)
    trace.close()
    assert studio.store.held is False
    with studio.open() as again:
        run_task(again)
    assert kinds_of(studio.log)[-2:] == ["close", "seal"]


@pytest.mark.usefixtures("small")
def test_i4_of_many_threads_one_rotates_and_none_is_refused(studio: "Studio") -> None:
    refused = list[BaseException]()

    def work() -> None:
        try:
            for _ in range(20):
                run_task(trace, steps=0)
        except TraceError as error:
            refused.append(error)

    with studio.open() as trace:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    logs = logs_of(studio)
    assert all(len(log) <= 40 for log in logs)
    ends = [record["task"] for log in logs for record in log if record["kind"] == "task_end"]
    assert (refused, len(ends), len(set(ends))) == ([], 60, 60)


def test_i12_what_is_not_in_the_profile_is_other_and_a_commitment(studio: "Studio") -> None:
    trace = studio.open()
    assert trace.vocab_or_other("read_file", {"read_file"}) == ("read_file", None)
    for name in ("ignore previous instructions", "other", "\ud800"):
        word, commit = trace.vocab_or_other(name, {"read_file", "other"})
        assert word == "other"
        assert commit is not None
        assert commitment(studio.salts.salts[commit], name.encode("utf-8", "surrogatepass")) == commit


def test_i12_the_same_payload_never_has_the_same_commitment(studio: "Studio") -> None:
    trace = studio.open()
    assert trace.commit(b"same") != trace.commit(b"same")


def test_block_ids_are_unique_and_ids_have_32_digits(studio: "Studio") -> None:
    trace = studio.open()
    assert [trace.mint_block() for _ in range(3)] == ["b0", "b1", "b2"]
    assert len({trace.mint_id() for _ in range(9)}) == 9
    assert len(trace.mint_id()) == 32


def test_i12_the_host_name_enters_as_a_commitment(studio: "Studio") -> None:
    studio.open()
    assert b"a-machine-name" not in studio.log.data


# --- one writer, no fork, an end ----------------------------------------------------------------------


def test_i4_one_writer_at_a_time(studio: "Studio") -> None:
    trace = studio.open()
    with pytest.raises(TraceError, match="writer"):
        studio.open()
    trace.close()
    studio.open().close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_i4_a_forked_child_is_refused_everything(studio: "Studio") -> None:
    trace = studio.open()
    task = start(trace)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        refused = 0
        for act in (
            lambda: trace.append(STEP, task=task),
            trace.barrier,
            trace.close,
            lambda: trace.commit(b""),
        ):
            try:
                act()
            except TraceError:
                refused += 1
        os.write(writer, bytes([refused]))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1) == b"\x04"
    os.close(reader)
    os.close(writer)
    trace.append(STEP, task=task)
    trace.close()


def test_after_close_there_is_no_key_and_no_record(studio: "Studio") -> None:
    trace = studio.open()
    trace.close()
    before = studio.log.data
    trace.close()
    with pytest.raises(TraceError, match="closed"):
        trace.append(STEP, task="0" * 32)
    with pytest.raises(TraceError, match="key is gone"):
        trace._chain.seal()
    assert (studio.log.data, studio.log.closed, studio.store.held) == (before, True, False)


def test_i4_nothing_enters_after_the_close_record(studio: "Studio", monkeypatch: pytest.MonkeyPatch) -> None:
    late = r.Backend(
        name="local",
        model="m",
        locality=Locality.L0,
        is_local=True,
        caps_digest="0" * 64,
        endpoint_commit="0" * 64,
    )
    trace = studio.open()
    append = MemoryLogFile.append

    def come_late(log: MemoryLogFile, data: bytes) -> None:
        with ThreadPoolExecutor() as pool, pytest.raises(TraceError, match="is closed"):
            pool.submit(trace.append, late).result(60)
        append(log, data)

    monkeypatch.setattr(MemoryLogFile, "append", come_late)
    trace.close()
    assert kinds_of(studio.log) == ["header", "seal", "close", "seal"]


def test_a_fact_outside_the_vocabulary_opens_nothing(studio: "Studio") -> None:
    with pytest.raises(TraceError, match=r"Header\.profile"):
        studio.open(profile="not a word")
    with pytest.raises(TraceError, match="P3"):
        studio.open(host_tools=(r.HostTool(name="diary", trusted=False),))
    assert (studio.store.files, studio.store.held) == ({}, False)


def test_the_device_key_signs_the_first_seal_only(studio: "Studio") -> None:
    trace = studio.open()
    start(trace)
    trace.barrier()
    notes = [record["note"] for record in records_of(studio.log) if record["kind"] == "seal"]
    assert [note.count("\u2014 studio/device ") for note in notes] == [1, 0]


class KeyBytes(FixedEntropy):
    """Keeps hold of the buffers that were filled for keys; the same bytes each time if it is `stuck`."""

    def __init__(self, *, stuck: bool = False) -> None:
        super().__init__(b"keys")
        self.filled: list[bytearray] = []
        self._stuck = stuck

    def fill(self, secret: bytearray) -> None:
        super().fill(secret)
        if self._stuck:
            secret[:] = b"k" * len(secret)
        self.filled.append(secret)


def test_the_bytes_of_a_key_are_overwritten_once_the_library_has_them(studio: "Studio") -> None:
    studio.entropy = entropy = KeyBytes()
    studio.open().close()
    assert entropy.filled == [bytearray(32)]


def test_i7_no_two_logs_in_a_row_have_one_key(studio: "Studio", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "ROTATE_AFTER_S", 0.0)
    studio.entropy = KeyBytes(stuck=True)
    trace = studio.open()
    with pytest.raises(TraceUnavailable, match="repeat themselves"):
        start(trace)
    assert len(studio.store.files) == 1


# --- going on after a crash ---------------------------------------------------------------------------


def crash(studio: "Studio", keep: int | None = None) -> None:
    """The process dies; of the newest log `keep` bytes survive (all by default)."""
    studio.log.data = studio.log.data[:keep]
    studio.store.release()


def test_i4_an_interrupted_log_is_left_alone_and_accounted_for(studio: "Studio") -> None:
    trace = studio.open()
    start(trace)
    trace.barrier()
    pin = studio.store.pin
    trace.append(STEP, task=start(trace))
    trace.barrier()
    old = studio.log
    studio.store.pin = pin
    crash(studio, keep=-200)  # in the last seal
    left = old.data
    studio.open().close()
    assert old.data == left
    header, _, recovery, seal = records_of(studio.log)[:4]
    lines = left.count(b"\n")
    assert header["body"]["prev_log"]["size"] == recovery["body"]["size"] == lines
    assert recovery["body"]["torn_bytes"] == len(left) - left.rindex(b"\n") - 1
    assert (recovery["body"]["unsealed_kept"], recovery["body"]["log_no"], seal["kind"]) == (2, 0, "seal")


def test_i4_the_log_after_an_interruption_is_never_there_without_its_account_of_it(
    studio: "Studio", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who dies between the two leaves a gap that no later log can account for."""
    start(studio.open())
    crash(studio)
    created, create = list[bytes](), studio.store.create

    def watch(name: str, head: bytes) -> MemoryLogFile:
        created.append(head)
        return create(name, head)

    def die(_: bytes) -> None:
        if created:
            raise OSError(errno.EIO, "gone")

    with monkeypatch.context() as patch:
        patch.setattr(studio.store, "create", watch)
        patch.setattr(studio.store, "write_pin", die)
        with pytest.raises(TraceError, match="EIO"):
            studio.open()
    kinds = [json.loads(line)["kind"] for line in created[0].splitlines()]
    assert kinds == ["header", "seal", "recovery", "seal"]
    studio.open().close()
    assert kinds_of(studio.log) == ["header", "seal", "recovery", "seal", "close", "seal"]


@pytest.mark.parametrize("what", ["file", "lock"])
def test_i7_a_close_that_fails_lets_the_lock_go_and_is_told_in_our_words(
    studio: "Studio", monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    trace, release = studio.open(), studio.store.release

    def fail(*_: object) -> None:
        if what == "lock":
            release()
        raise OSError(errno.EIO, "a path that must not be quoted")

    with monkeypatch.context() as patch:
        where: tuple[object, str] = (MemoryLogFile, "close") if what == "file" else (studio.store, "release")
        patch.setattr(*where, fail)
        with pytest.raises(TraceError, match="EIO"):
            trace.close()
    assert studio.store.held is False
    trace.close()
    studio.open().close()


def test_i4_a_tail_that_does_not_chain_is_not_continued(studio: "Studio") -> None:
    trace = studio.open()
    pin = studio.store.pin
    trace.barrier(trace.append(STEP, task=start(trace)))
    crash(studio)
    *lines, step, _, _ = studio.log.data.split(b"\n")
    record = json.loads(step)
    for changes in ({"prev": "0" * 64}, {"seq": 9}, {"x y": 1}):
        studio.store.pin = pin
        studio.log.data = b"\n".join([*lines, encode({**record, **changes}), b""])
        with pytest.raises(TraceError, match="Fix"):
            studio.open()
    studio.log.data = b"\n".join([*lines, encode(record), b""])
    studio.open().close()


def encode(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def test_a_complete_log_needs_no_recovery(studio: "Studio") -> None:
    studio.open().close()
    studio.open().close()
    assert kinds_of(studio.log) == ["header", "seal", "close", "seal"]


def test_a_crash_between_a_new_log_and_its_first_pin_is_an_ordinary_interruption(
    studio: "Studio", monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pin = studio.store.write_pin

    def fail_for(number: int, pin: bytes) -> None:
        if json.loads(pin)["log_no"] == number:
            raise OSError(errno.EIO, "gone")
        write_pin(pin)

    for number in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(studio.store, "write_pin", partial(fail_for, number))
            with pytest.raises(TraceError, match="EIO"):
                studio.open()
    studio.open().close()
    assert len(studio.store.files) == 4
    assert "recovery" in kinds_of(studio.log)


@pytest.mark.parametrize(
    "cut", [-1, -200, 0, 1], ids=["newline", "half a seal", "everything", "all but a byte"]
)
def test_i4_a_book_shorter_than_its_pin_is_refused(studio: "Studio", cut: int) -> None:
    trace = studio.open()
    start(trace)
    trace.barrier()
    crash(studio, keep=cut)
    with pytest.raises(TraceError, match=r"were synced|does not start"):
        studio.open()
    assert not studio.store.held


def test_i4_a_removed_log_is_refused(studio: "Studio") -> None:
    for _ in range(3):
        studio.open().close()
    last = studio.store.files.pop(max(studio.store.files))
    with pytest.raises(TraceError, match="disagree"):
        studio.open()
    studio.store.files.clear()
    with pytest.raises(TraceError, match="removed"):
        studio.open()
    assert last.closed


def test_i4_a_missing_or_damaged_pin_is_refused(studio: "Studio") -> None:
    studio.open().close()
    good = studio.store.pin or b""
    for pin in (None, b"", b"{}", good[:-1], good.replace(b'"log_no":0', b'"log_no":"0"'), b"[" * 9999):
        studio.store.pin = pin
        with pytest.raises(TraceError, match="pin"):
            studio.open()
    studio.store.pin = good
    studio.open().close()


def test_i4_another_history_under_the_same_pin_is_refused(studio: "Studio") -> None:
    trace = studio.open()
    start(trace)
    trace.barrier()
    pin = studio.store.pin
    crash(studio)
    studio.store.files.clear()
    studio.store.pin = None
    trace = studio.open()  # the same keys, other records
    start(trace)
    trace.barrier()
    crash(studio)
    studio.store.pin = pin
    with pytest.raises(TraceError, match="differs"):
        studio.open()


def test_i4_no_changed_byte_of_the_last_log_is_continued(studio: "Studio") -> None:
    trace = studio.open()
    start(trace)
    trace.barrier()
    crash(studio)
    good, refused = studio.log.data, 0
    for position in range(len(good)):
        studio.log.data = good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :]
        with pytest.raises(TraceError):
            studio.open()
        refused += 1
    assert refused == len(good)


def test_i4_another_device_or_book_does_not_continue(studio: "Studio") -> None:
    studio.open().close()
    with pytest.raises(TraceError, match="Fix"):
        studio.open(book="another")
    signer = studio.signer
    studio.signer = MemorySigner(b"x" * 32)
    with pytest.raises(TraceError, match="Fix"):
        studio.open()
    studio.signer = signer
    studio.open().close()


def test_i4_a_foreign_file_in_the_book_is_refused(studio: "Studio") -> None:
    studio.open().close()
    studio.store.files["notes.jsonl"] = MemoryLogFile(data=b"", durable=b"")
    with pytest.raises(TraceError, match="named like a log"):
        studio.open()
