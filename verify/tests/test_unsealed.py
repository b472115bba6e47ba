# SPDX-License-Identifier: Apache-2.0
"""I4: lines after the last seal of a log are anybody's. They count for nothing, and accuse nobody.

Whoever can write to the folder can add lines to an interrupted log, chained and of the right shape, without
any key. The next honest log states how many there are and their root. Both verifiers are held to the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import akaion_verify as av
import battery
import bookbuilder as bb
import pytest
import test_page
from bookbuilder import LogBuilder, Step, Story

if TYPE_CHECKING:
    from pathlib import Path

UNTIL = "seal4"
"""The story breaks off, sealed, while a task is open."""
SENDS = 40


def sends(backend: str, locality: str, data_class: str) -> list[Step]:
    """Forty sends of a task that nobody made."""
    bodies = [bb.inference(f"invented {n}", backend, locality, data_class, []) for n in range(SENDS)]
    return [Step("backend", "backend", bb.backend(backend, locality))] + [
        Step(f"send {n}", "egress", body, bb.TASK) for n, body in enumerate(bodies)
    ]


def lowering(rule: str) -> Step:
    body = {"id": bb.hex32("invented"), "rule": rule, "source": bb.hex64("s"), "from": "C3", "to": "C0"}
    body |= {"backend": bb.REMOTE, "expires": bb.EXPIRES, "commit": bb.hex64("c")}
    return Step("lowered", "declassify", body, bb.TASK)


TAILS: dict[str, tuple[list[Step], str]] = {
    "sends that look right": (sends(bb.LOCAL, "L0", "C3")[:15], ""),
    "more lines than a seal may cover": (sends(bb.LOCAL, "L0", "C3"), "seal-overdue"),
    "a C3 to somebody else": (sends(bb.REMOTE, "remote", "C3")[:2], "egress-c3"),
    "a task that starts twice": (
        [Step("start", "task_start", {"goal_commit": bb.hex64("g"), "class": "C0"}, bb.TASK)],
        "task-reused",
    ),
    "an entry of a task that never started": (
        [Step("end", "task_end", {"outcome": "done", "counts": {}}, bb.hex32("no task"))],
        "task-not-open",
    ),
    "a lowering by an invented rule": ([lowering("anything-goes")], "declassify-rule"),
    "a backend that is in no header": (
        [Step("backend", "backend", bb.backend("elsewhere", "remote"))],
        "backend-unlisted",
    ),
    "a close that miscounts": ([Step("close", "close", {"reason": "done", "entries": 7})], "counts-differ"),
}
"""What is added after the last seal, and what a verifier says of it once it is sealed."""


def broken_off() -> LogBuilder:
    steps = Story()
    return LogBuilder().open().play(steps[: steps.at(UNTIL) + 1])


def gone_on(folder: Path, log: LogBuilder) -> None:
    """Write a log, and the honest one after it."""
    log.write(folder)
    log.next().open().play([log.recovery(), Step("s", "seal")]).close().write(folder)


def told(report: dict[str, Any], *but: str) -> dict[str, Any]:
    """What a report says, but for the members that name lines of the tree."""
    return {name: said for name, said in report.items() if name not in {"seen", "verified_through", *but}}


def reported(page: battery.Page, folder: Path, pin: Path) -> dict[str, Any]:
    theirs, ours = test_page.both(page, folder, pin)
    assert theirs == ours
    found: Any = ours
    return found


@pytest.mark.parametrize("name", TAILS)
def test_what_no_seal_covers_neither_counts_nor_accuses(
    page: battery.Page, name: str, folder: Path, pin: Path
) -> None:
    """The record of a lie that nobody sealed leaves the report as it was, but for the number of lines."""
    steps, _ = TAILS[name]
    gone_on(folder, broken_off())
    honest = reported(page, folder, pin)
    gone_on(folder, broken_off().play(steps))
    found = reported(page, folder, pin)
    assert (found["verdict"], found["interrupted"], honest["unsealed"]) == ("PASS", [0], 0)
    assert found["unsealed"] == len(steps)
    assert told(found, "unsealed") == told(honest, "unsealed")
    said = av.describe(found).splitlines()
    assert f"Under no seal: {len(steps)} lines (nobody vouches for them, no rule was applied to them)" in said


@pytest.mark.parametrize("name", [name for name, (_, code) in TAILS.items() if code])
def test_the_same_record_once_sealed_is_a_failure(
    page: battery.Page, name: str, folder: Path, pin: Path
) -> None:
    steps, code = TAILS[name]
    log = broken_off().play(steps)
    log.seal()
    if steps[-1].kind == "close":
        log.write(folder)
    else:
        gone_on(folder, log)
    found = reported(page, folder, pin)
    assert (found["verdict"], found["unsealed"]) == ("FAIL", 0)
    assert code in [reason["code"] for reason in found["reasons"]]


def test_sealed_lines_are_counted_and_those_after_them_are_not(
    page: battery.Page, folder: Path, pin: Path
) -> None:
    log = broken_off()
    before = reported(page, log.write(folder) and folder, pin)
    steps = sends(bb.LOCAL, "L1", "C2")[:10]
    log.play(steps).write(folder)
    tail = reported(page, folder, pin)
    assert (tail["egress"], tail["entries"]) == (before["egress"], before["entries"])
    log.seal()
    log.write(folder)
    sealed = reported(page, folder, pin)
    assert sealed["egress"]["allowed"] == before["egress"]["allowed"] + 9
    assert (sealed["entries"], sealed["unsealed"]) == (before["entries"] + 10, 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"policy_digest": bb.hex64("another policy")},
        {"verifiable": False, "unverifiable_because": ["fail-open"]},
        {"host_tools": [{"name": "invented", "trusted": True}]},
    ],
    ids=["policy", "unverifiable", "tools"],
)
def test_a_header_that_no_seal_covers_declares_nothing(
    page: battery.Page, changes: dict[str, Any], folder: Path, pin: Path
) -> None:
    first = LogBuilder().open().close().write(folder)
    honest = reported(page, folder, pin)
    forged = first.next(**changes)
    forged.entry(Step("header", "header", forged.header()))
    forged.write(folder)
    theirs, ours = test_page.both(page, folder, pin, policies=[bb.hex64("policy")])
    found: Any = ours
    assert theirs == ours
    assert [reason["code"] for reason in found["reasons"]] == ["never-sealed", "log-open"]
    assert found["unsealed"] == 1
    same = ("logs", "entries", "host_tools", "policies", "verifiable")
    assert [found[name] for name in same] == [honest[name] for name in same]


def test_a_recovery_that_no_seal_covers_accounts_for_nothing(
    page: battery.Page, folder: Path, pin: Path
) -> None:
    first = broken_off().write(folder)
    second = first.next().open().play([first.recovery()]).write(folder)
    second.next().open().play([second.recovery(), Step("s", "seal")]).close().write(folder)
    found = reported(page, folder, pin)
    assert (found["verdict"], found["interrupted"], found["unsealed"]) == ("INCOMPLETE", [1], 1)
    assert [(reason["code"], reason["log"]) for reason in found["reasons"]] == [("log-open", 0)]


def test_decisions_are_repeated_up_to_the_last_seal_and_no_further(folder: Path, pin: Path) -> None:
    """S10 of a record whose reading stops is said to reach as far as was verified."""
    policy = av.Policy(bb.hex64("policy"), {})
    found = av.verify(folder, pin, [policy]) if broken_off().write(folder) else {}
    assert "(its decisions were repeated as far as verified)" in av.describe(found)
    wrong = len([reason for reason in found["reasons"] if reason["code"] == "decision-differs"])  # type: ignore[attr-defined]
    assert wrong == 1


def test_what_waits_for_a_seal_is_only_what_came_since_the_last_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long log is read in the memory of a short one."""
    log = LogBuilder().open()
    for _ in range(30):
        log.play([Step("b", "backend", bb.backend(bb.LOCAL, "L0"))] * 10)
        log.seal()
    log.write(folder)
    waiting: list[int] = []
    line = av.Reader.line

    def watched(reader: av.Reader, data: bytes) -> None:
        line(reader, data)
        waiting.append(len(reader.waiting))

    monkeypatch.setattr(av.Reader, "line", watched)
    assert av.verify(folder)["entries"] == 301
    assert (max(waiting), waiting[-1]) == (10, 0)


def shown(node: str, folder: Path, pin: Path) -> dict[str, Any]:
    """What the page shows of a book (see `shown.js`)."""
    job = {"files": test_page.files_of(folder), "pin": pin.read_text(encoding="ascii")}
    script = str(battery.HERE / "shown.js")
    done = subprocess.run([node, script], input=json.dumps(job), capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


LINKED, SEALED = "which the next line states as its link", "No seal covers it"


def test_the_page_marks_what_no_seal_covers_and_leaves_it_out_of_the_sends(
    node: str, folder: Path, pin: Path
) -> None:
    log = broken_off()
    log.write(folder)
    sealed = len(log.lines)
    before = shown(node, folder, pin)
    log.play(sends(bb.REMOTE, "remote", "C3")[:4]).write(folder)
    seen = shown(node, folder, pin)
    assert seen["sends"] == before["sends"]
    assert seen["facts"]["Under no seal"] == "4 lines (nobody vouches for them, no rule was applied to them)"
    marks = ["no seal covers it" in row for row in seen["rows"]]
    assert marks == [False] * sealed + [True] * 4
    assert [any(SEALED in step for step in steps) for steps in seen["trust"]] == marks


def test_the_page_says_of_no_line_that_the_next_one_links_it_where_none_does(
    node: str, folder: Path, pin: Path
) -> None:
    """Neither of the last line, nor of one that was altered: the next line states the link of another."""
    log = broken_off()
    log.write(folder)
    linked = [LINKED in steps[0] for steps in shown(node, folder, pin)["trust"]]
    assert linked == [True] * (len(log.lines) - 1) + [False]
    at = Story().seq("b0")
    log.lines[at] = log.lines[at].replace(b'"integrity":"user"', b'"integrity":"plan"')
    log.write(folder)
    steps = shown(node, folder, pin)["trust"]
    assert [LINKED in each[0] for each in steps] == [True] * at + [False]
    assert "No next line that holds states this as its link." in steps[-1][0]


def test_the_page_states_every_fact_that_the_command_does(node: str, folder: Path, pin: Path) -> None:
    story = Story()
    story.redact()
    LogBuilder().open().play(story).write(folder)
    facts = [line for line in av.describe(av.verify(folder, pin)).splitlines() if ": " in line]
    said = dict(line.split(": ", 1) for line in facts if not line.startswith(" "))
    page_says = shown(node, folder, pin)["facts"]
    assert list(page_says) == list(said)
    words = (
        "Checked for",
        "Rules explained in",
        "Under no seal",
        "Classes lowered",
        "Sends",
        "Localities used",
    )
    assert [page_says[name] for name in words] == [said[name] for name in words]
    assert page_says["Classes lowered"] == "1 by a rule (redact-detected), 0 by an approval"


def test_the_command_says_it_in_plain_words(folder: Path, pin: Path) -> None:
    gone_on(folder, broken_off().play(TAILS["sends that look right"][0]))
    program = [sys.executable, "-I", "-S", av.__file__, str(folder), "--pin", str(pin)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert (
        "Under no seal: 15 lines (nobody vouches for them, no rule was applied to them)"
        in done.stdout.splitlines()
    )
