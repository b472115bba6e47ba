# SPDX-License-Identifier: Apache-2.0
"""Every exception the runner raises.

    RunnerError
    ├── ConfigError            a profile is wrong: lists every mistake with file, line and fix
    ├── PerimeterError
    │   ├── SealError          a sealed object was made, copied or subclassed outside the perimeter
    │   ├── EgressDenied       release() answered Denied
    │   ├── ClassifierFault    content could not be classified: the step fails (I7)
    │   └── MediaError         media are named and not there, or cannot be judged
    ├── TraceError             the record or what belongs to it is not what it should be: the step fails (I9)
    │   └── TraceUnavailable   there is no record to write to, such as on a full disk: nothing goes on
    ├── BackendError           a runtime refused, broke off, or answered nonsense
    │   ├── RequestRefused     the runtime answered a status that says no
    │   └── ReplyInvalid       a reply is not what was asked for: truncated, not of its schema, no call
    ├── TransportError         bytes could not be sent or received
    │   └── Redirected         the server named another address; nothing was sent there
    ├── ToolError              a tool ran and failed; its message is safe to show to the model
    │   └── SandboxUnavailable no sandbox can be built here, so no program was started
    ├── ModelError             weights are missing, corrupt, or cannot be fetched
    └── LoopError              the agent loop was misused

Messages name the rule, the field and the fix. They never quote content, and foreign exceptions are
translated where they enter and not quoted, since their texts echo payloads (I12).
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from runner.kernel.labels import DataClass
from runner.kernel.tiers import CallFailure

ExceptionT = TypeVar("ExceptionT", bound=BaseException)
P = ParamSpec("P")
T = TypeVar("T")


class RunnerError(Exception):
    """Root of everything the runner raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One mistake in a file: `line` from 1 (0: unknown), `where` the dotted field, `fix` what to do."""

    file: str
    line: int
    where: str
    problem: str
    fix: str

    def __str__(self) -> str:
        """Return `file:line: where: problem (fix)`."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        where = f" {self.where}:" if self.where else ""
        return f"{place}:{where} {self.problem}. Fix: {self.fix}"


class ConfigError(RunnerError):
    """A profile cannot be used. `mistakes` holds all of them at once."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


class PerimeterError(RunnerError):
    """Root of what the perimeter refuses."""


class SealError(PerimeterError):
    """Something cannot be sealed, or a sealed object was made, copied or subclassed outside the perimeter."""


class EgressDenied(PerimeterError):
    """`release()` denied a request. Carries the rule and the class, never the content."""

    def __init__(self, *, backend: str, reason: str, data_class: DataClass) -> None:
        self.backend = backend
        self.reason = reason
        self.data_class = data_class
        super().__init__(f"egress to backend {backend!r} denied: {reason} (class {data_class.name})")


class ClassifierFault(PerimeterError):
    """A classifier failed on content; what it said is not repeated."""


class MediaError(PerimeterError):
    """Media are a path or an address instead of bytes, or bytes that cannot be taken as they are."""


class TraceError(RunnerError):
    """The record could not be opened, written, sealed or synced."""


class TraceUnavailable(TraceError):
    """There is no record to write to: a disk, a lock, a key or the system's randomness failed.

    Nothing further runs or leaves (I9). What was written before stays as it is, and the next run accounts for
    it. The message names the failure and no path.
    """


class BackendError(RunnerError):
    """A runtime refused a request, broke off, or answered something that is not its protocol."""


class RequestRefused(BackendError):
    """A runtime answered a request with the error `status` (as in HTTP), whole or in mid-stream."""

    def __init__(self, message: str, *, status: int) -> None:
        self.status = status
        super().__init__(message)


class ReplyInvalid(BackendError):
    """A reply is not what was asked for: it is truncated, does not fit its schema, or holds no call.

    `failure` is its class, None for a batch of vectors; `where` says, in our words, where it was
    seen.
    """

    def __init__(self, message: str, *, failure: CallFailure | None = None, where: str = "") -> None:
        self.failure = failure
        self.where = where
        super().__init__(message if failure is None else f"{failure.value}: {message}")


class TransportError(RunnerError):
    """Bytes could not be sent or received: refused, timed out, redirected."""


class Redirected(TransportError):
    """The server answered with a redirect. It was not followed: nobody judged the other address."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"the server answered {status}: redirects are not followed")


class ToolError(RunnerError):
    """A tool ran and failed. The message is written by the tool for the model to read."""


class SandboxUnavailable(ToolError):
    """No sandbox can be built here, so no program was started. The message names the reason and the fix."""


class ModelError(RunnerError):
    """Model weights are missing, corrupt, or cannot be fetched."""


class LoopError(RunnerError):
    """The agent loop was called in a way it does not support."""


def bare(error: ExceptionT) -> ExceptionT:
    """Return `error` without its traceback and without what it came from, for a caller outside.

    The frames it passed hold prompts, replies and files as local variables, and what it came from quotes
    them: a debugger, an error tracker or a traceback with locals would show them (I12). Where it was raised
    stands in a note. Raise what this returns `from None`.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None and not hasattr(error, "__notes__"):
        place = trace.tb_frame.f_code
        error.add_note(f"raised in {place.co_filename.rpartition('runner')[2] or '?'}:{trace.tb_lineno}")
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def raises_bare(work: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return `work`, raising what it raises bare: for what a program outside calls. See `bare`."""

    @wraps(work)
    async def seam(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await work(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it is, the frames it passed stay here
            raised = bare(error)
        del args, kwargs  # what it was given shows in no frame either, its own included
        raise raised from None

    return seam


def raises_bare_here(work: Callable[P, T]) -> Callable[P, T]:
    """Return `work`, which awaits nothing, raising what it raises bare. See `raises_bare`."""

    @wraps(work)
    def seam(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return work(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - as above
            raised = bare(error)
        del args, kwargs
        raise raised from None

    return seam
