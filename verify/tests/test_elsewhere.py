# SPDX-License-Identifier: Apache-2.0
"""Attacks that others publish for records of agents, each with its counterpart against a book (I4).

Three lists, row by row in the order of the lists themselves: the nine edits of a store, T1 to T9, of the
suite `agent-memory-integrity`, and the cases of the corpora `anchored-chain` and `receipt-chain-end` of
`agent-evidence-vectors`. Nothing of theirs is here: a row says in our words what is done, does it to a book,
and states the class of verdict that the list asks for. Theirs are three: `rejected` is FAIL or UNTRUSTED
here, `prefix` is INCOMPLETE, `verified` is PASS.

What they call an anchor or a retained head is the auditor's state here, or a note that a pinned witness
cosigned. A row that needs one is judged with each of them; without one the verdict is `alone`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import akaion_verify as av
import battery
import bookbuilder as bb
import pytest
import test_anchors
import test_page
from bookbuilder import LogBuilder, Step, Story, hex32, hex64

if TYPE_CHECKING:
    pass

CLASSES = {"PASS": "verified", "INCOMPLETE": "prefix", "FAIL": "rejected", "UNTRUSTED": "rejected"}


class Before(NamedTuple):
    """What the auditor sees, and what is made of it afterwards; each is given the folder."""

    seen: Callable[[Path], object] | None
    done: Callable[[Path], object]


@dataclass(frozen=True)
class Row:
    """One attack or control. `kept` is whether the auditor holds what was seen before."""

    attack: str
    wanted: str
    before: Before
    reason: str = ""
    alone: str = ""

    @property
    def kept(self) -> bool:
        """Whether the auditor looked before."""
        return self.before.seen is not None


# --- what is done -----------------------------------------------------------------------------------------


def honest(folder: Path, story: Story | None = None) -> LogBuilder:
    """One closed log."""
    return LogBuilder().open().play(story or Story()).write(folder)


def two(folder: Path) -> list[LogBuilder]:
    """Two closed logs."""
    first = honest(folder)
    return [first, first.next().open().close().write(folder)]


def other_story() -> Story:
    """The same keys, another content."""
    story = Story()
    story.change("b1", commit=hex64("another content"))
    return story


def still_open(folder: Path, upto: str = "seal4", story: Story | None = None) -> LogBuilder:
    """A log that ends, sealed, after a step, and is not closed."""
    steps = story or Story()
    return LogBuilder().open().play(steps[: steps.at(upto) + 1]).write(folder)


def at_ease(folder: Path) -> LogBuilder:
    """A log of two tasks, cut at the seal after the end of the first."""
    story = Story()
    story.after("finish", Step("rest", "seal"))
    return still_open(folder, "rest", story)


def edited(edit: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], object]:
    """The lines of an honest log, edited by somebody without any key."""

    def write(folder: Path) -> None:
        log = LogBuilder().open().play(bb.story())
        log.lines = edit(log.lines)
        log.write(folder)

    return write


def replaced(at: int, old: bytes, new: bytes) -> Callable[[Path], object]:
    """One line of an honest log says something else."""

    def edit(lines: list[bytes]) -> list[bytes]:
        changed = lines[at].replace(old, new)
        assert changed != lines[at]
        return [*lines[:at], changed, *lines[at + 1 :]]

    return edited(edit)


def swapped(lines: list[bytes]) -> list[bytes]:
    """Two neighbours change places."""
    return [*lines[:8], lines[9], lines[8], *lines[10:]]


def foreign_line(lines: list[bytes]) -> list[bytes]:
    """A genuine line of another log of the device stands in place of one of this."""
    other = LogBuilder(number=7, prev_log={"id": hex32("p"), "size": 4, "root": hex64("p")}).open()
    other.play(bb.story())
    return [*lines[:12], other.lines[12], *lines[13:]]


def only_first(folder: Path) -> None:
    """The second log is gone."""
    (folder / two(folder)[1].name).unlink()


def strangers_log(folder: Path) -> None:
    """After an honest log comes one that somebody else's device certified."""
    late = honest(folder).next()
    late.device = bb.secret("thief")
    late.open().close().write(folder)


def accounted(folder: Path) -> None:
    """A log that stopped without a close, and the next one that says where."""
    first = still_open(folder)
    first.next().open().play([first.recovery(), Step("s", "seal")]).close().write(folder)


def other_book(folder: Path) -> None:
    """A closed log of another book of the same practice, under the same number."""
    log = LogBuilder(changes={"host_commit": hex64("another host")}).open().close()
    log.write(folder)


def both_branches(folder: Path) -> None:
    """After a log, the rest of another story of it."""
    log, fork = LogBuilder().open().play(bb.story()), LogBuilder().open().play(other_story())
    log.lines += fork.lines[13:]
    log.write(folder)


def rerooted(folder: Path) -> None:
    """Log 0 is cut, and the header of log 1 changed to continue the cut one, by who has its key alone."""
    first, second = two(folder)
    kept = json.loads(second.lines[1])["note"].splitlines(keepends=True)[-1]
    first.lines = first.lines[:5]
    first.write(folder)
    forged = first.next()
    forged.entry(Step("header", "header", forged.header()))
    text = forged.text()
    forged.seal(note=text + "\n" + bb.signature_line(forged.origin, forged.key, text) + kept)
    forged.close().write(folder)


def cut_first(folder: Path) -> None:
    """Log 0 is cut; log 1 is genuine, and names what was there."""
    first = two(folder)[0]
    first.lines = first.lines[:5]
    first.write(folder)


def same_moment(folder: Path, *, swap: bool = False) -> None:
    """Three entries carry one time."""
    story = Story()
    moment = 1_700_000_000_500_000
    for step in story[story.at("b1") :]:
        step.ts = moment
    log = LogBuilder().open().play(story)
    if swap:
        at = story.seq("b7")
        log.lines = [*log.lines[:at], log.lines[at + 1], log.lines[at], *log.lines[at + 2 :]]
    log.write(folder)


def after_its_close(folder: Path) -> None:
    """A closed log goes on, chained and sealed with its key."""
    log = honest(folder)
    log.play([Step("late", "backend", bb.backend(bb.LOCAL, "L1")), Step("s", "seal")]).write(folder)


def miscounted(folder: Path) -> None:
    """The close counts one entry more than there are."""
    story = Story()
    story.change("close", entries=len([step for step in story if step.kind != "seal"]) + 2)
    honest(folder, story)


def signed_by_a_stranger(folder: Path) -> None:
    """A whole book, certified by another device."""
    LogBuilder(device=bb.secret("thief")).open().play(bb.story()).write(folder)


NOW = Before(honest, lambda _folder: None)
"""Nothing is done after the auditor looked."""


def alone(done: Callable[[Path], object]) -> Before:
    """The auditor never looked before."""
    return Before(None, done)


def then(done: Callable[[Path], object], seen: Callable[[Path], object] = honest) -> Before:
    """The auditor saw one thing, and then finds another."""
    return Before(seen, done)


TAMPERED = replaced(Story().seq("b2"), b'"C2"', b'"C1"')
RELABELLED = replaced(Story().seq("b2"), b'"integrity":"user"', b'"integrity":"plan"')
CUT = edited(lambda lines: lines[:12])
DELETED = edited(lambda lines: [*lines[:8], *lines[9:]])
SWAPPED = edited(swapped)
FOREIGN = edited(foreign_line)
OLDER = edited(lambda lines: [*lines[:-1], lines[5]])

# --- the lists ---------------------------------------------------------------------------------------------

MEMORY = (
    Row("what an entry says is changed in place", "rejected", then(TAMPERED), "chain-broken"),
    Row("the newest entries are taken off", "rejected", then(CUT), "differs", alone="prefix"),
    Row("an entry in the middle is taken out", "rejected", then(DELETED), "seq-wrong"),
    Row("two neighbours change places", "rejected", then(SWAPPED), "seq-wrong"),
    Row("an invented entry is added", "rejected", then(strangers_log), "key-not-pinned"),
    Row("a genuine entry of another context stands here", "rejected", then(FOREIGN), "chain-broken"),
    Row("an older entry stands in place of the newest", "rejected", then(OLDER), "seq-wrong"),
    Row("who or whence is changed, the content kept", "rejected", then(RELABELLED), "chain-broken"),
    Row(
        "the whole store is put back to an older copy",
        "rejected",
        then(only_first, two),
        "differs",
        "verified",
    ),
)
"""T1 to T9 of `agent-memory-integrity`: what write access to the store can do, without any key."""

ANCHORED = (
    Row("control: as it was when it was anchored", "verified", NOW),
    Row("control: it went on after the anchor", "verified", then(two)),
    Row("what an entry says is changed", "rejected", then(TAMPERED), "chain-broken"),
    Row(
        "the newest entries go, which the anchor covers",
        "rejected",
        then(only_first, two),
        "differs",
        "verified",
    ),
    Row("what came after the anchor goes: nothing can show it", "verified", then(only_first)),
    Row("an entry in the middle is taken out", "rejected", then(DELETED), "seq-wrong"),
    Row("two entries change places", "rejected", then(SWAPPED), "seq-wrong"),
    Row(
        "an entry is added under a key that nobody trusts", "rejected", then(strangers_log), "key-not-pinned"
    ),
    Row("a genuine entry of another chain stands here", "rejected", then(FOREIGN), "chain-broken"),
    Row("a genuine older entry stands in place of the newest", "rejected", then(OLDER), "seq-wrong"),
    Row("whose an entry is, is changed", "rejected", then(RELABELLED), "chain-broken"),
    Row("the whole store is older than its anchor", "rejected", then(only_first, two), "differs", "verified"),
    Row(
        "a branch that was signed and abandoned is put back",
        "rejected",
        then(lambda folder: honest(folder, other_story())),
        "differs",
        "verified",
    ),
    Row("cut, and anchored anew by who cut it", "rejected", then(only_first, two), "differs", "verified"),
)
"""The cases of `anchored-chain`. In the last, nobody can sign the state, or for a pinned witness."""

CHAIN_END = (
    Row("control: a closed run", "verified", alone(honest)),
    Row("control: a closed run, its head kept", "verified", NOW),
    Row("control: a run that still records", "prefix", alone(still_open), "log-open"),
    Row("control: it stopped without a close, and where is on record", "verified", alone(accounted)),
    Row("control: the key changes, and who certifies both is known", "verified", alone(two)),
    Row("control: three entries at one moment", "verified", alone(same_moment)),
    Row("the newest entries and the close go", "prefix", alone(CUT), "log-open"),
    Row("the same, and the head was kept", "rejected", then(CUT), "differs"),
    Row("several runs, cut at the genuine end of the first", "prefix", alone(at_ease), "log-open"),
    Row(
        "another genuine closed run is shown in its place",
        "rejected",
        then(other_book),
        "differs",
        "verified",
    ),
    Row(
        "two stories were signed, and the other is shown",
        "rejected",
        then(lambda folder: honest(folder, other_story())),
        "differs",
        "verified",
    ),
    Row(
        "the same, open, and only a number was kept",
        "prefix",
        alone(lambda folder: still_open(folder, story=other_story())),
        "log-open",
    ),
    Row("both stories in one file", "rejected", alone(both_branches), "seq-wrong"),
    Row("a new key continues what it cut off", "rejected", alone(rerooted), "device-signature"),
    Row("the same, beside what was really certified", "rejected", alone(cut_first), "prev-log-differs"),
    Row("no attack: it went on after the head was kept", "verified", then(two)),
    Row("cut exactly where the head was kept", "prefix", then(still_open, still_open), "log-open"),
    Row(
        "another place with the number that was kept",
        "rejected",
        then(only_first, two),
        "differs",
        "verified",
    ),
    Row(
        "two entries of one moment change places",
        "rejected",
        alone(lambda folder: same_moment(folder, swap=True)),
        "seq-wrong",
    ),
    Row("an entry is changed, its signature kept", "rejected", alone(TAMPERED), "chain-broken"),
    Row(
        "a whole run under a key that the auditor does not hold",
        "rejected",
        alone(signed_by_a_stranger),
        "key-not-pinned",
    ),
    Row("the close counts one too many", "rejected", alone(miscounted), "counts-differ"),
    Row("it goes on after its final head", "rejected", then(after_its_close), "after-close"),
    Row("control: the key changed, and the head was kept", "verified", Before(two, lambda _folder: None)),
)
"""The cases of `receipt-chain-end`: where does a chain end?"""

ROWS = {
    f"{name} {number}, {row.attack}": row
    for name, rows in (("memory T", MEMORY), ("anchored-chain", ANCHORED), ("chain-end", CHAIN_END))
    for number, row in enumerate(rows, start=1)
}


# --- the verdicts ------------------------------------------------------------------------------------------


def test_each_list_is_whole() -> None:
    assert (len(MEMORY), len(ANCHORED), len(CHAIN_END), len(ROWS)) == (9, 14, 24, 47)


def happen(row: Row, folder: Path, pin: Path, state: Path) -> str:
    """Do what the row says; return the note that a witness cosigned of what the auditor saw, if any."""
    note = ""
    if row.before.seen is not None:
        row.before.seen(folder)
        av.write_state(state, av.verify(folder, pin, (), state))
        assert state.exists()
        lines = [line for log in sorted(folder.iterdir()) for line in log.read_bytes().split(b"\n")[:-1]]
        note = test_anchors.cosigned(test_anchors.checkpoint(lines))
    row.before.done(folder)
    return note


def judged(report: dict[str, Any]) -> tuple[str, list[str]]:
    return CLASSES[report["verdict"]], [reason["code"] for reason in report["reasons"]]


@pytest.mark.parametrize("name", ROWS)
def test_an_attack_of_others_gets_the_class_of_verdict_they_ask_for(
    name: str, folder: Path, pin: Path, tmp_path: Path
) -> None:
    row, state = ROWS[name], tmp_path / "state"
    happen(row, folder, pin, state)
    verdict, codes = judged(av.verify(folder, pin, (), state if row.kept else None))
    assert verdict == row.wanted
    assert any(row.reason in code for code in codes) if row.reason else codes == []
    if row.alone:
        assert judged(av.verify(folder, pin))[0] == row.alone


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    path = tmp_path / "witness.vkey"
    path.write_text(test_anchors.witness_vkey(bb.public(test_anchors.WITNESS)) + "\n", encoding="ascii")
    return path


@pytest.mark.parametrize("name", ROWS)
def test_both_verifiers_say_so_where_a_witness_saw_it(  # noqa: PLR0917 - fixtures
    page: battery.Page, name: str, folder: Path, pin: Path, witness: Path, tmp_path: Path
) -> None:
    row = ROWS[name]
    note = happen(row, folder, pin, tmp_path / "state")
    if note:
        test_anchors.sidecar(folder, note)
    theirs, mine = test_page.both(page, folder, pin, witnesses=[witness] if note else [])
    assert theirs == mine
    verdict, codes = judged(mine)  # type: ignore[arg-type]  # a report
    assert verdict == row.wanted
    assert any(row.reason in code for code in codes) if row.reason else codes == []
