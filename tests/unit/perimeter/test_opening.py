# SPDX-License-Identifier: Apache-2.0
"""I4, I7: a task is opened with and without an event loop, and has its end on record however it ends."""

import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from runner.kernel.errors import ClassifierFault
from runner.kernel.labels import DataClass
from runner.perimeter.aside import HERE_UP_TO
from runner.testing import FakeClassifier, FakeFinding

pytestmark = pytest.mark.anyio
LONG = "island " * HERE_UP_TO


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Here(FakeClassifier):
    """Keeps the thread it was asked in."""

    def __init__(self) -> None:
        super().__init__({"island": DataClass.C2})
        self.threads: list[int] = []

    def classify(self, text: str, *, source: str | None = None) -> FakeFinding:
        self.threads.append(threading.get_ident())
        return super().classify(text[:6], source=source)


async def test_a_long_goal_is_read_aside_on_an_event_loop_and_labelled_all_the_same(make_world: Any) -> None:
    classifier = Here()
    world = make_world(classifier=classifier)
    async with world.perimeter.task(LONG) as task:
        assert task.goal.label.data_class is DataClass.C2
    assert len(classifier.threads) == 1
    assert classifier.threads[0] != threading.get_ident()


async def test_without_an_event_loop_it_is_read_in_place(make_world: Any) -> None:
    classifier = Here()
    with make_world(classifier=classifier).perimeter.task(LONG) as task:
        assert task.goal.label.data_class is DataClass.C2
    assert classifier.threads == [threading.get_ident()]


async def test_i4_a_task_ends_on_record_as_it_ended(make_world: Any) -> None:
    world = make_world()
    async with world.perimeter.task("one"):
        pass
    with pytest.raises(RuntimeError):
        async with world.perimeter.task("two"):
            raise RuntimeError
    with anyio.CancelScope() as scope:
        async with world.perimeter.task("three"):
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    async with world.perimeter.task("four") as task:
        task.outcome = "stopped"
    assert [each["outcome"] for each in world.records("task_end")] == [
        "done",
        "failed",
        "cancelled",
        "stopped",
    ]


async def test_i7_a_goal_that_cannot_be_classified_opens_nothing(make_world: Any) -> None:
    world = make_world(classifier=FakeClassifier(fault=RuntimeError("Rossi")))
    with pytest.raises(ClassifierFault) as fault:
        async with world.perimeter.task("Rossi"):
            pass
    assert "Rossi" not in str(fault.value)
    (start,), (end,) = world.records("task_start"), world.records("task_end")
    assert (start["class"], end["outcome"]) == ("C3", "failed"), "on record, as what nobody could read"
