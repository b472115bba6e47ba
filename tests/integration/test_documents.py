# SPDX-License-Identifier: Apache-2.0
"""The tool for documents, from a profile to a record: what a call brings back, and what is recorded."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from papers import LETTER, SECOND, plain_pdf

from runner import open_profile
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
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "atto.pdf").write_bytes(plain_pdf())
    return tmp_path


def profile(studio: Path, *, endpoint: str = "http://127.0.0.1:9", level: str = "C3", **grant: Any) -> str:
    paths = [{"path": "one", "class": level, "matter": "rossi"}]
    grants = [{"tool": "read_document", "paths": paths, **grant}]
    local = {"runtime": "llamacpp", "endpoint": endpoint, "model": "m", "tier": "constrained"}
    text = json.dumps({"profile": "detached", "policy": {"grants": grants}, "inference": {"local": local}})
    (studio / "studio.yaml").write_text(text, encoding="utf-8")
    return str(studio / "studio.yaml")


def called(named: str, **arguments: Any) -> tuple[ToolReply, dict[str, Any], str]:
    """Make the call in one task; return what came of it, the header of the log, and the verdict."""

    async def work() -> tuple[ToolReply, Path]:
        with open_profile(named) as rt, rt.client.task("read") as task:
            call = ToolCall(tool="read_document", arguments=arguments, origin=task.goal)
            reply = await rt.tools.call(call, task=task)
            rt.export_pin(rt.trace_path.parent / "auditor.pin")
            return reply, rt.trace_path

    reply, book = asyncio.run(work())
    header: dict[str, Any] = json.loads(min(book.glob("*.jsonl")).read_bytes().splitlines()[0])["body"]
    verifier, pin = str(ROOT / "verify" / "akaion_verify.py"), str(book.parent / "auditor.pin")
    command = [sys.executable, "-I", "-S", verifier, str(book), "--json", "--pin", pin]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return reply, header, str(json.loads(done.stdout)["verdict"])


@confined
def test_p2_a_page_has_the_class_of_its_folder_and_its_lines_may_be_quoted(studio: Path) -> None:
    reply, header, verdict = called(profile(studio), path="one/atto.pdf", page=2)
    assert reply.status == "ok"
    assert [excerpt.text for excerpt in reply.excerpts] == list(SECOND)
    assert {excerpt.page for excerpt in reply.excerpts} == {2}
    label = reply.block.label
    assert (label.data_class, label.integrity) == (DataClass.C3, Integrity.PRACTICE)
    assert label.matters == {"rossi"}
    assert (header["sandbox"], header["unverifiable_because"], verdict) == ("bubblewrap", [], "PASS")


def test_p3_without_the_sandbox_every_verdict_is_unverifiable(studio: Path) -> None:
    reply, header, verdict = called(profile(studio, sandbox="unrestricted"), path="one/atto.pdf")
    assert reply.excerpts[0].text == LETTER[0]
    assert reply.block.label.integrity is Integrity.UNTRUSTED
    assert reply.block.label.data_class is DataClass.C3
    assert (header["sandbox"], header["unverifiable_because"]) == ("none", ["tool-unrestricted"])
    assert verdict == "UNVERIFIABLE"


def test_p3_a_profile_that_reads_documents_is_not_opened_where_no_sandbox_can_be_built(
    studio: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.capability.sandbox.loading.PLACES", (str(studio),))
    bubblewrap._bwrap.cache_clear()
    with pytest.raises(ConfigError, match=r"grants\.0: no sandbox can be built here.*package bubblewrap"):
        construct(profile(studio)).__enter__()
    with construct(profile(studio, sandbox="unrestricted")):
        pass


@confined
def test_p3_the_tool_of_a_profile_reads_in_the_sandbox_or_not_at_all(
    studio: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox goes away while the profile is open: the next document is not read."""

    async def work() -> ToolReply:
        with open_profile(profile(studio)) as rt, rt.client.task("read") as task:
            monkeypatch.setattr("runner.capability.sandbox.loading.PLACES", (str(studio),))
            bubblewrap._bwrap.cache_clear()
            call = ToolCall(tool="read_document", arguments={"path": "one/atto.pdf"}, origin=task.goal)
            return await rt.tools.call(call, task=task)

    reply = asyncio.run(work())
    assert reply.status == "error"
    assert "bubblewrap (bwrap) is not installed" in reply.block.text
    assert LETTER[0] not in reply.block.text


@confined
def test_an_answer_from_a_document_names_its_page(studio: Path) -> None:
    """The loop, with a model that calls the tool and answers: the evidence is the line of the page."""
    call = {"tool": "read_document"}
    replies = [call, {"path": "one/atto.pdf", "page": 1}, {"tool": "answer"}, {"answer": LETTER[1]}]
    with (
        ScriptedServer(replies=[json.dumps(reply) for reply in replies]) as server,
        open_profile(profile(studio, endpoint=server.url, level="C1")) as rt,
    ):
        result = rt.loop().run("Quanto è il canone?")
    assert (result.answer, result.stop, result.detail) == (LETTER[1], "answered", "")
    [evidence] = result.evidence
    assert (evidence.page, evidence.line, evidence.place) == (1, 2, "one/atto.pdf (page 1):2")
