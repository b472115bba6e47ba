# SPDX-License-Identifier: Apache-2.0
"""The one HTTP transport: sends the judged bytes to the judged address, and nothing else anywhere.

Owns connections, pinning, time and size limits, and the translation of foreign errors. Leaves judging,
recording and credentials to the perimeter, and the meaning of a reply to the backend's decoder.
Carries P1 below the gate: what `release()` allowed is what is sent. So there are no redirects, no retries,
no proxies or certificates taken from the environment, no cookies, and no headers but those of the wire
request, the credential, `Host` and `Content-Length`. Carries I12: errors never quote a reply, and the HTTP
library logs nothing of an exchange, nor do the keys of a TLS session go to a file that the environment names.
"""

import logging
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Final, Self, TypeAlias

import anyio
import certifi
import httpx

from runner.capability.transport.locality import IP, parse_ip, resolve
from runner.kernel.errors import Redirected, TransportError
from runner.kernel.inference import Address, WireReply, WireRequest
from runner.kernel.ports import Credential

TrustStore: TypeAlias = ssl.SSLContext
"""Which certificates count."""
CONNECT_TIMEOUT_S: Final = 10.0
MAX_REPLY_BYTES: Final = 64 << 20
_OWN_HEADERS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_METHODS: Final = frozenset({"GET", "POST"})
_PATH: Final = re.compile(r"/[!-~]*\Z")
_LOGGERS: Final = ("httpcore.connection", "httpcore.http11", "httpx")
"""The loggers of the HTTP library that an exchange reaches. A logger's filter does not see its children's."""
_ours: ContextVar[bool] = ContextVar("_ours", default=False)


def _is_not_ours(_: logging.LogRecord) -> bool:
    """Drop what the HTTP library logs while it works for us: it quotes status lines and headers (I12).

    What a host program does with the same library is logged as ever.
    """
    return not _ours.get()


for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_is_not_ours)


class HttpTransport:
    """Sends wire requests over HTTP/1.1, one fresh connection each. Implements `Transport`.

    `timeout_s` bounds one exchange from name resolution to the last byte; connecting has
    `CONNECT_TIMEOUT_S` of it per address. `max_reply_bytes` bounds a reply's body. `tls` replaces the public
    certificate authorities, for a server with a private one. Plain http is for loopback only, unless
    `unsafe_plain_http` says that the network in between is trusted with everything that may leave.
    """

    def __init__(
        self,
        timeout_s: float,
        *,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        tls: TrustStore | None = None,
        unsafe_plain_http: bool = False,
    ) -> None:
        self._timeout_s = timeout_s
        self._max_reply_bytes = max_reply_bytes
        self._tls = tls or public_tls()
        self._unsafe_plain_http = unsafe_plain_http

    @asynccontextmanager
    async def open(self, wire: WireRequest, *, credential: Credential | None) -> AsyncIterator[WireReply]:
        """Send `wire` and yield its reply, whatever its status. Leaving the context closes the connection.

        Raises `Redirected` on a redirect, and `TransportError` when nothing could be sent or received, and on
        a compressed reply; iterating the reply raises it when the reply breaks off, takes too long or is too
        large.
        """
        async with exchanged(
            wire,
            credential=credential,
            pin=self._pin,
            tls=self._tls,
            timeout_s=self._timeout_s,
            limit=self._max_reply_bytes,
        ) as reply:
            _refuse_unasked(reply)
            yield reply

    async def _pin(self, address: Address) -> tuple[IP, ...]:
        """Return the addresses to connect to: resolved once, so what is checked is what is used."""
        if address.scheme not in {"http", "https"}:
            raise TransportError(f"{address} is not an HTTP address")
        addresses = await resolve(address)
        plain = address.scheme == "http" and not self._unsafe_plain_http
        if plain and not all(ip.is_loopback for ip in addresses):
            raise TransportError(f"{address} is not on this machine: use https")
        return addresses


@asynccontextmanager
async def exchanged(
    wire: WireRequest,
    *,
    credential: Credential | None,
    pin: Callable[[Address], Awaitable[tuple[IP, ...]]],
    tls: TrustStore,
    timeout_s: float,
    limit: int,
) -> AsyncIterator[WireReply]:
    """Send `wire` to an address that `pin` names, and yield the reply, whatever it says: the core of both.

    `pin` says once which addresses the host has, in order, or raises `TransportError`; no other is dialled.
    `timeout_s` and `limit`, in bytes, are those of `HttpTransport`. Raises `TransportError`.
    """
    deadline = anyio.current_time() + timeout_s
    async with _unlogged_at_its_end(verify=tls) as connection:
        with _translated(wire.address, deadline):
            response = await _sent(connection, wire, credential, await pin(wire.address))
        chunks = _Chunks(response, wire.address, deadline, limit)
        try:
            headers = tuple((name.lower(), value) for name, value in response.headers.multi_items())
            yield WireReply(status=response.status_code, chunks=chunks, headers=headers)
        finally:
            chunks.over = True
            with _unlogged():
                await response.aclose()


async def _sent(
    connection: httpx.AsyncHTTPTransport,
    wire: WireRequest,
    credential: Credential | None,
    addresses: Sequence[IP],
) -> httpx.Response:
    """Send `wire` to the first of `addresses` that accepts a connection."""
    for ip in addresses:
        request = _request(wire, credential, ip)
        try:
            return await connection.handle_async_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if ip == addresses[-1]:
                raise
    raise TransportError(f"the host of {wire.address} has no address")


class _Chunks:
    """The body of a reply as it arrives, within its deadline and size."""

    def __init__(self, response: httpx.Response, address: Address, deadline: float, limit: int) -> None:
        self._raw = response.aiter_raw()
        self._address = address
        self._deadline = deadline
        self._left = limit
        self.over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self.over:
            raise TransportError("a reply is read before its context is left")
        with _translated(self._address, self._deadline):
            chunk = await anext(self._raw)
        self._left -= len(chunk)
        if self._left < 0:
            raise TransportError(f"the reply of {self._address} is too large")
        return chunk


def _request(wire: WireRequest, credential: Credential | None, ip: IP) -> httpx.Request:
    """Return `wire` for `ip`; TLS still checks the certificate against the name."""
    if wire.method not in _METHODS:
        raise TransportError("the method of a wire request is GET or POST")
    if not _PATH.match(wire.path):
        raise TransportError("the path of a wire request is an absolute path in printable ASCII")
    if any(name.lower() in _OWN_HEADERS for name, _ in wire.headers):
        raise TransportError("a wire request must not set the transport's own headers")
    added = [(credential.header, credential.value)] if credential else []
    return httpx.Request(
        wire.method,
        httpx.URL(scheme=wire.address.scheme, host=str(ip), port=wire.address.port or None, path="/"),
        headers=[("Host", _host(wire.address)), *wire.headers, *added],
        content=wire.body,
        extensions={
            "target": wire.path.encode("ascii"),
            "sni_hostname": wire.address.host,
            "timeout": {"connect": CONNECT_TIMEOUT_S},
        },
    )


def _host(address: Address) -> str:
    literal = parse_ip(address.host)
    host = f"[{address.host}]" if literal is not None and literal.version == 6 else address.host  # noqa: PLR2004 - IP version
    return f"{host}:{address.port}" if address.port else host


def _refuse_unasked(reply: WireReply) -> None:
    """Raise `Redirected` for a redirect, which names an unjudged address; refuse unasked compression."""
    if 300 <= reply.status < 400:  # noqa: PLR2004 - RFC 9110, section 15.4
        raise Redirected(reply.status)
    if any(name == "content-encoding" and value != "identity" for name, value in reply.headers):
        raise TransportError("the server compressed its reply, which was not asked for")


def public_tls() -> TrustStore:
    """Return a context that trusts the public authorities and takes nothing from the environment.

    `ssl.create_default_context` would write the session's keys to the file that `SSLKEYLOGFILE` names.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile=certifi.where())
    return context


@contextmanager
def _unlogged() -> Iterator[None]:
    """Run one step of an exchange without what the HTTP library logs of it."""
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


@asynccontextmanager
async def _unlogged_at_its_end(verify: TrustStore) -> AsyncIterator[httpx.AsyncHTTPTransport]:
    """Yield a connection of the HTTP library; a server may keep it open, and its end is not logged."""
    connection = httpx.AsyncHTTPTransport(verify=verify, trust_env=False, retries=0)
    try:
        yield connection
    finally:
        with _unlogged():
            await connection.aclose()


@contextmanager
def _translated(address: Address, deadline: float) -> Iterator[None]:
    """Run one step of an exchange with `address` until `deadline`; foreign errors become `TransportError`."""
    try:
        with anyio.fail_after(max(0.0, deadline - anyio.current_time())), _unlogged():
            yield
    except (TimeoutError, httpx.TimeoutException):
        raise TransportError(f"{address} took too long") from None
    except httpx.ConnectError:
        raise TransportError(f"{address} cannot be reached, or its certificate is not accepted") from None
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError):
        raise TransportError(f"the exchange with {address} broke off") from None
