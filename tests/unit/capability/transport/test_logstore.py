# SPDX-License-Identifier: Apache-2.0
"""I9 on disk: one writer, private files that only grow, whole or absent; keys and pins outside the book."""

import errno
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import runner
from runner.capability.transport import logstore
from runner.capability.transport.keys import FileSigner, export_pin
from runner.capability.transport.logstore import FolderLog, FolderLogStore, read_boot_id
from runner.capability.transport.salts import FileSaltStore
from runner.capability.transport.slots import SLOT
from runner.kernel.errors import TraceError
from runner.perimeter.trace.recover import parse_pin
from runner.testing import FixedEntropy

NAME = "000000-" + "a" * 32 + ".jsonl"
COMMIT, SALT = "c" * 64, b"s" * 32


@pytest.fixture
def store(tmp_path: Path) -> FolderLogStore:
    return FolderLogStore(tmp_path / "book", tmp_path / "heads" / "pin")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_i4_a_log_starts_whole_and_only_grows(store: FolderLogStore, tmp_path: Path) -> None:
    store.acquire()
    log = store.create(NAME, b"head\n")
    assert store.read(NAME) == b"head\n"
    log.append(b"more\n")
    log.sync()
    log.close()
    log.close()
    assert store.read(NAME) == b"head\nmore\n"
    with pytest.raises(FileExistsError):
        store.create(NAME, b"other\n")
    assert [path.name for path in (tmp_path / "book").iterdir()] == [NAME]


def test_i12_files_and_folders_are_the_owners_alone(store: FolderLogStore, tmp_path: Path) -> None:
    store.acquire()
    store.create(NAME, b"head\n").close()
    store.write_pin(b"pin\n")
    for path in (tmp_path / "book", tmp_path / "heads"):
        assert mode(path) == 0o700
    for path in (tmp_path / "book" / NAME, tmp_path / "heads" / "pin"):
        assert mode(path) == 0o600


def test_i9_a_new_log_is_synced_before_it_has_its_name(
    store: FolderLogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.acquire()
    synced = list[tuple[bool, bool]]()

    def watch(handle: int) -> None:
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        synced.append((folder, (tmp_path / "book" / NAME).exists()))

    monkeypatch.setattr(logstore, "sync_file", watch)
    store.create(NAME, b"head\n").close()
    assert synced == [(False, False), (True, True)]


def test_i9_what_was_left_unsynced_is_synced_before_anything_rests_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who died may have died between a name, or a line, and its sync; the power may still go afterwards."""
    home = tmp_path / "new" / "home"
    first = FolderLogStore(home / "book", home / "heads" / "pin")
    first.acquire()
    first.create(NAME, b"head\n").close()
    first.release()
    signer(home / "keys" / "device")
    synced = set[int]()
    monkeypatch.setattr(logstore, "sync_file", lambda handle: synced.add(os.fstat(handle).st_ino))

    def on_the_disk(*paths: Path) -> bool:
        wanted = {path.stat().st_ino for path in paths}
        return wanted <= synced

    again = FolderLogStore(home / "book", home / "heads" / "pin")
    assert on_the_disk(home)
    assert not on_the_disk(home / "book")
    again.acquire()
    assert on_the_disk(home / "book")
    assert not on_the_disk(home / "book" / NAME)
    again.read(NAME)
    assert on_the_disk(home / "book" / NAME)
    signer(home / "keys" / "device")
    assert on_the_disk(home / "keys")


def test_i9_a_new_folder_is_on_the_disk_with_all_that_leads_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = set[int]()
    monkeypatch.setattr(logstore, "sync_file", lambda handle: synced.add(os.fstat(handle).st_ino))
    logstore.make_private_folder(tmp_path / "a" / "b" / "c")
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert [mode(path) for path in made] == [0o700] * 3
    assert {path.parent.stat().st_ino for path in made} <= synced


def test_i7_a_handle_is_closed_once_even_if_that_fails(
    store: FolderLogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second attempt would close whatever file has the number by then."""
    store.acquire()
    log = store.create(NAME, b"head\n")
    salts = FileSaltStore(tmp_path / "salts", book=tmp_path / "book")
    closed, close = list[int](), os.close

    def fail(handle: int) -> None:
        closed.append(handle)
        close(handle)
        raise OSError(errno.EIO, "late")

    monkeypatch.setattr(os, "close", fail)
    for _ in range(2):
        log.close()
        salts.close()
        store.release()
    assert len(closed) == 3


def test_i4_names_are_in_the_order_of_their_numbers(store: FolderLogStore) -> None:
    store.acquire()
    names = [f"{number:06d}-{'a' * 32}.jsonl" for number in (0, 9, 10, 999_999, 1_000_000)]
    for name in reversed(names):
        store.create(name, b"head\n").close()
    assert store.names() == names


def test_i4_the_lock_keeps_a_second_writer_out(store: FolderLogStore, tmp_path: Path) -> None:
    store.acquire()
    second = FolderLogStore(tmp_path / "book", tmp_path / "heads" / "pin")
    with pytest.raises(TraceError, match="another process"):
        second.acquire()
    with pytest.raises(TraceError, match="lock"):
        second.create(NAME, b"head\n")
    store.release()
    store.release()
    second.acquire()


def test_i4_the_lock_of_a_killed_process_is_free(store: FolderLogStore, tmp_path: Path) -> None:
    with other_writer(tmp_path) as child:
        with pytest.raises(TraceError, match="another process"):
            store.acquire()
        child.kill()
    store.acquire()


def other_writer(folder: Path) -> "subprocess.Popen[bytes]":
    """Return a process that holds the lock of the book under `folder`."""
    code = (
        "import pathlib, sys\n"
        "from runner.capability.transport.logstore import FolderLogStore\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "FolderLogStore(folder / 'book', folder / 'heads' / 'pin').acquire()\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(runner.__file__).parents[1])}
    command = [sys.executable, "-c", code, str(folder)]
    child = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    return child


def unlink_all_beneath(folder: Path) -> None:
    for path in folder.rglob("*"):
        if not path.is_dir():
            path.unlink()


@pytest.mark.parametrize("where", ["in this process", "in another process"])
def test_i4_no_file_that_is_removed_lets_a_second_writer_in(
    where: str, store: FolderLogStore, tmp_path: Path
) -> None:
    """The book is what an auditor is given: whoever can remove files from it cannot unlock it."""
    second = FolderLogStore(tmp_path / "book", tmp_path / "heads" / "pin")
    if where == "in this process":
        store.acquire()
        store.create(NAME, b"head\n").close()
        store.write_pin(b"pin\n")
        unlink_all_beneath(tmp_path)
        with pytest.raises(TraceError, match="another process"):
            second.acquire()
        return
    with other_writer(tmp_path) as child:
        unlink_all_beneath(tmp_path)
        with pytest.raises(TraceError, match="another process"):
            second.acquire()
        child.kill()


@pytest.mark.parametrize("copied", [True, False])
def test_i4_a_writer_whose_folder_was_replaced_moves_no_pin(
    store: FolderLogStore, tmp_path: Path, *, copied: bool
) -> None:
    """A copy in the folder's place has no lock on it: the first writer stops before the two share a pin."""
    store.acquire()
    store.write_pin(b"first\n")
    (tmp_path / "book").rename(tmp_path / "moved")
    if copied:
        shutil.copytree(tmp_path / "moved", tmp_path / "book")
    with pytest.raises(TraceError, match="moved or replaced"):
        store.write_pin(b"second\n")
    assert store.read_pin() == b"first\n"


@pytest.mark.parametrize("kind", ["pipe", "hard link", "link"])
def test_i4_what_was_put_where_a_new_log_is_made_is_not_written_to(
    store: FolderLogStore, tmp_path: Path, kind: str
) -> None:
    """Whoever reaches the folder must not aim the runner's writing at another file, nor make it wait."""
    precious, trap = tmp_path / "precious", tmp_path / "book" / "new-log.tmp"
    precious.write_bytes(b"kept")
    if kind == "pipe":
        os.mkfifo(trap)
    elif kind == "hard link":
        trap.hardlink_to(precious)
    else:
        trap.symlink_to(precious)
    store.acquire()
    logs = list[FolderLog]()
    making = threading.Thread(target=lambda: logs.append(store.create(NAME, b"head\n")), daemon=True)
    making.start()
    making.join(10)
    for log in logs:
        log.close()
    assert (len(logs), store.read(NAME), precious.read_bytes()) == (1, b"head\n", b"kept")


@pytest.mark.parametrize("place", ["log", "pin"])
def test_i7_a_pipe_in_the_place_of_a_file_is_refused_and_holds_nobody(
    store: FolderLogStore, tmp_path: Path, place: str
) -> None:
    if place == "log":
        os.mkfifo(tmp_path / "book" / NAME)
    else:
        os.mkfifo(tmp_path / "heads" / "pin")
    raised = list[BaseException]()

    def read() -> None:
        try:
            store.read(NAME) if place == "log" else store.read_pin()
        except OSError as error:
            raised.append(error)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(10)
    assert [str(error) for error in raised] == ["[Errno 22] not a regular file"]


def test_i4_a_forked_child_cannot_take_the_lock_away(store: FolderLogStore, tmp_path: Path) -> None:
    store.acquire()
    handle = os.dup(store._lock)  # what a fork leaves in the child: the same open file
    store.release()
    second = FolderLogStore(tmp_path / "book", tmp_path / "heads" / "pin")
    with pytest.raises(TraceError, match="another process"):
        second.acquire()
    os.close(handle)
    second.acquire()


def test_i4_a_link_is_not_read_as_a_log(store: FolderLogStore, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"x\n")
    (tmp_path / "book" / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"symbolic|Too many"):
        store.read(NAME)


@pytest.mark.parametrize("written", [0, 1, 63, 64, 65, 66, 67, 70, 72])
def test_i9_whatever_becomes_of_the_write_of_a_pin_the_one_before_is_still_there(
    store: FolderLogStore, tmp_path: Path, written: int
) -> None:
    """Of the slot that is written to, so many bytes got there, and the rest is what it was."""
    path = tmp_path / "heads" / "pin"
    for pin in (b"first\n", b"second\n", b"third\n"):
        store.write_pin(pin)
    before = path.read_bytes()
    store.write_pin(b"fourth\n")
    after = path.read_bytes()
    assert (before[:SLOT], len(after)) == (after[:SLOT], 2 * SLOT)
    path.write_bytes(after[: SLOT + written] + before[SLOT + written :])
    assert store.read_pin() == b"third\n"
    store.write_pin(b"fourth again\n")
    assert store.read_pin() == b"fourth again\n"
    assert path.read_bytes()[:SLOT] == before[:SLOT]


def test_i4_a_slot_counts_in_its_own_place_only_and_without_one_the_file_is_damaged(
    store: FolderLogStore, tmp_path: Path
) -> None:
    path = tmp_path / "heads" / "pin"
    for pin in (b"first\n", b"second\n", b"third\n"):
        store.write_pin(pin)
    data = path.read_bytes()
    path.write_bytes(data[SLOT:] + data[:SLOT])
    assert store.read_pin() == data[SLOT:] + data[:SLOT]
    with pytest.raises(TraceError, match="the head pin is damaged"):
        parse_pin(store.read_pin() or b"")


def test_a_pin_of_an_earlier_version_is_read_and_gives_way(store: FolderLogStore, tmp_path: Path) -> None:
    path = tmp_path / "heads" / "pin"
    path.write_bytes(b"the whole file\n")
    assert store.read_pin() == b"the whole file\n"
    store.write_pin(b"in a slot\n")
    assert (store.read_pin(), path.stat().st_size) == (b"in a slot\n", 2 * SLOT)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_pin_is_written_over_without_a_name_of_its_own(
    store: FolderLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What makes it cheap: one sync of one file, none of a folder, and no rename."""
    store.write_pin(b"first\n")
    synced = list[int]()
    monkeypatch.setattr(logstore, "sync_data", synced.append)
    with monkeypatch.context() as patched:
        patched.setattr(logstore, "sync_folder", None)
        patched.setattr(Path, "rename", None)
        store.write_pin(b"second\n")
    assert (len(synced), store.read_pin()) == (1, b"second\n")


def test_i9_a_pin_that_is_found_is_on_the_disk_with_its_name_before_it_is_built_on(
    store: FolderLogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who made it may have died before syncing the folder, and from then on only the file is synced."""
    store.write_pin(b"first\n")
    folders, files = list[Path](), list[int]()
    monkeypatch.setattr(logstore, "sync_folder", folders.append)
    monkeypatch.setattr(logstore, "sync_file", files.append)
    assert store.read_pin() == b"first\n"
    assert (folders, len(files)) == ([tmp_path / "heads"], 1)


def test_the_pin_is_replaced_whole(store: FolderLogStore, tmp_path: Path) -> None:
    assert store.read_pin() is None
    store.write_pin(b"a long first pin\n")
    store.write_pin(b"second\n")
    assert store.read_pin() == b"second\n"
    assert [path.name for path in (tmp_path / "heads").iterdir()] == ["pin"]


@pytest.mark.parametrize(
    "make",
    [
        lambda book: FolderLogStore(book, book / "pin"),
        lambda book: FileSaltStore(book / "deeper" / "salts", book=book),
        lambda book: FileSigner(book.parent / "x" / ".." / "book" / "key", book=book, entropy=FixedEntropy()),
        lambda book: export_pin("a+00000000+AA==", book / "studio.pin", book=book),
    ],
)
def test_i4_nothing_that_protects_the_book_lies_in_it(tmp_path: Path, make: Callable[[Path], object]) -> None:
    with pytest.raises(TraceError, match="inside the trace folder"):
        make(tmp_path / "book")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems may have none")
def test_the_boot_id_is_an_id_of_the_format() -> None:
    boot = read_boot_id()
    assert boot is not None
    assert len(boot) == 32
    assert set(boot) <= set("0123456789abcdef")


# --- salts -------------------------------------------------------------------------------------------


def test_i12_a_salt_is_on_the_disk_after_sync_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "salts"
    salts = FileSaltStore(path, book=tmp_path / "book")
    salts.keep(COMMIT, SALT)
    assert salts.find(COMMIT) is None
    salts.sync()
    assert salts.find(COMMIT) == SALT
    assert (salts.find("d" * 64), mode(path)) == (None, 0o600)
    salts.close()
    salts.close()


def test_i9_salts_survive_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "salts"
    first = FileSaltStore(path, book=tmp_path / "book")
    first.keep(COMMIT, SALT)
    first.sync()
    first.close()
    path.write_bytes(path.read_bytes() + b"dddd")
    second = FileSaltStore(path, book=tmp_path / "book")
    second.keep("e" * 64, b"t" * 32)
    second.sync()
    assert (second.find(COMMIT), second.find("e" * 64)) == (SALT, b"t" * 32)
    second.close()


def test_i9_a_salt_whose_line_broke_off_is_there_whole_after_the_next_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    salts, write = FileSaltStore(tmp_path / "salts", book=tmp_path / "book"), os.write
    salts.keep(COMMIT, SALT)

    def fill_up(handle: int, data: bytes) -> int:
        write(handle, bytes(data)[: len(COMMIT) + 11])
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fill_up)
        with pytest.raises(OSError, match="full"):
            salts.sync()
    assert salts.find(COMMIT) is None
    salts.keep("e" * 64, b"t" * 32)
    salts.sync()
    assert (salts.find(COMMIT), salts.find("e" * 64)) == (SALT, b"t" * 32)
    salts.close()


# --- the device key ------------------------------------------------------------------------------------


def signer(path: Path, seed: bytes = b"") -> FileSigner:
    return FileSigner(path, book=path.parent.parent / "book", entropy=FixedEntropy(seed))


def test_the_device_key_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "device"
    first = signer(path)
    again = signer(path, b"other entropy")
    assert first.public_key == again.public_key
    assert (mode(path), mode(path.parent), list(path.parent.iterdir())) == (0o600, 0o700, [path])
    Ed25519PublicKey.from_public_bytes(first.public_key).verify(first.sign(b"text"), b"text")
    assert first.custody == "file"
    assert path.read_text().strip() not in repr(first)


def test_i9_what_a_process_of_the_same_number_left_half_made_is_in_nobodys_way(tmp_path: Path) -> None:
    """In a container every process that opens the book may have the number 1."""
    left = tmp_path / "keys" / f"device.{os.getpid()}.tmp"
    left.parent.mkdir()
    left.write_bytes(b"0123")
    assert len(signer(tmp_path / "keys" / "device").public_key) == 32
    assert not left.exists()


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o660, 0o602])
def test_a_device_key_that_others_can_reach_is_refused(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "keys" / "device"
    signer(path)
    path.chmod(bits)
    with pytest.raises(TraceError, match="chmod 600"):
        signer(path)


@pytest.mark.parametrize("content", [b"", b"00" * 32, b"zz" * 32 + b"\n", b"00" * 32 + b"\n\n"])
def test_a_file_that_holds_no_key_is_refused_and_not_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys" / "device"
    signer(path)
    path.write_bytes(content)
    with pytest.raises(TraceError, match="holds no key"):
        signer(path)
    assert path.read_bytes() == content


def test_a_link_is_not_taken_for_a_device_key(tmp_path: Path) -> None:
    real = tmp_path / "keys" / "device"
    signer(real)
    link = tmp_path / "keys" / "link"
    link.symlink_to(real)
    with pytest.raises(TraceError, match="device key cannot be opened"):
        signer(link)


def test_i7_a_pipe_is_not_taken_for_a_device_key(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "device"
    path.parent.mkdir()
    os.mkfifo(path, 0o600)
    raised = list[BaseException]()

    def make() -> None:
        try:
            signer(path)
        except TraceError as error:
            raised.append(error)

    making = threading.Thread(target=make, daemon=True)
    making.start()
    making.join(10)
    assert len(raised) == 1


def test_a_folder_that_cannot_be_made_is_a_trace_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for make in (
        lambda: FolderLogStore(tmp_path / "file" / "book", tmp_path / "pin"),
        lambda: FileSaltStore(tmp_path / "file" / "salts", book=tmp_path / "book"),
    ):
        with pytest.raises(TraceError, match="Fix"):
            make()


def test_the_auditors_pin_is_one_line(tmp_path: Path) -> None:
    export_pin("studio/device+00000000+AA==", tmp_path / "studio.pin", book=tmp_path / "book")
    assert (tmp_path / "studio.pin").read_bytes() == b"studio/device+00000000+AA==\n"
