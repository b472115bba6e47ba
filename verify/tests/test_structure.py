# SPDX-License-Identifier: Apache-2.0
"""One log's structure: shapes, chain, header, keys and seals. One thing broken gives its reason (I4)."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any, Callable

import akaion_verify as av
import bookbuilder as bb
import pytest
from bookbuilder import LogBuilder, Step, Story, hex32, hex64

if TYPE_CHECKING:
    from pathlib import Path

CLOSE = [Step("close", "close", {"reason": "done"}), Step("end", "seal")]


def reasons(folder: Path, pin: Path | None) -> list[tuple[str, int | None, int | None]]:
    report: dict[str, Any] = av.verify(folder, pin)
    return [(reason["code"], reason["log"], reason["seq"]) for reason in report["reasons"]]


def check(log: LogBuilder, folder: Path, pin: Path) -> list[tuple[str, int | None, int | None]]:
    log.write(folder)
    return reasons(folder, pin)


# Shapes

WRONG: dict[str, Any] = {
    "declared": {"is_local": False, "model": "a b", "name": "", "locality": "L3", "caps_digest": "AB" * 32},
    "start": {"class": "C4", "goal_commit": "x", "matters": [], "user": 1},
    "finish": {"outcome": "great", "counts": {"plan": -1}},
    "plan": {"by": "nobody", "steps": [{"id": 1, "tool": "other"}]},
    "b0": {"block": "b01", "parts": {"detected": "C1"}, "integrity": "god", "inputs": ["b1", "b1"]},
    "allow": {"tool": "other", "tool_commit": hex64("t"), "replay": {"a": None}, "decision": "maybe"},
    "deny": {"tool_commit": None, "replay": {f"m{n}": n for n in range(33)}, "rule": "è"},
    "grant": {"by": "none", "granted": 1, "expires": -1},
    "read": {"tool": "other", "net": "no", "call_id": "00"},
    "fetch": {"tool": "release"},
    "was_read": {"bytes": True, "status": "fine", "block": "7", "result_commit": None},
    "think": {"backend": None, "host_commit": hex64("h"), "decision": "sent", "channel": "post"},
    "web": {"locality": "L0", "declassify": hex32("d"), "host_commit": None, "backend": bb.REMOTE},
    "refused": {"reason": None},
    "thought": {"send_id": None, "bytes": 2**53},
    "judged": {"verdict": "good", "step": "1"},
    "lower": {"to": "C2", "rule": "r", "approval": None, "source": "file"},
    "compact": {"inputs": [], "block": None},
    "close": {"reason": "tired", "entries": "1"},
}


@pytest.mark.parametrize(
    ("label", "member"), [(label, member) for label, members in WRONG.items() for member in members]
)
def test_a_wrong_member_is_refused(label: str, member: str, folder: Path, pin: Path) -> None:
    story = Story()
    story.change(label, **{member: WRONG[label][member]})
    if (label, member) == ("allow", "tool_commit"):
        assert "other" not in story[story.at("allow")].body["tool"]
    code = "bad-json" if member == "bytes" and label == "thought" else "record-shape"
    assert check(LogBuilder().open().play(story), folder, pin) == [(code, 0, story.seq(label))]


@pytest.mark.parametrize("kind", sorted(av.BODIES))
def test_an_unknown_member_is_refused_in_every_kind(kind: str, folder: Path, pin: Path) -> None:
    if kind == "header":
        assert check(LogBuilder(changes={"extra": 1}).open(), folder, pin) == [("record-shape", 0, 0)]
        return
    if kind == "recovery":
        first = LogBuilder().open().write(folder)
        log = first.next().open().play([first.recovery(extra=1)])
        assert check(log, folder, pin)[0] == ("record-shape", 1, 2)
        return
    story = Story()
    label = next(step.label for step in story if step.kind == kind)
    story.change(label, extra=1)
    assert check(LogBuilder().open().play(story), folder, pin) == [("record-shape", 0, story.seq(label))]


@pytest.mark.parametrize("label", ["declared", "start", "allow", "lower", "close"])
def test_the_task_is_named_exactly_where_the_kind_asks_for_it(label: str, folder: Path, pin: Path) -> None:
    story = Story()
    step = story[story.at(label)]
    step.task = None if step.task else bb.TASK
    assert check(LogBuilder().open().play(story), folder, pin) == [("record-shape", 0, story.seq(label))]


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "mystery", "body": {}, "ts": bb.EXPIRES},
        {"kind": "close", "body": [], "ts": bb.EXPIRES},
        {"kind": "close", "body": {"entries": 2, "reason": "done"}},
        {"kind": "close", "body": {"entries": 2, "reason": "done"}, "ts": bb.EXPIRES, "note": "x"},
        {"kind": "seal", "note": 7},
        {"kind": "seal", "note": "x", "ts": 1},
        {"kind": "seal", "note": "x", "body": {}},
    ],
)
def test_a_record_is_exactly_an_entry_or_a_seal(record: dict[str, Any], folder: Path, pin: Path) -> None:
    log = LogBuilder().open()
    log.raw(record)
    assert check(log, folder, pin) == [("record-shape", 0, 2)]


@pytest.mark.parametrize("line", [b"[]", b"7", b'"x"', b"null", b"{}"])
def test_a_line_that_is_no_record_is_refused(line: bytes, folder: Path, pin: Path) -> None:
    log = LogBuilder().open()
    log.lines.append(line)
    assert check(log, folder, pin) == [("record-shape", 0, 2)]


@pytest.mark.parametrize(
    ("line", "code"), [(b"", "bad-json"), (b"{}\r", "not-canonical"), (b" {}", "not-canonical")]
)
def test_blank_lines_and_carriage_returns_are_refused(
    line: bytes, code: str, folder: Path, pin: Path
) -> None:
    log = LogBuilder().open()
    log.lines.append(line)
    assert check(log, folder, pin) == [(code, 0, 2)]


def test_an_endless_line_is_refused_only_if_it_ends(folder: Path, pin: Path) -> None:
    log = LogBuilder().open()
    log.lines.append(b"x" * (3 * av.MAX_LINE))
    assert check(log, folder, pin) == [("line-too-long", 0, 2)]
    log.lines.pop()
    log.write(folder, torn=b"x" * (3 * av.MAX_LINE))
    assert [code for code, *_ in reasons(folder, pin)] == ["log-open", "torn-tail"]


def test_extensions_are_allowed_where_the_header_lists_them(folder: Path, pin: Path) -> None:
    story = Story()
    story.change("plan", x_note={"any": [None, "thing"]})
    listed = LogBuilder(changes={"extensions": ["x_note", "x_more"], "x_more": 1}).open().play(story)
    assert check(listed, folder, pin) == []
    assert check(LogBuilder().open().play(story), folder, pin) == [
        ("extension-unlisted", 0, story.seq("plan"))
    ]
    assert check(LogBuilder(changes={"x_more": 1}).open(), folder, pin) == [("extension-unlisted", 0, 0)]


# Chain


def test_a_wrong_seq_is_refused(folder: Path, pin: Path) -> None:
    log = LogBuilder().open()
    log.raw({"kind": "close", "body": {"entries": 2, "reason": "done"}, "ts": bb.EXPIRES, "seq": 3})
    assert check(log, folder, pin) == [("seq-wrong", 0, 2)]


def test_a_wrong_link_is_refused(folder: Path, pin: Path) -> None:
    log = LogBuilder().open()
    log.raw({"kind": "close", "body": {"entries": 2, "reason": "done"}, "ts": bb.EXPIRES, "prev": hex64("x")})
    assert check(log, folder, pin) == [("chain-broken", 0, 2)]


def test_a_rewritten_line_breaks_the_chain_behind_it(folder: Path, pin: Path) -> None:
    story = Story()
    log = LogBuilder().open().play(story)
    at = story.seq("b0")
    log.lines[at] = log.lines[at].replace(b'"version":"1"', b'"version":"2"')
    assert check(log, folder, pin) == [("chain-broken", 0, at + 1)]


def test_a_removed_and_a_swapped_line_are_noticed(folder: Path, pin: Path) -> None:
    story = Story()
    log = LogBuilder().open().play(story)
    removed = log.lines.pop(8)
    assert check(log, folder, pin) == [("seq-wrong", 0, 8)]
    log.lines.insert(9, removed)
    assert check(log, folder, pin) == [("seq-wrong", 0, 8)]


def test_time_never_goes_back(folder: Path, pin: Path) -> None:
    story = Story()
    story[story.at("plan")].ts = 1_600_000_000_000_000
    log = LogBuilder().open().play(story)
    assert check(log, folder, pin) == [("time-backwards", 0, story.seq("plan"))]


def test_a_log_has_a_largest_size(folder: Path, pin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(av, "MAX_RECORDS", 4)
    assert check(LogBuilder().open().close(), folder, pin) == []
    monkeypatch.setattr(av, "MAX_RECORDS", 3)
    assert check(LogBuilder().open().close(), folder, pin) == [("too-many-records", 0, 3)]


# Header


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"format": "akaion-trace/2"}, "record-shape"),
        ({"alg": "none"}, "record-shape"),
        ({"seal_every": 257}, "record-shape"),
        ({"seal_every": 0}, "record-shape"),
        ({"max_egress_class": "C2"}, "record-shape"),
        ({"custody": "cloud"}, "record-shape"),
        ({"classifier": "rules"}, "record-shape"),
        ({"classifier": "local:second"}, "record-shape"),
        ({"classifier": "rules+local:second+"}, "record-shape"),
        ({"classifier": "rules-only+local:second"}, "record-shape"),
        ({"classifier": "rules+" + "x" * 100 + "+" + "y" * 23}, "record-shape"),
        ({"enforcement": "total"}, "record-shape"),
        ({"sandbox": "strong"}, "record-shape"),
        ({"unverifiable_because": ["mood"]}, "record-shape"),
        ({"host_tools": [{"name": "a", "trusted": True}, {"name": "a", "trusted": True}]}, "record-shape"),
        ({"backends": ["a", "a"]}, "record-shape"),
        ({"boot_id": None}, "record-shape"),
        ({"origin": "no slash"}, "record-shape"),
        ({"log_no": 1}, "file-name-differs"),
        ({"log_id": hex32("other")}, "file-name-differs"),
        ({"verifiable": False}, "header-contradiction"),
        ({"unverifiable_because": ["fail-open"]}, "header-contradiction"),
        ({"host_tools": [{"name": "a", "trusted": False}]}, "header-contradiction"),
        ({"origin": f"{bb.BOOK}/{hex32('other')}"}, "book-name-differs"),
        ({"vkey": "nonsense"}, "key-unusable"),
        ({"vkey": bb.DEVICE_VKEY}, "key-unusable"),
        ({"prev_log": {"id": hex32("x"), "size": 4, "root": hex64("x")}}, "prev-log-differs"),
    ],
)
def test_a_wrong_header_is_refused(changes: dict[str, Any], code: str, folder: Path, pin: Path) -> None:
    assert check(LogBuilder(changes=changes).open(), folder, pin) == [(code, 0, 0)]


def test_a_weak_log_key_is_refused(folder: Path, pin: Path) -> None:
    weak = bb.vkey(LogBuilder().origin, (1).to_bytes(32, "little"))
    assert check(LogBuilder(changes={"vkey": weak}).open(), folder, pin) == [("key-unusable", 0, 0)]


def test_the_device_key_may_not_serve_a_log(folder: Path, pin: Path) -> None:
    reused = bb.vkey(LogBuilder().origin, bb.public(bb.DEVICE))
    assert check(LogBuilder(changes={"vkey": reused}).open(), folder, pin) == [("key-reused", 0, 0)]


def test_the_header_is_the_first_record_and_no_other(folder: Path, pin: Path) -> None:
    log = LogBuilder()
    log.entry(Step("b", "backend", bb.backend(bb.LOCAL, "L0")))
    assert check(log, folder, pin) == [("header-misplaced", 0, 0)]
    log = LogBuilder().open()
    log.entry(Step("header", "header", log.header()))
    assert check(log, folder, pin) == [("header-misplaced", 0, 2)]
    log = LogBuilder()
    log.seal()
    assert check(log, folder, pin) == [("header-misplaced", 0, 0)]


# Seals


def test_the_second_record_is_a_seal(folder: Path, pin: Path) -> None:
    log = LogBuilder()
    log.play([Step("h", "header", log.header()), Step("b", "backend", bb.backend(bb.LOCAL, "L0")), *CLOSE])
    assert check(log, folder, pin) == [("first-seal-misplaced", 0, 1)]


def test_a_seal_follows_an_entry(folder: Path, pin: Path) -> None:
    log = LogBuilder().open()
    log.seal()
    assert check(log, folder, pin) == [("seal-empty", 0, 2)]


def test_nothing_but_one_seal_follows_close(folder: Path, pin: Path) -> None:
    closed = LogBuilder().open().close()
    assert check(closed.play([Step("b", "backend", bb.backend(bb.LOCAL, "L0"))]), folder, pin) == [
        ("after-close", 0, 4)
    ]
    closed.lines.pop()
    closed.write(folder, torn=b"{")
    assert reasons(folder, pin) == [("after-close", 0, 4)]
    unsealed = LogBuilder().open().play(CLOSE[:1] * 2)
    assert check(unsealed, folder, pin)[0] == ("after-close", 0, 3)


def forged_note(log: LogBuilder, **change: object) -> str:
    """A note of the closing seal, signed by the log's key, with one part of its text changed."""
    origin, size, root = log.text().splitlines()
    parts = {"origin": origin, "size": size, "root": root, **change}
    text = "{origin}\n{size}\n{root}\n".format(**parts)
    return text + change.get("more", "") + "\n" + bb.signature_line(log.origin, log.key, text)


def closing(edit: Callable[[LogBuilder], str]) -> LogBuilder:
    log = LogBuilder().open().play(CLOSE[:1])
    log.seal(note=edit(log))
    return log


def cut_signature(log: LogBuilder) -> str:
    head, _, encoded = log.note().rpartition(" ")
    return f"{head} {base64.b64encode(base64.b64decode(encoded)[:-1]).decode()}\n"


def other_spelling(log: LogBuilder) -> str:
    """68 bytes end in base64 with one `=`, so two bits of the last digit are free."""
    note = log.note()
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    at = note.rindex("=") - 1
    spelled = note[:at] + digits[digits.index(note[at]) ^ 1] + note[at + 1 :]
    assert base64.b64decode(spelled.rpartition(" ")[2]) == base64.b64decode(note.rpartition(" ")[2])
    return spelled


NOTES: dict[str, tuple[Callable[[LogBuilder], str], str]] = {
    "another root": (lambda log: forged_note(log, root=base64.b64encode(bytes(32)).decode()), "seal-differs"),
    "another size": (lambda log: forged_note(log, size="2"), "seal-differs"),
    "size with a zero": (lambda log: forged_note(log, size="03"), "seal-differs"),
    "another origin": (lambda log: forged_note(log, origin=f"{bb.BOOK}/{hex32('x')}"), "seal-differs"),
    "an extension line": (lambda log: forged_note(log, more="more\n"), "seal-differs"),
    "no blank line": (lambda log: log.note().replace("\n\n", "\n"), "seal-note"),
    "no last newline": (lambda log: log.note()[:-1], "seal-note"),
    "no signature": (lambda log: log.text() + "\n", "seal-note"),
    "the device's line too": (
        lambda log: log.note() + bb.signature_line(bb.DEVICE_NAME, bb.DEVICE, log.text()),
        "seal-note",
    ),
    "a cosignature": (
        lambda log: log.note() + bb.signature_line("w", bb.secret("w"), log.text()),
        "seal-note",
    ),
    "a hyphen for the dash": (lambda log: log.note().replace("\u2014", "-"), "seal-note"),
    "a short signature": (cut_signature, "seal-note"),
    "a second spelling": (other_spelling, "seal-note"),
    "another signer's name": (
        lambda log: log.text() + "\n" + bb.signature_line("x", log.key, log.text()),
        "seal-note",
    ),
    "another key": (
        lambda log: log.text() + "\n" + bb.signature_line(log.origin, bb.secret("x"), log.text()),
        "seal-signature",
    ),
    "another text signed": (
        lambda log: log.text() + "\n" + bb.signature_line(log.origin, log.key, log.text() + "\n"),
        "seal-signature",
    ),
    "empty": (lambda _log: "", "seal-note"),
}


@pytest.mark.parametrize(("edit", "code"), NOTES.values(), ids=NOTES.keys())
def test_a_wrong_note_is_refused(
    edit: Callable[[LogBuilder], str], code: str, folder: Path, pin: Path
) -> None:
    assert check(closing(edit), folder, pin) == [(code, 0, 3)]


def first_seal(edit: Callable[[LogBuilder, list[str]], list[str]]) -> LogBuilder:
    log = LogBuilder()
    log.entry(Step("header", "header", log.header()))
    lines = log.note().splitlines(keepends=True)
    log.seal(note="".join(lines[:4] + edit(log, lines[4:])))
    return log.play(CLOSE)


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (lambda _log, lines: lines[:1], "seal-note"),
        (lambda _log, lines: lines[1:], "seal-note"),
        (lambda _log, lines: lines[::-1], "seal-note"),
        (lambda _log, lines: [*lines, lines[1]], "seal-note"),
        (lambda log, lines: [lines[0], bb.signature_line("x/device", bb.DEVICE, log.text())], "seal-note"),
        (
            lambda _log, lines: [lines[0], bb.signature_line(bb.DEVICE_NAME, bb.DEVICE, "x")],
            "device-signature",
        ),
    ],
)
def test_the_first_seal_carries_the_log_and_then_the_device(
    edit: Callable[[LogBuilder, list[str]], list[str]], code: str, folder: Path, pin: Path
) -> None:
    assert check(first_seal(edit), folder, pin) == [(code, 0, 1)]


def test_the_link_of_a_line_is_what_coreutils_compute(folder: Path) -> None:
    """The one-liner of the specification: hash a zero byte and the line, without its newline."""
    log = LogBuilder().open().close().write(folder)
    lines = (folder / log.name).read_bytes().split(b"\n")
    assert json.loads(lines[2])["prev"] == hashlib.sha256(b"\0" + lines[1]).hexdigest()
