# SPDX-License-Identifier: Apache-2.0
"""Work that is cancelled at one of its awaits, so that a test can try each of them."""

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any


class Cancelled:
    """Awaits `inner` and calls `cancel` at the await number `at`; says whether it came that far."""

    def __init__(self, inner: Coroutine[Any, Any, object], cancel: Callable[[], object], at: int) -> None:
        self.inner, self.cancel, self.at, self.came = inner, cancel, at, False

    def __await__(self) -> Generator[Any, Any, object]:
        awaiting, number = self.inner.__await__(), 0
        step: Callable[[], Any] = partial(awaiting.send, None)
        while True:
            try:
                waited = step()
            except StopIteration as done:
                return done.value
            if number == self.at:
                self.came = True
                self.cancel()
            number += 1
            try:
                step = partial(awaiting.send, (yield waited))
            except BaseException as error:  # noqa: BLE001 - handed on, as `yield from` would
                step = partial(awaiting.throw, error)
