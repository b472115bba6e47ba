# SPDX-License-Identifier: Apache-2.0
"""Work on texts of any size, without making the event loop wait for it.

Owns one decision: here, or in a worker thread. Others choose how long a text is, and reading it takes time
in proportion: on the event loop, no deadline would count meanwhile. Leaves the record to the caller, which
writes it when the work is done. So the work puts nothing on record, and may be abandoned.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import anyio
import anyio.to_thread

HERE_UP_TO: Final = 1024
"""Characters that are read at once: a few milliseconds, or some tens where somebody meant them to be slow."""

T = TypeVar("T")


async def in_time(work: Callable[[], T], *, seconds: float, late: T) -> T:
    """Return `work()`, done in a worker thread; `late` if that takes more than `seconds`.

    A thread cannot be stopped: one that hangs is left behind, and what it says later is not heard (I7).
    """
    try:
        with anyio.fail_after(seconds):
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except TimeoutError:
        return late


async def aside(work: Callable[[], T], *, size: int) -> T:
    """Return `work()`, which reads `size` characters; a long one in a worker thread.

    Cancelled, it leaves that thread to end by itself and its result unused. Raises what `work` raises.
    """
    if size <= HERE_UP_TO:
        return work()
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
