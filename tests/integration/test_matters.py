# SPDX-License-Identifier: Apache-2.0
"""Matters, from a profile to a record: two clients' folders, a real search, and what a second one takes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from runner import AgentLoop, StopReason, open_profile
from runner.adapters.cli.main import app
from runner.kernel.messages import JsonObject
from runner.testing import ScriptedApprover, ScriptedServer

ROSSI = "Udienza Rossi: 14 ottobre 2026, ore 9.30, aula 5."
BIANCHI = "Udienza Bianchi: 3 novembre 2026, ore 11.00, aula 2."
QUESTION = "Quando è fissata l'udienza?"


def reply(body: JsonObject) -> str:
    """Translate the question; then say the date that stands in the page, the first one of two."""
    if '\\"it\\"' in str(body["grammar"]):
        return json.dumps({"it": "udienza", "en": "hearing"})
    page = json.dumps(body, ensure_ascii=False)
    dates = [date for date in ("14 ottobre 2026", "3 novembre 2026") if date in page]
    return json.dumps({"answer": dates[0] if dates else "not found"})


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(replies=[reply] * 20) as server:
        yield server


@pytest.fixture(params=["search_text", "search_documents"])
def profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: ScriptedServer, request: pytest.FixtureRequest
) -> str:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    for name, line in (("one", ROSSI), ("two", BIANCHI), ("forms", "Modulo di procura.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.txt").write_text(f"Tribunale di Example\n\n{line}\n", encoding="utf-8")
    path = tmp_path / "studio.yaml"
    paths = "[{path: one, matter: rossi}, {path: two, matter: bianchi}, {path: forms}]"
    path.write_text(
        "profile: detached\npolicy:\n  grants:\n"
        f"    - {{tool: {request.param}, paths: {paths}}}\n    - {{tool: read_file, paths: {paths}}}\n"
        f"inference:\n  local: {{runtime: llamacpp, endpoint: '{model.url}', model: scripted}}\n",
        encoding="utf-8",
    )
    return str(path)


def ask(profile: str, **more: Any) -> Any:
    approver = more.pop("approver", None)
    with open_profile(profile, approver=approver) as runtime:
        return AgentLoop(client=runtime.client, tools=runtime.tools).run(QUESTION, **more)


@pytest.mark.parametrize(("matter", "line"), [("rossi", ROSSI), ("bianchi", BIANCHI)])
def test_i8_a_task_of_one_matter_answers_from_it_and_never_asks(
    profile: str, model: ScriptedServer, matter: str, line: str
) -> None:
    approver = ScriptedApprover()
    result = ask(profile, matter=matter, approver=approver)
    assert (result.stop, [evidence.quote for evidence in result.evidence]) == (StopReason.ANSWERED, [line])
    assert approver.asked == []
    other = {ROSSI, BIANCHI} - {line}
    assert not any(each.encode() in body for each in other for body in model.bodies), "nothing of the other"


def test_i1_a_question_over_two_matters_is_denied_without_a_person(
    profile: str, model: ScriptedServer
) -> None:
    result = ask(profile)
    assert result.stop is StopReason.DENIED
    assert "two matters" in result.detail
    assert not any(line.encode() in body for line in (ROSSI, BIANCHI) for body in model.bodies)


def test_a_person_may_bring_two_matters_together_and_is_asked_once(profile: str) -> None:
    approver = ScriptedApprover(answers=[True])
    result = ask(profile, approver=approver)
    assert (result.stop, len(approver.asked)) == (StopReason.ANSWERED, 1)


def test_the_command_names_the_matters_a_profile_has(profile: str) -> None:
    done = CliRunner().invoke(app, ["run", "-p", profile, "--matter", "verdi", QUESTION])
    assert done.exit_code == 2
    assert "bianchi, rossi" in done.output
    done = CliRunner().invoke(app, ["run", "-p", profile, "--matter", "rossi", "--json", QUESTION])
    assert (done.exit_code, json.loads(done.stdout)["evidence"][0]["file"]) == (0, "one/note.txt")
    done = CliRunner().invoke(app, ["run", "-p", profile, QUESTION])
    assert done.exit_code == 4, "denied, and the way out is told"
    assert "open the task for one matter" in done.stdout
    assert "bianchi, rossi" in done.stdout
