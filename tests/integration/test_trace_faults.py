# SPDX-License-Identifier: Apache-2.0
"""I4, I9: a sample of the fault battery; `make test-trace-faults` injects every fault there is.

A writer is killed, cut off from power, interrupted, or refused by the disk at its system calls. The verifier
never says FAIL, what was sealed is there, the next writer goes on, and the book then passes.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import syscalls

BATTERY = Path(__file__).resolve().parents[1] / "batteries" / "faults.py"


@pytest.mark.slow
@pytest.mark.skipif(not syscalls.AVAILABLE, reason="follows the system calls of Linux on x86-64")
def test_i9_whatever_befalls_a_writer_its_book_is_honest_and_goes_on() -> None:
    command = [sys.executable, str(BATTERY), "--every", "211", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, {kind: wrong for kind, wrong in found["wrong"].items() if wrong}) == (0, {})
    calls, ways = found["system_calls"], found["by_way"]
    assert min(calls.values()) > 100
    assert found["injected"] == sum(ways.values()) > 60
    for name in ("verdict_never_fail", "sealed_calls_kept", "cuts_below_the_pin_refused"):
        kept, total = map(int, found[name].split("/"))
        assert (kept == total, total > 20) == (True, True)
