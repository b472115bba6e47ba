# SPDX-License-Identifier: Apache-2.0
"""Locality: how far "this address is on this machine" can be checked from the address alone.

Owns name resolution and the loopback test, for the check and for the HTTP transport alike. Leaves what a
server says about itself (grade L1) to a fingerprint, and what a grade is good for to the perimeter.
Carries I10: a grade is checked each time it is asked for, and doubt is `REMOTE`.
"""

import ipaddress
import socket
from typing import TypeAlias

import anyio

from runner.kernel.errors import TransportError
from runner.kernel.inference import Address
from runner.kernel.ports import Locality

IP: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_ip(host: str) -> IP | None:
    """Return the address that `host` spells out, or None when it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


async def resolve(address: Address) -> tuple[IP, ...]:
    """Return the addresses that `address.host` means now, in the system's order, at least one.

    A literal is returned without asking anybody. Raises `TransportError` when the name means nothing.
    """
    literal = parse_ip(address.host)
    if literal is not None:
        return (literal,)
    try:
        found = await anyio.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise TransportError(f"the host of {address} has no address; check its spelling") from None
    addresses = [parse_ip(str(entry[4][0])) for entry in found]
    return tuple(dict.fromkeys(ip for ip in addresses if ip is not None))


class LoopbackCheck:
    """Grades an address by where it points. Implements `LocalityCheck`.

    The engine in this process is L2. HTTP to a loopback literal, or to the name `localhost` when all it
    resolves to is loopback, is L0. Any other name is `REMOTE`, even one that points here at the moment:
    whoever answers for the name could point it elsewhere.
    """

    async def grade(self, address: Address) -> Locality:
        """Return the grade that was checked now; `REMOTE` when in doubt. Raises nothing."""
        match address.scheme:
            case "inproc":
                return Locality.L2
            case "http" | "https":
                return Locality.L0 if await _is_loopback(address) else Locality.REMOTE
            case _:
                return Locality.REMOTE


async def _is_loopback(address: Address) -> bool:
    literal = parse_ip(address.host)
    if literal is not None:
        return literal.is_loopback
    if address.host != "localhost":
        return False
    try:
        addresses = await resolve(address)
    except TransportError:
        return False
    return bool(addresses) and all(ip.is_loopback for ip in addresses)
