# SPDX-License-Identifier: Apache-2.0
"""Values that stay what they were when they were looked at: a backend, a request, the bytes of one.

Owns the copies that the perimeter works on instead of what it was handed. A backend may come from elsewhere,
and so may a request: either could say one thing when it is judged and another when it is sent.
Carries P1 (what is sent is what was judged) and I10 (under the name whose terms were read). Leaves judging to
others.
"""

from dataclasses import dataclass, field
from typing import TypeVar

from runner.kernel.errors import SealError
from runner.kernel.inference import Address, EmbeddingReply, EmbeddingRequest, InferenceRequest, WireRequest
from runner.kernel.messages import Message
from runner.kernel.ports import Backend, Decoder, Embedder

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedBackend:
    """A codec whose name, model and address are what they were when it was sealed. Implements `Backend`."""

    name: str
    model: str
    address: Address
    codec: Backend = field(repr=False)

    def encode(self, request: InferenceRequest) -> WireRequest:
        """Return the exact bytes for `request`; raise what the codec raises."""
        return self.codec.encode(request)

    def decoder(self, request: InferenceRequest, status: int) -> Decoder:
        """Return the codec's decoder for the reply to `request` that arrived with `status`."""
        return self.codec.decoder(request, status)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedEmbedder:
    """The same for a codec that embeds. Implements `Embedder`."""

    name: str
    model: str
    address: Address
    codec: Embedder = field(repr=False)

    def encode(self, request: EmbeddingRequest) -> WireRequest:
        """Return the exact bytes for the whole batch; raise what the codec raises."""
        return self.codec.encode(request)

    def parse(self, request: EmbeddingRequest, status: int, body: bytes) -> EmbeddingReply:
        """Return what the codec reads in `body`; raise what it raises."""
        return self.codec.parse(request, status, body)


def fixed_backend(backend: Backend) -> Backend:
    """Return `backend` with what it says about itself now."""
    return FixedBackend(
        name=backend.name, model=backend.model, address=fixed_address(backend.address), codec=backend
    )


def fixed_embedder(embedder: Embedder) -> Embedder:
    """Return `embedder` with what it says about itself now."""
    return FixedEmbedder(
        name=embedder.name, model=embedder.model, address=fixed_address(embedder.address), codec=embedder
    )


def fixed_request(request: InferenceRequest) -> InferenceRequest:
    """Return `request` with its messages as they are now, each read once.

    The blocks are the caller's own: a task knows the ones it minted by identity.
    """
    return InferenceRequest(
        messages=tuple(Message(role=each.role, blocks=tuple(each.blocks)) for each in request.messages),
        schema=request.schema,
        tools=tuple(request.tools),
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        seed=request.seed,
        frequency_penalty=request.frequency_penalty,
        stream=request.stream,
    )


def fixed_wire(wire: WireRequest) -> WireRequest:
    """Return a copy of `wire`, in which nothing can change; raise `SealError` if it is not bytes and text."""
    headers = tuple((_plain(name, str), _plain(value, str)) for name, value in wire.headers)
    return WireRequest(
        method=_plain(wire.method, str),
        address=fixed_address(wire.address),
        path=_plain(wire.path, str),
        headers=headers,
        body=_plain(wire.body, bytes),
    )


def exact_text(text: str) -> str:
    """Return the characters of `text` as a `str` and no subclass, which may answer differently each time.

    Raises `TypeError` for anything but text.
    """
    return str.__str__(text)


def exact_bytes(data: bytes) -> bytes:
    """Return the same of bytes. Raises `TypeError` for anything but `bytes`."""
    return bytes.__getitem__(data, slice(None))


def fixed_address(address: Address) -> Address:
    """Return a copy of `address`; raise `SealError` if it is not plain text and number."""
    return Address(
        scheme=_plain(address.scheme, str), host=_plain(address.host, str), port=_plain(address.port, int)
    )


def _plain(value: object, kind: type[T]) -> T:
    """Return `value` if it is of `kind` itself: a subclass may answer differently each time."""
    if type(value) is not kind:
        raise SealError(f"a wire request holds a {type(value).__name__} where a {kind.__name__} belongs")
    return value
