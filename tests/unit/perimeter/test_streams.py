# SPDX-License-Identifier: Apache-2.0
"""I4, I8, I12: a reply in pieces, wherever it is cut and however it ends, is one send with one result."""

import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio.lowlevel
import pytest

from runner.capability.backends.anthropic import AnthropicBackend
from runner.capability.backends.ollama import OllamaBackend
from runner.capability.backends.openai import OpenAIBackend
from runner.kernel.errors import BackendError, RunnerError, TransportError
from runner.kernel.inference import InferenceRequest, WireReply, WireRequest
from runner.kernel.messages import Message, Role
from runner.kernel.ports import Backend, Credential
from runner.testing import IN_PROCESS

pytestmark = pytest.mark.anyio

SAID = ["perché ", "no? 🦊", " — ", "你好", "\u0301 e\u200d"]
CANARY = "the-secret-of-the-client"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Pieces:
    """Answers each request with the next list of chunks, raising those that are errors: a `Transport`."""

    def __init__(self, *replies: Sequence[bytes | Exception]) -> None:
        self._replies = iter(replies)

    @asynccontextmanager
    async def open(self, wire: WireRequest, *, credential: Credential | None) -> AsyncIterator[WireReply]:
        """Yield the next reply."""
        del wire, credential
        yield WireReply(status=200, chunks=self._chunks(next(self._replies)))

    async def _chunks(self, reply: Sequence[bytes | Exception]) -> AsyncIterator[bytes]:
        for chunk in reply:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
            await anyio.lowlevel.checkpoint()


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a server of one protocol streams: its codec, a text, a call of a tool, an error and the end."""

    codec: Backend
    text: Callable[[str], object]
    call: Callable[[str], object]
    error: object
    end: tuple[object, ...]
    frame: Callable[[object], bytes]

    def stream(self, *pieces: object) -> bytes:
        """The bytes of `pieces` and the end."""
        return b"".join(map(self.frame, [*pieces, *self.end]))


def event(item: object) -> bytes:
    return f"data: {item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)}\n\n".encode()


def delta(**said: object) -> object:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": None}]}


DIALECTS = {
    "chat": Dialect(
        codec=OpenAIBackend(name="scripted", model="m", address=IN_PROCESS),
        text=lambda text: delta(content=text),
        call=lambda text: delta(
            content=None, tool_calls=[{"index": 0, "function": {"name": "look", "arguments": text}}]
        ),
        error={"error": {"message": CANARY, "code": 500}},
        end=({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]"),
        frame=event,
    ),
    "anthropic": Dialect(
        codec=AnthropicBackend(name="scripted", model="m", address=IN_PROCESS),
        text=lambda text: {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}},
        call=lambda text: {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": text},
        },
        error={"type": "error", "error": {"type": "overloaded_error", "message": CANARY}},
        end=({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}),
        frame=event,
    ),
    "ollama": Dialect(
        codec=OllamaBackend(name="scripted", model="m", address=IN_PROCESS, context=4096),
        text=lambda text: {"message": {"content": text}, "done": False},
        call=lambda text: {
            "message": {
                "content": "",
                "tool_calls": [{"function": {"name": "look", "arguments": {"a": text}}}],
            },
            "done": False,
        },
        error={"error": CANARY},
        end=({"message": {"content": ""}, "done": True, "done_reason": "stop"},),
        frame=lambda item: json.dumps(item, ensure_ascii=False).encode() + b"\n",
    ),
}
ALL = pytest.mark.parametrize("name", DIALECTS)


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """`data` byte by byte, and in two at every place around a character of more than one byte."""
    yield [data[at : at + 1] for at in range(len(data))]
    wide = [at for at, byte in enumerate(data) if byte > 0x7F]
    for at in sorted({place for byte in wide for place in (byte, byte + 1)}):
        yield [data[:at], data[at:]]


async def ask(world: Any, dialect: Dialect, task: Any, shown: Callable[[str], object]) -> Any:
    request = InferenceRequest(messages=(Message(role=Role.USER, blocks=(task.goal,)),), stream=True)
    return await world.perimeter.seal(dialect.codec).infer(request, task=task, on_text=shown)


@ALL
async def test_i4_a_stream_cut_anywhere_is_one_text_and_one_result(name: str, make_world: Any) -> None:
    dialect = DIALECTS[name]
    replies = list(cuts(dialect.stream(*map(dialect.text, SAID))))
    world = make_world(transport=Pieces(*replies))
    with world.perimeter.task("q") as task:
        for _ in replies:
            pieces: list[str] = []
            reply = await ask(world, dialect, task, pieces.append)
            assert "".join(pieces) == reply.block.text == "".join(SAID)
            assert not any("\ufffd" in piece for piece in pieces)
    sends, results = world.records("egress"), world.records("egress_result")
    assert [each["send_id"] for each in results] == [each["send_id"] for each in sends]
    assert [each["status"] for each in results] == ["ok"] * len(replies)
    assert len(replies) > 20


@ALL
async def test_fragments_of_a_call_nobody_offered_are_no_text(name: str, make_world: Any) -> None:
    """A server may call tools all the same: what it says there is not shown, and the send has its result."""
    dialect = DIALECTS[name]
    fragments = [dialect.call(part) for part in ('{"pa', 'th": "', f'{CANARY}"}}')]
    spoken = list(itertools.chain.from_iterable(zip(map(dialect.text, SAID), fragments, strict=False)))
    data = dialect.stream(*spoken, dialect.text("end"))
    world = make_world(transport=Pieces([data[:40], data[40:]]))
    pieces: list[str] = []
    with world.perimeter.task("q") as task:
        reply = await ask(world, dialect, task, pieces.append)
    assert reply.block.text == "".join(pieces) == "".join(SAID[:3]) + "end"
    (result,) = world.records("egress_result")
    assert (result["status"], result["block"]) == ("ok", reply.block.id)


def endings(dialect: Dialect) -> dict[str, tuple[list[bytes | Exception], type[RunnerError], str]]:
    """Ways for a stream to end in the middle: the chunks, what is raised, and the status on record."""
    begun = dialect.frame(dialect.text(SAID[0]))
    whole = dialect.stream(dialect.text(SAID[1]))
    return {
        "an error of the server": ([begun, dialect.frame(dialect.error), whole], BackendError, "error"),
        "the connection": ([begun, TransportError("broke off")], TransportError, "error"),
        "silence": ([begun, TimeoutError()], TransportError, "timeout"),
        "a foreign fault": ([begun, ValueError(CANARY)], BackendError, "error"),
        "too early": ([begun], BackendError, "error"),
        "half a character": ([begun, whole[: whole.index(b"\xf0") + 2]], BackendError, "error"),
        "no UTF-8": ([begun, whole.replace(b"\xf0\x9f", b"\xf0\xff")], BackendError, "error"),
        "no JSON": ([begun, dialect.frame({})[:-4] + b"}}}\n\n", whole], BackendError, "error"),
        "too much": ([begun, *[dialect.frame(dialect.text("x" * 4000))] * 8], BackendError, "error"),
    }


@ALL
@pytest.mark.parametrize("ending", list(endings(DIALECTS["chat"])))
async def test_i4_i12_a_stream_that_ends_in_the_middle_has_one_result_and_no_block(
    name: str, ending: str, make_world: Any
) -> None:
    chunks, raised, status = endings(DIALECTS[name])[ending]
    world = make_world(transport=Pieces(chunks))
    pieces: list[str] = []
    with world.perimeter.task("q") as task, pytest.raises(raised) as caught:
        await ask(world, DIALECTS[name], task, pieces.append)
    assert CANARY not in str(caught.value)
    assert pieces[0] == SAID[0], "what came before was shown"
    (result,) = world.records("egress_result")
    assert (result["status"], result["bytes"], "block" in result) == (status, 0, False)
    assert [each["block"] for each in world.records("classify")] == [task.goal.id]


@ALL
async def test_i4_a_reader_that_fails_or_goes_away_leaves_one_result(name: str, make_world: Any) -> None:
    dialect = DIALECTS[name]
    data = dialect.stream(*map(dialect.text, SAID))
    world = make_world(transport=Pieces([data], [data]))

    def fails(_: str) -> None:
        raise ValueError(CANARY)

    with world.perimeter.task("q") as task:
        with pytest.raises(BackendError) as caught:
            await ask(world, dialect, task, fails)
        assert CANARY not in str(caught.value)
        with anyio.CancelScope() as scope:
            await ask(world, dialect, task, lambda _: scope.cancel())
    assert [each["status"] for each in world.records("egress_result")] == ["error", "cancelled"]
