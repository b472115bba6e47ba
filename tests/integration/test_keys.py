# SPDX-License-Identifier: Apache-2.0
"""The device key: replaced so that an auditor can follow, and kept in a process that the runtime cannot read.

The commands run as an operator runs them, the verifier as an auditor does. Where the test runs as root, the
signer and the runtime are two accounts.
"""

import fcntl
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import akaion_verify
import pytest

from runner.adapters.cli import main as command
from runner.adapters.cli.needs import checks
from runner.assembly import Runtime, construct
from runner.capability.transport import keys as file_keys
from runner.capability.transport.logstore import FolderLogStore
from runner.kernel.errors import TraceError
from runner.kernel.ports import Locality
from runner.perimeter.trace.records import Backend

ROOT: Final = Path(__file__).resolve().parents[2]
MODULE: Final = [sys.executable, "-m", "runner.adapters.cli.main"]
PROFILE: Final = """\
profile: detached
policy: {{grants: []}}
trace: {{custody: '{custody}', keys: {keys}}}
inference:
  local: {{runtime: llamacpp, endpoint: 'http://127.0.0.1:9', model: scripted}}
"""
SIGNER, RUNTIME = 1, 65_534


def has_accounts() -> bool:
    """Whether this process is root over other accounts too, which it is not inside a user namespace."""
    ranges = Path("/proc/self/uid_map")
    known = (
        sum(int(line.split()[2]) for line in ranges.read_text("ascii").splitlines()) if ranges.exists() else 0
    )
    return os.geteuid() == 0 and known > RUNTIME


two_accounts = pytest.mark.skipif(not has_accounts(), reason="only root starts two accounts")


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that other accounts may cross, with a short name, and a home in it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o711)
        monkeypatch.setenv("AKAION_HOME", str(place / "home"))
        monkeypatch.chdir(place)
        yield place


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def profile(place: Path, custody: str = "file", keys: str = "home/keys") -> Path:
    """Write a profile of that custody, and return it."""
    file = place / f"{custody.partition(':')[0]}.yaml"
    file.write_text(PROFILE.format(custody=custody, keys=keys), encoding="utf-8")
    return file


def run(named: Path) -> Path:
    """One run that asks nothing; return the record's folder."""
    with construct(named) as runtime:
        return runtime.trace_path


def akaion(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert command.main([*words, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def verdict(book: Path, pin: Path) -> tuple[str, list[str]]:
    report: dict[str, Any] = akaion_verify.verify(book, pin)
    return str(report["verdict"]), sorted({reason["code"] for reason in report["reasons"]})


# --- a key that is replaced ---------------------------------------------------------------------------


def test_an_auditor_follows_a_replaced_key_from_the_old_pin_to_the_new(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The old key certifies the new one: `prove` shows it, `check` checks it, and so the new pin is had."""
    named = profile(place)
    old = akaion(capsys, "keys", "export", "old.vkey", "--profile", str(named))
    run(named)
    rotated = akaion(capsys, "keys", "rotate", "--profile", str(named))
    book = run(named)
    ended, pin = Path(rotated["book"]), place / "old.vkey"
    assert rotated["vkey"] != old["vkey"]
    assert (verdict(ended, pin), verdict(book, pin)[0]) == (("PASS", []), "UNTRUSTED")

    tool = [sys.executable, "-I", "-S", str(ROOT / "verify" / "akaion_verify.py")]
    proof = subprocess.run([*tool, "prove", str(ended), "1", "0"], capture_output=True, check=True).stdout
    (place / "succession.json").write_bytes(proof)
    check = [*tool, "check", "succession.json", "--pin", "old.vkey", "--json"]
    shown = json.loads(subprocess.run(check, capture_output=True, check=True, cwd=place).stdout)
    assert shown["verdict"] == "INCLUDED"
    successor = shown["record"]["body"]["x_next_device_key"]
    assert successor == rotated["vkey"]
    (place / "new.vkey").write_text(successor + "\n", encoding="ascii")
    assert verdict(book, place / "new.vkey") == ("PASS", [])
    assert (place / "new.vkey").read_bytes() == exported(capsys, named, place / "again.vkey")


def exported(capsys: pytest.CaptureFixture[str], named: Path, target: Path) -> bytes:
    akaion(capsys, "keys", "export", str(target), "--profile", str(named))
    return target.read_bytes()


def test_no_word_of_a_succession_stands_in_any_other_log(place: Path) -> None:
    book = run(profile(place))
    (log,) = book.glob("*.jsonl")
    assert b"x_next_device_key" not in log.read_bytes()


class Gone(BaseException):
    """The process ends here."""


STEPS: Final = {
    "before-the-last-log": (Runtime, "_end_book"),
    "before-the-key": (file_keys.FileCustody, "promote"),
    "before-the-book-is-moved": (FolderLogStore, "retire"),
    "between-pin-and-folder": (Path, "rename"),
}


def broken_off(named: Path, place: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a rotation that ends before `step`."""
    owner, method = STEPS[step]
    real = getattr(owner, method)

    def ends(self: Any, *arguments: Any) -> Any:
        if owner is Path and self != place / "home" / "trace":
            return real(self, *arguments)
        raise Gone

    with monkeypatch.context() as patched:
        patched.setattr(owner, method, ends)
        with pytest.raises(Gone):
            construct(named, to_read=True).rotate_key()


@pytest.mark.parametrize("step", STEPS)
def test_i4_a_rotation_that_broke_off_goes_on_where_it_was(
    place: Path, step: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever was done is done once: one last log, one new key, one book moved aside."""
    named = profile(place)
    old = akaion(capsys, "keys", "export", "old.vkey", "--profile", str(named))["vkey"]
    run(named)
    broken_off(named, place, step, monkeypatch)
    rotated = akaion(capsys, "keys", "rotate", "--profile", str(named))
    ended = Path(rotated["book"])
    assert sorted(each.name for each in (place / "home" / "keys").iterdir()) == [
        "device.key",
        "device.key.book",
    ]
    assert [log.read_bytes().count(b'"x_next_device_key":') for log in sorted(ended.glob("*.jsonl"))] == [
        0,
        1,
    ]
    assert verdict(ended, place / "old.vkey") == ("PASS", [])
    (place / "new.vkey").write_text(rotated["vkey"], encoding="ascii")
    assert rotated["vkey"] != old
    assert verdict(run(named), place / "new.vkey") == ("PASS", [])
    assert sorted(each.name for each in (place / "home").iterdir() if "trace" in each.name) == [
        "trace",
        "trace.ended-1",
    ]


@pytest.mark.parametrize("step", ["before-the-key", "before-the-book-is-moved", "between-pin-and-folder"])
def test_i7_between_the_steps_of_a_rotation_nothing_is_written(
    place: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = profile(place)
    run(named)
    broken_off(named, place, step, monkeypatch)
    before = sorted((place / "home" / "trace").iterdir())
    with pytest.raises(TraceError, match="akaion keys rotate"):
        run(named)
    assert sorted((place / "home" / "trace").iterdir()) == before


@pytest.mark.parametrize("step", [None, *STEPS])
def test_i4_the_ended_book_is_read_with_what_rotate_names(
    place: Path, step: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody exported the old pin, and no key says it any more: it is kept before the key is replaced."""
    named = profile(place)
    run(named)
    if step is not None:
        broken_off(named, place, step, monkeypatch)
    first = akaion(capsys, "keys", "rotate", "--profile", str(named))
    assert command.main(["keys", "rotate", "--profile", str(named)]) == 0
    said = capsys.readouterr().out
    assert verdict(Path(first["book"]), Path(first["pin"])) == ("PASS", [])
    words = " ".join(said.split()).partition("To read it: akaion ")[2].split()[:5]
    assert words[0] == "runs"
    assert command.main([*words, "--profile", str(named)]) == 0  # the second book, with its own pin


def elsewhere(place: Path, keys: str = "home/keys") -> Path:
    """Write a profile whose record lies in another folder."""
    file = place / "elsewhere.yaml"
    text = PROFILE.format(custody="file", keys=keys).replace("trace: {", "trace: {path: other, ")
    file.write_text(text, encoding="utf-8")
    return file


def test_i4_a_key_certifies_one_book_and_a_second_folder_needs_its_own(place: Path) -> None:
    """Two books of one key bear one name, and each could be shown for the other: both would pass."""
    book = run(profile(place))
    said = re.escape(f"another record, in {str(book.resolve())!r}. Fix: name another folder in trace.keys")
    with pytest.raises(TraceError, match=said):
        run(elsewhere(place))
    assert list((place / "other").glob("*.jsonl")) == []
    assert len(list(run(elsewhere(place, "home/other-keys")).iterdir())) == 1
    assert len(list(run(profile(place)).iterdir())) == 2


def test_i4_the_next_key_is_that_of_the_same_folder(place: Path) -> None:
    named = profile(place)
    run(named)
    ended = construct(named, to_read=True).rotate_key().folder
    with pytest.raises(TraceError, match="another record"):
        run(elsewhere(place))
    assert len(list(run(named).iterdir())) == 1
    assert len(list(ended.iterdir())) == 2


def test_i4_of_two_books_that_claim_a_key_at_once_one_gets_it(tmp_path: Path) -> None:
    note, won = tmp_path / "keys" / "device.key.book", list[int]()

    def claim(number: int) -> None:
        with suppress(TraceError):
            file_keys.claim_key(note, tmp_path / str(number))
            won.append(number)

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert note.read_bytes() == os.fsencode(tmp_path.resolve() / str(won[0]))


def test_i4_a_key_is_claimed_by_one_at_a_time(tmp_path: Path) -> None:
    """Two that find no note at once would both write one, and the first would not learn of the second."""
    note = tmp_path / "device.key.book"
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    claim = threading.Thread(target=file_keys.claim_key, args=(note, tmp_path / "book"))
    claim.start()
    claim.join(1)
    assert (claim.is_alive(), note.exists()) == (True, False)
    os.close(folder)
    claim.join()
    assert note.exists()


def test_two_rotations_end_two_books(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = profile(place)
    ended = [akaion(capsys, "keys", "rotate", "--profile", str(named))["book"] for _ in range(2)]
    assert [Path(book).name for book in ended] == ["trace.ended-1", "trace.ended-2"]


def test_a_key_does_not_follow_itself(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = profile(place)
    akaion(capsys, "keys", "export", "same.vkey", "--profile", str(named))
    assert command.main(["keys", "rotate", "--to", "same.vkey", "--profile", str(named)]) == 1
    assert "signs already" in capsys.readouterr().err
    (place / "no.vkey").write_text("no pin", encoding="ascii")
    assert command.main(["keys", "rotate", "--to", "no.vkey", "--profile", str(named)]) == 1
    assert "is no pin" in capsys.readouterr().err


class Vault:
    """A backend in memory, as `keyring.backend.KeyringBackend` is called."""

    priority = 5

    def __init__(self) -> None:
        self.secrets: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.secrets.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.secrets[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.secrets[service, username]


def test_a_key_in_a_keyring_is_never_a_file_and_is_replaced_there(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault()
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_keyring=lambda: vault))
    named = profile(place, "keyring")
    old = akaion(capsys, "keys", "create", "--profile", str(named))
    assert old["custody"] == "keyring"
    run(named)
    rotated = akaion(capsys, "keys", "rotate", "--profile", str(named))
    assert rotated["vkey"] != old["vkey"]
    assert len(vault.secrets) == 1
    (place / "new.vkey").write_text(rotated["vkey"], encoding="ascii")
    book = run(named)
    assert verdict(book, place / "new.vkey") == ("PASS", [])
    assert akaion_verify.verify(book, place / "new.vkey")["custody"] == "keyring"
    seeds = [seed.encode() for seed in vault.secrets.values()]
    files = [file for file in place.rglob("*") if file.is_file()]
    assert [file for file in files for seed in seeds if seed in file.read_bytes()] == []
    assert [file.name for file in (place / "home" / "keys").iterdir()] == ["device.key.book"], (
        "whose key it is"
    )


# --- a key in a process of its own --------------------------------------------------------------------


@contextmanager
def serving(place: Path, *options: str) -> Iterator[Path]:
    """`akaion keys serve` at work; yield its socket."""
    at = place / "socket"
    with subprocess.Popen(
        [*MODULE, "keys", "serve", str(at), "--keys", str(place / "signer"), *options],
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith(b"Listening at ")
            yield at
        finally:
            process.terminate()


def test_under_one_account_the_record_says_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What this account could read anyway is called by its name; everything else works as with two."""
    with serving(place) as at:
        assert stat.S_IMODE(at.stat().st_mode) == 0o600
        named = profile(place, f"process:{at}")
        key = akaion(capsys, "keys", "export", "pin", "--profile", str(named))
        run(named)
        book = run(named)
        assert akaion(capsys, "keys", "show", "--profile", str(named))["custody"] == "file"
        assert akaion(capsys, "runs", "--profile", str(named))["verdict"] == "PASS"  # under its own pin
        assert akaion(capsys, "profile", "check", str(named))["key"] == str(at)
        (check,) = [each for each in checks(str(named), deep=False) if each.name == "device key"]
        assert (check.grade, "--user and --client" in check.fix) == ("warn", True)
    assert verdict(book, place / "pin") == ("PASS", [])
    assert b'"custody":"file"' in next(iter(book.glob("000000-*"))).read_bytes()
    assert not (place / "home" / "keys").exists()
    assert key["vkey"].startswith("akaion/")


def test_i4_a_signer_hands_its_book_on_to_the_key_its_operator_named_and_to_no_other(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rotation that was refused leaves nothing behind, and goes through once the operator has agreed."""
    (place / "next.vkey").write_text(VKEY, encoding="ascii")
    rotate = ["keys", "rotate", "--to", "next.vkey", "--profile"]
    with serving(place) as at:
        named = profile(place, f"process:{at}")
        akaion(capsys, "keys", "export", "pin", "--profile", str(named))
        book = run(named)
        assert command.main([*rotate, str(named)]) == 1
        assert "nobody told it of this next key" in " ".join(capsys.readouterr().err.split())
        assert len(list(book.glob("*.jsonl"))) == 1
    with serving(place, "--next", VKEY):
        run(named)  # a log that names nobody is certified as before
        ended = akaion(capsys, *rotate, str(named))
    assert (ended["vkey"], verdict(Path(ended["book"]), place / "pin")) == (VKEY, ("PASS", []))
    assert command.main(["keys", "serve", "other", "--keys", "signer", "--next", "nonsense"]) == 1
    assert "--next says is no verifier key" in " ".join(capsys.readouterr().err.split())


def test_i4_a_second_signer_on_one_folder_does_not_start(place: Path) -> None:
    """Two signers with one head certify two books under one key: the folder is one process's for its life."""
    second = ["keys", "serve", str(place / "b"), "--keys", str(place / "signer")]
    with serving(place):
        named = profile(place, f"process:{place / 'b'}")
        assert bounded(*second) == 1
        with pytest.raises(TraceError, match="does not answer"):
            run(named)
    with serving(place):  # the folder is free again when its signer ended, however it ended
        pass


def bounded(*words: str) -> int:
    """The exit status of a command that must end by itself, and say that the folder is taken."""
    done = subprocess.run([*MODULE, *words], capture_output=True, env=environment(), timeout=600, check=False)
    assert b"a signer already serves this folder" in done.stderr
    return done.returncode


def test_a_disk_that_was_put_back_gets_no_further_log(place: Path) -> None:
    """Book, head pin, salts, everything of the runtime as it was: the signer alone knows better."""
    with serving(place) as at:
        named = profile(place, f"process:{at}")
        run(named)
        shutil.copytree(place / "home", place / "backup")
        run(named)
        shutil.rmtree(place / "home")
        shutil.copytree(place / "backup", place / "home")
        with pytest.raises(TraceError, match="older than the head it holds"):
            run(named)
    with serving(place), pytest.raises(TraceError, match="older than the head it holds"):
        run(named)  # nor after the signer was started again


def test_i7_a_signer_that_ends_in_the_middle_ends_the_run(place: Path) -> None:
    with serving(place) as at:
        named = profile(place, f"process:{at}")
        runtime = construct(named)
        runtime.__enter__()
        trace = runtime.perimeter.trace
    with pytest.raises(TraceError, match="does not answer"):
        trace.append(announcement(trace))
        trace.barrier()
    runtime.__exit__(None, None, None)
    with serving(place):
        assert len(list(run(named).glob("*.jsonl"))) == 2


def announcement(trace: Any) -> Any:
    return Backend(
        name="local",
        model="scripted",
        locality=Locality.L0,
        is_local=True,
        caps_digest="0" * 64,
        endpoint_commit=trace.commit(b"endpoint"),
    )


AS_RUNTIME: Final = """
import encodings.ascii, encodings.idna, os, sys
from runner.adapters.cli import main as command
os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
sys.exit(command.main(sys.argv[2:]))
"""


def as_account(account: int, *words: str) -> subprocess.CompletedProcess[bytes]:
    """A command under another account. What it imports is imported by root, whose interpreter it is."""
    line = [sys.executable, "-c", AS_RUNTIME, str(account), *words]
    return subprocess.run(line, capture_output=True, env=environment(), check=False, timeout=600)


def answer_to_this_account(at: Path) -> bytes:
    """What comes back when this account asks, whatever the hanging up looks like from here."""
    with socket.socket(socket.AF_UNIX) as peer, suppress(BrokenPipeError, ConnectionResetError):
        peer.connect(str(at))
        peer.sendall(b'{"ask": "key"}')
        peer.shutdown(socket.SHUT_WR)
        return peer.recv(1)
    return b""


@two_accounts
def test_of_two_accounts_one_has_the_key_and_the_other_may_ask(place: Path) -> None:
    """The runtime cannot read the key; a third account, and root as a client, are not answered."""
    for name, owner in (("signer", SIGNER), ("home", RUNTIME)):
        (place / name).mkdir(mode=0o700)
        os.chown(place / name, owner, owner)
    with serving(place, "--client", str(RUNTIME), "--user", str(SIGNER)) as at:
        assert (at.stat().st_uid, stat.S_IMODE(at.stat().st_mode)) == (RUNTIME, 0o600)
        assert (place / "signer" / "device.key").stat().st_uid == SIGNER
        named = profile(place, f"process:{at}")
        done = as_account(RUNTIME, "keys", "show", "--json", "--profile", str(named))
        assert (done.returncode, json.loads(done.stdout)["custody"]) == (0, "process")
        (place / "pin").write_text(json.loads(done.stdout)["vkey"], encoding="ascii")
        next_key = place / "next.vkey"
        next_key.write_text(VKEY, encoding="ascii")
        rotate = ("keys", "rotate", "--json", "--to", str(next_key), "--profile", str(named))
        refused = as_account(RUNTIME, *rotate)
        assert (refused.returncode, b"nobody told it of this next key" in refused.stderr) == (1, True)
    with serving(place, "--client", str(RUNTIME), "--user", str(SIGNER), "--next", VKEY) as at:
        ended = as_account(RUNTIME, *rotate)
        assert ended.returncode == 0, ended.stderr
        book = Path(json.loads(ended.stdout)["book"])
        assert verdict(book, place / "pin") == ("PASS", [])
        report = akaion_verify.verify(book, place / "pin")
        assert report["custody"] == "process"
        for stranger in (SIGNER, 0):
            assert as_account(stranger, "keys", "show", "--profile", str(named)).returncode == 1
        assert answer_to_this_account(at) == b""
    read = "import os, sys; os.setuid(int(sys.argv[1])); open(sys.argv[2])"
    line = [sys.executable, "-c", read, str(RUNTIME), str(place / "signer" / "device.key")]
    assert b"PermissionError" in subprocess.run(line, capture_output=True, check=False).stderr


VKEY: Final = "akaion/80f712441a376931/device+cea32d1c+AeuCfI4PgrZ645HxFAxoX4EJ3JwkSihrCOdIo++FfPDm"
