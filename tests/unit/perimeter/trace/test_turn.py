# SPDX-License-Identifier: Apache-2.0
"""I7: one thread writes, all who wait for it go on at its end, and the next batch is of all of them."""

import threading
from collections.abc import Callable, Iterator

import pytest

from runner.perimeter.trace import turn as turn_module
from runner.perimeter.trace.turn import Turn

OTHERS = 3


class Waiting:
    """Other threads that wait while the first one writes, until what they wait for is there."""

    def __init__(self, turn: Turn) -> None:
        self.turn, self.there, self.works = turn, threading.Event(), list[int]()
        self.threads = [threading.Thread(target=self.wait, daemon=True) for _ in range(OTHERS)]

    def wait(self) -> None:
        self.turn.take(self.work, until=self.there.is_set)

    def work(self) -> None:
        self.works.append(threading.get_ident())
        self.there.set()

    def come(self) -> None:
        for thread in self.threads:
            thread.start()
        while len(self.turn._bells) < OTHERS:  # nothing else tells that a thread waits
            assert all(thread.is_alive() for thread in self.threads)

    def served(self) -> None:
        self.come()
        self.there.set()

    def end(self) -> None:
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive()


def test_all_who_wait_for_one_batch_go_on_at_its_end_and_write_nothing() -> None:
    others = Waiting(turn := Turn())
    turn.take(others.served)
    others.end()
    assert others.works == []


def test_one_of_those_whom_a_batch_came_too_early_for_writes_the_next_for_all() -> None:
    others = Waiting(turn := Turn())
    turn.take(others.come)
    others.end()
    assert len(others.works) == 1


def counting(written: Iterator[int], asked: list[int]) -> Callable[[], int]:
    """Return what answers as `written` says, and counts."""

    def count() -> int:
        asked.append(1)
        return next(written)

    return count


@pytest.mark.parametrize(
    ("written", "asked"),
    [((1, 2, 2), 3), ((1, 2, 3, 4, 5), 4), ((4, 5), 1), ((1, 1), 2)],
    ids=["some do not write", "all have written", "more have written", "none of them writes"],
)
def test_a_batch_waits_for_those_whom_the_last_one_woke_while_they_write(
    written: tuple[int, ...], asked: int
) -> None:
    others, calls = Waiting(turn := Turn()), list[int]()
    turn.take(others.served)
    others.end()
    turn.take(lambda: turn.give_way(counting(iter(written), calls)))
    assert len(calls) == asked


def test_a_batch_after_which_nobody_waited_is_followed_by_one_that_waits_for_nobody() -> None:
    turn, calls = Turn(), list[int]()
    turn.take(lambda: None)
    turn.take(lambda: turn.give_way(counting(iter((1, 2)), calls)))
    assert len(calls) == 1


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_i7_an_error_of_who_writes_wakes_all_who_wait(error: type[BaseException]) -> None:
    others = Waiting(turn := Turn())

    def broken() -> None:
        others.come()
        raise error

    with pytest.raises(error):
        turn.take(broken)
    others.end()
    assert len(others.works) == 1


def test_i7_who_comes_while_others_are_woken_is_woken_too(monkeypatch: pytest.MonkeyPatch) -> None:
    others, ring = Waiting(turn := Turn()), turn_module._ring

    def others_come(bells: list[threading.Lock]) -> None:
        ring(bells)
        monkeypatch.undo()
        others.come()

    monkeypatch.setattr(turn_module, "_ring", others_come)
    turn.take(lambda: None)
    others.end()
    assert len(others.works) == 1
