# SPDX-License-Identifier: Apache-2.0
"""The commands that need no model, run in this process: their output, their exit status, what they refuse."""

import hashlib
import io
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from runner.adapters.cli import main as command
from runner.adapters.cli.check import Check
from runner.adapters.cli.inert import to_json
from runner.adapters.cli.keys import fingerprint
from runner.adapters.cli.models import _LineMeter, _meter
from runner.adapters.cli.needs import checks
from runner.adapters.cli.screen import errors
from runner.assembly import book_name, construct
from runner.capability.models import Catalogue, models_dir
from runner.kernel.errors import LoopError
from runner.kernel.version import __version__
from runner.perimeter.trace.note import parse_vkey
from runner.testing import ScriptedServer, oblige

PROFILE = """\
profile: detached
policy:
  grants:
    - {tool: search_text, paths: [{path: files}]}
inference:
  local: {runtime: llamacpp, endpoint: 'http://127.0.0.1:9', model: scripted}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AKAION_PROFILE", raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    (tmp_path / "studio.yaml").write_text(PROFILE, encoding="utf-8")
    return tmp_path / "home"


@pytest.fixture
def akaion(home: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    del home

    def run(*arguments: str) -> tuple[int, str, str]:
        status = command.main(arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


# --- the frame -----------------------------------------------------------------------------------


def test_the_version_is_the_runners(akaion: Any) -> None:
    assert akaion("--version") == (0, f"akaion {__version__}\n", "")


COMMANDS = [
    *(("run",), ("chat",), ("doctor",), ("models", "list"), ("models", "fetch"), ("models", "verify")),
    *(("trace", "show"), ("trace", "path"), ("profile", "check")),
    *(("keys", word) for word in ("create", "show", "export", "rotate", "serve")),
    *(("policy", word) for word in ("check", "diff", "explain", "export")),
    *(("explain",), ("trace", "open")),
]


WITHOUT_JSON = {
    "policy export": "what it prints is JSON",
    "keys serve": "it has no result: it runs until it is ended",
    "runs list": "it only names another command",
}


def commands_of(command: Any, *words: str) -> Iterator[tuple[str, Any]]:
    """Every command below `command` that does something, by its words."""
    inner = getattr(command, "commands", {})
    if not inner or command.invoke_without_command:
        yield " ".join(words), command
    for word, each in inner.items():
        yield from commands_of(each, *words, word)


def test_every_command_prints_json_for_a_script(akaion: Any) -> None:
    commands = dict(commands_of(typer.main.get_command(command.app)))
    assert WITHOUT_JSON.keys() <= commands.keys()
    lacking = {
        words
        for words, each in commands.items()
        if not any("--json" in option.opts for option in each.params)
    }
    assert lacking == WITHOUT_JSON.keys()
    assert json.loads(akaion("policy", "export")[1])["grants"]


def test_the_place_of_the_record_is_told_as_data(akaion: Any, home: Path) -> None:
    place = home / "trace"
    for exists in (False, True):
        told = json.loads(akaion("trace", "path", "--json")[1])
        assert told == {"folder": str(place), "exists": exists}
        assert akaion("trace", "path")[1] == f"{place}\n"
        place.mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_of_each_command_has_an_example(akaion: Any, words: tuple[str, ...]) -> None:
    status, out, _ = akaion(*words, "--help")
    assert status == 0
    assert "Example:  akaion" in out


def test_the_help_of_run_documents_the_exit_statuses(akaion: Any) -> None:
    _, out, _ = akaion("run", "--help")
    assert "  3    not found: the files do not hold the answer\n" in out


def test_the_help_of_trace_says_that_reading_is_not_proving(akaion: Any) -> None:
    assert "does not prove" in akaion("trace", "--help")[1]


def test_i12_a_defect_is_told_by_kind_and_place_without_its_message() -> None:
    class Rossi:
        pass

    with pytest.raises(TypeError, match="Rossi") as caught:
        to_json({"client": Rossi()})
    assert re.fullmatch(r"TypeError at inert\.py:\d+", command._where(caught.value))


def test_a_failure_nobody_foresaw_is_one_line(akaion: Any, tmp_path: Path) -> None:
    """The working directory is gone: an OSError that no room translates."""
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    status, out, err = akaion("trace", "path")
    assert (status, out) == (1, "")
    assert err.startswith("akaion: internal error: FileNotFoundError (error 2) at ")
    assert len(err.splitlines()) == 1


# --- profile -------------------------------------------------------------------------------------


def test_a_profile_is_summed_up(akaion: Any, home: Path) -> None:
    status, out, _ = akaion("profile", "check", "studio.yaml")
    assert status == 0
    assert "May leave    nothing" in out
    assert "search_text: files (C2 by default) [read]" in out
    assert not home.exists()


PAGES = "{tool: web_fetch, hosts: [{host: www.example.org}], sink: {to: network, max_class: C1}}"
OUTWARD = (PROFILE.replace("detached", "attached") + "perimeter: {max_egress_class: C1}\n").replace(
    "    - {tool: search_text, paths: [{path: files}]}\n",
    f"    - {PAGES}\n    - {{tool: write_file, paths: [{{path: files, class: C3}}]}}\n",
)


def test_i1_a_profile_says_which_grants_write_and_which_lead_out_and_where(akaion: Any) -> None:
    Path("out.yaml").write_text(OUTWARD, encoding="utf-8")
    status, out, _ = akaion("profile", "check", "out.yaml")
    said = " ".join(out.split())
    assert status == 0
    assert "there is no remote backend, but web_fetch leads out" in said
    assert "write_file: files (C3) [write]" in said
    assert (
        "web_fetch: pages at www.example.org; it carries content up to class C1 to network [network]" in said
    )


def test_a_profile_as_json_holds_the_judged_configuration(akaion: Any) -> None:
    data = json.loads(akaion("profile", "check", "studio.yaml", "--json")[1])
    assert data["ok"] is True
    assert data["config"]["inference"]["local"]["endpoint"] == "http://127.0.0.1:9"


def test_every_mistake_of_a_profile_is_listed(akaion: Any) -> None:
    Path("studio.yaml").write_text(PROFILE + "budget: {steps: 0}\nnonsense: 1\n", encoding="utf-8")
    status, out, _ = akaion("profile", "check", "studio.yaml", "--json")
    mistakes = json.loads(out)["mistakes"]
    assert status == 2
    assert [(m["line"], m["where"]) for m in mistakes] == [(7, "budget.steps"), (8, "nonsense")]
    assert all(mistake["fix"] for mistake in mistakes)
    status, out, err = akaion("profile", "check", "studio.yaml")
    assert (status, out) == (2, "")
    assert "studio.yaml:7: budget.steps" in err


def test_a_tool_that_does_not_exist_is_a_mistake_of_the_profile(akaion: Any) -> None:
    """I1: the policy is compiled too, not only the form of the file."""
    Path("studio.yaml").write_text(PROFILE.replace("search_text", "browser"), encoding="utf-8")
    status, _, err = akaion("run", "-p", "studio.yaml", "Who?")
    assert status == 2
    assert "no tool of this name is here" in err
    assert "open_profile(tools=[...])" in err


OWN = PROFILE.replace(
    "inference:",
    """    - tool: send_mail
      arguments: {copy: {pattern: '.+@example[.]org'}}
      sink: {to: network, max_class: C2, payload: [text], cases: [{to: [{values: [a@example.org]}]}]}
inference:""",
)
"""A profile that grants a tool of the program's own, and speaks of its arguments."""
REMARK = "send_mail: a tool of the program's own; its arguments are not known here"


def test_what_runs_nothing_reads_a_profile_that_grants_a_tool_of_the_program(akaion: Any) -> None:
    """Whoever signs a profile has no program at hand: they are told what is assumed, and nothing runs."""
    Path("own.yaml").write_text(OWN, encoding="utf-8")
    status, out, _ = akaion("profile", "check", "own.yaml")
    assert (status, REMARK in " ".join(out.split())) == (0, True)
    for words in (("profile", "check"), ("policy", "check"), ("policy", "diff", "studio.yaml")):
        status, out, err = akaion(*words, "own.yaml", "--json")
        assert json.loads(out)["remarks"] == [REMARK], err
        assert "remarks" in json.loads(akaion(*words, "studio.yaml", "--json")[1])
    assert any("send_mail" in each for each in json.loads(out)["newly_permitted"])
    status, out, _ = akaion("policy", "explain", "send_mail", '{"x": 1}', "-p", "own.yaml", "--json")
    assert "its arguments are not known here" in json.loads(out)["why"]
    assert akaion("run", "-p", "own.yaml", "Who?")[0] == 2


MISTYPED = """\
profile: detached
policy:
  grants:
    - tool: list_dir
      paths: [studio]
    - tool: raed_file
      paths: [studio]
"""


@pytest.mark.parametrize(
    "words",
    [
        *(("profile", "check"), ("policy", "check"), ("policy", "diff", "own.yaml")),
        *(("policy", "export", "-p"), ("policy", "explain", "list_dir", "-p"), ("bin", "list", "-p")),
        ("run", "Who?", "-p"),
    ],
    ids=" ".join,
)
def test_i1_a_shipped_tool_written_wrongly_is_a_mistake_with_its_line_and_the_likely_name(
    akaion: Any, words: tuple[str, ...]
) -> None:
    """Taken for a tool of the program's own, it would only be a remark: and nothing would read a file."""
    Path("own.yaml").write_text(OWN, encoding="utf-8")
    Path("typo.yaml").write_text(MISTYPED, encoding="utf-8")
    status, out, err = akaion(*words, "typo.yaml")
    assert (status, out) == (2, "")
    said = " ".join(err.split())
    assert "typo.yaml:6: policy.grants.1.tool: no tool of this name is here" in said
    assert "did you mean read_file?" in said


def test_a_mistyped_tool_is_among_the_mistakes_in_json(akaion: Any) -> None:
    Path("typo.yaml").write_text(MISTYPED, encoding="utf-8")
    status, out, _ = akaion("profile", "check", "typo.yaml", "--json")
    (mistake,) = json.loads(out)["mistakes"]
    assert (status, mistake["line"], mistake["where"]) == (2, 6, "policy.grants.1.tool")
    assert mistake["fix"].startswith("did you mean read_file?")


@pytest.mark.parametrize(
    "said", ["trusted: true", "reads: {class: C1}", "sink: {to: network, max_class: C2}"], ids=lambda s: s[:5]
)
def test_a_tool_that_its_grant_says_is_the_programs_may_be_called_almost_alike(
    akaion: Any, said: str
) -> None:
    mine = MISTYPED.replace("raed_file\n      paths: [studio]", f"read_files\n      {said}")
    Path("mine.yaml").write_text(mine, encoding="utf-8")
    status, out, err = akaion("profile", "check", "mine.yaml", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["remarks"][0].startswith("read_files: a tool of the program's own")


def test_i9_no_digest_is_told_that_the_program_alone_can_know(akaion: Any) -> None:
    """An auditor compares it with the one in a log's header: one without the arguments would differ."""
    Path("own.yaml").write_text(OWN, encoding="utf-8")
    status, out, err = akaion("policy", "export", "-p", "own.yaml")
    assert (status, out) == (2, "")
    assert "its digest names the arguments of send_mail" in " ".join(err.split())
    assert json.loads(akaion("policy", "check", "own.yaml", "--json")[1])["digest"] is None
    digests = json.loads(akaion("policy", "diff", "studio.yaml", "own.yaml", "--json")[1])["digests"]
    assert digests["old"] is not None
    assert digests["new"] is None


def test_p3_a_runtime_with_an_assumed_tool_is_not_entered(home: Path) -> None:
    del home
    Path("own.yaml").write_text(OWN, encoding="utf-8")
    runtime = construct("own.yaml", assume=True)
    assert runtime.assumed == ("send_mail",)
    with pytest.raises(LoopError, match="made to be read"), runtime:
        pass


SECOND = "perimeter: {classifier: 'local:smollm2-135m-instruct'}\n"


def test_who_judges_beside_the_rules_is_named_and_its_missing_weights_too(akaion: Any) -> None:
    assert "Classifier   rules only" in akaion("profile", "check", "studio.yaml")[1]
    Path("studio.yaml").write_text(PROFILE + SECOND, encoding="utf-8")
    status, out, _ = akaion("profile", "check", "studio.yaml")
    assert status == 0
    assert "rules, and smollm2-135m-instruct in this process as second opinion" in out
    assert "there is no remote backend" in out
    assert "Warning: the weights of smollm2-135m-instruct are missing" in out


def test_a_model_that_no_catalogue_has_is_a_mistake_to_check_and_run_alike(akaion: Any) -> None:
    Path("studio.yaml").write_text(PROFILE + "perimeter: {classifier: 'local:none-such'}\n", encoding="utf-8")
    for words in (("profile", "check", "studio.yaml"), ("run", "x", "-p", "studio.yaml")):
        status, out, err = akaion(*words)
        assert (status, out) == (2, "")
        assert "studio.yaml:7: perimeter.classifier: the catalogue has no such model" in err


def test_missing_weights_end_check_with_0_and_run_with_1(akaion: Any) -> None:
    Path("studio.yaml").write_text(PROFILE + SECOND, encoding="utf-8")
    assert akaion("profile", "check", "studio.yaml")[0] == 0
    status, _, err = akaion("run", "x", "-p", "studio.yaml")
    assert status == 1
    assert "akaion models fetch smollm2-135m-instruct" in err


def test_every_warning_is_printed(akaion: Any) -> None:
    """Weights of two models and two folders are missing: four warnings, not the first."""
    Path("studio.yaml").write_text(
        "profile: detached\nperimeter: {classifier: 'local:smollm2-135m-instruct'}\n"
        "policy: {grants: [{tool: search_text, paths: [gone, lost]}]}\n",
        encoding="utf-8",
    )
    status, out, _ = akaion("profile", "check", "studio.yaml")
    assert status == 0
    assert out.count("Warning: ") == 4
    assert out.count("Warning: the weights of") == 2
    assert len(json.loads(akaion("profile", "check", "studio.yaml", "--json")[1])["warnings"]) == 4


SHARING = """\
profile: attached
perimeter:
  redaction: on
  declassification: ask
  classifier_fault: as_c3
  locality_required: {C3: L1}
  registers: {clients: clients.yaml, public: courts.yaml}
policy:
  grants:
    - {tool: search_text, paths: [{path: files, matter: rossi, redactable: true}]}
inference:
  local: {runtime: llamacpp, endpoint: 'http://127.0.0.1:9', model: scripted}
  remote: {backend: openai, endpoint: 'https://models.example', model: large}
"""


def test_the_summary_hides_nothing_that_lowers_protection(akaion: Any) -> None:
    for register in ("clients", "courts"):
        Path(f"{register}.yaml").write_text("- Tribunale di Prova\n", encoding="utf-8")
    Path("studio.yaml").write_text(SHARING, encoding="utf-8")
    status, out, _ = akaion("profile", "check", "studio.yaml")
    said = dict(re.split(r"  +", line, maxsplit=1) for line in out.splitlines())
    assert status == 0
    assert "content up to class C1" in said["May leave"]
    assert "C2 content that a person lets go" in said["May leave"]
    assert "C2 content whose findings were replaced by tokens" in said["May leave"]
    assert said["Redaction"].startswith("on: ")
    assert said["Let go"] == "a person may let C2 content of a task go"
    assert said["Its faults"].startswith("count as C3")
    assert said["Registers"] == "clients: clients.yaml, public: courts.yaml"
    assert said["Matters"] == "rossi"
    assert said["Local grade"] == "C2 needs L0, C3 needs L1"
    assert said["Enforcement"] == "cooperative"
    assert said["Grant"].startswith(
        "search_text: files (C2 by default, matter rossi, redactable: C1 once nothing is found) [read]"
    )


def test_the_summary_of_a_strict_profile_lowers_nothing(akaion: Any) -> None:
    _, out, _ = akaion("profile", "check", "studio.yaml")
    said = dict(re.split(r"  +", line, maxsplit=1) for line in out.splitlines())
    assert said["May leave"] == "nothing"
    assert (said["Redaction"], said["Let go"]) == ("off", "nobody is asked")
    assert (said["Registers"], said["Matters"]) == ("none", "none")


def test_missing_weights_are_a_warning_of_a_right_profile(akaion: Any) -> None:
    status, out, _ = akaion("profile", "check", "detached")
    assert status == 0
    assert "Warning: the weights of" in out


# --- keys and trace ------------------------------------------------------------------------------

OTHER_PIN: Final = "akaion/80f712441a376931/device+cea32d1c+AeuCfI4PgrZ645HxFAxoX4EJ3JwkSihrCOdIo++FfPDm"


def test_a_key_that_is_not_there_is_not_made_by_looking(akaion: Any, home: Path) -> None:
    status, _, err = akaion("keys", "show")
    assert (status, (home / "keys").exists()) == (1, False)
    assert "Fix: `akaion keys create`" in err


def test_the_key_is_made_on_first_use_and_said_so(akaion: Any, home: Path) -> None:
    status, _, err = akaion("keys", "export", "device.vkey")
    assert status == 0
    assert "A new device key was made" in err
    out = akaion("keys", "show", "--json")[1]
    key = json.loads(out)
    name, public = parse_vkey(key["vkey"])
    assert name == f"{book_name(public)}/device"
    assert key["fingerprint"] == fingerprint(public)
    assert key["fingerprint"].replace(" ", "")[:16] == book_name(public).removeprefix("akaion/")
    assert stat.S_IMODE((home / "keys" / "device.key").stat().st_mode) == 0o600
    assert akaion("keys", "show", "--json") == (0, out, "")


def test_the_pin_is_the_verifier_key_and_is_refused_inside_the_record(akaion: Any, home: Path) -> None:
    """I4: a pin that lies with the record proves nothing."""
    key = json.loads(akaion("keys", "create", "--json")[1])["vkey"]
    assert akaion("keys", "export", "device.vkey")[0] == 0
    assert Path("device.vkey").read_text("ascii") == key + "\n"
    (home / "trace").mkdir()
    status, _, err = akaion("keys", "export", str(home / "trace" / "device.vkey"))
    assert status == 1
    assert "inside the trace folder" in err


@pytest.mark.parametrize("kept", [f"{OTHER_PIN}\n", "my letter"], ids=["another-key", "no-key"])
def test_i4_an_export_never_overwrites_a_file_that_holds_something_else(akaion: Any, kept: str) -> None:
    """The pin of another device may have no second copy. This key again, and an empty file, are no loss."""
    Path("device.vkey").write_text(kept, encoding="ascii")
    status, _, err = akaion("keys", "export", "device.vkey")
    assert (status, Path("device.vkey").read_text("ascii")) == (1, kept)
    assert "Fix: name another file" in err
    Path("device.vkey").write_text("", encoding="ascii")
    assert [akaion("keys", "export", "device.vkey")[0] for _ in range(2)] == [0, 0]


def test_a_pin_that_cannot_be_written_is_one_message(akaion: Any) -> None:
    status, _, err = akaion("keys", "export", "nowhere/device.vkey")
    assert status == 1
    assert "auditor's pin" in err
    assert "Traceback" not in err


def test_a_key_is_created_once(akaion: Any, home: Path) -> None:
    status, out, err = akaion("keys", "create", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == json.loads(akaion("keys", "show", "--json")[1])
    made = (home / "keys" / "device.key").read_bytes()
    status, _, err = akaion("keys", "create")
    assert status == 1
    assert "akaion keys rotate" in err
    assert (home / "keys" / "device.key").read_bytes() == made


def test_the_export_says_what_it_wrote(akaion: Any) -> None:
    """Which key it was stands there too: of two profiles each may have its own."""
    key = json.loads(akaion("keys", "create", "--json")[1])
    told = json.loads(akaion("keys", "export", "device.vkey", "--json")[1])
    assert told == {"pin": "device.vkey", "profile": "detached", **key}
    Path("studio.yaml").write_text(PROFILE + "trace: {keys: other}\n", encoding="utf-8")
    out = akaion("keys", "export", "other.vkey", "--profile", "studio.yaml")[1].replace("\n", "")
    assert "studio.yaml" in out
    assert "file: " in out


def test_a_keyring_that_is_not_here_names_the_fix(akaion: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    Path("studio.yaml").write_text(PROFILE + "trace: {custody: keyring}\n", encoding="utf-8")
    for word in ("create", "show", "rotate"):
        status, _, err = akaion("keys", word, "--profile", "studio.yaml")
        assert status == 1
        assert "pip install 'akaion-runner[keyring]'" in err
    check = found("device key")
    assert (check.grade, "pip install" in check.fix) == ("fail", True)


def test_a_signer_that_is_not_here_names_the_fix(akaion: Any) -> None:
    Path("studio.yaml").write_text(PROFILE + "trace: {custody: 'process:nobody'}\n", encoding="utf-8")
    for words in (("keys", "show"), ("keys", "export", "pin"), ("run", "Why?")):
        status, _, err = akaion(*words, "--profile", "studio.yaml")
        assert status == 1
        assert "akaion keys serve" in err
    check = found("device key")
    assert (check.grade, "akaion keys serve" in check.fix) == ("fail", True)


def test_a_custody_that_is_none_is_a_mistake_with_its_line(akaion: Any) -> None:
    Path("studio.yaml").write_text(PROFILE + "trace: {custody: hardware}\n", encoding="utf-8")
    status, _, err = akaion("keys", "show", "--profile", "studio.yaml")
    assert status == 2
    assert "write file, keyring, or process:SOCKET" in err


def test_the_seed_is_never_printed(akaion: Any, home: Path) -> None:
    """I5."""
    said = akaion("keys", "export", "device.vkey")[1] + akaion("keys", "show")[1]
    assert (home / "keys" / "device.key").read_text("ascii").strip() not in said


def test_the_path_of_the_record_follows_the_profile(akaion: Any, home: Path, tmp_path: Path) -> None:
    assert akaion("trace", "path")[1] == f"{home}/trace\n"
    Path("studio.yaml").write_text(PROFILE + "trace: {path: book}\n", encoding="utf-8")
    assert akaion("trace", "path", "--profile", "studio.yaml")[1] == f"{tmp_path}/book\n"


def test_a_record_that_is_not_there_is_one_message(akaion: Any) -> None:
    status, _, err = akaion("trace", "show")
    assert status == 1
    assert "there is no record" in err


def test_a_record_is_shown_inert_and_a_denial_is_in_it(akaion: Any, tmp_path: Path) -> None:
    body = {"backend": "remote\x1b[2J", "decision": "denied", "class": "C2", "reason": "above-ceiling"}
    record = {"body": body, "kind": "egress", "seq": 0, "ts": 1_767_225_600_000_000}
    (tmp_path / "book").mkdir()
    name = f"000000-{'0' * 32}.jsonl"
    (tmp_path / "book" / name).write_text(json.dumps(record) + "\n", encoding="utf-8")
    status, out, _ = akaion("trace", "show", "book")
    assert status == 0
    assert "2026-01-01 00:00:00" in out
    assert "denied" in out
    assert "remote\\x1b[2J" in out
    data = json.loads(akaion("trace", "show", "book", "--json")[1])
    assert data["logs"][0]["records"] == [record]


def test_i4_a_record_is_carried_in_the_page_that_verifies_it_and_no_name_in_it_ends_the_data(
    akaion: Any, tmp_path: Path
) -> None:
    """Every name that ends in .jsonl is carried, wrong ones too: the page, not this program, judges them."""
    (tmp_path / "book").mkdir()
    log, stray, link = f"000000-{'0' * 32}.jsonl", "<script>.jsonl", "link.jsonl"
    for name in (log, stray, "notes.txt"):
        (tmp_path / "book" / name).write_bytes(b"torn")
    (tmp_path / "book" / link).symlink_to(tmp_path / "book" / log)
    status, out, err = akaion("trace", "open", "book", "--output", "page.html", "--no-browser")
    assert (status, out, err) == (0, "page.html\n", "")
    page = Path("page.html").read_text(encoding="utf-8")
    data = page.partition('<script type="application/json" id="book">')[2].partition("</script>")[0]
    assert json.loads(data) == {"files": [[log, "dG9ybg=="], [stray, "dG9ybg=="], [link, None]]}
    assert "<" not in data
    assert page.count("<script>\n") == 2
    assert stat.S_IMODE(Path("page.html").stat().st_mode) == 0o600


@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_no_page_is_made_of_a_folder_without_a_record(akaion: Any, tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    status, _, err = akaion("trace", "open", folder, "-o", "page.html", "--no-browser")
    assert status == 1
    assert "Fix:" in err
    assert not Path("page.html").exists()


# --- policy --------------------------------------------------------------------------------------


def test_i1_a_call_is_explained_without_being_run(akaion: Any) -> None:
    asked = ("policy", "explain", "search_text", "--profile", "studio.yaml", "--json")
    status, out, _ = akaion(*asked[:3], '{"query": "Rossi", "path": "files"}', *asked[3:])
    assert (status, json.loads(out)["decision"]) == (0, "allow")
    status, out, _ = akaion(*asked[:3], '{"query": "Rossi", "path": "../etc"}', *asked[3:])
    assert (status, json.loads(out)["rule"]) == (4, "path-outside-grant")
    status, out, _ = akaion("policy", "explain", "shell", "-p", "studio.yaml")
    assert status == 4
    assert "granted tools: search_text" in out


def test_i1_what_the_user_says_names_what_a_call_is_for(akaion: Any) -> None:
    """`--said` is tried as a task's text would be: the same call asks without it."""
    held = "{tool: search_text, sink: {to: write, max_class: C2, payload: [path]}, paths"
    Path("held.yaml").write_text(PROFILE.replace("{tool: search_text, paths", held), encoding="utf-8")
    asked = ("policy", "explain", "search_text", '{"query": "Rossi", "path": "files"}', "-p", "held.yaml")
    status, out, _ = akaion(*asked, "--json")
    found = json.loads(out)
    assert (status, found["decision"], found["rule"]) == (0, "ask", "critical-not-named")
    assert found["why"].endswith("nobody named query")
    status, out, _ = akaion(*asked, "--said", "find Rossi, please", "--json")
    assert (status, json.loads(out)["decision"]) == (0, "allow")


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("web_fetch", {"url": "https://www.example.org/rates"}, (0, "allow", "grant.web_fetch")),
        (
            "web_fetch",
            {"url": "https://www.example.org/RSSMRA85T10A562S"},
            (4, "deny", "class-above-ceiling"),
        ),
        ("web_fetch", {"url": "https://example.com/"}, (4, "deny", "argument-outside-grant")),
        ("write_file", {"path": "files/a.txt", "text": "x"}, (0, "allow", "grant.write_file")),
        ("write_file", {"path": "files/.hidden/a.txt", "text": "x"}, (4, "deny", "refused-by-tool")),
    ],
    ids=["page", "page that says too much", "other host", "file", "hidden file"],
)
def test_i1_what_a_run_would_refuse_is_no_allow(
    akaion: Any, tool: str, arguments: dict[str, str], expected: tuple[int, str, str]
) -> None:
    Path("out.yaml").write_text(OUTWARD, encoding="utf-8")
    said = ("--said", f"get {arguments.get('url', 'it')} please")
    status, out, _ = akaion(
        "policy", "explain", tool, json.dumps(arguments), "-p", "out.yaml", *said, "--json"
    )
    found = json.loads(out)
    assert (status, found["decision"], found["rule"]) == expected
    if found["rule"] == "argument-outside-grant":
        assert found["why"].endswith("pages are asked for at www.example.org")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://library.example.org/a", "it is asked for with the credential env:TOK"),
        ("https://www.example.org/a", "no credential is sent"),
        ("http://library.example.org/a", "http is not granted there: write https"),
        ("https://Library.example.org/a", "write https:// and the host in lower case"),
        ("http://other.example/a", "pages are asked for at library.example.org"),
    ],
    ids=["login", "nobody", "http", "capitals", "elsewhere"],
)
def test_i5_of_a_page_it_is_said_as_whom_it_is_asked_for_or_why_not(
    akaion: Any, url: str, words: str
) -> None:
    hosts = PAGES.replace("      reads:", "        - www.example.org\n      reads:")
    Path("pages.yaml").write_text(hosts, encoding="utf-8")
    asked = ("policy", "explain", "web_fetch", json.dumps({"url": url}), "-p", "pages.yaml")
    found = json.loads(akaion(*asked, "--said", f"get {url}", "--json")[1])
    assert words in found["why"]
    assert ("pages are asked for" in found["why"]) == ("other" in url)


@pytest.mark.parametrize("arguments", ["[]", "{", "nothing"])
def test_arguments_that_are_no_object_are_refused(akaion: Any, arguments: str) -> None:
    status, _, err = akaion("policy", "explain", "search_text", arguments, "-p", "studio.yaml")
    assert status == 2
    assert "JSON object" in err


def test_i1_a_changed_profile_says_what_it_opens_and_a_script_can_stop_at_it(
    akaion: Any, tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    Path("wider.yaml").write_text(PROFILE.replace("{path: files}", "{path: files}, more"), encoding="utf-8")
    assert akaion("policy", "diff", "studio.yaml", "studio.yaml", "--exit-code")[0] == 0
    status, out, _ = akaion("policy", "diff", "studio.yaml", "wider.yaml", "--exit-code")
    assert status == 1
    assert f"search_text may reach {tmp_path}/more (C2 by default)" in out
    data = json.loads(akaion("policy", "diff", "wider.yaml", "studio.yaml", "--json")[1])
    assert data["newly_permitted"] == []
    assert data["no_longer"] == [f"search_text may reach {tmp_path}/more (C2 by default)"]
    assert data["digests"]["old"] != data["digests"]["new"]


def test_the_exported_policy_is_the_one_whose_digest_is_shown(akaion: Any) -> None:
    line = akaion("policy", "export", "-p", "studio.yaml")[1].rstrip("\n")
    digest = hashlib.sha256(b"akaion-policy/1\0" + line.encode()).hexdigest()
    assert json.loads(akaion("policy", "check", "studio.yaml", "--json")[1])["digest"] == digest


def test_a_grant_that_is_too_wide_is_a_finding_and_a_status(akaion: Any) -> None:
    assert akaion("policy", "check", "studio.yaml") == (0, "nothing to remark\n", "")
    Path("wide.yaml").write_text(PROFILE.replace("{path: files}", "/usr"), encoding="utf-8")
    status, out, _ = akaion("policy", "check", "wide.yaml")
    assert status == 1
    assert out.startswith("wide.yaml:4: policy.grants.0.paths.0: /usr holds far more")
    data = json.loads(akaion("policy", "check", "wide.yaml", "--json")[1])
    assert [(each["line"], each["where"]) for each in data["findings"]] == [(4, "policy.grants.0.paths.0")]


PAGES = """\
profile: attached
perimeter: {max_egress_class: C1}
policy:
  grants:
    - tool: web_fetch
      hosts:
        - {host: library.example.org, credential: 'env:TOK'}
      reads: {class: C1}
      sink: {to: network, max_class: C1}
"""


@pytest.mark.parametrize(
    "words",
    [
        ("diff", "remote.yaml", "remote.yaml"),
        ("explain", "x", "-p", "remote.yaml"),
        ("export", "-p", "remote.yaml"),
        ("check", "remote.yaml"),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("of", ["model", "pages"])
def test_i5_what_a_profile_permits_is_read_without_its_credential(
    words: tuple[str, ...], of: str, akaion: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is run: whoever signs a profile has no token. With one, it stays where it is."""
    remote = REMOTE.format(url="https://models.example").replace(
        "model: m", "model: m, credential: 'env:TOK'"
    )
    if of == "pages":
        remote = PAGES
    Path("remote.yaml").write_text(remote, encoding="utf-8")
    monkeypatch.delenv("TOK", raising=False)
    status, out, err = akaion("policy", *words)
    assert (status != 2, bool(out), err) == (True, True, "")
    monkeypatch.setenv("TOK", "secret")
    assert akaion("policy", *words)[0] == status
    assert os.environ["TOK"] == "secret"
    monkeypatch.delenv("TOK")
    assert akaion("profile", "check", "remote.yaml")[0] == 2


def test_i5_where_a_profile_logs_in_is_said_by_the_reference(
    akaion: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pages.yaml").write_text(PAGES, encoding="utf-8")
    Path("before.yaml").write_text(PAGES.replace(", credential: 'env:TOK'", ""), encoding="utf-8")
    opened = json.loads(akaion("policy", "diff", "before.yaml", "pages.yaml", "--json")[1])
    words = "web_fetch may log in to library.example.org with the credential env:TOK"
    assert opened["newly_permitted"] == [f"{words}; before: without a credential"]
    digests = opened["digests"]
    assert digests["old"] != digests["new"], "the record names the digest of what was permitted"
    other = ("policy", "explain", "web_fetch", '{"url": "https://other.example/"}', "-p", "pages.yaml")
    assert "library.example.org with the credential env:TOK" in " ".join(akaion(*other)[1].split())
    monkeypatch.delenv("TOK", raising=False)
    status, _, err = akaion("profile", "check", "pages.yaml")
    assert (status, "pages.yaml:7: policy.grants.0.hosts.0.credential" in err) == (2, True)
    assert "TOK is not set" in err
    assert "to mend it, see: akaion profile check pages.yaml" in " ".join(
        akaion("doctor", "-p", "pages.yaml")[1].split()
    )
    assert "policy.grants.0.hosts.0.credential: the variable TOK is not set" in " ".join(
        akaion("doctor", "-p", "pages.yaml")[1].split()
    )
    monkeypatch.setenv("TOK", "quercia")
    status, out, err = akaion("profile", "check", "pages.yaml")
    assert (status, "quercia" in out + err, "too short" in err) == (2, False, True)
    monkeypatch.setenv("TOK", "quercia-gialla")
    status, out, err = akaion("profile", "check", "pages.yaml")
    assert (status, "quercia" in out + err) == (0, False)
    assert "library.example.org with the credential env:TOK" in " ".join(out.split())


@pytest.mark.parametrize("command", [("index",), ("search", "words")], ids=["index", "search"])
def test_who_searches_without_a_profile_is_told_to_name_theirs(command: tuple[str, ...], akaion: Any) -> None:
    status, _, err = akaion(*command)
    assert (status, "or name yours with --profile" in " ".join(err.split())) == (2, True)


def test_a_token_that_is_sent_without_a_scheme_is_warned_of(
    akaion: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pages.yaml").write_text(
        PAGES.replace("env:TOK'", "env:TOK', header: Authorization"), encoding="utf-8"
    )
    for token, warned in (("quercia-gialla", True), ("Bearer quercia-gialla", False)):
        monkeypatch.setenv("TOK", token)
        status, out, _ = akaion("profile", "check", "pages.yaml")
        said = "pages.yaml:7: policy.grants.0.hosts.0.header: the token is sent as it is, with no scheme"
        assert (status, said in " ".join(out.split())) == (0, warned)
        assert token not in out


def test_i5_a_runtime_that_is_to_be_read_cannot_be_entered(home: Path) -> None:
    runtime = construct("studio.yaml", to_read=True)
    with pytest.raises(LoopError, match="made to be read"), runtime:
        pass
    assert not home.exists()


def test_arguments_that_do_not_fit_are_named(akaion: Any) -> None:
    asked = ("policy", "explain", "search_text")
    why = akaion(*asked, '{"path": 7, "quest\\u001b": 1}', "-p", "studio.yaml")[1]
    assert "missing: query; unknown: quest\\x1b; of a wrong form: path" in " ".join(why.split())


# --- models --------------------------------------------------------------------------------------


def test_models_are_listed_as_missing_or_present_by_size(akaion: Any) -> None:
    name, entry = next(iter(Catalogue.bundled().entries.items()))
    models_dir().mkdir(parents=True)
    with (models_dir() / entry.file).open("wb") as file:
        file.truncate(entry.size)
    rows = json.loads(akaion("models", "list", "--json")[1])["models"]
    states = {row["model"]: row["state"] for row in rows}
    assert states.pop(name) == "present"
    assert set(states.values()) == {"missing"}


def test_i7_weights_with_another_digest_do_not_verify(akaion: Any) -> None:
    name, entry = next(iter(Catalogue.bundled().entries.items()))
    models_dir().mkdir(parents=True)
    with (models_dir() / entry.file).open("wb") as file:
        file.truncate(entry.size)
    status, out, _ = akaion("models", "verify", "--json")
    states = {row["model"]: row["state"] for row in json.loads(out)["models"]}
    assert (status, states[name]) == (1, "damaged")
    assert akaion("models", "verify", name)[0] == 1


def test_verifying_what_is_missing_fails_only_when_it_was_named(akaion: Any) -> None:
    name = next(iter(Catalogue.bundled().entries))
    assert akaion("models", "verify")[0] == 0
    assert akaion("models", "verify", name)[0] == 1


def test_an_unknown_model_is_told_with_the_known_ones(akaion: Any) -> None:
    status, _, err = akaion("models", "fetch", "nobody")
    assert status == 1
    assert next(iter(Catalogue.bundled().entries)) in err


def test_a_fetch_in_a_log_is_ten_lines() -> None:
    lines: list[str] = []
    meter = _LineMeter(lines.append, "tiny")
    for done in range(101):
        meter(done << 20, 100 << 20)
    assert (len(lines), lines[0], lines[-1]) == (10, "tiny: 10 of 100 MiB", "tiny: 100 of 100 MiB")


def test_a_fetch_on_a_terminal_is_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with _meter(errors(), "tiny") as progress:
        progress(50 << 20, 100 << 20)
    assert "50.0/100.0 MiB" in capsys.readouterr().err


# --- doctor --------------------------------------------------------------------------------------


def test_doctor_says_what_to_do_once_however_many_mistakes_a_profile_has(akaion: Any) -> None:
    grants = "policy: {grants: [{tool: raed_file, colour: red}, {tool: serch_text, sise: 1}]}\n"
    Path("slips.yaml").write_text(f"profile: detached\n{grants}", encoding="utf-8")
    status, out, _ = akaion("doctor", "-p", "slips.yaml", "--json")
    see = "to mend it, see: akaion profile check slips.yaml"
    mistakes = [each for each in json.loads(out)["checks"] if each["fix"] == see]
    assert (status, len(mistakes) > 1) == (1, True)
    shown = akaion("doctor", "-p", "slips.yaml")[1]
    assert shown.count(see) == 1
    assert all(each["found"] in shown for each in mistakes)


def found(name: str, profile: str = "studio.yaml", *, deep: bool = False) -> Check:
    return next(check for check in checks(profile, deep=deep) if check.name == name)


def test_a_machine_that_has_what_the_profile_needs_passes(akaion: Any) -> None:
    with ScriptedServer() as server:
        Path("studio.yaml").write_text(PROFILE.replace("http://127.0.0.1:9", server.url), encoding="utf-8")
        status, out, _ = akaion("doctor", "--profile", "studio.yaml", "--json")
        assert server.received == []
    data = json.loads(out)
    assert (status, data["ok"]) == (0, True)
    assert {"python", "profile", "local endpoint", "sandbox", "device key", "record"} <= {
        check["check"] for check in data["checks"]
    }


def test_an_endpoint_where_nothing_listens_fails_with_its_fix(akaion: Any) -> None:
    status, out, _ = akaion("doctor", "--profile", "studio.yaml")
    assert status == 1
    assert "nothing listens at http://127.0.0.1:9" in out
    assert "local endpoint: start the model server" in out


def test_i10_an_endpoint_off_loopback_fails_and_is_not_contacted(home: Path) -> None:
    del home
    text = PROFILE.replace("127.0.0.1:9", "llm.example:8080")
    Path("studio.yaml").write_text(text, encoding="utf-8")
    check = found("local endpoint")
    assert (check.grade, check.found) == ("fail", "http://llm.example:8080 is not on this machine")


def test_a_profile_that_cannot_be_used_fails_and_the_machine_is_still_looked_at(akaion: Any) -> None:
    Path("studio.yaml").write_text("profile: detached\nnonsense: 1\n", encoding="utf-8")
    status, out, _ = akaion("doctor", "--profile", "studio.yaml", "--json")
    grades = {check["check"]: check["grade"] for check in json.loads(out)["checks"]}
    assert (status, grades["profile"]) == (1, "fail")
    assert "sandbox" in grades
    assert grades["index"] == "ok"


def test_a_second_opinion_needs_its_engine_and_its_weights(home: Path) -> None:
    del home
    assert found("classifier").found == "rules only"
    assert found("model smollm2-135m-instruct").grade == "ok"
    Path("studio.yaml").write_text(PROFILE + SECOND, encoding="utf-8")
    assert "smollm2-135m-instruct in this process" in found("classifier").found
    check = found("model smollm2-135m-instruct")
    assert (check.grade, check.fix) == ("fail", "akaion models fetch smollm2-135m-instruct")


def test_a_granted_folder_that_is_not_there_fails(home: Path) -> None:
    del home
    Path("files").rmdir()
    assert found("granted folder").grade == "fail"


def test_a_granted_folder_without_a_readable_text_is_a_warning(home: Path) -> None:
    del home
    Path("files/b.pdf").write_bytes(b"%PDF-1.7\n\0")
    check = found("granted folder")
    assert (check.grade, check.found.endswith("holds no file that search_text can read")) == ("warn", True)
    Path("files/a.txt").write_text("a line\n", encoding="utf-8")
    assert found("granted folder").grade == "ok"


@pytest.mark.parametrize(
    ("tools", "content", "grade"),
    [
        (("read_file",), b"%PDF-1.7\nno zero byte in it\n", "warn"),
        (("read_document",), b"%PDF-1.7\nno zero byte in it\n", "ok"),
        (("read_document",), b"PK\x03\x04\0\0", "ok"),
        (("read_document",), b"", "warn"),
        (("write_file",), b"", "ok"),
        (("read_file", "write_file"), b"", "ok"),
    ],
    ids=["pdf as text", "pdf", "docx", "empty", "drafts", "drafts that are read"],
)
def test_a_granted_folder_is_judged_by_the_tools_it_is_granted_to(
    home: Path, tools: tuple[str, ...], content: bytes, grade: str
) -> None:
    del home
    grants = "".join(f"    - {{tool: {tool}, paths: [{{path: files}}]}}\n" for tool in tools)
    profile = PROFILE.replace("    - {tool: search_text, paths: [{path: files}]}\n", grants)
    Path("studio.yaml").write_text(profile, encoding="utf-8")
    if content:
        Path("files/a.bin").write_bytes(content)
    assert found("granted folder").grade == grade


def test_i5_a_device_key_that_others_can_read_fails(akaion: Any, home: Path) -> None:
    akaion("keys", "create")
    assert found("device key").grade == "ok"
    (home / "keys" / "device.key").chmod(0o644)
    assert found("device key").grade == "fail"


def test_a_log_that_was_not_closed_is_a_warning(home: Path) -> None:
    (home / "trace").mkdir(parents=True)
    assert found("record").grade == "ok"
    (home / "trace" / f"000000-{'0' * 32}.jsonl").write_bytes(b"torn")
    assert found("record").grade == "warn"


def test_weights_the_profile_needs_fail_when_missing_or_wrong_and_deep_reads_them(home: Path) -> None:
    del home
    model = "smollm2-135m-instruct"
    entry, name = Catalogue.bundled().entry(model), f"model {model}"
    assert found(name).grade == "ok"
    embedded = PROFILE.replace("runtime: llamacpp, endpoint: 'http://127.0.0.1:9', model: scripted", "{}")
    embedded = embedded.replace("{{}}", f"{{runtime: embedded, model: {model}}}")
    Path("studio.yaml").write_text(embedded, encoding="utf-8")
    assert found(name).grade == "fail"
    models_dir().mkdir(parents=True)
    with (models_dir() / entry.file).open("wb") as file:
        file.truncate(entry.size)
    assert "size is right" in found(name).found
    assert (found(name, deep=True).grade, found(name, deep=True).found) == (
        "fail",
        "not the catalogue's SHA-256",
    )


# --- tasks of a class -----------------------------------------------------------------------------

REMOTE = """\
profile: attached
policy: {{grants: []}}
perimeter: {{max_egress_class: C1}}
inference:
  prefer: remote
  local: null
  remote: {{backend: openai, endpoint: '{url}', model: m}}
"""


@pytest.mark.parametrize(
    ("said", "status", "data_class"),
    [((), 0, "C1"), (("--class", "C0"), 0, "C0"), (("--class", "C3"), 4, "C3")],
)
def test_i8_a_task_has_the_class_that_the_command_says(
    said: tuple[str, ...], status: int, data_class: str, akaion: Any, tmp_path: Path
) -> None:
    with ScriptedServer(replies=[oblige] * 9) as server:
        (tmp_path / "remote.yaml").write_text(REMOTE.format(url=server.url), encoding="utf-8")
        code, out, _ = akaion("run", "-p", "remote.yaml", "--json", *said, "Say hello.")
        assert (code, json.loads(out)["class"], bool(server.received)) == (status, data_class, status == 0)


@pytest.mark.parametrize(("said", "sent"), [((), True), (("--class", "C3"), False)])
def test_i8_every_line_of_a_chat_has_the_class_that_the_command_says(
    said: tuple[str, ...], akaion: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, sent: bool
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Say hello.\n"))
    with ScriptedServer(replies=[oblige] * 9) as server:
        (tmp_path / "remote.yaml").write_text(REMOTE.format(url=server.url), encoding="utf-8")
        assert akaion("chat", "-p", "remote.yaml", *said)[0] == 0
        assert bool(server.received) is sent


def test_a_class_that_is_none_is_wrong_usage(akaion: Any) -> None:
    assert akaion("run", "--class", "C4", "Say hello.")[0] == 2
