# SPDX-License-Identifier: Apache-2.0
"""I4: a time stamp over a log's last root holds for that log as it is, and for no other.

The authority is made here, with openssl, and answers on loopback. Skipped where openssl or `rfc3161-client`
is not installed.
"""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from runner.adapters.cli.main import main
from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.keys import FileSigner
from runner.capability.transport.logstore import FolderLogStore
from runner.capability.transport.salts import FileSaltStore
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.testing import header_words

pytest.importorskip("rfc3161_client", reason="rfc3161-client is not installed")
OPENSSL = shutil.which("openssl")
if OPENSSL is None:
    pytest.skip("openssl is not installed", allow_module_level=True)

CONFIG = """
[tsa]
default_tsa = one
[one]
serial = {folder}/serial
signer_cert = {folder}/tsa.pem
signer_key = {folder}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
[usage]
extendedKeyUsage = critical,timeStamping
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
"""


def openssl(folder: Path, *words: str) -> None:
    subprocess.run([str(OPENSSL), *words], cwd=folder, check=True, capture_output=True)


def make_authority(folder: Path) -> None:
    """Make a root and an authority under it, in `folder`."""
    folder.mkdir()
    (folder / "tsa.cnf").write_text(CONFIG.format(folder=folder), encoding="ascii")
    (folder / "serial").write_text("01\n", encoding="ascii")
    for name in ("ca", "tsa"):
        openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
        request = ["req", "-new", "-key", f"{name}.key", "-subj", f"/CN={folder.name} {name}"]
        openssl(folder, *request, "-out", f"{name}.csr")
    common = ["-days", "30", "-extfile", "tsa.cnf"]
    own = ["x509", "-req", "-in", "ca.csr", "-signkey", "ca.key", "-extensions", "authority"]
    openssl(folder, *own, *common, "-out", "ca.pem")
    signed = ["x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "2"]
    openssl(folder, *signed, "-extensions", "usage", *common, "-out", "tsa.pem")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """An authority on loopback: its address, and its root certificate."""
    folder = tmp_path_factory.mktemp("tsa") / "authority"
    make_authority(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["Content-Length"]))
            (folder / "query").write_bytes(query)
            openssl(folder, "ts", "-reply", "-config", "tsa.cnf", "-queryfile", "query", "-out", "reply")
            body = (folder / "reply").read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/tsr", folder / "ca.pem"
        server.shutdown()
        thread.join()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path))
    return tmp_path


def open_log(home: Path) -> Trace:
    entropy, book = SystemEntropy(), home / "trace"
    return Trace.open(
        store=FolderLogStore(book, home / "heads" / "pin"),
        signer=FileSigner(home / "keys" / "device.key", book=book, entropy=entropy),
        salts=FileSaltStore(home / "vault" / "salts", book=book),
        clock=SystemClock(),
        entropy=entropy,
        facts=HeaderFacts(**header_words(book="studio/desk")),
    )


def stamps(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[dict[str, str]]]:
    capsys.readouterr()
    status = main(["trace", "stamp", "--json", *options])
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)["stamps"]
    return status, found


def test_i4_each_ended_log_is_stamped_once_and_one_that_is_open_is_not(
    home: Path, authority: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    url, roots = authority
    open_log(home).close()
    assert stamps(capsys, "--ca", str(roots))[0] == 1
    with open_log(home):
        status, found = stamps(capsys, "--tsa", url, "--ca", str(roots))
    assert (status, [(bool(each["time"]), each["wrong"]) for each in found]) == (0, [(True, "")])
    (sidecar,) = (home / "trace").glob("*.tsr")
    before = sidecar.read_bytes()
    status, found = stamps(capsys, "--tsa", url, "--ca", str(roots))
    assert (status, [each["wrong"] for each in found], sidecar.read_bytes()) == (0, ["", ""], before)
    assert stamps(capsys, "--ca", str(roots))[0] == 0


def test_i4_a_stamp_of_another_log_does_not_hold(
    home: Path, authority: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    url, roots = authority
    for _ in range(2):
        open_log(home).close()
    stamps(capsys, "--tsa", url, "--ca", str(roots))
    first, second = sorted((home / "trace").glob("*.tsr"))
    second.write_bytes(first.read_bytes())
    status, found = stamps(capsys, "--ca", str(roots))
    assert (status, [bool(each["wrong"]) for each in found]) == (1, [False, True])


def test_i4_a_stamp_of_an_authority_that_was_not_named_is_neither_kept_nor_believed(
    home: Path, authority: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, roots = authority
    open_log(home).close()
    make_authority(tmp_path / "stranger")
    stranger = str(tmp_path / "stranger" / "ca.pem")
    status, (found,) = stamps(capsys, "--tsa", url, "--ca", stranger)
    assert (status, found["time"], list((home / "trace").glob("*.tsr"))) == (1, "", [])
    assert stamps(capsys, "--tsa", url, "--ca", str(roots))[0] == 0
    assert stamps(capsys, "--ca", stranger)[0] == 1


def test_openssl_alone_checks_a_stamp_over_the_three_lines(
    home: Path, authority: tuple[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What the how-to page tells an auditor to do without any program of ours."""
    url, roots = authority
    open_log(home).close()
    stamps(capsys, "--tsa", url, "--ca", str(roots))
    (log,) = (home / "trace").glob("*.jsonl")
    note = json.loads(log.read_bytes().splitlines()[-1])["note"]
    (tmp_path / "text").write_text(note.partition("\n\n")[0] + "\n", encoding="ascii")
    check = ["ts", "-verify", "-data", str(tmp_path / "text"), "-in", str(log.with_suffix(".tsr"))]
    openssl(tmp_path, *check, "-CAfile", str(roots))


@pytest.mark.parametrize("data", [b"not a token", b"\x30\x03\x02\x01\x00"], ids=["text", "short"])
def test_any_bytes_beside_a_log_are_no_stamp(
    home: Path, authority: tuple[str, Path], capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    open_log(home).close()
    (log,) = (home / "trace").glob("*.jsonl")
    log.with_suffix(".tsr").write_bytes(data)
    assert stamps(capsys, "--ca", str(authority[1]))[0] == 1
