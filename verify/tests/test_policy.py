# SPDX-License-Identifier: Apache-2.0
"""S10: every recorded decision is the one that the policy gives, or the book lies."""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import akaion_verify as av
import bookbuilder as bb
import pytest
from bookbuilder import LogBuilder, Step

ROOT = {"alias": "cases", "path": "/cases", "declared": "C1", "matter": None, "redactable": False}

SINK = {"to": "network", "max_class": "C1", "payload": ["body"], "cases": ['{"to":[["UpTo",{"most":0.5}]]}']}


def grant(tool: str, *, ask: bool = False, paths: bool = False, roots: bool = False) -> dict[str, Any]:
    return {
        "tool": tool,
        "effect": "read" if roots else "host",
        "ask": ask,
        "arguments": ["path"] if paths else [],
        "path_arguments": ["path"] if paths else [],
        "roots": [ROOT] if roots else [],
    }


GRANTS = [
    grant("asking", ask=True),
    grant("reading", paths=True, roots=True),
    grant("rootless", paths=True),
    grant("running"),
    {**grant("starting", paths=True, roots=True), "binaries": {"git": bb.hex64("rules")}},
    {**grant("sending"), "limits": '{"to":{"max_length":9}}', "calls": 2, "sink": SINK},
    {**grant("writing", paths=True, roots=True), "effect": "write"},
    {**grant("reaching", paths=True, roots=True), "sink": {**SINK, "max_class": "C0"}},
]
POLICY = json.dumps({"grants": GRANTS}, sort_keys=True, separators=(",", ":")).encode()
DIGEST = hashlib.sha256(b"akaion-policy/1\0" + POLICY).hexdigest()


def decision(tool: str, word: str, rule: str, **premises: object) -> Step:
    """Return a decision that lies about nothing but what the policy says."""
    data_class = premises.pop("seen", "C0")
    body = {**bb.decided("one", tool, word, []), "rule": rule, "replay": premises, "class": data_class}
    if tool == "other":
        body["tool_commit"] = bb.hex64("tool")
    return Step("decision", "policy_decision", body, bb.TASK)


def book(folder: Path, step: Step) -> None:
    start = Step("start", "task_start", {"goal_commit": bb.hex64("goal"), "class": "C0"}, bb.TASK)
    end = Step("end", "task_end", {"outcome": "done"}, bb.TASK)
    LogBuilder(changes={"policy_digest": DIGEST}).open().play([start, step, end]).close().write(folder)


def look(folder: Path, pin: Path, *policies: bytes) -> list[tuple[str, int | None]]:
    report: Any = av.verify(folder, pin, [av.parse_policy(policy) for policy in policies or [POLICY]])
    return [(each["code"], each["seq"]) for each in report["reasons"]]


RIGHT = {
    "allowed": decision("running", "allow", "grant.running", fits=True),
    "asked": decision("asking", "ask", "grant.asking", fits=True, meets=False),
    "read": decision("reading", "allow", "grant.reading", fits=True, inside=True, reached=1, meets=False),
    "no word of premises": decision("reading", "allow", "grant.reading"),
    "no tool": decision("other", "deny", "tool-not-granted"),
    "no fit": decision("running", "deny", "arguments-invalid", fits=False),
    "no fit, not said": decision("running", "deny", "arguments-invalid"),
    "outside": decision("reading", "deny", "path-outside-grant", fits=True, inside=False),
    "no folder": decision("rootless", "deny", "no-path-granted", fits=True),
    "no folder of the matter": decision(
        "reading", "deny", "no-path-granted", fits=True, inside=True, reached=0
    ),
    "no such command": decision("starting", "deny", "command-not-granted", fits=True, command=False),
    "a command": decision(
        "starting", "allow", "grant.starting", fits=True, command=True, inside=True, reached=1
    ),
    "matters": decision("reading", "ask", "matters-meet", fits=True, inside=True, reached=2, meets=True),
    "sent": decision("sending", "allow", "grant.sending", fits=True, within=True, vouched=True, seen="C1"),
    "sent, not said": decision("sending", "allow", "grant.sending"),
    "not within": decision("sending", "deny", "argument-outside-grant", fits=True, within=False),
    "seen more": decision("sending", "deny", "above-sink", fits=True, within=True, vouched=True, seen="C2"),
    "nobody vouches": decision("sending", "ask", "critical-not-named", within=True, vouched=False),
    "matters first": decision("reaching", "ask", "matters-meet", inside=True, meets=True, vouched=False),
    "written": decision("writing", "allow", "grant.writing", inside=True, reached=1, into="C1", seen="C1"),
    "written, not said": decision("writing", "allow", "grant.writing", seen="C1"),
    "seen more than the folder holds": decision("writing", "deny", "above-folder", into="C0", seen="C1"),
    "the same, not said": decision("writing", "deny", "above-folder", seen="C3"),
    "not while redacted": decision("writing", "deny", "write-behind-veil", into="C2"),
    "no call left": decision("sending", "deny", "no-call-left", vouched=True),
    "not asked again": decision("sending", "deny", "refused-before", vouched=False),
    "not asked any more": decision("sending", "deny", "too-many-questions", vouched=False),
    "denied beyond the policy": decision("running", "deny", "restored-value-to-sink", fits=True),
}
LIES = {
    "a tool without a grant": decision("helping", "allow", "grant.helping"),
    "allowed instead of asked": decision("asking", "allow", "grant.asking"),
    "asked instead of allowed": decision("running", "ask", "grant.running"),
    "another grant's rule": decision("running", "allow", "grant.reading"),
    "arguments that do not fit": decision("running", "allow", "grant.running", fits=False),
    "a path outside": decision("reading", "allow", "grant.reading", fits=True, inside=False),
    "paths and no folder": decision("rootless", "allow", "grant.rootless"),
    "no folder reached": decision("reading", "allow", "grant.reading", reached=0),
    "a command against the rules": decision("starting", "allow", "grant.starting", command=False),
    "a command of a tool that starts none": decision("running", "deny", "command-not-granted"),
    "matters that meet": decision("reading", "allow", "grant.reading", meets=True),
    "sent beyond the limits": decision("sending", "allow", "grant.sending", within=False, vouched=True),
    "sent, having seen more": decision("sending", "allow", "grant.sending", vouched=True, seen="C2"),
    "asked, having seen more": decision("sending", "ask", "critical-not-named", vouched=False, seen="C3"),
    "denied, having seen no more": decision("sending", "deny", "above-sink", within=True, seen="C1"),
    "sent, nobody vouching": decision("sending", "allow", "grant.sending", within=True, vouched=False),
    "asked, vouched for": decision("sending", "ask", "critical-not-named", within=True, vouched=True),
    "a sink of a tool that is none": decision("running", "ask", "critical-not-named", vouched=False),
    "limits of a tool without": decision("running", "deny", "argument-outside-grant", within=False),
    "written, having seen more": decision("writing", "allow", "grant.writing", into="C0", seen="C1"),
    "written, having seen more than any folder": decision(
        "writing", "allow", "grant.writing", into="C2", seen="C2"
    ),
    "the same, no folder said": decision("writing", "allow", "grant.writing", seen="C3"),
    "written into a number": decision("writing", "allow", "grant.writing", into=3, seen="C3"),
    "denied, having seen what the folder holds": decision(
        "writing", "deny", "above-folder", into="C1", seen="C1"
    ),
    "a folder of a tool that writes none": decision("reading", "deny", "above-folder", into="C0", seen="C1"),
    "no call left, and yet": decision("sending", "allow", "no-call-left", vouched=True),
    "denied for a wrong reason": decision("running", "deny", "path-outside-grant", inside=True),
    "denied, and it fits": decision("running", "deny", "arguments-invalid", fits=True),
    "a word beyond the policy that allows": decision("helping", "allow", "origin-unknown"),
}


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_s10_a_decision_that_the_policy_gives_passes(folder: Path, pin: Path, name: str) -> None:
    book(folder, RIGHT[name])
    assert look(folder, pin) == []


@pytest.mark.parametrize("name", sorted(LIES))
def test_s10_a_lying_book_sealed_with_the_real_keys_fails(folder: Path, pin: Path, name: str) -> None:
    book(folder, LIES[name])
    assert av.verify(folder, pin, [av.Policy(DIGEST)])["verdict"] == "PASS"
    assert look(folder, pin) == [("decision-differs", 3)]


def test_s10_another_policy_is_refused_by_its_digest_and_not_replayed(folder: Path, pin: Path) -> None:
    book(folder, RIGHT["allowed"])
    other = json.dumps({"grants": []}, separators=(",", ":")).encode()
    assert look(folder, pin, other) == [("policy-differs", 0)]


OTHER = json.dumps({"grants": [grant("asking", ask=True)]}, sort_keys=True, separators=(",", ":")).encode()
OTHER_DIGEST = hashlib.sha256(b"akaion-policy/1\0" + OTHER).hexdigest()


def under_two_policies(folder: Path, step: Step) -> None:
    """Log 0 is under one policy and holds nothing; log 1 is under another, and holds `step`."""
    start = Step("start", "task_start", {"goal_commit": bb.hex64("goal"), "class": "C0"}, bb.TASK)
    end = Step("end", "task_end", {"outcome": "done"}, bb.TASK)
    log = LogBuilder(changes={"policy_digest": OTHER_DIGEST}).open().close().write(folder)
    log.next(policy_digest=DIGEST).open().play([start, step, end]).close().write(folder)


def test_s10_each_log_is_judged_by_the_policy_that_its_header_names(folder: Path, pin: Path) -> None:
    """A profile may change. A policy that is not given is named, and the log under it is not replayed."""
    under_two_policies(folder, LIES["allowed instead of asked"])
    assert look(folder, pin) == [("policy-differs", 0), ("decision-differs", 3)]
    assert look(folder, pin, OTHER) == [("policy-differs", 0)]
    assert look(folder, pin, OTHER, POLICY) == [("decision-differs", 3)]
    under_two_policies(folder, RIGHT["asked"])
    assert look(folder, pin, POLICY, OTHER) == []


def test_a_policy_counts_before_its_digest_alone_in_whichever_order_they_are_given(
    folder: Path, pin: Path
) -> None:
    """S10: who names a digest as well, or names one twice, has not taken the policy back."""
    under_two_policies(folder, LIES["allowed instead of asked"])
    given = [av.parse_policy(POLICY), av.Policy(DIGEST), av.Policy(OTHER_DIGEST), av.parse_policy(OTHER)]
    reports: list[Any] = [av.verify(folder, pin, each) for each in itertools.permutations(given)]
    assert [each["code"] for each in reports[0]["reasons"]] == ["decision-differs"]
    assert reports[0]["policies"] == {DIGEST: True, OTHER_DIGEST: True}
    assert all(report == reports[0] for report in [*reports, av.verify(folder, pin, given * 2)])


def test_the_command_takes_several_policies_and_says_which_ones_had_no_file(
    folder: Path, pin: Path, tmp_path: Path
) -> None:
    under_two_policies(folder, RIGHT["asked"])
    files = [tmp_path / "new.json", tmp_path / "old.json"]
    files[0].write_bytes(POLICY + b"\n")
    files[1].write_bytes(OTHER + b"\n")
    program = [sys.executable, "-I", "-S", av.__file__, folder, "--pin", pin]
    given = [word for file in files for word in ("--policy", file)]
    for options, code, replayed in (
        (given, 0, {DIGEST, OTHER_DIGEST}),
        (given[:2], 1, {DIGEST}),
        ([*given[:2], "--policy-digest", OTHER_DIGEST], 0, {DIGEST}),
        ([*given, "--policy-digest", DIGEST], 0, {DIGEST, OTHER_DIGEST}),
    ):
        done = subprocess.run([*program, *options], capture_output=True, text=True, check=False)
        words = {
            True: "its decisions were repeated as far as verified",
            False: "not repeated: no file was given",
        }
        named = ", ".join(f"{each} ({words[each in replayed]})" for each in sorted((DIGEST, OTHER_DIGEST)))
        assert (done.returncode, f"Policies named: {named}" in done.stdout.splitlines()) == (code, True)


def test_s10_what_a_person_lets_go_is_not_judged_by_the_policy(folder: Path, pin: Path) -> None:
    first = LogBuilder(changes={"policy_digest": DIGEST}).open().play(bb.story())
    released = [b'"tool":"release"' in line for line in first.lines]
    first.write(folder)
    where = [seq for code, seq in look(folder, pin) if code == "decision-differs"]
    assert any(released)
    assert not any(released[seq] for seq in where if seq is not None)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{}",
        b'{"grants": []}',
        b'{"grants":[{}]}',
        POLICY.replace(b'"ask":true', b'"ask":1'),
        POLICY.replace(b'"roots":[]', b'"roots":null'),
    ],
    ids=["empty", "list", "no grants", "not canonical", "no members", "wrong type", "null"],
)
def test_a_file_that_is_no_policy_is_wrong_usage(
    folder: Path, pin: Path, tmp_path: Path, line: bytes
) -> None:
    file = tmp_path / "policy.json"
    file.write_bytes(line + b"\n")
    program = [sys.executable, "-I", "-S", av.__file__, folder, "--pin", pin, "--policy", file]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, "akaion policy export" in done.stderr) == (64, True)


def test_the_command_replays_by_a_policy_in_a_file(folder: Path, pin: Path, tmp_path: Path) -> None:
    book(folder, LIES["allowed instead of asked"])
    file = tmp_path / "policy.json"
    file.write_bytes(POLICY + b"\n")
    program = [sys.executable, "-I", "-S", av.__file__, folder, "--pin", pin, "--policy", file]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "FAIL: decision-differs, log 0, seq 3" in done.stdout
