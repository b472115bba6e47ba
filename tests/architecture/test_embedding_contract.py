# SPDX-License-Identifier: Apache-2.0
"""The contract shipped for embedding programs holds for an honest host and fails by name for a leak (P1).

Two small host packages are generated and linted exactly as the file's own comments say: copied, the name
replaced, `lint-imports` run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "contracts" / "embedding.importlinter"
SEAL = "Agent code reaches models through the seal only"
FRONT_DOOR = "Agent code takes nothing from behind the front door"
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"

HONEST = {
    "__init__.py": "",
    "assistant.py": "import json\nfrom runner import open_profile\nfrom practice import words\n",
    "words.py": "import re\nfrom runner.testing import FrozenClock\n",
}


def lint(host: Path, files: dict[str, str], *, agent_code: str = "practice") -> tuple[dict[str, str], str]:
    """Write `files` as the package `practice`, adopt the contract, and return its verdicts and its output."""
    package = host / "practice"
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    adopted = SHIPPED.read_text(encoding="utf-8").replace("your_project", "practice")
    whole = "source_modules =\n    practice\n"
    assert whole in adopted
    adopted = adopted.replace(whole, whole.replace("practice", agent_code))
    (host / "embedding.importlinter").write_text(adopted, encoding="utf-8")
    path = os.pathsep.join([str(host), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache", "--no-logo", "embedding.importlinter"],
        cwd=host,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = dict(re.findall(r"^(.+?) (KEPT|BROKEN)\b.*$", done.stdout, re.MULTILINE))
    assert found, done.stdout + done.stderr
    assert done.returncode == (1 if "BROKEN" in found.values() else 0)
    return found, done.stdout


def test_an_honest_host_keeps_the_contract(tmp_path: Path) -> None:
    """Although the runner itself holds a transport: chains end at its front door."""
    found, _ = lint(tmp_path, HONEST)
    assert found == {SEAL: "KEPT", FRONT_DOOR: "KEPT"}


def test_a_host_that_reaches_an_http_client_through_another_module_breaks_it(tmp_path: Path) -> None:
    leaking = {
        **HONEST,
        "assistant.py": "from runner import open_profile\nfrom practice import helpers\n",
        "helpers.py": "from practice.net import fetch\n",
        "net.py": "import httpx\n\n\ndef fetch() -> None:\n    httpx.get('http://127.0.0.1')\n",
    }
    found, output = lint(tmp_path, leaking)
    assert found == {SEAL: "BROKEN", FRONT_DOOR: "KEPT"}
    assert "practice.net -> httpx" in output


@pytest.mark.parametrize(
    "line",
    [
        "import openai",
        "from google import genai",
        "import langchain_core.messages",
        "import socket",
        "from urllib.request import urlopen",
        "import http.client",
        "def late() -> None:\n    import subprocess",
    ],
)
def test_every_kind_of_way_out_breaks_it(tmp_path: Path, line: str) -> None:
    found, _ = lint(tmp_path, {**HONEST, "words.py": f"{line}\n"})
    assert found[SEAL] == "BROKEN"


def test_an_agent_part_may_not_borrow_the_client_of_the_rest(tmp_path: Path) -> None:
    """Step 2 of the comments: only `practice.agents` is agent code, and a chain of imports counts."""
    files = {
        **HONEST,
        "web.py": "import httpx\n",
        "agents/__init__.py": "",
        "agents/clerk.py": "from runner import open_profile\n",
    }
    assert lint(tmp_path, files, agent_code="practice.agents")[0][SEAL] == "KEPT"
    files["agents/clerk.py"] += "from practice.web import httpx\n"
    assert lint(tmp_path, files, agent_code="practice.agents")[0][SEAL] == "BROKEN"


@pytest.mark.parametrize(
    "line", ["from runner.capability.transport.http import HttpTransport", "import runner.perimeter.sealed"]
)
def test_reaching_behind_the_front_door_breaks_it(tmp_path: Path, line: str) -> None:
    found, _ = lint(tmp_path, {**HONEST, "words.py": f"{line}\n"})
    assert found[FRONT_DOOR] == "BROKEN"
