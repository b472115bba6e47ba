# SPDX-License-Identifier: Apache-2.0
"""I9: a run killed at any write or sync leaves a book that is never FAIL; the next run accounts for it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.testing import ScriptedServer, oblige

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {"PASS", "INCOMPLETE"}
RUN = """
import os, signal, sys
from runner import open_profile

moment, url, practice = int(sys.argv[1]), sys.argv[2], sys.argv[3]
calls = 0

def armed(call):
    def wrapped(*arguments, **named):
        global calls
        calls += 1
        if calls == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*arguments, **named)
        return result
    return wrapped

for name in {"write", "fsync", "fdatasync", "rename", "replace", "open"} & set(dir(os)):
    setattr(os, name, armed(getattr(os, name)))
remote = {"backend": "openai", "endpoint": url, "model": "m", "tier": "constrained"}
grants = [{"tool": "search_text", "paths": [{"path": practice, "class": "C1"}]}]
with open_profile("attached", policy={"grants": grants},
                  inference={"prefer": "remote", "local": None, "remote": remote}) as runtime:
    runtime.loop().run("What is the figure?")
print(calls)
"""


def run(moment: int, url: str, practice: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, str(moment), url, str(practice)],
        env={**os.environ, "AKAION_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def verdict(home: Path, pin: Path) -> dict[str, Any]:
    book = home / "trace"
    book.mkdir(parents=True, exist_ok=True)
    verifier = str(ROOT / "verify" / "akaion_verify.py")
    command = [sys.executable, "-I", "-S", verifier, str(book), "--json", "--pin", str(pin)]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=False).stdout
    )
    return found


def write_pin(home: Path, pin: Path) -> None:
    akaion = [sys.executable, "-m", "runner.adapters.cli.main", "keys", "export", str(pin)]
    subprocess.run(akaion, env={**os.environ, "AKAION_HOME": str(home)}, check=True, capture_output=True)


@pytest.mark.slow
def test_i9_a_run_killed_at_any_moment_is_incomplete_or_passes_and_is_recovered(tmp_path: Path) -> None:
    practice = tmp_path / "practice"
    practice.mkdir()
    (practice / "note.txt").write_text("The figure is forty thousand.\n", encoding="utf-8")
    with ScriptedServer(replies=[oblige] * 2000) as server:
        whole = run(0, server.url, practice, tmp_path / "whole")
        moments = int(whole.stdout)
        assert moments > 40
        killed = 0
        for moment in range(1, moments + 1, max(1, moments // 15)):
            home, pin = tmp_path / f"home-{moment}", tmp_path / f"pin-{moment}"
            done = run(moment, server.url, practice, home)
            assert done.returncode == -signal.SIGKILL, done.stderr
            killed += 1
            write_pin(home, pin)
            first = verdict(home, pin)
            assert first["verdict"] in ALLOWED, (moment, first)
            assert run(0, server.url, practice, home).returncode == 0
            after = verdict(home, pin)
            assert after["verdict"] == "PASS", (moment, after)
    sys.stdout.write(f"killed at {killed} of {moments} moments: 0 FAIL\n")
