# SPDX-License-Identifier: Apache-2.0
"""P1-P3, I5, I7: whole runs through `open_profile`, with real sockets, real files and the real verifier."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner import ConfigError, HostTool, StopReason, open_profile
from runner.testing import ScriptedServer, oblige

ROOT = Path(__file__).resolve().parents[2]
SECRET = "The settlement figure is forty thousand florins"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def practice(tmp_path: Path) -> Path:
    folder = tmp_path / "practice"
    folder.mkdir()
    (folder / "note.txt").write_text(f"Of the settlement\n{SECRET}\n", encoding="utf-8")
    return folder


def answering(body: Any) -> str:
    """Do what is asked, and answer a question over files with the figure that stands in the file."""
    asked = body["response_format"]["json_schema"]["schema"]["properties"]
    return json.dumps({"answer": "forty thousand florins"}) if set(asked) == {"answer"} else oblige(body)


def attached(url: str, practice: Path, data_class: str | None, **more: Any) -> dict[str, Any]:
    path = {"path": str(practice)} | ({} if data_class is None else {"class": data_class})
    return {
        "policy": {"grants": [{"tool": "search_text", "paths": [path]}]},
        "perimeter": {"max_egress_class": "C1"},
        "inference": {
            "prefer": "remote",
            "local": None,
            "remote": {"backend": "openai", "endpoint": url, "model": "m", "tier": "constrained", **more},
        },
    }


def verify(book: Path, *options: str) -> dict[str, Any]:
    command = [
        sys.executable,
        "-I",
        "-S",
        str(ROOT / "verify" / "akaion_verify.py"),
        str(book),
        "--json",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    verdict: dict[str, Any] = json.loads(done.stdout)
    assert verdict["exit"] == done.returncode
    return verdict


def egress(book: Path) -> list[dict[str, Any]]:
    lines = [line for log in sorted(book.glob("*.jsonl")) for line in log.read_bytes().splitlines()]
    return [entry["body"] for line in lines if (entry := json.loads(line))["kind"] == "egress"]


@pytest.mark.parametrize("data_class", ["C3", "C2", None])
def test_p1_a_privileged_file_never_arrives_and_the_denial_is_on_record(
    data_class: str | None, practice: Path
) -> None:
    """A file nobody classified counts as C2."""
    with ScriptedServer(replies=[answering] * 9) as server:
        with open_profile("attached", **attached(server.url, practice, data_class)) as runtime:
            result = runtime.loop().run("What is the settlement figure?")
        received = b"".join(server.received)
    assert result.stop is StopReason.DENIED
    assert SECRET.encode() not in received
    assert b"florins" not in received
    sent = egress(runtime.trace_path)
    assert [record["decision"] for record in sent] == ["allowed", "denied"]
    assert sent[-1]["class"] == (data_class or "C2")
    assert len(server.received) == 1
    assert verify(runtime.trace_path)["reasons"][0]["code"] == "no-pin"


@pytest.mark.parametrize("data_class", ["C0", "C1"])
def test_p1_the_same_run_over_an_internal_file_does_arrive(data_class: str, practice: Path) -> None:
    with ScriptedServer(replies=[answering] * 9) as server:
        with open_profile("attached", **attached(server.url, practice, data_class)) as runtime:
            result = runtime.loop().run("What is the settlement figure?")
        received = b"".join(server.received)
    assert result.stop is StopReason.ANSWERED
    assert SECRET.encode() in received
    assert result.evidence[0].file == "practice/note.txt"
    assert {record["decision"] for record in egress(runtime.trace_path)} == {"allowed"}


def test_p1_every_request_the_server_saw_has_one_allowed_egress_record(practice: Path) -> None:
    with ScriptedServer(replies=[answering] * 9) as server:
        with open_profile("attached", **attached(server.url, practice, "C1")) as runtime:
            runtime.loop().run("What is the settlement figure?")
        sizes = [len(body) for body in server.bodies]
    assert [record["bytes"] for record in egress(runtime.trace_path)] == sizes


def test_i5_the_credential_travels_only_in_its_header(
    practice: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    token = "tok-5f3c9a1e7b2d4c6f"
    monkeypatch.setenv("MODEL_TOKEN", token)
    with ScriptedServer(replies=[answering] * 9) as server:
        profile = attached(server.url, practice, "C1", credential="env:MODEL_TOKEN")
        with open_profile("attached", **profile) as runtime:
            runtime.loop().run("What is the settlement figure?")
            assert token not in repr(vars(runtime))
            assert "MODEL_TOKEN" not in __import__("os").environ
        for raw in server.received:
            head, _, body = raw.partition(b"\r\n\r\n")
            assert b"Authorization: Bearer " + token.encode() in head
            assert token.encode() not in body
    assert all(token.encode() not in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_a_remote_backend_in_the_detached_profile_is_a_config_error() -> None:
    remote = {"backend": "openai", "endpoint": "https://model.example", "model": "m"}
    with pytest.raises(ConfigError, match="detached profile has no remote backend"):
        open_profile("detached", inference={"remote": remote})


def carry(toWhom: str, amount: float) -> str:  # noqa: N803 - an argument may be called anything
    """Carry a sum."""
    return f"{amount} to {toWhom}"


def test_i4_a_profile_that_says_all_there_is_to_say_of_arguments_opens_and_any_change_of_it_shows() -> None:
    """The digest has no fractions, no names that others gave, and is not deep: grants have all of that."""
    case = {"toWhom": [{"lookup": "carry", "key": "a-B", "field": "c", "where": {"D-e": [0.5, "x"]}}]}
    digests = set()
    for most, values in ((0.25, [1.5]), (0.75, [1.5]), (0.25, [2.5])):
        grant = {
            "tool": "carry",
            "arguments": {"toWhom": {"max_length": 9}, "amount": {"minimum": 0.125, "maximum": most}},
            "reads": {"class": "C1", "minted": ["c"], "max_class": "C2"},
            "sink": {"to": "network", "max_class": "C2", "cases": [case, {"amount": [{"values": values}]}]},
        }
        inference = {"local": {"runtime": "llamacpp", "endpoint": "http://127.0.0.1:9", "model": "m"}}
        with open_profile(
            "detached", tools=[HostTool(carry)], policy={"grants": [grant]}, inference=inference
        ) as rt:
            first = max(rt.trace_path.glob("**/*.jsonl")).read_text(encoding="utf-8").splitlines()[0]
        header = json.loads(first)["body"]
        digests |= {header["config_digest"], header["policy_digest"]}
    assert len(digests) == 6


@pytest.mark.parametrize("place", ["keys", "", "../home"])
def test_i5_a_grant_that_reaches_the_keys_is_a_config_error(place: str, home: Path) -> None:
    (home / "keys").mkdir(parents=True)
    grants = [{"tool": "read_file", "paths": [str(home / place)]}]
    with pytest.raises(ConfigError, match="keys lie here"):
        open_profile("detached", policy={"grants": grants})


def test_i5_a_profile_under_a_write_grant_is_a_config_error(tmp_path: Path) -> None:
    folder = tmp_path / "configured"
    folder.mkdir()
    profile = folder / "mine.yaml"
    profile.write_text(
        "profile: detached\npolicy:\n  grants:\n    - tool: note\n      access: write\n      paths: [.]\n",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError, match=r"mine\.yaml:6: policy\.grants\.0\.paths\.0: .* may write"):
        open_profile(profile, tools=[HostTool(note)])


def note(text: str) -> str:
    """Keep a note."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
    return f"kept {len(text)} characters"


@pytest.mark.parametrize(("trusted", "verdict"), [(False, "UNVERIFIABLE"), (True, "PASS")])
def test_p3_a_host_tool_makes_the_verdict_unverifiable_unless_vouched_for(
    trusted: bool, verdict: str, tmp_path: Path
) -> None:
    """The tool opens a socket: nothing here can stop or see that, so the verdict says so."""
    replies = [{"tool": "note"}, {"text": "x"}, {"tool": "answer"}, {"answer": "done"}]
    with ScriptedServer(replies=replies) as server:
        inference = {
            "local": {"runtime": "llamacpp", "endpoint": server.url, "model": "m", "tier": "constrained"}
        }
        grants = [{"tool": "note", "trusted": trusted}]
        with open_profile(
            "detached", tools=[HostTool(note)], inference=inference, policy={"grants": grants}
        ) as runtime:
            result = runtime.loop().run("Keep a note.")
            pin = tmp_path / "auditor.pin"
            runtime.export_pin(pin)
    assert result.stop is StopReason.ANSWERED
    assert [step.status for step in result.steps] == ["ok"]  # type: ignore[union-attr]
    found = verify(runtime.trace_path, "--pin", str(pin))
    assert found["verdict"] == verdict
    assert found["host_tools"] == [{"name": "note", "trusted": trusted}]
