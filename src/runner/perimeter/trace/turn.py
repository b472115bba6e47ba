# SPDX-License-Identifier: Apache-2.0
"""The right to write a log: one thread has it, and who waits for the same batch goes on at once.

Owns who writes and who is woken when. Knows nothing of records. Carries I7 on this side: whatever stops the
thread that writes, and at whichever place, the others do not wait for ever.
"""

import threading
import time
from collections.abc import Callable, Sequence


class Turn:
    """The turn of one thread to write; safe to use from several, not after a fork.

    None has to take a turn to learn that what it waits for is there: all who wait are woken at the end of a
    batch, look, and go on. So the next batch is of all that they write then, if whoever writes it first gives
    way to them.
    """

    __slots__ = ("_bells", "_has", "_lock", "_woken")

    def __init__(self) -> None:
        self._lock = threading.RLock()  # over the next two
        self._has: int | None = None  # the thread that writes
        self._bells: list[threading.Lock] = []  # of those who wait for it, each held until it is rung
        self._woken = 0  # how many of them there were at the end of the last batch

    def take(self, work: Callable[[], None], *, until: Callable[[], bool] = lambda: False) -> None:
        """Do `work` with the right to write; do nothing once `until` says so. Raises what they raise.

        Ctrl-C may come at any call, and must not leave the right with a thread that is done: what others wait
        for would never come. So it is taken and handed on in one `try`, and a lock is entered by its own
        `with` alone: that of a condition can be interrupted halfway.
        """
        thread = threading.get_ident()
        try:
            while not until():
                with self._lock:
                    if self._has in {None, thread}:
                        self._has = thread
                        break
                    bell = threading.Lock()
                    bell.acquire()
                    self._bells.append(bell)
                bell.acquire()
            else:
                return
            work()
        finally:
            try:
                self._hand_on(thread)
            except BaseException:
                self._hand_on(thread)
                raise

    def give_way(self, written: Callable[[], int]) -> None:
        """Let those write first whom the last batch woke, while they do.

        `written` says how much is to be written by now. What they wait for is in this batch then, and there
        is one batch where there would be two.
        """
        before = -1
        while before < (now := written()) <= self._woken:
            before = now
            time.sleep(0)

    def _hand_on(self, thread: int) -> None:
        """Give the right back if `thread` has it, and wake all who wait. May be done twice.

        They are woken before the lock is taken, so that none of them waits for that as well; then those who
        came in between.
        """
        if self._has == thread:
            self._woken = len(self._bells)
            _ring(self._bells[: self._woken])
            with self._lock:
                _ring(self._bells)
                self._bells = []
                self._has = None


def _ring(bells: Sequence[threading.Lock]) -> None:
    """Wake who waits at each of `bells`, and was not woken before."""
    for bell in bells:
        if bell.locked():
            bell.release()
