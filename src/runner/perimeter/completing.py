# SPDX-License-Identifier: Apache-2.0
"""Work that changes something, and is waited for once it has begun.

Owns one guarantee: what began has ended, and is on record, before a cancellation is felt. Otherwise a file
would change after the record of its task was closed. Carries I4 and I9. Leaves the record to the work itself.
For tools of ours, which end soon: one of the program's own may hang, and a budget of time bounds it too.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.lowlevel

T = TypeVar("T")


async def to_its_end(work: Callable[[], Awaitable[T]]) -> T:
    """Return `await work()`; cancelled before that, nothing begins, and after that, it ends first.

    The work is a task of its own, since a scope alone does not keep off a cancellation by the event loop
    itself, such as that of Ctrl-C. Raises what `work` raises.
    """
    await anyio.lowlevel.checkpoint()
    returned: list[T] = []
    raised: list[Exception] = []

    async def shielded() -> None:
        with anyio.CancelScope(shield=True):
            try:
                returned.append(await work())
            except Exception as error:  # noqa: BLE001 - raised below, out of the group
                raised.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(shielded)
    if raised:
        raise raised[0]
    return returned[0]
