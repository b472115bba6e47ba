# SPDX-License-Identifier: Apache-2.0
"""I4 against a compromised runtime: what a signer process certifies, and what it refuses."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from beside import Beside
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.canonical import canonical_bytes
from runner.kernel.errors import TraceError
from runner.kernel.labels import DataClass
from runner.kernel.ports import HeadKeeper, HeldHead, SignerRefusal
from runner.perimeter.trace import log as log_module
from runner.perimeter.trace import records as r
from runner.perimeter.trace.certify import Held, encode_held, parse_held
from runner.perimeter.trace.merkle import Tree, leaf_hash
from runner.perimeter.trace.note import checkpoint, vkey
from runner.testing import MemorySigner

if TYPE_CHECKING:
    from tests.unit.perimeter.trace.conftest import Studio

BOOK = "studio"


@pytest.fixture
def beside(studio: "Studio") -> Beside:
    """The studio's signer, in a process of its own as it were."""
    signer = Beside()
    assert isinstance(signer, HeadKeeper)
    studio.signer = signer  # type: ignore[assignment]  # any signer will do
    return signer


def work(studio: "Studio") -> None:
    """One run: a task, and the log is closed."""
    with studio.open() as trace:
        task = trace.mint_id()
        trace.append(r.TaskStart(goal_commit=trace.commit(b"goal"), data_class=DataClass.C1), task=task)
        trace.barrier()
        trace.append(r.TaskEnd(outcome="done"), task=task)


def copied(studio: "Studio") -> Callable[[], None]:
    """Copy the book and its head pin; the result puts the copy back, as from an old backup."""
    files = {name: log.data for name, log in studio.store.files.items()}
    pin = studio.store.pin

    def back() -> None:
        for name in list(studio.store.files):
            if name not in files:
                del studio.store.files[name]
        for name, data in files.items():
            studio.store.files[name].data = data
        studio.store.pin = pin

    return back


# --- an honest runtime --------------------------------------------------------------------------------


def test_a_book_is_certified_log_by_log_and_the_signer_holds_its_head(
    studio: "Studio", beside: Beside
) -> None:
    for number in range(3):
        work(studio)
        lines = studio.log.data.split(b"\n")[:-1]
        tree = Tree()
        for line in lines:
            tree.add(leaf_hash(line))
        assert beside.head() == HeldHead(log_no=number, size=len(lines), root=tree.root())
        beside.restart()
    assert json.loads(studio.log.data.split(b"\n")[0])["body"]["custody"] == "process"


def test_one_signature_a_log_and_each_seal_is_held_before_anything_rests_on_it(
    studio: "Studio", beside: Beside
) -> None:
    work(studio)
    assert [ask for ask in beside.asked if ask in {"sign", "grow"}] == ["sign", "grow", "grow", "grow"]
    assert studio.log.data.count(b'"kind":"seal"') == 3


@pytest.mark.usefixtures("beside")
def test_what_is_signed_is_made_from_the_header_by_the_signer(studio: "Studio") -> None:
    """Whatever text the runtime would like to have signed: only a first seal comes back."""
    work(studio)
    header = studio.log.data.split(b"\n")[0]
    tree = Tree()
    tree.add(leaf_hash(header))
    text = checkpoint(json.loads(header)["body"]["origin"], 1, tree.root()).encode()
    fresh = Beside()
    signature = fresh.sign(b"another text", header=header)
    Ed25519PublicKey.from_public_bytes(fresh.public_key).verify(signature, text)


def test_a_rotated_log_is_certified_in_the_middle_of_a_run(
    studio: "Studio", beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "ROTATE_AFTER_S", 0.0)
    work(studio)
    head = beside.head()
    assert head is not None
    assert (head.log_no, len(studio.store.files)) == (1, 2)


@pytest.mark.parametrize("lost", ["sign", "first-grow", "later-grow"])
def test_a_crash_between_the_disk_and_the_signer_is_made_good(
    studio: "Studio", beside: Beside, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signer is never ahead of the disk by more than a header, and catches up at the next start."""
    work(studio)
    calls = {"sign": 0, "first-grow": 0, "later-grow": 1}[lost]
    with monkeypatch.context() as patched:
        if lost == "sign":
            patched.setattr(studio.store, "create", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        else:
            real, seen = beside.grow, iter(range(9))

            def dies(*arguments: Any) -> None:
                if next(seen) >= calls:
                    raise OSError(5, "gone")
                real(*arguments)

            patched.setattr(beside, "grow", dies)
        with pytest.raises(TraceError):
            work(studio)
        studio.store.release()
    beside.restart()
    work(studio)
    head = beside.head()
    assert head is not None
    assert head.log_no == {"sign": 1, "first-grow": 2, "later-grow": 2}[lost]


def test_i9_a_head_that_is_not_kept_breaks_the_log(studio: "Studio", beside: Beside) -> None:
    trace = studio.open()
    task = trace.mint_id()
    trace.append(r.TaskStart(goal_commit=trace.commit(b"goal"), data_class=DataClass.C1), task=task)

    held = beside.head()

    def full(_: bytes) -> None:
        raise OSError(28, "full")

    beside.certifier._keep = full
    with pytest.raises(TraceError, match="not-kept"):
        trace.barrier()
    assert beside.head() == held  # what is not on the disk is not held either
    with pytest.raises(TraceError, match="earlier error"):
        trace.append(r.TaskEnd(outcome="done"), task=task)


# --- a runtime that is not ----------------------------------------------------------------------------


def test_a_book_that_was_rolled_back_gets_no_further_log(studio: "Studio", beside: Beside) -> None:
    """An old copy of book and head pin, both put back: the runtime's own disk cannot tell, the signer can."""
    work(studio)
    back = copied(studio)
    work(studio)
    back()
    with pytest.raises(TraceError, match="rolled-back"):
        work(studio)
    assert len(studio.store.files) == 1
    assert beside.head() is not None


@pytest.mark.usefixtures("beside")
def test_a_log_that_was_cut_gets_no_successor(studio: "Studio") -> None:
    trace = studio.open()
    back = copied(studio)
    task = trace.mint_id()
    trace.append(r.TaskStart(goal_commit=trace.commit(b"goal"), data_class=DataClass.C1), task=task)
    trace.barrier()
    studio.store.release()
    back()
    with pytest.raises(TraceError, match="synced"):
        work(studio)


class Honest(MemorySigner):
    """The same device key, for a story that the signer never heard."""

    custody = "process"


def test_a_log_that_was_written_anew_gets_no_successor(studio: "Studio", beside: Beside) -> None:
    """A clone of the runtime, with the log's key, tells another and longer story of the same log."""
    clone = type(studio)(signer=Honest())
    for each, goals in ((studio, [b"one"]), (clone, [b"other", b"another", b"more"])):
        trace = each.open()
        for goal in goals:
            task = trace.mint_id()
            start = r.TaskStart(goal_commit=trace.commit(goal), data_class=DataClass.C1)
            trace.append(start, task=task)
            trace.append(r.TaskEnd(outcome="done"), task=task)
            trace.barrier()
    ours, theirs = studio.log.data.split(b"\n"), clone.log.data.split(b"\n")
    assert ours[:2] == theirs[:2]
    assert len(ours) < len(theirs)
    studio.log.data, studio.store.pin = clone.log.data, clone.store.pin
    studio.store.release()
    with pytest.raises(TraceError, match="differs from what was synced"):
        work(studio)
    grown = [leaf_hash(line) for line in theirs[len(ours) - 1 : -1]]
    beside.grow(0, len(ours) - 1, grown)  # and a runtime that asks no questions is refused by the signer
    tree = Tree()
    for line in theirs[:-1]:
        tree.add(leaf_hash(line))
    log_id = json.loads(ours[0])["body"]["log_id"]
    prev = {"id": log_id, "root": tree.root().hex(), "size": tree.size}
    with pytest.raises(TraceError, match="forked"):
        beside.sign(b"", header=header_of(log_no=1, prev_log=prev))


def header_of(**changed: Any) -> bytes:
    """A header line as the certifier wants it, with other members where given."""
    origin = f"{BOOK}/{'a' * 32}"
    body = {
        "format": "akaion-trace/1",
        "log_no": 0,
        "log_id": "a" * 32,
        "origin": origin,
        "vkey": log_vkey(origin),
        "custody": "process",
    }
    record = {"body": {**body, **changed}, "kind": "header", "prev": START, "seq": 0, "ts": 1}
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def log_vkey(origin: str, seed: bytes = b"l" * 32) -> str:
    return vkey(origin, MemorySigner(seed).public_key)


START = "87cfa3c2b0a5f0d3ba2e5be78db95d6ae50ba66067f008aac4a2be1221f51084"
PREV = {"id": "b" * 32, "root": "0" * 64, "size": 4}


def held_at(log_no: int, size: int, before: dict[str, Any] | None = None) -> tuple[bytes, dict[str, Any]]:
    """What a signer keeps of a log of so many lines, and what the next header has to say of it."""
    tree = Tree()
    for number in range(size):
        tree.add(leaf_hash(b"%d" % number))
    held = Held(log_no=log_no, log_id="b" * 32, size=size, peaks=tree.peaks, before=before)
    return encode_held(held), {"id": "b" * 32, "root": tree.root().hex(), "size": size}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, None),
        ({"log_no": 1, "prev_log": PREV}, SignerRefusal.NOT_NEXT),
        ({"prev_log": PREV}, SignerRefusal.FORKED),
        ({"custody": "hardware"}, SignerRefusal.OTHER_CUSTODY),
        ({"custody": "file"}, SignerRefusal.OTHER_CUSTODY),
        ({"x_next_device_key": log_vkey("akaion/mallory/device")}, SignerRefusal.OTHER_SUCCESSOR),
        ({"x_next_device_key": ["a list"]}, SignerRefusal.OTHER_SUCCESSOR),
        ({"x_next_device_key": ""}, SignerRefusal.OTHER_SUCCESSOR),
        ({"origin": f"other/{'a' * 32}"}, SignerRefusal.OTHER_BOOK),
        ({"log_id": "c" * 32}, SignerRefusal.OTHER_BOOK),
        ({"vkey": log_vkey(f"other/{'a' * 32}")}, SignerRefusal.OTHER_BOOK),
        ({"vkey": log_vkey(f"{BOOK}/{'a' * 32}", bytes(32))}, SignerRefusal.OTHER_BOOK),
        ({"vkey": "nonsense"}, SignerRefusal.NOT_A_HEADER),
        ({"log_no": -1}, SignerRefusal.NOT_A_HEADER),
        ({"log_no": True}, SignerRefusal.NOT_A_HEADER),
        ({"log_id": 7}, SignerRefusal.NOT_A_HEADER),
        ({"format": "akaion-trace/2"}, SignerRefusal.NOT_A_HEADER),
    ],
)
def test_the_first_header_of_a_book(changed: dict[str, Any], why: SignerRefusal | None) -> None:
    signer = Beside()
    if why is None:
        assert len(signer.sign(b"", header=header_of(**changed))) == 64
        return
    with pytest.raises(TraceError, match=why.value):
        signer.sign(b"", header=header_of(**changed))
    assert signer.kept is None


def test_i4_only_the_operator_says_which_key_is_next() -> None:
    """The identity of the device is not the runtime's to give away: else it outlives being thrown out."""
    named, mallory = log_vkey("akaion/next/device"), log_vkey("akaion/mallory/device", b"m" * 32)
    signer = Beside(successor=named)
    with pytest.raises(TraceError, match="other-successor"):
        signer.sign(b"", header=header_of(x_next_device_key=mallory))
    assert signer.kept is None
    for changed in ({"x_next_device_key": named}, {}):  # a log that was certified and never grew, anew
        assert len(signer.sign(b"", header=header_of(**changed))) == 64


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        (b'"seq":0', b'"seq":1'),
        (b'"kind":"header"', b'"kind":"close"'),
        (START.encode(), b"0" * 64),
        (b'"ts":1}', b'"ts": 1}'),
        (b'"ts":1}', b'"ts":1,"ts":1}'),
        (b'"ts":1}', b'"ts":1}\n'),
    ],
)
def test_what_is_not_the_one_first_line_of_a_log_is_no_header(there: bytes, instead: bytes) -> None:
    """A line with a second spelling would be certified, and be another leaf for whoever reads it."""
    assert there in header_of()
    with pytest.raises(TraceError, match="not-a-header"):
        Beside().sign(b"", header=header_of().replace(there, instead))


@pytest.mark.parametrize(
    ("log_no", "size", "changed", "why"),
    [
        (4, 3, {}, None),
        (4, 3, {"size": 2}, SignerRefusal.ROLLED_BACK),
        (4, 3, {"size": 4}, SignerRefusal.FORKED),
        (4, 3, {"root": "0" * 64}, SignerRefusal.FORKED),
        (4, 3, {"id": "c" * 32}, SignerRefusal.FORKED),
        (3, 3, {}, SignerRefusal.NOT_NEXT),
        (5, 3, {}, SignerRefusal.ROLLED_BACK),
        (6, 3, {}, SignerRefusal.ROLLED_BACK),
    ],
)
def test_the_header_of_log_five(
    log_no: int, size: int, changed: dict[str, Any], why: SignerRefusal | None
) -> None:
    kept, prev = held_at(log_no, size, PREV)
    signer = Beside(kept=kept)
    header = header_of(log_no=5, prev_log={**prev, **changed})
    if why is None:
        assert len(signer.sign(b"", header=header)) == 64
        return
    with pytest.raises(TraceError, match=why.value):
        signer.sign(b"", header=header)
    assert signer.kept == kept


def test_a_log_that_never_grew_is_certified_anew_after_the_same_predecessor_only() -> None:
    signer = Beside(kept=held_at(5, 1, PREV)[0])
    with pytest.raises(TraceError, match="forked"):
        signer.sign(b"", header=header_of(log_no=5, prev_log={**PREV, "root": "1" * 64}))
    signer.sign(b"", header=header_of(log_no=5, prev_log=PREV))
    signer.grow(5, 1, [bytes(32)])
    with pytest.raises(TraceError, match="rolled-back"):
        signer.sign(b"", header=header_of(log_no=5, prev_log=PREV))


@pytest.mark.parametrize(
    ("log_no", "size", "leaves", "why"),
    [
        (5, 3, [bytes(32)], None),
        (5, 3, [], None),
        (5, 2, [bytes(32)], "not-next"),
        (5, 4, [bytes(32)], "not-next"),
        (4, 3, [bytes(32)], "not-next"),
        (5, 3, [b"short"], "not-a-request"),
    ],
)
def test_a_head_grows_from_where_it_is_only(
    log_no: int, size: int, leaves: list[bytes], why: str | None
) -> None:
    kept = held_at(5, 3)[0]
    signer = Beside(kept=kept)
    if why is None:
        signer.grow(log_no, size, leaves)
        head = signer.head()
        assert head is not None
        assert head.size == 3 + len(leaves)
        return
    with pytest.raises(TraceError, match=why):
        signer.grow(log_no, size, leaves)
    assert signer.kept == kept


def test_a_log_has_no_more_lines_than_it_may() -> None:
    held = json.loads(held_at(5, 3)[0])
    peaks = ["0" * 64] * (99_999).bit_count()
    signer = Beside(kept=canonical_bytes({**held, "size": 99_999, "peaks": peaks}) + b"\n")
    signer.grow(5, 99_999, [bytes(32)])
    with pytest.raises(TraceError, match="too-long"):
        signer.grow(5, 100_000, [bytes(32)])


@given(
    st.binary()
    | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_any_bytes_are_answered_and_change_nothing(request: bytes) -> None:
    signer = Beside(kept=held_at(5, 3)[0])
    answer = json.loads(signer.certifier.answer(request))
    assert answer == {"refused": "not-a-request"}
    assert signer.kept == held_at(5, 3)[0]


@given(
    st.dictionaries(
        st.sampled_from(["ask", "header", "log_no", "size", "leaves"]),
        st.sampled_from(["sign", "grow", "00", 5, 3, None, [], {}]),
    )
)
def test_any_request_is_answered(request: dict[str, Any]) -> None:
    """A request that is nearly one is refused in a word of the vocabulary, or done; never an exception."""
    signer = Beside(kept=held_at(5, 3)[0])
    answer = json.loads(signer.certifier.answer(json.dumps(request).encode()))
    assert answer.get("refused", "not-next") in set(SignerRefusal)


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]\n", b"null\n", held_at(5, 3)[0][:-1], b"{" * 9999])
def test_i7_a_damaged_head_is_no_head(damage: bytes) -> None:
    with pytest.raises(TraceError, match="damaged"):
        parse_held(damage)


def test_what_is_kept_is_read_back() -> None:
    for before in (None, PREV):
        kept = held_at(5, 3, before)[0]
        assert encode_held(parse_held(kept)) == kept
