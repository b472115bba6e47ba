# SPDX-License-Identifier: Apache-2.0
"""I4, I12: runs read from the golden books, and what happens to them where the verifier doubts."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.adapters.cli.main import main
from runner.adapters.ledger.book import Ledger, open_ledger
from runner.adapters.ledger.run import Run, p95, runs_of
from runner.adapters.ledger.select import Wanted, parse_moment, wanted_runs
from runner.capability.transport.clock import SystemEntropy
from runner.capability.transport.logstore import FolderLogStore
from runner.kernel.errors import TraceError
from runner.kernel.labels import DataClass
from runner.perimeter.trace import records as r
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.merkle import leaf_hash
from runner.perimeter.trace.note import device_key_name, vkey
from runner.testing import FrozenClock, MemorySaltStore, MemorySigner, header_words

GOLDEN = Path(__file__).resolve().parents[4] / "contracts" / "trace" / "v1" / "golden"
DAY_US = 86_400_000_000


def golden(name: str) -> Ledger:
    return open_ledger(GOLDEN / name, GOLDEN / f"{name}.pin")


def runs(name: str, **wanted: Any) -> list[Run]:
    return wanted_runs(golden(name), Wanted(**wanted))


def akaion(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(words)
    return status, capsys.readouterr().out


def listed(
    capsys: pytest.CaptureFixture[str], book: Path, pin: Path, *more: str
) -> tuple[int, dict[str, Any]]:
    status, out = akaion(capsys, "runs", "--folder", str(book), "--pin", str(pin), "--json", *more)
    found: dict[str, Any] = json.loads(out)
    return status, found


@pytest.fixture
def studio(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "studio", tmp_path / "studio"))


def test_a_run_is_what_its_records_say() -> None:
    first, second = runs("studio")
    assert (first.outcome, second.outcome) == ("done", "stopped")
    assert first.verified
    assert second.verified
    data = first.data()
    sends = [json.loads(entry.line)["body"] for entry in first.entries if entry.kind == "egress"]
    assert len(first.sends) == len(sends)
    assert sum(each["decision"] == "denied" for each in sends) == data["sends"]["denied"]["C2"] == 1
    decisions = [entry for entry in first.entries if entry.kind == "policy_decision"]
    assert sum(entry.word("decision") == "deny" for entry in decisions) == sum(data["denied_calls"].values())
    assert data["models"] == ["akaion:large-instruct", "local:small-instruct"]
    assert first.duration_us == first.entries[-1].ts - first.entries[0].ts
    answered = [entry for entry in first.entries if entry.kind == "egress_result"]
    assert data["latency_us"]["n"] == len(answered) > 0


def test_filters_choose_by_time_backend_outcome_denial_and_words() -> None:
    first, second = runs("studio")
    assert runs("studio", since_us=second.start_us) == [second]
    assert runs("studio", until_us=second.start_us) == [first]
    assert runs("studio", backend="opinion") == [second]
    assert runs("studio", outcome="done") == [first]
    assert runs("studio", denied=True) == [first, second]
    assert runs("studio", grep=second.task[4:20].upper()) == [second]
    assert runs("studio", grep="large-INSTRUCT") == [first, second]
    assert runs("studio", grep="no such word") == []


def test_a_day_is_whole_and_a_time_is_utc_unless_it_says_where() -> None:
    day = parse_moment("2026-01-05")
    assert day == 1_767_571_200_000_000
    assert parse_moment("2026-01-05", end=True) == day + DAY_US
    assert parse_moment("2026-01-05T01:00") == parse_moment("2026-01-05T02:00+01:00") == day + DAY_US // 24
    with pytest.raises(ValueError, match="Invalid isoformat"):
        parse_moment("yesterday")


def test_an_interrupted_run_is_called_so_and_its_lines_are_verified_by_the_next_log() -> None:
    interrupted, after = runs("interrupted")
    assert (interrupted.outcome, interrupted.end_us, interrupted.duration_us) == ("interrupted", None, None)
    assert runs("interrupted", outcome="interrupted") == [interrupted]
    assert runs("interrupted", outcome="open") == []
    assert interrupted.verified
    assert after.outcome == "done"


def test_a_run_that_no_later_log_accounts_for_is_open_and_the_screen_says_what_interrupted_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [run.outcome for run in runs("broken-off")] == ["open"]
    words = "interrupted: its end is not on record, and the next log accounts for that"
    for book, is_said in (("interrupted", True), ("broken-off", False)):
        where = ("--folder", str(GOLDEN / book), "--pin", str(GOLDEN / f"{book}.pin"))
        assert (words in akaion(capsys, "runs", *where)[1]) is is_said
        task = runs(book)[0].task
        assert (words in akaion(capsys, "runs", "show", task, *where)[1]) is is_said


def test_i4_a_run_is_not_interrupted_by_the_word_of_a_line_that_no_seal_covers(tmp_path: Path) -> None:
    """The line of the next log that accounts for it can be added by anybody until it is sealed."""
    book = tmp_path / "book"
    shutil.copytree(GOLDEN / "interrupted", book)
    log = max(book.glob("*.jsonl"))
    lines = log.read_bytes().splitlines(keepends=True)
    (recovery,) = [at for at, line in enumerate(lines) if b'"kind":"recovery"' in line]
    outcomes = []
    for kept in (recovery + 1, recovery + 2):
        log.write_bytes(b"".join(lines[:kept]))
        ledger = open_ledger(book, GOLDEN / "interrupted.pin")
        assert ledger.verdict.holds
        outcomes += [run.outcome for run in wanted_runs(ledger, Wanted())]
    assert outcomes == ["open", "interrupted"]


@pytest.mark.parametrize("book", ["broken-off", "interrupted"])
def test_i4_lines_after_the_last_seal_count_for_nothing_in_their_run(
    book: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found = listed(capsys, GOLDEN / book, GOLDEN / f"{book}.pin")
    assert (status, found["verdict"]) == ((2, "INCOMPLETE") if book == "broken-off" else (0, "PASS"))
    assert found["unverified"] == []
    (log, *_) = reversed(list(golden(book).newest_first()))
    seals = [entry.seq for entry in log.entries if entry.kind == "seal"]
    assert found["runs"][0]["last"] == seals[-1] - 1 == log.entries[-1].seq - 3
    assert [entry.verified for entry in log.entries[-3:]] == [True, False, False]


def test_i4_what_anybody_adds_to_an_interrupted_log_is_in_no_number_whoever_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No key is needed to add chained lines after the last seal, and the next honest log states them."""
    signer, salts, pin = MemorySigner(), MemorySaltStore(), tmp_path / "pin"
    book, facts = tmp_path / "book", HeaderFacts(**header_words())

    def opened() -> Trace:
        return Trace.open(
            store=FolderLogStore(book, tmp_path / "heads" / "it"),
            signer=signer,
            salts=salts,
            clock=FrozenClock(),
            entropy=SystemEntropy(),
            facts=facts,
        )

    trace = opened()
    ended, task, other = trace.mint_id(), trace.mint_id(), trace.mint_id()
    trace.append(r.TaskStart(goal_commit="0" * 64, data_class=DataClass.C1), task=ended)
    trace.append(r.TaskEnd(outcome="done"), task=ended)
    trace.append(r.TaskStart(goal_commit="0" * 64, data_class=DataClass.C1), task=task)
    trace.barrier()
    pin.write_text(vkey(device_key_name(facts.book), signer.public_key) + "\n", encoding="ascii")
    (log,) = book.glob("*.jsonl")
    lines = log.read_bytes().split(b"\n")[:-1]
    ts, name = json.loads(lines[2])["ts"], json.loads(lines[0])["body"]["backends"][0]
    send = {
        "channel": "inference",
        "backend": name,
        "locality": "L0",
        "class": "C3",
        "inputs": [],
        "bytes": 9,
    }
    send |= {"decision": "allowed", "payload_commit": "3" * 64, "call_id": "4" * 32}
    invented = [(task, "egress", {**send, "send_id": f"{at:032x}"}) for at in range(5)]
    invented += [(other, "task_start", {"goal_commit": "0" * 64, "class": "C3"})]
    for whose, kind, body in invented:
        entry = {"body": body, "kind": kind, "prev": leaf_hash(lines[-1]).hex(), "seq": len(lines), "ts": ts}
        lines.append(json.dumps({**entry, "task": whose}, sort_keys=True, separators=(",", ":")).encode())
    log.write_bytes(b"\n".join(lines) + b"\n")
    trace._store.release()  # the process that was interrupted is gone
    opened().close()

    report = open_ledger(book, pin).verdict.report
    assert (report["verdict"], report["interrupted"], report["unsealed"]) == ("PASS", [0], 6)
    assert (report["egress"]["allowed"], report["localities"]) == (0, [])
    status, found = listed(capsys, book, pin)
    assert status == 0
    told = [(run["task"], run["outcome"], run["sends"]) for run in found["runs"]]
    assert told == [(ended, "done", {}), (task, "interrupted", {})]
    assert [run["task"] for run in found["unverified"]] == [other]
    where = ("--folder", str(book), "--pin", str(pin))
    assert akaion(capsys, "runs", "show", task, *where)[1].count("not verified") == 5


@pytest.mark.parametrize("what", ["altered", "no key", "wrong pin"])
def test_i4_nothing_of_a_book_that_does_not_verify_is_listed_as_a_run(
    what: str, studio: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pin = tmp_path / "auditor.pin"
    shutil.copy(GOLDEN / ("quiet.pin" if what == "wrong pin" else "studio.pin"), pin)
    if what == "no key":
        pin.write_text("nothing\n", encoding="ascii")
    if what == "altered":
        log = max(studio.glob("*.jsonl"))
        log.write_bytes(log.read_bytes().replace(b'"C2"', b'"C1"', 1))
    status, found = listed(capsys, studio, pin)
    assert (status, found["verdict"]) == ((1, "FAIL") if what == "altered" else (3, "UNTRUSTED"))
    assert found["runs"] == []
    assert len(found["unverified"]) == 2
    status, out = akaion(capsys, "runs", "--folder", str(studio), "--pin", str(pin))
    verdict, *_ = out.splitlines()
    assert verdict.startswith(found["verdict"])
    assert out.index("NOT VERIFIED") < out.index(found["unverified"][0]["task"][:8])


def test_i4_a_book_that_is_changed_after_its_verdict_is_not_read(studio: Path) -> None:
    ledger = open_ledger(studio, GOLDEN / "studio.pin")
    assert ledger.verdict.word == "PASS"
    log = min(studio.glob("*.jsonl"))
    log.write_bytes(log.read_bytes().replace(b'"allow"', b'"deny"', 1))
    with pytest.raises(TraceError, match="is not what was verified a moment ago"):
        wanted_runs(ledger, Wanted())


def test_i4_a_log_that_grows_after_the_verdict_has_lines_that_are_not_verified(studio: Path) -> None:
    ledger = open_ledger(studio, GOLDEN / "studio.pin")
    log = max(studio.glob("*.jsonl"))
    log.write_bytes(log.read_bytes() + b'{"kind":"task_start","task":"feedfeedfeed","body":{},"ts":1}\n')
    found = wanted_runs(ledger, Wanted())
    assert [run.verified for run in found] == [True, True, False]


@pytest.mark.parametrize("line", [b"", b"{", b"[1]", b'{"body":[],"kind":7,"task":3}', b"[" * 9999])
def test_any_line_that_was_not_verified_is_read_as_something(line: bytes, studio: Path) -> None:
    log = max(studio.glob("*.jsonl"))
    log.write_bytes(log.read_bytes() + line + b"\n")
    ledger = open_ledger(studio, GOLDEN / "studio.pin")
    assert ledger.verdict.word == "FAIL"
    assert all(not run.verified for log_read in ledger.newest_first() for run in runs_of(log_read))


def test_show_compare_and_drift_say_what_they_are_for(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = runs("studio")
    where = ("--folder", str(GOLDEN / "studio"), "--pin", str(GOLDEN / "studio.pin"))
    status, out = akaion(capsys, "runs", "show", first.task[:8], *where)
    assert status == 0
    assert first.task in out
    assert first.policy_digest in out
    status, out = akaion(capsys, "runs", "compare", first.task[:8], second.task[:8], *where, "--json")
    compared = json.loads(out)
    assert status == 0
    assert "outcome" in compared["differs"]
    assert "policy_digest" not in compared["differs"]
    status, out = akaion(capsys, "runs", "drift", "--backend", "akaion", *where, "--json")
    (backend,) = json.loads(out)["backends"]
    assert (backend["backend"], backend["finding"]) == ("akaion", "too few")


def test_a_send_of_a_tool_is_shown_under_the_name_of_the_tool(capsys: pytest.CaptureFixture[str]) -> None:
    """The record commits to the host; who sent is in the call that the send belongs to."""
    where = ("--folder", str(GOLDEN / "studio"), "--pin", str(GOLDEN / "studio.pin"))
    (run,) = [run for run in runs("studio") if any(send.channel == "tool" for send in run.sends)]
    _, out = akaion(capsys, "runs", "show", run.task[:8], *where)
    rows = [line.split() for line in out.splitlines() if " egress" in line]
    assert len([row for row in rows if "fetch_page" in row]) == 3  # a send, its result, and one denied


def test_calls_that_were_denied_or_refused_are_named_with_their_tools(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A run all of whose calls were denied had tools: it is not a run without any."""
    where = ("--folder", str(GOLDEN / "studio"), "--pin", str(GOLDEN / "studio.pin"))
    first, second = runs("studio")
    assert first.data()["denied_tools"] == {"other": 1, "write_file": 2}
    assert second.denied_tools == {}
    _, out = akaion(capsys, "runs", "show", first.task[:8], *where)
    assert "read_file 1, write_file 1; denied: other 1, write_file 2" in out


def test_content_that_a_person_did_not_let_go_is_no_call_of_a_tool() -> None:
    """A person was asked about a release here: had the answer been no, no tool would have been denied."""
    found = []
    for log in golden("studio").newest_first():
        asked = {entry.word("tool") for entry in log.entries if entry.word("decision") == "ask"}
        refused = (
            replace(entry, body={**entry.body, "granted": False}) if entry.kind == "approval" else entry
            for entry in log.entries
        )
        if "release" in asked:
            found += list(runs_of(replace(log, entries=tuple(refused))))
    assert sum(run.approvals.get("refused", 0) for run in found) >= 1
    assert "release" not in {tool for run in found for tool in run.denied_tools}


def test_what_does_not_fit_says_what_to_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    where = ("--folder", str(GOLDEN / "studio"), "--pin", str(GOLDEN / "studio.pin"))
    assert main(["runs", "list", *where]) == 2
    assert "type it without `list`" in capsys.readouterr().err
    assert main(["runs", "drift", "--backend", "foo", *where]) == 2
    assert "no backend foo; there are: akaion" in capsys.readouterr().err
    assert main(["runs", *where, "--witness", str(tmp_path / "no-such.vkey")]) == 2
    assert "no-such.vkey" in capsys.readouterr().err
    assert main(["runs", *where[:2], "--pin", str(tmp_path / "no-such.pin")]) == 2
    assert "no-such.pin" in capsys.readouterr().err
    assert main(["runs", "--folder", str(tmp_path / "nowhere")]) == 1
    assert "--folder or --profile" in capsys.readouterr().err


def test_a_log_that_is_open_is_told_as_a_run_at_work(
    studio: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = max(studio.glob("*.jsonl"))
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-2]))
    main(["runs", "--folder", str(studio), "--pin", str(GOLDEN / "studio.pin")])
    shown = " ".join(capsys.readouterr().out.split())
    assert "log-open" in shown
    assert "a run is at work, or was interrupted" in shown


def test_a_run_is_named_by_at_least_four_digits_that_fit_one(capsys: pytest.CaptureFixture[str]) -> None:
    first, _ = runs("studio")
    where = ("--folder", str(GOLDEN / "studio"), "--pin", str(GOLDEN / "studio.pin"))
    assert akaion(capsys, "runs", "show", first.task[:4], *where)[0] == 0
    for named in ("", first.task[:3], "ffffffff"):
        assert akaion(capsys, "runs", "show", named, *where)[0] == 2


def test_options_before_a_command_are_refused_and_not_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    assert akaion(capsys, "runs", "--denied", "drift")[0] == 2


def test_the_95th_percentile_is_never_beyond_the_largest() -> None:
    assert p95([7]) == 7
    assert p95([1, 2]) == 2
    assert p95(list(range(101))) == 95
