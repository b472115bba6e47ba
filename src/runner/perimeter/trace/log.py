# SPDX-License-Identifier: Apache-2.0
"""The open log of a book: the one place where records are written.

Owns the order of writing (`contracts/trace/v1`): lock, recover, header, entries, seals, close, and on to the
next log before this one is full; the counts of tasks; commitments and their salts; ids; the time of records.
Leaves bytes to `chain`, files to a `LogStore`, the device key to a `Signer`. Carries I9: `barrier` returns
only when the record is sealed and on the disk, and after one failure to write, this log takes nothing more
(I7). Carries I4 with `chain`, and I12 with `shape`.
"""

import errno
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from itertools import count
from types import TracebackType
from typing import Concatenate, Final, Literal, ParamSpec, Self, TypeVar

from runner.kernel.errors import TraceError, TraceUnavailable
from runner.kernel.ports import Clock, Entropy, HeadKeeper, LogFile, LogStore, SaltStore, Signer
from runner.perimeter.trace.chain import Chain, Head, Refused
from runner.perimeter.trace.commit import SALT_BYTES, commitment
from runner.perimeter.trace.note import device_key_name
from runner.perimeter.trace.records import (
    EXTENSIONS,
    OTHER,
    RULES_ONLY,
    SUCCESSION,
    Backend,
    Ceiling,
    Close,
    Egress,
    EgressResult,
    Header,
    HostTool,
    PrevLog,
    Record,
    Recovery,
    Sandbox,
    TaskEnd,
    TaskStart,
    Unverifiable,
)
from runner.perimeter.trace.recover import (
    ReadLog,
    check_head,
    encode_pin,
    log_name,
    named_successor,
    read_last,
)
from runner.perimeter.trace.shape import IS_ID
from runner.perimeter.trace.turn import Turn

MAX_RECORDS: Final = 100_000
ROTATE_AFTER_S: Final = 86_400.0
"""The age in seconds from which a log gives way to the next one."""
_ID_BYTES: Final = 16
_KEY_BYTES: Final = 32
P = ParamSpec("P")
R = TypeVar("R")
_OWN: Final = (Header, Recovery, Close)
"""What the trace writes by itself."""


class TooLate(Refused):
    """A record would carry a time at which it is not to be written any more. Nothing was written."""


def _once_in_a_thread(
    method: "Callable[Concatenate[Trace, P], R]",
) -> "Callable[Concatenate[Trace, P], R]":
    """Refuse what is called from within such a call of the same thread, and what is called after a fork.

    A signal handler or a finalizer that writes would find the log halfway through a change. The call around
    it goes on. As in `Turn`, what is taken is taken inside the `try` that gives it back.
    """

    @wraps(method)
    def call(self: "Trace", /, *args: P.args, **kwargs: P.kwargs) -> R:
        if os.getpid() != self._pid:
            raise TraceUnavailable(
                "a forked process cannot write its parent's log. Fix: open a book of its own"
            )
        thread = threading.get_ident()
        if thread in self._within:
            raise TraceUnavailable(
                "the log was called while this thread writes it, as by a signal handler. "
                "Fix: set a flag there, or raise, and call the log afterwards"
            )
        try:
            self._within.add(thread)
            return method(self, *args, **kwargs)
        finally:
            self._within.discard(thread)

    return call


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderFacts:
    """What a header says that only the assembly knows.

    `book` is the name of the book in every origin; `host` the machine's name, which enters as a commitment;
    `boot_id` 32 hex digits, one per start of the system; the digests are those of `commit`. `prompts` is the
    digest of what the runner says to a model in its own words, where that is known.
    """

    book: str
    host: str = field(repr=False)
    boot_id: str
    profile: str
    policy_digest: str
    config_digest: str
    prompts: str | None = None
    backends: tuple[str, ...]
    host_tools: tuple[HostTool, ...] = ()
    max_egress_class: Ceiling
    classifier: str = RULES_ONLY
    enforcement: Literal["cooperative", "isolated"]
    sandbox: Sandbox
    unverifiable_because: tuple[Unverifiable, ...] = ()
    writer: str
    seal_every: int = 256
    seal_ms: int = 1000
    successor: str | None = None
    """The verifier key of the device key that goes on after this log, the last one of its book."""


class Trace:
    """An open log. Made by `Trace.open`; safe to use from several threads, not after a fork.

    A task that starts while no other is open, in a log that is half full or a day old, starts the next log:
    nothing of a task stands in two logs, nor of a send.

    As a context manager it closes itself, with reason `error` when an exception leaves the block.
    """

    def __init__(
        self,
        *,
        store: LogStore,
        signer: Signer,
        salts: SaltStore,
        clock: Clock,
        entropy: Entropy,
        facts: HeaderFacts,
    ) -> None:
        """Use `Trace.open`."""
        self._store, self._signer, self._salts = store, signer, salts
        self._keeper = signer if isinstance(signer, HeadKeeper) else None
        self._clock, self._entropy, self._facts = clock, entropy, facts
        self._pid = os.getpid()
        self._within: set[int] = set()  # the threads that are in a call of this trace
        self._lock = threading.RLock()  # guards chain, pending, tasks, state; rotation holds it for long
        self._turn = Turn()  # to write: one batch at a time. Taken before _lock
        self._state: Literal["open", "broken", "closed"] = "open"
        self._pending = bytearray()
        self._durable = 0  # lines that are sealed and on the disk
        self._seal_due = 0.0  # from when on what is not sealed is to be sealed
        self._began = 0.0
        self._tasks: dict[str, Counter[str]] = {}
        self._past_tasks: set[str] = set()
        self._sends: set[str] = set()  # outside any task, and their result is to come
        self._backends: dict[str, Backend] = {}  # the latest record of each
        self._block_numbers = count()
        self._log_no, self._log_id = 0, ""
        self._drawn = b""  # the beginning of the last random bytes
        self._public_key = b""  # of the last log
        self._chain: Chain
        self._file: LogFile

    @classmethod
    def open(
        cls,
        *,
        store: LogStore,
        signer: Signer,
        salts: SaltStore,
        clock: Clock,
        entropy: Entropy,
        facts: HeaderFacts,
    ) -> Self:
        """Take the writer's lock, check the last log against the head pin, and start the next log.

        A log that was interrupted is left as it is and accounted for by a `recovery` record. Raises
        `TraceUnavailable` when another process writes or the disk fails, and `TraceError` when the book does
        not agree with its pin, ended with its device key, or a fact is outside the vocabulary.
        """
        with _failures("the book cannot be opened"):
            store.acquire()
            try:
                _refuse_ended(store)
                last = read_last(store, book=facts.book, device=signer.public_key)
                trace = cls(
                    store=store, signer=signer, salts=salts, clock=clock, entropy=entropy, facts=facts
                )
                trace._begin(last)
            except BaseException:
                store.release()
                raise
        return trace

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close("done" if kind is None else "error")

    def __repr__(self) -> str:
        return f"<Trace {self._log_no} {self._state}>"

    # --- what callers mint -----------------------------------------------------------------------

    def mint_id(self) -> str:
        """Return a new id of 32 hex digits for a task, call or send; raise `TraceUnavailable`."""
        return self._random(_ID_BYTES).hex()

    def now_us(self) -> int:
        """Return the time that a record written now would carry, in microseconds since 1970.

        What the record says about a later time, such as an expiry, is reckoned from here: the system's clock
        may have been set back, and a log does not go back with it. Raises `TraceUnavailable` without a clock.
        """
        with self._lock, _failures("the clock cannot be read"):
            return self._chain.time(self._clock.now_us())

    def mint_block(self) -> str:
        """Return a new block id, unique in this log."""
        return f"b{next(self._block_numbers)}"

    @_once_in_a_thread
    def commit(self, payload: bytes) -> str:
        """Return a commitment to `payload` under a new salt, which goes to the salt store.

        Raises `TraceUnavailable` when there is none or it cannot be kept.
        """
        return self._commitment(payload)

    def _commitment(self, payload: bytes) -> str:
        salt = self._random(SALT_BYTES)
        commit = commitment(salt, payload)
        with self._broken_by_any_error():
            self._salts.keep(commit, salt)
        return commit

    def vocab_or_other(self, name: str, allowed: Collection[str]) -> tuple[str, str | None]:
        """Return `name` if the profile allows the word, else "other" and a commitment to it (I12)."""
        if name in allowed and name != OTHER:
            return name, None
        return OTHER, self.commit(name.encode("utf-8", "surrogatepass"))

    # --- writing ---------------------------------------------------------------------------------

    @_once_in_a_thread
    def append(self, record: Record, *, task: str | None = None, before: int | None = None) -> int:
        """Put `record` on record and return its `seq`. It is durable only after `barrier`.

        A full batch, or one older than `seal_ms`, is sealed and synced here. Raises `TooLate` when the time
        on the record would not be `before` this one, in microseconds since 1970; `TraceError` when the
        record does not fit its task or the log is full, and `TraceUnavailable` when it is closed, broken or
        forked, or the disk or the clock fails. A full log still takes the end of every open task, and the
        result of every send outside a task, and then rotates.
        """
        if isinstance(record, _OWN):
            raise TraceError(f"a {record.kind} record is written by the trace itself")
        if isinstance(record, TaskStart):
            self._rotate_if_due()
        with self._lock:
            self._refuse_unless_open()
            if self._is_full() and not self._ends(record):
                raise TraceError(
                    f"the log holds {MAX_RECORDS} records. Fix: end the tasks that are open in it"
                )
            seq = self._add(self._in_task(record, task), task, before=before)
            due = self._chain.unsealed == 0 or self._clock.monotonic() >= self._seal_due
        if due:
            self._settle(
                None
            )  # not seq: the log may be another one by now, and what it closed with is durable
        return seq

    @_once_in_a_thread
    def barrier(self, seq: int | None = None) -> None:
        """Return when the record `seq`, or everything so far, is sealed and on the disk (I9).

        One sync serves every caller that waits. Raises `TraceUnavailable` when that is not so and cannot be
        made so; the log is broken for good then.
        """
        self._settle(seq)

    def _settle(self, seq: int | None) -> None:
        with self._lock:
            last = self._chain.size - 1
        if seq is not None and seq > last:
            raise TraceError("there is no such record yet")
        target = last if seq is None else seq
        self._turn.take(self._commit, until=lambda: target < self._durable)

    @_once_in_a_thread
    def close(self, reason: Literal["done", "rotated", "shutdown", "error"] = "done") -> None:
        """End the log: open tasks, the `close` record, a last seal; drop the key and the lock.

        Open tasks end as `cancelled`, or `failed` when `reason` is `error`. A log that is broken, which was
        reported when it broke, is only let go: the next one accounts for it. Closing again does nothing.
        Raises `TraceUnavailable` when the end cannot be written, or in a forked child.
        """
        self._turn.take(partial(self._end, reason))

    # --- inside ----------------------------------------------------------------------------------

    def _end(self, reason: Literal["done", "rotated", "shutdown", "error"]) -> None:
        """As `close`. Holds the right to write."""
        if self._state == "closed":
            return
        try:
            if self._state == "open":
                with self._lock:
                    self._finish(reason)
                    self._state = "closed"
                self._write_batch()
        finally:
            self._state = "closed"
            self._chain.destroy()
            with _failures("the log cannot be closed"):
                try:
                    self._file.close()
                finally:
                    self._store.release()

    def _begin(self, last: ReadLog | None) -> None:
        """Create the log after `last`, and account for `last` if it broke off."""
        prev = recovery = None
        if last is not None:  # bring the pin to what was just checked: it never lags by more than one log
            self._log_no = last.log_no
            self._pin(last.head, self._unseen(last))
            self._log_no += 1
            prev, recovery = last.as_prev(), None if last.complete else last.as_recovery()
        self._create(prev, recovery)

    def _create(self, prev: PrevLog | None, recovery: Recovery | None = None) -> None:
        """Create the log after `prev` with header and first seal, and `recovery` and its seal; pin it.

        All of it at once: a log that were there without its `recovery` would break off in its turn, and
        then nothing could account for the one before.
        """
        self._log_id = log_id = self.mint_id()
        self._chain = self._new_chain(f"{self._facts.book}/{log_id}")
        header = self._chain.entry(self._header(log_id, prev), now_us=self._clock.now_us(), task=None)
        device = (device_key_name(self._facts.book), self._signer)
        head = header + self._chain.seal(device=device, header=header.removesuffix(b"\n"))
        if recovery is not None:
            head += self._chain.entry(recovery, now_us=self._clock.now_us(), task=None) + self._chain.seal()
        self._salts.sync()
        self._began = self._clock.monotonic()
        self._file = self._store.create(log_name(self._log_no, log_id), head)
        try:
            self._pin(self._chain.head(), self._chain.take_leaves()[1:])  # whoever signed it has the header
        except BaseException:
            self._file.close()
            raise
        self._durable = self._chain.size

    def _new_chain(self, origin: str) -> Chain:
        """Return an empty log under a key of its own; raise `TraceUnavailable` where no key can be had.

        The key's bytes are in one place only, and are overwritten there: `_random` would keep some of them.
        """
        secret = bytearray(_KEY_BYTES)
        with _failures("the system gives no random bytes"):
            self._entropy.fill(secret)
        if len(secret) != _KEY_BYTES or not any(secret):
            raise TraceUnavailable("the system's random bytes are too few, or repeat themselves")
        chain = Chain(origin=origin, secret=secret)
        if chain.public_key == self._public_key:
            raise TraceUnavailable("the system's random bytes are too few, or repeat themselves")
        self._public_key = chain.public_key
        return chain

    def _rotate_if_due(self) -> None:
        """Close a log that is half full or old, and go on in the next one.

        Only between tasks, for a task lives in one log. The store's lock is held throughout. An error breaks
        the trace, as any failure to write does.
        """
        self._turn.take(self._rotate_between_tasks)

    def _rotate_between_tasks(self) -> None:
        with self._lock:
            self._refuse_unless_open()
            old = self._clock.monotonic() - self._began >= ROTATE_AFTER_S
            if self._tasks or self._sends or not (old or self._chain.size > MAX_RECORDS // 2):
                return
            with self._broken_by_any_error():
                self._finish("rotated")
                self._write_batch()
                self._chain.destroy()
                self._file.close()
                head, prev_id = self._chain.head(), self._log_id
                self._log_no += 1
                self._past_tasks.clear()
                self._create(PrevLog(id=prev_id, size=head.size, root=head.root.hex()))
                for backend in self._backends.values():  # S11: a send follows what its backend is, in its log
                    self._add(backend, None)

    def _is_full(self) -> bool:
        """Return whether the rest is needed: an end and a seal for what is open, and the close."""
        return self._chain.size + 2 * (len(self._tasks) + len(self._sends) + 3) > MAX_RECORDS

    def _ends(self, record: Record) -> bool:
        """Return whether there is always room for `record`: it ends a task, or a send outside any."""
        return isinstance(record, TaskEnd) or (
            isinstance(record, EgressResult) and record.send_id in self._sends
        )

    def _header(self, log_id: str, prev: PrevLog | None) -> Header:
        facts, chain = self._facts, self._chain
        return Header(
            log_id=log_id,
            log_no=self._log_no,
            prev_log=prev,
            origin=chain.origin,
            vkey=chain.vkey,
            profile=facts.profile,
            policy_digest=facts.policy_digest,
            config_digest=facts.config_digest,
            backends=facts.backends,
            host_tools=facts.host_tools,
            max_egress_class=facts.max_egress_class,
            classifier=facts.classifier,
            enforcement=facts.enforcement,
            sandbox=facts.sandbox,
            verifiable=not facts.unverifiable_because,
            unverifiable_because=facts.unverifiable_because,
            custody=self._signer.custody,  # type: ignore[arg-type]  # any other word is refused by Header
            seal_every=facts.seal_every,
            seal_ms=facts.seal_ms,
            writer=facts.writer,
            host_commit=self._commitment(facts.host.encode("utf-8", "surrogatepass")),
            boot_id=facts.boot_id,
            extensions=EXTENSIONS if facts.successor is None else (*EXTENSIONS, SUCCESSION),
            x_next_device_key=facts.successor,
            x_prompts=facts.prompts,
        )

    def _in_task(self, record: Record, task: str | None) -> Record:
        """Return `record` as it enters `task`, its counts filled in; raise `TraceError` if it cannot."""
        if (record.TASK == "must" and task is None) or (record.TASK == "no" and task is not None):
            raise TraceError(f"a {record.kind} record {'needs a' if task is None else 'has no'} task")
        if task is None:
            return record
        if isinstance(record, TaskStart):
            if not IS_ID(task):
                raise TraceError("a task id is 32 hex digits: mint it with mint_id (I12)")
            if task in self._tasks or task in self._past_tasks:
                raise TraceError("this task was started before")
        elif task not in self._tasks:
            raise TraceError(f"a {record.kind} record stands outside its task: start the task first")
        if isinstance(record, TaskEnd):
            return replace(record, counts=dict(self._tasks[task]))
        return record

    def _add(self, record: Record, task: str | None, *, before: int | None = None) -> int:
        """Chain `record` and seal a full batch, in memory; return its seq. Holds the lock (or is alone)."""
        seq, first = self._chain.size, self._chain.unsealed == 0
        try:
            now = self._clock.now_us()
            if before is not None:
                _refuse_late(self._chain.time(now), before)
            self._pending += self._chain.entry(record, now_us=now, task=task)
            if first:
                self._seal_due = self._clock.monotonic() + self._facts.seal_ms / 1000
            if task is None:
                self._keep(record)
            else:
                self._count(record, task)
            if self._chain.unsealed >= self._facts.seal_every:
                self._pending += self._chain.seal()
        except Refused:
            raise
        except BaseException as error:
            self._state = "broken"  # whatever it is: clock, key, or a signal handler halfway (I7)
            if isinstance(error, TraceError) or not isinstance(error, Exception):
                raise
            problem = f"the record cannot be written: {type(error).__name__}"
            raise TraceUnavailable(problem) from None
        return seq

    def _count(self, record: Record, task: str) -> None:
        if isinstance(record, TaskStart):
            self._tasks[task] = Counter({record.kind: 1})
        elif isinstance(record, TaskEnd):
            del self._tasks[task]
            self._past_tasks.add(task)
        else:
            self._tasks[task][record.kind] += 1

    def _keep(self, record: Record) -> None:
        """Keep of a record outside any task what a later one refers to."""
        if isinstance(record, Egress) and record.decision != "denied":
            self._sends.add(record.send_id)
        elif isinstance(record, EgressResult):
            self._sends.discard(record.send_id)
        elif isinstance(record, Backend):
            self._backends[record.name] = record

    def _commit(self) -> None:
        self._refuse_unless_open()
        self._turn.give_way(lambda: self._chain.size - self._durable)
        self._write_batch()

    def _write_batch(self) -> None:
        """Seal what is not, write it, sync it, move the pin. Holds the right to write."""
        with self._broken_by_any_error():
            with self._lock:
                if self._durable == self._chain.size:
                    return  # somebody else wrote it just now
                if self._chain.unsealed:
                    self._pending += self._chain.seal()
                batch, self._pending = bytes(self._pending), bytearray()
                head, leaves = self._chain.head(), self._chain.take_leaves()
            self._salts.sync()  # before the seal that covers their commitments can exist on the disk
            self._file.append(batch)
            self._file.sync()
            self._pin(head, leaves)
            self._durable = head.size

    def _pin(self, head: Head, leaves: Sequence[bytes]) -> None:
        """Put the head out of the book's reach: `leaves` are the last of its lines, for who keeps it too.

        In that order and after the log itself: what is held elsewhere is never ahead of what is on the disk.
        """
        self._store.write_pin(encode_pin(self._log_no, head, self._facts.boot_id))
        if self._keeper is not None and leaves:
            self._keeper.grow(self._log_no, head.size - len(leaves), leaves)

    def _unseen(self, last: ReadLog) -> Sequence[bytes]:
        """Return the leaves of `last` that the keeper of the head has not seen; raise `TraceError`.

        What it has seen is in `last`, or this book was rolled back or forked.
        """
        held = None if self._keeper is None else self._keeper.head()
        if held is None or held.log_no != last.log_no:
            return ()
        check_head(last, Head(size=held.size, root=held.root))
        return last.leaves[held.size :]

    def _finish(self, reason: Literal["done", "rotated", "shutdown", "error"]) -> None:
        """End the open tasks and the log, in memory. Holds the lock."""
        for task in list(self._tasks):
            end = TaskEnd(outcome="failed" if reason == "error" else "cancelled")
            self._add(self._in_task(end, task), task)
        self._add(Close(entries=self._chain.entries + 1, reason=reason), None)

    @contextmanager
    def _broken_by_any_error(self) -> Iterator[None]:
        try:
            with _failures("the record cannot be written"):
                yield
        except BaseException:
            self._state = "broken"
            raise

    def _refuse_unless_open(self) -> None:
        if self._state == "broken":
            raise TraceUnavailable("the log broke off at an earlier error and takes no more records (I9)")
        if self._state == "closed":
            raise TraceUnavailable("the log is closed")

    def _random(self, size: int) -> bytes:
        """Return `size` random bytes; raise `TraceUnavailable` for fewer, or for the same as the last time.

        A source that is stuck would give two sends one id, and every commitment the same salt.
        """
        with _failures("the system gives no random bytes"):
            drawn: object = self._entropy.token(size)
        if not isinstance(drawn, bytes) or len(drawn) != size or drawn[:_ID_BYTES] == self._drawn:
            raise TraceUnavailable("the system's random bytes are too few, or repeat themselves")
        self._drawn = drawn[:_ID_BYTES]
        return drawn


def _refuse_ended(store: LogStore) -> None:
    """Raise `TraceError` for a book whose last log hands over to another device key: no log follows it."""
    if named_successor(store) is not None:
        raise TraceError("this book ended with its device key. Fix: finish it with `akaion keys rotate`")


def _refuse_late(now: int, before: int) -> None:
    if now >= before:
        raise TooLate("what lets this be written was over before it was")


@contextmanager
def _failures(what: str) -> Iterator[None]:
    """Translate what a port raises into `TraceUnavailable`: the name of the error, no path and no text."""
    try:
        yield
    except TraceError:
        raise
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "input/output error")
        raise TraceUnavailable(f"{what}: {reason}") from None
    except Exception as error:  # noqa: BLE001 - ports may raise anything, and none of it is repeated (I12)
        raise TraceUnavailable(f"{what}: {type(error).__name__}") from None
