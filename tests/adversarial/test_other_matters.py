# SPDX-License-Identifier: Apache-2.0
"""What a model of one matter is told of another's folder: what it is told of a folder that is not there (I8).

The names of matters are names of clients. Whoever asks for `bianchi/...` and for `neri/...`, of which the
practice has the one and not the other, gets two answers that are the same, byte for byte: from every shipped
tool that takes a path, in whatever the task has read and whoever was asked.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from runner import HostTool, open_profile
from runner.assembly.tools import shipped_tools
from runner.capability.profile import read_profile
from runner.kernel.config import parse_config
from runner.kernel.messages import ToolCall
from runner.perimeter.task import Task
from runner.testing import ScriptedApprover

CALLS: dict[str, tuple[Callable[[str], dict[str, Any]], ...]] = {
    "list_dir": (lambda folder: {"path": folder}, lambda folder: {"path": f"{folder}/sub/"}),
    "read_file": (lambda folder: {"path": f"{folder}/nota.txt"}, lambda folder: {"path": f"{folder}/none"}),
    "read_document": (
        lambda folder: {"path": folder, "odd": 1},
        lambda folder: {"path": f"{folder}/nota.txt"},
    ),
    "search_text": (lambda folder: {"query": "udienza", "path": folder},),
    "write_file": (
        lambda folder: {"path": f"{folder}/new.txt", "text": "x"},
        lambda folder: {"path": f"{folder}/nota.txt", "text": "x", "replace": True},
    ),
    "patch_file": (lambda folder: {"path": f"{folder}/nota.txt", "old": "Udienza", "new": "x"},),
    "move_to_bin": (lambda folder: {"path": f"{folder}/nota.txt"},),
    "shell": (
        lambda folder: {"argv": ["cat", f"{folder}/nota.txt"]},
        lambda folder: {"argv": ["ls"], "folder": folder},
        lambda folder: {"argv": ["cat", "nota.txt"], "folder": folder},
        lambda folder: {"argv": ["cat", "rossi/nota.txt", f"{folder}/nota.txt"]},
        lambda folder: {"argv": ["find", folder, "-name", "n*"]},
        lambda folder: {"argv": ["cat", "--no-such-flag", folder]},
    ),
}
"""Every shipped tool that takes a path: calls of it into a folder."""
MANY = 30
"""More than a person is asked in one task."""


def pay(invoice: str) -> str:
    """Pay what stands there."""
    return invoice


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A practice of two matters. The other's folder is C1: a task of ours has soon read too much for it."""
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    for name in ("rossi", "bianchi"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "nota.txt").write_text("Udienza il 4 giugno.\n", encoding="utf-8")
    own = {"path": "rossi", "class": "C2", "matter": "rossi"}
    other = {"path": "bianchi", "class": "C1", "matter": "bianchi"}
    more: dict[str, dict[str, Any]] = {"shell": {"commands": ["cat", "ls", "find"]}}
    grants: list[dict[str, Any]] = [
        *({"tool": tool, "paths": [own, other], **more.get(tool, {})} for tool in CALLS),
        {"tool": "pay", "trusted": True, "approval": "ask"},
    ]
    data = {
        "profile": "detached",
        "perimeter": {"locality_required": {"C3": "L0"}},
        "policy": {"grants": grants},
        "inference": {"local": {"runtime": "llamacpp", "endpoint": "http://127.0.0.1:9", "model": "m"}},
    }
    path = tmp_path / "studio.yaml"
    path.write_text(json.dumps(data), encoding="utf-8")
    return str(path)


Call = tuple[str, dict[str, Any]]


def told(
    profile: str,
    calls: Callable[[str], list[Call]],
    *,
    approver: ScriptedApprover | None = None,
    strange: bool = False,
) -> dict[str, list[tuple[str, str]]]:
    """Return what came of `calls`, by the folder that they are made of, each in a task of the one matter.

    With `strange` they come of a block that is not the task's.
    """

    async def made(task: Task, tool: str, arguments: dict[str, Any]) -> tuple[str, str]:
        origin = replace(task.goal) if strange else task.goal
        asked = ToolCall(tool=tool, arguments=arguments, origin=origin)
        reply = await runtime.tools.call(asked, task=task)
        return reply.status, reply.block.text

    async def work(folder: str) -> list[tuple[str, str]]:
        async with runtime.client.task("do it", matter="rossi") as task:
            return [await made(task, *call) for call in calls(folder)]

    with open_profile(profile, approver=approver, tools=[HostTool(pay)]) as runtime:
        return {folder: anyio.run(work, folder) for folder in ("bianchi", "neri")}


def test_the_calls_are_of_every_shipped_tool_that_takes_a_path(profile: str) -> None:
    source = read_profile(profile, {})
    shipped = shipped_tools(parse_config(source.data, file=source.file, locate=source.line), source)
    taking = {tool.spec.name for tool in shipped if tool.path_arguments or tool.spec.name == "shell"}
    assert taking == CALLS.keys()


@pytest.mark.parametrize("reads", [True, False], ids=["has-read", "fresh"])
@pytest.mark.parametrize("asked", [True, False], ids=["a-no", "nobody"])
def test_i8_a_folder_of_another_matter_is_answered_as_one_that_is_not_there(
    profile: str, *, asked: bool, reads: bool
) -> None:
    approver = ScriptedApprover(answers=[False] * MANY) if asked else None
    first: list[Call] = [("read_file", {"path": "rossi/nota.txt"})] if reads else []

    def calls(folder: str) -> list[Call]:
        twice = [(tool, make(folder)) for tool, makers in CALLS.items() for make in (*makers, *makers)]
        return first + twice

    found = told(profile, calls, approver=approver)
    assert found["bianchi"] == found["neri"]
    denied = found["bianchi"][len(first) :]
    assert {status for status, _ in denied} == {"denied"}
    assert not any("bianchi" in text or "matter" in text for _, text in denied)


def test_i8_how_often_nobody_was_asked_tells_nothing_either(profile: str) -> None:
    def calls(folder: str) -> list[Call]:
        guesses = [("read_file", {"path": f"{folder}/{number}"}) for number in range(MANY)]
        return [*guesses, ("pay", {"invoice": "1"})]

    found = told(profile, calls)
    assert found["bianchi"] == found["neri"]
    assert found["bianchi"][-1] == ("denied", "denied: not approved")


def test_i8_a_call_that_is_nobodys_is_answered_alike_too(profile: str) -> None:
    found = told(profile, lambda folder: [("list_dir", {"path": folder})], strange=True)
    assert found["bianchi"] == found["neri"] == [("denied", "denied: ")]
