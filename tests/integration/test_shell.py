# SPDX-License-Identifier: Apache-2.0
"""The shell tool, from a profile to a record: what a call brings back, what is denied, what is recorded."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from runner import open_profile
from runner.adapters.cli.main import app
from runner.assembly import construct
from runner.capability.sandbox import bubblewrap
from runner.kernel.errors import ConfigError
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.messages import ToolCall
from runner.perimeter.running import ToolReply
from runner.testing import ScriptedServer

ROOT = Path(__file__).resolve().parents[2]
NO_SANDBOX = bubblewrap.why_not()
confined = pytest.mark.skipif(NO_SANDBOX is not None, reason=f"no sandbox here: {NO_SANDBOX}")


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.txt").write_text(f"Udienza {name}\n", encoding="utf-8")
    return tmp_path


def profile(studio: Path, **grant: Any) -> str:
    paths = [
        {"path": "one", "class": "C3", "matter": "rossi"},
        {"path": "two", "class": "C2", "matter": "bianchi"},
    ]
    shell = {"tool": "shell", "commands": ["cat", "ls", "grep"], "paths": paths, **grant}
    text = json.dumps(
        {
            "profile": "detached",
            "policy": {"grants": [shell]},
            "inference": {"local": {"runtime": "llamacpp", "endpoint": "http://127.0.0.1:9", "model": "m"}},
        }
    )
    (studio / "studio.yaml").write_text(text, encoding="utf-8")
    return str(studio / "studio.yaml")


def called(named: str, *argvs: Sequence[str], folder: str = ".") -> tuple[list[ToolReply], Path]:
    """Open the profile, make the calls in one task, and return what came of them and the book."""

    async def work() -> tuple[list[ToolReply], Path]:
        with open_profile(named) as rt, rt.client.task("count") as task:
            replies = []
            for argv in argvs:
                arguments = {"argv": list(argv), "folder": folder}
                call = ToolCall(tool="shell", arguments=arguments, origin=task.goal)
                replies.append(await rt.tools.call(call, task=task))
            rt.export_pin(rt.trace_path.parent / "auditor.pin")
            return replies, rt.trace_path

    return asyncio.run(work())


def header(book: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(min(book.glob("*.jsonl")).read_bytes().splitlines()[0])["body"]
    return found


def verdict(book: Path) -> str:
    verifier, pin = str(ROOT / "verify" / "akaion_verify.py"), str(book.parent / "auditor.pin")
    command = [sys.executable, "-I", "-S", verifier, str(book), "--json", "--pin", pin]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return str(json.loads(done.stdout)["verdict"])


@confined
def test_p2_an_answer_has_the_class_of_what_could_be_read_and_is_nobodys_word(studio: Path) -> None:
    [one], book = called(profile(studio), ["cat", "one/note.txt"])
    assert (one.status, one.block.text) == ("ok", "Udienza one")
    assert one.block.label.data_class is DataClass.C3
    assert one.block.label.integrity is Integrity.UNTRUSTED
    assert one.block.label.matters == {"rossi"}
    assert one.block.label.sources >= {"one"}
    assert (header(book)["sandbox"], header(book)["unverifiable_because"]) == ("bubblewrap", [])
    assert verdict(book) == "PASS"


@confined
def test_p2_a_command_that_names_one_folder_has_its_class_only(studio: Path) -> None:
    [two], _ = called(profile(studio), ["cat", "two/note.txt"])
    assert (two.block.label.data_class, two.block.label.matters) == (DataClass.C2, frozenset({"bianchi"}))


@confined
def test_i1_a_path_in_an_argument_cannot_bring_a_second_matter(studio: Path) -> None:
    """The path stands among the operands, and is judged as the path of a file tool would be."""
    for second in (
        ["cat", "two/note.txt"],
        ["grep", "-rn", "Udienza", "two"],
        ["cat", "one/note.txt", "two/note.txt"],
    ):
        [first, other], _ = called(profile(studio), ["cat", "one/note.txt"], second)
        assert (first.status, other.status) == ("ok", "denied")
        assert "a path starts with a granted folder" in other.block.text, "as of a folder that is none"
        assert "Udienza two" not in other.block.text


@confined
def test_i4_a_denied_command_is_on_record_and_says_nothing_of_it(studio: Path) -> None:
    [denied], book = called(profile(studio), ["cat", "../SECRET-7731"])
    assert denied.status == "denied"
    text = b"".join(path.read_bytes() for path in book.glob("*.jsonl"))
    assert b'"rule":"command-not-granted"' in text
    assert b"SECRET-7731" not in text
    assert verdict(book) == "PASS"


@confined
def test_p2_a_program_finds_the_bin_of_a_granted_folder_empty(studio: Path) -> None:
    kept = studio / "one" / ".akaion-bin" / "20260301T000000Z-00000000"
    kept.mkdir(parents=True)
    (kept / "note.txt").write_text("Udienza before\n", encoding="utf-8")
    named = profile(studio)
    replies, _ = called(named, ("grep", "-r", "Udienza", "one"), ("ls", "-A", "-R", "one"))
    assert replies[0].block.text == "one/note.txt:Udienza one"
    assert "one/.akaion-bin:" in replies[1].block.text
    assert "2026" not in replies[1].block.text
    replies, _ = called(named, ("grep", "-r", "Udienza", "two"))
    assert replies[0].block.text == "two/note.txt:Udienza two"


def test_p3_a_shell_without_a_sandbox_makes_every_verdict_unverifiable(studio: Path) -> None:
    [reply, outside], book = called(
        profile(studio, sandbox="unrestricted"), ["cat", "one/note.txt"], ["cat", "/etc/passwd"]
    )
    assert (reply.status, reply.block.text, outside.status) == ("ok", "Udienza one", "denied")
    assert reply.block.label.integrity is Integrity.UNTRUSTED
    assert reply.block.label.data_class is DataClass.C3
    assert (header(book)["sandbox"], header(book)["unverifiable_because"]) == ("none", ["tool-unrestricted"])
    assert verdict(book) == "UNVERIFIABLE"


def test_p3_a_profile_that_needs_a_sandbox_is_not_opened_where_none_can_be_built(
    studio: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system without bubblewrap, as the launcher sees it: no folder of programs has it."""
    monkeypatch.setattr("runner.capability.sandbox.loading.PLACES", (str(studio),))
    bubblewrap._bwrap.cache_clear()
    runtime = construct(profile(studio))
    with pytest.raises(
        ConfigError, match=r"grants\.0: no sandbox can be built here.*install the package bubblewrap"
    ):
        runtime.__enter__()
    assert not (studio / "home" / "trace").exists()
    done = CliRunner().invoke(app, ["doctor", "--profile", "studio.yaml", "--json"])
    [check] = [each for each in json.loads(done.stdout)["checks"] if each["check"] == "sandbox"]
    assert (check["grade"], check["fix"]) == ("fail", "install the package bubblewrap")
    warned = CliRunner().invoke(app, ["profile", "check", "studio.yaml"])
    assert (warned.exit_code, "no sandbox can be built here" in warned.output) == (0, True)
    profile(studio, sandbox="unrestricted")
    with construct("studio.yaml"):
        pass


@pytest.mark.parametrize(
    ("grant", "where"),
    [
        ({"commands": ["ls", "curl"]}, "commands.1"),
        ({"commands": ["ls", "bash"]}, "commands.1"),
        ({"sandbox": "unrestricted", "network": False}, "network"),
        ({"tool": "read_file"}, "commands"),
        ({"tool": "read_file", "commands": None, "sandbox": "required"}, "sandbox"),
    ],
    ids=["curl", "bash", "a promise nobody keeps", "another tool", "a sandbox for another tool"],
)
def test_i1_a_grant_that_means_nothing_is_an_error(studio: Path, grant: dict[str, Any], where: str) -> None:
    named = profile(studio, **grant)
    text = json.loads(Path(named).read_text("utf-8"))
    text["policy"]["grants"] = [
        {key: value for key, value in each.items() if value is not None} for each in text["policy"]["grants"]
    ]
    Path(named).write_text(json.dumps(text), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        construct(named)
    assert [mistake.where for mistake in caught.value.mistakes] == [f"policy.grants.0.{where}"]


def test_i1_who_signs_a_change_reads_which_programs_it_opens(studio: Path) -> None:
    old = Path(profile(studio)).rename(studio / "old.yaml")
    new = profile(studio, commands=["cat", "ls", "grep", "git"], sandbox="unrestricted")
    told = CliRunner().invoke(app, ["policy", "diff", str(old), new])
    assert "shell may start git" in told.output
    assert "can run-unrestricted" in told.output
    assert "may start cat" not in told.output
    checked = CliRunner().invoke(app, ["policy", "check", new])
    assert "each record is UNVERIFIABLE" in checked.output


@confined
def test_a_run_calls_the_shell_as_it_calls_any_tool(studio: Path) -> None:
    """The model chooses it, fills its arguments under a schema, and sees what the program said."""
    replies: list[str] = [
        json.dumps(each)
        for each in (
            {"tool": "shell"},
            {"argv": ["ls", "-a"], "folder": "two"},
            {"tool": "answer"},
            {"answer": "There is a note."},
        )
    ]
    with ScriptedServer(replies=replies) as server:
        text = Path(profile(studio)).read_text("utf-8").replace("http://127.0.0.1:9", server.url)
        text = text.replace('"model": "m"', '"model": "m", "tier": "constrained"')
        (studio / "studio.yaml").write_text(text, encoding="utf-8")
        with open_profile("studio.yaml") as runtime:
            result = runtime.loop().run("List the folder.")
    assert [step.status for step in result.steps] == ["ok"]  # type: ignore[union-attr]  # a step has one
    assert any(b"note.txt" in body for body in server.bodies)
