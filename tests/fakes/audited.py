# SPDX-License-Identifier: Apache-2.0
"""What an auditor says of a book that a test holds in memory."""

import tempfile
from pathlib import Path
from typing import Any

import akaion_verify

from runner.perimeter.trace.note import vkey
from runner.testing import MemoryLogStore, MemorySigner


def report_of(store: MemoryLogStore) -> dict[str, Any]:
    """Return the verifier's report on what of `store` is on its disk, with its device key pinned."""
    with tempfile.TemporaryDirectory() as folder:
        book, pin = Path(folder) / "book", Path(folder) / "pin"
        book.mkdir()
        for name, log in store.files.items():
            (book / name).write_bytes(log.durable)
        pin.write_text(vkey("test/book/device", MemorySigner().public_key))
        report: dict[str, Any] = akaion_verify.verify(book, pin)
        return report
