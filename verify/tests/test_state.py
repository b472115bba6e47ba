# SPDX-License-Identifier: Apache-2.0
"""The auditor's state: what was seen before must still be there, whoever holds the keys (I4)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import akaion_verify as av
import bookbuilder as bb
import pytest
from bookbuilder import LogBuilder, Story


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "seen.json"


def look(folder: Path, pin: Path, state: Path) -> tuple[str, list[tuple[str, int | None]]]:
    """Verify as an auditor does, with the file that remembers, and return verdict and reasons."""
    report = av.verify(folder, pin, (), state)
    av.write_state(state, report)
    return str(report["verdict"]), [(reason["code"], reason["log"]) for reason in report["reasons"]]


def two_logs(folder: Path) -> list[LogBuilder]:
    first = LogBuilder().open().play(bb.story())
    second = first.next().open().close()
    for log in (first, second):
        log.write(folder)
    return [first, second]


def test_at_the_first_time_the_state_is_made_and_claims_nothing(folder: Path, pin: Path, state: Path) -> None:
    _, second = two_logs(folder)
    report = av.verify(folder, pin, (), state)
    assert (report["verdict"], report["anchors"]) == ("PASS", [])
    assert av.NOT_ANCHORED in report["claims_not_made"]
    av.write_state(state, report)
    assert json.loads(state.read_text(encoding="ascii")) == {
        "format": "akaion-state/1",
        "book": bb.BOOK,
        "log": 1,
        "log_id": second.log_id,
        "size": len(second.lines),
        "root": bb.merkle_root([bb.leaf(line) for line in second.lines]).hex(),
    }


def test_a_book_that_goes_on_from_what_was_seen_passes_and_says_so(
    folder: Path, pin: Path, state: Path
) -> None:
    _, second = two_logs(folder)
    look(folder, pin, state)
    second.next().open().close().write(folder)
    report = av.verify(folder, pin, (), state)
    assert report["verdict"] == "PASS"
    assert report["anchors"] == [{"kind": "state", "log": 1, "size": len(second.lines)}]
    assert av.NOT_ANCHORED not in report["claims_not_made"]
    av.write_state(state, report)
    assert json.loads(state.read_text(encoding="ascii"))["log"] == 2


def test_the_last_log_taken_away_is_a_failure_where_it_was_seen(folder: Path, pin: Path, state: Path) -> None:
    """What no book can show by itself, and what a holder of every key can do."""
    _, second = two_logs(folder)
    look(folder, pin, state)
    (folder / second.name).unlink()
    assert av.verify(folder, pin)["verdict"] == "PASS"
    assert look(folder, pin, state) == ("FAIL", [("state-differs", 1)])


def test_a_book_written_anew_with_the_same_keys_is_a_failure_where_it_was_seen(
    folder: Path, pin: Path, state: Path
) -> None:
    LogBuilder().open().play(bb.story()).write(folder)
    look(folder, pin, state)
    story = Story()
    story.change("b1", commit=bb.hex64("another content"))
    LogBuilder().open().play(story).write(folder)
    assert av.verify(folder, pin)["verdict"] == "PASS"
    assert look(folder, pin, state) == ("FAIL", [("state-differs", 0)])


def test_a_log_cut_before_what_was_seen_is_a_failure(folder: Path, pin: Path, state: Path) -> None:
    log = LogBuilder().open().play(bb.story())
    log.write(folder)
    look(folder, pin, state)
    (folder / log.name).write_bytes(b"".join(line + b"\n" for line in log.lines[:3]))
    assert look(folder, pin, state)[0] == "FAIL"


def test_the_state_cannot_be_walked_back_by_taking_off_seals(folder: Path, pin: Path, state: Path) -> None:
    """Without any key: cut the last seal off a log that is still open, then let the writer account for it."""
    log = LogBuilder().open()
    for _ in range(3):
        log.entry(bb.Step("again", "backend", bb.backend(bb.LOCAL, "L2")))
        log.seal()
    log.write(folder)
    assert look(folder, pin, state)[0] == "INCOMPLETE"
    before, lines = state.read_bytes(), list(log.lines)
    log.lines = lines[:-1]
    log.write(folder)
    assert look(folder, pin, state)[0] == "FAIL"
    assert state.read_bytes() == before
    log.lines = lines[:4]
    log.write(folder)
    after = log.next().open()
    after.entry(log.recovery())
    after.seal()
    after.close().write(folder)
    assert av.verify(folder, pin)["verdict"] == "PASS"
    assert look(folder, pin, state) == ("FAIL", [("state-differs", 0)])


def test_a_failure_leaves_the_state_as_it_was(folder: Path, pin: Path, state: Path) -> None:
    _, second = two_logs(folder)
    look(folder, pin, state)
    before = state.read_bytes()
    (folder / second.name).unlink()
    look(folder, pin, state)
    assert state.read_bytes() == before


def test_without_the_pin_nothing_is_kept(folder: Path, state: Path) -> None:
    two_logs(folder)
    av.write_state(state, av.verify(folder, None, (), state))
    assert not state.exists()


def test_a_folder_that_starts_after_what_was_seen_is_incomplete(folder: Path, pin: Path, state: Path) -> None:
    first, second = two_logs(folder)
    (folder / second.name).unlink()
    look(folder, pin, state)
    second.write(folder)
    (folder / first.name).unlink()
    before = state.read_bytes()
    assert look(folder, pin, state) == ("INCOMPLETE", [("state-missing", 0), ("starts-late", 1)])
    assert state.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"\xff", b"nothing", b'{"book":"a/b","format":"akaion-state/1","log":0}\n', b"[" * 4000],
    ids=["empty", "no members", "no text", "no json", "members missing", "deep"],
)
def test_a_state_that_cannot_be_read_is_no_state(
    folder: Path, pin: Path, state: Path, content: bytes
) -> None:
    two_logs(folder)
    state.write_bytes(content)
    assert look(folder, pin, state) == ("UNTRUSTED", [("state-unusable", None)])
    assert state.read_bytes() == content


def test_a_state_inside_the_folder_vouches_for_nothing(folder: Path, pin: Path) -> None:
    two_logs(folder)
    assert look(folder, pin, folder / "seen.json") == ("UNTRUSTED", [("state-unusable", None)])
    assert not (folder / "seen.json").exists()


def test_a_state_of_another_book_is_a_failure(folder: Path, pin: Path, state: Path) -> None:
    two_logs(folder)
    look(folder, pin, state)
    held = json.loads(state.read_text(encoding="ascii"))
    state.write_bytes(bb.encode({**held, "book": "studio.example/other"}) + b"\n")
    assert look(folder, pin, state) == ("FAIL", [("state-differs", 1)])


def test_the_command_keeps_the_state_and_prints_it(
    folder: Path, pin: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two_logs(folder)
    command = [str(folder), "--pin", str(pin), "--state", str(state)]
    assert av.main(command) == 0
    assert "Anchors: none" in capsys.readouterr().out
    assert av.main(command) == 0
    assert "Anchors: auditor's state, log 1, its first" in capsys.readouterr().out


def test_a_state_that_cannot_be_written_is_said(
    folder: Path, pin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two_logs(folder)
    assert av.main([str(folder), "--pin", str(pin), "--state", str(tmp_path / "nowhere" / "seen")]) == 0
    assert "the state was not written" in capsys.readouterr().err


def test_a_pipe_or_a_link_beside_the_state_is_not_written_through(
    folder: Path, pin: Path, state: Path, tmp_path: Path
) -> None:
    """The fresh state is made beside the old one: what stands there is put away, and never opened."""
    two_logs(folder)
    beside, elsewhere = state.with_name(state.name + ".new"), tmp_path / "elsewhere"
    elsewhere.write_text("mine", encoding="ascii")
    for stand in (lambda: os.mkfifo(beside), lambda: beside.symlink_to(elsewhere), beside.touch):
        stand()
        state.unlink(missing_ok=True)
        program = [sys.executable, "-I", "-S", av.__file__, folder, "--pin", pin, "--state", state]
        done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(state.read_text(encoding="ascii"))["log"] == 1
        assert beside not in tmp_path.iterdir()
    assert elsewhere.read_text(encoding="ascii") == "mine"


def test_a_folder_beside_the_state_leaves_it_as_it_was(folder: Path, pin: Path, state: Path) -> None:
    two_logs(folder)
    state.with_name(state.name + ".new").mkdir()
    program = [sys.executable, "-I", "-S", av.__file__, folder, "--pin", pin, "--state", state]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, state.exists()) == (0, False)
    assert "the state was not written: " in done.stderr
