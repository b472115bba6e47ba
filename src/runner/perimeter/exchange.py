# SPDX-License-Identifier: Apache-2.0
"""One exchange with a model: bytes out, a reply in, within the time and the size of what was asked for.

Owns those two bounds. Leaves judging and recording to `client.py`, bytes to the transport, and their meaning
to the backend's decoder. A server does not get to say how long we read and classify: a reply has room for the
tokens that were asked for.
"""

from collections.abc import Callable
from typing import Final

import anyio

from runner.kernel.errors import BackendError
from runner.kernel.inference import Answer, InferenceReply, InferenceRequest, WireRequest
from runner.kernel.ports import Backend, Credential, Transport

TOKEN_CHARACTERS: Final = 32
TOKEN_BYTES: Final = 4096
"""What one token may come to, in text and on the wire, where each may have a frame of its own."""
SLACK_CHARACTERS: Final = 4096
SLACK_BYTES: Final = 1 << 20
"""What a reply may hold beyond its tokens, and what an error may, which has none."""


async def exchange(
    wire: WireRequest,
    request: InferenceRequest,
    backend: Backend,
    *,
    transport: Transport,
    credential: Credential | None,
    timeout_s: float,
    on_text: Callable[[str], None] | None,
) -> InferenceReply:
    """Send `wire`, the bytes of `request`, and return what `backend` reads in the reply.

    `on_text` is called with each piece of text as it arrives. Raises `TimeoutError` after `timeout_s`
    seconds, `BackendError` for a reply that cannot be read or is too long, and `TransportError`.
    """
    room = _Room(request.max_tokens, backend.name)
    with anyio.fail_after(timeout_s):
        async with transport.open(wire, credential=credential) as reply:
            decoder = backend.decoder(request, reply.status)
            async for chunk in reply.chunks:
                room.take(chunk)
                text = decoder.feed(chunk)
                room.show(text)
                if text and on_text is not None:
                    on_text(text)
            whole = decoder.finish()
    room.hold(size_of(whole))
    return whole


async def collect(
    wire: WireRequest,
    *,
    backend: str,
    transport: Transport,
    credential: Credential | None,
    timeout_s: float,
    limit: int,
) -> Answer:
    """Send `wire` and return the whole reply, of at most `limit` bytes.

    Raises `TimeoutError` after `timeout_s` seconds, `BackendError`, naming `backend`, for a longer reply, and
    `TransportError`.
    """
    chunks: list[bytes] = []
    with anyio.fail_after(timeout_s):
        async with transport.open(wire, credential=credential) as reply:
            async for chunk in reply.chunks:
                chunks.append(chunk)
                limit -= len(chunk)
                if limit < 0:
                    raise BackendError(f"backend {backend!r}: its reply is longer than its vectors can be")
            return Answer(status=reply.status, body=b"".join(chunks))


def size_of(reply: InferenceReply) -> int:
    """Return how many characters the model wrote in `reply`, its calls included."""
    return len(reply.text) + sum(len(call.name) + len(str(call.arguments)) for call in reply.calls)


class _Room:
    """What is left for a reply of so many tokens. Its methods raise `BackendError` when it is not enough."""

    __slots__ = ("_bytes", "_characters", "_left", "_name", "_tokens")

    def __init__(self, tokens: int, name: str) -> None:
        self._tokens, self._name = tokens, name
        self._bytes = tokens * TOKEN_BYTES + SLACK_BYTES
        self._characters = self._left = tokens * TOKEN_CHARACTERS + SLACK_CHARACTERS

    def take(self, chunk: bytes) -> None:
        """Make room for what arrived."""
        self._bytes -= len(chunk)
        self._check(self._bytes)

    def show(self, text: str) -> None:
        """Make room for a piece of text."""
        self._left -= len(text)
        self._check(self._left)

    def hold(self, characters: int) -> None:
        """Make room for the whole reply, whatever was shown of it before."""
        self._check(self._characters - characters)

    def _check(self, left: int) -> None:
        if left < 0:
            raise BackendError(
                f"backend {self._name!r}: its reply is longer than {self._tokens} tokens can be"
            )
