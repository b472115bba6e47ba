# SPDX-License-Identifier: Apache-2.0
"""I8, P1: whole runs with a second opinion, over real sockets, with the real verifier and a real model."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner import Opinion, RunResult, Runtime, StopReason, open_profile
from runner.adapters.cli import main
from runner.capability.models import Catalogue
from runner.kernel.errors import ConfigError, ModelError
from runner.kernel.labels import DataClass
from runner.testing import FakeOpinion, ScriptedServer, oblige

ROOT = Path(__file__).resolve().parents[2]
QUESTION = "Which court hears a claim against an airline?"
TELLING = "My client, the only judge of the island, drinks. Is that a ground of recusal?"
TINY = "smollm2-135m-instruct"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home: where no weights are."""
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def attached(remote: ScriptedServer, *, local: ScriptedServer | None = None, **perimeter: Any) -> Any:
    """A profile that asks `remote`; with `local`, its model is the second opinion."""
    server = None if local is None else {"runtime": "llamacpp", "endpoint": local.url, "model": "small"}
    own = {} if local is None else {"classifier": "local:small", "locality_required": {"C3": "L0"}}
    return {
        "policy": {"grants": []},
        "perimeter": {"max_egress_class": "C1", **own, **perimeter},
        "inference": {
            "prefer": "remote",
            "local": server,
            "remote": {"backend": "openai", "endpoint": remote.url, "model": "m", "tier": "constrained"},
        },
    }


def ask(runtime: Runtime, question: str, tmp_path: Path) -> tuple[RunResult, dict[str, Any]]:
    """Run one question; return the result, and what the verifier says of the book."""
    with runtime:
        result = runtime.loop().run(question)
        runtime.export_pin(tmp_path / "auditor.pin")
    program = str(ROOT / "verify" / "akaion_verify.py")
    command = [sys.executable, "-I", "-S", program, str(runtime.trace_path), "--json"]
    done = subprocess.run(
        [*command, "--pin", str(tmp_path / "auditor.pin")], capture_output=True, text=True, check=False
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return result, report


def entries(book: Path, kind: str) -> list[dict[str, Any]]:
    lines = [line for log in sorted(book.glob("*.jsonl")) for line in log.read_bytes().splitlines()]
    return [entry["body"] for line in lines if (entry := json.loads(line))["kind"] == kind]


def test_a_programs_own_opinion_keeps_a_telling_question_here(tmp_path: Path) -> None:
    opinion = FakeOpinion({"only judge": Opinion.PERSON}, name="names:fake")
    with ScriptedServer(replies=[oblige] * 9) as remote:
        profile = open_profile("attached", second_opinions=[opinion], **attached(remote))
        result, report = ask(profile, TELLING, tmp_path)
        assert remote.received == []
    assert (result.stop, result.data_class) == (StopReason.DENIED, DataClass.C2)
    assert (report["verdict"], report["classifiers"]) == ("PASS", ["rules+names:fake"])


def test_i4_a_plain_question_leaves_and_every_send_outside_has_its_record(tmp_path: Path) -> None:
    with (
        ScriptedServer(replies=[oblige] * 9) as remote,
        ScriptedServer(replies=['{"reason":"none"}'] * 9) as local,
    ):
        runtime = open_profile("attached", **attached(remote, local=local))
        result, report = ask(runtime, QUESTION, tmp_path)
        asked = [raw for raw in local.received if raw.startswith(b"POST")]
        sent = list(remote.received)
    assert result.stop in {StopReason.ANSWERED, StopReason.NOT_FOUND}, result.detail
    assert report["verdict"] == "PASS", report["reasons"]
    assert report["classifiers"] == ["rules+local:small"]
    sends = [each for each in entries(runtime.trace_path, "egress") if each["bytes"]]
    assert len([each for each in sends if each["backend"] == "opinion"]) == len(asked) > 0
    assert len([each for each in sends if each["backend"] == "remote"]) == len(sent) > 0
    assert {each["class"] for each in sends if each["backend"] == "opinion"} == {"C3"}
    assert not any(b"before they leave the house" in raw for raw in sent), "P1: no byte of a question"
    assert all(b"before they leave the house" in raw for raw in asked)


def test_i7_a_model_that_answers_nonsense_fails_the_run_and_nothing_leaves(tmp_path: Path) -> None:
    with ScriptedServer(replies=[oblige] * 9) as remote, ScriptedServer(replies=["all clear"] * 9) as local:
        runtime = open_profile("attached", **attached(remote, local=local))
        result, report = ask(runtime, QUESTION, tmp_path)
        assert remote.received == []
    assert result.stop is StopReason.FAILED
    assert "local:small" in result.detail
    assert report["verdict"] == "PASS"


def test_i10_a_model_server_is_not_asked_about_what_may_need_a_model_in_this_process() -> None:
    with (
        ScriptedServer() as remote,
        ScriptedServer() as local,
        pytest.raises(ConfigError, match="L1 at most"),
    ):
        open_profile("attached", **attached(remote, local=local, locality_required={"C3": "L2"}))


def test_weights_that_are_not_here_are_named_before_anything_runs() -> None:
    with ScriptedServer() as remote, pytest.raises(ModelError, match=f"akaion models fetch {TINY}"):
        open_profile("attached", **attached(remote, classifier=f"local:{TINY}"))


def test_what_is_no_second_opinion_is_refused() -> None:
    with ScriptedServer() as remote, pytest.raises(ConfigError, match="no second opinion"):
        open_profile("attached", second_opinions=[object()], **attached(remote))  # type: ignore[list-item]


# --- with a real model ---------------------------------------------------------------------------------


@pytest.fixture
def weights(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own that borrows the smallest model."""
    pytest.importorskip("xllamacpp")
    monkeypatch.undo()
    from runner.capability.models import models_dir  # noqa: PLC0415 - the real home, before it is replaced

    file = models_dir() / Catalogue.bundled().entry(TINY).file
    if not file.is_file():
        pytest.skip("no weights: make models")
    (home / "models").mkdir(parents=True)
    (home / "models" / file.name).symlink_to(file.resolve())
    monkeypatch.setenv("AKAION_HOME", str(home))
    return home


@pytest.mark.model
@pytest.mark.usefixtures("weights")
def test_a_real_model_gives_its_opinion_in_this_process_and_the_book_passes(tmp_path: Path) -> None:
    """Whatever so small a model says, it is one of the words, on record, and the run abides by it."""
    with ScriptedServer(replies=[oblige] * 9) as remote:
        profile = attached(remote, classifier=f"local:{TINY}")
        profile["inference"]["local"] = {"runtime": "embedded", "model": TINY, "threads": 1}
        runtime = open_profile("attached", **profile)
        result, report = ask(runtime, QUESTION, tmp_path)
        sent = len(remote.received)
    assert report["verdict"] == "PASS", report["reasons"]
    assert report["classifiers"] == [f"rules+local:{TINY}"]
    asked = [each for each in entries(runtime.trace_path, "egress") if each["backend"] == "opinion"]
    assert asked
    assert {(each["locality"], each["class"], each["decision"]) for each in asked} == {
        ("L2", "C3", "allowed")
    }
    words = [each["opinion"] for each in entries(runtime.trace_path, "classify") if "opinion" in each]
    assert words
    assert set(words) <= set(Opinion)
    raised = any(Opinion(word).data_class > DataClass.C1 for word in words)
    assert raised is (result.stop is StopReason.DENIED)
    assert raised is (result.data_class > DataClass.C1)
    assert sent == len(entries(runtime.trace_path, "egress_result")) - len(asked)


@pytest.mark.model
def test_explain_shows_the_second_opinion_apart_and_only_when_asked(
    weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile, letter = tmp_path / "studio.yaml", tmp_path / "letter.txt"
    profile.write_text(
        f"profile: detached\nperimeter: {{classifier: 'local:{TINY}'}}\npolicy: {{grants: []}}\n"
        f"inference: {{local: {{runtime: embedded, model: {TINY}, threads: 1}}}}\n"
    )
    letter.write_text(TELLING)
    assert main.main(["explain", str(letter), "-p", str(profile)]) == 0
    assert f"local:{TINY}: not asked" in capsys.readouterr().out
    assert not (weights / "trace").exists()
    assert main.main(["explain", str(letter), "-p", str(profile), "--second", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["class"] == "C0"
    assert data["second"]["by"] == f"local:{TINY}"
    assert data["second"]["class"] == Opinion(data["second"]["opinion"]).data_class.name
    assert [each["backend"] for each in entries(weights / "trace", "egress")] == ["opinion"]
