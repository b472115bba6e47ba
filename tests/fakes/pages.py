# SPDX-License-Identifier: Apache-2.0
"""Hosts of pages on loopback: an authority of their own, TLS servers, and what names mean."""

import datetime as dt
import ipaddress
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from runner.kernel.errors import TransportError
from runner.kernel.inference import Address

IP: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
LOOPBACK: Final = ipaddress.IPv4Address("127.0.0.1")
Reply: TypeAlias = bytes | Callable[[socket.socket], None]
"""Raw bytes to answer with, or what to do with the connection."""


class Authority:
    """A certificate authority that nobody else trusts."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
        self._certificate = self._signed(name, self._key.public_key(), (), ca=True, days=(-9, 9))

    @property
    def pem(self) -> str:
        """The certificate of this authority."""
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def trust(self) -> ssl.SSLContext:
        """What a client needs that trusts this authority and no other."""
        return ssl.create_default_context(cadata=self.pem)

    def server(self, *names: str, days: tuple[int, int] = (-1, 1)) -> ssl.SSLContext:
        """Return what a server needs that is `names`, from and to so many days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        leaf = self._signed(subject, key.public_key(), names, ca=False, days=days)
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            both = Path(folder) / "both.pem"
            both.write_bytes(secret + leaf.public_bytes(serialization.Encoding.PEM))
            context.load_cert_chain(both)
        return context

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        names: Sequence[str],
        *,
        ca: bool,
        days: tuple[int, int],
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        issuer = subject if ca else self._certificate.subject
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + dt.timedelta(days=days[0]))
            .not_valid_after(now + dt.timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if ca:
            usage = x509.KeyUsage(
                digital_signature=False,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
            )
            builder = builder.add_extension(usage, critical=True)
        if names:
            alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
            builder = builder.add_extension(alternatives, critical=False)
        return builder.sign(self._key, hashes.SHA256())


class PageServer:
    """A server on loopback that answers by path. Use it by `with`; `tls` None is plain http.

    `received` are the heads of the requests that arrived, byte for byte; `asked` the names that clients began
    TLS for.
    """

    def __init__(self, tls: ssl.SSLContext | None, pages: Mapping[str, Reply]) -> None:
        self.pages = dict(pages)
        self.received: list[bytes] = []
        self.asked: list[str | None] = []
        self._tls = tls
        if tls is not None:
            tls.sni_callback = lambda _, name, __: self.asked.append(name)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._over.set()
        with socket.create_connection(("127.0.0.1", self.port)):
            self._thread.join(10)
        self._listener.close()

    @property
    def targets(self) -> list[str]:
        """What was asked for, in order."""
        return [head.split(b" ")[1].decode() for head in self.received]

    def _serve(self) -> None:
        while not self._over.is_set():
            client, _ = self._listener.accept()
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        client.settimeout(10)
        try:
            with client:
                stream = client if self._tls is None else self._tls.wrap_socket(client, server_side=True)
                with stream:
                    head = _head(stream)
                    if not head:
                        return
                    self.received.append(head)
                    path = head.split(b" ")[1].partition(b"?")[0].decode()
                    reply = self.pages.get(path, page("nothing here", status="404 Not Found"))
                    if callable(reply):
                        reply(stream)
                    else:
                        stream.sendall(reply)
        except (OSError, ssl.SSLError):
            return


def _head(stream: socket.socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head and (more := stream.recv(65536)):
        head += more
    return head


def page(
    body: str | bytes,
    *,
    kind: str | None = "text/html; charset=utf-8",
    status: str = "200 OK",
    headers: Sequence[tuple[str, str]] = (),
) -> bytes:
    """Return a whole answer."""
    data = body.encode() if isinstance(body, str) else body
    named = [("Content-Length", str(len(data))), *([("Content-Type", kind)] if kind else []), *headers]
    lines = "".join(f"{name}: {value}\r\n" for name, value in named)
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1") + data


def redirect(location: str, status: int = 302) -> bytes:
    """Return a whole answer that leads elsewhere."""
    return page("moved", status=f"{status} Moved", headers=[("Location", location)])


@dataclass(slots=True)
class Names:
    """What names mean, as a resolver: each answer once, the last for ever; loopback for any other name.

    `asked` are the names that were asked about, in order.
    """

    means: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def __call__(self, address: Address) -> tuple[IP, ...]:
        """Return what the host of `address` means now."""
        self.asked.append(address.host)
        answers = self.means.get(address.host, [["127.0.0.1"]])
        addresses = answers[min(self.asked.count(address.host), len(answers)) - 1]
        if not addresses:
            raise TransportError("no such name")
        return tuple(ipaddress.ip_address(each) for each in addresses)
