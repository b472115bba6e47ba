# SPDX-License-Identifier: Apache-2.0
"""The transport of pages: the one HTTP transport's core, to hosts that are the public internet's only.

Owns which addresses a page may come from. A name is asked about once, every address it has must be a public
one, and the connection goes to one of those, so that a name that changes its mind (DNS rebinding) reaches
nothing else; TLS still holds the server to the name. Leaves which hosts, what may be said to them and where a
redirect may lead to the perimeter, and the exchange itself to `http`. Serves P1 and I1: what lies inside the
practice's own network, or answers for the machine's cloud, is no page.
"""

import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from runner.capability.transport.http import TrustStore, exchanged, public_tls
from runner.capability.transport.locality import IP, resolve
from runner.kernel.errors import TransportError
from runner.kernel.inference import Address, WireReply, WireRequest
from runner.kernel.ports import Credential

PAGE_TIMEOUT_S: Final = 20.0
"""How long one page may take, from the name to the last byte."""
MAX_PAGE_BYTES: Final = 4 << 20
"""Bytes of one reply, as they arrive."""
_PRIVATE_4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # between a provider and its customers, and a metadata server
            "127.0.0.0/8",
            "168.63.129.16/32",  # a metadata server at a public address
            "169.254.0.0/16",  # link-local, and most metadata servers
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
"""What is not public of IPv4. Source: the IANA special-purpose address registry (RFC 6890)."""
_PUBLIC_6: Final = ipaddress.IPv6Network("2000::/3")
_PRIVATE_6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocols, Teredo among them: an address within an address
            "2001:db8::/32",
            "2002::/16",  # 6to4: an IPv4 address within
            "3fff::/20",
        ),
    )
)
"""What is not public in the one block of IPv6 that is: loopback, mapped IPv4 and NAT64 lie outside it."""


def is_public(ip: IP) -> bool:
    """Return whether `ip` is an address of the public internet, and hides no other address in itself."""
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in network for network in _PRIVATE_4)
    return ip.scope_id is None and ip in _PUBLIC_6 and not any(ip in network for network in _PRIVATE_6)


class WebTransport:
    """Asks public hosts for pages, one fresh connection each. Implements `Transport`.

    `timeout_s` and `max_reply_bytes` bound one exchange. `tls`, `resolver` and `admits` are parts that a test
    puts others in the place of: which certificates count, what a name means, which addresses may be dialled.
    No profile says anything of them.
    """

    def __init__(
        self,
        timeout_s: float = PAGE_TIMEOUT_S,
        *,
        max_reply_bytes: int = MAX_PAGE_BYTES,
        tls: TrustStore | None = None,
        resolver: Callable[[Address], Awaitable[tuple[IP, ...]]] = resolve,
        admits: Callable[[IP], bool] = is_public,
    ) -> None:
        self._timeout_s = timeout_s
        self._max_reply_bytes = max_reply_bytes
        self._tls = tls or public_tls()
        self._resolver = resolver
        self._admits = admits

    @asynccontextmanager
    async def open(self, wire: WireRequest, *, credential: Credential | None) -> AsyncIterator[WireReply]:
        """Ask for `wire` and yield the reply, whatever it says: a redirect too, which is not followed.

        Raises `TransportError` as `HttpTransport.open`, and for a host that has an address inside, for
        anything but a GET without a body, and for a credential without TLS.
        """
        if wire.method != "GET" or wire.body:
            raise TransportError("a page is asked for by GET, without a body")
        if credential is not None and wire.address.scheme != "https":
            raise TransportError("a credential is sent by https only")
        async with exchanged(
            wire,
            credential=credential,
            pin=self._pin,
            tls=self._tls,
            timeout_s=self._timeout_s,
            limit=self._max_reply_bytes,
        ) as reply:
            yield reply

    async def _pin(self, address: Address) -> tuple[IP, ...]:
        """Return what the host's name means, asked once; raise `TransportError` unless all is public."""
        if address.scheme not in {"http", "https"}:
            raise TransportError(f"{address} is not an HTTP address")
        addresses = await self._resolver(address)
        if not all(map(self._admits, addresses)):
            raise TransportError("that host has an address inside a network, and is not asked")
        return addresses
