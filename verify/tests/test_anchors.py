# SPDX-License-Identifier: Apache-2.0
"""Anchors: what a pinned witness cosigned must still be there, whoever holds the device key (I4)."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import akaion_verify as av
import bookbuilder as bb
import pytest
from bookbuilder import LogBuilder, Story

NAME = "witness.example/w1"
WITNESS = bb.secret("witness")
SEEN_AT = 1_767_225_600


def witness_vkey(key: bytes, kind: bytes = b"\x04") -> str:
    key_id = hashlib.sha256(NAME.encode() + b"\n" + kind + key).hexdigest()[:8]
    return f"{NAME}+{key_id}+{base64.b64encode(kind + key).decode()}"


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    path = tmp_path / "w1.vkey"
    path.write_text(witness_vkey(bb.public(WITNESS)) + "\n", encoding="ascii")
    return path


def checkpoint(lines: list[bytes], book: str = bb.BOOK) -> str:
    root = base64.b64encode(bb.merkle_root([bb.leaf(line) for line in lines])).decode()
    return f"{book}\n{len(lines)}\n{root}\n"


def stamped(text: str, signature: bytes, seen_at: int = SEEN_AT) -> str:
    """Return the note with this signature, said to be made at this time."""
    key_id = hashlib.sha256(NAME.encode() + b"\n\x04" + bb.public(WITNESS)).digest()[:4]
    blob = base64.b64encode(key_id + seen_at.to_bytes(8, "big") + signature).decode()
    return f"{text}\n\u2014 {NAME} {blob}\n"


def cosigned(text: str, *, signed: str | None = None, seen_at: int = SEEN_AT) -> str:
    """Return the note of a witness that saw `text`; `signed` is what it signed instead."""
    signature = WITNESS.sign(f"cosignature/v1\ntime {seen_at}\n{signed or text}".encode())
    return stamped(text, signature, seen_at)


def two_logs(folder: Path) -> list[LogBuilder]:
    first = LogBuilder().open().play(bb.story())
    second = first.next().open().close()
    for log in (first, second):
        log.write(folder)
    return [first, second]


def lines_of(logs: list[LogBuilder]) -> list[bytes]:
    return [line for log in logs for line in log.lines]


def sidecar(folder: Path, text: str) -> Path:
    path = folder / "any.witness"
    path.write_text(text, encoding="utf-8")
    return path


def look(folder: Path, pin: Path, *witnesses: Path) -> dict[str, object]:
    return av.verify(folder, pin, (), None, witnesses)


def codes(report: dict[str, object]) -> list[tuple[str, int | None, int | None]]:
    reasons: object = report["reasons"]
    assert isinstance(reasons, list)
    return [(each["code"], each["log"], each["seq"]) for each in reasons]


def test_a_cosignature_over_the_whole_book_is_an_anchor_and_takes_the_claim_away(
    folder: Path, pin: Path, witness: Path
) -> None:
    logs = two_logs(folder)
    sidecar(folder, cosigned(checkpoint(lines_of(logs))))
    report = look(folder, pin, witness)
    size = len(logs[1].lines)
    anchor = {"kind": "witness", "witness": NAME, "time": SEEN_AT, "log": 1, "size": size}
    assert (report["verdict"], report["anchors"]) == ("PASS", [anchor])
    assert report["claims_not_made"] == [*av.NOT_CLAIMED, av.WITNESSED]
    assert (
        f"Anchors: witness {NAME}, log 1, its first {size} lines, at 2026-01-01 00:00:00 UTC"
        in av.describe(report).split("\n")
    )


def test_a_cosignature_over_the_beginning_leaves_the_rest_unprotected_and_says_so(
    folder: Path, pin: Path, witness: Path
) -> None:
    logs = two_logs(folder)
    sidecar(folder, cosigned(checkpoint(logs[0].lines)))
    report = look(folder, pin, witness)
    assert report["verdict"] == "PASS"
    assert report["claims_not_made"] == [*av.NOT_CLAIMED, av.ANCHORED, av.WITNESSED]


@pytest.mark.parametrize("pinned", [True, False], ids=["pinned", "not pinned"])
def test_a_book_written_anew_with_every_key_fails_where_a_pinned_witness_saw_the_old_one(
    folder: Path, pin: Path, witness: Path, *, pinned: bool
) -> None:
    """The attack of a holder of the device key, which nothing in the book shows."""
    logs = two_logs(folder)
    sidecar(folder, cosigned(checkpoint(lines_of(logs))))
    story = Story()
    story.change("b1", commit=bb.hex64("another content"))
    first = LogBuilder().open().play(story).write(folder)
    first.next().open().close().write(folder)
    assert look(folder, pin)["verdict"] == "PASS"
    if pinned:
        assert codes(look(folder, pin, witness)) == [("witness-differs", 1, len(logs[1].lines) - 1)]
        assert look(folder, pin, witness)["anchors"] == []


def test_logs_taken_away_fail_where_a_pinned_witness_saw_them(folder: Path, pin: Path, witness: Path) -> None:
    logs = two_logs(folder)
    sidecar(folder, cosigned(checkpoint(lines_of(logs))))
    (folder / logs[1].name).unlink()
    assert look(folder, pin)["verdict"] == "PASS"
    assert codes(look(folder, pin, witness)) == [("witness-differs", 0, None)]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text,  # a right one, by a witness that is not pinned
        lambda text: text.replace("time", "Time"),
        lambda text: text[:0],
    ],
    ids=["unpinned", "unchanged", "empty"],
)
def test_a_pinned_witness_that_says_nothing_of_the_book_leaves_it_incomplete(
    folder: Path, pin: Path, tmp_path: Path, spoil: object
) -> None:
    logs = two_logs(folder)
    assert callable(spoil)
    sidecar(folder, spoil(cosigned(checkpoint(lines_of(logs)))))
    other = tmp_path / "other.vkey"
    other.write_text(witness_vkey(bb.public(bb.secret("another witness"))), encoding="ascii")
    report = look(folder, pin, other)
    assert (report["verdict"], codes(report)) == ("INCOMPLETE", [("witness-silent", None, None)])
    assert report["anchors"] == []
    assert look(folder, pin)["verdict"] == "PASS"
    assert av.NOT_ANCHORED in report["claims_not_made"]  # type: ignore[operator]


def wrong_notes(lines: list[bytes]) -> dict[str, str]:
    text = checkpoint(lines)
    right = cosigned(text)
    return {
        "another time": stamped(text, WITNESS.sign(f"cosignature/v1\ntime {SEEN_AT - 1}\n{text}".encode())),
        "not a cosignature": stamped(text, WITNESS.sign(text.encode())),
        "other text": cosigned(text, signed=text.replace(bb.BOOK, "other")),
        "other name": right.replace(f"\u2014 {NAME}", "\u2014 witness.example/w2"),
        "too short": right[:-6] + "\n",
        "no time on earth": cosigned(text, seen_at=2**63),
        "not text": "\udcff".encode("utf-8", "surrogateescape").decode("latin-1") + right[1:],
    }


@pytest.mark.parametrize("name", sorted(wrong_notes([b"{}"])))
def test_a_cosignature_that_does_not_hold_is_as_good_as_none(
    folder: Path, pin: Path, witness: Path, name: str
) -> None:
    logs = two_logs(folder)
    sidecar(folder, wrong_notes(lines_of(logs))[name])
    report = look(folder, pin, witness)
    assert (codes(report), report["anchors"]) == ([("witness-silent", None, None)], [])


def over_long(letter: str) -> str:
    """Return a line of nearly all that is read of a sidecar, which leaves room for a note."""
    return letter * ((av.MAX_LINE - 4096) // len(letter.encode())) + "\n"


LETTERS = {"letters": "y", "returns": "\r", "dashes": "\u2014"}


@pytest.mark.parametrize("name", LETTERS)
def test_a_long_line_before_a_cosignature_neither_hides_it_nor_takes_longer_than_to_read(
    folder: Path, pin: Path, witness: Path, name: str
) -> None:
    """Read anew from each of its characters on, one line of 1 MiB would take seven minutes."""
    logs = two_logs(folder)
    sidecar(folder, over_long(LETTERS[name]) + cosigned(checkpoint(lines_of(logs))))
    program = [sys.executable, "-I", "-S", av.__file__, folder, "--pin", pin, "--witness", witness, "--json"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, len(json.loads(done.stdout)["anchors"])) == (0, 1)


def test_a_cosignature_for_another_book_of_the_same_witness_says_nothing_of_this_one(
    folder: Path, pin: Path, witness: Path
) -> None:
    logs = two_logs(folder)
    sidecar(
        folder,
        cosigned(checkpoint([b"{}"] * 999, "other.example/desk")) + cosigned(checkpoint(lines_of(logs))),
    )
    report = look(folder, pin, witness)
    assert (report["verdict"], len(report["anchors"])) == ("PASS", 1)  # type: ignore[arg-type]
    sidecar(folder, cosigned(checkpoint([b"{}"] * 999, "other.example/desk")))
    assert codes(look(folder, pin, witness)) == [("witness-silent", None, None)]


def test_a_book_that_starts_late_has_no_anchor_and_no_false_alarm(
    folder: Path, pin: Path, witness: Path
) -> None:
    logs = two_logs(folder)
    sidecar(folder, cosigned(checkpoint(lines_of(logs))))
    (folder / logs[0].name).unlink()
    report = look(folder, pin, witness)
    assert (report["verdict"], report["anchors"]) == ("PARTIAL", [])


@pytest.mark.parametrize("kind", [b"\x01", b"\x04"], ids=["a note's key", "a weak key"])
def test_a_key_that_is_none_of_a_witness_is_refused(
    folder: Path, pin: Path, tmp_path: Path, kind: bytes
) -> None:
    two_logs(folder)
    key = bb.public(WITNESS) if kind == b"\x01" else bytes([1]) + bytes(31)
    wrong = tmp_path / "wrong.vkey"
    wrong.write_text(witness_vkey(key, kind), encoding="ascii")
    assert codes(look(folder, pin, wrong)) == [("witness-unusable", None, None)]


def test_a_witness_pinned_inside_the_folder_is_refused(folder: Path, pin: Path, witness: Path) -> None:
    two_logs(folder)
    inside = folder / "w1.vkey"
    inside.write_bytes(witness.read_bytes())
    report = look(folder, pin, inside)
    assert (report["verdict"], codes(report)) == ("UNTRUSTED", [("witness-unusable", None, None)])


def test_a_witness_pinned_twice_counts_once(folder: Path, pin: Path, witness: Path, tmp_path: Path) -> None:
    logs = two_logs(folder)
    sidecar(folder, cosigned(checkpoint(lines_of(logs))))
    again = tmp_path / "again.vkey"
    again.write_bytes(witness.read_bytes().removesuffix(b"\n"))
    once = look(folder, pin, witness)
    assert len(once["anchors"]) == 1  # type: ignore[arg-type]
    assert look(folder, pin, witness, again, witness) == once


def test_the_command_takes_several_witnesses(folder: Path, pin: Path, witness: Path, tmp_path: Path) -> None:
    logs = two_logs(folder)
    sidecar(folder, cosigned(checkpoint(lines_of(logs))))
    other = tmp_path / "other.vkey"
    other.write_text(witness_vkey(bb.public(bb.secret("another witness"))), encoding="ascii")
    options = ["--pin", pin, "--witness", other, "--witness", witness, "--json"]
    program = [sys.executable, "-I", "-S", av.__file__, folder, *options]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert (done.returncode, codes(report)) == (2, [("witness-silent", None, None)])
    assert [each["witness"] for each in report["anchors"]] == [NAME]


def test_more_sidecars_than_are_read_leave_the_last_by_name(
    folder: Path, pin: Path, witness: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever fills the folder with sidecars keeps nobody busy without end."""
    logs = two_logs(folder)
    monkeypatch.setattr(av, "MAX_SIDECARS", 3)
    for number in range(6):
        (folder / f"{number}.witness").write_text("nothing", encoding="utf-8")
    first, last = folder / "0.witness", folder / "5.witness"
    last.write_text(cosigned(checkpoint(lines_of(logs))), encoding="utf-8")
    assert len(look(folder, pin, witness)["anchors"]) == 1  # type: ignore[arg-type]
    last.rename(first)
    assert codes(look(folder, pin, witness)) == [("witness-silent", None, None)]
