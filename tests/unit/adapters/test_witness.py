# SPDX-License-Identifier: Apache-2.0
"""I4: a witness cosigns only what continues what it cosigned before, and keeps that before it answers.

The statuses are those of C2SP tlog-witness. What a witness signs is judged by the verifier's own code.
"""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import akaion_verify
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.adapters.witness import server
from runner.adapters.witness.judge import SIZE, Reply, Seen, Trusted, Witness
from runner.adapters.witness.memory import FolderMemory
from runner.adapters.witness.server import MAX_CONNECTIONS, WitnessServer
from runner.kernel.errors import TraceError
from runner.perimeter.trace.cosign import (
    AddCheckpoint,
    Checkpoint,
    Key,
    parse_answer,
    parse_request,
    signed_note,
)
from runner.perimeter.trace.merkle import consistency_path, leaf_hash, root_of
from runner.perimeter.trace.note import signature_line, vkey
from runner.testing import FrozenClock, MemorySigner

BOOK = "studio/desk"
NAME = "witness.example/w1"
KEEPER = MemorySigner(b"k" * 32)
LEAVES = [leaf_hash(str(number).encode()) for number in range(40)]


class Remembers:
    """A memory without a disk."""

    def __init__(self) -> None:
        self.books = {BOOK: Trusted(key=Key(name=BOOK, public=KEEPER.public_key), seen=Seen())}
        self.fails = False

    def recall(self, origin: str) -> Trusted | None:
        return self.books.get(origin)

    def keep(self, trusted: Trusted) -> None:
        if self.fails:
            raise TraceError("the disk is full")
        self.books[trusted.key.name] = trusted


@pytest.fixture
def memory() -> Remembers:
    return Remembers()


@pytest.fixture
def witness(memory: Remembers) -> Witness:
    return Witness(name=NAME, signer=MemorySigner(b"w" * 32), memory=memory, clock=FrozenClock())


def request(
    old: int,
    leaves: list[bytes],
    *,
    book: str = BOOK,
    signer: MemorySigner = KEEPER,
    path: list[bytes] | None = None,
) -> bytes:
    head = Checkpoint.of(book, len(leaves), root_of(leaves))
    line = signature_line(book, signer.public_key, signer.sign(head.text.encode()))
    proof = consistency_path(leaves, min(old, len(leaves))) if path is None else path
    return AddCheckpoint(old=old, path=tuple(proof), note=signed_note(head, [line])).encode()


def verified_at(reply: Reply, leaves: list[bytes], witness: Witness) -> int | None:
    """What the verifier makes of the answer."""
    key = akaion_verify.parse_vkey(vkey(NAME, witness.key.public, b"\x04"), 4)
    text = Checkpoint.of(BOOK, len(leaves), root_of(leaves)).text
    assert key is not None
    moment: int | None = akaion_verify.cosigned_at(reply.body.decode().removesuffix("\n"), text, key)
    return moment


def test_i4_a_book_that_grows_is_cosigned_with_the_time(witness: Witness) -> None:
    for old, size in ((0, 1), (1, 7), (7, 7), (7, 40)):
        reply = witness.add_checkpoint(request(old, LEAVES[:size]))
        assert (reply.status, verified_at(reply, LEAVES[:size], witness)) == (200, 1_767_225_600)


def test_i4_a_rolled_back_book_is_refused_with_the_size_last_seen(witness: Witness) -> None:
    witness.add_checkpoint(request(0, LEAVES[:20]))
    for old in (0, 5, 10):
        reply = witness.add_checkpoint(request(old, LEAVES[:10]))
        assert (reply.status, reply.body, reply.media) == (409, b"20\n", SIZE)


def test_i4_a_fork_is_refused_whatever_its_length(witness: Witness, memory: Remembers) -> None:
    witness.add_checkpoint(request(0, LEAVES[:20]))
    before = dict(memory.books)
    other = [leaf_hash(b"another"), *LEAVES[1:]]
    assert witness.add_checkpoint(request(20, other[:20])).status == 409
    assert witness.add_checkpoint(request(20, other[:30])).status == 422
    assert (
        witness.add_checkpoint(request(20, other[:30], path=consistency_path(LEAVES[:30], 20))).status == 422
    )
    assert memory.books == before


def test_statuses_of_what_is_not_trusted_or_not_a_request(witness: Witness) -> None:
    stranger = MemorySigner(b"s" * 32)
    asked = {
        "unknown origin": (request(0, LEAVES[:5], book="other/desk"), 404),
        "another key": (request(0, LEAVES[:5], signer=stranger), 403),
        "old above size": (request(9, LEAVES[:5], path=[]), 400),
        "no proof wanted": (request(0, LEAVES[:5], path=[LEAVES[0]]), 422),
        "nothing": (b"", 400),
        "bytes": (b"\xff\xfe", 400),
        "too long a proof": (request(0, LEAVES[:5], path=LEAVES[:32] * 2), 400),
        "leading zero": (request(0, LEAVES[:5]).replace(b"old 0", b"old 00"), 400),
        "an altered root": (request(0, []).replace(b"47DEQpj8", b"47DEQpj9"), 403),
    }
    got = {name: witness.add_checkpoint(body).status for name, (body, _) in asked.items()}
    assert got == {name: status for name, (_, status) in asked.items()}


def test_i4_signatures_of_strangers_beside_the_trusted_one_are_ignored(witness: Witness) -> None:
    note = parse_request(request(0, LEAVES[:5])).note
    public = MemorySigner(b"s" * 32)
    line = signature_line(BOOK, public.public_key, bytes(64)).rstrip("\n")
    more = AddCheckpoint(old=0, path=(), note=signed_note(note.checkpoint, [line, *note.lines, line]))
    assert witness.add_checkpoint(more.encode()).status == 200


def test_i4_nothing_is_cosigned_that_could_not_be_kept(witness: Witness, memory: Remembers) -> None:
    memory.fails = True
    assert witness.add_checkpoint(request(0, LEAVES[:5])).status == 500
    memory.fails = False
    assert witness.add_checkpoint(request(0, LEAVES[:3])).status == 200


@given(st.binary(max_size=300))
def test_any_bytes_get_an_answer(body: bytes) -> None:
    witness = Witness(name=NAME, signer=MemorySigner(), memory=Remembers(), clock=FrozenClock())
    assert witness.add_checkpoint(body).status == 400


def test_i4_of_two_requests_at_once_one_is_cosigned_and_the_other_told_the_size(
    witness: Witness, memory: Remembers
) -> None:
    """The race that the specification names: the smaller one must not roll the larger one back."""
    replies: list[int] = []

    def ask(size: int) -> None:
        replies.append(witness.add_checkpoint(request(0, LEAVES[:size])).status)

    second = threading.Thread(target=ask, args=(10,))

    def recall(origin: str) -> Trusted | None:
        """Read, and let the other request try while the first is between reading and writing."""
        found = memory.books.get(origin)
        if second.ident is None:
            second.start()
            second.join(timeout=0.2)
        return found

    memory.recall = recall  # type: ignore[method-assign]  # the moment between reading and writing
    ask(20)
    second.join()
    assert (replies, memory.books[BOOK].seen.size) == ([200, 409], 20)


# --- on disk, over HTTP -----------------------------------------------------------------------------


def trusting(folder: Path) -> FolderMemory:
    memory = FolderMemory(folder)
    with memory:
        memory.keep(Trusted(key=Key(name=BOOK, public=KEEPER.public_key), seen=Seen()))
    return memory


def test_i4_what_was_seen_survives_a_restart(tmp_path: Path) -> None:
    trusting(tmp_path / "books")
    for old, size, status in ((0, 20, 200), (0, 10, 409), (20, 30, 200)):
        with FolderMemory(tmp_path / "books") as memory:
            witness = Witness(name=NAME, signer=MemorySigner(), memory=memory, clock=FrozenClock())
            assert witness.add_checkpoint(request(old, LEAVES[:size])).status == status


def test_i4_a_lost_or_damaged_file_makes_the_witness_refuse_and_never_start_over(tmp_path: Path) -> None:
    with trusting(tmp_path / "books") as memory:
        witness = Witness(name=NAME, signer=MemorySigner(), memory=memory, clock=FrozenClock())
        assert witness.add_checkpoint(request(0, LEAVES[:20])).status == 200
        (file,) = (tmp_path / "books").iterdir()
        file.write_text("damaged", encoding="ascii")
        assert witness.add_checkpoint(request(0, LEAVES[:10])).status == 500
        file.unlink()
        assert witness.add_checkpoint(request(0, LEAVES[:10])).status == 404


def test_i4_one_process_at_a_time_is_the_witness(tmp_path: Path) -> None:
    with FolderMemory(tmp_path), pytest.raises(TraceError, match="another process is this witness"):
        FolderMemory(tmp_path).__enter__()


SEARCH = """
import sys
from runner.perimeter.trace.cosign import parse_notes
note = sys.stdin.read()
print([len(parse_notes(before + note)) for before in ("y" * 2**20 + "\\n", "y\\n1\\n" * 2**17 + "\\n")])
"""


def test_a_long_text_before_a_note_is_read_once() -> None:
    """Tried anew from each of its characters, or its lines, it would take minutes."""
    head = Checkpoint.of(BOOK, 5, root_of(LEAVES[:5]))
    note = signed_note(head, [signature_line(BOOK, KEEPER.public_key, KEEPER.sign(b""))]).encode()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUTF8": "1"}
    program = [sys.executable, "-c", SEARCH]
    done = subprocess.run(
        program, input=note.encode(), capture_output=True, env=environment, timeout=600, check=True
    )
    assert done.stdout == b"[1, 1]\n"


@pytest.fixture
def address(witness: Witness) -> Iterator[tuple[str, int]]:
    with WitnessServer(witness, "127.0.0.1", 0, lambda _: None) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield "127.0.0.1", running.server_address[1]
        running.shutdown()
        thread.join()


def post(address: tuple[str, int], body: bytes, path: str = "/add-checkpoint") -> tuple[int, str, bytes]:
    connection = HTTPConnection(*address, timeout=120)
    connection.request("POST", path, body)
    response = connection.getresponse()
    found = response.status, response.headers["Content-Type"], response.read()
    connection.close()
    return found


def test_over_http_the_answers_are_those_of_the_judge(address: tuple[str, int], witness: Witness) -> None:
    status, _, body = post(address, request(0, LEAVES[:5]))
    assert status == 200
    assert (
        parse_answer(Checkpoint.of(BOOK, 5, root_of(LEAVES[:5])), body).cosigned_at(witness.key) is not None
    )
    assert post(address, request(0, LEAVES[:3])) == (409, SIZE, b"5\n")
    assert post(address, request(0, LEAVES[:5]), "/other")[0] == 404
    assert post(address, b"x" * 65_537)[0] == 413
    assert post(address, b"nonsense")[0] == 400


@pytest.mark.parametrize(
    "stated",
    [
        ["Content-Length: 65537"],
        ["Content-Length: 0000000004000000000"],
        [f"Content-Length: {'9' * 5_000}"],
        ["Content-Length: +5"],
        ["Content-Length: 5", "Content-Length: 5"],
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked"],
        [],
    ],
    ids=["more", "zeros", "digits", "signed", "twice", "both", "chunked", "none"],
)
def test_i7_of_a_body_without_one_bounded_length_not_a_byte_is_read(
    address: tuple[str, int], stated: list[str]
) -> None:
    """The answer comes while the body is still owed: whoever waits for it would wait in vain."""
    head = "\r\n".join(["POST /add-checkpoint HTTP/1.1", "Host: w", *stated, "", ""])
    with socket.create_connection(address, timeout=120) as peer:
        peer.sendall(head.encode())
        assert peer.recv(1 << 16).startswith(b"HTTP/1.1 413 ")


def test_i7_the_oldest_connection_gives_way_so_that_nobody_is_kept_away(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer that opens connections and says nothing keeps no more of them than there are places."""
    monkeypatch.setattr(server._Handler, "timeout", None)  # that is not what ends them here
    idle = [socket.create_connection(address, timeout=120) for _ in range(3 * MAX_CONNECTIONS)]
    try:
        assert post(address, request(0, LEAVES[:5]))[0] == 200
        given_way = idle[: len(idle) + 1 - MAX_CONNECTIONS]
        assert [peer.recv(1) for peer in given_way] == [b""] * len(given_way)
    finally:
        for peer in idle:
            peer.close()
