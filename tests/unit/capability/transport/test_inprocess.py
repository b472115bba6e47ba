# SPDX-License-Identifier: Apache-2.0
"""The in-process transport around a scripted engine: framing, stopping, failing. Defends P1, I7 and I12.

The engine's package is replaced by a small one, so these tests need neither it nor weights. The real engine
is in `tests/integration/test_engine.py`.
"""

import itertools
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import anyio
import pytest

from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.transport.inprocess import EngineTransport, physical_cores
from runner.kernel.errors import BackendError, ModelError, TransportError
from runner.kernel.inference import Address, InferenceReply, InferenceRequest, WireRequest

pytestmark = pytest.mark.anyio
CANARY = "RSSMRA80A01F205X"
BACKEND = EmbeddedBackend(name="here", model="m", context=512)
REQUEST = InferenceRequest(messages=(), max_tokens=4)
Take = Callable[[str], bool]
Behaviour = Callable[[str, Take], None]


def delta(text: str, finish: str | None = None) -> str:
    return json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": finish}]})


def says(*items: str) -> Behaviour:
    """Return the behaviour of an engine that reports `items`."""

    def behave(_: str, take: Take) -> None:
        for item in items:
            take(item)

    return behave


class Installed:
    """A stand-in for the engine's package. `behave` answers; `params` are those of each engine started."""

    def __init__(self) -> None:
        self.params: list[SimpleNamespace] = []
        self.behave: Behaviour = says(delta("Ciao", "stop"))
        self.failure: Exception | None = None

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = ModuleType("xllamacpp")
        vars(module).update(CommonParams=self.new_params, Server=self.start)
        monkeypatch.setitem(sys.modules, "xllamacpp", module)

    @staticmethod
    def new_params() -> SimpleNamespace:
        threads = [SimpleNamespace(n_threads=-1) for _ in range(2)]
        return SimpleNamespace(
            model=SimpleNamespace(path=""), cpuparams=threads[0], cpuparams_batch=threads[1], api_keys=[]
        )

    def start(self, params: SimpleNamespace) -> SimpleNamespace:
        self.params.append(params)
        if self.failure is not None:
            raise self.failure
        return SimpleNamespace(handle_chat_completions=self.answer)

    def answer(self, text: str, take: Take) -> None:
        self.behave(text, take)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    package = Installed()
    package.install(monkeypatch)
    return package


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    return path


async def infer(transport: EngineTransport, wire: WireRequest | None = None) -> InferenceReply:
    async with transport.open(wire or BACKEND.encode(REQUEST), credential=None) as reply:
        decoder = BACKEND.decoder(REQUEST, reply.status)
        async for chunk in reply.chunks:
            decoder.feed(chunk)
    return decoder.finish()


async def test_the_engine_gets_the_judged_bytes_and_answers_as_its_server_would_p1(
    installed: Installed, weights: Path
) -> None:
    asked: list[str] = []

    def behave(text: str, take: Take) -> None:
        asked.append(text)
        for item in (delta("Buon"), delta("giorno", "stop")):
            take(item)

    installed.behave = behave
    wire = BACKEND.encode(REQUEST)
    async with EngineTransport(weights).open(wire, credential=None) as reply:
        body = b"".join([chunk async for chunk in reply.chunks])
    assert asked == [wire.body.decode()]
    assert reply.status == 200
    assert body.decode() == f"data: {delta('Buon')}\n\ndata: {delta('giorno', 'stop')}\n\ndata: [DONE]\n\n"


async def test_a_whole_reply_is_passed_on_as_it_is(installed: Installed, weights: Path) -> None:
    whole = '{"choices":[]}'
    installed.behave = says(whole)
    wire = WireRequest(method="POST", address=BACKEND.address, path="/", headers=(), body=b'{"stream":false}')
    async with EngineTransport(weights).open(wire, credential=None) as reply:
        assert [chunk async for chunk in reply.chunks] == [whole.encode()]


async def test_leaving_the_context_stops_the_engine(installed: Installed, weights: Path) -> None:
    stopped = threading.Event()

    def behave(_: str, take: Take) -> None:
        for number in itertools.count():
            if take(delta(str(number))):
                stopped.set()
                return

    installed.behave = behave
    transport = EngineTransport(weights)
    async with transport.open(BACKEND.encode(REQUEST), credential=None) as reply:
        await anext(aiter(reply.chunks))
    assert stopped.wait(120)


async def test_cancelling_stops_the_engine_and_a_waiting_request_never_starts(
    installed: Installed, weights: Path
) -> None:
    began, go, starts = threading.Event(), threading.Event(), []

    def behave(text: str, take: Take) -> None:
        starts.append(text)
        began.set()
        go.wait(120)
        take(delta("late"))

    installed.behave = behave
    transport = EngineTransport(weights)
    async with anyio.create_task_group() as group:
        group.start_soon(infer, transport)
        await anyio.to_thread.run_sync(began.wait)
        group.start_soon(infer, transport)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    go.set()
    await anyio.to_thread.run_sync(transport.close)
    assert len(starts) == 1


async def test_requests_are_answered_one_at_a_time(installed: Installed, weights: Path) -> None:
    inside, most = 0, 0

    def behave(_: str, take: Take) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        take(delta("x", "stop"))
        inside -= 1

    installed.behave = behave
    transport = EngineTransport(weights)
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(infer, transport)
    assert (most, len(installed.params)) == (1, 1)


@pytest.mark.parametrize(
    ("failure", "status"), [(ValueError(CANARY), 400), (RuntimeError(CANARY), 500), (None, 500)]
)
async def test_a_failing_engine_answers_like_a_failing_server_i12(
    installed: Installed, weights: Path, failure: Exception | None, status: int
) -> None:
    def behave(_: str, __: Take) -> None:
        if failure is not None:
            raise failure

    installed.behave = behave
    with pytest.raises(BackendError, match=f"answered {status}") as caught:
        await infer(EngineTransport(weights))
    assert CANARY not in str(caught.value)


async def test_an_engine_that_refuses_or_breaks_off_is_a_backend_error(
    installed: Installed, weights: Path
) -> None:
    installed.behave = says('{"error":{"code":400}}')
    with pytest.raises(BackendError, match="answered 400"):
        await infer(EngineTransport(weights))

    def behave(_: str, take: Take) -> None:
        take(delta("x"))
        raise RuntimeError(CANARY)

    installed.behave = behave
    with pytest.raises(BackendError, match="answered 500"):
        await infer(EngineTransport(weights))


async def test_the_engine_is_started_quiet_offline_and_closed_to_others_i12(
    installed: Installed, weights: Path
) -> None:
    for _ in range(2):
        transport = EngineTransport(weights, context=2048, threads=3)
        transport.load()
        transport.load()
    first, second = installed.params
    assert (first.n_ctx, first.cpuparams.n_threads, first.cpuparams_batch.n_threads) == (2048, 3, 3)
    assert (first.verbosity, first.offline, first.ui, first.endpoint_slots) == (-1, True, False, False)
    assert first.cache_ram_mib == 0
    assert len(first.api_keys[0]) == 64
    assert first.api_keys != second.api_keys
    (socket_path,) = first.hostnames
    assert not Path(socket_path).parent.exists()


async def test_loading_reports_progress_once(installed: Installed, weights: Path) -> None:
    told: list[str] = []
    transport = EngineTransport(weights)
    transport.load(told.append)
    transport.load(told.append)
    assert (told, len(installed.params)) == (["loading", "ready"], 1)


async def test_without_the_package_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, weights: Path
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelError, match=r"pip install 'akaion-runner\[embedded\]'"):
        await infer(EngineTransport(weights))


async def test_missing_or_unusable_weights_are_a_model_error(
    installed: Installed, weights: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match="no weights at"):
        EngineTransport(tmp_path / "absent.gguf").load()
    installed.failure = RuntimeError(CANARY)
    with pytest.raises(ModelError, match="cannot use the weights") as caught:
        await infer(EngineTransport(weights))
    assert CANARY not in str(caught.value)


async def test_a_closed_engine_and_a_foreign_address_are_refused(installed: Installed, weights: Path) -> None:
    transport = EngineTransport(weights)
    await infer(transport)
    transport.close()
    transport.close()
    with pytest.raises(TransportError, match="closed"):
        await infer(transport)
    away = WireRequest(
        method="POST",
        address=Address(scheme="http", host="127.0.0.1", port=1),
        path="/",
        headers=(),
        body=b"{}",
    )
    with pytest.raises(TransportError, match="not the embedded engine"):
        await infer(EngineTransport(weights), away)
    assert len(installed.params) == 1


def test_there_is_at_least_one_core() -> None:
    assert physical_cores() >= 1
