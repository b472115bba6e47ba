# SPDX-License-Identifier: Apache-2.0
"""The book: files, order, recovery, pins, and the order of verdicts (I4, P3)."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import akaion_verify as av
import bookbuilder as bb
import pytest
from bookbuilder import LogBuilder, Step, hex64

Reasons = list[tuple[str, "int | None", "int | None"]]


def verdict(folder: Path, pin: Path | None, **options: object) -> tuple[str, int, Reasons]:
    report: dict[str, Any] = av.verify(folder, pin, **options)
    found = [(reason["code"], reason["log"], reason["seq"]) for reason in report["reasons"]]
    return report["verdict"], report["exit"], found


def closed(folder: Path, **changes: object) -> LogBuilder:
    return LogBuilder(changes=changes).open().close().write(folder)


# Files


def test_three_logs_and_their_sidecars_pass(folder: Path, pin: Path) -> None:
    log = closed(folder)
    log = log.next().open().play(bb.story()).write(folder)
    log.next().open().close().write(folder)
    (folder / "000000.witness").write_bytes(b"sidecars are not read")
    (folder / "notes.json").write_bytes(b"\xff")
    assert verdict(folder, pin) == ("PASS", 0, [])


@pytest.mark.parametrize(
    "name",
    [
        "notes.jsonl",
        ".jsonl",
        f"00000-{'0' * 32}.jsonl",
        f"0000001-{'0' * 32}.jsonl",
        f"000001-{'0' * 31}.jsonl",
        f"000001-{'A' * 32}.jsonl",
        f"000001-{'0' * 32}.jsonl.jsonl",
        f"\u0661\u0661\u0661\u0661\u0661\u0661-{'0' * 32}.jsonl",
        f"000001-{'0' * 32}\n.jsonl",
    ],
)
def test_a_stray_jsonl_name_fails(name: str, folder: Path, pin: Path) -> None:
    closed(folder)
    (folder / name).write_bytes(b"")
    assert verdict(folder, pin) == ("FAIL", 1, [("stray-file", None, None)])


@pytest.mark.parametrize("kind", ["link", "folder", "fifo"])
def test_a_log_is_a_regular_file(kind: str, folder: Path, pin: Path, tmp_path: Path) -> None:
    log = closed(folder)
    following = log.next().open().close()
    place = folder / following.name
    if kind == "link":
        following.write(tmp_path)
        place.symlink_to(tmp_path / following.name)
    elif kind == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    assert verdict(folder, pin) == ("FAIL", 1, [("stray-file", None, None)])


def test_i7_a_log_that_turns_into_a_pipe_holds_nobody(
    folder: Path, pin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between listing and opening, the folder is still in other hands."""
    os.mkfifo(folder / LogBuilder().name)
    monkeypatch.setattr(av, "find_logs", lambda _folder, _findings: {0: LogBuilder().name})
    answers = list[object]()
    reading = threading.Thread(target=lambda: answers.append(verdict(folder, pin)), daemon=True)
    reading.start()
    reading.join(10)
    assert answers == [("INCOMPLETE", 2, [("log-unreadable", 0, 0)])]


def test_two_files_with_one_number_fail(folder: Path, pin: Path) -> None:
    log = closed(folder)
    (folder / f"000000-{'f' * 32}.jsonl").write_bytes(log.content())
    assert verdict(folder, pin) == ("FAIL", 1, [("log-number-repeated", 0, None)])


def test_a_log_under_another_name_fails(folder: Path, pin: Path) -> None:
    log = closed(folder)
    (folder / log.name).rename(folder / f"000000-{'f' * 32}.jsonl")
    assert verdict(folder, pin) == ("FAIL", 1, [("file-name-differs", 0, 0)])


def test_an_empty_or_missing_folder_is_incomplete(folder: Path, pin: Path) -> None:
    assert verdict(folder, pin) == ("INCOMPLETE", 2, [("no-logs", None, None)])
    assert verdict(folder / "missing", pin) == ("INCOMPLETE", 2, [("no-logs", None, None)])


def test_an_unreadable_log_is_incomplete(folder: Path, pin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed(folder)

    def refuse(path: Path, flags: int) -> None:
        raise PermissionError(str(path), flags)

    with monkeypatch.context() as patch:
        patch.setattr(av, "read_pin", lambda _folder, _pin: (av.parse_vkey(bb.DEVICE_VKEY), None))
        patch.setattr(av, "open_regular", refuse)
        assert verdict(folder, pin) == ("INCOMPLETE", 2, [("log-unreadable", 0, 0)])


# Order


def test_a_book_that_starts_late_is_partial(folder: Path, pin: Path) -> None:
    log = closed(folder)
    log.next().open().close().write(folder)
    (folder / log.name).unlink()
    assert verdict(folder, pin) == ("PARTIAL", 5, [("starts-late", 1, None)])


def test_a_missing_log_is_incomplete(folder: Path, pin: Path) -> None:
    middle = closed(folder).next().open().close()
    middle.next().open().close().write(folder)
    assert verdict(folder, pin) == ("INCOMPLETE", 2, [("log-missing", 1, None)])


@pytest.mark.parametrize("member", ["id", "size", "root"])
def test_a_log_names_its_predecessor_exactly(member: str, folder: Path, pin: Path) -> None:
    log = closed(folder)
    prev = log.as_prev()
    prev[member] = 7 if member == "size" else hex64("x")[: len(prev[member])]
    LogBuilder(number=1, prev_log=prev).open().close().write(folder)
    assert verdict(folder, pin) == ("FAIL", 1, [("prev-log-differs", 1, 0)])


def test_a_later_log_must_name_a_predecessor(folder: Path, pin: Path) -> None:
    closed(folder)
    LogBuilder(number=1).open().close().write(folder)
    assert verdict(folder, pin) == ("FAIL", 1, [("prev-log-differs", 1, 0)])


def test_a_truncated_predecessor_is_noticed_by_its_successor(folder: Path, pin: Path) -> None:
    log = closed(folder)
    log.next().open().close().write(folder)
    log.lines = log.lines[:2]
    log.write(folder)
    assert verdict(folder, pin) == ("FAIL", 1, [("prev-log-differs", 1, 0), ("log-open", 0, 2)])


def test_one_key_serves_one_log(folder: Path, pin: Path) -> None:
    following = closed(folder).next()
    following.changes["vkey"] = bb.vkey(following.origin, bb.public(bb.secret("log key 0")))
    following.open().write(folder)
    assert verdict(folder, pin) == ("FAIL", 1, [("key-reused", 1, 0)])


def test_a_book_keeps_its_name(folder: Path, pin: Path) -> None:
    following = closed(folder).next()
    origin = f"other/{following.log_id}"
    following.changes |= {"origin": origin, "vkey": bb.vkey(origin, bb.public(following.key))}
    following.open().write(folder)
    assert verdict(folder, pin) == ("FAIL", 1, [("book-name-differs", 1, 0)])


# Interruption and recovery


def opened(folder: Path, torn: bytes = b"") -> LogBuilder:
    """A log that was interrupted, with one unsealed entry and a torn rest."""
    return LogBuilder().open().play([Step("b", "backend", bb.backend(bb.LOCAL, "L0"))]).write(folder, torn)


def test_the_last_log_open_torn_and_unsealed_is_incomplete(folder: Path, pin: Path) -> None:
    opened(folder, b'{"body"')
    assert verdict(folder, pin) == (
        "INCOMPLETE",
        2,
        [("unsealed-tail", 0, 2), ("log-open", 0, 3), ("torn-tail", 0, 3)],
    )


def test_a_closed_log_without_its_last_seal_is_incomplete(folder: Path, pin: Path) -> None:
    log = LogBuilder().open().close()
    log.lines.pop()
    log.write(folder)
    assert verdict(folder, pin) == ("INCOMPLETE", 2, [("unsealed-tail", 0, 2), ("log-open", 0, 3)])


def test_a_lost_last_newline_is_incomplete(folder: Path, pin: Path) -> None:
    log = closed(folder)
    (folder / log.name).write_bytes(log.content()[:-1])
    assert verdict(folder, pin) == (
        "INCOMPLETE",
        2,
        [("unsealed-tail", 0, 2), ("log-open", 0, 3), ("torn-tail", 0, 3)],
    )


@pytest.mark.parametrize("content", [b"", b"{", b"\n"[:0]])
def test_an_empty_log_is_incomplete(content: bytes, folder: Path, pin: Path) -> None:
    (folder / LogBuilder().name).write_bytes(content)
    found = verdict(folder, pin)
    assert (found[0], found[2][0]) == ("INCOMPLETE", ("never-sealed", 0, 0))


@pytest.mark.parametrize("torn", [b"", b'{"body"', b"\x00" * 4096])
def test_a_matching_recovery_accounts_for_an_interruption(torn: bytes, folder: Path, pin: Path) -> None:
    log = opened(folder, torn)
    log.next().open().play([log.recovery(torn), Step("s", "seal")]).close().write(folder)
    assert verdict(folder, pin) == ("PASS", 0, [])
    assert av.verify(folder, pin)["interrupted"] == [0]


def test_an_interruption_without_a_recovery_is_incomplete(folder: Path, pin: Path) -> None:
    log = opened(folder)
    log.next().open().close().write(folder)
    assert verdict(folder, pin) == ("INCOMPLETE", 2, [("unsealed-tail", 0, 2), ("log-open", 0, 3)])


@pytest.mark.parametrize(
    "changes",
    [
        {"log_no": 7},
        {"size": 2},
        {"root": hex64("x")},
        {"torn_bytes": 1},
        {"torn_sha256": hex64("x")},
        {"unsealed_kept": 0},
    ],
)
def test_a_recovery_must_match(changes: dict[str, Any], folder: Path, pin: Path) -> None:
    log = opened(folder)
    log.next().open().play([log.recovery(**changes), Step("s", "seal")]).close().write(folder)
    assert verdict(folder, pin)[2][0] == ("recovery-differs", 1, 2)


def test_a_complete_log_needs_no_recovery_and_may_have_none(folder: Path, pin: Path) -> None:
    log = closed(folder)
    log.next().open().play([log.recovery(), Step("s", "seal")]).close().write(folder)
    assert verdict(folder, pin) == ("FAIL", 1, [("recovery-differs", 1, 2)])


def test_log_zero_has_nothing_to_recover(folder: Path, pin: Path) -> None:
    log = LogBuilder()
    LogBuilder().open().play([log.recovery(), Step("s", "seal")]).close().write(folder)
    assert verdict(folder, pin) == ("FAIL", 1, [("recovery-differs", 0, 2)])


def test_a_recovery_is_the_first_entry_and_sealed_at_once(folder: Path, pin: Path) -> None:
    log = opened(folder)
    late = [Step("b", "backend", bb.backend(bb.LOCAL, "L0")), log.recovery()]
    log.next().open().play(late).write(folder)
    assert ("recovery-misplaced", 1, 3) in verdict(folder, pin)[2]
    log.next().open().play(late[::-1]).write(folder)
    unsealed = [("unsealed-tail", 0, 2), ("log-open", 0, 3)]  # what no seal covers accounts for nothing
    assert verdict(folder, pin) == ("FAIL", 1, [("recovery-misplaced", 1, 3), *unsealed])


def test_a_log_that_was_never_sealed_cannot_be_accounted_for(folder: Path, pin: Path) -> None:
    log = LogBuilder().write(folder)
    log.next().open().play([log.recovery(), Step("s", "seal")]).close().write(folder)
    assert verdict(folder, pin) == ("INCOMPLETE", 2, [("never-sealed", 0, 0), ("log-open", 0, 0)])


def test_a_partial_book_checks_a_recovery_against_prev_log(folder: Path, pin: Path) -> None:
    log = opened(folder)
    log.next().open().play([log.recovery(size=9), Step("s", "seal")]).close().write(folder)
    (folder / log.name).unlink()
    assert verdict(folder, pin) == ("FAIL", 1, [("recovery-differs", 1, 2), ("starts-late", 1, None)])


# Trust


def test_without_a_pin_a_consistent_book_is_untrusted(folder: Path) -> None:
    closed(folder)
    assert verdict(folder, None) == ("UNTRUSTED", 3, [("no-pin", None, None)])


def test_another_device_key_is_untrusted(folder: Path, pin: Path) -> None:
    LogBuilder(device=bb.secret("thief")).open().close().write(folder)
    assert verdict(folder, pin) == ("UNTRUSTED", 3, [("key-not-pinned", 0, 1)])


def test_the_pinned_key_under_another_name_is_untrusted(folder: Path, pin: Path) -> None:
    closed(folder)
    pin.write_text(bb.vkey("elsewhere/device", bb.public(bb.DEVICE)), encoding="ascii")
    assert verdict(folder, pin) == ("UNTRUSTED", 3, [("key-not-pinned", 0, 1)])


@pytest.mark.parametrize("way", ["beside", "below", "through a link", "a link to it"])
def test_a_pin_inside_the_folder_is_refused(way: str, folder: Path, pin: Path, tmp_path: Path) -> None:
    closed(folder)
    (folder / "keys").mkdir()
    inside = (folder / "keys" if way == "below" else folder) / "pin.vkey"
    inside.write_bytes(pin.read_bytes())
    given, read = inside, folder
    if way == "through a link":
        read = tmp_path / "alias"
        read.symlink_to(folder)
    elif way == "a link to it":
        given = tmp_path / "alias.vkey"
        given.symlink_to(inside)
    assert verdict(read, given) == ("UNTRUSTED", 3, [("pin-inside-folder", None, None)])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"no key",
        bb.DEVICE_VKEY.encode() + b"\n\n",
        bb.DEVICE_VKEY.encode() + b"\r\n",
        bb.vkey(bb.DEVICE_NAME, (1).to_bytes(32, "little")).encode(),
        b"x" * 10_000,
        None,
    ],
)
def test_an_unusable_pin_is_untrusted(content: bytes | None, folder: Path, pin: Path) -> None:
    closed(folder)
    pin.unlink()
    if content is not None:
        pin.write_bytes(content)
    assert verdict(folder, pin) == ("UNTRUSTED", 3, [("pin-unusable", None, None)])


@pytest.mark.parametrize("kind", ["folder", "device"])
def test_i7_a_pin_is_a_regular_file(kind: str, folder: Path, pin: Path) -> None:
    closed(folder)
    pin.unlink()
    if kind == "folder":
        pin.mkdir()
    assert verdict(folder, pin if kind == "folder" else Path(os.devnull)) == (
        "UNTRUSTED",
        3,
        [("pin-unusable", None, None)],
    )


# Honesty and policy


def test_an_untrusted_host_tool_is_unverifiable(folder: Path, pin: Path) -> None:
    closed(
        folder,
        host_tools=[{"name": "calendar", "trusted": False}],
        verifiable=False,
        unverifiable_because=["host-tool-untrusted"],
    )
    assert verdict(folder, pin) == ("UNVERIFIABLE", 4, [("unverifiable", 0, 0)])


def test_the_policy_must_be_the_one_supplied(folder: Path, pin: Path) -> None:
    closed(folder)
    assert verdict(folder, pin, policies=[av.Policy(hex64("policy"))]) == ("PASS", 0, [])
    other = verdict(folder, pin, policies=[av.Policy(hex64("other"))])
    assert other == ("FAIL", 1, [("policy-differs", 0, 0)])


def test_the_worst_reason_is_the_verdict(folder: Path, pin: Path) -> None:
    """FAIL > UNTRUSTED > INCOMPLETE > PARTIAL > UNVERIFIABLE > PASS, all reasons kept, worst first."""
    opening = {"verifiable": False, "unverifiable_because": ["fail-open"]}
    prev = {"id": bb.hex32("p"), "size": 4, "root": hex64("p")}
    log = LogBuilder(number=1, prev_log=prev, changes=opening).open().close().write(folder)
    assert [code for code, *_ in verdict(folder, pin)[2]] == ["starts-late", "unverifiable"]
    log.next().open().write(folder)
    assert verdict(folder, pin)[:2] == ("INCOMPLETE", 2)
    assert verdict(folder, None)[:2] == ("UNTRUSTED", 3)
    (folder / "stray.jsonl").touch()
    found = verdict(folder, None)
    assert found[:2] == ("FAIL", 1)
    codes = [code for code, *_ in found[2]]
    assert codes == ["stray-file", "no-pin", "log-open", "starts-late", "unverifiable"]


def test_the_report_says_what_was_seen(folder: Path, pin: Path) -> None:
    story = bb.Story()
    story.redact()
    log = LogBuilder().open().play(story).write(folder)
    last = log.next(enforcement="isolated", custody="hardware").open().close().write(folder)
    report = av.verify(folder, pin)
    root = bb.merkle_root([bb.leaf(line) for line in last.lines[:3]]).hex()
    assert report["verified_through"] == {"log": 1, "log_id": last.log_id, "seq": 3, "size": 3, "root": root}
    assert report["egress"] == {"allowed": 3, "denied": 1, "redacted": 1}
    assert report["localities"] == ["L0", "L1", "remote"]
    assert (report["enforcement"], report["custody"]) == ("cooperative", "file")
    assert report["host_tools"] == [{"name": "calendar", "trusted": True}]
    assert (report["logs"], report["entries"], report["seals"]) == (2, log.entries + last.entries, 9)
    assert (report["verifiable"], report["anchors"]) == (True, [])
    assert any("holder of the device key" in claim for claim in report["claims_not_made"])
