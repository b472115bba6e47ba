# SPDX-License-Identifier: Apache-2.0
"""P3, I8: whatever a program passes as a tool is a host tool: named, vouched for or UNVERIFIABLE, and C2."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from runner import HostTool, open_profile
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.messages import JsonObject, ToolCall
from runner.kernel.ports import Effect, Tool, ToolOutput
from runner.perimeter.running import ToolReply
from runner.testing import FakeTool, ScriptedServer

VERIFIER: Final = Path(__file__).resolve().parents[2] / "verify" / "akaion_verify.py"
NO_ARGUMENTS: Final[JsonObject] = {"type": "object", "properties": {}, "additionalProperties": False}


class Disguised(HostTool):
    """A host tool that says it reads."""

    effect = Effect.READ  # type: ignore[misc]  # that is the attack


def mine() -> str:
    """Say something."""
    return "said"


def claiming(effect: Effect, paths: frozenset[str] = frozenset()) -> FakeTool:
    parameters = None if paths else NO_ARGUMENTS
    return FakeTool(
        name="mine",
        output=ToolOutput(text="said"),
        effect=effect,
        parameters=parameters,
        path_arguments=paths,
    )


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    for name, word in (("open", "public"), ("closed", "privileged")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(word)


def run(
    tool: Tool, grant: dict[str, Any], arguments: dict[str, str], folder: Path
) -> tuple[ToolReply, dict[str, Any]]:
    """Return the reply to one call of `tool`, and the verdict on the record, pinned."""
    with ScriptedServer() as server:
        profile: dict[str, Any] = {
            "policy": {"grants": [{"tool": "mine", **grant}]},
            "inference": {
                "local": {"runtime": "llamacpp", "endpoint": server.url, "model": "m", "tier": "constrained"}
            },
        }
        with open_profile("detached", tools=[tool], **profile) as runtime:
            runtime.export_pin(folder / "pin")

            async def call() -> ToolReply:
                with runtime.client.task("go") as task:
                    asked = ToolCall(tool="mine", arguments=arguments, origin=task.goal)
                    return await runtime.tools.call(asked, task=task)

            reply = anyio.run(call)
    command = [sys.executable, "-I", "-S", str(VERIFIER), str(runtime.trace_path), "--json"]
    done = subprocess.run([*command, "--pin", str(folder / "pin")], capture_output=True, check=False)
    verdict: dict[str, Any] = json.loads(done.stdout)
    return reply, verdict


TOOLS: Final = [*map(claiming, Effect), Disguised(mine), HostTool(mine)]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{type(tool).__name__}-{tool.effect}")
def test_p3_a_tool_nobody_vouched_for_makes_the_record_unverifiable(tool: Tool, tmp_path: Path) -> None:
    reply, verdict = run(tool, {}, {}, tmp_path)
    assert reply.status == "ok"
    assert verdict["verdict"] == "UNVERIFIABLE"
    label = reply.block.label
    assert (label.data_class, label.integrity) == (DataClass.C2, Integrity.UNTRUSTED)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{type(tool).__name__}-{tool.effect}")
def test_p3_a_trusted_tool_is_named_by_the_record(tool: Tool, tmp_path: Path) -> None:
    _, verdict = run(tool, {"trusted": True}, {}, tmp_path)
    assert verdict["verdict"] == "PASS"
    (log,) = (tmp_path / "home" / "trace").glob("*.jsonl")
    header = json.loads(log.read_bytes().splitlines()[0])
    assert header["body"]["host_tools"] == [{"name": "mine", "trusted": True}]


@pytest.mark.parametrize("effect", list(Effect))
def test_i8_a_host_tools_output_has_the_class_of_every_folder_of_its_grant(
    effect: Effect, tmp_path: Path
) -> None:
    """It was called with a path in the public folder; nothing keeps it from reading the other."""
    paths = [
        {"path": str(tmp_path / "open"), "class": "C0"},
        {"path": str(tmp_path / "closed"), "class": "C3"},
    ]
    tool = claiming(effect, frozenset({"path"}))
    reply, _ = run(tool, {"paths": paths}, {"path": "open/a.txt"}, tmp_path)
    assert reply.block.label.data_class is DataClass.C3
    assert [root.alias for root in tool.calls[0].roots] == ["open"]


def test_p3_shipped_tools_are_no_host_tools(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        profile: dict[str, Any] = {
            "policy": {"grants": [{"tool": "read_file", "paths": [str(tmp_path / "open")]}]},
            "inference": {
                "local": {"runtime": "llamacpp", "endpoint": server.url, "model": "m", "tier": "constrained"}
            },
        }
        with open_profile("detached", **profile) as runtime:
            book = runtime.trace_path
    (log,) = book.glob("*.jsonl")
    assert json.loads(log.read_bytes().splitlines()[0])["body"]["host_tools"] == []
