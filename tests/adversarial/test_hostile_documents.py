# SPDX-License-Identifier: Apache-2.0
"""P2, I7: hostile and broken documents, each read in the sandbox: a clear error or a bounded answer.

The battery runs as a process of its own, so that the memory it measures is that of the parsers.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.capability.sandbox.bubblewrap import why_not

NO_SANDBOX = why_not()
BATTERY = Path(__file__).resolve().parents[1] / "batteries" / "documents.py"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    if NO_SANDBOX is not None:
        pytest.skip(f"no sandbox here: {NO_SANDBOX}")
    command = [sys.executable, str(BATTERY), "--mutants", "12", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_i7_each_hostile_file_ends_as_it_should(found: dict[str, Any]) -> None:
    """Refused for the right reason, or read with the right notes, and every error is a sentence of ours."""
    assert found["wrong"] == []
    assert found["files"] >= 12 + 60


def test_p2_no_program_that_reads_takes_more_memory_than_it_may(found: dict[str, Any]) -> None:
    assert 20 < found["memory_mib"] <= found["memory_limit_mib"] == 512


def test_i7_time_is_bounded(found: dict[str, Any]) -> None:
    assert found["slowest_s"] < 60
