# SPDX-License-Identifier: Apache-2.0
"""Writing, from a profile to a record and its verifier: what is written, what is denied, what comes back."""

import asyncio
import json
import site
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from runner import open_profile
from runner.adapters.cli.main import app
from runner.agent.steps import StopReason
from runner.assembly import construct
from runner.capability.tools.listing import Limits
from runner.kernel.errors import ConfigError
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.messages import ToolCall
from runner.perimeter.running import ToolReply
from runner.testing import ScriptedServer

ROOT = Path(__file__).resolve().parents[2]
BIN = ".akaion-bin"


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name in ("rossi", "rossi/drafts", "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / "rossi" / "file.txt").write_text("Udienza il 4 giugno.\n", encoding="utf-8")
    (tmp_path / "rossi" / "drafts" / "letter.txt").write_text("Gentile Signora,\n", encoding="utf-8")
    return tmp_path


def profile(studio: Path, endpoint: str = "http://127.0.0.1:9") -> str:
    cases = {"path": "rossi", "class": "C3", "matter": "rossi"}
    drafts, notes = {**cases, "path": "rossi/drafts"}, {"path": "notes", "class": "C1"}
    grants = [
        {"tool": "read_file", "paths": [cases, drafts, notes]},
        *({"tool": tool, "paths": [drafts, notes]} for tool in ("write_file", "patch_file", "move_to_bin")),
    ]
    local = {"runtime": "llamacpp", "endpoint": endpoint, "model": "m", "tier": "constrained"}
    data = {
        "profile": "detached",
        "perimeter": {"locality_required": {"C3": "L0"}},
        "policy": {"grants": grants},
        "inference": {"local": local},
    }
    (studio / "studio.yaml").write_text(json.dumps(data), encoding="utf-8")
    return str(studio / "studio.yaml")


def called(named: str, *calls: tuple[str, dict[str, Any]], matter: str | None = None) -> list[ToolReply]:
    """Open the profile, make the calls in one task, and return what came of them."""

    async def work() -> list[ToolReply]:
        with open_profile(named) as runtime:
            async with runtime.client.task("write it", matter=matter) as task:
                return [
                    await runtime.tools.call(
                        ToolCall(tool=tool, arguments=arguments, origin=task.goal), task=task
                    )
                    for tool, arguments in calls
                ]

    return asyncio.run(work())


def verdict(studio: Path, named: str) -> dict[str, Any]:
    """Return what the standalone verifier says, repeating each decision by the exported policy (S10)."""
    with open_profile(named) as runtime:
        runtime.export_pin(studio / "pin")
    policy = CliRunner().invoke(app, ["policy", "export", "--profile", named])
    (studio / "policy.json").write_text(policy.stdout, encoding="utf-8")
    command = [sys.executable, "-I", "-S", str(ROOT / "verify" / "akaion_verify.py"), "--json"]
    command += ["--pin", str(studio / "pin"), "--policy", str(studio / "policy.json")]
    done = subprocess.run(
        [*command, str(studio / "home" / "trace")], capture_output=True, text=True, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_p2_a_draft_is_written_changed_and_binned_and_the_record_says_so(studio: Path) -> None:
    named = profile(studio)
    replies = called(
        named,
        ("read_file", {"path": "rossi/file.txt"}),
        ("write_file", {"path": "drafts/note.txt", "text": "Udienza: 4 giugno\n"}),
        ("patch_file", {"path": "drafts/letter.txt", "old": "Signora,", "new": "Signora Rossi,"}),
        ("move_to_bin", {"path": "drafts/note.txt"}),
        ("read_file", {"path": "drafts/letter.txt"}),
        ("read_file", {"path": "drafts/.akaion-bin/x/letter.txt"}),
    )
    assert [reply.status for reply in replies] == ["ok", "ok", "ok", "ok", "ok", "error"]
    drafts = studio / "rossi" / "drafts"
    assert (drafts / "letter.txt").read_text(encoding="utf-8") == "Gentile Signora Rossi,\n"
    kept = {file.name: file.read_text(encoding="utf-8") for file in (drafts / BIN).rglob("*.txt")}
    assert kept == {"letter.txt": "Gentile Signora,\n", "note.txt": "Udienza: 4 giugno\n"}
    assert replies[4].block.label.integrity is Integrity.UNTRUSTED
    assert replies[4].block.label.data_class is DataClass.C3
    found = verdict(studio, named)
    assert (found["verdict"], found["reasons"]) == ("PASS", [])
    log = b"".join(log.read_bytes() for log in (studio / "home" / "trace").glob("*.jsonl"))
    assert b'"into":"C3"' in log
    assert b"giugno" not in log
    assert b"letter" not in log


def test_i8_what_was_read_of_a_case_is_not_written_into_the_notes(studio: Path) -> None:
    """They are C1: a remote model may read them."""
    named = profile(studio)
    before, read, after = called(
        named,
        ("write_file", {"path": "notes/a.txt", "text": "to do"}),
        ("read_file", {"path": "rossi/file.txt"}),
        ("write_file", {"path": "notes/b.txt", "text": "4 giugno"}),
    )
    assert (before.status, read.status, after.status, after.rule) == ("ok", "ok", "denied", "above-folder")
    assert [file.name for file in (studio / "notes").glob("*.txt")] == ["a.txt"]
    assert verdict(studio, named)["reasons"] == []


def test_i8_a_task_of_a_matter_writes_into_a_folder_of_none_only_with_a_yes(studio: Path) -> None:
    (reply,) = called(profile(studio), ("write_file", {"path": "notes/a.txt", "text": "x"}), matter="rossi")
    assert reply.status == "denied"
    assert "bring two matters together" in reply.block.text
    assert not (studio / "notes" / "a.txt").exists()


def test_p2_a_model_writes_a_draft_in_a_run(studio: Path) -> None:
    text = "Gentile Signora Rossi,\n" + "la Sua udienza è il 4 giugno. " * 60
    replies: list[dict[str, Any]] = [
        {"tool": "write_file"},
        {"path": "drafts/new.txt", "text": text},
        {"tool": "answer"},
        {"answer": "It is in drafts/new.txt"},
    ]
    with ScriptedServer(replies=replies) as server:
        with open_profile(profile(studio, server.url)) as runtime:
            result = runtime.loop().run("Write a letter about the hearing", matter="rossi")
        asked = [json.loads(body) for body in server.bodies if body]
    assert result.stop is StopReason.ANSWERED
    assert (studio / "rossi" / "drafts" / "new.txt").read_text(encoding="utf-8") == text
    filling = next(each for each in asked if "Give the arguments of write_file" in json.dumps(each))
    assert filling.get("max_tokens", filling.get("n_predict")) >= 1000, "a letter is not cut off"


@pytest.mark.parametrize("place", ["home", ".", "home/models", "weights"])
def test_i5_a_tool_writes_neither_home_nor_profile_nor_weights(studio: Path, place: str) -> None:
    for folder in ("home", "home/models", "weights"):
        (studio / folder).mkdir(exist_ok=True)
    (studio / "weights" / "m.gguf").touch()
    local = {"runtime": "embedded", "model": "own", "weights": "weights/m.gguf"}
    data = {
        "profile": "detached",
        "policy": {"grants": [{"tool": "write_file", "paths": [place]}]},
        "inference": {"local": local},
    }
    (studio / "mine.yaml").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"paths\.0: .*(may write|keys lie here)"):
        construct(studio / "mine.yaml")


PROGRAM = [
    Path(sys.prefix),
    Path(sys.prefix).parent,
    ROOT / "src" / "runner",
    Path(sys.base_prefix),
    Path(sys.base_prefix, "lib"),
    Path(sysconfig.get_path("stdlib"), "site-packages"),
    Path(sysconfig.get_path("purelib"), "typer"),
    Path(site.getusersitepackages()),
    Path(site.getuserbase(), "bin"),
]


@pytest.mark.parametrize("place", PROGRAM)
def test_i5_a_tool_writes_no_part_of_the_program_nor_of_its_python(studio: Path, place: Path) -> None:
    data = {
        "profile": "detached",
        "policy": {"grants": [{"tool": "write_file", "paths": [str(place)]}]},
        "inference": {"local": {"runtime": "llamacpp", "endpoint": "http://127.0.0.1:9", "model": "m"}},
    }
    (studio / "mine.yaml").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ConfigError, match="may write"):
        construct(studio / "mine.yaml")


def test_i5_a_tool_writes_nothing_that_the_next_start_would_load_and_may_write_beside_it(
    studio: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of the practice may keep its documents beneath itself."""
    host = ModuleType("host")
    host.__file__ = str(studio / "package" / "host.py")
    (studio / "package").mkdir()
    named = profile(studio)
    for grant in ({"path": str(studio / "notes")}, {"path": str(studio / "package")}):
        data = json.loads(Path(named).read_text(encoding="utf-8"))
        data["policy"]["grants"] = [{"tool": "write_file", "paths": [grant]}]
        (studio / f"{Path(grant['path']).name}.json").write_text(json.dumps(data), encoding="utf-8")
    construct(studio / "notes.json")
    construct(studio / "package.json")
    monkeypatch.setitem(sys.modules, "host", host)
    with pytest.raises(ConfigError, match="may write"):
        construct(studio / "package.json")
    monkeypatch.syspath_prepend(str(studio))
    construct(studio / "notes.json")
    monkeypatch.syspath_prepend(str(studio / "notes"))
    with pytest.raises(ConfigError, match="may write"):
        construct(studio / "notes.json")


def akaion(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.stdout


def test_a_person_puts_back_what_a_tool_replaced_or_took_away(studio: Path) -> None:
    named, drafts = profile(studio), studio / "rossi" / "drafts"
    assert akaion("bin", "list", "--profile", named) == (0, "nothing is in a bin\n")
    called(
        named,
        ("write_file", {"path": "notes/a.txt", "text": "to do"}),
        ("move_to_bin", {"path": "notes/a.txt"}),
    )
    called(named, ("write_file", {"path": "drafts/letter.txt", "text": "new", "replace": True}))
    letter, note = json.loads(akaion("bin", "list", "--profile", named, "--json")[1])["kept"]
    assert (letter["file"], letter["bytes"], note["file"]) == ("drafts/letter.txt", 17, "notes/a.txt")
    shown = akaion("bin", "list", "--profile", named)[1].splitlines()
    assert shown[0] == f"{letter['entry']}  drafts/letter.txt (17 bytes)"
    said = akaion("bin", "restore", letter["entry"], "--profile", named)
    assert said == (0, "restored: drafts/letter.txt\n")
    for _ in range(2):  # forth and back
        said = akaion("bin", "restore", letter["entry"], "--profile", named, "--json")
        told = {"entry": letter["entry"], "folder": str(drafts), "file": "drafts/letter.txt"}
        assert (said[0], json.loads(said[1])) == (0, told)
    assert (drafts / "letter.txt").read_text(encoding="utf-8") == "Gentile Signora,\n"
    assert (drafts / BIN / letter["entry"] / "letter.txt").read_text(encoding="utf-8") == "new"
    assert akaion("bin", "restore", note["entry"], "--profile", named)[0] == 0
    assert (studio / "notes" / "a.txt").read_text(encoding="utf-8") == "to do"
    assert akaion("bin", "restore", note["entry"], "--profile", named)[0] != 0


def test_a_person_finds_the_newest_of_more_than_a_tool_would_walk_through(studio: Path) -> None:
    """What was lost sight of would be lost to whoever does not look by hand."""
    named, kept, more = profile(studio), studio / "notes" / BIN, Limits().folders
    for number in range(more):
        (kept / f"20260301T{number:06}Z-00000000").mkdir(parents=True)
        (kept / f"20260301T{number:06}Z-00000000" / "a.txt").touch()
    (kept / "link").symlink_to(studio / "rossi")
    (kept / "20260302T000000Z-00000000" / "sub").mkdir(parents=True)
    (kept / "20260302T000000Z-00000000" / "sub" / "b.txt").write_text("newest", encoding="utf-8")
    (studio / "notes" / "sub").mkdir()
    found = json.loads(akaion("bin", "list", "-p", named, "--json")[1])
    assert (len(found["kept"]), found["unlisted"]) == (more + 1, 1)
    assert (found["kept"][-1]["file"], found["kept"][-1]["bytes"]) == ("notes/sub/b.txt", 6)
    assert "cannot be opened: 1" in akaion("bin", "list", "-p", named)[1]
    assert akaion("bin", "restore", found["kept"][-1]["entry"], "-p", named)[0] == 0
    assert (studio / "notes" / "sub" / "b.txt").read_text(encoding="utf-8") == "newest"
    for name in ("", "..", "link", "20260303T000000Z-00000000", "link/file.txt"):
        assert akaion("bin", "restore", name, "-p", named)[0] != 0


def test_p2_nothing_is_put_back_through_a_link_or_over_a_folder(studio: Path) -> None:
    named, drafts = profile(studio), studio / "rossi" / "drafts"
    (drafts / "sub").mkdir()
    (drafts / "sub" / "a.txt").write_text("old", encoding="utf-8")
    called(named, ("move_to_bin", {"path": "drafts/sub/a.txt"}))
    (kept,) = json.loads(akaion("bin", "list", "-p", named, "--json")[1])["kept"]
    entry = kept["entry"]
    (drafts / "sub" / "a.txt").mkdir()
    assert akaion("bin", "restore", entry, "-p", named)[0] != 0
    (drafts / "sub" / "a.txt").rmdir()
    (drafts / "sub").rename(drafts / "kept")
    (drafts / "sub").symlink_to(studio / "notes")
    assert akaion("bin", "restore", entry, "-p", named)[0] != 0
    assert list((studio / "notes").iterdir()) == []
