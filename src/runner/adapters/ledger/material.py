# SPDX-License-Identifier: Apache-2.0
"""What a pack of evidence is derived from, and the files that are derived from it.

Owns the step from proved lines to `evidence.json`, the page and the note on checking. Pure, so whoever has
the lines can take it again and compare every byte. Leaves gathering and files to `pack.py`,
checking to `checking.py`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from typing import Any, Final

from runner.adapters.ledger.account import account
from runner.adapters.ledger.book import Entry, ReadLog
from runner.adapters.ledger.content import Disclosure
from runner.adapters.ledger.page import Frame, page
from runner.adapters.ledger.proofs import leaf_of, proof_name
from runner.adapters.ledger.run import runs_of
from runner.adapters.ledger.statements import Account, Material, Ref
from runner.adapters.ledger.words import LANGUAGES, Language, said
from runner.perimeter.trace.commit import policy_digest

FORMAT: Final = "akaion-evidence/1"
SUMMARY, PAGE, NOTE, PIN = "evidence.json", "evidence.html", "README.txt", "device.vkey"
POLICIES: Final = "policies/"
"""The folder of a pack with the policies, each in a file called after its digest."""
LOOSE: Final = frozenset({"egress", "egress_result"})
"""Entries that may belong to no task: what a backend is probed with."""
_VERDICT: Final = (
    "verdict",
    "exit",
    "reasons",
    "book",
    "verified_through",
    "anchors",
    "device_keys",
    "pinned",
)
_MORE: Final = ("custody", "enforcement", "classifiers", "verifiable", "interrupted", "claims_not_made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a pack is about: named tasks, or those that started in a time, in microseconds since 1970."""

    tasks: tuple[str, ...] = ()
    since_us: int | None = None
    until_us: int | None = None

    def data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"tasks": list(self.tasks), "since_us": self.since_us, "until_us": self.until_us}


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What is not derived from the lines of a pack but said by whoever made it, and what lies beside them.

    `verdict` is the verifier's report on the whole book, `unproved` the lines that no seal covered yet,
    `logs` the names of whole logs that are enclosed.
    """

    verdict: Mapping[str, Any]
    selection: Selection
    languages: tuple[Language, ...] = LANGUAGES
    unproved: tuple[Ref, ...] = ()
    logs: tuple[str, ...] = ()
    policies: tuple[bytes, ...] = field(default=(), repr=False)
    disclosed: tuple[Disclosure, ...] = field(default=(), repr=False)


def kept_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a pack keeps of the verifier's report."""
    return {name: report[name] for name in (*_VERDICT, *_MORE)}


def derive(lines: Sequence[Entry], given: Given) -> dict[str, bytes]:
    """Return the files that follow from proved `lines`, in the order of log and seq, and what was `given`."""
    material = material_of(lines)
    told = account(material)
    how = _how(lines, given)
    summary = _summary(lines, given, material, told)
    frame = Frame(
        verdict=given.verdict,
        how=how,
        policy_logs=sorted(log for policy in summary["policies"] for log in policy["logs"]),
        unproved=given.unproved,
        disclosed=given.disclosed,
    )
    html = page(frame, told, lines, given.languages)
    return {
        SUMMARY: json.dumps(summary, indent=1, sort_keys=True, ensure_ascii=True).encode("ascii") + b"\n",
        PAGE: html.encode("utf-8"),
        NOTE: _note(how, given.languages).encode("utf-8"),
    }


def material_of(lines: Sequence[Entry]) -> Material:
    """Return what proved lines tell of, log by log."""
    logs = [
        ReadLog(number=number, entries=tuple(entries), torn=False)
        for number, entries in groupby(lines, key=lambda entry: entry.log)
    ]
    return Material(
        runs=tuple(run for log in logs for run in runs_of(log)),
        loose=tuple(entry for entry in lines if not entry.task and entry.kind in LOOSE),
        headers=tuple(entry for entry in lines if entry.kind == "header"),
        backends=tuple(entry for entry in lines if entry.kind == "backend"),
    )


def policy_logs(policy: bytes, headers: Sequence[Entry]) -> tuple[str, list[int]]:
    """Return the digest of an exported policy, and the logs in which it was in force.

    Raises `ValueError` for what is no policy.
    """
    digest = policy_digest(json.loads(policy))
    return digest, [header.log for header in headers if header.word("policy_digest") == digest]


def _summary(lines: Sequence[Entry], given: Given, material: Material, told: Account) -> dict[str, Any]:
    found = sorted(policy_logs(policy, material.headers) for policy in given.policies)
    return {
        "format": FORMAT,
        "notice": said("frame", "not_advice", "en"),
        "verdict": dict(given.verdict),
        "selection": given.selection.data(),
        "languages": list(given.languages),
        "policies": [
            {"file": f"{POLICIES}{digest}.json", "digest": digest, "logs": logs} for digest, logs in found
        ],
        "runs": [run.data() for run in material.runs],
        "statements": {name: [each.data() for each in said_of] for name, said_of in told.items()},
        "lines": [_line(each) for each in lines],
        "unproved": [{"log": log, "seq": seq} for log, seq in given.unproved],
        "logs": list(given.logs),
        "disclosed": [_disclosure(each) for each in given.disclosed],
    }


def _line(entry: Entry) -> dict[str, Any]:
    place = (entry.log, entry.seq)
    leaf = leaf_of(entry)
    return {"log": entry.log, "seq": entry.seq, "kind": entry.kind, "leaf": leaf, "proof": proof_name(place)}


def _disclosure(each: Disclosure) -> dict[str, Any]:
    return {
        "log": each.log,
        "seq": each.seq,
        "member": each.member,
        "commit": each.commit,
        "salt": each.salt.hex(),
        "file": each.file,
        "sha256": sha256(each.payload).hexdigest(),
    }


def _how(lines: Sequence[Entry], given: Given) -> str:
    """Return the commands that check a pack with nothing but the verifier."""
    first = proof_name((lines[0].log, lines[0].seq))
    check = "python3 -I -S akaion_verify.py check"
    unproved = " / ".join(said("frame", "not_proved", each) for each in given.languages)
    commands = [
        "sha256sum -c SHA256SUMS",
        f"{check} {first} --pin PIN",
        f'for p in proofs/*.json; do {check} "$p" --pin PIN >/dev/null || echo "{unproved}: $p"; done',
    ]
    if given.logs:
        headers = [entry for entry in lines if entry.kind == "header"]
        names = sorted(map(policy_name, given.policies)) if cover(given.policies, headers) else []
        by = "".join(f" --policy {name}" for name in names)
        commands.append(f"python3 -I -S akaion_verify.py logs --pin PIN{by}")
    return "\n".join(commands) + "\n"


def policy_name(policy: bytes) -> str:
    """Return what the file of an exported policy is called in a pack; raise `ValueError` as above."""
    return f"{POLICIES}{policy_logs(policy, ())[0]}.json"


def cover(policies: Sequence[bytes], headers: Sequence[Entry]) -> bool:
    """Return whether one of the policies was in force in every log: then every decision can be repeated."""
    covered = {log for policy in policies for log in policy_logs(policy, headers)[1]}
    return covered == {header.log for header in headers}


def _note(how: str, languages: Sequence[Language]) -> str:
    parts = []
    for each in languages:
        title, advice, check, pin, derived = (
            said("frame", code, each) for code in ("title", "not_advice", "how", "pin", "derived")
        )
        parts.append(f"{title}\n\n{advice}\n\n{check}\n\n{how}\n{pin}\n\n{derived}\n")
    return "\n---\n\n".join(parts)
