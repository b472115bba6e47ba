# SPDX-License-Identifier: Apache-2.0
"""The opening and closing of a task, for those who wait and for those who must not.

Owns that a task is closed on record however it ends, and that on an event loop a long goal is read aside.
Leaves what a task is to `task.py`. Carries I4: what was opened has its end.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from types import TracebackType
from typing import final

from runner.kernel.errors import TraceUnavailable, bare, raises_bare
from runner.kernel.labels import DataClass
from runner.perimeter.aside import aside
from runner.perimeter.task import Examined, Task


@final
class Opening(AbstractContextManager[Task, None], AbstractAsyncContextManager[Task, None]):
    """A task to be opened, once: by `with`, or on an event loop by `async with`.

    Both raise what opening it raises. `with` reads the goal at once, whatever its length; `async with` reads
    a long one in a worker thread, so that nobody else waits for it.
    """

    __slots__ = ("_examine", "_goal", "_open", "_task")

    def __init__(
        self, goal: str, examine: Callable[[str], Examined], open_task: Callable[[str, Examined], Task]
    ) -> None:
        """Do nothing yet: `examine` reads the goal, and `open_task` puts the task on record."""
        self._goal = goal
        self._examine = examine
        self._open = open_task
        self._task: Task | None = None

    def __enter__(self) -> Task:
        """Open the task. What is raised shows no frame that holds the goal (I12)."""
        try:
            return self._entered()
        except Exception as error:  # noqa: BLE001 - whatever it is, the frames it passed stay here
            raise bare(error) from None

    def _entered(self) -> Task:
        try:
            examined = self._examine(self._goal)
        except BaseException as error:
            self._failed(error)
            raise
        return self._opened(examined)

    @raises_bare
    async def __aenter__(self) -> Task:
        """Open the task."""
        try:
            examined = await aside(partial(self._examine, self._goal), size=len(self._goal))
        except BaseException as error:
            self._failed(error)
            raise
        return self._opened(examined)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close it on record, with its own outcome or as what the exception says."""
        if self._task is None:
            return
        if error is None:
            self._task.end(self._task.outcome)
            return
        try:
            self._task.end("failed" if isinstance(error, Exception) else "cancelled")
        except TraceUnavailable:
            if not isinstance(error, TraceUnavailable):
                raise  # else the first of the two goes on, and says why

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close it as `__exit__` does: the end is on disk before anything else happens."""
        self.__exit__(kind, error, where)

    def _failed(self, error: BaseException) -> None:
        """Put a goal that could not be read on record: a task that counts as C3, and ends at once."""
        unread = Examined(text=self._goal, echoed=DataClass.C0, detected=DataClass.C3)
        self._opened(unread)
        self.__exit__(type(error), error, None)

    def _opened(self, examined: Examined) -> Task:
        self._task = self._open(self._goal, examined)
        return self._task
