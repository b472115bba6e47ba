# SPDX-License-Identifier: Apache-2.0
"""I4, I9: samples of the batteries of the record, which are run whole by two targets of the Makefile.

`test-trace-faults`: a writer is killed, cut off from power, interrupted, or refused by the disk, at each of
its system calls. The verifier never says FAIL, what was sealed is there, the next writer goes on, and the
book then passes. `test-honest-runs`: 10,000 honest books, drawn at random, are no reason to cry out.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import syscalls

BATTERIES = Path(__file__).resolve().parents[1] / "batteries"


def run(battery: str, *options: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, str(BATTERIES / battery), *options, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not syscalls.AVAILABLE, reason="follows the system calls of Linux on x86-64")
def test_i9_whatever_befalls_a_writer_its_book_is_honest_and_goes_on() -> None:
    code, found = run("faults.py", "--every", "211")
    assert (code, {kind: wrong for kind, wrong in found["wrong"].items() if wrong}) == (0, {})
    calls, ways = found["system_calls"], found["by_way"]
    assert min(calls.values()) > 100
    assert found["injected"] == sum(ways.values()) > 60
    for name in ("verdict_never_fail", "sealed_calls_kept", "cuts_below_the_pin_refused"):
        kept, total = map(int, found[name].split("/"))
        assert (kept == total, total > 20) == (True, True)


@pytest.mark.slow
def test_i4_no_honest_run_is_cried_out_over() -> None:
    code, found = run("runs.py", "--runs", "40")
    assert (code, found["false_alarms"], found["honest_runs"]) == (0, [], "40/40")
    assert set(found["lives_by_end"]) == {"close", "gone", "full disk", "SIGKILL", "SIGTERM", "SIGINT"}
    assert found["interrupted_logs"] > 10
    assert found["clock_steps_back"] > 40
