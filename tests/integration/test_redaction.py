# SPDX-License-Identifier: Apache-2.0
"""P1, I8: whole runs with redaction, over a real socket, with the real classifier and the real verifier."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner import HostTool, RunResult, StopReason, open_profile
from runner.capability.sandbox.bubblewrap import why_not
from runner.kernel.labels import DataClass
from runner.kernel.messages import JsonObject
from runner.testing import ScriptedServer, first_instance

ROOT = Path(__file__).resolve().parents[2]
FISCAL_CODE = "RSSMRA80A01H501U"
TOKEN = r"\[CODICE_FISCALE_[a-z]{6}\]"
QUESTION = f"Which letters of the fiscal code {FISCAL_CODE} stand for the surname?"

Answer = Callable[[JsonObject], str]
NO_SANDBOX = why_not()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def attached(
    server: ScriptedServer, redaction: str, grants: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    return {
        "policy": {"grants": grants or []},
        "perimeter": {"max_egress_class": "C1", "redaction": redaction},
        "inference": {
            "prefer": "remote",
            "local": None,
            "remote": {"backend": "openai", "endpoint": server.url, "model": "m", "tier": "constrained"},
        },
    }


def text_of(body: JsonObject) -> str:
    return json.dumps(body["messages"], ensure_ascii=False)


def repeating(body: JsonObject) -> str:
    """A model that repeats the first token it was shown, or does what it was asked."""
    asked: Any = body["response_format"]
    value: Any = first_instance(asked["json_schema"]["schema"])
    token = re.search(r"\[[A-Z_]+_[a-z]{6}\]", text_of(body))
    if token is not None and "answer" in value:
        value["answer"] = f"It is {token[0]}."
    return json.dumps(value)


def entries(book: Path, kind: str) -> list[dict[str, Any]]:
    lines = [line for log in sorted(book.glob("*.jsonl")) for line in log.read_bytes().splitlines()]
    return [entry["body"] for line in lines if (entry := json.loads(line))["kind"] == kind]


def verdict(book: Path, pin: Path) -> str:
    program = str(ROOT / "verify" / "akaion_verify.py")
    command = [sys.executable, "-I", "-S", program, str(book), "--json", "--pin", str(pin)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return str(found["verdict"])


def ask(
    question: str,
    tmp_path: Path,
    *,
    redaction: str = "on",
    grants: list[dict[str, Any]] | None = None,
    answer: Answer = repeating,
    tools: tuple[HostTool, ...] = (),
) -> tuple[RunResult, list[bytes], Path, str]:
    """Run one question; return the result, the bodies the server received, the book and its verdict."""
    with ScriptedServer(replies=[answer] * 9) as server:
        profile = attached(server, redaction, grants)
        with open_profile("attached", tools=tools, **profile) as runtime:
            result = runtime.loop().run(question)
            runtime.export_pin(tmp_path / "auditor.pin")
        bodies = server.bodies
    book = runtime.trace_path
    return result, bodies, book, verdict(book, tmp_path / "auditor.pin")


def test_p1_what_a_user_typed_goes_out_as_a_token_and_comes_back_as_it_was(tmp_path: Path) -> None:
    result, bodies, book, found = ask(QUESTION, tmp_path)
    assert result.stop is StopReason.ANSWERED
    assert result.answer == f"It is {FISCAL_CODE}."
    assert result.data_class is DataClass.C2, "I8: a restored value keeps its class"
    assert len(bodies) == 2
    assert all(FISCAL_CODE.encode() not in body for body in bodies)
    tokens = {token for body in bodies for token in re.findall(TOKEN, body.decode())}
    assert len(tokens) == 1, "one value has one token in a conversation"
    sent = entries(book, "egress")
    assert [(record["decision"], record["class"]) for record in sent] == [("redacted", "C1")] * 2
    assert [record["bytes"] for record in sent] == [len(body) for body in bodies]
    lowered = entries(book, "declassify")
    assert [record["id"] for record in lowered] == [record["declassify"] for record in sent]
    assert {(record["rule"], record["from"], record["to"]) for record in lowered} == {
        ("redact-detected", "C2", "C1")
    }
    assert found == "PASS"


def test_p1_with_redaction_off_the_same_question_is_denied(tmp_path: Path) -> None:
    result, bodies, book, found = ask(QUESTION, tmp_path, redaction="off")
    assert (result.stop, bodies) == (StopReason.DENIED, [])
    (denied,) = entries(book, "egress")
    assert (denied["decision"], denied["reason"], denied["class"]) == ("denied", "class-above-ceiling", "C2")
    assert found == "PASS"


def test_a_harmless_question_is_the_same_with_redaction_on_and_off(tmp_path: Path) -> None:
    question = "What does [PERSONA_kkkkkk] mean in article 13 of the GDPR?"
    _, plain, _, _ = ask(question, tmp_path, redaction="off")
    result, bodies, book, found = ask(question, tmp_path)
    assert bodies == plain, "nothing is rewritten where nothing needs to be"
    assert result.answer == "It is [PERSONA_kkkkkk].", "what was never sent as a token is never restored"
    assert {record["decision"] for record in entries(book, "egress")} == {"allowed"}
    assert (entries(book, "declassify"), found) == ([], "PASS")


def test_i12_the_map_is_nowhere_on_disk(tmp_path: Path, home: Path) -> None:
    _, bodies, _, _ = ask(QUESTION, tmp_path)
    token = re.findall(TOKEN, bodies[0].decode())[0].encode()
    everything = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert everything
    assert FISCAL_CODE.encode() not in everything
    assert token not in everything


@pytest.fixture
def practice(tmp_path: Path) -> Path:
    folder = tmp_path / "practice"
    folder.mkdir()
    lines = f"Lease of the shop\nThe tenant has the fiscal code {FISCAL_CODE} and pays on the first\n"
    (folder / "lease.txt").write_text(lines, encoding="utf-8")
    return folder


def over_files(practice: Path, **path: Any) -> list[dict[str, Any]]:
    return [{"tool": "search_text", "paths": [{"path": str(practice), **path}]}]


def test_p1_a_redactable_file_is_answered_from_through_tokens(practice: Path, tmp_path: Path) -> None:
    """The model answers with a token; restored, its words stand in the line that was read."""
    question = "Which tenant of the shop pays on the first?"
    result, bodies, book, found = ask(question, tmp_path, grants=over_files(practice, redactable=True))
    assert result.stop is StopReason.ANSWERED
    assert result.answer == f"It is {FISCAL_CODE}."
    assert FISCAL_CODE in result.evidence[0].quote
    assert all(FISCAL_CODE.encode() not in body for body in bodies)
    decisions = [record["decision"] for record in entries(book, "egress")]
    assert decisions[:2] == ["allowed", "redacted"]
    assert set(decisions) == {"allowed", "redacted"}
    assert found == "PASS"


@pytest.mark.parametrize("path", [{}, {"class": "C2"}])
def test_p1_no_other_file_is_lowered_by_redaction(
    path: dict[str, Any], practice: Path, tmp_path: Path
) -> None:
    """Neither a declared class, nor the default of a folder whose grant does not say `redactable`."""
    question = "When does the tenant of the shop pay?"
    result, bodies, book, found = ask(question, tmp_path, grants=over_files(practice, **path))
    assert result.stop is StopReason.DENIED
    assert len(bodies) == 1
    assert [record["decision"] for record in entries(book, "egress")] == ["allowed", "denied"]
    assert found == "PASS"


def test_p1_a_value_is_searched_for_by_its_token(practice: Path, tmp_path: Path) -> None:
    """The search goes by what the model may see: the code it asks for is a token, in the files too."""
    result, bodies, _, found = ask(QUESTION, tmp_path, grants=over_files(practice, redactable=True))
    assert result.stop is StopReason.ANSWERED
    assert result.answer == f"It is {FISCAL_CODE}."
    assert FISCAL_CODE in result.evidence[0].quote, "the user sees the line as it is"
    assert all(FISCAL_CODE.encode() not in body for body in bodies)
    assert len({token for body in bodies for token in re.findall(TOKEN, body.decode())}) == 1
    assert found == "PASS"


def test_i8_a_restored_value_never_reaches_a_host_tool(tmp_path: Path) -> None:
    """A model that only saw a token does not get to say where the value behind it goes."""
    seen: list[str] = []

    def note(text: str) -> str:
        """Keep a note."""
        seen.append(text)
        return "kept"

    def obedient(body: JsonObject) -> str:
        asked: Any = body["response_format"]
        value: Any = first_instance(asked["json_schema"]["schema"])
        if "text" in value:
            value["text"] = re.findall(TOKEN, text_of(body))[0]
        return json.dumps(value)

    grants = [{"tool": "note", "trusted": True}]
    result, bodies, book, found = ask(
        QUESTION, tmp_path, grants=grants, answer=obedient, tools=(HostTool(note),)
    )
    assert seen == []
    assert [step.status for step in result.steps] == ["denied"]  # type: ignore[union-attr]
    (decision,) = entries(book, "policy_decision")
    assert (decision["decision"], decision["rule"]) == ("deny", "restored-value-to-sink")
    assert all(FISCAL_CODE.encode() not in body for body in bodies)
    assert found == "PASS"


NOTICE = "Notice to leave\nThe rent of the shop is nine hundred euro a month\nThe tenant is Rossi Mario\n"


def of_a_client(tmp_path: Path, *, file: str = "notice.txt") -> tuple[RunResult, list[bytes], Path]:
    """Ask about a folder that is named after a client of the register; return as `ask` does."""
    folder = tmp_path / "studio" / "rossi"
    folder.mkdir(parents=True)
    (folder / file).write_text(NOTICE, encoding="utf-8")
    (tmp_path / "clients.yaml").write_text("- Rossi\n- Rossi Mario\n", encoding="utf-8")
    path = {"path": str(folder), "redactable": True}
    grants = [{"tool": tool, "paths": [path]} for tool in ("search_text", "read_file")]
    with ScriptedServer(replies=[rent] * 9) as server:
        profile = attached(server, "on", grants)
        profile["perimeter"]["registers"] = {"clients": str(tmp_path / "clients.yaml")}
        with open_profile("attached", **profile) as runtime:
            result = runtime.loop().run("What is the rent of the shop?")
            runtime.export_pin(tmp_path / "auditor.pin")
        return result, server.bodies, runtime.trace_path


def rent(body: JsonObject) -> str:
    asked: Any = body["response_format"]
    value: Any = first_instance(asked["json_schema"]["schema"])
    return json.dumps(value | {"answer": "nine hundred euro"} if "answer" in value else value)


@pytest.mark.parametrize("file", ["notice.txt", "Rossi Mario.txt"])
def test_p1_a_folder_named_after_a_client_is_read_again_and_shown_by_its_name(
    file: str, tmp_path: Path
) -> None:
    """The program opens the file that a token stands for; the model elsewhere sees the token only."""
    result, bodies, book = of_a_client(tmp_path, file=file)
    assert result.stop is StopReason.ANSWERED
    assert [(each.file, each.line) for each in result.evidence] == [(f"rossi/{file}", 2)]
    assert [(step.tool, step.status) for step in result.steps] == [  # type: ignore[union-attr]
        ("search_text", "ok"),
        ("read_file", "ok"),
    ]
    assert result.steps[1].arguments == {"path": f"rossi/{file}"}  # type: ignore[union-attr]
    assert (result.confirmed, result.notes) == (True, ())
    assert len(bodies) == 3, "translated, answered, answered again from the whole file"
    assert all(b"rossi" not in body.lower() for body in bodies)
    assert len({name for body in bodies[1:] for name in re.findall(r"# (\[[^\\]*)", body.decode())}) == 1
    assert verdict(book, tmp_path / "auditor.pin") == "PASS"


READS = ("search_text", "read_file", "list_dir")
ONE_FILE = {"path": "lease/lease.txt"}
BY_WORDS = {"query": "tenant pays"}
BY_GREP = {"argv": ["grep", "pays", "lease/lease.txt"]}
CAN_DO = [
    pytest.param((), "", "read_file", ONE_FILE, "answered", id="read"),
    pytest.param((), "", "search_text", BY_WORDS, "answered", id="search"),
    pytest.param(("other",), "", "read_file", ONE_FILE, "answered", id="read beside another"),
    pytest.param(("other",), "", "search_text", BY_WORDS | {"path": "lease"}, "answered", id="search beside"),
    pytest.param(("other",), "", "search_text", BY_WORDS, "denied", id="search both"),
    pytest.param((), "shell", "read_file", ONE_FILE, "answered", id="read, with a shell"),
    pytest.param((), "shell", "shell", BY_GREP, "denied", id="shell"),
    pytest.param((), "search_documents", "read_file", ONE_FILE, "answered", id="read, with an index"),
    pytest.param((), "search_documents", "search_documents", BY_WORDS, "denied", id="index"),
]


@pytest.mark.parametrize(("others", "beside", "tool", "arguments", "stop"), CAN_DO)
def test_what_a_user_of_redaction_can_do(
    others: tuple[str, ...],
    beside: str,
    tool: str,
    arguments: dict[str, Any],
    *,
    stop: str,
    tmp_path: Path,
) -> None:
    """P1, and no more than that: what came through the veil is answered from, what did not stays here."""
    if beside == "shell" and NO_SANDBOX is not None:
        pytest.skip(NO_SANDBOX)
    for name in ("lease", *others):
        (tmp_path / name).mkdir()
    lines = "Lease of the shop in Pisa\nThe tenant, signor Mario Rossi, pays 900 euro\n"
    (tmp_path / "lease" / "lease.txt").write_text(lines, encoding="utf-8")
    lease, more = str(tmp_path / "lease"), [str(tmp_path / name) for name in others]
    grants: list[dict[str, Any]] = [
        {"tool": each, "paths": [{"path": lease, "redactable": True}, *more]} for each in READS
    ]
    grants += [{"tool": beside, "paths": [lease]}] if beside else []
    grants += [{"tool": "today", "trusted": True}]  # so that the model chooses the tool
    grants = [grant | ({"commands": ["grep"]} if grant["tool"] == "shell" else {}) for grant in grants]
    chosen = iter([tool])

    def model(body: JsonObject) -> str:
        asked: Any = body["response_format"]
        wanted = asked["json_schema"]["schema"]["properties"]
        if "tool" in wanted:
            return json.dumps({"tool": next(chosen, "answer")})
        if "answer" in wanted:
            return json.dumps({"answer": "900 euro"})
        return json.dumps({name: value for name, value in arguments.items() if name in wanted})

    with (
        ScriptedServer(replies=[model] * 9) as server,
        open_profile("attached", tools=[HostTool(today)], **attached(server, "on", grants)) as runtime,
    ):
        result = runtime.loop().run("What does the tenant pay?")
    assert (str(result.stop), len(result.steps)) == (stop, 1)
    sent = b"".join(server.bodies)
    assert (b"900 euro" in sent) is (stop == "answered")
    assert b"Rossi" not in sent


def today() -> str:
    """Say which day it is."""
    return "monday"
