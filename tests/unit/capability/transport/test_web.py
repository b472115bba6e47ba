# SPDX-License-Identifier: Apache-2.0
"""P1, I1, I12: a page comes from a public host that proves its name, and from nowhere else."""

import ipaddress
import logging
import socket
from typing import Any, Final

import anyio
import pytest
from pages import LOOPBACK, Authority, Names, PageServer, page, redirect

from runner.capability.transport.web import WebTransport, is_public
from runner.kernel.errors import TransportError
from runner.kernel.inference import Address, WireReply, WireRequest
from runner.kernel.ports import Credential

pytestmark = pytest.mark.anyio
HOST: Final = "www.example.org"
CANARY: Final = "RSSMRA80A01F205X"
AUTHORITY: Final = Authority()

INSIDE: Final = [
    "0.0.0.0",  # noqa: S104 - an address to refuse
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:93.184.216.34",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::5db8:d822",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:5db8:d822::1",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%1",
    "2606:2800::1%1",
    "fec0::1",
    "ff02::1",
    "4000::1",
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("address", INSIDE)
def test_i1_an_address_that_is_not_the_public_internets_is_refused(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "1.1.1.1", "100.128.0.1", "172.32.0.1", "2606:4700::1111"]
)
def test_an_address_of_the_public_internet_is_not(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def wire(port: int, *, host: str = HOST, scheme: str = "https", **changes: Any) -> WireRequest:
    request: dict[str, Any] = {
        "method": "GET",
        "path": "/",
        "headers": (("Accept", "text/html"),),
        "body": b"",
    }
    return WireRequest(address=Address(scheme=scheme, host=host, port=port), **{**request, **changes})


def transport(names: Names, **changes: Any) -> WebTransport:
    parts: dict[str, Any] = {"tls": AUTHORITY.trust, "resolver": names, "admits": [LOOPBACK].__contains__}
    return WebTransport(5.0, **{**parts, **changes})


async def fetched(web: WebTransport, request: WireRequest) -> tuple[WireReply, bytes]:
    async with web.open(request, credential=None) as reply:
        return reply, b"".join([chunk async for chunk in reply.chunks])


async def test_p1_the_judged_bytes_are_sent_and_no_others() -> None:
    with PageServer(AUTHORITY.server(HOST), {"/": page("ciao")}) as server:
        reply, body = await fetched(transport(Names()), wire(server.port, path="/?q=%20"))
        assert (reply.status, body) == (200, b"ciao")
        assert dict(reply.headers)["content-type"] == "text/html; charset=utf-8"
    expected = f"GET /?q=%20 HTTP/1.1\r\nHost: {HOST}:{server.port}\r\nAccept: text/html\r\n\r\n"
    assert server.received == [expected.encode()]
    assert server.asked == [HOST]


async def test_i1_as_shipped_a_name_that_means_this_machine_is_not_asked() -> None:
    with PageServer(AUTHORITY.server(HOST), {"/": page("ciao")}) as server:
        web = WebTransport(5.0, tls=AUTHORITY.trust, resolver=Names())
        with pytest.raises(TransportError, match="inside a network"):
            await fetched(web, wire(server.port))
        assert (server.received, server.asked) == ([], [])


@pytest.mark.parametrize("answers", [["127.0.0.1", "10.0.0.1"], ["93.184.216.34", "::1"]], ids=["v4", "v6"])
async def test_i1_one_address_inside_is_enough(answers: list[str]) -> None:
    names = Names({HOST: [answers]})
    with pytest.raises(TransportError, match="inside a network"):
        await fetched(transport(names, admits=is_public), wire(443))


async def test_i1_a_name_that_changes_its_mind_is_asked_once_and_dialled_where_it_was_checked() -> None:
    """DNS rebinding: the second answer is the machine itself, and nobody asks for a second answer."""
    dialled: list[Any] = []
    names = Names({HOST: [["192.0.2.7"], ["127.0.0.1"]]})
    first = ipaddress.ip_address("192.0.2.7")

    async def dial(remote_host: object, remote_port: object, **_: object) -> None:
        dialled.append((remote_host, remote_port))
        raise OSError

    with PageServer(AUTHORITY.server(HOST), {"/": page("inside")}) as server:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(TransportError):
            patch.setattr(anyio, "connect_tcp", dial)
            await fetched(transport(names, admits=[first].__contains__), wire(server.port))
        assert (names.asked, dialled) == ([HOST], [("192.0.2.7", server.port)])
        assert server.received == []


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (AUTHORITY.server("other.example.org"), "another name"),
        (AUTHORITY.server(HOST, days=(-9, -1)), "expired"),
        (AUTHORITY.server(HOST, days=(1, 9)), "not yet"),
        (Authority().server(HOST), "an authority nobody knows"),
        (AUTHORITY.server("*.org"), "a wildcard too wide"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_i1_a_host_proves_its_name(server: Any, problem: str) -> None:  # noqa: ARG001 - names the case
    with PageServer(server, {"/": page("ciao")}) as listening:
        with pytest.raises(TransportError, match="certificate is not accepted"):
            await fetched(transport(Names()), wire(listening.port))
        assert listening.received == []


async def test_i1_as_shipped_only_public_authorities_count() -> None:
    with PageServer(AUTHORITY.server(HOST), {"/": page("ciao")}) as listening:
        web = WebTransport(5.0, resolver=Names(), admits=[LOOPBACK].__contains__)
        with pytest.raises(TransportError, match="certificate is not accepted"):
            await fetched(web, wire(listening.port))


async def test_p1_the_environment_adds_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with PageServer(None, {}) as proxy, PageServer(AUTHORITY.server(HOST), {"/": page("ciao")}) as server:
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await fetched(transport(Names()), wire(server.port)))[1] == b"ciao"
        assert proxy.received == []


async def test_p1_a_redirect_is_an_answer_and_nothing_goes_on() -> None:
    with PageServer(AUTHORITY.server(HOST), {"/": redirect("/next"), "/next": page("no")}) as server:
        reply, _ = await fetched(transport(Names()), wire(server.port))
        assert (reply.status, dict(reply.headers)["location"]) == (302, "/next")
        assert server.targets == ["/"]


async def test_p1_no_cookie_goes_back() -> None:
    with PageServer(AUTHORITY.server(HOST), {"/": page("x", headers=[("Set-Cookie", "a=b")])}) as server:
        web = transport(Names())
        for _ in range(2):
            await fetched(web, wire(server.port))
        assert b"ookie" not in server.received[1]


@pytest.mark.parametrize(
    "change",
    [{"method": "POST"}, {"body": b"x"}, {"path": "x"}, {"path": "/\r\nX: y"}, {"scheme": "ftp"}],
    ids=str,
)
async def test_p1_only_a_bare_get_of_a_path_is_sent(change: dict[str, Any]) -> None:
    with PageServer(AUTHORITY.server(HOST), {}) as server:
        with pytest.raises(TransportError):
            await fetched(transport(Names()), wire(server.port, **change))
        assert server.received == []


async def test_i5_a_credential_is_one_header_more_and_only_within_tls() -> None:
    credential = Credential(header="Authorization", value=CANARY)
    with PageServer(AUTHORITY.server(HOST), {"/": page("x")}) as server:
        async with transport(Names()).open(wire(server.port), credential=credential):
            pass
        expected = f"Host: {HOST}:{server.port}\r\nAccept: text/html\r\nAuthorization: {CANARY}\r\n\r\n"
        assert server.received == [f"GET / HTTP/1.1\r\n{expected}".encode()]
    with PageServer(None, {"/": page("x")}) as server:
        with pytest.raises(TransportError, match="by https only"):
            async with transport(Names()).open(wire(server.port, scheme="http"), credential=credential):
                pass
        assert server.received == []


def dripping(stream: socket.socket) -> None:
    """Send a head and then a byte at a time, for longer than anybody waits."""
    stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nContent-Type: text/html\r\n\r\n")
    stream.settimeout(0.01)
    for _ in range(500):
        stream.sendall(b"x")
        try:
            if not stream.recv(1):
                return
        except TimeoutError:
            continue


HOSTILE: Final[dict[str, Any]] = {
    "a huge header": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 60_000 + b"\r\n",
    "a slow body": dripping,
    "a body that is too short": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "a length that is no number": b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc",
    "a chunk without an end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "a chunk of no size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n",
    "a chunk of a negative size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nab\r\n",
    "a coding nobody knows": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
    "nothing": b"",
    "a page that is too large": page("x" * 70_000),
    "a page that does not end": lambda stream: [stream.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 99_000)],
    "folded headers with a control": b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_i12_a_hostile_answer_is_an_error_within_bounds_that_quotes_nothing(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with PageServer(AUTHORITY.server(HOST), {"/": HOSTILE[name]}) as server, anyio.fail_after(120):
        web = WebTransport(
            0.5,
            max_reply_bytes=65_536,
            tls=AUTHORITY.trust,
            resolver=Names(),
            admits=[LOOPBACK].__contains__,
        )
        with pytest.raises(TransportError) as caught:
            await fetched(web, wire(server.port))
    assert caught.value.__cause__ is None
    assert "xxx" not in caplog.text


async def test_a_chunked_page_is_read() -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    with PageServer(AUTHORITY.server(HOST), {"/": answer}) as server:
        assert (await fetched(transport(Names()), wire(server.port)))[1] == b"abcde"


async def test_a_name_that_means_nothing_is_an_error() -> None:
    with pytest.raises(TransportError):
        await fetched(transport(Names({HOST: [[]]})), wire(443))
