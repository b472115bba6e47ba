# SPDX-License-Identifier: Apache-2.0
"""The HTTP transport: sends what was judged where it was judged, and nothing else. Defends P1, I5 and I12."""

import datetime as dt
import ipaddress
import logging
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import anyio
import httpx
import pytest
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.tls import TLSListener
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from runner.capability.transport.http import HttpTransport
from runner.kernel.errors import TransportError
from runner.kernel.inference import Address, WireRequest
from runner.kernel.ports import Credential
from runner.testing import BreakOff, Redirect, ScriptedServer, ServerError, Stall

pytestmark = pytest.mark.anyio
CHAT = "/v1/chat/completions"
CANARY = "RSSMRA80A01F205X"
KEY = Credential(header="Authorization", value="Bearer sk-secret-canary")


def wire(
    address: Address, body: bytes = b"{}", *, path: str = CHAT, extra: tuple[tuple[str, str], ...] = ()
) -> WireRequest:
    headers = (("Content-Type", "application/json"), *extra)
    return WireRequest(method="POST", address=address, path=path, headers=headers, body=body)


async def exchange(
    transport: HttpTransport, request: WireRequest, credential: Credential | None = None
) -> tuple[int, bytes]:
    async with transport.open(request, credential=credential) as reply:
        return reply.status, b"".join([chunk async for chunk in reply.chunks])


async def test_exactly_the_judged_bytes_are_sent_p1() -> None:
    with ScriptedServer(replies=["Ciao."]) as server:
        body = '{"messages":[],"x":"è"}'.encode()
        status, _ = await exchange(HttpTransport(5.0), wire(server.address, body), KEY)
        (received,) = server.received
    expected = (
        f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1:{server.address.port}\r\n"
        "Content-Type: application/json\r\nAuthorization: Bearer sk-secret-canary\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    assert (status, received) == (200, expected)


async def test_the_path_is_sent_as_judged() -> None:
    with ScriptedServer() as server:
        await exchange(HttpTransport(5.0), wire(server.address, path="/a/../b%2f?q={x}"))
        assert server.received[0].startswith(b"POST /a/../b%2f?q={x} HTTP/1.1\r\n")


async def test_a_redirect_is_refused_and_nothing_goes_on_p1() -> None:
    with (
        ScriptedServer(replies=["never"]) as elsewhere,
        ScriptedServer(replies=[Redirect(location=elsewhere.url + CHAT)]) as server,
    ):
        with pytest.raises(TransportError, match="307: redirects are not followed"):
            await exchange(HttpTransport(5.0), wire(server.address))
        assert len(server.received) == 1
        assert elsewhere.received == []


async def test_the_environment_cannot_add_a_proxy_p1(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer() as proxy, ScriptedServer(replies=["Ciao."]) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        await exchange(HttpTransport(5.0), wire(server.address))
        assert (len(server.received), proxy.received) == (1, [])


async def test_a_failed_request_is_not_sent_again_p1() -> None:
    with ScriptedServer(replies=[BreakOff(text="x", after=0), "second"]) as server:
        with pytest.raises(TransportError):
            await exchange(HttpTransport(5.0), wire(server.address))
        assert len(server.received) == 1


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "0.0.0.0"])  # noqa: S104 - an address to refuse
async def test_plain_http_stays_on_this_machine(host: str) -> None:
    with pytest.raises(TransportError, match="use https"):
        await exchange(HttpTransport(5.0), wire(Address(scheme="http", host=host, port=9)))


async def test_plain_http_elsewhere_needs_an_explicit_word(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(replies=["Ciao."]) as server:
        elsewhere = Address(scheme="http", host="192.0.2.7", port=server.address.port)
        dialled: list[object] = []
        connect = anyio.connect_tcp

        async def reroute(remote_host: object, **_: object) -> object:
            dialled.append(remote_host)
            return await connect("127.0.0.1", server.address.port)

        monkeypatch.setattr(anyio, "connect_tcp", reroute)
        status, _ = await exchange(HttpTransport(5.0, unsafe_plain_http=True), wire(elsewhere))
    assert (status, dialled) == (200, ["192.0.2.7"])


async def test_a_name_is_resolved_once_and_its_address_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    async def resolver(host: object, port: int, **_: object) -> list[object]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(anyio, "getaddrinfo", resolver)
    with ScriptedServer(replies=["Ciao."]) as server:
        named = Address(scheme="http", host="model.example", port=server.address.port)
        await exchange(HttpTransport(5.0), wire(named))
        assert asked == ["model.example"]
        assert b"\r\nHost: model.example:" in server.received[0]


async def test_localhost_falls_back_to_its_other_address() -> None:
    with ScriptedServer(replies=["Ciao."]) as server:
        named = Address(scheme="http", host="localhost", port=server.address.port)
        assert (await exchange(HttpTransport(5.0), wire(named)))[0] == 200


@pytest.mark.parametrize(
    "address",
    [
        Address(scheme="inproc"),
        Address(scheme="ftp", host="127.0.0.1", port=21),
        Address(scheme="https", host="no-such-host.invalid", port=443),
        Address(scheme="http", host="a" * 300, port=80),
        Address(scheme="http", host="", port=80),
    ],
)
async def test_an_address_without_a_meaning_is_a_transport_error(address: Address) -> None:
    with pytest.raises(TransportError):
        await exchange(HttpTransport(5.0), wire(address))


@pytest.mark.parametrize("path", ["", "v1", "/a b", "/a\r\nX: y", "/è"])
async def test_a_path_cannot_smuggle_a_header(path: str) -> None:
    with ScriptedServer() as server:
        with pytest.raises(TransportError):
            await exchange(HttpTransport(5.0), wire(server.address, path=path))
        assert server.received == []


@pytest.mark.parametrize("header", [("Host", "other"), ("content-length", "1"), ("X", f"{CANARY}\r\nY: z")])
async def test_headers_cannot_reframe_the_request(header: tuple[str, str]) -> None:
    with ScriptedServer() as server:
        with pytest.raises(TransportError) as caught:
            await exchange(HttpTransport(5.0), wire(server.address, extra=(header,)))
        assert server.received == []
    assert CANARY not in str(caught.value)


async def test_a_refused_connection_is_a_transport_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(TransportError, match="cannot be reached"):
        await exchange(HttpTransport(5.0), wire(Address(scheme="http", host="127.0.0.1", port=port)))


@pytest.mark.parametrize("after_head", [False, True])
async def test_a_stalled_server_runs_into_the_deadline(*, after_head: bool) -> None:
    server = ScriptedServer(replies=[Stall(after_head=after_head)])
    with server, anyio.fail_after(120), pytest.raises(TransportError, match="took too long"):
        await exchange(HttpTransport(0.2), wire(server.address))


async def test_a_reply_that_breaks_off_is_a_transport_error_during_iteration() -> None:
    with ScriptedServer(replies=[BreakOff(text=CANARY, after=30)]) as server:
        async with HttpTransport(5.0).open(wire(server.address), credential=None) as reply:
            with pytest.raises(TransportError, match="broke off") as caught:
                [chunk async for chunk in reply.chunks]
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_reply_has_a_greatest_size() -> None:
    with ScriptedServer(replies=["x" * 10_000]) as server, pytest.raises(TransportError, match="too large"):
        await exchange(HttpTransport(5.0, max_reply_bytes=1000), wire(server.address))


async def test_an_error_status_is_a_reply_for_the_decoder() -> None:
    with ScriptedServer(replies=[ServerError(status=503)]) as server:
        status, _ = await exchange(HttpTransport(5.0), wire(server.address))
    assert status == 503


async def test_errors_of_the_caller_pass_unchanged() -> None:
    with ScriptedServer(replies=["Ciao."]) as server, pytest.raises(TimeoutError, match="mine"):
        async with HttpTransport(5.0).open(wire(server.address), credential=None):
            raise TimeoutError("mine")


async def test_the_log_of_the_http_library_holds_no_secret_i5_i12(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with ScriptedServer(replies=[CANARY]) as server:
        await exchange(HttpTransport(5.0), wire(server.address, CANARY.encode()), KEY)
    assert "sk-secret-canary" not in caplog.text
    assert CANARY not in caplog.text
    assert "sk-secret-canary" not in repr(KEY)


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[logging.LogRecord]]:
    """Set the root logger to DEBUG; return a reader of what the HTTP library logs from then on."""
    caplog.set_level(logging.DEBUG)
    return lambda: [record for record in caplog.records if record.name.startswith(("httpcore", "httpx"))]


@pytest.mark.parametrize(
    "answer",
    [
        f"HTTP/1.1 500 {CANARY}\r\nX-{CANARY}: {CANARY}\r\nContent-Length: 3\r\n\r\nabc",
        f"HTTP/1.1 103 {CANARY}\r\nX: {CANARY}\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        f"\xff{CANARY}\r\n\r\n",
        f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{CANARY}\r\n",
    ],
)
async def test_i12_what_a_server_says_is_in_no_log_of_the_http_library(
    answer: str, everything_logged: Callable[[], list[logging.LogRecord]], caplog: pytest.LogCaptureFixture
) -> None:
    with raw_server(answer.encode("latin-1")) as address, suppress(TransportError):
        await exchange(HttpTransport(5.0), wire(address))
    assert everything_logged() == []
    assert CANARY not in caplog.text


async def test_i12_the_end_of_a_connection_that_the_server_keeps_open_is_in_no_log_either(
    everything_logged: Callable[[], list[logging.LogRecord]],
) -> None:
    async with silent_server(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as (address, _, gone):
        assert await exchange(HttpTransport(5.0), wire(address)) == (200, b"ok")
        with anyio.fail_after(120):
            await gone.wait()
    assert everything_logged() == []


async def test_i12_a_connection_that_fails_is_in_no_log_of_the_http_library(
    everything_logged: Callable[[], list[logging.LogRecord]],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(TransportError):
        await exchange(HttpTransport(5.0), wire(Address(scheme="http", host="127.0.0.1", port=port)))
    assert everything_logged() == []


async def test_a_host_programs_own_use_of_the_http_library_is_logged_as_ever(
    everything_logged: Callable[[], list[logging.LogRecord]],
) -> None:
    with ScriptedServer(replies=["Ciao.", "Ciao."]) as server:
        async with HttpTransport(5.0).open(wire(server.address), credential=None) as reply:
            [chunk async for chunk in reply.chunks]
            assert everything_logged() == []
            async with httpx.AsyncClient(trust_env=False) as client:
                await client.post(server.url + CHAT, json={})
    assert {record.name for record in everything_logged()} >= {"httpx", "httpcore.http11"}


def test_i12_no_key_of_a_tls_session_goes_to_a_file_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificates"))
    tls = HttpTransport(5.0)._tls
    assert not tls.keylog_filename
    assert list(tmp_path.iterdir()) == []
    assert (tls.check_hostname, tls.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert tls.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert len(tls.get_ca_certs()) > 100


@contextmanager
def raw_server(answer: bytes) -> Iterator[Address]:
    """Send `answer` to one client, whatever it asks, and hang up."""

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(65536)
            client.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield Address(scheme="http", host="127.0.0.1", port=listener.getsockname()[1])
        thread.join()


# --- connections: a server in this event loop, to see them close -------------------------------------


@asynccontextmanager
async def silent_server(
    answer: bytes = b"", *, endless: bool = False
) -> AsyncIterator[tuple[Address, anyio.Event, anyio.Event]]:
    """Send `answer` and fall silent; yield the address, "request arrived" and "client went away"."""
    arrived, gone = anyio.Event(), anyio.Event()

    async def serve(stream: ByteStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(answer)
            arrived.set()
            try:
                while endless:
                    await stream.send(b"x" * 65536)
                while True:
                    await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                gone.set()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - a socket, not a database
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, serve)
            yield Address(scheme="http", host="127.0.0.1", port=port), arrived, gone
            group.cancel_scope.cancel()


async def test_the_deadline_is_for_the_whole_exchange_not_for_each_chunk() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n"
    async with silent_server(head, endless=True) as (address, _, _):
        transport = HttpTransport(0.3, max_reply_bytes=1 << 60)
        with anyio.fail_after(120), pytest.raises(TransportError, match="took too long"):
            await exchange(transport, wire(address))


async def test_cancelling_closes_the_connection() -> None:
    async with silent_server() as (address, arrived, gone), anyio.create_task_group() as group:
        group.start_soon(exchange, HttpTransport(60.0), wire(address))
        await arrived.wait()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.fail_after(120):
            await gone.wait()


async def test_leaving_early_closes_the_connection() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    async with silent_server(head + b"first") as (address, _, gone):
        async with HttpTransport(60.0).open(wire(address), credential=None) as reply:
            assert await anext(aiter(reply.chunks)) == b"first"
        with anyio.fail_after(120):
            await gone.wait()
        with pytest.raises(TransportError, match="before its context is left"):
            await anext(aiter(reply.chunks))


async def test_a_compressed_reply_is_refused() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"
    async with silent_server(head) as (address, _, _):
        with pytest.raises(TransportError, match="compressed"):
            await exchange(HttpTransport(5.0), wire(address))


# --- TLS: pinning an address must not weaken the check of the name ----------------------------------


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return a server's context with a fresh certificate for `name`, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    today = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - dt.timedelta(days=9000))
        .not_valid_after(today + dt.timedelta(days=90_000))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = signed.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "both.pem").write_bytes(secret + pem)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(folder / "both.pem")
    return server, ssl.create_default_context(cadata=pem.decode())


@asynccontextmanager
async def tls_server(context: ssl.SSLContext, names: list[str | None]) -> AsyncIterator[int]:
    """Answer 200 to everybody over TLS; `names` receives the server name each client asked for."""
    context.sni_callback = lambda _, name, __: names.append(name)

    async def serve(stream: ByteStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def hang_up(_: BaseException, stream: ByteStream) -> None:
        await anyio.aclose_forcefully(stream)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as plain:
        listener = TLSListener(plain, context, standard_compatible=False)
        listener.handle_handshake_error = hang_up  # type: ignore[method-assign, assignment]
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, serve)
            yield plain.extra(SocketAttribute.local_port)  # noqa: S610 - a socket, not a database
            group.cancel_scope.cancel()


@pytest.mark.parametrize(("name", "accepted"), [("model.example", True), ("other.example", False)])
async def test_tls_is_checked_against_the_name_and_not_the_pinned_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, name: str, accepted: bool
) -> None:
    async def resolver(_: object, port: int, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (str(ipaddress.IPv4Address("127.0.0.1")), port))]

    monkeypatch.setattr(anyio, "getaddrinfo", resolver)
    theirs, ours = certificate(tmp_path, "model.example")
    names: list[str | None] = []
    async with tls_server(theirs, names) as port:
        address = Address(scheme="https", host=name, port=port)
        transport = HttpTransport(5.0, tls=ours)
        if accepted:
            assert await exchange(transport, wire(address)) == (200, b"ok")
        else:
            with pytest.raises(TransportError, match="certificate is not accepted"):
                await exchange(transport, wire(address))
    assert names == [name]
