# SPDX-License-Identifier: Apache-2.0
"""I4, I12: a pack of evidence over a real book, checked by the standalone verifier and by nothing else."""

import hmac
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import akaion_verify
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runner import StopReason, open_profile
from runner.adapters.cli.main import main
from runner.adapters.cli.profiles import inspect
from runner.adapters.ledger import said
from runner.adapters.ledger.book import Entry, open_ledger
from runner.adapters.ledger.checking import Checked, _check_contents, check_pack
from runner.adapters.ledger.content import disclose
from runner.adapters.ledger.material import Given, Selection, derive, kept_of, policy_name
from runner.adapters.ledger.pack import SUMS, Files, Gathered, build, gather, read_pack, write_pack
from runner.adapters.ledger.page import Frame, page
from runner.adapters.ledger.proofs import Prover, proof_name
from runner.adapters.ledger.select import Wanted, wanted_runs
from runner.adapters.ledger.statements import WRITE_TOOLS, Ref, Statement, ref
from runner.adapters.ledger.words import claim, sentence
from runner.assembly.tools import shipped_tools
from runner.capability.transport.salts import read_salts
from runner.kernel.errors import TraceError
from runner.kernel.ports import Effect
from runner.testing import ScriptedServer, oblige

ROOT: Final = Path(__file__).resolve().parents[2]
VERIFIER: Final = ROOT / "verify" / "akaion_verify.py"
GOLDEN: Final = ROOT / "contracts" / "trace" / "v1" / "golden"
SECRET: Final = "The settlement figure is forty thousand florins"
FILE: Final = "settlement-of-the-heirs.txt"
QUESTION: Final = "What is the settlement figure of <b>Ferrantini\u202e</b>?"
ANSWER: Final = "forty thousand florins"
CANARIES: Final = (SECRET, FILE, "heirs", "Ferrantini", "florins", "settlement")


def answering(body: Any) -> str:
    asked = body["response_format"]["json_schema"]["schema"]["properties"]
    return json.dumps({"answer": ANSWER}) if set(asked) == {"answer"} else oblige(body)


@dataclass(frozen=True, kw_only=True)
class Practice:
    """A practice with a book of two runs, the second of which was denied a send; and its pin."""

    root: Path
    profile: Path
    pin: Path

    @property
    def book(self) -> Path:
        return self.root / "home" / "trace"

    def pack(self, name: str, *options: str) -> Path:
        target = self.root / name
        chosen = options if "--task" in options else ("--since", "2000-01-01", *options)
        assert main(["evidence", "--profile", str(self.profile), *chosen, "-o", str(target)]) == 0
        return target


def write_profile(path: Path, url: str, data_class: str) -> None:
    path.write_text(
        "profile: attached\n"
        "policy:\n"
        "  grants:\n"
        f"    - {{tool: search_text, paths: [{{path: files, class: {data_class}}}]}}\n"
        "perimeter: {max_egress_class: C1}\n"
        "inference:\n"
        "  prefer: remote\n"
        "  local: null\n"
        f"  remote: {{backend: openai, endpoint: '{url}', model: m, tier: constrained}}\n",
        encoding="utf-8",
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Practice:
    """Return a practice whose book is made once: what tests change, they copy."""
    root = tmp_path_factory.mktemp("practice")
    (root / "files").mkdir()
    (root / "files" / FILE).write_text(f"Of the heirs\n{SECRET}\n", encoding="utf-8")
    pin, profile = root / "device.vkey", root / "attached.yaml"
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(replies=[answering] * 9) as server:
        patch.setenv("AKAION_HOME", str(root / "home"))
        for data_class, stop in (("C1", StopReason.ANSWERED), ("C3", StopReason.DENIED)):
            write_profile(profile, server.url, data_class)
            with open_profile(profile) as runtime:
                assert runtime.loop().run(QUESTION).stop is stop
                runtime.export_pin(pin)
    return Practice(root=root, profile=profile, pin=pin)


@pytest.fixture
def practice(written: Practice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Practice:
    root = tmp_path / "practice"
    shutil.copytree(written.root / "home", root / "home")
    monkeypatch.setenv("AKAION_HOME", str(root / "home"))
    return Practice(root=root, profile=written.profile, pin=written.pin)


def tasks(practice: Practice, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["runs", "--profile", str(practice.profile), "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"]
    return found


def everything(files: Files) -> str:
    return "\n".join(f"{name}\n{data.decode('utf-8')}" for name, data in files.items())


# --- checked elsewhere, by the verifier alone ---------------------------------------------------------


def elsewhere(tmp_path: Path, pack: Path, pin: Path) -> Iterator[tuple[str, int, str]]:
    """Check each proof of a pack as an auditor would: the verifier's file, the pin, and nothing of ours."""
    there = tmp_path / "elsewhere"
    there.mkdir()
    program, key = (Path(shutil.copy(each, there)) for each in (VERIFIER, pin))
    for proof in sorted((pack / "proofs").iterdir()):
        command = [sys.executable, "-I", "-S", str(program), "check", str(proof), "--pin", str(key)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={}, cwd=there)
        yield proof.name, done.returncode, done.stdout.splitlines()[0]


def test_i4_the_verifier_alone_finds_every_line_of_a_pack_included(
    practice: Practice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    denied = tasks(practice, capsys)[1]
    pack = practice.pack("pack", "--task", denied["task"])
    found = list(elsewhere(tmp_path, pack, practice.pin))
    assert {(code, line) for _, code, line in found} == {(0, "INCLUDED (exit 0)")}
    summary = json.loads((pack / "evidence.json").read_bytes())
    assert [name for name, *_ in found] == [Path(line["proof"]).name for line in summary["lines"]]
    ours = {line["seq"] for line in summary["lines"] if line["kind"] not in {"header", "backend"}}
    lines = [json.loads(line) for line in max(practice.book.glob("*.jsonl")).read_bytes().splitlines()]
    assert ours == {each["seq"] for each in lines if each.get("task") == denied["task"]}


def test_i4_the_verifier_alone_refuses_a_line_that_was_altered(practice: Practice, tmp_path: Path) -> None:
    pack = practice.pack("pack")
    altered = [proof for proof in (pack / "proofs").iterdir() if b"c3-never-leaves" in proof.read_bytes()]
    for proof in sorted((pack / "proofs").iterdir())[3:]:
        if proof not in altered:
            proof.unlink()
    for proof in altered:
        text = proof.read_text(encoding="ascii")
        proof.write_text(text.replace('\\"decision\\":\\"denied\\"', '\\"decision\\":\\"allowed\\"'))
    refused = {name: line for name, code, line in elsewhere(tmp_path, pack, practice.pin) if code}
    assert len(altered) == 1
    assert refused == {altered[0].name: "FAIL (exit 1)"}


def test_i4_the_verifier_alone_verifies_enclosed_logs(practice: Practice) -> None:
    pack = practice.pack("pack", "--whole-logs")
    assert akaion_verify.main([str(pack / "logs"), "--pin", str(practice.pin)]) == 0


def test_i4_the_verifier_repeats_the_decisions_of_enclosed_logs_by_the_enclosed_policy(
    practice: Practice,
) -> None:
    """The book is cut to the log in which the policy was in force, so it starts late: PARTIAL, no more."""
    (task,) = [run for run in open_runs(practice) if run["outcome"] == "failed"]
    sidecar = max(practice.book.glob("*.jsonl")).with_suffix(".witness")
    sidecar.write_text("what a witness said\n", encoding="ascii")
    pack = practice.pack("pack", "--task", task["task"], "--whole-logs")
    files = read_pack(pack)
    assert files[f"logs/{sidecar.name}"] == b"what a witness said\n"
    (policy,) = policies_of(files)
    assert f"akaion_verify.py logs --pin PIN --policy {policy}\n".encode() in files["README.txt"]
    options = ["--pin", str(practice.pin), "--policy", str(pack / policy)]
    assert akaion_verify.main([str(pack / "logs"), *options]) == 5
    assert check_pack(files, practice.pin).problems == ()
    log = next(name for name in files if name.startswith("logs/") and name.endswith(".jsonl"))
    found = check_pack(altered(files, log, b'"denied"', b'"allowed"'), practice.pin).problems
    assert any(problem.startswith("logs: ") for problem in found)


@pytest.mark.parametrize("name", ["studio", "interrupted", "quiet"])
def test_i4_a_proof_is_byte_for_byte_what_the_verifier_prints(name: str) -> None:
    compared = 0
    for log in open_ledger(GOLDEN / name, GOLDEN / f"{name}.pin").newest_first():
        prover = Prover(log)
        for entry in log.entries:
            theirs = akaion_verify.prove(GOLDEN / name, log.number, entry.seq)
            ours = prover.prove(entry.seq)
            assert ours == (None if theirs is None else json.dumps(theirs, indent=2).encode() + b"\n")
            compared += ours is not None
    assert compared > 3


# --- the same book, the same bytes --------------------------------------------------------------------


def test_the_same_book_gives_the_same_bytes_as_a_folder_and_as_a_file(practice: Practice) -> None:
    folder, again = practice.pack("one"), practice.pack("two")
    assert read_pack(folder) == read_pack(again)
    first, second = practice.pack("one.zip"), practice.pack("two.zip")
    assert first.read_bytes() == second.read_bytes()
    assert read_pack(first) == read_pack(folder)
    with zipfile.ZipFile(first) as archive:
        assert {entry.date_time[0] for entry in archive.infolist()} == {1980}


def test_a_pack_is_never_written_over_something(practice: Practice) -> None:
    target = practice.pack("pack")
    command = ["evidence", "--profile", str(practice.profile), "--since", "2000-01-01", "-o", str(target)]
    assert main(command) == 1
    assert target.stat().st_mode & 0o777 == 0o700


# --- what is in it ------------------------------------------------------------------------------------


def test_i12_no_content_is_in_a_pack_unless_it_is_asked_for(practice: Practice) -> None:
    """Not the question, not what was read, not the name of a file, not the answer; in no file, in no form."""
    files = read_pack(practice.pack("pack", "--whole-logs"))
    text = everything(files)
    assert [canary for canary in CANARIES if canary.casefold() in text.casefold()] == []
    assert not any(name.startswith("content/") for name in files)
    salts = (practice.root / "home" / "vault" / "salts").read_text(encoding="ascii").split()
    assert not any(salt in text for salt in salts[1::2])


def test_i12_content_that_is_given_is_disclosed_only_if_the_record_committed_to_it(
    practice: Practice,
) -> None:
    kept = practice.root / "kept"
    kept.mkdir()
    (kept / "questions.txt").write_text(f"never asked by anybody\n{QUESTION}\n", encoding="utf-8")
    files = read_pack(practice.pack("pack", "--with-content", str(kept)))
    assert "never asked by anybody" not in everything(files)
    disclosed = json.loads(files["evidence.json"])["disclosed"]
    assert {each["member"] for each in disclosed} >= {"goal_commit"}
    proofs = {(each["log"], each["seq"]): each for each in json.loads(files["evidence.json"])["lines"]}
    for each in disclosed:
        payload = files[each["file"]]
        assert payload == QUESTION.encode()
        salt = bytes.fromhex(each["salt"])
        commit = hmac.new(salt, b"akaion-commit/1\0" + payload, sha256).hexdigest()
        line = json.loads(files[proofs[each["log"], each["seq"]]["proof"]])["line"]
        assert commit == json.loads(line)["body"][each["member"]] == each["commit"]
    page = files["evidence.html"].decode("utf-8")
    assert "of &lt;b&gt;Ferrantini\\u202e&lt;/b&gt;?" in page
    assert "<b>" not in page
    assert "\u202e" not in page


def test_what_matched_is_said_of_each_file_and_why_another_did_not(
    practice: Practice, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else a folder of which nothing matched looks like one that was disclosed."""
    kept = practice.root / "kept"
    kept.mkdir()
    for name, text in {"a.txt": f"{QUESTION}\n", "b.txt": f"x\n{QUESTION}\n", "c.txt": "x\n"}.items():
        (kept / name).write_text(text, encoding="utf-8")
    capsys.readouterr()
    practice.pack("pack", "--with-content", str(kept), "--json")
    why = "no: none of these lines commits to the whole file or to a line of it, or the salt was deleted"
    matched = {"a.txt": "whole", "b.txt": "1 of its lines", "c.txt": why}
    assert json.loads(capsys.readouterr().out)["matched"] == matched
    practice.pack("again", "--with-content", str(kept))
    assert f"c.txt: matched: {why}" in " ".join(capsys.readouterr().out.split())


def test_a_pack_says_what_was_asked_read_sent_and_denied_and_on_which_lines_each_rests(
    practice: Practice,
) -> None:
    files = read_pack(practice.pack("pack"))
    summary = json.loads(files["evidence.json"])
    told = summary["statements"]
    assert [each["code"] for each in told["asked"]] == ["asked", "asked"]
    assert [each["values"]["class"] for each in told["read"]] == ["C1", "C3"]
    assert [each["values"]["class"] for each in told["left"]] == ["C1"] * 3
    (denied,) = told["denied"]
    assert (denied["values"]["reason"], denied["values"]["class"]) == ("c3-never-leaves", "C3")
    (recipient,) = [each for each in told["art33"] if each["code"] == "recipient"]
    assert (recipient["values"]["sends"], recipient["values"]["classes"]) == (3, "C1")
    shown = {(line["log"], line["seq"]): line for line in summary["lines"]}
    for statements in told.values():
        for each in statements:
            assert each["by_hand"] is each["code"].endswith("_by_hand")
            assert all((place["log"], place["seq"]) in shown for place in each["lines"])
    rest = {(place["log"], place["seq"]) for each in told["left"] + told["denied"] for place in each["lines"]}
    assert {place for place, line in shown.items() if line["kind"] == "egress"} <= rest


def golden_statements(name: str, outcome: str = "") -> dict[str, list[dict[str, Any]]]:
    ledger = open_ledger(GOLDEN / name, GOLDEN / f"{name}.pin")
    runs = wanted_runs(ledger, Wanted(outcome=outcome)) if outcome else []
    lines = gather(ledger, Selection(tasks=tuple(run.task for run in runs)), whole=False).lines
    given = Given(verdict=kept_of(ledger.verdict.report), selection=Selection())
    told: dict[str, list[dict[str, Any]]] = json.loads(derive(lines, given)["evidence.json"])["statements"]
    return told


def test_everything_that_the_verifier_does_not_claim_has_words_in_italian() -> None:
    more = (akaion_verify.NOT_ANCHORED, akaion_verify.ANCHORED, akaion_verify.WITNESSED)
    claims = [*akaion_verify.NOT_CLAIMED, *more]
    assert [each for each in claims if claim(each, "it") in {None, each} or claim(each, "en") != each] == []


def test_the_italian_page_speaks_italian(practice: Practice) -> None:
    """Commands and names of the profile stay as they are typed; what is said to a reader does not."""
    files = read_pack(practice.pack("pack", "--language", "it"))
    page = files["evidence.html"].decode("utf-8")
    assert "NON PROVATA: $p" in page
    assert "NOT PROVED" not in page
    assert "che le etichette e le classi fossero esatte" in page
    assert '<li lang="en">' not in page
    assert "classe massima in uscita C1 (interno)" in page


def test_a_probe_of_the_runner_is_told_apart_from_the_sends_of_tasks() -> None:
    told = golden_statements("studio")
    probes = [each for each in told["stayed"] if each["code"] == "probe"]
    assert [each["values"]["class"] for each in probes] == ["C0", "C0"]
    assert {each["code"] for each in told["stayed"]} == {"probe", "stayed"}


def test_p1_what_a_person_let_go_counts_as_what_it_was_and_what_was_redacted_as_what_is_left() -> None:
    """Else personal content that left by a yes would be told as internal: to Art. 33 it is personal."""
    told = golden_statements("studio")
    assert [each["code"] for each in told["left"]] == ["sent", "sent_by_tool", "sent_lowered", "sent_lowered"]
    (by_tool,) = [each for each in told["left"] if each["code"] == "sent_by_tool"]
    assert by_tool["values"]["backend"] == "fetch_page"
    by = [(each["code"], each["values"]["by"], each["values"]["from"]) for each in told["lowered"]]
    assert by == [("lowered_by_rule", "", "C2"), ("lowered_by_person", "user", "C2")]
    (breach,) = [each for each in told["art33"] if each["code"] == "breach_left"]
    assert (breach["values"]["sends"], breach["values"]["personal"]) == (4, 1)
    met = {
        each["values"]["class"]: each["values"]["sends"]
        for each in told["affected"]
        if each["code"] == "class_met"
    }
    assert met == {"C1": 3, "C2": 1, "C3": 0}
    answers = [(each["code"], each["values"]["by"], each["values"]["tool"]) for each in told["approved"]]
    assert answers == [
        ("approved", "user", "write_file"),
        ("unanswered", "none", "write_file"),
        ("approved", "user", "release"),
    ]
    reasons = [each["values"].get("reason") or each["values"]["rule"] for each in told["denied"]]
    assert reasons == ["unknown-tool", "path-outside-grant", *["class-above-ceiling"] * 3]


def test_what_a_tool_wrote_is_not_told_as_what_was_read() -> None:
    told = golden_statements("studio")
    written = [(each["code"], each["values"]["tool"], each["values"]["class"]) for each in told["written"]]
    assert written == [("written", "write_file", "C2")]
    assert WRITE_TOOLS.isdisjoint(each["values"]["tool"] for each in told["read"])
    assert [each["code"] for each in golden_statements("interrupted", "done")["written"]] == [
        "nothing_written"
    ]
    assert [each["code"] for each in golden_statements("interrupted")["written"]] == ["not_all_shown"]


def test_every_shipped_tool_that_writes_is_known_to_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    read = inspect("detached")
    tools = shipped_tools(read.config, read.source)
    assert {tool.spec.name for tool in tools if tool.effect is Effect.WRITE} == WRITE_TOOLS


def test_the_policy_is_enclosed_where_it_was_in_force_and_only_there(practice: Practice) -> None:
    files = read_pack(practice.pack("pack"))
    (policy,) = json.loads(files["evidence.json"])["policies"]
    assert policy["logs"] == [1]
    digest = sha256(b"akaion-policy/1\0" + files[policy["file"]].rstrip(b"\n")).hexdigest()
    assert (policy["digest"], policy["file"]) == (digest, f"policies/{digest}.json")
    assert policies_of(read_pack(practice.pack("without", "--no-policy"))) == []
    write_profile(practice.root / "other.yaml", "http://127.0.0.1:9", "C2")
    other = replace(practice, profile=practice.root / "other.yaml")
    assert policies_of(read_pack(other.pack("other"))) == []


def test_a_book_is_read_by_a_profile_that_grants_a_tool_of_the_program(
    practice: Practice, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its policy is not enclosed: a digest that lacks the tool's arguments is in force nowhere (I9)."""
    text = practice.profile.read_text(encoding="utf-8")
    own = practice.profile.with_name("own.yaml")
    own.write_text(text.replace("perimeter:", "    - {tool: send_mail}\nperimeter:", 1), encoding="utf-8")
    other = replace(practice, profile=own)
    assert len(tasks(other, capsys)) == 2
    assert policies_of(read_pack(other.pack("own"))) == []
    said = " ".join(capsys.readouterr().err.split())
    assert "send_mail: a tool of the program's own" in said
    assert "give it with --earlier-policy" in said
    other.pack("without", "--no-policy")
    assert "send_mail" not in capsys.readouterr().err


def policies_of(files: Files) -> list[str]:
    return [name for name in files if name.startswith("policies/")]


def test_i4_with_each_policy_that_was_in_force_every_decision_of_a_pack_is_repeated(
    practice: Practice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The profile changed between the two logs: each is judged by the policy that its header names."""
    earlier = practice.profile.with_name("earlier.yaml")  # its folders are named from there
    write_profile(earlier, "http://127.0.0.1:9", "C1")
    capsys.readouterr()
    assert main(["policy", "export", "--profile", str(earlier)]) == 0
    exported = tmp_path / "earlier.json"
    exported.write_text(capsys.readouterr().out, encoding="utf-8")
    pack = practice.pack("pack", "--whole-logs", "--earlier-policy", str(exported))
    files = read_pack(pack)
    told = json.loads(files["evidence.json"])["policies"]
    assert sorted(log for policy in told for log in policy["logs"]) == [0, 1]
    words = (
        files["README.txt"].decode().partition("akaion_verify.py logs --pin PIN ")[2].split("\n")[0].split()
    )
    assert (words[::2], sorted(words[1::2])) == (["--policy"] * 2, sorted(policies_of(files)))
    by = [word if word == "--policy" else str(pack / word) for word in words]
    assert akaion_verify.main([str(pack / "logs"), "--pin", str(practice.pin), *by]) == 0
    assert akaion_verify.main([str(pack / "logs"), "--pin", str(practice.pin), *by[:2]]) == 1
    assert check_pack(files, practice.pin).problems == ()
    broken = altered(files, policies_of(files)[0], b'"ask":false', b'"ask":true')
    assert check_pack(broken, practice.pin).problems != ()


def test_what_is_no_exported_policy_is_not_enclosed(
    practice: Practice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loose = tmp_path / "loose.json"
    loose.write_text('{"grants": []}\n', encoding="utf-8")
    words = ["evidence", "--profile", str(practice.profile), "--since", "2000-01-01"]
    words += ["--earlier-policy", str(loose), "-o", str(tmp_path / "pack")]
    assert main(words) == 2
    assert "akaion policy export" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "pack").exists()


class Page(HTMLParser):
    """What a page refers to, and the places it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.hrefs: set[str] = set()
        self.ids: list[str] = []
        self.others: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "href":
                self.hrefs.add(str(value))
            elif name == "id":
                self.ids.append(str(value))
            elif name not in {"class", "lang", "charset", "content", "name", "http-equiv"}:
                self.others.add(name)


@pytest.mark.parametrize(("language", "parts"), [("it", ["it"]), ("en", ["en"]), ("both", ["it", "en"])])
def test_the_page_fetches_nothing_runs_nothing_and_every_link_leads_somewhere(
    language: str, parts: list[str], practice: Practice
) -> None:
    files = read_pack(practice.pack("pack", "--language", language))
    text = files["evidence.html"].decode("utf-8")
    page = Page(text)
    assert re.findall(r'<section lang="(..)">', text) == parts
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "form", "object", "base"})
    assert page.others == set()
    assert "default-src 'none'" in text
    assert "form-action 'none'; base-uri 'none'" in text
    assert "url(" not in text
    assert "@import" not in text
    assert len(page.ids) == len(set(page.ids))
    inside = {href.removeprefix("#") for href in page.hrefs if href.startswith("#")}
    assert inside <= set(page.ids)
    assert {href for href in page.hrefs if not href.startswith("#")} <= set(files)


# --- checked with the runner --------------------------------------------------------------------------


def resummed(files: Files) -> Files:
    """Return the files with sums that fit, as whoever alters a pack would."""
    rest = {name: data for name, data in files.items() if name != SUMS}
    sums = "".join(f"{sha256(rest[name]).hexdigest()}  {name}\n" for name in sorted(rest))
    return {**rest, SUMS: sums.encode()}


def altered(files: Files, name: str, before: bytes, after: bytes) -> Files:
    assert before in files[name]
    return resummed({**files, name: files[name].replace(before, after)})


def test_a_pack_holds_and_not_after_any_file_of_it_was_altered(practice: Practice) -> None:
    kept = practice.root / "kept"
    kept.mkdir()
    (kept / "question.txt").write_text(QUESTION, encoding="utf-8")
    (task,) = [run for run in open_runs(practice) if run["outcome"] == "failed"]
    files = read_pack(practice.pack("pack", "--task", task["task"], "--with-content", str(kept)))
    content = next(name for name in files if name.startswith("content/"))
    proof = next(name for name, data in files.items() if b"c3-never-leaves" in data and "proofs" in name)
    assert check_pack(files, practice.pin).problems == ()
    wrong = {
        "sums": {**files, SUMS: files[SUMS].replace(b"a", b"b")},
        "note": altered(files, "README.txt", b"-I -S", b""),
        "page": altered(files, "evidence.html", b"c3-never-leaves", b"c1-may-leave"),
        "summary": altered(files, "evidence.json", b'"class": "C3"', b'"class": "C1"'),
        "line": altered(files, proof, b"c3-never-leaves", b"c1-never-leaves"),
        "policy": altered(files, policies_of(files)[0], b'"ask":false', b'"ask":true'),
        "content": resummed({**files, content: b"something else"}),
        "pin": resummed({**files, "device.vkey": b"another"}),
        "added": resummed({**files, "proofs/more.txt": b"{}"}),
        "left out": resummed({name: data for name, data in files.items() if name != proof}),
        "no summary": resummed({name: data for name, data in files.items() if name != "evidence.json"}),
        "other summary": resummed({**files, "evidence.json": b"[]"}),
    }
    assert [name for name, pack in wrong.items() if not check_pack(pack, practice.pin).problems] == []


def test_i12_content_that_was_not_committed_is_found_in_a_pack_that_is_whole_otherwise(
    practice: Practice,
) -> None:
    """Whoever makes a pack can put a salt, a commitment and a text into it; only true ones go together."""
    ledger = open_ledger(practice.book, practice.pin)
    gathered = gather(ledger, Selection(), whole=False)
    goal = next(line for line in gathered.lines if line.kind == "task_start")
    salts = read_salts(practice.root / "home" / "vault" / "salts", {goal.word("goal_commit")})
    (true,) = disclose([goal], salts, [QUESTION.encode(), b"another question"])
    elsewhere = next(line for line in gathered.lines if line.kind == "egress")
    forged = {
        "text": replace(true, payload=b"another question"),
        "salt": replace(true, salt=bytes(32)),
        "line": replace(true, seq=elsewhere.seq),
        "member": replace(true, member="args_commit"),
    }
    given = Given(verdict=ledger.verdict.report, selection=Selection(), disclosed=(true,))
    assert check_pack(build(gathered, given, ledger.pin), practice.pin).problems == ()
    for each in forged.values():
        files = build(gathered, replace(given, disclosed=(each,)), ledger.pin)
        assert check_pack(files, practice.pin).problems == (f"{each.file}: it is not what was committed",)


# --- a pack made anew by whoever wants it to say something else ----------------------------------------


@dataclass(frozen=True, kw_only=True)
class Forge:
    """A true pack, with its logs, of one of the golden books; and its parts, to be altered."""

    pin: Path
    bytes_of_pin: bytes
    gathered: Gathered
    given: Given

    @classmethod
    def of(cls, name: str) -> "Forge":
        pin = GOLDEN / f"{name}.pin"
        ledger = open_ledger(GOLDEN / name, pin)
        return cls(
            pin=pin,
            bytes_of_pin=ledger.pin,
            gathered=gather(ledger, Selection(), whole=True),
            given=Given(verdict=kept_of(ledger.verdict.report), selection=Selection()),
        )

    def files(self, **changes: Any) -> Files:
        """Return a pack with these changes to what its maker gives, all else derived so that it fits."""
        verdict = {**self.given.verdict, **changes.pop("verdict", {})}
        return build(self.gathered, replace(self.given, verdict=verdict, **changes), self.bytes_of_pin)

    def checked(self, **changes: Any) -> Checked:
        return check_pack(self.files(**changes), self.pin)

    def problems(self, **changes: Any) -> tuple[str, ...]:
        return self.checked(**changes).problems

    def without(self, *left_out: Entry) -> "Forge":
        """Return it without these lines and the proofs of them."""
        lines = tuple(line for line in self.gathered.lines if line not in left_out)
        proofs = {
            place: data for place, data in self.gathered.proofs.items() if place in set(map(ref, lines))
        }
        return replace(self, gathered=replace(self.gathered, lines=lines, proofs=proofs))

    def unproved(self, *places: Ref) -> "Forge":
        return replace(self, gathered=replace(self.gathered, unproved=places))

    def with_logs(self, logs: Files) -> "Forge":
        return replace(self, gathered=replace(self.gathered, logs=logs))

    def kind(self, kind: str) -> list[Entry]:
        return [line for line in self.gathered.lines if line.kind == kind]


@pytest.mark.parametrize("name", ["studio", "interrupted", "broken-off"])
def test_a_true_pack_with_its_logs_holds(name: str) -> None:
    forge = Forge.of(name)
    assert forge.problems() == ()
    assert forge.with_logs({}).problems() == ()


MARKUP: Final = "</p><form action='https://elsewhere.example'><input></form><p>"


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": {"book": "the practice of somebody else"}},
        {"verdict": {"claims_not_made": ["nothing: all of it was certified"]}},
        {"verdict": {"claims_not_made": []}},
        {"verdict": {"verdict": MARKUP}},
        {"verdict": {"exit": MARKUP}},
        {"verdict": {"exit": 1}},
        {"verdict": {"reasons": [{"code": MARKUP, "log": 0, "seq": 0}]}},
        {"verdict": {"pinned": MARKUP}},
        {"verdict": {"custody": "a safe"}},
        {"verdict": {"anchors": [{"kind": MARKUP, "more": [[]]}]}},
        {"selection": Selection(tasks=(MARKUP,))},
        {"selection": Selection(since_us=True)},
        {"languages": ("en", "en")},
    ],
    ids=lambda changes: "-".join((next(iter(changes)), sha256(repr(changes).encode()).hexdigest()[:6])),
)
def test_i4_what_a_pack_says_by_itself_is_held_to_its_form(changes: dict[str, Any]) -> None:
    forge = Forge.of("studio").with_logs({})
    assert forge.problems(**changes) == ("evidence.json: it is not what a pack holds",)


@pytest.mark.parametrize(
    "place", [(MARKUP, 0), (0, MARKUP), (True, 0), (0, -1)], ids=["log", "seq", "bool", "below"]
)
def test_i4_the_place_of_a_line_without_proof_is_two_numbers(place: Any) -> None:
    forge = Forge.of("studio").with_logs({})
    forge = replace(forge, gathered=replace(forge.gathered, unproved=(place,)))
    assert forge.problems() == ("evidence.json: it is not what a pack holds",)


def test_what_runs_and_records_show_in_codes_they_say_in_words(
    practice: Practice, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (each["task"] for each in tasks(practice, capsys))
    asked = ("runs",), ("runs", "show", second), ("runs", "compare", first, second), ("trace", "show")
    profile = ("--profile", str(practice.profile))
    for words in asked:
        assert main([*words, *profile]) == 0
        out = capsys.readouterr().out
        assert "C1: internal; C3: privileged" in out, words
        assert ("p95: 95 in 100 took no longer" in out) is (words[0] == "runs")
    assert main(["policy", "explain", "search_text", '{"query": "x"}', *profile]) == 0
    assert "internal" not in capsys.readouterr().out, "no code is shown"


def test_the_head_of_the_page_says_its_verdict_and_its_words_plainly(practice: Practice) -> None:
    text = re.sub(r"<[^>]+>", "", (practice.pack("pack") / "evidence.html").read_text(encoding="utf-8"))
    assert "PASS (exit code 0): the whole book was checked and holds" in text
    assert "PASS (codice 0): il libro intero" in text
    assert text.index("C2 personal data, C3 privileged") < text.index("What was asked")
    assert "Reason: c3-never-leaves (what is privileged never goes to another machine)" in text
    assert "on another machine (remote)" in text


def test_a_reason_of_the_verdict_says_where_only_if_it_is_somewhere() -> None:
    verdict = {"verdict": "INCOMPLETE", "exit": 2, "book": "b", "claims_not_made": [], "anchors": []}
    reasons = [{"code": "here", "log": 1, "seq": 0}, {"code": "log-only", "log": 1, "seq": None}]
    verdict["reasons"] = [*reasons, {"code": "nowhere", "log": None, "seq": None}]
    frame = Frame(verdict=verdict, how="", policy_logs=[], unproved=[], disclosed=[])
    assert "here (log 1, seq 0); log-only (log 1); nowhere<" in page(frame, {}, [], ["en"])


def test_whatever_stands_on_the_page_is_text() -> None:
    """Of all that is given to the page, nothing becomes an element, even had nobody looked at it before."""
    evil: Any = MARKUP
    reason = {"code": evil, "log": evil, "seq": evil}
    verdict = {"verdict": evil, "exit": evil, "book": evil, "reasons": [reason], "claims_not_made": [evil]}
    verdict["anchors"] = [evil]
    frame = Frame(verdict=verdict, how=evil, policy_logs=[evil], unproved=[(evil, evil)], disclosed=[])
    text = page(frame, {}, [], ["en"])
    assert text.count("elsewhere.example") == 12
    assert Page(text).tags.isdisjoint({"form", "input"})


def test_i4_no_line_that_others_rest_on_can_be_left_out() -> None:
    """Without the header the measures in force vanish, without the backend its model and where it stands."""
    forge = Forge.of("studio").with_logs({})
    for header in forge.kind("header"):
        found = forge.without(header).problems()
        assert found != ()
    by_name = {(line.log, line.word("name")) for line in forge.kind("backend")}
    for log, name in by_name:
        lost = [line for line in forge.kind("backend") if (line.log, line.word("name")) == (log, name)]
        found = forge.without(*lost).problems()
        sends = [e for e in forge.kind("egress") if (e.log, e.word("backend")) == (log, name)]
        why = "the record of the backend that it asks is not shown"
        assert sends != []
        assert set(found) == {f"{proof_name(ref(each))}: {why}" for each in sends}


STUDIO: Final = Forge.of("studio").with_logs({})
STUDIO_TASKS: Final = tuple(sorted({line.task for line in STUDIO.gathered.lines if line.task}))
KINDS: Final = sorted({line.kind for line in STUDIO.gathered.lines})


@settings(max_examples=60, deadline=None)
@given(
    places=st.one_of(
        st.sets(st.sampled_from(range(len(STUDIO.gathered.lines))), min_size=1, max_size=4),
        st.integers(0, len(STUDIO.gathered.lines) - 1).map(lambda at: set(range(at, at + 9))),
        st.sets(st.sampled_from(KINDS), min_size=1, max_size=3),
        st.sampled_from([{task} for task in STUDIO_TASKS]),
    ),
    by_name=st.booleans(),
    excused=st.booleans(),
)
@example(places={"egress", "egress_result"}, by_name=False, excused=False)
@example(places={"egress", "egress_result"}, by_name=True, excused=True)
@example(places={"task_end", "egress", "egress_result"}, by_name=False, excused=True)
@example(places={"backend"}, by_name=True, excused=False)
@example(places={STUDIO_TASKS[0]}, by_name=True, excused=False)
@example(places={STUDIO_TASKS[1]}, by_name=False, excused=False)
def test_i4_whatever_proofs_are_taken_away_the_pack_does_not_hold_without_a_doubt(
    places: set[Any], by_name: bool, excused: bool
) -> None:
    """Of a pack made anew without them. No pack can show that no other task or probe belongs to it.

    Each proof that is left is a true one: they are not checked over and over.
    """
    lines = STUDIO.gathered.lines
    gone = [each for at, each in enumerate(lines) if {at, each.kind, each.task} & places]
    forge = STUDIO.without(*gone).unproved(*map(ref, gone)) if excused else STUDIO.without(*gone)
    if len(gone) == len(lines):
        return  # nothing is no pack
    files = forge.files(selection=Selection(tasks=STUDIO_TASKS if by_name else ()))
    del files[SUMS]
    try:
        found = _check_contents(files, forge.pin)
    except ValueError:
        return  # a problem, which `check_pack` has words for
    if found.problems or found.is_open:
        return
    whole = {each.task for each in gone} - {each.task for each in forge.gathered.lines}
    assert not excused
    assert not whole or not by_name
    assert {each.kind for each in gone if each.task not in whole} <= {"backend", "egress", "egress_result"}
    assert {each.task for each in gone} - whole <= {""}


@pytest.mark.parametrize("language", ["it", "en"])
def test_i4_a_page_without_the_proofs_of_its_sends_does_not_say_that_nothing_left(language: Any) -> None:
    """Nor that nothing was denied or lowered; and an anchor that its maker names takes no doubt away."""
    sends = [each for each in STUDIO.gathered.lines if each.kind in {"egress", "egress_result", "declassify"}]
    anchors = [{"kind": "witness", "witness": "w.example/w1", "time": 1, "log": 0, "size": 99}]
    verdict = {"anchors": anchors, "claims_not_made": [*said.NOT_CLAIMED, said.WITNESSED]}
    forge = STUDIO.without(*sends)
    files = forge.files(verdict=verdict, languages=(language,))
    told = json.loads(files["evidence.json"])["statements"]
    codes = {each["code"] for statements in told.values() for each in statements}
    assert [each["code"] for each in told["left"]] == ["not_all_shown"]
    assert not [code for code in codes if code.startswith(("nothing", "nobody", "no_", "breach_nothing"))]
    page = files["evidence.html"].decode()
    assert sentence(told_as("not_all_shown"), language) in page
    assert {"it": "chi possiede la chiave", "en": "a holder of the device key"}[language] in page
    found = forge.checked(verdict=verdict, languages=(language,))
    for task in STUDIO_TASKS:
        (end,) = [each for each in STUDIO.kind("task_end") if each.task == task]
        for kind in ("egress", "egress_result"):
            count = end.body["counts"][kind]
            assert f"task {task}: its end counts {count} {kind}, and 0 are shown" in found.problems
    assert (found.verdict, found.anchors) == ("PASS", 1)


def test_i4_no_line_is_called_unproved_before_one_that_is_proved() -> None:
    """The seal that proves a line covers all of its log before it, so nobody lacks the proof of another."""
    send = STUDIO.kind("egress")[0]
    found = STUDIO.without(send).unproved(ref(send)).checked()
    place = f"log {send.log}, seq {send.seq}"
    assert f"evidence.json: {place} is called unproved, and a later line of it is proved" in found.problems
    assert found.doubts == ("INCOMPLETE",)


def told_as(code: str) -> Statement:
    return Statement(code=code, values={})


def test_i4_the_check_says_what_is_only_the_word_of_whoever_made_the_pack(
    practice: Practice, capsys: pytest.CaptureFixture[str]
) -> None:
    pack = practice.pack("pack")
    command = ["evidence", "--check", str(pack), "--pin", str(practice.pin)]
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["holds"], found["doubts"]) == (True, [])
    assert found["by_maker"] == {"verdict": "PASS", "anchors": 0}
    assert "no other task or probe" in found["not_shown"][0]
    assert main(command) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Its maker says PASS on the whole book, no anchor: only the book shows it" in shown
    assert "Not shown that no other task or probe belongs here" in shown


def test_i4_enclosed_logs_are_all_there_and_whole() -> None:
    forge = Forge.of("studio")
    logs = dict(forge.gathered.logs)
    last = max(name for name in logs if name.endswith(".jsonl"))
    cut = b"".join(line + b"\n" for line in logs[last].split(b"\n")[:3])
    number = int(last[:6])
    assert f"logs: log {number} has no end" in forge.with_logs({**logs, last: cut}).problems()
    without = {name: data for name, data in logs.items() if name != last}
    if without:
        assert any("is not enclosed" in each for each in forge.with_logs(without).problems())
    shown = forge.kind("task_end")[0]
    (found,) = forge.without(shown).problems()
    assert found == f"logs: log {shown.log} does not hold the lines that are shown, or more of that kind"


def test_i4_of_two_enclosed_logs_none_can_be_taken_away(practice: Practice) -> None:
    files = read_pack(practice.pack("pack", "--whole-logs"))
    assert check_pack(files, practice.pin).problems == ()
    first = min(name for name in files if name.startswith("logs/"))
    summary = files["evidence.json"].replace(f'  "{first[5:]}",\n'.encode(), b"")
    assert summary != files["evidence.json"]
    less = {name: data for name, data in files.items() if name != first}
    found = check_pack(resummed({**less, "evidence.json": summary}), practice.pin).problems
    assert "logs: log 0 is not enclosed, or nothing of it is shown" in found


def test_a_policy_that_was_never_in_force_does_not_belong_to_a_pack(practice: Practice) -> None:
    ledger = open_ledger(practice.book, practice.pin)
    gathered = gather(ledger, Selection(), whole=False)
    made_up = b'{"grants":[]}\n'
    given = Given(verdict=kept_of(ledger.verdict.report), selection=Selection(), policies=(made_up,))
    files = {**build(gathered, given, ledger.pin), policy_name(made_up): made_up}
    files |= derive(gathered.lines, given)
    found = check_pack(resummed(files), practice.pin).problems
    assert found == (f"{policy_name(made_up)}: it was in force in none of the logs",)


@pytest.mark.parametrize("name", ["evidence.json", "policies/deep.json"])
def test_a_file_that_is_nested_deeply_is_a_problem_and_no_crash(name: str, practice: Practice) -> None:
    files = read_pack(practice.pack("pack"))
    deep = b"[" * 200_000 + b"]" * 200_000
    found = check_pack(resummed({**files, name: deep}), practice.pin).problems
    assert found == ("evidence.json: it is not what a pack holds",)


def test_a_file_that_cannot_be_unpacked_is_an_error_in_words(tmp_path: Path) -> None:
    target = tmp_path / "pack.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", bytes(range(256)) * 40)
    data = bytearray(target.read_bytes())
    data[40:60] = b"\xff" * 20
    target.write_bytes(data)
    with pytest.raises(TraceError, match="no pack that can be read"):
        read_pack(target)
    assert main(["evidence", "--check", str(target)]) == 1


def test_what_the_verifier_does_not_claim_is_known_word_for_word() -> None:
    ours = (said.NOT_CLAIMED, said.NOT_ANCHORED, said.ANCHORED, said.WITNESSED)
    theirs = (
        akaion_verify.NOT_CLAIMED,
        akaion_verify.NOT_ANCHORED,
        akaion_verify.ANCHORED,
        akaion_verify.WITNESSED,
    )
    assert ours == theirs
    assert {word: akaion_verify.EXIT_CODES[word] for word in said.EXITS} == said.EXITS


@pytest.mark.parametrize("pin", [None, GOLDEN / "quiet.pin"], ids=["none", "another"])
def test_i4_nothing_is_gathered_from_a_book_that_nobody_vouches_for(pin: Path | None) -> None:
    with pytest.raises(TraceError, match="nothing in it is evidence"):
        gather(open_ledger(GOLDEN / "studio", pin), Selection(), whole=False)


def open_runs(practice: Practice) -> list[dict[str, Any]]:
    return [run.data() for run in wanted_runs(open_ledger(practice.book, practice.pin), Wanted())]


def test_the_command_checks_a_pack_and_says_under_which_fingerprint(
    practice: Practice, capsys: pytest.CaptureFixture[str]
) -> None:
    (first, _) = tasks(practice, capsys)
    pack = practice.pack("pack.zip", "--task", first["task"][:8])
    made = re.search(r"^Fingerprint +([0-9a-f]{64})$", capsys.readouterr().out, re.MULTILINE)
    assert main(["evidence", "--check", str(pack), "--pin", str(practice.pin), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert made is not None
    assert (found["holds"], found["fingerprint"]) == (True, made[1])
    other = practice.root / "other.vkey"
    shutil.copy(GOLDEN / "studio.pin", other)
    assert main(["evidence", "--check", str(pack), "--pin", str(other)]) == 1
    assert "UNTRUSTED" in capsys.readouterr().out


def test_a_pack_that_holds_is_not_accused_where_no_pin_was_given_and_none_is_found(
    practice: Practice, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With this device's key it holds; on a machine without one nothing can be said, and nothing is."""
    pack = practice.pack("pack.zip")
    assert main(["evidence", "--check", str(pack), "--profile", str(practice.profile)]) == 0
    monkeypatch.setenv("AKAION_HOME", str(practice.root / "elsewhere"))
    capsys.readouterr()
    assert main(["evidence", "--check", str(pack)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [line for line in err.splitlines() if "no pin was given: --pin FILE" in line] != []
    assert "UNTRUSTED" not in err


def test_what_is_missing_added_or_altered_in_a_pack_is_named_and_nothing_else(
    practice: Practice, capsys: pytest.CaptureFixture[str]
) -> None:
    """No fingerprint is shown then: that of the sums is the fingerprint of the pack as it was."""
    files = read_pack(practice.pack("pack"))
    proof = next(name for name in files if name.startswith("proofs/"))
    swapped = b"".join(reversed(files[SUMS].splitlines(keepends=True)))
    for name in ("device.vkey", "evidence.json", "README.txt", SUMS, policies_of(files)[0], proof):
        less = {each: data for each, data in files.items() if each != name}
        assert check_pack(less, practice.pin).problems == (f"{name}: missing",)
        if name not in {SUMS, proof}:
            more = {**files, name: b"x" + files[name]}
            assert check_pack(more, practice.pin).problems == (f"{name}: altered",)
    for changes, said_of in (
        ({proof: b"{}"}, (f"{proof}: altered", f"{proof}: FAIL")),
        ({"more.txt": b""}, ("more.txt: not listed",)),
        ({SUMS: swapped}, (f"{SUMS}: altered",)),
        ({SUMS: files[SUMS] + b"x"}, (f"{SUMS}: altered",)),
    ):
        assert check_pack({**files, **changes}, practice.pin).problems == said_of
    broken = practice.root / "broken.zip"
    write_pack({**files, "evidence.html": b"<p>"}, broken)
    command = ["evidence", "--check", str(broken), "--pin", str(practice.pin)]
    capsys.readouterr()
    assert main([*command, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["problems"], found["fingerprint"]) == (["evidence.html: altered"], None)
    assert main(command) == 1
    shown = capsys.readouterr().out
    assert ("evidence.html: altered" in shown, "Fingerprint" in shown) == (True, False)


def test_i4_a_file_that_whoever_made_the_sums_anew_left_out_is_missing(practice: Practice) -> None:
    files = read_pack(practice.pack("pack"))
    for name in ("device.vkey", "evidence.json", "README.txt"):
        less = resummed({each: data for each, data in files.items() if each != name})
        assert check_pack(less, practice.pin).problems == (f"{name}: missing",)


@pytest.mark.parametrize(
    ("logs", "italian", "english"),
    [([0], "nel log n. 0<", "in log no. 0<"), ([0, 2], "nei log n. 0, 2<", "in logs no. 0, 2<")],
    ids=["one", "two"],
)
def test_the_page_does_not_call_a_log_by_a_number_that_reads_as_none(
    logs: list[int], italian: str, english: str
) -> None:
    verdict = {"verdict": "PASS", "exit": 0, "book": "b", "claims_not_made": [], "anchors": [], "reasons": []}
    text = page(
        Frame(verdict=verdict, how="", policy_logs=logs, unproved=[], disclosed=[]), {}, [], ["it", "en"]
    )
    assert f"la policy in vigore {italian}" in text
    assert f"the policy that was in force {english}" in text


@pytest.mark.parametrize(("what", "status"), [("altered", 1), ("another pin", 3)])
def test_i4_of_a_book_that_does_not_verify_no_pack_is_made(
    what: str, status: int, practice: Practice, capsys: pytest.CaptureFixture[str]
) -> None:
    pin = GOLDEN / "studio.pin" if what == "another pin" else practice.pin
    if what == "altered":
        log = max(practice.book.glob("*.jsonl"))
        log.write_bytes(log.read_bytes().replace(b'"denied"', b'"allowed"', 1))
    target = practice.root / "pack"
    command = ["evidence", "--profile", str(practice.profile), "--pin", str(pin), "--since", "2000-01-01"]
    assert main([*command, "-o", str(target)]) == status
    assert not target.exists()
    assert "no pack was made" in capsys.readouterr().err


def test_an_interrupted_run_is_told_as_far_as_it_is_proved_and_the_rest_is_named(tmp_path: Path) -> None:
    target = tmp_path / "pack"
    command = ["evidence", "--folder", str(GOLDEN / "broken-off"), "--pin", str(GOLDEN / "broken-off.pin")]
    assert main([*command, "--since", "2000-01-01", "-o", str(target)]) == 2
    summary = json.loads((target / "evidence.json").read_bytes())
    assert summary["verdict"]["verdict"] == "INCOMPLETE"
    assert summary["unproved"] != []
    assert [each["code"] for each in summary["statements"]["asked"]] == ["asked_open", "incomplete"]
    assert check_pack(read_pack(target), GOLDEN / "broken-off.pin").problems == ()


def test_i4_a_task_of_which_a_line_was_left_out_is_called_incomplete() -> None:
    """Whoever makes a pack cannot drop a send of a task: its end counts them, and that line is proved too."""
    ledger = open_ledger(GOLDEN / "studio", GOLDEN / "studio.pin")
    gathered = gather(ledger, Selection(), whole=False)
    given = Given(verdict=kept_of(ledger.verdict.report), selection=Selection())

    def codes(lines: Sequence[Entry]) -> list[str]:
        told = json.loads(derive(lines, given)["evidence.json"])["statements"]["asked"]
        return [each["code"] for each in told if each["code"] == "incomplete"]

    assert codes(gathered.lines) == []
    sends = [line for line in gathered.lines if line.kind == "egress" and line.task]
    assert len(sends) > 5
    for send in sends:
        assert codes([line for line in gathered.lines if line is not send]) == ["incomplete"]


@pytest.mark.parametrize(
    "options",
    [["--task", "abcdabcd"], ["--since", "1999-01-01", "--until", "1999-01-02"], ["--since", "soon"], []],
    ids=["unknown-task", "empty-time", "no-time", "nothing"],
)
def test_what_names_no_run_makes_no_pack(options: list[str], practice: Practice) -> None:
    target = practice.root / "pack"
    assert main(["evidence", "--profile", str(practice.profile), *options, "-o", str(target)]) in {1, 2}
    assert not target.exists()


@pytest.mark.parametrize("name", ["../up", "/up", "a/b/c", "a\\b"])
def test_a_file_with_a_name_that_leads_elsewhere_is_no_pack(name: str, tmp_path: Path) -> None:
    hostile = tmp_path / "pack.zip"
    with zipfile.ZipFile(hostile, "w") as archive:
        archive.writestr(name, "x")
    with pytest.raises(TraceError, match="a name that no pack has"):
        read_pack(hostile)
    assert main(["evidence", "--check", str(hostile)]) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["evidence", "--check", "{pipe}"],
        ["evidence", "--check", "{folder}"],
        ["evidence", "--check", "{zip}", "--pin", "{pipe}"],
        ["runs", "--folder", "{folder}", "--witness", "{pipe}"],
        ["evidence", "--since", "2000-01-01", "-o", "x", "--earlier-policy", "{pipe}"],
        ["keys", "rotate", "--to", "{pipe}"],
        ["explain", "{pipe}"],
    ],
    ids=["pack", "pack-folder", "pin", "witness", "policy", "next-key", "text"],
)
def test_i7_no_command_waits_for_ever_on_a_pipe(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is named, or that stands in a folder in the place of a file."""
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    folder, pipe, pack = tmp_path / "folder", tmp_path / "pipe", tmp_path / "pack.zip"
    folder.mkdir()
    for each in (pipe, folder / "SHA256SUMS"):
        os.mkfifo(each)
    write_pack({"a.txt": b"1"}, pack)
    assert main([each.format(folder=folder, pipe=pipe, zip=pack) for each in words]) != 0


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    files = {"a.txt": b"1", "proofs/b.json": b"2"}
    for name in ("folder", "file.zip"):
        write_pack(files, tmp_path / name)
        assert read_pack(tmp_path / name) == files
