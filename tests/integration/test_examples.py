# SPDX-License-Identifier: Apache-2.0
"""The example program, as a process, against a model that answers from a script on loopback (P1, P3)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from runner.capability.profile import read_profile
from runner.kernel.config import parse_config
from runner.testing import ScriptedServer

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAM: Final = ROOT / "examples" / "embedding.py"
VERIFIER: Final = ROOT / "verify" / "akaion_verify.py"
TASK: Final = "How many days from 2026-01-19 to 2026-04-09?"
REPLIES: Final = (
    {"tool": "days_between"},
    {"first": "2026-01-19", "second": "2026-04-09"},
    {"tool": "answer"},
    {"answer": "80 days"},
)


def run_example(folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    """Run the example in `folder` with a profile whose local model is at `url`."""
    profile = folder / "program.yaml"
    profile.write_text(
        "profile: detached\n"
        "policy: {grants: [{tool: days_between, trusted: true}]}\n"
        f"inference: {{local: {{runtime: llamacpp, endpoint: '{url}', model: m, tier: constrained}}}}\n",
        encoding="utf-8",
    )
    return subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM), str(profile), TASK],
        env={**os.environ, "AKAION_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT / "src")},
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )


def verified(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-I", "-S", str(VERIFIER), str(folder / "home" / "trace"), "--json"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=600)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_p1_the_example_answers_by_way_of_its_own_tool(tmp_path: Path) -> None:
    """The tool really ran: what it computed is in the next request, and every request is on record."""
    with ScriptedServer(replies=REPLIES) as server:
        done = run_example(tmp_path, server.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "80 days\n", "")
    asked = [body for body in server.bodies if body]
    assert [b"\\n\\n80\\n\\n" in body for body in asked] == [False, False, True, False]
    assert len(asked) == len(REPLIES)
    assert verified(tmp_path)["egress"]["allowed"] == len(server.received)


def test_p3_its_record_names_the_tool_and_is_only_short_of_a_pin(tmp_path: Path) -> None:
    with ScriptedServer(replies=REPLIES) as server:
        run_example(tmp_path, server.url)
    report = verified(tmp_path)
    assert report["host_tools"] == [{"name": "days_between", "trusted": True}]
    assert [reason["code"] for reason in report["reasons"]] == ["no-pin"]


def test_its_profile_can_be_used_and_lets_nothing_leave() -> None:
    source = read_profile(PROGRAM.with_suffix(".yaml"), {})
    config = parse_config(source.data, file=source.file, locate=source.line)
    assert config.perimeter.ceiling is None
    assert config.inference.remote is None
    assert [(grant.tool, grant.trusted) for grant in config.policy.grants] == [("days_between", True)]
