# SPDX-License-Identifier: Apache-2.0
"""Reading documents, as seen from outside the sandbox: the bytes go in, and what comes back is judged.

Owns starting the program, how much it may use, and what its answers may be. Leaves what a format says to
`parsing`. Carries P2 and I7: the program sees the interpreter, its own code and the bytes it is given,
and where no sandbox can be built nothing is read; and I12: an error is one of our own sentences.
"""

import json
import os
import signal
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Self

from runner.capability.documents.kinds import Family, family_of
from runner.capability.documents.port import Document, DocumentReader, Page
from runner.capability.documents.words import MISSING, Note, Reason, noted, why
from runner.capability.sandbox.interpreter import interpreter
from runner.capability.sandbox.port import GRANTED, Granted, Job, Limits, Ran, Talk, Talker
from runner.kernel.errors import SandboxUnavailable, ToolError

FILE_BYTES: Final = 64 << 20
"""Of one document."""
WALL_S: Final = 60.0
"""Seconds on the clock for one document. Its bound on the processor's time is the program's: see `child`."""
FILES_AT_ONCE: Final = 500
"""Documents that one program reads before it is replaced."""
LIMITS: Final = Limits(
    wall_s=WALL_S,
    cpu_s=3_600,
    memory_bytes=512 << 20,
    open_files=32,
    file_bytes=0,
    scratch_bytes=4096,
    output_bytes=20 << 20,
)
"""What the program may use; `cpu_s` is for all the documents that it reads."""
KINDS: Final = frozenset({"pdf", "docx", "odt", "xlsx", "eml", "html", "rtf", "p7m"})
_OUT_OF_TIME: Final = 128 + signal.SIGXCPU
_NO_START: Final = (
    "the program that reads documents does not start in its sandbox, so nothing is read. Fix: use a Python"
    " whose standard library lies in one folder, such as the system's"
)
_HERE: Final = Path(__file__).parent
_MAIN: Final = _HERE / "parsing" / "__main__.py"


class Documents:
    """The reader: each document is taken apart by a program that `talker` starts.

    `main` is the file which that program begins with.
    """

    def __init__(self, talker: Talker, *, main: Path = _MAIN) -> None:
        self._talker = talker
        self._main = main

    def read(self, data: bytes, *, name: str) -> Document:
        """Return what `data` says; raise `ToolError`."""
        with self.many() as reader:
            return reader.read(data, name=name)

    def many(self) -> AbstractContextManager[DocumentReader]:
        """Return a reader for many files in a row."""
        return _Row(self._talk)

    @contextmanager
    def _talk(self) -> Iterator[Talk]:
        """Start the program, and see that it answers; raise `SandboxUnavailable` when it does not."""
        python = interpreter()
        shown = {
            "__main__.py": self._main,
            "runner/capability/documents": _HERE,
            "pypdf": Path(sysconfig.get_path("purelib"), "pypdf"),
        }
        with ExitStack() as stack:
            job = Job(
                program=python.program,
                arguments=("-I", "-S", "-B", "."),
                granted=[stack.enter_context(_opened(alias, path)) for alias, path in shown.items()],
                folder=GRANTED,
                data=python.data,
                hidden=python.hidden,
                limits=LIMITS,
            )
            talk = stack.enter_context(self._talker.talk(job))
            if isinstance(talk.ask(b"", wall_s=WALL_S), Ran):
                raise SandboxUnavailable(_NO_START)
            yield talk


class _Row:
    """Reads one file after another with one program, and with a new one after any that failed."""

    def __init__(self, start: Callable[[], AbstractContextManager[Talk]]) -> None:
        self._start = start
        self._running = ExitStack()
        self._talk: Talk | None = None
        self._files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def read(self, data: bytes, *, name: str) -> Document:  # noqa: ARG002 - a file's name says nothing
        """Return what `data` says; raise `ToolError`."""
        check(data)
        if self._talk is None or self._files >= FILES_AT_ONCE:
            self._end()
            self._talk = self._running.enter_context(self._start())
        self._files += 1
        try:
            return _document(self._talk.ask(data, wall_s=WALL_S))
        except BaseException:
            self._end()
            raise

    def many(self) -> AbstractContextManager[DocumentReader]:
        """Return another such reader."""
        return _Row(self._start)

    def _end(self) -> None:
        self._talk, self._files = None, 0
        self._running.close()


def check(data: bytes) -> None:
    """Raise `ToolError` for what needs no program to be refused."""
    if len(data) > FILE_BYTES:
        raise ToolError(f"that document is larger than {FILE_BYTES:,} bytes and is not read")
    match family_of(data):
        case Reason() as reason:
            raise ToolError(why(reason))
        case Family.TEXT | Family.XML:
            raise ToolError(why(Reason.PLAIN))
        case _:
            return


def _document(answer: bytes | Ran) -> Document:
    """Return the document that the program answered with; raise `ToolError` for any other answer."""
    if isinstance(answer, Ran):
        late = answer.late or answer.status == _OUT_OF_TIME
        reason = Reason.TOO_LONG if late else Reason.TOO_BIG if answer.cut else Reason.BROKEN
        raise ToolError(why(reason))
    try:
        return parse_answer(json.loads(answer))
    except (ValueError, RecursionError):
        raise ToolError(why(Reason.BROKEN)) from None


def parse_answer(said: Any) -> Document:  # noqa: ANN401 - parse step: untrusted data
    """Return the document in `said`, an answer read from JSON.

    Raises `ToolError` for an answer that is an error, and `ValueError` for what is no answer.
    """
    match said:
        case {"error": str(reason), **rest} if not rest:
            raise ToolError(why(Reason(reason)))
        case {"kind": str(kind), "pages": [*pages], "notes": dict(notes), **rest} if (
            not rest and kind in KINDS
        ):
            said_of = {Note(name): _note(name, count) for name, count in notes.items()}
            return Document(
                kind=kind,
                pages=tuple(Page(number=at, lines=_lines(page)) for at, page in enumerate(pages, start=1)),
                notes=tuple(said_of.values()),
                missing=tuple(text for note, text in said_of.items() if note in MISSING),
            )
        case _:
            raise ValueError("no answer")


def _lines(page: Any) -> tuple[str, ...]:  # noqa: ANN401 - parse step: untrusted data
    if not isinstance(page, list) or not all(map(_is_line, page)):
        raise ValueError("no lines")
    return tuple(page)


def _is_line(line: object) -> bool:
    return isinstance(line, str) and "\n" not in line and "\r" not in line and _is_whole(line)


def _is_whole(line: str) -> bool:
    """Return whether `line` can be written as UTF-8: it holds no half of a character."""
    return line.isascii() or not any("\ud800" <= character <= "\udfff" for character in line)


def _note(name: str, count: object) -> str:
    if not isinstance(count, int):
        raise ValueError("no count")  # noqa: TRY004 - a parse step raises one error
    return noted(Note(name), count)


@contextmanager
def _opened(alias: str, path: Path) -> Iterator[Granted]:
    """Yield a handle of our own file or folder `path`; raise `ToolError`."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        raise ToolError(
            "the reader of documents is not installed whole. Fix: install the runner again"
        ) from None
    try:
        yield Granted(alias=alias, path=str(path), handle=handle)
    finally:
        os.close(handle)
