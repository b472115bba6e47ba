# SPDX-License-Identifier: Apache-2.0
"""The in-process transport: llama.cpp in this process, behind the port that HTTP has.

Owns the engine (the optional package `xllamacpp`): loading, one request at a time, and stopping it. Where
that is not installed and `llama-cpp-python` is, `child` runs that one in a process of its own. Leaves what is
asked and what the answer means to the `embedded` codec. Carries P1, since nothing leaves the process and its
child, and grade L2 of I10.

The engine insists on listening somewhere. On POSIX systems that is a Unix socket in a private folder, which
is deleted as soon as the model is loaded, so that nobody can connect; elsewhere a loopback port. In both
cases a random key, told to nobody, guards it. The engine's log is off: it would quote prompts (I12).
"""

import json
import os
import secrets
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Protocol, Self

import anyio.to_thread

from runner.capability.transport.child import ChildEngine, start_llama
from runner.kernel.errors import ModelError, RunnerError, TransportError
from runner.kernel.inference import WireReply, WireRequest
from runner.kernel.ports import Credential

Progress = Callable[[str], None]
"""Called with "loading" before and "ready" after the weights are read."""

PROMPT_BATCH: Final = 64
"""Tokens between two moments at which a prompt can be abandoned: about a second with a 1.5B model."""
_SECOND: Final = "llama-cpp-python"
_CPUS: Final = Path("/sys/devices/system/cpu")


class Engine(Protocol):
    """What answers: `xllamacpp.Server`, or a child process."""

    def handle_chat_completions(self, text: str, take: Callable[[str], bool], /) -> None:
        """Answer `text`, passing each JSON text of the reply to `take` until that says True."""


class EngineTransport:
    """An embedded llama.cpp engine. Implements `Transport` for `inproc` addresses.

    `model_path` names GGUF weights, `context` is in tokens, `threads` 0 means one per physical core. The
    weights are read on first use, or by `load()`. Requests are answered one at a time, in order.
    """

    def __init__(self, model_path: Path | str, context: int = 4096, threads: int = 0) -> None:
        self._model_path = Path(model_path)
        self._context = context
        self._threads = threads or physical_cores()
        self._busy = threading.Lock()
        self._engine: Engine | None = None
        self._closed = False

    def load(self, progress: Progress | None = None) -> None:
        """Read the weights now, in this thread, unless they are. Blocks for seconds.

        Raises `ModelError` when the engine is not installed, or the weights are missing or unusable.
        """
        with self._busy:
            self._loaded(progress)

    def close(self) -> None:
        """Free the weights, after waiting for a generation that is still being stopped. Repeatable."""
        with self._busy:
            self._closed = True
            if isinstance(self._engine, ChildEngine):
                self._engine.close()
            self._engine = None

    @asynccontextmanager
    async def open(self, wire: WireRequest, *, credential: Credential | None) -> AsyncIterator[WireReply]:
        """Ask the engine and yield its reply. Leaving the context stops the generation.

        A `credential` is ignored: there is nobody to show it to. What is got from `/props` is said without
        reading the weights. Raises `TransportError` for an address that is not `inproc`, and `ModelError` as
        `load()` does.
        """
        del credential
        if wire.address.scheme != "inproc":
            raise TransportError(f"{wire.address} is not the embedded engine")
        if (wire.method, wire.path) == ("GET", "/props"):
            yield WireReply(status=200, chunks=_once(json.dumps(self._props()).encode()))
            return
        job = _Job(wire.body)
        threading.Thread(target=self._serve, args=(job,), name="akaion-engine").start()
        try:
            first = await job.next_item()
            yield WireReply(status=_status(first), chunks=_Frames(job, first))
        finally:
            job.cancelled.set()

    def _props(self) -> dict[str, str | int]:
        """Return what this engine is: its version, a mark of its weights, its context.

        The mark changes with the file: which one it is, its size and when it was written. "" for no file.
        """
        try:
            seen = self._model_path.stat()
            mark = f"{self._model_path.name} {seen.st_dev} {seen.st_ino} {seen.st_size} {seen.st_mtime_ns}"
            weights = sha256(os.fsencode(mark)).hexdigest()
        except OSError:
            weights = ""
        return {"build": _version(), "weights": weights, "context": self._context}

    def _serve(self, job: "_Job") -> None:
        """Run one job to its end in a worker thread, whatever happens."""
        failure: RunnerError | None = None
        try:
            with self._busy:
                if not job.cancelled.is_set():
                    self._loaded(None).handle_chat_completions(job.text, job.take)
        except RunnerError as error:
            failure = error
        except ValueError:
            job.take(_refusal(400))
        except Exception:  # noqa: BLE001 - the engine's errors are translated here; their texts quote prompts
            job.take(_refusal(500))
        finally:
            job.items.put(failure)

    def _loaded(self, progress: Progress | None) -> Engine:
        """Return the engine, loading it if need be. The caller holds the lock."""
        if self._closed:
            raise TransportError("the embedded engine is closed")
        if self._engine is None:
            tell = progress or (lambda _: None)
            tell("loading")
            self._engine = _start(self._model_path, self._context, self._threads)
            tell("ready")
        return self._engine


class _Job:
    """One request on its way through the worker thread: the reply's JSON texts, then None or the failure."""

    def __init__(self, body: bytes) -> None:
        self.text = body.decode("utf-8")
        self.stream = json.loads(body).get("stream") is True
        self.items: SimpleQueue[str | RunnerError | None] = SimpleQueue()
        self.cancelled = threading.Event()

    def take(self, text: str) -> bool:
        """Take one JSON text from the engine; return True to stop it."""
        self.items.put(text)
        return self.cancelled.is_set()

    async def next_item(self) -> str | None:
        """Return the next JSON text, None at the end. Cancelled, its thread waits on for the job to end."""
        item = await anyio.to_thread.run_sync(self.items.get, abandon_on_cancel=True)
        if isinstance(item, RunnerError):
            raise item
        return item


class _Frames:
    """The body bytes that llama-server would send for a job."""

    def __init__(self, job: _Job, first: str | None) -> None:
        self._job = job
        self._first: str | None = first
        self._ended = first is None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._ended:
            raise StopAsyncIteration
        text, self._first = self._first, None
        if text is None:
            text = await self._job.next_item()
        if text is not None:
            return f"data: {text}\n\n".encode() if self._job.stream else text.encode()
        self._ended = True
        if self._job.stream:
            return b"data: [DONE]\n\n"
        raise StopAsyncIteration


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _version() -> str:
    """Return name and version of the engine that is installed, "" without one."""
    for name in ("xllamacpp", _SECOND):
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return ""


def _refusal(status: int) -> str:
    return json.dumps({"error": {"code": status}})


def _status(first: str | None) -> int:
    """Return the HTTP status that goes with the first JSON text of a reply."""
    members = {"error": {}} if first is None else json.loads(first)
    if "error" not in members:
        return 200
    code = members["error"].get("code")
    return code if isinstance(code, int) else 500


def _start(model_path: Path, context: int, threads: int) -> Engine:
    """Return the engine that is installed, loaded; raise `ModelError`."""
    try:
        import xllamacpp  # noqa: PLC0415 - optional: imported when an engine is wanted
    except ImportError:
        if not _version().startswith(_SECOND):  # it is imported in the child only
            raise ModelError(
                "the embedded engine is not installed. Fix: pip install 'akaion-runner[embedded]'"
            ) from None
        _check_weights(model_path)
        return start_llama(model_path, context=context, threads=threads, batch=PROMPT_BATCH)
    _check_weights(model_path)
    params = xllamacpp.CommonParams()
    params.model.path = str(model_path)
    params.n_ctx, params.fit_params = context, False
    params.n_parallel, params.n_batch, params.n_ubatch = 1, PROMPT_BATCH, PROMPT_BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = 0  # prompts of one matter are not kept beside those of another
    params.verbosity, params.offline, params.ui, params.endpoint_slots = -1, True, False, False
    params.n_threads_http, params.api_keys = 1, [secrets.token_hex(32)]
    with tempfile.TemporaryDirectory(prefix="akaion-") as folder:
        if os.name == "posix":
            params.hostnames = [f"{folder}/engine.sock"]
        try:
            server: Engine = xllamacpp.Server(params)
        except (RuntimeError, ValueError):
            raise ModelError(
                f"the engine cannot use the weights at {model_path} with a context of {context} tokens. "
                "Fix: akaion models verify, or a smaller inference.local.context"
            ) from None
    return server


def _check_weights(model_path: Path) -> None:
    if not model_path.is_file():
        raise ModelError(
            f"there are no weights at {model_path}. Fix: fetch them, or correct inference.local.model"
        )


def physical_cores() -> int:
    """Return how many physical cores this process may use; logical ones where the system does not say."""
    usable = (
        sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    )
    try:
        siblings = {(_CPUS / f"cpu{n}/topology/thread_siblings_list").read_text() for n in usable}
    except OSError:
        return len(usable)
    return len(siblings)
