# SPDX-License-Identifier: Apache-2.0
"""The two ends of the signer's socket: who may connect, and what is made of any answer."""

import json
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.capability.transport import signerd
from runner.capability.transport.signer import (
    MAX_MESSAGE,
    ProcessCustody,
    ProcessSigner,
    custody_between,
    own_account,
)
from runner.capability.transport.signerd import (
    KeptFile,
    account_named,
    become,
    listen,
    serve_clients,
    serve_one,
)
from runner.kernel.errors import TraceError, TraceUnavailable
from runner.kernel.ports import HeadKeeper, HeldHead, SignerRefusal

KEY = {"custody": "process", "public_key": "ab" * 32}
OTHER_ACCOUNT = 4242


@pytest.fixture
def place() -> Iterator[Path]:
    """A socket's path, short enough for the system."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "socket"


@contextmanager
def answering(path: Path, answer: Callable[[bytes], bytes], client: int | None = None) -> Iterator[None]:
    """Somebody answers at `path`, in a thread, until the block ends."""
    listening = listen(path, own_account())

    def serve() -> None:
        with pytest.raises(OSError):  # the socket is shut down, which ends it
            serve_clients(listening, own_account() if client is None else client, answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        listening.close()


def scripted(**answers: object) -> Callable[[bytes], bytes]:
    """Answer each question with what stands under its name; the key to everything else."""

    def answer(request: bytes) -> bytes:
        asked = json.loads(request)["ask"] if request else ""
        return json.dumps(answers.get(asked, KEY)).encode()

    return answer


def test_a_signer_is_asked_for_its_key_a_signature_and_the_head(place: Path) -> None:
    head = {"log_no": 3, "size": 7, "root": "cd" * 32}
    with answering(place, scripted(sign={"signature": "ef" * 64}, head={"head": head}, grow={})):
        signer = ProcessCustody(place).signer()
        assert isinstance(signer, HeadKeeper)
        assert (signer.custody, signer.public_key) == ("process", b"\xab" * 32)
        assert signer.sign(b"", header=b"{}") == b"\xef" * 64
        assert signer.head() == HeldHead(log_no=3, size=7, root=b"\xcd" * 32)
        signer.grow(3, 7, [bytes(32)])
    with answering(place, scripted(head={"head": None})):
        assert ProcessSigner(place).head() is None


def test_many_leaves_go_in_several_messages(place: Path) -> None:
    asked: list[dict[str, object]] = []

    def answer(request: bytes) -> bytes:
        asked.append(json.loads(request))
        return json.dumps(KEY).encode()

    with answering(place, answer):
        ProcessSigner(place).grow(0, 5, [bytes(32)] * 25_000)
    sizes = [(each["size"], len(str(each["leaves"])) // 64) for each in asked[1:]]
    assert sizes == [(5, 10_000), (10_005, 10_000), (20_005, 5_000)]


@pytest.mark.parametrize("word", list(SignerRefusal))
def test_a_refusal_is_told_with_its_fix(place: Path, word: SignerRefusal) -> None:
    with (
        answering(place, scripted(sign={"refused": word.value})),
        pytest.raises(TraceError, match=r"the signer refuses: .*\. Fix: "),
    ):
        ProcessSigner(place).sign(b"", header=b"")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"no",
        b"\xff",
        b"[" * 99_999,
        b'{"refused": "unheard-of"}',
        b'{"public_key": 7, "custody": "x"}',
    ]
    + [json.dumps({**KEY, "public_key": other}).encode() for other in ("ab" * 31, "zz" * 32, "", None)],
    ids=range(11),
)
def test_i7_what_is_no_answer_is_no_signer(place: Path, answer: bytes) -> None:
    with answering(place, lambda _: answer), pytest.raises(TraceError, match="is no signer"):
        ProcessSigner(place)


@pytest.mark.parametrize(
    "head",
    [7, [], {}, {"log_no": True, "size": 1, "root": "00" * 32}, {"log_no": 1, "size": -1, "root": "00" * 32}],
)
def test_i7_what_is_no_head_is_no_signer(place: Path, head: object) -> None:
    with answering(place, scripted(head={"head": head})), pytest.raises(TraceError, match="is no signer"):
        ProcessSigner(place).head()


def test_i7_nobody_there_is_unavailable_and_says_what_to_do(place: Path) -> None:
    for path in (place, place.with_name("x" * 200)):
        with pytest.raises(TraceUnavailable, match="akaion keys serve"):
            ProcessSigner(path)


def test_an_answer_without_end_is_cut_off(place: Path) -> None:
    with (
        answering(place, lambda _: b"x" * (MAX_MESSAGE + 1)),
        pytest.raises(TraceUnavailable, match="does not answer"),
    ):
        ProcessSigner(place)


# --- who may ask --------------------------------------------------------------------------------------


def test_the_socket_is_for_one_account(place: Path) -> None:
    with listen(place, own_account()):
        assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_another_account_is_hung_up_on_before_it_is_heard(place: Path) -> None:
    heard: list[bytes] = []

    def answer(request: bytes) -> bytes:
        heard.append(request)
        return b"{}"

    with answering(place, answer, client=OTHER_ACCOUNT), pytest.raises(TraceError):
        ProcessSigner(place)
    assert heard == []


def test_i7_where_the_system_does_not_say_who_connected_nobody_is_served(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(place, scripted()):
        monkeypatch.delattr(socket, "SO_PEERCRED")
        with pytest.raises(TraceError):
            ProcessSigner(place)


def test_one_that_breaks_off_does_not_end_the_signer(place: Path) -> None:
    with answering(place, scripted()):
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(str(place))
        assert ProcessSigner(place).custody == "process"


def test_one_that_is_slow_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signerd, "WAIT_S", 0.01)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        serve_one(ours, own_account(), lambda _: b"never")


def test_the_socket_of_a_signer_that_ended_is_replaced_and_nothing_else_is(place: Path) -> None:
    listen(place, own_account()).close()
    with listen(place, own_account()), pytest.raises(TraceError, match="something else"):
        listen(place, own_account())
    place.unlink()
    place.write_text("a file")
    with pytest.raises(TraceError, match="something else"):
        listen(place, own_account())
    assert place.read_text() == "a file"


def test_who_is_not_root_gives_nothing_away(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "chown", forbidden)
    monkeypatch.setattr(os, "setgroups", forbidden)
    with pytest.raises(TraceError, match="start the signer as root"):
        listen(place, own_account() + 1)
    assert not place.exists()
    someone = next(each for each in map(account_named, ("0", "1", "2")) if each.pw_uid != own_account())
    with pytest.raises(TraceError, match="start the signer as root"):
        become(someone)
    become(account_named(str(own_account())))


def test_an_unknown_account_is_named_as_such() -> None:
    for name in ("no-such-account", "99999999999999999999"):
        with pytest.raises(TraceError, match="there is no account"):
            account_named(name)


@pytest.mark.parametrize(
    ("signer", "runtime", "custody"),
    [(1, 2, "process"), (0, 2, "process"), (2, 2, "file"), (1, 0, "file"), (0, 0, "file")],
)
def test_a_key_that_the_runtime_could_read_is_a_file(signer: int, runtime: int, custody: str) -> None:
    assert custody_between(signer, runtime) == custody


def test_what_is_kept_is_on_the_disk_and_private(tmp_path: Path) -> None:
    kept = KeptFile(tmp_path / "head.json")
    assert kept.read() is None
    kept.keep(b"one")
    kept.keep(b"two")
    assert KeptFile(tmp_path / "head.json").read() == b"two"
    assert stat.S_IMODE((tmp_path / "head.json").stat().st_mode) == 0o600
    with pytest.raises(TraceUnavailable, match="signer's head"):
        KeptFile(tmp_path).read()


def test_the_key_of_a_signer_is_not_the_runtimes_to_replace(place: Path) -> None:
    keys = ProcessCustody(place)
    assert (keys.place, keys.exists()) == (str(place), True)
    for replace in (keys.successor, keys.promote):
        with pytest.raises(TraceError, match="second signer"):
            replace()
