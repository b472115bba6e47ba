# SPDX-License-Identifier: Apache-2.0
"""Inference: what is asked of a model and what crosses the wire for it.

Owns the typed request (there is no `extra_body` through which content could ride), the exact bytes
it becomes, and the reply. Leaves encoding to backends and judging to the perimeter. Serves P1.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from runner.kernel.errors import BackendError
from runner.kernel.messages import Block, JsonObject, Message, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceRequest:
    """One question to a model.

    `schema` constrains the reply to JSON of that JSON Schema (None: free text). `tools` are offered in the
    runtime's own protocol. `max_tokens` bounds the reply; `temperature` is in [0, 2]; `seed` makes sampling
    repeatable where the runtime allows it. `frequency_penalty` in [0, 2] makes a token less likely each time
    it was written, so that a model leaves what it would repeat without end.

    Raises `BackendError` for tools together with a schema: open models then stop calling tools, and
    llama-server refuses the request.
    """

    messages: tuple[Message, ...]
    schema: JsonObject | None = field(default=None, repr=False)
    tools: tuple[ToolSpec, ...] = field(default=(), repr=False)
    max_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    frequency_penalty: float = 0.0
    stream: bool = False

    def __post_init__(self) -> None:
        """Check that a reply is held by one mechanism only; raise `BackendError`."""
        if self.tools and self.schema is not None:
            raise BackendError(
                "a request offers tools and holds its reply to a schema: models stop calling tools then, and"
                " llama-server answers 400. Fix: ask twice, for the tool and for its arguments"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest:
    """Texts to be turned into vectors, all in one batch: one text a block, in order."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where bytes go: `scheme` http, https or inproc; `host` and `port` empty and 0 for inproc."""

    scheme: str
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        """Return `scheme://host:port`."""
        return f"{self.scheme}://{self.host}:{self.port}" if self.host else f"{self.scheme}:"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """The exact bytes that would leave: what the gate judges and the transport sends, nothing else."""

    method: str
    address: Address
    path: str = field(repr=False)
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireReply:
    """An answer as it arrives: `status` as in HTTP, `chunks` of body bytes in order.

    `headers` are names in lower case with their values, in order; a transport without any leaves them out.
    """

    status: int
    chunks: AsyncIterator[bytes] = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole reply: `status` as in HTTP, `body` its bytes, `headers` as in `WireReply`."""

    status: int
    body: bytes = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def header(self, name: str) -> str | None:
        """Return the value of the header `name`, in lower case; None where it is not there exactly once."""
        values = [value for each, value in self.headers if each == name]
        return values[0] if len(values) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the runtime reports them; 0 where it does not."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A call as a model wrote it in its runtime's protocol: nobody has judged it, and it may be anything.

    `arguments` is JSON text, or an object where the runtime parsed it.
    """

    name: str = field(repr=False)
    arguments: str | JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceReply:
    """What a backend decoded: `text`, `finish` ("stop", "length" or the runtime's own word), `usage`.

    `calls` are those in the runtime's own protocol, in order, none of them judged.
    """

    text: str = field(repr=False)
    finish: str = field(repr=False)
    usage: Usage = Usage()
    calls: tuple[WrittenCall, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingReply:
    """What a backend decoded: `vectors` in the order of the texts, not yet validated, and `usage`."""

    vectors: tuple[tuple[float, ...], ...] = field(repr=False)
    usage: Usage = Usage()
