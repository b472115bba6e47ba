# SPDX-License-Identifier: Apache-2.0
"""One request to an address that the operator wrote: to a witness, or to a time-stamp authority.

Owns reading the address and the exchange. No run does this, and no content goes this way: a name, sizes,
hashes, signatures (I12). Carries I6 on this side: in the profile `detached` it goes nowhere off this machine.
"""

import re
from dataclasses import dataclass
from typing import Final

import anyio
import typer

from runner.capability.transport.http import HttpTransport
from runner.kernel.errors import TraceError, TransportError
from runner.kernel.inference import Address, WireRequest

_TIMEOUT_S: Final = 30.0
_MAX_ANSWER: Final = 1 << 16
_URL: Final = re.compile(r"(https?)://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(/[!-~]*)?")
_PORTS: Final = {"http": 80, "https": 443}
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a request goes."""

    address: Address
    path: str


def address(url: str, profile: str, option: str, *, end: str = "") -> Place:
    """Return the place of `url`, its path ending in `end`; raise `typer.BadParameter` of `option`."""
    matched = _URL.fullmatch(url)
    if matched is None:
        raise typer.BadParameter("write it as http(s)://host[:port][/path]", param_hint=option)
    if profile == "detached" and matched[2] not in _LOOPBACK:
        said = (
            "nothing leaves this machine in the profile detached. For a witness: --to-file, then --from-file"
        )
        raise typer.BadParameter(said, param_hint=option)
    port = int(matched[3] or _PORTS[matched[1]])
    path = (matched[4] or "").rstrip("/") + end if end else matched[4] or "/"
    return Place(address=Address(scheme=matched[1], host=matched[2].strip("[]"), port=port), path=path)


def post(place: Place, body: bytes, media: str) -> tuple[int, bytes]:
    """Return status and body of the answer to `body`; raise `TraceError` when there is none.

    Plain http is enough: nothing in it is secret, and an answer counts by its signature.
    """
    return anyio.run(_post, place, body, media)


async def _post(place: Place, body: bytes, media: str) -> tuple[int, bytes]:
    transport = HttpTransport(_TIMEOUT_S, max_reply_bytes=_MAX_ANSWER, unsafe_plain_http=True)
    headers = (("Content-Type", media),)
    wire = WireRequest(method="POST", address=place.address, path=place.path, headers=headers, body=body)
    try:
        async with transport.open(wire, credential=None) as reply:
            return reply.status, b"".join([chunk async for chunk in reply.chunks])
    except TransportError as error:
        raise TraceError(
            f"there was no answer: {error}. Fix: check the address, and that it is reachable"
        ) from None
