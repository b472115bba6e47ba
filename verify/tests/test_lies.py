# SPDX-License-Identifier: Apache-2.0
"""Books that are validly signed and lie, made with the real keys: each gives its verdict and reason (I4, P3).

Both verifiers judge each. The rules themselves are broken one by one in `test_rules.py`; here stand the lies
that an auditor asks about, and those that span logs, keys and what lies beside the book.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import akaion_verify as av
import battery
import bookbuilder as bb
import pytest
import test_page
from bookbuilder import LogBuilder, Step, Story, hex32, hex64

if TYPE_CHECKING:
    pass

Reason = tuple[str, "int | None", "int | None"]


@dataclass(frozen=True)
class Lie:
    """What a book looks like, and what is to be said of it. `pin` is what the auditor holds."""

    tell: Callable[[Path], object]
    verdict: str
    reasons: tuple[Reason, ...]
    pin: str = bb.DEVICE_VKEY


def told(*reasons: tuple[str, str], edit: Callable[[Story], object]) -> Lie:
    """One log with the story, changed by `edit`; each reason shows at the step with its label."""
    story = Story()
    edit(story)
    places = tuple((code, 0, story.seq(label)) for code, label in reasons)
    return Lie(lambda folder: LogBuilder().open().play(story).write(folder), "FAIL", places)


def three_logs(folder: Path) -> list[LogBuilder]:
    first = LogBuilder().open().play(bb.story())
    second = first.next().open().close()
    logs = [first, second, second.next().open().close()]
    for log in logs:
        log.write(folder)
    return logs


def without(number: int) -> Callable[[Path], object]:
    """A book of three logs, one of which is kept from the auditor."""
    return lambda folder: (folder / three_logs(folder)[number].name).unlink()


def rewritten_with_its_old_key(folder: Path) -> None:
    """Log 0 is written anew with its own key, which should have been erased; what came after is as it was."""
    three_logs(folder)
    story = Story()
    story.change("b1", commit=hex64("another content"))
    LogBuilder().open().play(story).write(folder)


def grown_with_its_old_key(folder: Path) -> None:
    """Long after its close, log 0 gets another task, sealed with its old key."""
    three_logs(folder)
    story = Story()
    story.after("finish", Step("more", "backend", bb.backend(bb.LOCAL, "L1")))
    LogBuilder().open().play(story).write(folder)


def another_log_under_an_old_key(folder: Path) -> None:
    """A new log whose key is that of log 0, certified by the device."""
    last = three_logs(folder)[-1]
    late = last.next()
    late.changes["vkey"] = bb.vkey(late.origin, bb.public(bb.secret("log key 0")))
    late.open().write(folder)


def squeezed_in(folder: Path) -> None:
    """A second log 1, with a date of its own."""
    first = three_logs(folder)[0]
    copy = first.next().open().close()
    (folder / f"000001-{hex32('another')}.jsonl").write_bytes(copy.content())


def certified_by(key: str) -> Callable[[Path], object]:
    """A whole book, certified by a device key that is not (or no longer) the pinned one."""
    return lambda folder: LogBuilder(device=bb.secret(key)).open().close().write(folder)


def certified_by_an_old_log(folder: Path) -> None:
    """A new log that the thief of an old log's key certifies with it, in the device's name."""
    late = three_logs(folder)[-1].next()
    late.device = bb.secret("log key 0")
    late.open().close().write(folder)


def after_its_successor(device: str) -> Callable[[Path], object]:
    """A log that goes on where the last one handed the book over to a new device key."""

    def tell(folder: Path) -> None:
        last = three_logs(folder)[-1]
        heir = bb.vkey("studio.example/new/device", bb.public(bb.secret("the new device")))
        final = last.next(extensions=["x_next_device_key"], x_next_device_key=heir).open().close()
        final.write(folder)
        if device:
            late = final.next()
            late.device = bb.secret(device)
            late.open().close().write(folder)

    return tell


def from_another_book(folder: Path) -> None:
    """A log of another book of the same device takes the place of the last one."""
    last = three_logs(folder)[1].next()
    origin = f"studio.example/other/{last.log_id}"
    last.changes.update(origin=origin, vkey=bb.vkey(origin, bb.public(last.key)))
    last.open().close().write(folder)


def backdated(folder: Path) -> None:
    """Log 1 was never written on that day: whoever holds the device key today makes the whole book anew."""
    first = LogBuilder(clock=1_600_000_000_000_000).open().close()
    second = first.next()
    second.clock = first.clock
    for log in (first, second.open().play(bb.story())):
        log.write(folder)


def resigned_by_the_log(folder: Path) -> None:
    """The header is changed, and the first seal signed anew with the log's key; the device's line is kept."""
    honest, log = LogBuilder().open(), LogBuilder(changes={"max_egress_class": "none"})
    log.entry(Step("header", "header", log.header()))
    kept = json.loads(honest.lines[1])["note"].splitlines(keepends=True)[-1]
    text = log.text()
    log.seal(note=text + "\n" + bb.signature_line(log.origin, log.key, text) + kept)
    log.close().write(folder)


def sealed_by_the_device(folder: Path) -> None:
    """The log's own key is the device key."""
    log = LogBuilder()
    log.changes["vkey"] = bb.vkey(log.origin, bb.public(bb.DEVICE))
    log.open().write(folder)


LIES: dict[str, Lie] = {
    "a call_id serves two decisions": told(
        ("id-reused", "again"), edit=lambda story: story.after("allow", story.again("allow"))
    ),
    "a send_id serves two sends": told(
        ("id-reused", "again"), edit=lambda story: story.after("refused", story.again("refused"))
    ),
    "the arguments are swapped after the approval": told(
        ("call-differs", "fetch"), edit=lambda story: story.change("fetch", args_commit=hex64("others"))
    ),
    "the approval shows other arguments than were decided on": told(
        ("approval-unasked", "grant"),
        ("call-unapproved", "fetch"),
        edit=lambda story: story.change("grant", args_commit=hex64("others")),
    ),
    "the approval has expired": told(
        ("call-expired", "fetch"),
        edit=lambda story: story.change("grant", expires=1_700_000_000_000_001),
    ),
    "a class is lower than its inputs": told(
        ("class-too-low", "b1"),
        edit=lambda story: story.change("b1", **{"class": "C0", "parts": {"default": "C0"}}),
    ),
    "a send is lower than its inputs": told(
        ("class-too-low", "send"), edit=lambda story: story.change("send", declassify=None)
    ),
    "a remote backend is called local in a send": told(
        ("locality-differs", "send"), edit=lambda story: story.change("send", locality="L2")
    ),
    "a remote backend is called local on record": told(
        ("record-shape", "remote"), edit=lambda story: story.change("remote", is_local=True)
    ),
    "a local backend is graded better than it was found": told(
        ("locality-differs", "think"), edit=lambda story: story.change("think", locality="L0")
    ),
    "a call after a deny": told(
        ("call-denied", "read"), edit=lambda story: story.change("allow", decision="deny")
    ),
    "a call of a tool with net leaves no egress": told(
        ("net-unrecorded", "was_read"), edit=lambda story: story.change("read", net=True)
    ),
    "a tool returns before its call is sealed": told(
        ("effect-unsealed", "was_read"), edit=lambda story: story.drop("seal2")
    ),
    "an answer comes before its send is sealed": told(
        ("effect-unsealed", "thought"), edit=lambda story: story.drop("seal1")
    ),
    "a log is omitted": Lie(without(1), "INCOMPLETE", (("log-missing", 1, None),)),
    "the first log is omitted": Lie(without(0), "PARTIAL", (("starts-late", 1, None),)),
    "the last log is omitted, which no book shows by itself": Lie(without(2), "PASS", ()),
    "an old log is rewritten under its stolen key": Lie(
        rewritten_with_its_old_key, "FAIL", (("prev-log-differs", 1, 0),)
    ),
    "an old log grows under its stolen key": Lie(
        grown_with_its_old_key, "FAIL", (("prev-log-differs", 1, 0),)
    ),
    "the key of an old log makes a new one": Lie(
        another_log_under_an_old_key, "FAIL", (("key-reused", 3, 0),)
    ),
    "an old log's key stands in for the device": Lie(
        certified_by_an_old_log, "UNTRUSTED", (("key-not-pinned", 3, 1),)
    ),
    "a book ends with the log that names its next device key, which is no lie": Lie(
        after_its_successor(""), "PASS", ()
    ),
    "the retired device key goes on with its book": Lie(
        after_its_successor("device"), "FAIL", (("after-succession", 4, 0),)
    ),
    "the next device key goes on with the old book": Lie(
        after_its_successor("the new device"), "FAIL", (("after-succession", 4, 0), ("key-not-pinned", 4, 1))
    ),
    "a log comes from another book of the device": Lie(
        from_another_book, "FAIL", (("book-name-differs", 2, 0),)
    ),
    "the device key itself backdates a book, which a book never shows by itself": Lie(backdated, "PASS", ()),
    "a log with an old date is squeezed in": Lie(squeezed_in, "FAIL", (("log-number-repeated", 1, None),)),
    "the device key makes a log by itself": Lie(sealed_by_the_device, "FAIL", (("key-reused", 0, 0),)),
    "a stolen log key changes its header": Lie(resigned_by_the_log, "FAIL", (("device-signature", 0, 1),)),
    "a device key that was retired": Lie(
        certified_by("the old device"), "UNTRUSTED", (("key-not-pinned", 0, 1),)
    ),
    "no pin at all": Lie(three_logs, "UNTRUSTED", (("no-pin", None, None),), pin=""),
    "the pin lies in the folder": Lie(
        three_logs, "UNTRUSTED", (("pin-inside-folder", None, None),), pin="inside"
    ),
}


def ours(lie: Lie, folder: Path, tmp_path: Path) -> dict[str, Any]:
    """Tell the lie in `folder`, and return what the verifier says of it."""
    lie.tell(folder)
    if lie.pin == "inside":
        inside = folder / "device.vkey"
        inside.write_text(bb.DEVICE_VKEY, encoding="ascii")
        report: dict[str, Any] = av.verify(folder, inside)
        inside.unlink()
        return report
    pin = tmp_path / "auditor.vkey"
    pin.write_text(lie.pin, encoding="ascii")
    return av.verify(folder, pin if lie.pin else None)


@pytest.mark.parametrize("name", LIES)
def test_a_signed_lie_gets_its_verdict_and_its_reason(name: str, folder: Path, tmp_path: Path) -> None:
    lie = LIES[name]
    report = ours(lie, folder, tmp_path)
    found = tuple((each["code"], each["log"], each["seq"]) for each in report["reasons"])
    assert (report["verdict"], found) == (lie.verdict, lie.reasons)
    if lie.verdict == "PASS":
        assert av.NOT_ANCHORED in report["claims_not_made"]


@pytest.mark.parametrize("name", LIES)
def test_the_page_says_the_same_of_a_signed_lie(
    page: battery.Page, name: str, folder: Path, tmp_path: Path
) -> None:
    lie = LIES[name]
    report = ours(lie, folder, tmp_path)
    page.ask({"books": {"it": test_page.files_of(folder)}})
    held = {"pin": bb.DEVICE_VKEY, "pin_inside": True} if lie.pin == "inside" else {"pin": lie.pin or None}
    assert page.ask({"book": "it", **held}) == report
