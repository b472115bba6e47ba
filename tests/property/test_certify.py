# SPDX-License-Identifier: Apache-2.0
"""I4: whatever happens to the runtime's disk, a signer certifies only what goes on from its newest state."""

from beside import BOOK, Beside
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.kernel.errors import TraceError
from runner.kernel.labels import DataClass
from runner.perimeter.trace import records as r
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.testing import (
    FixedEntropy,
    FrozenClock,
    MemoryLogFile,
    MemoryLogStore,
    MemorySaltStore,
    header_words,
)

Disk = tuple[dict[str, bytes], bytes | None]


class Machine:
    """A book on a disk that can be copied and put back, and the signer, which cannot."""

    def __init__(self) -> None:
        self.store, self.salts, self.clock = MemoryLogStore(), MemorySaltStore(), FrozenClock()
        self.entropy, self.signer = FixedEntropy(), Beside()
        self.newest = self.disk()

    def disk(self) -> Disk:
        return {name: log.data for name, log in self.store.files.items()}, self.store.pin

    def put_back(self, disk: Disk) -> None:
        self.store.files = {name: MemoryLogFile(data=data, durable=data) for name, data in disk[0].items()}
        self.store.pin = disk[1]

    def run(self, tasks: int, *, closed: bool) -> bool:
        """One run of so many tasks, closed or broken off; say whether it got a log."""
        try:
            trace = self.open()
        except TraceError:
            return False
        for _ in range(tasks):
            task = trace.mint_id()
            start = r.TaskStart(goal_commit=trace.commit(b"goal"), data_class=DataClass.C1)
            trace.append(start, task=task)
            trace.append(r.TaskEnd(outcome="done"), task=task)
            trace.barrier()
        if closed:
            trace.close()
        else:
            self.store.release()
        self.newest = self.disk()
        return True

    def open(self) -> Trace:
        facts = HeaderFacts(**header_words(book=BOOK))
        return Trace.open(
            store=self.store,
            signer=self.signer,
            salts=self.salts,
            clock=self.clock,
            entropy=self.entropy,
            facts=facts,
        )


MOVES = st.one_of(
    st.tuples(st.just("run"), st.integers(0, 3)),
    st.tuples(st.just("break off"), st.integers(0, 3)),
    st.tuples(st.just("put back"), st.integers(0, 5)),
    st.tuples(st.just("restart the signer"), st.just(0)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(MOVES, max_size=12))
def test_i4_a_log_is_certified_exactly_where_the_disk_is_the_newest(moves: list[tuple[str, int]]) -> None:
    """Neither too much nor too little: an honest machine is never refused, an older disk always is."""
    machine = Machine()
    copies = [machine.disk()]
    for move, number in moves:
        if move == "put back":
            machine.put_back(copies[-1 - number % len(copies)])
        elif move == "restart the signer":
            machine.signer.restart()
        else:
            honest = machine.disk() == machine.newest
            assert machine.run(number, closed=move == "run") == honest
            copies.append(machine.disk())
