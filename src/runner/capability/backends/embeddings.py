# SPDX-License-Identifier: Apache-2.0
"""The codecs of embedding endpoints: `/v1/embeddings`, as OpenAI and llama-server have it, and Ollama's own.

Owns how a batch of texts is laid out, and how the vectors are found in a reply. Leaves whether these are as
many vectors, of as many finite numbers, as were asked for to the perimeter, which trusts no codec, and I/O to
the transport. Serves P1: the bytes depend on the typed batch only, and hold all of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from runner.capability.backends.protocol import (
    NotProtocolError,
    describe_status,
    encode_json,
    member_count,
    member_object,
    member_vector,
    parse_object,
    texts_of,
)
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, EmbeddingReply, EmbeddingRequest, Usage, WireRequest
from runner.kernel.messages import JsonObject

PATH: Final = "/v1/embeddings"
OLLAMA_PATH: Final = "/api/embed"
KEEP_ALIVE: Final = "5m"
"""How long Ollama keeps the model in memory, as for a chat."""
_OK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIEmbedder:
    """An OpenAI-shaped embedding endpoint at `address`, asked for `model`. Implements `Embedder`."""

    name: str
    model: str
    address: Address

    def encode(self, request: EmbeddingRequest) -> WireRequest:
        """Return the exact bytes for the whole batch; raise `BackendError` if it holds what is not text."""
        body: JsonObject = {
            "model": self.model,
            "input": texts_of(self.name, request.blocks),
            "encoding_format": "float",
        }
        return _post(self.name, self.address, PATH, body)

    def parse(self, request: EmbeddingRequest, status: int, body: bytes) -> EmbeddingReply:  # noqa: ARG002 - the port
        """Return what `body` says; raise `BackendError` for another status than 200, or another protocol."""
        return _parsed(self.name, status, body, parse_listing)


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaEmbedder:
    """Ollama's embedding endpoint at `address`, asked for `model`. Implements `Embedder`.

    A text beyond the model's context is refused, not cut.
    """

    name: str
    model: str
    address: Address

    def encode(self, request: EmbeddingRequest) -> WireRequest:
        """Return the exact bytes for the whole batch; raise `BackendError` if it holds what is not text."""
        body: JsonObject = {
            "model": self.model,
            "input": texts_of(self.name, request.blocks),
            "truncate": False,
            "keep_alive": KEEP_ALIVE,
        }
        return _post(self.name, self.address, OLLAMA_PATH, body)

    def parse(self, request: EmbeddingRequest, status: int, body: bytes) -> EmbeddingReply:  # noqa: ARG002 - the port
        """Return what `body` says; raise `BackendError` for another status than 200, or another protocol."""
        return _parsed(self.name, status, body, parse_vectors)


def _post(name: str, address: Address, path: str, body: JsonObject) -> WireRequest:
    headers = (("Content-Type", "application/json"), ("Accept", "application/json"))
    return WireRequest(
        method="POST", address=address, path=path, headers=headers, body=encode_json(name, body)
    )


def _parsed(name: str, status: int, body: bytes, parse: Callable[[bytes], EmbeddingReply]) -> EmbeddingReply:
    if status != _OK:
        raise BackendError(describe_status(name, status))
    try:
        return parse(body)
    except NotProtocolError:
        raise BackendError(f"backend {name!r} did not answer in its protocol") from None


# --- parsing: from here on the bytes are a server's, and nothing in them is believed -------------------


def parse_listing(data: bytes) -> EmbeddingReply:
    """Return an OpenAI-shaped listing in the order of its indices. Raises `NotProtocolError`."""
    members = parse_object(data)
    listed = members.get("data")
    if not isinstance(listed, list):
        raise NotProtocolError
    entries = [member_object(item) for item in listed]
    places = [entry.get("index") for entry in entries]
    if any(type(place) is not int for place in places) or set(places) != set(range(len(entries))):
        raise NotProtocolError
    found = {entry.get("index"): member_vector(entry.get("embedding")) for entry in entries}
    usage = members.get("usage")
    count = member_count(usage.get("prompt_tokens")) if isinstance(usage, dict) else 0
    return EmbeddingReply(
        vectors=tuple(found[place] for place in range(len(entries))), usage=Usage(prompt_tokens=count)
    )


def parse_vectors(data: bytes) -> EmbeddingReply:
    """Return Ollama's vectors, which stand in order. Raises `NotProtocolError`."""
    members = parse_object(data)
    listed = members.get("embeddings")
    if not isinstance(listed, list):
        raise NotProtocolError
    usage = Usage(prompt_tokens=member_count(members.get("prompt_eval_count")))
    return EmbeddingReply(vectors=tuple(map(member_vector, listed)), usage=usage)
