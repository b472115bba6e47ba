# SPDX-License-Identifier: Apache-2.0
"""Inference without a network: scripted backends, transports, a decoder and an embedder.

Owns answers from a script, in order, and the requests that are kept; says so when the script is used up.
"""

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

from runner.kernel.errors import BackendError, TransportError
from runner.kernel.inference import (
    Address,
    EmbeddingReply,
    EmbeddingRequest,
    InferenceReply,
    InferenceRequest,
    Usage,
    WireReply,
    WireRequest,
    WrittenCall,
)
from runner.kernel.messages import Block, Json, JsonObject
from runner.kernel.ports import Credential

IN_PROCESS: Final = Address(scheme="inproc")
_PIECE: Final = 5
"""Characters in one piece of a streamed reply: short, so that streams are cut in awkward places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """A scripted reply that ends because its token budget did (`finish` is "length")."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """A scripted reply with `calls` in the runtime's protocol: names, and arguments as text or an object.

    `tokens` is the count it reports; None for the words of its text.
    """

    calls: Sequence[tuple[str, str | JsonObject]]
    text: str = ""
    finish: str = "tool_calls"
    tokens: int | None = None


Reply: TypeAlias = str | JsonObject | Truncated | Calling | Exception | Callable[[InferenceRequest], str]
"""One scripted answer: a text, an object sent as JSON, a cut text, an error to raise, or a function."""


class _ScriptedEndpoint:
    """What every scripted codec is called, asks for, and where it sends."""

    def __init__(self, name: str, model: str, address: Address) -> None:
        self._name = name
        self._model = model
        self._address = address

    @property
    def name(self) -> str:
        """The configured name."""
        return self._name

    @property
    def model(self) -> str:
        """The model it asks for."""
        return self._model

    @property
    def address(self) -> Address:
        """Where its wire requests go."""
        return self._address


class ScriptedBackend(_ScriptedEndpoint):
    """A codec whose own `transport` answers with `replies`, in order. Implements `Backend`.

    `requests` holds every request encoded, and `transport.sent` every wire request sent. `stream` and
    `schema` are carried but not obeyed: what the script says is what comes back.
    """

    def __init__(
        self,
        *,
        replies: Sequence[Reply],
        name: str = "scripted",
        model: str = "scripted-model",
        address: Address = IN_PROCESS,
    ) -> None:
        super().__init__(name, model, address)
        self.requests: list[InferenceRequest] = []
        self._encoded: dict[bytes, InferenceRequest] = {}
        self.transport = ScriptedTransport(replies=replies, encoded=self._encoded)

    def encode(self, request: InferenceRequest) -> WireRequest:
        """Return `request` as plain JSON: messages, schema and sampling numbers."""
        self.requests.append(request)
        members: dict[str, object] = {
            "model": self._model,
            "messages": [
                {"role": message.role.value, "content": [_said(block) for block in message.blocks]}
                for message in request.messages
            ],
            "schema": request.schema,
            "tools": [[tool.name, tool.description, tool.parameters] for tool in request.tools],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "frequency_penalty": request.frequency_penalty,
            "stream": request.stream,
        }
        body = json.dumps(members, ensure_ascii=False).encode("utf-8")
        self._encoded[body] = request
        return WireRequest(
            method="POST",
            address=self._address,
            path="/scripted",
            headers=(("Content-Type", "application/json"),),
            body=body,
        )

    def decoder(self, request: InferenceRequest, status: int) -> "ScriptedDecoder":  # noqa: ARG002 - the port
        """Return a decoder for what `transport` sends."""
        return ScriptedDecoder(status=status)


def _said(block: Block) -> Json:
    """Return the text of `block`, or its media: their type, and their bytes as base64."""
    if block.media is None:
        return block.text
    return {"mime": block.media.mime, "data": base64.b64encode(block.media.data).decode("ascii")}


class ScriptedDecoder:
    """Reads the lines that `ScriptedTransport` sends. Implements `Decoder`."""

    def __init__(self, *, status: int) -> None:
        self._status = status
        self._rest = b""
        self._lines: list[dict[str, object]] = []

    def feed(self, chunk: bytes) -> str:
        """Take the next body bytes; return the text of the lines they complete."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        lines = [json.loads(line) for line in whole]
        self._lines += lines
        return "".join(str(line.get("text", "")) for line in lines)

    def finish(self) -> InferenceReply:
        """Return the reply; raise `BackendError` for another status than 200 or a missing end."""
        if self._status != 200 or not self._lines or "finish" not in self._lines[-1]:  # noqa: PLR2004 - HTTP
            raise BackendError(f"the scripted backend answered {self._status} or broke off")
        text = "".join(str(line.get("text", "")) for line in self._lines)
        last = cast("dict[str, Any]", self._lines[-1])
        counted = last["tokens"]
        usage = Usage(completion_tokens=len(text.split()) if counted is None else counted)
        calls = tuple(WrittenCall(name=name, arguments=arguments) for name, arguments in last["calls"])
        return InferenceReply(text=text, finish=str(last["finish"]), usage=usage, calls=calls)


class ScriptedTransport:
    """Answers wire requests from a script instead of sending them. Implements `Transport`.

    `sent` holds every wire request, `credentials` the credential of each. `encoded` finds the request behind
    a body, for replies that are functions.
    """

    def __init__(
        self, *, replies: Sequence[Reply], encoded: Mapping[bytes, InferenceRequest] = MappingProxyType({})
    ) -> None:
        self._replies = tuple(replies)
        self._encoded = encoded
        self.sent: list[WireRequest] = []
        self.credentials: list[Credential | None] = []

    @asynccontextmanager
    async def open(self, wire: WireRequest, *, credential: Credential | None) -> AsyncIterator[WireReply]:
        """Yield the next scripted reply. Raises the scripted error, or `TransportError` after the last."""
        position = len(self.sent)
        self.sent.append(wire)
        self.credentials.append(credential)
        if position >= len(self._replies):
            raise TransportError(f"the script has {len(self._replies)} replies and was asked for one more")
        reply = self._replies[position]
        calling = reply if isinstance(reply, Calling) else Calling(calls=())
        text, finish = self._answer(reply, wire)
        end = {"finish": finish, "calls": list(calling.calls), "tokens": calling.tokens}
        yield WireReply(status=200, chunks=_scripted_chunks(text, end))

    def _answer(self, reply: Reply, wire: WireRequest) -> tuple[str, str]:
        match reply:
            case str():
                return reply, "stop"
            case Truncated():
                return reply.text, "length"
            case Calling():
                return reply.text, reply.finish
            case Mapping():
                return json.dumps(reply, ensure_ascii=False), "stop"
            case Exception():
                raise reply
            case _:
                return reply(self._encoded[wire.body]), "stop"


DIMENSIONS: Final = 8
"""The length of the vectors that fakes give."""


def vector_of(text: str) -> tuple[float, ...]:
    """Return the vector that fakes give for `text`: eight numbers in [0, 1] made from its SHA-256."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return tuple(byte / 255 for byte in digest[:DIMENSIONS])


EmbeddingScript: TypeAlias = Sequence[Sequence[float]] | Exception
"""One scripted answer to a batch: vectors, or an error to raise."""


class ScriptedEmbedder(_ScriptedEndpoint):
    """A codec for embeddings whose own `transport` answers each batch. Implements `Embedder`.

    Answers with `replies` in order, and after the last, or without any, with `vector_of` each text.
    `requests` holds every batch encoded, and `transport.sent` every wire request sent.
    """

    def __init__(
        self,
        *,
        replies: Sequence[EmbeddingScript] = (),
        name: str = "scripted-embeddings",
        model: str = "scripted-embedder",
        address: Address = IN_PROCESS,
    ) -> None:
        super().__init__(name, model, address)
        self.requests: list[EmbeddingRequest] = []
        self.transport = _EmbeddingTransport(replies)

    def encode(self, request: EmbeddingRequest) -> WireRequest:
        """Return `request` as plain JSON: model and texts."""
        self.requests.append(request)
        members = {"model": self._model, "input": [block.text for block in request.blocks]}
        return WireRequest(
            method="POST",
            address=self._address,
            path="/scripted-embeddings",
            headers=(("Content-Type", "application/json"),),
            body=json.dumps(members, ensure_ascii=False).encode("utf-8"),
        )

    def parse(self, request: EmbeddingRequest, status: int, body: bytes) -> EmbeddingReply:  # noqa: ARG002 - the port
        """Return the vectors that `transport` sends, whatever they are; raise `BackendError` for no JSON."""
        try:
            return EmbeddingReply(vectors=tuple(map(tuple, json.loads(body))))
        except (ValueError, TypeError):
            raise BackendError(f"the scripted embedder answered {status} or broke off") from None


class _EmbeddingTransport:
    """Answers batches instead of sending them. Implements `Transport`."""

    def __init__(self, replies: Sequence[EmbeddingScript]) -> None:
        self._replies = tuple(replies)
        self.sent: list[WireRequest] = []
        self.credentials: list[Credential | None] = []

    @asynccontextmanager
    async def open(self, wire: WireRequest, *, credential: Credential | None) -> AsyncIterator[WireReply]:
        """Yield the next scripted vectors. Raises the scripted error."""
        position = len(self.sent)
        self.sent.append(wire)
        self.credentials.append(credential)
        texts = json.loads(wire.body)["input"]
        reply = self._replies[position] if position < len(self._replies) else list(map(vector_of, texts))
        if isinstance(reply, Exception):
            raise reply
        yield WireReply(status=200, chunks=_one_chunk(json.dumps(reply).encode("ascii")))


async def _one_chunk(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _scripted_chunks(text: str, end: Mapping[str, Any]) -> AsyncIterator[bytes]:
    lines = [{"text": piece} for piece in pieces(text)]
    for line in [*lines, end]:
        yield json.dumps(line).encode("utf-8") + b"\n"


def pieces(text: str) -> Iterator[str]:
    """Yield `text` cut as a stream has it."""
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
