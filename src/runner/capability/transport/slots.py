# SPDX-License-Identifier: Apache-2.0
"""A small value kept in a file of two slots, which are overwritten in turn: one sync keeps it, and no rename.

Owns the bytes of such a file; leaves writing and syncing it to `logstore`. The newest slot is never the one
that is written to, so whatever becomes of a write, the value before it is still there. A slot says by its
digest whether it is whole. Each lies in a block of its own, for a disk writes and loses blocks.
"""

from hashlib import sha256
from typing import Final

SLOT: Final = 4096
"""The bytes of a slot: a block of today's file systems, and a sector of today's disks."""
SLOTS: Final = 2


def encode_slot(number: int, value: bytes) -> bytes:
    """Return the slot, `SLOT` bytes, of the `number`-th value, from 0. It belongs at `offset_of(number)`.

    Raises `ValueError` for a value that is too long. One does not end with a zero byte.
    """
    slot = b"%s %d %s" % (_digest(number, value), number, value)
    if len(slot) > SLOT - 1:
        raise ValueError("the value does not fit into a slot")
    return slot + bytes(SLOT - len(slot))


def offset_of(number: int) -> int:
    """Return where in the file the `number`-th value stands."""
    return number % SLOTS * SLOT


def newest(data: bytes) -> tuple[int, bytes] | None:
    """Return number and value of the newest whole slot in the file `data`; None if there is none."""
    found = [_parse(data[at : at + SLOT]) for at in range(0, SLOTS * SLOT, SLOT)]
    whole = [each for at, each in enumerate(found) if each is not None and each[0] % SLOTS == at]
    return max(whole, default=None)


def _parse(slot: bytes) -> tuple[int, bytes] | None:
    digest, _, rest = slot.rstrip(b"\0").partition(b" ")
    number, _, value = rest.partition(b" ")
    if len(slot) != SLOT or not number.isdigit() or digest != _digest(int(number), value):
        return None
    return int(number), value


def _digest(number: int, value: bytes) -> bytes:
    return sha256(b"%d %s" % (number, value)).hexdigest().encode("ascii")
