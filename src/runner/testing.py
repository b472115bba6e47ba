# SPDX-License-Identifier: Apache-2.0
"""Public fakes of every port, for our tests and for those of programs that embed the runner.

Owns deterministic stand-ins with no I/O, and one real thing: `ScriptedServer`, an HTTP server on loopback
that keeps every byte it receives. Fakes answer from a script, in order, and say so when it is used up.
Imports the kernel's words and nothing of the rooms it stands in for, so that it cannot share their mistakes.

    backend = ScriptedBackend(replies=["Forty-two."])
    client = perimeter.seal(backend, transport=backend.transport)
"""

import base64
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias, assert_never, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from runner.kernel.errors import BackendError, TraceError, TransportError
from runner.kernel.inference import (
    Address,
    Answer,
    EmbeddingReply,
    EmbeddingRequest,
    InferenceReply,
    InferenceRequest,
    Usage,
    WireReply,
    WireRequest,
    WrittenCall,
)
from runner.kernel.labels import DataClass
from runner.kernel.messages import Block, Json, JsonObject, ToolSpec
from runner.kernel.opinions import Opinion
from runner.kernel.ports import (
    ApprovalRequest,
    Credential,
    Effect,
    GrantedCall,
    Locality,
    ToolOutput,
)

__all__ = [
    "IN_PROCESS",
    "BreakOff",
    "Calling",
    "FakeClassifier",
    "FakeFinding",
    "FakeHit",
    "FakeOpinion",
    "FakeServerCheck",
    "FakeTool",
    "Fault",
    "FixedEntropy",
    "FixedLocality",
    "FrozenClock",
    "MemoryLogFile",
    "MemoryLogStore",
    "MemorySaltStore",
    "MemorySigner",
    "RawBytes",
    "Redirect",
    "Reply",
    "ScriptedApprover",
    "ScriptedBackend",
    "ScriptedDecoder",
    "ScriptedEmbedder",
    "ScriptedServer",
    "ScriptedTransport",
    "ServerError",
    "ServerReply",
    "Stall",
    "Truncated",
    "broken",
    "first_instance",
    "header_words",
    "oblige",
    "vector_of",
]

IN_PROCESS: Final = Address(scheme="inproc")
_PIECE: Final = 5
"""Characters in one piece of a streamed reply: short, so that streams are cut in awkward places."""


# --- inference without a network -----------------------------------------------------------------------


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
    lines = [{"text": piece} for piece in _pieces(text)]
    for line in [*lines, end]:
        yield json.dumps(line).encode("utf-8") + b"\n"


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))


# --- inference over a real socket ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Answers `status` with a `Location`."""

    location: str
    status: int = 307


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Sends nothing until the server is closed, or only the head of a reply if `after_head`."""

    after_head: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakOff:
    """Closes the connection after the first `after` bytes of the body of a reply saying `text`."""

    text: str
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerError:
    """Answers an error `status`, whose body quotes `message` as real servers quote prompts."""

    status: int
    message: str = "scripted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawBytes:
    """Sends `data` as it is, head and all, and closes; `endless` sends it until the client goes away."""

    data: bytes
    endless: bool = False


Fault: TypeAlias = Redirect | Stall | BreakOff | ServerError | RawBytes
ServerReply: TypeAlias = str | JsonObject | Fault | Callable[[JsonObject], str]
"""One scripted answer: a text, an object sent as JSON, a fault, or a function of the request's JSON body."""


class ScriptedServer:
    """A real HTTP server on 127.0.0.1 that speaks `/v1/chat/completions`, streamed or whole.

    A context manager. Answers with `replies` in order; every request after the last gets status 500. On
    `/v1/embeddings` it answers each batch with `vector_of` its texts. On any other path it answers 404, as a
    server that says nothing about itself. Neither uses up a reply. `received` holds the raw bytes of every
    request, head and body, whatever its path; `bodies` the bodies alone.
    """

    def __init__(self, *, replies: Sequence[ServerReply] = ()) -> None:
        self._replies = iter(replies)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.received: list[bytes] = []
        self._http = _Listener(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def address(self) -> Address:
        """Where it listens."""
        return Address(scheme="http", host="127.0.0.1", port=self._http.server_port)

    @property
    def url(self) -> str:
        """Where it listens, as `http://127.0.0.1:port`."""
        return str(self.address)

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of the requests received so far."""
        return [raw.partition(b"\r\n\r\n")[2] for raw in self.received]

    def keep(self, raw: bytes) -> None:
        """Keep the bytes of a request."""
        with self._lock:
            self.received.append(raw)

    def take(self) -> ServerReply:
        """Return the next reply of the script."""
        with self._lock:
            return next(self._replies, ServerError(status=500, message="the script has no reply left"))

    def wait_until_closing(self) -> None:
        """Return when the server is being closed."""
        self._closing.wait()


class _Listener(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, script: ScriptedServer) -> None:
        self.script = script
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that goes away is part of many scripts."""


class _Handler(BaseHTTPRequestHandler):
    """Reads one request, keeps its bytes, answers, closes."""

    server: _Listener
    timeout = 30

    def handle(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b"\r\n", b"\n", b""):
            lines.append(line)
        if not lines:
            return
        head = b"".join(lines)
        size = next((int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")), 0)
        body = self.rfile.read(size)
        self.server.script.keep(head + b"\r\n" + body)
        if b" /v1/chat/completions " in lines[0]:
            self._answer(self.server.script.take(), body)
        elif b" /v1/embeddings " in lines[0]:
            self._send(200, "application/json", _embeddings_body(body))
        else:
            self._send(404, "application/json", b'{"error":{"code":404}}')

    def _answer(self, reply: ServerReply, body: bytes) -> None:
        stream = b'"stream":true' in body.replace(b'"stream": true', b'"stream":true')
        kind = "text/event-stream" if stream else "application/json"
        match reply:
            case Redirect():
                self._send(reply.status, kind, b"", ("Location", reply.location))
            case ServerError():
                error = {"error": {"code": reply.status, "message": reply.message}}
                self._send(reply.status, "application/json", json.dumps(error).encode("utf-8"))
            case Stall():
                if reply.after_head:
                    self._send(200, kind, b"", size=1)
                self.server.script.wait_until_closing()
            case RawBytes():
                self._send_raw(reply)
            case BreakOff():
                whole = _chat_body(reply.text, stream=stream)
                self._send(200, kind, whole[: reply.after], size=len(whole))
            case str():
                self._send(200, kind, _chat_body(reply, stream=stream))
            case Mapping():
                self._send(200, kind, _chat_body(json.dumps(reply, ensure_ascii=False), stream=stream))
            case _ if callable(reply):
                self._send(200, kind, _chat_body(reply(json.loads(body)), stream=stream))
            case _:
                assert_never(reply)

    def _send_raw(self, reply: RawBytes) -> None:
        self.wfile.write(reply.data)
        while reply.endless:
            self.wfile.write(reply.data)

    def _send(self, status: int, kind: str, body: bytes, *more: tuple[str, str], size: int = -1) -> None:
        headers = [("Content-Type", kind), ("Content-Length", str(len(body) if size < 0 else size)), *more]
        head = "".join(f"{name}: {value}\r\n" for name, value in headers)
        self.wfile.write(f"HTTP/1.1 {status} Scripted\r\n{head}Connection: close\r\n\r\n".encode() + body)
        self.wfile.flush()


def _embeddings_body(body: bytes) -> bytes:
    """Return the listing of vectors for the texts of the request `body`."""
    texts = json.loads(body)["input"]
    listed = [
        {"object": "embedding", "index": index, "embedding": vector_of(text)}
        for index, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return json.dumps({"object": "list", "data": listed, "usage": usage}).encode("ascii")


def _chat_body(text: str, *, stream: bool) -> bytes:
    """Return a chat completion saying `text`, with word counts as its usage."""
    usage = {"prompt_tokens": 1, "completion_tokens": len(text.split())}
    if not stream:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return json.dumps({"choices": [choice], "usage": usage}).encode("utf-8")
    events: list[JsonObject] = [
        {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
        for piece in _pieces(text)
    ]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    events.append({"choices": [], "usage": usage})
    lines = [json.dumps(event, ensure_ascii=False) for event in events]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode("utf-8")


def oblige(body: JsonObject) -> str:
    """Return, as JSON text, the first value that fits the schema asked for in an OpenAI-shaped `body`.

    A scripted model that always does what it is asked, for `ScriptedServer(replies=[oblige] * n)`. Raises
    `KeyError` for a body without a `response_format`.
    """
    asked: Any = body["response_format"]
    return json.dumps(first_instance(asked["json_schema"]["schema"]), ensure_ascii=False)


def first_instance(schema: JsonObject) -> Json:
    """Return a small value of `schema`: the first of an enum, true, the least array, the shortest string.

    Knows the keywords the runner's own schemas use. Raises `ValueError` for a type it does not know.
    """
    named: Any = schema
    if "enum" in named:
        return cast("Json", named["enum"][0])
    match named.get("type"):
        case "object":
            return {name: first_instance(named["properties"][name]) for name in named.get("required", ())}
        case "array":
            return [first_instance(named["items"])] * max(1, named.get("minItems", 1))
        case "string":
            return "x" * int(max(1, named.get("minLength", 1)))
        case "integer" | "number":
            return cast("Json", named.get("minimum", 0))
        case "boolean":
            return True
        case _:
            raise ValueError("first_instance does not know this schema")


# --- judgement -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedLocality:
    """Answers the same `locality` for every address. Implements `LocalityCheck`."""

    locality: Locality

    async def grade(self, address: Address) -> Locality:  # noqa: ARG002 - the port
        """Return the fixed grade."""
        return self.locality


class FakeServerCheck:
    """Asks `questions` and reads `locality` into any answers. Implements `ServerCheck`.

    `seen` holds the answers of every check.
    """

    def __init__(self, *, locality: Locality, questions: Sequence[WireRequest] = ()) -> None:
        self.questions = tuple(questions)
        self._locality = locality
        self.seen: list[tuple[Answer | None, ...]] = []

    def grade(self, answers: Sequence[Answer | None]) -> Locality:
        """Keep the answers; return the fixed grade."""
        self.seen.append(tuple(answers))
        return self._locality


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeHit:
    """Where `FakeClassifier` found something. Implements `Hit`."""

    start: int
    end: int
    data_class: DataClass
    kind: str = "fake"
    redactable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeFinding:
    """What `FakeClassifier` found. Implements `Finding`."""

    data_class: DataClass
    spans: tuple[FakeHit, ...] = ()


class FakeClassifier:
    """Finds the substrings of `classes` and nothing else, or raises `fault`. Implements `Classifier`.

    `seen` holds every text it was shown.
    """

    version = "fake/1"

    def __init__(
        self, classes: Mapping[str, DataClass] | None = None, *, fault: Exception | None = None
    ) -> None:
        self._classes = dict(classes or {})
        self._fault = fault
        self.seen: list[str] = []

    def classify(self, text: str, *, source: str | None = None) -> FakeFinding:  # noqa: ARG002 - the port
        """Return the highest class of the substrings that `text` holds, C0 without any."""
        self.seen.append(text)
        if self._fault is not None:
            raise self._fault
        spans = tuple(
            FakeHit(start=start, end=start + len(part), data_class=data_class)
            for part, data_class in self._classes.items()
            for start in range(len(text))
            if text.startswith(part, start)
        )
        return FakeFinding(
            data_class=max((span.data_class for span in spans), default=DataClass.C0), spans=spans
        )


class FakeOpinion:
    """Knows the substrings of `words` and nothing else, or raises `fault`. Implements `SecondOpinion`.

    With `hangs` it answers only once `let_go()` was called. `seen` holds every text it was shown.
    """

    def __init__(
        self,
        words: Mapping[str, Opinion] | None = None,
        *,
        name: str = "fake",
        version: str = "fake/1",
        fault: Exception | None = None,
        hangs: bool = False,
    ) -> None:
        self.name = name
        self.version = version
        self._words = dict(words or {})
        self._fault = fault
        self._free = threading.Event()
        if not hangs:
            self._free.set()
        self.seen: list[str] = []

    def opinion(self, text: str) -> Opinion:
        """Return the word for the first substring that `text` holds, `Opinion.NONE` without any."""
        self.seen.append(text)
        self._free.wait()
        if self._fault is not None:
            raise self._fault
        return next((word for part, word in self._words.items() if part in text), Opinion.NONE)

    def let_go(self) -> None:
        """Let everyone who waits for an answer have it."""
        self._free.set()


class ScriptedApprover:
    """Answers with `answers` in order, and no after the last. Implements `Approver`.

    `asked` holds every request it was shown.
    """

    def __init__(self, *, answers: Sequence[bool] = (), name: str = "scripted-approver") -> None:
        self._answers = iter(answers)
        self._name = name
        self.asked: list[ApprovalRequest] = []

    @property
    def name(self) -> str:
        """Who approves."""
        return self._name

    async def approve(self, request: ApprovalRequest) -> bool:
        """Return the next scripted answer."""
        self.asked.append(request)
        return next(self._answers, False)


class FakeTool:
    """A tool that returns `output`, or raises it when it is an exception. Implements `Tool`.

    `calls` holds every call it was given. `parameters` defaults to an object of one string, `path`.
    """

    def __init__(
        self,
        *,
        name: str = "fake",
        output: ToolOutput | Exception | None = None,
        effect: Effect = Effect.READ,
        parameters: JsonObject | None = None,
        path_arguments: frozenset[str] = frozenset({"path"}),
    ) -> None:
        self._spec = ToolSpec(name=name, description="A fake tool.", parameters=parameters or _ONE_PATH)
        self._output = ToolOutput(text="done") if output is None else output
        self._effect = effect
        self._path_arguments = path_arguments
        self.calls: list[GrantedCall] = []

    @property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the arguments."""
        return self._spec

    @property
    def effect(self) -> Effect:
        """The strongest thing it says it can do."""
        return self._effect

    @property
    def path_arguments(self) -> frozenset[str]:
        """Names of the arguments that are paths."""
        return self._path_arguments

    def run(self, call: GrantedCall) -> ToolOutput:
        """Return or raise the scripted output."""
        self.calls.append(call)
        if isinstance(self._output, Exception):
            raise self._output
        return self._output


_ONE_PATH: Final[JsonObject] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}


# --- the record ----------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class MemoryLogFile:
    """A log in memory: `data` is all of it, `durable` what would survive a crash. Implements `LogFile`.

    `fault` is raised by the next `append` or `sync`, as a full disk would.
    """

    data: bytes = field(repr=False)
    durable: bytes = field(repr=False)
    fault: OSError | None = None
    closed: bool = False

    def append(self, data: bytes) -> None:
        """Add `data` at the end. Raises `fault`, or `ValueError` once closed."""
        self._check()
        self.data += data

    def sync(self) -> None:
        """Make everything appended durable. Raises `fault`, or `ValueError` once closed."""
        self._check()
        self.durable = self.data

    def close(self) -> None:
        """Close the handle; what was not synced stays out of `durable`."""
        self.closed = True

    def _check(self) -> None:
        if self.closed:
            raise ValueError("this log is closed")
        if self.fault is not None:
            raise self.fault


class MemoryLogStore:
    """A book and its pin in memory. Implements `LogStore`. `files` holds the logs by name."""

    def __init__(self) -> None:
        self.files: dict[str, MemoryLogFile] = {}
        self.pin: bytes | None = None
        self.held = False

    def acquire(self) -> None:
        """Take the lock. Raises `TraceError` when it is taken."""
        if self.held:
            raise TraceError("another writer has this book. Fix: close it first")
        self.held = True

    def release(self) -> None:
        """Give the lock back."""
        self.held = False

    def names(self) -> Sequence[str]:
        """Return the log names, sorted."""
        return sorted(self.files)

    def read(self, name: str) -> bytes:
        """Return the bytes of a log. Raises `FileNotFoundError`."""
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name].data

    def create(self, name: str, head: bytes) -> MemoryLogFile:
        """Make a log that starts with `head`, durably. Raises `FileExistsError`."""
        if name in self.files:
            raise FileExistsError(name)
        self.files[name] = MemoryLogFile(data=head, durable=head)
        return self.files[name]

    def read_pin(self) -> bytes | None:
        """Return the pin, None before the first."""
        return self.pin

    def write_pin(self, pin: bytes) -> None:
        """Replace the pin."""
        self.pin = pin


def header_words(**changed: Any) -> dict[str, Any]:  # noqa: ANN401 - the words of a header are of any type
    """Return what a test's log says of itself in its header, with the `changed` words in their place.

    They are the keywords of `HeaderFacts`; the digests are of nothing.
    """
    return {
        "book": "studio",
        "host": "host",
        "boot_id": "0" * 32,
        "profile": "detached",
        "policy_digest": "1" * 64,
        "config_digest": "2" * 64,
        "backends": ("local",),
        "max_egress_class": "none",
        "enforcement": "cooperative",
        "sandbox": "none",
        "writer": "akaion-runner/test",
        **changed,
    }


class MemorySaltStore:
    """Salts in memory. Implements `SaltStore`. `salts` holds all, `durable` those that were synced."""

    def __init__(self) -> None:
        self.salts: dict[str, bytes] = {}
        self.durable: dict[str, bytes] = {}

    def keep(self, commit: str, salt: bytes) -> None:
        """Remember the salt of `commit`."""
        self.salts[commit] = salt

    def sync(self) -> None:
        """Make every kept salt durable."""
        self.durable = dict(self.salts)


class MemorySigner:
    """An Ed25519 key made from a fixed 32-byte `seed`: the same signatures everywhere. Implements `Signer`.

    For tests and vectors only: anybody can make this key.
    """

    custody = "file"
    """The word of the format that is nearest: a key kept by no one in particular."""

    def __init__(self, seed: bytes = bytes(32)) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the public key."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes, *, header: bytes = b"") -> bytes:  # noqa: ARG002 - the port has it
        """Return the 64-byte signature of `message`."""
        return self._key.sign(message)


# --- faults --------------------------------------------------------------------------------------------


def broken(port: object, *, after: int = 0, **faults: object) -> Any:  # noqa: ANN401 - stands in for any port
    """Return `port` with some of its methods, or properties, going wrong after `after` calls that go right.

    Each of `faults` is a member's name and what becomes of it: an exception is raised, a function is called
    in its place with the same arguments, anything else is returned. A full disk is
    `broken(store, create=OSError(28, "full"))`.
    """
    return _Broken(port, after, faults)


class _Broken:
    def __init__(self, port: object, after: int, faults: Mapping[str, object]) -> None:
        self._port, self._after, self._faults = port, after, faults

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any member of any port
        member = getattr(self._port, name)
        if name not in self._faults:
            return member
        if not callable(member):
            return self._call(name, lambda: member)
        return lambda *arguments, **named: self._call(name, member, *arguments, **named)

    def _call(self, name: str, right: Callable[..., object], *arguments: object, **named: object) -> object:
        if self._after > 0:
            self._after -= 1
            return right(*arguments, **named)
        fault = self._faults[name]
        if isinstance(fault, BaseException):
            raise fault
        return fault(*arguments, **named) if callable(fault) else fault


# --- time and chance -----------------------------------------------------------------------------------


class FrozenClock:
    """Time that moves only when told. Implements `Clock`. Starts at 2026-01-01T00:00:00Z by default."""

    def __init__(self, now_us: int = 1_767_225_600_000_000) -> None:
        self._start_us = now_us
        self._passed_us = 0

    def now_us(self) -> int:
        """Return the frozen wall clock in microseconds since the Unix epoch."""
        return self._start_us + self._passed_us

    def monotonic(self) -> float:
        """Return the seconds this clock was advanced by."""
        return self._passed_us / 1_000_000

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Raises `ValueError` for a negative number."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self._passed_us += round(seconds * 1_000_000)


class FixedEntropy:
    """The stream SHA-256(seed, counter): the same bytes in every run. Implements `Entropy`."""

    def __init__(self, seed: bytes = b"") -> None:
        self._seed = seed
        self._counter = 0
        self._lock = threading.Lock()

    def token(self, size: int) -> bytes:
        """Return the next `size` bytes of the stream, from a fresh counter on."""
        blocks = b""
        with self._lock:
            while len(blocks) < size:
                blocks += hashlib.sha256(self._seed + self._counter.to_bytes(8, "big")).digest()
                self._counter += 1
        return blocks[:size]

    def fill(self, secret: bytearray) -> None:
        """Overwrite `secret` with the next bytes of the stream."""
        secret[:] = self.token(len(secret))
