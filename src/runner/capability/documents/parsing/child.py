# SPDX-License-Identifier: Apache-2.0
"""The program in the sandbox: a document comes in, its pages go out, and the next one comes.

Owns the conversation: each message is its length (8 bytes, big-endian) and so many bytes. A document
comes as it is; the answer is JSON, either `kind`, `pages` and `notes`, or `error`, a member of
`words.Reason`. Whatever a parser raises is one of those: nothing that a document says is in an error
(I12).
"""

import json
import logging
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable
from io import FileIO
from typing import Final

from runner.capability.documents.parsing.document import read_into
from runner.capability.documents.parsing.draft import Draft, Full, Unreadable
from runner.capability.documents.words import Note, Reason

CPU_S: Final = 20
"""Seconds of processor that one document may take."""
LENGTH: Final = 8


def main(read: Callable[[bytes, Draft], None] = read_into) -> None:
    """Answer for each document on standard input until there is none."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    source, sink = FileIO(0, "r"), FileIO(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    while (data := _message(source)) is not None:
        _allow_time()
        answer = json.dumps(answer_to(data, read), ensure_ascii=False).encode("utf-8", "replace")
        _write(sink, len(answer).to_bytes(LENGTH, "big") + answer)


def answer_to(data: bytes, read: Callable[[bytes, Draft], None] = read_into) -> dict[str, object]:
    """Return what is answered for the document `data`."""
    started = time.process_time()
    draft = Draft(lambda: time.process_time() - started)
    try:
        read(data, draft)
    except Full:
        draft.note(Note.REST)
    except Unreadable as problem:
        return {"error": problem.reason}
    except MemoryError:
        return {"error": Reason.TOO_BIG}
    except RecursionError:
        return {"error": Reason.TOO_DEEP}
    except Exception:  # noqa: BLE001 - whatever a broken file does to a parser (I12)
        return {"error": Reason.BROKEN}
    return {"kind": draft.kind, "pages": [_trimmed(page) for page in draft.pages], "notes": dict(draft.notes)}


def _trimmed(page: list[str]) -> list[str]:
    """Return `page` without its empty last lines."""
    while page and not page[-1]:
        page.pop()
    return page


def _allow_time() -> None:
    """Bound what the next document may take of the processor; the kernel ends this program at it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used.ru_utime + used.ru_stime) + CPU_S
    resource.setrlimit(
        resource.RLIMIT_CPU, (soft if most == resource.RLIM_INFINITY else min(soft, most), most)
    )
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)


def _message(source: FileIO) -> bytes | None:
    length = _exactly(source, LENGTH)
    if len(length) < LENGTH:
        return None
    return bytes(_exactly(source, int.from_bytes(length, "big")))


def _exactly(source: FileIO, size: int) -> bytearray:
    found = bytearray()
    while len(found) < size and (piece := source.read(min(1 << 20, size - len(found)))):
        found += piece
    return found


def _write(sink: FileIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[sink.write(rest) or 0 :]
